use super::*;

/// Integers and floats without a pattern.
fn noise(at: usize) -> i64 {
    (at as i64).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64) >> 40
}

fn floats(shape: &[usize], by: f32) -> Array {
    let values: Vec<f32> = (0..shape.iter().product::<usize>()).map(|at| (noise(at + 7) % 100) as f32 * by).collect();
    Array::from_slice(&values, shape).unwrap()
}

#[test]
fn few_rows_and_many_equal_the_plain_sum() {
    for (rows, k, n, groups, bits) in [
        (1, 64, 700, 4, 8),
        (2, 63, 33, 1, 8),
        (3, 12, 5, 2, 4),
        (7, 40, 530, 4, 4),
        (20, 24, 17, 3, 8),
        (5, 12, 9, 4, 4),
    ] {
        let held = if bits == 4 { k / 2 } else { k };
        let integers: Vec<i8> = (0..held * n).map(|at| noise(at) as i8).collect();
        let weight = Array::from_slice(&integers, &[held, n]).unwrap();
        let (x, scale, bias) = (floats(&[rows, k], 0.01), floats(&[groups, n], 0.02), floats(&[n], 1.0));
        let got = quantized_linear(&x, &weight, &scale, Some(&bias), bits).unwrap();
        let (x, scale, bias) =
            (x.as_slice::<f32>().unwrap(), scale.as_slice::<f32>().unwrap(), bias.as_slice::<f32>().unwrap());
        for (place, &got) in got.as_slice::<f32>().unwrap().iter().enumerate() {
            let (i, j) = (place / n, place % n);
            let value = |l: usize| match (bits, l % 2) {
                (4, 0) => integers[l / 2 * n + j] << 4 >> 4,
                (4, _) => integers[l / 2 * n + j] >> 4,
                _ => integers[l * n + j],
            };
            let term = |l: usize| x[i * k + l] as f64 * value(l) as f64 * scale[l / (k / groups) * n + j] as f64;
            let want = (0..k).map(term).sum::<f64>() + bias[j] as f64;
            let size = (0..k).map(|l| term(l).abs()).sum::<f64>() + 1.0;
            assert!((got as f64 - want).abs() <= 1e-5 * size, "{rows}x{k}x{n} at {place}: {got} {want}");
        }
    }
}

#[test]
fn what_does_not_fit_is_rejected() {
    let (x, scale) = (floats(&[2, 6], 1.0), floats(&[2, 3], 1.0));
    let weight = |rows: usize| Array::from_slice(&vec![1i8; rows * 3], &[rows, 3]).unwrap();
    assert!(quantized_linear(&x, &weight(6), &scale, None, 8).is_ok());
    assert!(quantized_linear(&x, &weight(3), &scale, None, 4).is_ok());
    for (rows, bits) in [(5, 8), (6, 4), (6, 2), (3, 8)] {
        assert!(quantized_linear(&x, &weight(rows), &scale, None, bits).is_err(), "{rows} {bits}");
    }
    assert!(quantized_linear(&x, &weight(6), &floats(&[4, 3], 1.0), None, 8).is_err());
    assert!(quantized_linear(&x, &weight(6), &scale, Some(&floats(&[2], 1.0)), 8).is_err());
}

#[test]
fn threads_change_no_bit_and_each_has_columns() {
    for (n, bits) in [(1024, 8), (1000, 4), (4096, 8)] {
        let k = 520;
        let held = if bits == 4 { k / 2 } else { k };
        let integers: Vec<i8> = (0..held * n).map(|at| noise(at) as i8).collect();
        let weight = Array::from_slice(&integers, &[held, n]).unwrap();
        let (x, scale) = (floats(&[3, k], 0.01), floats(&[4, n], 0.02));
        let found = |count: usize| {
            threads::set_num_threads(count);
            assert!(n.div_ceil(columns(n)) >= count.min(n.div_ceil(NARROWEST)), "{n} columns, {count} threads");
            let found = quantized_linear(&x, &weight, &scale, None, bits).unwrap();
            found.as_slice::<f32>().unwrap().iter().map(|value| value.to_bits()).collect::<Vec<_>>()
        };
        let one = found(1);
        assert!([2, 3, 8, 64].into_iter().all(|count| found(count) == one), "{n} columns of {bits} bits");
    }
}
