use super::*;
use crate::array::view;
use crate::machine::threads::set_num_threads;
use crate::ops::samples::{self, Rng, elements, indices, offsets, shape, view_of};

fn bits(x: &Array) -> Vec<u64> {
    match x.dtype().itemsize() {
        1 => elements::<u8>(&as_bits(x, DType::U8)).into_iter().map(u64::from).collect(),
        2 => elements::<u16>(&as_bits(x, DType::U16)).into_iter().map(u64::from).collect(),
        4 => elements::<u32>(&as_bits(x, DType::U32)).into_iter().map(u64::from).collect(),
        _ => elements::<u64>(&as_bits(x, DType::U64)),
    }
}

/// The same bytes, copied element by element, as unsigned integers.
fn as_bits(x: &Array, dtype: DType) -> Array {
    let size = dtype.itemsize();
    let out = Array::uninit(dtype, x.shape()).unwrap();
    for (k, at) in offsets(x).into_iter().enumerate() {
        // SAFETY: the offsets are those of elements.
        unsafe {
            let from = x.data().offset(at * size as isize);
            std::ptr::copy_nonoverlapping(from, out.storage().data().add(k * size), size);
        }
    }
    out
}

const LENGTHS: &[usize] = &[0, 1, 2, 3, 8, 15, 16, 17, 40, 70];

fn small(rng: &mut Rng) -> Vec<usize> {
    loop {
        let shape = shape(rng, 4, LENGTHS);
        if shape.iter().product::<usize>() <= 1 << 15 {
            return shape;
        }
    }
}

#[test]
fn dense_copies_of_every_layout() {
    let mut rng = Rng::new(10);
    for round in 0..400 {
        let size = small(&mut rng);
        let x = view_of(&mut rng, DType::ALL[round % DType::ALL.len()], &size, true);
        set_num_threads(1 + round % 4);
        let copy = dense_copy(&x).unwrap();
        assert!(copy.is_contiguous() && bits(&copy) == bits(&x), "{x:?}");
    }
}

#[test]
fn large_copies_of_every_layout() {
    let mut rng = Rng::new(11);
    for round in 0..60 {
        let size = [rng.pick(&[1, 2, 64, 600]), rng.pick(&[3, 64, 500]), rng.pick(&[1, 2, 65])];
        let x = view_of(&mut rng, rng_dtype(round), &size, true);
        set_num_threads(1 + round % 4);
        assert!(bits(&dense_copy(&x).unwrap()) == bits(&x), "{x:?}");
    }
}

/// Every kind of plane: turned in whole squares and with rests, woven, streamed, short and long runs.
#[test]
fn permuted_copies_of_every_size() {
    let mut rng = Rng::new(15);
    let lengths = [1, 2, 3, 4, 5, 8, 13, 16, 17, 31, 33, 64, 65, 130, 257];
    for round in 0..300 {
        let mut size: Vec<usize> = (0..3).map(|_| rng.pick(&lengths)).collect();
        while size.iter().product::<usize>() > 1 << 16 {
            size.pop();
        }
        let dtype = rng_dtype(round);
        let base = samples::dense(&mut rng, dtype, &size, true);
        let mut order: Vec<usize> = (0..size.len()).collect();
        order.rotate_left(rng.below(size.len()));
        let swapped = (rng.below(size.len()), rng.below(size.len()));
        order.swap(swapped.0, swapped.1);
        let x = view::permute_dims(&base, &order).unwrap();
        set_num_threads(1 + round % 4);
        assert!(bits(&dense_copy(&x).unwrap()) == bits(&x), "{x:?}");
    }
    for (round, shape) in [[1 << 10, 4100], [4099, 1030], [2052, 2048]].into_iter().enumerate() {
        let dtype = if round == 2 { DType::F64 } else { DType::F32 };
        let x = view::permute_dims(&samples::dense(&mut rng, dtype, &shape, true), &[1, 0]).unwrap();
        set_num_threads(1 + round);
        let (copy, expected) = (dense_copy(&x).unwrap(), bits(&x));
        assert!(bits(&copy) == expected, "{x:?}");
        // Into the middle of rows that are longer: no row starts at a cache line.
        let out = pad(&x, &[(1, 0), (1, 2)], Scalar::Int(0)).unwrap();
        let inside = view::slice(&out, &[1, 1], x.shape(), &[1, 1]).unwrap();
        assert!(bits(&inside) == expected, "{x:?}");
    }
}

