//! Accuracy of the `f32` functions against `f64` references: at most 2 ulp, special values included; casts are exact.
//!
//! The default run samples the bit patterns. `PHLOX_ULP_STEP=1` visits all 2^32 and `PHLOX_ULP_TABLE=FILE` adds a line per
//! function to a file: `python -m tools.accuracy` does both and writes `docs/accuracy.md`.

mod measure;
mod pairs;
mod reference;

use crate::Array;
use crate::BF16;
use crate::DType;
use crate::Element;
use crate::F16;
use crate::math::{libm, special};
use crate::ops::elementwise::kernel::{Class, unary};
use crate::ops::elementwise::{self, convert};
use measure::{Row, exact, near};
use reference::{formulas, many};

macro_rules! accuracy {
    ($($op:ident $scalar:expr, $many:expr;)*) => {
        $(
            #[test]
            fn $op() {
                near(stringify!($op), &|x| elementwise::unary(&unary::$op, x).unwrap(), Row { scalar: $scalar, many: $many });
            }
        )*
        const NEAR: &[&str] = &[$(stringify!($op)),*];
    };
}

accuracy! {
    abs f64::abs, |x, y| many(x, y, f64::abs);
    acos f64::acos, reference::acos;
    acosh libm::acosh, reference::acosh;
    asin f64::asin, reference::asin;
    asinh libm::asinh, reference::asinh;
    atan f64::atan, reference::atan;
    atanh libm::atanh, reference::atanh;
    ceil f64::ceil, |x, y| many(x, y, f64::ceil);
    cos f64::cos, reference::cos;
    cosh f64::cosh, reference::cosh;
    erf libm::erf, reference::erf;
    erfc libm::erfc, |x, y| many(x, y, libm::erfc);
    erfinv special::double::erfinv, |x, y| many(x, y, special::double::erfinv);
    exp f64::exp, reference::exp;
    expm1 f64::exp_m1, reference::expm1;
    floor f64::floor, |x, y| many(x, y, f64::floor);
    gelu formulas::gelu, reference::gelu;
    gelu_tanh formulas::gelu_tanh, reference::gelu_tanh;
    lgamma libm::lgamma, |x, y| many(x, y, libm::lgamma);
    log f64::ln, reference::log;
    log10 f64::log10, reference::log10;
    log1p f64::ln_1p, reference::log1p;
    log2 f64::log2, reference::log2;
    log_sigmoid formulas::log_sigmoid, reference::log_sigmoid;
    negative |x| -x, |x, y| many(x, y, |x| -x);
    positive |x| x, |x, y| many(x, y, |x| x);
    reciprocal f64::recip, |x, y| many(x, y, f64::recip);
    relu formulas::relu, |x, y| many(x, y, formulas::relu);
    round f64::round_ties_even, |x, y| many(x, y, f64::round_ties_even);
    rsqrt |x| 1.0 / x.sqrt(), |x, y| many(x, y, |x| 1.0 / x.sqrt());
    sigmoid formulas::sigmoid, reference::sigmoid;
    sign formulas::sign, |x, y| many(x, y, formulas::sign);
    silu formulas::silu, reference::silu;
    sin f64::sin, reference::sin;
    sinh f64::sinh, reference::sinh;
    softplus formulas::softplus, reference::softplus;
    sqrt f64::sqrt, |x, y| many(x, y, f64::sqrt);
    square |x| x * x, |x, y| many(x, y, |x| x * x);
    tan f64::tan, reference::tan;
    tanh f64::tanh, reference::tanh;
    trunc f64::trunc, |x, y| many(x, y, f64::trunc);
}

macro_rules! tests {
    ($($op:ident $want:expr;)*) => {
        $(
            #[test]
            fn $op() {
                exact::<bool>(stringify!($op), &|x| elementwise::unary(&unary::$op, x).unwrap(), $want, |a, b| a == b);
            }
        )*
        const TESTS: &[&str] = &[$(stringify!($op)),*];
    };
}

tests! {
    isfinite |x| x - x == 0.0;
    isinf |x| x.abs() == f64::INFINITY;
    isnan f64::is_nan;
}

#[test]
fn every_function_of_floats_has_a_reference() {
    let missing: Vec<&str> = unary::ALL
        .iter()
        .filter(|op| !matches!(op.class, Class::bits | Class::bool | Class::int))
        .map(|op| op.name)
        .filter(|name| !NEAR.contains(name) && !TESTS.contains(name))
        .collect();
    assert!(missing.is_empty(), "give these a row above: {missing:?}");
}

fn cast<T: Element>(x: &Array) -> Array {
    convert::cast(x, T::DTYPE).unwrap()
}

macro_rules! casts_to_ints {
    ($($name:ident $to:ident;)*) => {$(
        #[test]
        fn $name() {
            let want = |x: f64| {
                let whole = x.trunc();
                // The bounds as floats: the upper one may round up, to a power of two beyond the type.
                if whole.is_nan() {
                    0
                } else if whole <= $to::MIN as f64 {
                    $to::MIN
                } else if whole >= $to::MAX as f64 {
                    $to::MAX
                } else {
                    let magnitude = whole.abs() as u64;
                    if whole < 0.0 { 0 - magnitude as i64 as $to } else { magnitude as $to }
                }
            };
            exact::<$to>(stringify!($name), &cast::<$to>, want, |a, b| a == b);
        }
    )*};
}

casts_to_ints! {
    cast_int16 i16;
    cast_int32 i32;
    cast_int64 i64;
    cast_int8 i8;
    cast_uint16 u16;
    cast_uint32 u32;
    cast_uint64 u64;
    cast_uint8 u8;
}

#[test]
fn cast_bool() {
    exact::<bool>("cast_bool", &cast::<bool>, |x| !(x == 0.0), |a, b| a == b);
}

#[test]
fn cast_float64() {
    let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
    exact::<f64>("cast_float64", &cast::<f64>, |x| x, same);
}

macro_rules! casts_to_narrow_floats {
    ($($name:ident $to:ident $digits:literal $lowest:literal;)*) => {$(
        #[test]
        fn $name() {
            let want = |x: f64| $to::from_f32(formulas::narrow(x, $digits, $lowest) as f32);
            let same = |a: $to, b: $to| {
                let (a, b) = (a.to_f32(), b.to_f32());
                a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
            };
            exact::<$to>(stringify!($name), &cast::<$to>, want, same);
        }
    )*};
}

// Digits of the significand and the exponent of the smallest normal number.
casts_to_narrow_floats! {
    cast_bfloat16 BF16 8 -126;
    cast_float16 F16 11 -14;
}

#[test]
fn every_type_is_a_target() {
    let targets = 1 + 8 + 1 + 2;
    assert_eq!(DType::ALL.iter().filter(|&&dtype| dtype != DType::F32).count(), targets);
}
