use super::*;
use crate::dtype::DType;
use crate::machine::threads::set_num_threads;
use crate::ops::elementwise::convert::cast;
use crate::ops::samples::{Rng, elements, floats, indices as all_indices, shape, view_of};

const INTS: [DType; 8] = [DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64];

/// Valid indices below `size` in some integer type, some counted from the end, in some layout.
fn random_indices(rng: &mut Rng, shape: &[usize], size: usize) -> Array {
    let dtype = rng.pick(&INTS);
    let signed = !dtype.name().starts_with('u');
    let count: usize = shape.iter().product();
    let values: Vec<i64> = (0..count)
        .map(|_| {
            let index = rng.below(size.min(100)) as i64;
            if signed && size <= 100 && rng.below(3) == 0 { index - size as i64 } else { index }
        })
        .collect();
    let dense = cast(&Array::from_slice(&values, shape).unwrap(), dtype).unwrap();
    if shape.len() < 2 || rng.below(2) == 0 {
        return dense;
    }
    // The same values in column-major order.
    let order: Vec<usize> = (0..shape.len()).rev().collect();
    let turned = crate::array::view::permute_dims(&dense, &order).unwrap().contiguous().unwrap();
    crate::array::view::permute_dims(&turned, &order).unwrap()
}

fn wrapped(indices: &Array, size: usize) -> Vec<usize> {
    floats(indices).into_iter().map(|i| if i < 0.0 { (i + size as f64) as usize } else { i as usize }).collect()
}

fn at(shape: &[usize], index: &[usize]) -> usize {
    index.iter().zip(shape).fold(0, |at, (&i, &n)| at * n + i)
}

