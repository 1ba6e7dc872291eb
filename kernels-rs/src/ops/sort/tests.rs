use super::*;
use crate::array::view;
use crate::machine::threads::set_num_threads;
use crate::ops::samples::{Rng, elements, floats, shape, view_of};

fn check(x: &Array, axis: usize, descending: bool) {
    let (sorted, order) = (sort(x, axis, descending).unwrap(), argsort(x, axis, descending).unwrap());
    assert_eq!((&sorted.shape()[..], sorted.dtype()), (&x.shape()[..], x.dtype()));
    let (outer, len) = (x.shape()[..axis].iter().product::<usize>(), x.shape()[axis]);
    let inner: usize = x.shape()[axis + 1..].iter().product();
    let (values, sorted, order) = (floats(x), floats(&sorted), elements::<i64>(&order));
    for line in 0..outer * inner {
        let at = |k: usize| (line / inner * len + k) * inner + line % inner;
        let mut expected: Vec<usize> = (0..len).collect();
        expected.sort_by(|&a, &b| {
            let (a, b) = (values[at(a)], values[at(b)]);
            let order = if descending { b.partial_cmp(&a) } else { a.partial_cmp(&b) };
            order.unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
        });
        for (k, &from) in expected.iter().enumerate() {
            assert_eq!(order[at(k)] as usize, from, "{x:?} {axis} {descending}");
            let (got, value) = (sorted[at(k)], values[at(from)]);
            assert!(got.to_bits() == value.to_bits() || got.is_nan() && value.is_nan(), "{x:?} {axis} {descending}");
        }
    }
}

#[test]
fn every_type_layout_and_direction() {
    let mut rng = Rng::new(30);
    for round in 0..360 {
        let dtype = DType::ALL[round % 12];
        let mut size = shape(&mut rng, 2, &[0, 1, 2, 3, 5]);
        size.push(rng.pick(&[0, 1, 2, 7, 150, 170, 400, 3000]));
        let last = size.len() - 1;
        size.swap(rng.below(last + 1), last);
        let axis = rng.below(size.len());
        let special = rng.below(2) == 0;
        let mut x = view_of(&mut rng, dtype, &size, special);
        if matches!(dtype, DType::I64 | DType::U64) && !special {
            // The reference compares as float64.
            x = crate::ops::elementwise::convert::cast(&view_of(&mut rng, DType::I32, &size, false), DType::I64)
                .unwrap();
        }
        set_num_threads(1 + round % 4);
        check(&x, axis, round % 3 == 0);
    }
}

fn check_topk(x: &Array, axis: usize, largest: bool, k: usize) {
    let (values, indices) = topk(x, k, axis, largest).unwrap();
    let order = argsort(x, axis, largest).unwrap();
    let sorted = sort(x, axis, largest).unwrap();
    let mut size = x.shape().to_vec();
    size[axis] = k;
    let first = |all: &Array| view::slice(all, &vec![0; size.len()], &size, &vec![1; size.len()]).unwrap();
    assert_eq!((&values.shape()[..], values.dtype()), (&size[..], x.dtype()));
    assert_eq!(elements::<i64>(&indices), elements::<i64>(&first(&order)), "{x:?} {axis} {largest} {k}");
    for (got, expected) in floats(&values).into_iter().zip(floats(&first(&sorted))) {
        let same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
        assert!(same, "{x:?} {axis} {largest} {k}: {got} {expected}");
    }
}

#[test]
fn topk_is_the_start_of_a_sort() {
    let mut rng = Rng::new(32);
    for round in 0..360 {
        let dtype = DType::ALL[round % 12];
        let mut size = shape(&mut rng, 2, &[0, 1, 2, 5]);
        size.push(rng.pick(&[0, 1, 7, 150, 400, 3000]));
        let last = size.len() - 1;
        size.swap(rng.below(last + 1), last);
        let axis = rng.below(size.len());
        let special = rng.below(2) == 0;
        let x = view_of(&mut rng, dtype, &size, special);
        let k = [0, 1, 3, 10, 64, size[axis] / 9, size[axis] / 2, size[axis]][rng.below(8)].min(size[axis]);
        set_num_threads(1 + round % 4);
        check_topk(&x, axis, round % 3 == 0, k);
    }
    let x = Array::zeros(DType::F32, &[3]).unwrap();
    assert!(topk(&x, 4, 0, true).is_err() && topk(&x, 1, 1, true).is_err());
}

#[test]
fn topk_of_long_rows() {
    let mut rng = Rng::new(33);
    for (round, dtype) in [DType::F32, DType::F64, DType::I32, DType::U8, DType::F16].into_iter().enumerate() {
        for len in [65_536, 65_537, 200_001] {
            let x = view_of(&mut rng, dtype, &[2, len], round % 2 == 0);
            set_num_threads(1 + round % 4);
            check_topk(&x, 1, round != 2, [1, 10, 900][round % 3]);
        }
    }
}

#[test]
fn one_long_row() {
    let mut rng = Rng::new(31);
    for (round, dtype) in [DType::F32, DType::F64, DType::I32, DType::U8, DType::F16].into_iter().enumerate() {
        let x = view_of(&mut rng, dtype, &[200_000 + round], round % 2 == 0);
        set_num_threads(1 + round % 4);
        check(&x, 0, round == 2);
    }
}

#[test]
fn extreme_integers() {
    let x = Array::from_slice(&[0, i64::MIN, i64::MAX, -1, 1 << 40, (1 << 40) + 1], &[6]).unwrap();
    assert_eq!(elements::<i64>(&argsort(&x, 0, false).unwrap()), [1, 3, 0, 4, 5, 2]);
    assert_eq!(elements::<i64>(&argsort(&x, 0, true).unwrap()), [2, 5, 4, 0, 3, 1]);
    let x = Array::from_slice(&[3, u64::MAX, 0, 1 << 63], &[4]).unwrap();
    assert_eq!(elements::<u64>(&sort(&x, 0, false).unwrap()), [0, 3, 1 << 63, u64::MAX]);
    assert!(sort(&x, 1, false).is_err() && argsort(&Array::zeros(DType::Bool, &[2]).unwrap(), 0, false).is_err());
}

#[test]
fn neighbouring_lines_are_taken_together() {
    let mut rng = Rng::new(34);
    let shapes: [(&[usize], usize); 5] =
        [(&[3000, 70], 0), (&[40, 200, 3], 1), (&[9000, 2, 3], 1), (&[70, 3000], 1), (&[20_000, 5], 0)];
    for (round, (size, axis)) in shapes.into_iter().enumerate() {
        for dtype in [DType::F32, DType::F64, DType::U8, DType::F16] {
            let x = view_of(&mut rng, dtype, size, true);
            set_num_threads(1 + round % 4);
            check(&x, axis, round % 2 == 0);
            for k in [1, 10, size[axis] / 2] {
                check_topk(&x, axis, round % 2 == 0, k.min(size[axis]));
            }
        }
    }
}