fn rng_dtype(round: usize) -> DType {
    [DType::F32, DType::F64, DType::U8, DType::BF16][round % 4]
}

#[test]
fn gather_takes_any_range() {
    let mut rng = Rng::new(12);
    for round in 0..500 {
        let size = small(&mut rng);
        let x = view_of(&mut rng, rng_dtype(round), &size, true);
        let (count, all) = (x.numel(), bits(&x));
        if count == 0 {
            continue;
        }
        let start = rng.below(count);
        let len = rng.below(count - start + 1);
        let out = Array::zeros(x.dtype(), &[len]).unwrap();
        let dims: Vec<(usize, isize)> = x.shape().iter().copied().zip(x.strides().iter().copied()).collect();
        // SAFETY: the range lies inside the array.
        unsafe { strided::gather(x.dtype().itemsize(), out.storage().data(), x.data(), &dims, start, len) };
        assert!(bits(&out) == all[start..start + len], "{x:?} {start} {len}");
    }
}

#[test]
fn concat_puts_one_after_the_other() {
    let mut rng = Rng::new(13);
    for round in 0..300 {
        let mut size = small(&mut rng);
        if size.is_empty() {
            size.push(3);
        }
        let axis = rng.below(size.len());
        let dtype = DType::ALL[round % DType::ALL.len()];
        let parts: Vec<Array> = (0..=rng.below(4))
            .map(|_| {
                size[axis] = rng.below(6);
                view_of(&mut rng, dtype, &size, true)
            })
            .collect();
        let out = concat(&parts.iter().collect::<Vec<_>>(), axis).unwrap();
        let mut start = 0;
        for part in &parts {
            let mut from = vec![0; size.len()];
            from[axis] = if part.shape()[axis] > 0 { start } else { 0 };
            let place = view::slice(&out, &from, part.shape(), &vec![1; size.len()]).unwrap();
            assert!(bits(&place) == bits(part));
            start += part.shape()[axis];
        }
        assert_eq!(out.shape()[axis], start);
    }
    let x = Array::zeros(DType::F32, &[2, 3]).unwrap();
    let y = Array::zeros(DType::F32, &[3, 2]).unwrap();
    assert!(concat(&[&x, &y], 0).is_err() && concat(&[], 0).is_err() && concat(&[&x], 2).is_err());
}

#[test]
fn pad_surrounds_a_copy() {
    let mut rng = Rng::new(14);
    for round in 0..300 {
        let size: Vec<usize> = shape(&mut rng, 4, &[0, 1, 2, 5, 9]);
        let dtype = DType::ALL[round % DType::ALL.len()];
        let x = view_of(&mut rng, dtype, &size, true);
        let padding: Vec<(usize, usize)> = size.iter().map(|_| (rng.below(3), rng.below(3))).collect();
        let out = pad(&x, &padding, Scalar::Int(1)).unwrap();
        let (all, own) = (bits(&out), bits(&x));
        let one = bits(&pad(&Array::zeros(dtype, &[0]).unwrap(), &[(0, 1)], Scalar::Bool(true)).unwrap())[0];
        for (k, index) in indices(out.shape()).iter().enumerate() {
            let inside: Option<Vec<usize>> = (0..size.len())
                .map(|axis| index[axis].checked_sub(padding[axis].0).filter(|&i| i < size[axis]))
                .collect();
            let expected = inside.map_or(one, |at| own[at.iter().zip(&size).fold(0, |k, (&i, &n)| k * n + i)]);
            assert_eq!(all[k], expected);
        }
    }
    let minus = pad(&Array::zeros(DType::F32, &[1]).unwrap(), &[(1, 0)], Scalar::Float(f64::NEG_INFINITY)).unwrap();
    assert_eq!(elements::<f32>(&minus), [f32::NEG_INFINITY, 0.0]);
}

