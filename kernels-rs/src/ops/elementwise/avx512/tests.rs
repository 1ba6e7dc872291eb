use crate::Array;
use crate::array::scalar::Scalar;
use crate::math::{Fused, special};
use crate::ops::elementwise::kernel::{Op, binary, unary};
use crate::ops::elementwise::{Operand, binary as apply_binary, unary as apply_unary};

fn close(got: f32, want: f32) -> bool {
    (got - want).abs() <= 1e-6 * (1.0 + want.abs()) || got == want || (got.is_nan() && want.is_nan())
}

#[test]
fn every_length_equals_the_plain_formula() {
    let special_values = [0.0, -0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-40, -1e-40, 14.4, -14.4, -14.0];
    for len in 1..150 {
        let x: Vec<f32> = (0..len)
            .map(|i| if i % 7 == 0 { special_values[i / 7 % 10] } else { ((i * 37 + len) % 301) as f32 / 10.0 - 15.0 })
            .collect();
        let g: Vec<f32> = (0..len).map(|i| ((i * 11) % 23) as f32 - 11.0).collect();
        let (xs, gs) = (Array::from_slice(&x, &[len]).unwrap(), Array::from_slice(&g, &[len]).unwrap());
        let y = apply_unary(&unary::gelu, &xs).unwrap();
        let slopes = apply_binary(&binary::gelu_backward, Operand::Array(&gs), Operand::Array(&xs)).unwrap();
        let one = apply_binary(&binary::gelu_backward, Operand::Scalar(Scalar::Float(1.0)), Operand::Array(&xs));
        let at_two = apply_binary(&binary::gelu_backward, Operand::Array(&gs), Operand::Scalar(Scalar::Float(2.0)));
        let (one, at_two) = (one.unwrap(), at_two.unwrap());
        let rows = [&y, &slopes, &one, &at_two].map(|array| array.as_slice::<f32>().unwrap());
        for i in 0..len {
            let backward = |g: f32, x: f32| special::gelu_backward::<Fused>(g, x);
            let want = [special::gelu::<Fused>(x[i]), backward(g[i], x[i]), backward(1.0, x[i]), backward(g[i], 2.0)];
            for (row, want) in rows.iter().zip(want) {
                let slack = if g[i] == 0.0 { 1.0 } else { g[i].abs().max(1.0) };
                assert!(close(row[i] / slack, want / slack), "{len} {i}: {} {want} at {} {}", row[i], x[i], g[i]);
            }
        }
    }
}

/// Numbers of every kind.
fn numbers(len: usize) -> Vec<f64> {
    let special = [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 5e-324, -1e-310, 745.3, -745.3, 1e7, -3e300];
    let plain = |i: usize| ((i * 37 + len) % 301) as f64 / 20.0 - 7.5;
    (0..len).map(|i| if i % 5 == 0 { special[i / 5 % special.len()] } else { plain(i) }).collect()
}

fn same_or_near(got: f64, want: f64, units: f64) -> bool {
    let unit = (want.abs() * f64::EPSILON).max(f64::MIN_POSITIVE * f64::EPSILON);
    got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan()) || (got - want).abs() <= units * unit
}

#[test]
fn functions_of_f64_are_near_the_platforms_at_every_length() {
    type Row = (&'static Op<1>, fn(f64) -> f64);
    let rows: [Row; 5] = [
        (&unary::cos, f64::cos),
        (&unary::erf, crate::math::libm::erf),
        (&unary::exp, f64::exp),
        (&unary::log, f64::ln),
        (&unary::sin, f64::sin),
    ];
    for len in 1..70 {
        let x = numbers(len);
        let array = Array::from_slice(&x, &[len]).unwrap();
        for (op, function) in rows {
            let y = apply_unary(op, &array).unwrap();
            for (&x, &y) in x.iter().zip(y.as_slice::<f64>().unwrap()) {
                assert!(same_or_near(y, function(x), 3.0), "{} of {x:e}: {y:e}", op.name);
            }
        }
        let bases = Operand::Array(&array);
        for exponent in [2.5, -3.0, 5.0, -0.75, 1e-3, 1e301, f64::NAN] {
            let y = apply_binary(&binary::pow, bases, Operand::Scalar(Scalar::Float(exponent))).unwrap();
            for (&x, &y) in x.iter().zip(y.as_slice::<f64>().unwrap()) {
                assert!(same_or_near(y, x.powf(exponent), 2.0), "{x:e} ** {exponent}: {y:e}");
            }
        }
        let back: Vec<f64> = x.iter().rev().copied().collect();
        let exponents = Array::from_slice(&back, &[len]).unwrap();
        let (pairs, of_two) = (
            apply_binary(&binary::pow, bases, Operand::Array(&exponents)).unwrap(),
            apply_binary(&binary::pow, Operand::Scalar(Scalar::Float(2.0)), Operand::Array(&exponents)).unwrap(),
        );
        for i in 0..len {
            let got = [pairs.as_slice::<f64>().unwrap()[i], of_two.as_slice::<f64>().unwrap()[i]];
            for (got, base) in got.into_iter().zip([x[i], 2.0]) {
                assert!(same_or_near(got, base.powf(back[i]), 3.0), "{base:e} ** {:e}: {got:e}", back[i]);
            }
        }
    }
}

#[test]
fn roots_are_rounded_as_the_instruction_rounds_them() {
    let mantissas = (0x3f80_0000..0x4080_0000u32).step_by(61).map(f32::from_bits);
    let special = [0.0, -0.0, f32::NAN, f32::INFINITY, -1.0, 1e-45, 1e-39, f32::MAX, 7e-31, 9e-31, 4e37, 5e37];
    let x: Vec<f32> = mantissas.chain(special).collect();
    let array = Array::from_slice(&x, &[x.len()]).unwrap();
    let roots = apply_unary(&unary::sqrt, &array).unwrap();
    let half = Operand::Scalar(Scalar::Float(0.5));
    let powers = apply_binary(&binary::pow, Operand::Array(&array), half).unwrap();
    let results = roots.as_slice::<f32>().unwrap().iter().zip(powers.as_slice::<f32>().unwrap());
    for (&x, (&root, &power)) in x.iter().zip(results) {
        assert!(root.to_bits() == x.sqrt().to_bits() || root.is_nan() && x.sqrt().is_nan(), "{x:e}: {root:e}");
        assert!(
            power.to_bits() == (x + 0.0).sqrt().to_bits() || power.is_nan() && x.sqrt().is_nan(),
            "{x:e}: {power:e}"
        );
    }
}
