use super::*;
use crate::dtype::F16;
use crate::machine::threads::set_num_threads;
use crate::ops::samples::{Rng, dense, elements, floats, indices, shape, view_of};

/// Groups of elements that fold together, in the order of the results.
fn groups(x: &Array, axes: &[usize]) -> (Vec<usize>, Vec<Vec<usize>>) {
    let kept: Vec<usize> = (0..x.rank()).filter(|axis| !axes.contains(axis)).collect();
    let shape: Vec<usize> = kept.iter().map(|&axis| x.shape()[axis]).collect();
    let mut out = vec![Vec::new(); shape.iter().product()];
    for (at, index) in indices(x.shape()).iter().enumerate() {
        let to = kept.iter().fold(0, |to, &axis| to * x.shape()[axis] + index[axis]);
        out[to].push(at);
    }
    (shape, out)
}

fn random_axes(rng: &mut Rng, rank: usize) -> Vec<usize> {
    (0..rank).filter(|_| rng.below(2) == 0).collect()
}

const LENGTHS: &[usize] = &[0, 1, 1, 2, 3, 4, 7, 16, 17, 33, 70];

fn small(rng: &mut Rng) -> Vec<usize> {
    loop {
        let shape = shape(rng, 4, LENGTHS);
        if shape.iter().product::<usize>() <= 1 << 14 {
            return shape;
        }
    }
}

#[test]
fn sums_and_products_of_every_type() {
    let mut rng = Rng::new(1);
    for round in 0..600 {
        let dtype = DType::ALL[round % DType::ALL.len()];
        let size = small(&mut rng);
        let x = view_of(&mut rng, dtype, &size, false);
        let axes = random_axes(&mut rng, x.rank());
        set_num_threads(1 + round % 4);
        let (shape, groups) = groups(&x, &axes);
        if dtype.is_float() {
            let values = floats(&x);
            let (total, mean) = (sum(&x, &axes, false, dtype).unwrap(), mean(&x, &axes, false).unwrap());
            let product = prod(&x, &axes, true, dtype).unwrap();
            let length = vector_norm(&x, &axes, false).unwrap();
            assert_eq!((&length.shape()[..], length.dtype()), (&shape[..], dtype));
            assert_eq!((&total.shape()[..], total.dtype()), (&shape[..], dtype));
            assert_eq!(product.rank(), x.rank());
            let epsilon = match dtype {
                DType::F16 => 2f64.powi(-10),
                DType::BF16 => 2f64.powi(-7),
                DType::F32 => 2f64.powi(-20),
                _ => 2f64.powi(-45),
            };
            for (i, group) in groups.iter().enumerate() {
                let scale: f64 = group.iter().map(|&at| values[at].abs()).sum();
                let exact: f64 = group.iter().map(|&at| values[at]).sum();
                assert!((floats(&total)[i] - exact).abs() <= epsilon * (scale + 1e-30), "{x:?} {axes:?}");
                let norm = group.iter().map(|&at| values[at] * values[at]).sum::<f64>().sqrt();
                assert!((floats(&length)[i] - norm).abs() <= epsilon * norm, "{x:?} {axes:?}");
                let (got, exact) = (floats(&mean)[i], exact / group.len() as f64);
                assert!(got.is_nan() && exact.is_nan() || (got - exact).abs() <= epsilon * scale, "{x:?} {axes:?}");
            }
        } else {
            let values = integers(&x);
            for wanted in [DType::I64, DType::I32, DType::U8, DType::U64] {
                let total = integers(&sum(&x, &axes, false, wanted).unwrap());
                let product = integers(&prod(&x, &axes, false, wanted).unwrap());
                for (i, group) in groups.iter().enumerate() {
                    let exact: i128 = group.iter().map(|&at| values[at]).sum();
                    assert_eq!(total[i], wrap(exact, wanted), "{x:?} {axes:?}");
                    let exact = group.iter().fold(1, |all, &at| wrap(all * values[at], DType::I64));
                    assert_eq!(product[i], wrap(exact, wanted), "{x:?} {axes:?}");
                }
            }
        }
    }
}

fn integers(x: &Array) -> Vec<i128> {
    match x.dtype() {
        DType::U64 => elements::<u64>(x).into_iter().map(i128::from).collect(),
        DType::I64 => elements::<i64>(x).into_iter().map(i128::from).collect(),
        _ => floats(x).into_iter().map(|value| value as i128).collect(),
    }
}

fn wrap(value: i128, dtype: DType) -> i128 {
    match dtype {
        DType::I64 => value as i64 as i128,
        DType::I32 => value as i32 as i128,
        DType::U8 => value as u8 as i128,
        _ => value as u64 as i128,
    }
}