#[test]
fn slice_scatter_replaces_a_slice() {
    let x = Array::from_slice(&(0..12).collect::<Vec<i32>>(), &[3, 4]).unwrap();
    let values = Array::from_slice(&[-1i32, -2, -3, -4], &[2, 2]).unwrap();
    let out = slice_scatter(&x, &values, &[0, 3], &[2, 2], &[2, -2]).unwrap();
    assert_eq!(elements::<i32>(&out), [0, -2, 2, -1, 4, 5, 6, 7, 8, -4, 10, -3]);
    assert_eq!(elements::<i32>(&x), (0..12).collect::<Vec<i32>>());
    assert!(slice_scatter(&x, &values, &[0, 3], &[2, 3], &[2, -1]).is_err());
    assert!(slice_scatter(&x, &values, &[0, 3], &[2, 2], &[2, 2]).is_err());
    assert!(slice_scatter(&x, &values, &[0, 3], &[2, 2], &[0, -1]).is_err());
}

#[test]
fn parts_add_up_where_they_meet() {
    let mut rng = Rng::new(15);
    for _ in 0..300 {
        let size: Vec<usize> = shape(&mut rng, 3, &[1, 2, 5, 9]);
        let count = 1 + rng.below(5);
        let (mut parts, mut start, mut step) = (Vec::new(), Vec::new(), Vec::new());
        let mut expected = Array::zeros(DType::I32, &size).unwrap();
        for _ in 0..count {
            let (mut first, mut len, mut stride) = (Vec::new(), Vec::new(), Vec::new());
            for &n in &size {
                let (a, b) = (rng.below(n), rng.below(n));
                let by = 1 + rng.below(2);
                first.push(a);
                len.push(a.abs_diff(b) / by + 1);
                stride.push(if b < a { -(by as isize) } else { by as isize });
            }
            let part = view_of(&mut rng, DType::I32, &len, true);
            let before = crate::array::view::slice(&expected, &first, &len, &stride).unwrap();
            let values: Vec<i32> =
                elements::<i32>(&before).iter().zip(elements::<i32>(&part)).map(|(a, b)| a.wrapping_add(b)).collect();
            let sum = Array::from_slice(&values, &len).unwrap();
            expected = slice_scatter(&expected, &sum, &first, &len, &stride).unwrap();
            parts.push(part);
            start.extend(first);
            step.extend(stride);
        }
        let parts: Vec<&Array> = parts.iter().collect();
        let out = add_slices(&parts, &size, &start, &step).unwrap();
        assert_eq!(elements::<i32>(&out), elements::<i32>(&expected));
    }
    let part = Array::zeros(DType::F32, &[2]).unwrap();
    assert!(add_slices(&[], &[2], &[], &[]).is_err());
    assert!(add_slices(&[&part], &[2], &[0, 0], &[1, 1]).is_err());
    assert!(add_slices(&[&part], &[2], &[1], &[1]).is_err());
    assert!(add_slices(&[&part], &[2], &[0], &[0]).is_err());
    assert!(add_slices(&[&part, &Array::zeros(DType::I32, &[2]).unwrap()], &[2], &[0, 0], &[1, 1]).is_err());
    assert_eq!(add_slices(&[&Array::zeros(DType::F32, &[0]).unwrap()], &[0], &[0], &[1]).unwrap().numel(), 0);
}

#[test]
fn an_index_is_a_view() {
    use super::getitem::{Part, getitem};
    use crate::array::shape::MAX_RANK;
    let x = Array::from_slice(&(0..24).collect::<Vec<i32>>(), &[2, 3, 4]).unwrap();
    let out = getitem(&x, &[Part::At(1), Part::New, Part::Slice { start: 2, size: 2, step: -2 }]).unwrap();
    assert_eq!((&out.shape()[..], elements::<i32>(&out)), (&[1, 2, 4][..], vec![20, 21, 22, 23, 12, 13, 14, 15]));
    assert_eq!(getitem(&x, &[]).unwrap().shape(), x.shape());
    assert_eq!(getitem(&x, &[Part::Keep, Part::Slice { start: 3, size: 0, step: 1 }]).unwrap().numel(), 0);
    let empty = Array::zeros(DType::F32, &[0, 3]).unwrap();
    assert_eq!(getitem(&empty, &[Part::Keep, Part::At(2)]).unwrap().numel(), 0);
    assert!(getitem(&x, &[Part::At(2)]).is_err());
    assert!(getitem(&x, &[Part::Slice { start: 1, size: 2, step: 1 }]).is_err());
    assert!(getitem(&x, &[Part::Slice { start: 0, size: 2, step: isize::MIN }]).is_err());
    assert!(getitem(&x, &[Part::Keep; 4]).is_err());
    assert!(getitem(&x, &[Part::New; MAX_RANK - 2]).is_err());
}