fn operand(rng: &mut Rng, round: usize) -> (Array, usize) {
    let mut size = shape(rng, 3, &[1, 2, 3, 20]);
    size.push(rng.pick(&[1, 2, 7, 60]));
    let last = size.len() - 1;
    size.swap(rng.below(last + 1), last);
    let axis = rng.below(size.len());
    (view_of(rng, DType::ALL[round % DType::ALL.len()], &size, true), axis)
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

#[test]
fn take_replaces_the_axis() {
    let mut rng = Rng::new(40);
    for round in 0..400 {
        let (x, axis) = operand(&mut rng, round);
        let places = shape(&mut rng, 2, &[0, 1, 3, 50]);
        let indices = random_indices(&mut rng, &places, x.shape()[axis]);
        set_num_threads(1 + round % 4);
        let out = take(&x, &indices, axis).unwrap();
        assert_eq!(out.shape()[..], [&x.shape()[..axis], &places, &x.shape()[axis + 1..]].concat());
        let (values, got, chosen) = (floats(&x), floats(&out), wrapped(&indices, x.shape()[axis]));
        for (k, index) in all_indices(out.shape()).iter().enumerate() {
            let end = axis + places.len();
            let place = chosen[at(&places, &index[axis..end])];
            let from = [&index[..axis], &[place], &index[end..]].concat();
            assert!(same(got[k], values[at(x.shape(), &from)]), "{x:?} {axis} {indices:?}");
        }
    }
}

#[test]
fn take_along_axis_lines_up() {
    let mut rng = Rng::new(41);
    for round in 0..400 {
        let (x, axis) = operand(&mut rng, round);
        let mut size = x.shape().to_vec();
        size[axis] = rng.pick(&[0, 1, 4, 100]);
        let indices = random_indices(&mut rng, &size, x.shape()[axis]);
        set_num_threads(1 + round % 4);
        let out = take_along_axis(&x, &indices, axis).unwrap();
        let (values, got, chosen) = (floats(&x), floats(&out), wrapped(&indices, x.shape()[axis]));
        for (k, index) in all_indices(&size).iter().enumerate() {
            let mut from = index.clone();
            from[axis] = chosen[k];
            assert!(same(got[k], values[at(x.shape(), &from)]), "{x:?} {axis} {indices:?}");
        }
    }
}

fn changed(update: Update, bool: bool, old: f64, new: f64) -> f64 {
    match update {
        Update::Add if bool => old.max(new),
        Update::Mul if bool => old.min(new),
        Update::Add => old + new,
        Update::Mul => old * new,
        Update::Set => new,
        _ if old.is_nan() || new.is_nan() => f64::NAN,
        Update::Max => {
            if old >= new {
                old
            } else {
                new
            }
        }
        Update::Min => {
            if old <= new {
                old
            } else {
                new
            }
        }
    }
}

#[test]
fn scatter_updates_in_order() {
    let mut rng = Rng::new(42);
    for round in 0..500 {
        let (x, axis) = operand(&mut rng, round);
        let update = rng.pick(&[Update::Add, Update::Max, Update::Min, Update::Mul, Update::Set]);
        let mut size = x.shape().to_vec();
        // Few products, so that small integers stay exact.
        size[axis] = rng.pick(&[0, 1, 2, if update == Update::Mul { 2 } else { 40 }]);
        let indices = random_indices(&mut rng, &size, x.shape()[axis]);
        let values = view_of(&mut rng, x.dtype(), &size, true);
        set_num_threads(1 + round % 4);
        let out = scatter(&x, &indices, &values, axis, update).unwrap();
        let (mut expected, values, chosen) = (floats(&x), floats(&values), wrapped(&indices, x.shape()[axis]));
        for (k, index) in all_indices(&size).iter().enumerate() {
            let mut to = index.clone();
            to[axis] = chosen[k];
            let slot = &mut expected[at(x.shape(), &to)];
            *slot = changed(update, x.dtype() == DType::Bool, *slot, values[k]);
        }
        compare(&out, &expected);
    }
}

/// Integers compare after wrapping, floats exactly (the samples are small integers).
fn compare(out: &Array, expected: &[f64]) {
    for (&got, &expected) in floats(out).iter().zip(expected) {
        let expected = match out.dtype() {
            DType::I8 => expected as i64 as i8 as f64,
            DType::U8 => expected as i64 as u8 as f64,
            _ => expected,
        };
        assert!(got == expected || got.is_nan() && expected.is_nan(), "{out:?}: {got} {expected}");
    }
}

#[test]
fn index_add_adds_repeats() {
    let mut rng = Rng::new(43);
    for round in 0..400 {
        let (x, axis) = operand(&mut rng, round);
        if x.dtype() == DType::Bool {
            continue;
        }
        let count = rng.pick(&[0, 1, 5, 30]);
        let indices = random_indices(&mut rng, &[count], x.shape()[axis]);
        let mut size = x.shape().to_vec();
        size[axis] = count;
        let values = view_of(&mut rng, x.dtype(), &size, true);
        set_num_threads(1 + round % 4);
        let out = index_add(&x, &indices, &values, axis).unwrap();
        let (mut expected, values, chosen) = (floats(&x), floats(&values), wrapped(&indices, x.shape()[axis]));
        for (k, index) in all_indices(&size).iter().enumerate() {
            let mut to = index.clone();
            to[axis] = chosen[index[axis]];
            expected[at(x.shape(), &to)] += values[k];
        }
        compare(&out, &expected);
    }
}

/// Sizes at which rows and columns are cut into tasks. The samples are fractions, so the order of additions shows.
#[test]
fn large_updates_are_made_in_order_by_any_number_of_threads() {
    let mut rng = Rng::new(45);
    for (round, inner) in [1, 7, 16, 64, 200, 3000].into_iter().enumerate() {
        let (size, count) = (50, 40_000 / inner.min(40));
        let x = view_of(&mut rng, DType::F32, &[size, inner], false);
        let indices = random_indices(&mut rng, &[count], size);
        let values = view_of(&mut rng, DType::F32, &[count, inner], false);
        let (mut expected, chosen) = (elements::<f32>(&x), wrapped(&indices, size));
        for (k, value) in elements::<f32>(&values).into_iter().enumerate() {
            expected[chosen[k / inner] * inner + k % inner] += value;
        }
        let wide = crate::array::view::reshape(&indices, &[count, 1]).unwrap();
        let wide = crate::array::view::broadcast_to(&wide, &[count, inner]).unwrap();
        let turn = |x: &Array| crate::array::view::permute_dims(x, &[1, 0]).unwrap();
        for threads in 1..=4 {
            set_num_threads(threads);
            let out = index_add(&x, &indices, &values, 0).unwrap();
            assert!(elements::<f32>(&out) == expected, "index_add {inner} {threads}");
            let out = scatter(&x, &wide, &values, 0, Update::Add).unwrap();
            assert!(elements::<f32>(&out) == expected, "scatter {inner} {threads}");
            let out = scatter(&turn(&x), &turn(&wide), &turn(&values), 1, Update::Add).unwrap();
            assert!(elements::<f32>(&turn(&out)) == expected, "scatter along rows {round} {inner} {threads}");
        }
    }
}

#[test]
fn nonzero_gives_positions() {
    let mut rng = Rng::new(44);
    for round in 0..60 {
        let len = rng.pick(&[0, 1, 5, 300, 200_000]);
        let mask = view_of(&mut rng, DType::Bool, &[len], false);
        set_num_threads(1 + round % 4);
        let flags = elements::<bool>(&mask);
        let expected: Vec<i64> = (0..len).filter(|&at| flags[at]).map(|at| at as i64).collect();
        assert_eq!(elements::<i64>(&nonzero(&mask).unwrap()), expected);
    }
}

#[test]
fn bad_indices_are_named() {
    let x = Array::zeros(DType::F32, &[2, 3]).unwrap();
    let text = |result: Result<Array>| result.unwrap_err().to_string();
    let bad = Array::from_slice(&[0i32, 3, -4], &[3]).unwrap();
    assert_eq!(text(take(&x, &bad, 1)), "[take] index out of range: got 3, expected -3 <= index < 3 on axis 1");
    let values = Array::zeros(DType::F32, &[3, 3]).unwrap();
    assert_eq!(
        text(index_add(&x, &bad, &values, 0)),
        "[index_add] index out of range: got 3, expected -2 <= index < 2 on axis 0"
    );
    let bad = Array::from_slice(&[u64::MAX, 0], &[2, 1]).unwrap();
    assert!(matches!(take_along_axis(&x, &bad, 1), Err(Error::IndexOutOfRange(_))));
    let one = Array::zeros(DType::F32, &[2, 1]).unwrap();
    assert!(matches!(scatter(&x, &bad, &one, 1, Update::Add), Err(Error::IndexOutOfRange(_))));
    let empty = Array::zeros(DType::F32, &[0]).unwrap();
    assert!(matches!(take(&empty, &Array::from_slice(&[0i8], &[1]).unwrap(), 0), Err(Error::IndexOutOfRange(_))));
    assert_eq!(take(&empty, &Array::zeros(DType::I8, &[0]).unwrap(), 0).unwrap().numel(), 0);
    assert!(take(&x, &x, 0).is_err() && take(&x, &bad, 2).is_err() && nonzero(&x).is_err());
    assert!(take_along_axis(&x, &Array::zeros(DType::I8, &[2]).unwrap(), 0).is_err());
    assert!(scatter(&x, &Array::zeros(DType::I8, &[2, 2]).unwrap(), &one, 1, Update::Set).is_err());
    assert!(Update::from_name("sub").is_err());
}

#[test]
fn masked_select_keeps_order() {
    let mut rng = Rng::new(46);
    for round in 0..200 {
        let size = if round % 20 == 0 { vec![300, 500] } else { shape(&mut rng, 3, &[0, 1, 2, 7, 60]) };
        let x = view_of(&mut rng, DType::ALL[round % DType::ALL.len()], &size, true);
        // A mask of fewer axes, some of them stretched.
        let kept = rng.below(size.len() + 1);
        let narrow: Vec<usize> = size[kept..].iter().map(|&n| if rng.below(4) == 0 { 1 } else { n }).collect();
        let mask = view_of(&mut rng, DType::Bool, &narrow, false);
        set_num_threads(1 + round % 4);
        let out = masked_select(&x, &mask).unwrap();
        let flags = elements::<bool>(&crate::array::view::broadcast_to(&mask, &size).unwrap());
        let expected: Vec<f64> = floats(&x).into_iter().zip(flags).filter(|(_, flag)| *flag).map(|(x, _)| x).collect();
        assert_eq!((out.shape()[..].to_vec(), out.dtype()), (vec![expected.len()], x.dtype()));
        assert!(floats(&out).into_iter().zip(expected).all(|(got, expected)| same(got, expected)), "{x:?} {mask:?}");
    }
    let x = Array::zeros(DType::F32, &[2]).unwrap();
    assert!(masked_select(&x, &x).is_err() && masked_select(&x, &Array::zeros(DType::Bool, &[3]).unwrap()).is_err());
}

/// More indices than are made dense at once, of every type and layout.
#[test]
fn many_indices_are_read_in_parts() {
    let mut rng = Rng::new(47);
    for round in 0..8 {
        let (size, inner) = (rng.pick(&[1, 30, 700]), [1, 3, 40, 2000][round / 2]);
        let count = 20_000 / inner;
        let x = view_of(&mut rng, rng_dtype(round), &[size, inner], true);
        let mut wide = [count, inner];
        if round % 2 == 1 {
            wide.swap(0, 1);
        }
        let indices = random_indices(&mut rng, &wide, size);
        let turn = |x: &Array| crate::array::view::permute_dims(x, &[1, 0]).unwrap();
        let indices = if round % 2 == 1 { turn(&indices) } else { indices };
        let values = view_of(&mut rng, x.dtype(), &[count, inner], true);
        set_num_threads(1 + round % 4);
        let chosen = wrapped(&indices, size);
        let x_values = floats(&x);
        let got = floats(&take_along_axis(&x, &indices, 0).unwrap());
        assert!((0..got.len()).all(|k| same(got[k], x_values[chosen[k] * inner + k % inner])), "{x:?} {indices:?}");
        let mut expected = x_values.clone();
        for (k, value) in floats(&values).into_iter().enumerate() {
            expected[chosen[k] * inner + k % inner] = value;
        }
        let out = floats(&scatter(&x, &indices, &values, 0, Update::Set).unwrap());
        assert!(out.into_iter().zip(expected).all(|(got, expected)| same(got, expected)), "{x:?} {indices:?}");
        let flat = crate::array::view::reshape(&indices, &[count * inner]).unwrap();
        let got = floats(&take(&x, &flat, 0).unwrap());
        assert!((0..got.len()).step_by(97).all(|k| same(got[k], x_values[chosen[k / inner] * inner + k % inner])));
    }
}

fn rng_dtype(round: usize) -> DType {
    [DType::F32, DType::F64, DType::U8, DType::BF16][round % 4]
}

#[test]
fn the_first_bad_index_of_many_is_named() {
    let x = Array::zeros(DType::F32, &[2, 5]).unwrap();
    let mut values = vec![1i32; 50_000];
    (values[30_001], values[40_000]) = (-3, 9);
    let indices = Array::from_slice(&values, &[50_000]).unwrap();
    let named = |result: Result<Array>| assert!(result.unwrap_err().to_string().contains("got -3, expected -2"));
    named(take(&x, &indices, 0));
    let added = Array::zeros(DType::F32, &[50_000, 5]).unwrap();
    named(index_add(&x, &indices, &added, 0));
    let column = crate::array::view::reshape(&indices, &[50_000, 1]).unwrap();
    let column = crate::array::view::broadcast_to(&column, &[50_000, 5]).unwrap();
    named(take_along_axis(&x, &column, 0));
    named(scatter(&x, &column, &added, 0, Update::Add));
    // Nothing to read or write, yet checked.
    let hollow = Array::zeros(DType::F32, &[2, 0]).unwrap();
    named(take(&hollow, &indices, 0));
    named(index_add(&hollow, &indices, &Array::zeros(DType::F32, &[50_000, 0]).unwrap(), 0));
    // Nowhere to write.
    for dtype in [DType::F32, DType::BF16, DType::I8] {
        let (none, added) = (Array::zeros(dtype, &[0, 5]).unwrap(), Array::zeros(dtype, &[50_000, 5]).unwrap());
        let text = index_add(&none, &indices, &added, 0).unwrap_err().to_string();
        assert_eq!(text, "[index_add] index out of range: got 1, expected 0 <= index < 0 on axis 0", "{dtype:?}");
        assert!(scatter(&none, &column, &added, 0, Update::Add).is_err(), "{dtype:?}");
    }
}

#[test]
fn slices_of_a_turned_table_are_taken_in_panels() {
    let mut rng = Rng::new(48);
    for (round, dtype) in [DType::F32, DType::U8, DType::F64, DType::BF16].into_iter().enumerate() {
        let (size, row) = (900, 8 * 32 / dtype.itemsize() + 3);
        let turned = view_of(&mut rng, dtype, &[2, row, size], true).contiguous().unwrap();
        let x = crate::array::view::permute_dims(&turned, &[0, 2, 1]).unwrap();
        let indices = random_indices(&mut rng, &[2000], size);
        set_num_threads(1 + round % 4);
        let (got, values) = (floats(&take(&x, &indices, 1).unwrap()), floats(&x));
        let chosen = wrapped(&indices, size);
        for (k, got) in got.into_iter().enumerate() {
            let (outer, slice) = (k / row / 2000, chosen[k / row % 2000]);
            assert!(same(got, values[(outer * size + slice) * row + k % row]), "{dtype:?} {k}");
        }
    }
}

#[test]
fn rows_of_indices_name_slices() {
    let mut rng = Rng::new(23);
    for round in 0..200 {
        let dtype = rng.pick(&[DType::F32, DType::Bool, DType::I64, DType::F16]);
        let lengths = [1 + rng.below(5), 1 + rng.below(5), rng.below(4)];
        let x = view_of(&mut rng, dtype, &lengths, false);
        let deep = 1 + rng.below(2);
        let rows = rng.below(9);
        let sizes = &lengths[..deep];
        let values: Vec<i64> =
            (0..rows * deep).map(|at| rng.below(2 * sizes[at % deep]) as i64 - sizes[at % deep] as i64).collect();
        let indices = Array::from_slice(&values, &[rows, deep]).unwrap();
        let indices = if round % 2 == 0 { cast(&indices, DType::I32).unwrap() } else { indices };
        let found = gather_nd(&x, &indices).unwrap();
        let mut shape = vec![rows];
        shape.extend(&lengths[deep..]);
        assert_eq!(found.shape()[..], shape);
        let inner: usize = lengths[deep..].iter().product();
        let from = floats(&x);
        let wanted: Vec<f64> = (values.chunks(deep))
            .flat_map(|row| {
                let places = row.iter().zip(sizes);
                let at = places.fold(0, |at, (&i, &n)| at * n as i64 + i.rem_euclid(n as i64)) as usize;
                from[at * inner..(at + 1) * inner].to_vec()
            })
            .collect();
        assert_eq!(floats(&found), wanted);
    }
}

#[test]
fn a_row_of_indices_out_of_range_names_the_index_and_its_axis() {
    let x = Array::from_slice(&[0.0_f32; 6], &[2, 3]).unwrap();
    let at = |values: &[i64], shape: &[usize]| gather_nd(&x, &Array::from_slice(values, shape).unwrap());
    let text = at(&[1, 2, 0, -4], &[2, 2]).unwrap_err().to_string();
    assert_eq!(text, "[gather_nd] index out of range: got -4, expected -3 <= index < 3 on axis 1");
    assert!(at(&[2], &[1, 1]).is_err() && at(&[0; 3], &[1, 3]).is_err() && at(&[], &[0]).is_err());
    let none = Array::zeros(DType::F32, &[2, 0]).unwrap();
    assert!(gather_nd(&none, &Array::from_slice(&[5_i64], &[1, 1]).unwrap()).is_err());
}

#[test]
fn rows_of_indices_that_give_too_many_axes_are_an_error() {
    let x = Array::zeros(DType::F32, &[1; 3]).unwrap();
    let at = |rank: usize| gather_nd(&x, &Array::zeros(DType::I64, &vec![1; rank]).unwrap());
    assert_eq!(at(15).unwrap().rank(), 16);
    let text = at(16).unwrap_err().to_string();
    assert_eq!(text, "[gather_nd] rank too large: got 17, expected at most 16");
}