#[test]
fn extremes_of_every_type() {
    let mut rng = Rng::new(2);
    for round in 0..800 {
        let dtype = DType::ALL[round % DType::ALL.len()];
        let size = small(&mut rng);
        let special = rng.below(2) == 0;
        let x = view_of(&mut rng, dtype, &size, special);
        let axes = random_axes(&mut rng, x.rank());
        set_num_threads(1 + round % 4);
        let (_, groups) = groups(&x, &axes);
        let values = floats(&x);
        let (high, low) = if dtype == DType::Bool {
            (any(&x, &axes, false).unwrap(), all(&x, &axes, false).unwrap())
        } else {
            (max(&x, &axes, false).unwrap(), min(&x, &axes, false).unwrap())
        };
        assert_eq!(high.dtype(), dtype);
        let (high, low) = (floats(&high), floats(&low));
        for (i, group) in groups.iter().enumerate() {
            if group.is_empty() {
                assert!(high[i] <= 0.0 && low[i] > 0.0);
                continue;
            }
            let nan = group.iter().any(|&at| values[at].is_nan());
            let most = group.iter().map(|&at| values[at]).fold(f64::NEG_INFINITY, f64::max);
            let least = group.iter().map(|&at| values[at]).fold(f64::INFINITY, f64::min);
            assert!(if nan { high[i].is_nan() } else { high[i] == most }, "{x:?} {axes:?}");
            assert!(if nan { low[i].is_nan() } else { low[i] == least }, "{x:?} {axes:?}");
        }
    }
}

#[test]
fn positions_of_extremes() {
    let mut rng = Rng::new(3);
    for round in 0..800 {
        let dtype = DType::ALL[round % DType::ALL.len()];
        let mut size = small(&mut rng);
        if rng.below(10) == 0 {
            size = vec![rng.pick(&[1, 2, 300]), rng.pick(&[40_000, 70_001]), rng.pick(&[1, 3])];
            size.truncate(1 + rng.below(3));
        }
        if size.iter().product::<usize>() > 1 << 17 || size.contains(&0) {
            continue;
        }
        let special = rng.below(2) == 0;
        let x = view_of(&mut rng, dtype, &size, special);
        let axis = if x.rank() > 0 && rng.below(4) > 0 { Some(rng.below(x.rank())) } else { None };
        let axes: Vec<usize> = axis.map_or_else(|| (0..x.rank()).collect(), |axis| vec![axis]);
        set_num_threads(1 + round % 4);
        let (_, groups) = groups(&x, &axes);
        let values = floats(&x);
        let (high, low) = (argmax(&x, axis, false).unwrap(), argmin(&x, axis, true).unwrap());
        let (high, low) = (elements::<i64>(&high), elements::<i64>(&low));
        for (i, group) in groups.iter().enumerate() {
            let values: Vec<f64> = group.iter().map(|&at| values[at]).collect();
            let first = |better: fn(f64, f64) -> bool| {
                let nan = values.iter().position(|value| value.is_nan());
                nan.unwrap_or_else(|| {
                    (0..values.len()).fold(0, |b, k| if better(values[k], values[b]) { k } else { b })
                })
            };
            assert_eq!(high[i] as usize, first(|a, b| a > b), "{x:?} {axis:?}");
            assert_eq!(low[i] as usize, first(|a, b| a < b), "{x:?} {axis:?}");
        }
    }
}

/// The order of the module `block`, written down plainly.
fn in_order(x: &[f32]) -> f32 {
    let block = |x: &[f32]| {
        let part = |x: &[f32]| -> Vec<f32> {
            (0..16).map(|lane| x.iter().skip(lane).step_by(16).fold(-0.0, |sum, value| sum + value)).collect()
        };
        let at = |k: usize| part(&x[x.len().min(256 * k)..x.len().min(256 * (k + 1))]);
        let add = |a: Vec<f32>, b: Vec<f32>| -> Vec<f32> { a.iter().zip(b).map(|(a, b)| a + b).collect() };
        let mut lanes = add(add(at(0), at(1)), add(at(2), at(3)));
        while lanes.len() > 1 {
            let high = lanes.split_off(lanes.len() / 2);
            lanes = add(lanes, high);
        }
        lanes[0]
    };
    if x.len() <= 1024 { block(x) } else { in_order(&x.chunks(1024).map(block).collect::<Vec<_>>()) }
}

#[test]
fn the_order_is_the_documented_one_for_every_layout_and_thread_count() {
    let mut rng = Rng::new(4);
    let lengths = [1, 2, 5, 16, 31, 100, 256, 300, 512, 700, 1023, 1024, 1025, 2048, 3000, 5000];
    for _ in 0..150 {
        let (n, m) = (rng.pick(&lengths), rng.pick(&[1, 2, 3, 9, 64, 130, 300]));
        if n * m > 400_000 {
            continue;
        }
        let base = dense(&mut rng, DType::F32, &[n, m], false);
        let dense_rows = crate::array::view::permute_dims(&base, &[1, 0]).unwrap().contiguous().unwrap();
        let values = elements::<f32>(&dense_rows);
        let expected: Vec<u32> = values.chunks(n).map(|row| in_order(row).to_bits()).collect();
        let full = in_order(&elements::<f32>(&base)).to_bits();
        for threads in 1..=4 {
            set_num_threads(threads);
            let bits = |sums: Array| elements::<f32>(&sums).into_iter().map(f32::to_bits).collect::<Vec<_>>();
            assert_eq!(bits(sum(&base, &[0], false, DType::F32).unwrap()), expected, "columns {n} {m}");
            assert_eq!(bits(sum(&dense_rows, &[1], false, DType::F32).unwrap()), expected, "rows {n} {m}");
            let transposed = crate::array::view::permute_dims(&dense_rows, &[1, 0]).unwrap();
            assert_eq!(bits(sum(&transposed, &[0], false, DType::F32).unwrap()), expected, "transposed {n} {m}");
            assert_eq!(bits(sum(&base, &[0, 1], false, DType::F32).unwrap()), [full]);
            assert_eq!(bits(sum(&transposed, &[0, 1], false, DType::F32).unwrap()), [full], "gathered {n} {m}");
        }
    }
}