#[test]
fn parts_along_an_axis_are_slices_of_it() {
    let mut rng = Rng::new(41);
    for _ in 0..300 {
        let mut size = shape(&mut rng, 3, &[0, 1, 2, 3, 5]);
        size.push(rng.below(7));
        let axis = rng.below(size.len());
        let (x, len) = (view_of(&mut rng, DType::I32, &size, true), size[axis]);
        let part = |start: usize, size: usize| {
            let (mut from, mut to) = (vec![0; x.rank()], x.shape().to_vec());
            (from[axis], to[axis]) = (start, size);
            view::slice(&x, &from, &to, &vec![1; x.rank()]).unwrap()
        };
        let check = |parts: Vec<Array>, sizes: &[usize]| {
            assert_eq!(parts.iter().map(|part| part.shape()[axis]).collect::<Vec<_>>(), sizes);
            let mut start = 0;
            for got in parts {
                let expected = part(start, got.shape()[axis]);
                assert!(got.storage().same(x.storage()) && got.same_shape(&expected), "{x:?} {axis}");
                assert_eq!(elements::<i32>(&got), elements::<i32>(&expected), "{x:?} {axis}");
                start += got.shape()[axis];
            }
            assert_eq!(start, len);
        };
        let cut = rng.below(len + 1);
        check(view::split(&x, &[cut, 0, len - cut], axis).unwrap(), &[cut, 0, len - cut]);
        check(view::split(&x, &vec![1; len], axis).unwrap(), &vec![1; len]);
        let each = len.div_ceil(3).max(1);
        let sizes: Vec<usize> = (0..len.max(1)).step_by(each).map(|start| each.min(len - start)).collect();
        check(view::chunk(&x, 3, axis).unwrap(), &sizes);
        let along = view::unstack(&x, axis).unwrap();
        assert_eq!(along.len(), len);
        for (at, got) in along.iter().enumerate() {
            let mut without = x.shape().to_vec();
            without.remove(axis);
            assert_eq!((&got.shape()[..], elements::<i32>(got)), (&without[..], elements::<i32>(&part(at, 1))));
        }
        assert!(view::split(&x, &[len, 1], axis).is_err() && view::split(&x, &[usize::MAX, len + 1], axis).is_err());
        assert!(view::chunk(&x, 0, axis).is_err() && view::unstack(&x, x.rank()).is_err());
    }
}

#[test]
fn elements_repeat_in_place_of_theirs() {
    let mut rng = Rng::new(31);
    for round in 0..60 {
        let dtype = [DType::F32, DType::U8, DType::BF16, DType::I64, DType::Bool][round % 5];
        let sizes = [rng.pick(&[0, 1, 3, 40]), rng.pick(&[1, 5, 17])];
        let x = view_of(&mut rng, dtype, &sizes, false);
        let times = rng.pick(&[0, 1, 2, 3, 4, 7]);
        set_num_threads(1 + round % 3);
        let [n, m] = x.shape()[..] else { unreachable!() };
        let was = bits(&x);
        for (axis, shape) in [(Some(0), vec![n * times, m]), (Some(1), vec![n, m * times]), (None, vec![n * m * times])]
        {
            let found = repeat(&x, times, axis).unwrap();
            assert_eq!(found.shape()[..], shape[..]);
            let from = |at: usize| match axis {
                Some(0) => at / m / times * m + at % m,
                _ => at / times,
            };
            let wanted: Vec<u64> = (0..found.numel()).map(|at| was[from(at)]).collect();
            assert_eq!(bits(&found), wanted, "{dtype:?} {times} times along {axis:?}");
        }
    }
}
