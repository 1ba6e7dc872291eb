use super::*;
use crate::dtype::{BF16, Element, F16};
use crate::machine::threads::set_num_threads;
use crate::ops::elementwise::convert::cast;
use crate::ops::samples::{Rng, elements, floats, shape, view_of};

fn plain(x: &[f64], block: impl Fn(f64) -> f64) -> Vec<f64> {
    let (mut out, mut before) = (Vec::new(), 0.0);
    for part in x.chunks(BLOCK) {
        let mut sum = 0.0;
        out.extend(part.iter().map(|value| {
            sum = block(sum + value);
            block(before + sum)
        }));
        before = block(before + sum);
    }
    out
}

#[test]
fn every_type_and_layout() {
    let mut rng = Rng::new(20);
    for round in 0..400 {
        let dtype = DType::ALL[round % 12];
        let mut size = shape(&mut rng, 3, &[0, 1, 2, 3, 5, 16, 40]);
        size.push(rng.pick(&[1, 4, 7, 300, 1023, 1024, 1025, 3000, 5000]));
        if rng.below(10) == 0 {
            size = vec![rng.pick(&[1, 2, 70_000]), 2, rng.pick(&[1, 70_000])];
        }
        if size.iter().product::<usize>() > 300_000 {
            continue;
        }
        let last = size.len() - 1;
        size.swap(rng.below(last + 1), last);
        let axis = rng.below(size.len());
        let x = view_of(&mut rng, dtype, &size, false);
        set_num_threads(1 + round % 4);
        let out = cumsum(&x, axis, dtype).unwrap();
        assert_eq!((&out.shape()[..], out.dtype()), (&size[..], dtype));
        let (outer, len, inner) = around("cumsum", &size, axis).unwrap();
        let (values, got) = (floats(&x), floats(&out));
        for line in 0..outer * inner {
            let at = |k: usize| (line / inner * len + k) * inner + line % inner;
            let line: Vec<f64> = (0..len).map(|k| values[at(k)]).collect();
            let expected = match dtype {
                DType::F64 => plain(&line, |sum| sum),
                _ if dtype.is_float() => plain(&line, |sum| sum as f32 as f64),
                _ => continue,
            };
            for (k, &expected) in expected.iter().enumerate() {
                let narrow = floats(&cast(&Array::from_slice(&[expected], &[]).unwrap(), dtype).unwrap())[0];
                assert_eq!(got[at(k)], narrow, "{x:?} {axis}");
            }
        }
        if dtype == DType::I64 || dtype == DType::U8 {
            check_wrapping(&x, &out, (outer, len, inner));
        }
    }
}

fn check_wrapping(x: &Array, out: &Array, (outer, len, inner): (usize, usize, usize)) {
    let integers = |x: &Array| elements::<i64>(&cast(x, DType::I64).unwrap());
    let (values, got) = (integers(x), integers(out));
    for line in 0..outer * inner {
        let mut sum = 0i64;
        for k in 0..len {
            let at = (line / inner * len + k) * inner + line % inner;
            sum = sum.wrapping_add(values[at]);
            assert_eq!(got[at], if x.dtype() == DType::U8 { sum as u8 as i64 } else { sum });
        }
    }
}

#[test]
fn special_cases() {
    let x = Array::from_slice(&[-0.0f32, -0.0, 1.0, f32::NAN, 1.0], &[5]).unwrap();
    let out = elements::<f32>(&cumsum(&x, 0, DType::F32).unwrap());
    assert!(out[1].is_sign_negative() && out[2] == 1.0 && out[3].is_nan() && out[4].is_nan());
    assert!(cumsum(&x, 1, DType::F32).is_err());
    assert!(cumsum(&Array::zeros(DType::Bool, &[2]).unwrap(), 0, DType::I64).is_err());
}

#[test]
fn sums_are_rounded_once() {
    let halves = Array::from_slice(&[1.001, -1.0].map(F16::from_f64), &[2]).unwrap();
    let out = elements::<BF16>(&cumsum(&halves, 0, DType::BF16).unwrap());
    assert_eq!(out[1], BF16::from_f64(F16::from_f64(1.001).to_f64() - 1.0));
    let large = Array::from_slice(&[16_777_217, 1, 1], &[3]).unwrap();
    assert_eq!(elements::<f32>(&cumsum(&large, 0, DType::F32).unwrap()), [16_777_216.0, 16_777_218.0, 16_777_220.0]);
    let wide = Array::from_slice(&[u64::MAX, 0], &[2]).unwrap();
    assert_eq!(elements::<f32>(&cumsum(&wide, 0, DType::F32).unwrap())[1], u64::MAX as f32);
}
