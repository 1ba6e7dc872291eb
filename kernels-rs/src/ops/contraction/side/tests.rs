use super::super::tests::{Random, owned};
use super::super::{linear, matmul, prepacked};
use super::*;
use crate::array::view;
use crate::dtype::{BF16, F16};

fn bits<T: Element>(x: &Array) -> Vec<u64> {
    x.to_vec::<T>().unwrap().into_iter().map(|value| value.to_f64().to_bits()).collect()
}

fn columns(x: &Array, range: std::ops::Range<usize>) -> Array {
    view::slice(x, &[0, range.start], &[x.shape()[0], range.len()], &[1, 1]).unwrap()
}

fn check<T: Element>(turned: bool, random: &mut Random) {
    let (k, n) = (520, 400);
    let w = random.dense::<T>(&if turned { [n, k] } else { [k, n] });
    let w = if turned { view::permute_dims(&w, &[1, 0]).unwrap() } else { w };
    let same = view::permute_dims(&w, &[0, 1]).unwrap();
    prepacked(&w).unwrap();
    prepacked(&same).unwrap();
    let list = w.storage().packed();
    assert_eq!(list.count(), 1, "{}", T::DTYPE.name());
    // All columns, and some from a multiple of a panel on, read what is there.
    for range in [0..n, 0..200, 128..n, 256..330] {
        for rows in [16, 90, 1200] {
            let (x, part) = (random.dense::<T>(&[rows, k]), columns(&w, range.clone()));
            let plain = columns(&owned::<T>(&w, turned), range.clone());
            let (got, want) = (matmul(&x, &part).unwrap(), matmul(&x, &plain).unwrap());
            assert!(bits::<T>(&got) == bits::<T>(&want), "{} {range:?} {rows} {turned}", T::DTYPE.name());
        }
    }
    assert_eq!(list.count(), 1, "{} {turned}", T::DTYPE.name());
}

#[test]
fn what_was_packed_serves_its_columns() {
    let mut random = Random(41);
    for turned in [false, true] {
        check::<f32>(turned, &mut random);
        check::<f64>(turned, &mut random);
        check::<F16>(turned, &mut random);
        check::<BF16>(turned, &mut random);
    }
}

/// Values whose sums are rounded, so that their order shows.
fn rough<T: Element>(random: &mut Random, shape: &[usize]) -> Array {
    let value = |_| T::from_f64((random.next(200_001) as f64 - 100_000.0) / 70_000.0);
    Array::from_slice(&(0..shape.iter().product()).map(value).collect::<Vec<T>>(), shape).unwrap()
}

/// Uses of one right side: read where it lies or packed in parts, then packed whole and kept, then found.
fn uses_agree<T: Element>((m, k, n): (usize, usize, usize), turned: bool, random: &mut Random) {
    let (x, bias) = (rough::<T>(random, &[m, k]), rough::<T>(random, &[n]));
    for bias in [None, Some(&bias)] {
        let w = rough::<T>(random, &if turned { [n, k] } else { [k, n] });
        let w = if turned { view::permute_dims(&w, &[1, 0]).unwrap() } else { w };
        let found = [0; 3].map(|_| bits::<T>(&linear(&x, &w, bias).unwrap()));
        let name = T::DTYPE.name();
        assert!(found[0] == found[1] && found[0] == found[2], "{m}x{k}x{n} {name} {turned} {}", bias.is_some());
    }
}

#[test]
fn keeping_a_right_side_changes_no_bit() {
    let mut random = Random(43);
    // Depths of several blocks; columns that leave one, some or none for the last part, and rows on each side of every limit.
    for (k, n) in [(600, 65), (1100, 129), (520, 257), (2100, 64), (300, 1089), (513, 130)] {
        for m in [1, 6, 12, 32, 33, 64, 65, 300] {
            for turned in [false, true] {
                uses_agree::<f32>((m, k, n), turned, &mut random);
                if m < 65 {
                    uses_agree::<f64>((m, k, n), turned, &mut random);
                    uses_agree::<F16>((m, k, n), turned, &mut random);
                    uses_agree::<BF16>((m, k, n), turned, &mut random);
                }
            }
        }
    }
}

#[test]
fn parts_that_have_to_be_packed_are_from_their_first_use_on() {
    let mut random = Random(42);
    let w = random.dense::<f32>(&[400, 520]);
    let turned = view::permute_dims(&w, &[1, 0]).unwrap();
    prepacked(&turned).unwrap();
    let (x, part) = (random.dense::<f32>(&[70, 520]), columns(&turned, 7..380));
    matmul(&x, &part).unwrap();
    assert_eq!(w.storage().packed().count(), 2);
    matmul(&x, &part).unwrap();
    assert_eq!(w.storage().packed().count(), 2);
    // What fits the first-level cache is read where it lies; other types and ranks are refused.
    let small = random.dense::<f32>(&[20, 30]);
    assert_eq!(prepacked(&small).unwrap().storage().packed().count(), 0);
    assert!(prepacked(&random.dense::<f32>(&[2, 20, 30])).is_err());
    assert!(prepacked(&Array::zeros(DType::I32, &[200, 300]).unwrap()).is_err());
}
