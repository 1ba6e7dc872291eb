//! Accuracy of the `f32` mathematics against `f64` references: at most 2 ulp, special values included.
//!
//! The default run samples the bit patterns. `PHLOX_ULP_STEP=1 cargo test --release --test ulp -- --nocapture
//! --test-threads 1` visits all 2^32: about an hour on two cores.

use phlox_kernels_core::elementwise::kernel::{Op, binary, unary};
use phlox_kernels_core::elementwise::{self, Operand};
use phlox_kernels_core::math::libm;
use phlox_kernels_core::{Array, threads};
use std::sync::Mutex;

const LIMIT: f64 = 2.0;
const CHUNK: u64 = 1 << 14;

/// Distance of neighbouring samples: odd, so that all exponents and low bits are met.
fn step() -> u64 {
    std::env::var("PHLOX_ULP_STEP").ok().and_then(|text| text.parse().ok()).unwrap_or(1009)
}

/// Units in the last place of `f32` at the exact value.
fn ulp(exact: f64) -> f64 {
    let magnitude = exact.abs().max(f32::MIN_POSITIVE as f64);
    let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).min(127);
    2f64.powi(exponent - 23)
}

/// Error in ulp; infinite where a special value is wrong.
fn error(got: f32, exact: f64) -> f64 {
    let rounded = exact as f32;
    if got.to_bits() == rounded.to_bits() || (got.is_nan() && exact.is_nan()) || (got == rounded && got != 0.0) {
        return 0.0;
    }
    if got.is_nan() || exact.is_nan() {
        return f64::INFINITY;
    }
    if got == 0.0 && rounded == 0.0 {
        // The sign of an exact 0 counts; that of an underflow does not.
        return if exact == 0.0 { f64::INFINITY } else { 0.0 };
    }
    let got = if got.is_infinite() { 2f64.powi(128).copysign(got as f64) } else { got as f64 };
    let exact = exact.clamp(-(2f64.powi(128)), 2f64.powi(128));
    (got - exact).abs() / ulp(exact)
}

fn check(op: &'static Op<1>, reference: fn(f64) -> f64) {
    let worst = Mutex::new((0.0f64, 0f32, 0f32));
    let step = step();
    let chunks = (1u64 << 32).div_ceil(CHUNK * step);
    threads::parallel(chunks as usize, &|chunk| {
        let first = chunk as u64 * CHUNK * step;
        let inputs: Vec<f32> = (0..CHUNK)
            .map(|i| first + i * step)
            .filter(|&bits| bits < 1 << 32)
            .map(|bits| f32::from_bits(bits as u32))
            .collect();
        let x = Array::from_slice(&inputs, &[inputs.len()]).unwrap();
        let y = elementwise::unary(op, &x).unwrap();
        let mut local = (0.0, 0.0, 0.0);
        for (&x, &y) in inputs.iter().zip(y.as_slice::<f32>().unwrap()) {
            let off = error(y, reference(x as f64));
            if off > local.0 {
                local = (off, x, y);
            }
        }
        let mut worst = worst.lock().unwrap();
        if local.0 > worst.0 {
            *worst = local;
        }
    });
    let (off, x, y) = *worst.lock().unwrap();
    println!("{:12} {off:.3} ulp at {x:e} (got {y:e}, exact {:e})", op.name, reference(x as f64));
    assert!(off <= LIMIT, "{}: {off} ulp at {x:e}: got {y:e}, exact {:e}", op.name, reference(x as f64));
}

fn normal(x: f64) -> f64 {
    0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

fn logistic(x: f64) -> f64 {
    if x >= 0.0 { 1.0 / (1.0 + (-x).exp()) } else { x.exp() / (1.0 + x.exp()) }
}

fn soft(x: f64) -> f64 {
    if x.is_nan() { x } else { x.max(0.0) + (-x.abs()).exp().ln_1p() }
}

/// `x * f(x)` with the limit 0 at minus infinity, where the sign of the 0 is left open.
fn times(x: f64, f: fn(f64) -> f64) -> f64 {
    if x == f64::NEG_INFINITY { -1e-300 } else { x * f(x) }
}

fn tanh_form(x: f64) -> f64 {
    times(x, |x| logistic(2.0 * (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x)))
}

macro_rules! accuracy {
    ($($op:ident $reference:expr;)*) => {$(
        #[test]
        fn $op() {
            check(&unary::$op, $reference);
        }
    )*};
}

accuracy! {
    acos f64::acos;
    acosh libm::acosh;
    asin f64::asin;
    asinh libm::asinh;
    atan f64::atan;
    atanh libm::atanh;
    cos f64::cos;
    cosh f64::cosh;
    erf libm::erf;
    exp f64::exp;
    expm1 f64::exp_m1;
    gelu |x| times(x, normal);
    gelu_tanh tanh_form;
    log f64::ln;
    log10 f64::log10;
    log1p f64::ln_1p;
    log2 f64::log2;
    log_sigmoid |x| -soft(-x);
    reciprocal f64::recip;
    rsqrt |x| 1.0 / x.sqrt();
    sigmoid logistic;
    silu |x| times(x, logistic);
    sin f64::sin;
    sinh f64::sinh;
    softplus soft;
    sqrt f64::sqrt;
    tan f64::tan;
    tanh f64::tanh;
}

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
    use phlox_kernels_core::math::{Split, exponential, special, trigonometric};
    type Case = (&'static str, fn(f32) -> f32, fn(f64) -> f64);
    // Without fused multiply-add.
    let cases: [Case; 9] = [
        ("exp", exponential::exp::<Split>, f64::exp),
        ("expm1", exponential::expm1::<Split>, f64::exp_m1),
        ("log", exponential::log::<Split>, f64::ln),
        ("tanh", exponential::tanh::<Split>, f64::tanh),
        ("sigmoid", exponential::sigmoid::<Split>, logistic),
        ("erf", special::erf::<Split>, libm::erf),
        ("gelu", special::gelu::<Split>, |x| times(x, normal)),
        ("silu", special::silu::<Split>, |x| times(x, logistic)),
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
