//! Functions of two numbers, and the mathematics that machines without fused multiply-add use, on samples.

use super::measure::{LIMIT, error, step};
use super::reference::formulas;
use crate::Array;
use crate::math::libm;
use crate::ops::elementwise::kernel::{Op, binary};
use crate::ops::elementwise::{self, Operand};

fn check_pairs(op: &'static Op<2>, reference: fn(f64, f64) -> f64, limit: f64) {
    let special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        2.0,
        -2.0,
        3.0,
        -3.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        1e-40,
        -1e-40,
        f32::MAX,
    ];
    let mut pairs: Vec<(f32, f32)> = special.iter().flat_map(|&a| special.iter().map(move |&b| (a, b))).collect();
    let mut state = 7u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 32) as u32
    };
    for _ in 0..200_000 {
        pairs.push((f32::from_bits(next()), f32::from_bits(next())));
        let near = |bits: u32| (bits as f32 / 2f32.powi(31) - 1.0) * 20.0;
        pairs.push((near(next()), near(next())));
        pairs.push((1.0 + near(next()) * 1e-3, near(next()) * 1e3));
    }
    let (a, b): (Vec<f32>, Vec<f32>) = pairs.iter().copied().unzip();
    let (a, b) = (Array::from_slice(&a, &[a.len()]).unwrap(), Array::from_slice(&b, &[b.len()]).unwrap());
    let out = elementwise::binary(op, Operand::Array(&a), Operand::Array(&b)).unwrap();
    let mut worst = (0.0, 0.0, 0.0, 0.0);
    for (&(a, b), &y) in pairs.iter().zip(out.as_slice::<f32>().unwrap()) {
        let off = error(y, reference(a as f64, b as f64));
        if off > worst.0 {
            worst = (off, a, b, y);
        }
    }
    let (off, a, b, y) = worst;
    println!("{:12} {off:.3} ulp at ({a:e}, {b:e})", op.name);
    let exact = reference(a as f64, b as f64);
    assert!(off <= limit, "{}: {off} ulp at ({a:e}, {b:e}): got {y:e}, exact {exact:e}", op.name);
}

/// `ln(e^a + e^b)` with an error far below that of `f32`, also where the result is near 0.
fn logaddexp(a: f64, b: f64) -> f64 {
    if a == b {
        return a + std::f64::consts::LN_2;
    }
    let top = if a > b { a } else { b };
    top + (-(a - b).abs()).exp().ln_1p()
}

#[test]
fn pairs() {
    check_pairs(&binary::atan2, f64::atan2, LIMIT);
    check_pairs(&binary::hypot, f64::hypot, LIMIT);
    check_pairs(&binary::logaddexp, logaddexp, LIMIT);
    check_pairs(&binary::pow, f64::powf, LIMIT);
    check_pairs(&binary::fmod, |a, b| a % b, 0.5);
}

#[test]
fn baseline_mathematics_is_as_accurate() {
    use crate::math::{Split, exponential, special, trigonometric};
    type Case = (&'static str, fn(f32) -> f32, fn(f64) -> f64);
    // Without fused multiply-add.
    let cases: [Case; 9] = [
        ("exp", exponential::exp::<Split>, f64::exp),
        ("expm1", exponential::expm1::<Split>, f64::exp_m1),
        ("log", exponential::log::<Split>, f64::ln),
        ("tanh", exponential::tanh::<Split>, f64::tanh),
        ("sigmoid", exponential::sigmoid::<Split>, formulas::sigmoid),
        ("erf", special::erf::<Split>, libm::erf),
        ("gelu", special::gelu::<Split>, formulas::gelu),
        ("silu", special::silu::<Split>, formulas::silu),
        ("sin", trigonometric::sin::<Split>, f64::sin),
    ];
    for (name, f, reference) in cases {
        let mut worst = (0.0, 0.0);
        for bits in (0..1u64 << 32).step_by(step() as usize * 16 + 1) {
            let x = f32::from_bits(bits as u32);
            if name == "sin" && x.abs() > trigonometric::LIMIT {
                continue;
            }
            let off = error(f(x), reference(x as f64));
            if off > worst.0 {
                worst = (off, x);
            }
        }
        println!("split {name:10} {:.3} ulp at {:e}", worst.0, worst.1);
        assert!(worst.0 <= 3.0, "{name}: {} ulp at {:e}", worst.0, worst.1);
    }
}