#[test]
fn views_give_the_bits_of_their_copies() {
    let mut rng = Rng::new(5);
    for _ in 0..150 {
        let size = [rng.pick(&[1, 3, 40]), rng.pick(&[1, 50, 1024]), rng.pick(&[2, 33, 60])];
        let x = view_of(&mut rng, DType::F32, &size, false);
        let axes = random_axes(&mut rng, 3);
        let copy = Array::from_slice(&elements::<f32>(&x), &size).unwrap();
        let bits =
            |x: &Array| elements::<f32>(&sum(x, &axes, false, DType::F32).unwrap()).into_iter().map(f32::to_bits);
        set_num_threads(1);
        let expected: Vec<u32> = bits(&copy).collect();
        set_num_threads(1 + rng.below(4));
        assert!(bits(&x).eq(expected), "{x:?} {axes:?}");
    }
}

#[test]
fn special_cases() {
    let zeros = Array::from_slice(&[-0.0f32; 3], &[3]).unwrap();
    assert_eq!(elements::<f32>(&sum(&zeros, &[0], false, DType::F32).unwrap())[0].to_bits(), (-0.0f32).to_bits());
    let empty = Array::zeros(DType::F32, &[2, 0]).unwrap();
    assert_eq!(elements::<f32>(&sum(&empty, &[1], false, DType::F32).unwrap()), [0.0, 0.0]);
    assert_eq!(elements::<f32>(&prod(&empty, &[0, 1], false, DType::F32).unwrap()), [1.0]);
    assert!(mean(&empty, &[0, 1], false).unwrap().to_vec::<f32>().unwrap()[0].is_nan());
    assert!(argmax(&empty, None, false).is_err() && argmax(&empty, Some(1), false).is_err());
    assert_eq!(argmax(&empty, Some(0), true).unwrap().shape()[..], [1, 0]);
    assert!(sum(&empty, &[2], false, DType::F32).is_err() && sum(&empty, &[1, 0], false, DType::F32).is_err());
    // 4096 halves of 1 do not stop at 2048, as they would in float16.
    let ones =
        crate::array::view::broadcast_to(&Array::from_slice(&[F16::from_f32(1.0)], &[1]).unwrap(), &[4096]).unwrap();
    assert_eq!(floats(&sum(&ones, &[0], false, DType::F16).unwrap()), [4096.0]);
    let bytes = Array::from_slice(&[200u8, 100], &[2]).unwrap();
    assert_eq!(floats(&sum(&bytes, &[0], false, DType::F16).unwrap()), [300.0]);
    let halves = Array::from_slice(&[1.5f32, -2.5], &[2]).unwrap();
    assert_eq!(floats(&sum(&halves, &[0], false, DType::I8).unwrap()), [-1.0]);
    let scalar = Array::from_slice(&[7i8], &[]).unwrap();
    assert_eq!(elements::<i64>(&sum(&scalar, &[], false, DType::I64).unwrap()), [7]);
    assert_eq!(elements::<i64>(&argmin(&scalar, None, false).unwrap()), [0]);
}

#[test]
fn lengths_beyond_the_squares_of_a_type_are_finite() {
    let x = Array::from_slice(&[3e30_f32, 4e30, 3e-30, 4e-30, 0.0, -0.0], &[3, 2]).unwrap();
    let found = floats(&vector_norm(&x, &[1], false).unwrap());
    for (found, wanted) in found.iter().zip([5e30, 5e-30, 0.0]) {
        assert!((found - wanted).abs() <= 1e-6 * wanted, "{found} for {wanted}");
    }
    let x = Array::from_slice(&[3e200, 4e200, 3e-200, 4e-200, 3.0, 4.0, 0.0, f64::NAN, 1.0, f64::INFINITY], &[5, 2]);
    let found = floats(&vector_norm(&x.unwrap(), &[1], false).unwrap());
    for (found, wanted) in found.iter().zip([5e200, 5e-200, 5.0]) {
        assert!((found - wanted).abs() <= 1e-15 * wanted, "{found} for {wanted}");
    }
    assert!(found[3].is_nan() && found[4] == f64::INFINITY);
}
