use super::*;
use crate::ops::samples::{Rng, view_of};

#[test]
fn parts_cover_everything_once_and_are_small() {
    let mut rng = Rng::new(5);
    for _ in 0..500 {
        let (count, each) = (rng.below(60), rng.below(700));
        let found: Vec<_> = ranges(count, count * each, PART).collect();
        assert_eq!(found.iter().cloned().flatten().collect::<Vec<_>>(), (0..count).collect::<Vec<_>>());
        assert!(!found.is_empty() && found.iter().all(|part| part.len() * each <= PART.max(each)), "{found:?}");
    }
}

#[test]
fn planes_cover_everything_in_order() {
    let mut rng = Rng::new(6);
    for _ in 0..300 {
        let shape = [rng.below(5), rng.below(30), 1 + rng.below(12), 1 + rng.below(12)];
        let x = view_of(&mut rng, DType::F16, &shape, false);
        let made = made(&[&x], DType::F32);
        let plane = made.checked_div(shape[0] * shape[1]).unwrap_or(0);
        let all = Planes::cut(&[&x], made);
        let places: Vec<_> = all.iter().flat_map(|part| part.of(shape[1])).collect();
        assert_eq!(places, (0..shape[0] * shape[1]).collect::<Vec<_>>());
        for part in &all {
            assert_eq!(part.take(&x).unwrap().shape()[..2], [part.images.len(), part.channels.len()]);
            assert!(part.images.len() <= 1 || part.count() * plane <= PART, "{part:?} of {shape:?}");
            assert!(part.count() * plane <= PART || part.images.len() <= 1 && part.channels.len() <= line_of(&x));
        }
    }
}

#[test]
fn results_are_rounded_part_by_part() {
    let values = [1.0f32, 1.0 + 1.0 / 512.0, -3.3, 1e-30, 65504.0, f32::INFINITY];
    for dtype in [DType::F16, DType::BF16] {
        let mut out = Array::uninit(dtype, &[6]).unwrap();
        for range in [0..1, 1..4, 4..6] {
            let from = values[range.clone()].to_vec();
            write(&mut out, range, |to| {
                to.copy_from_slice(&from);
                Ok(())
            })
            .unwrap();
        }
        let whole = cast(&Array::from_slice(&values, &[6]).unwrap(), dtype).unwrap();
        assert_eq!(crate::ops::samples::floats(&out), crate::ops::samples::floats(&whole));
    }
}
