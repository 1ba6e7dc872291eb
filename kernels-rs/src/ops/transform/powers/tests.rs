use super::*;
use crate::ops::samples::Rng;
use crate::ops::transform::columns::Columns;
use crate::ops::transform::line::{From, Line};

fn lines_are_as_of_columns<T: Real>(tolerance: f64) {
    let mut rng = Rng::new(5);
    for length in [128, 256, 512, 1024, 2048, 4096] {
        let Some(plan) = Powers::<T>::new(length) else {
            assert!(lane_count::<T>() < EIGHT);
            continue;
        };
        let mut pairs = vec![T::default(); 2 * length];
        pairs.fill_with(|| <T as Element>::from_f64(rng.below(1000) as f64 / 500.0 - 1.0));
        let (re, im): (Vec<T>, Vec<T>) = pairs.chunks(2).map(|pair| (pair[0], pair[1])).unzip();
        let column = Line::Columns(Columns::<f64>::new(length).expect("a length with small factors"));
        let (mut wanted, mut column_room) = ([vec![0.0; length], vec![0.0; length]], vec![0.0; column.room()]);
        let wide: Vec<f64> = pairs.iter().map(|part| part.to_f64()).collect();
        column.run(From::Pairs(&wide), wanted.each_mut().map(|part| &mut part[..]), &mut column_room);
        for from in [Numbers::Parts(re.as_ptr(), im.as_ptr()), Numbers::Pairs(pairs.as_ptr())] {
            let (mut real, mut imag) = (vec![T::default(); length], vec![T::default(); length]);
            let mut room = vec![T::default(); 2 * length];
            // SAFETY: all were made as long as that just now.
            unsafe { plan.run(from, Rows::over(&mut real, &mut imag, 1), room.as_mut_ptr()) };
            for at in 0..length {
                let (re, im) = (real[at].to_f64() - wanted[0][at], imag[at].to_f64() - wanted[1][at]);
                assert!(re.hypot(im) <= tolerance * length as f64, "{re}, {im} at {at} of {length}");
            }
        }
    }
    assert!([64, 100, 384, 8192].iter().all(|&length| Powers::<T>::new(length).is_none()));
}

#[test]
fn lines_of_powers_of_two_are_as_of_columns() {
    lines_are_as_of_columns::<f32>(3e-8);
    lines_are_as_of_columns::<f64>(1e-16);
}
