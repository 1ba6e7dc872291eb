//! `f64` lanes with about 40 good bits, for `f32` results.

use super::{Fma, poly64};
use std::f64::consts::{FRAC_PI_2, LN_2, LOG2_E};

/// Adding and subtracting it rounds to the nearest integer and leaves that integer in the low bits.
const ROUND: f64 = 6755399441055744.0; // 1.5 * 2^52

/// `e^x` for `|x| <= 700`; beyond, the value at the border. NaN stays NaN.
#[inline(always)]
pub fn exp<M: Fma>(x: f64) -> f64 {
    let x = if x > 700.0 { 700.0 } else { x };
    let x = if x < -700.0 { -700.0 } else { x };
    exp2_parts::<M>(M::fma64(x, LOG2_E, ROUND), x)
}

/// `2^x` for `|x| <= 1000`; NaN stays NaN.
#[inline(always)]
pub fn exp2<M: Fma>(x: f64) -> f64 {
    let x = if x > 1000.0 { 1000.0 } else { x };
    let x = if x < -1000.0 { -1000.0 } else { x };
    let shifted = x + ROUND;
    scale(exp_poly::<M>((x - (shifted - ROUND)) * LN_2), shifted)
}

#[inline(always)]
fn exp2_parts<M: Fma>(shifted: f64, x: f64) -> f64 {
    // The high part has 28 bits, so that its product with n is exact without FMA too.
    const HI: f64 = 0.6931471787393093;
    const LO: f64 = 1.8206359985041462e-9;
    let n = shifted - ROUND;
    scale(exp_poly::<M>(M::fma64(n, -LO, M::fma64(n, -HI, x))), shifted)
}

#[inline(always)]
fn exp_poly<M: Fma>(r: f64) -> f64 {
    let q = poly64::<M, 7>(
        r,
        [
            0.5000000000427168,
            0.16666666784514964,
            0.041666664403652354,
            0.008333281786931582,
            0.0013889197262528597,
            0.00019908952767767578,
            2.470826635635566e-05,
        ],
    );
    M::fma64(r * r, q, r) + 1.0
}

/// `value * 2^n`, with n in the low bits of `shifted`.
#[inline(always)]
fn scale(value: f64, shifted: f64) -> f64 {
    value * f64::from_bits((shifted.to_bits() << 52).wrapping_add(1023 << 52))
}

/// `ln x` for normal `x > 0`; anything else gives garbage (see [`ln`]).
#[inline(always)]
fn ln_positive<M: Fma>(x: f64) -> f64 {
    const SQRT_HALF_BITS: u64 = 0x3fe6_a09e_667f_3bcd;
    const ONE_BITS: u64 = 0x3ff0_0000_0000_0000;
    let bits = x.to_bits();
    // Exponent such that the mantissa lies in [sqrt 1/2, sqrt 2), biased by 1023 to stay positive.
    let raised = bits.wrapping_add(ONE_BITS - SQRT_HALF_BITS) >> 52;
    let m = f64::from_bits(bits.wrapping_sub(raised << 52).wrapping_add(ONE_BITS));
    let e = f64::from_bits(0x4330_0000_0000_0000 | raised) - 4503599627371519.0; // 2^52 + 1023
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let p = poly64::<M, 5>(
        z,
        [0.666666666758466, 0.39999995604630945, 0.28572111146632895, 0.2217609922052401, 0.195855256002808],
    );
    M::fma64(e, LN_2, M::fma64(s * z, p, s + s))
}

/// `ln x` for a value that came from an `f32`.
#[inline(always)]
pub fn ln<M: Fma>(x: f64) -> f64 {
    let y = ln_positive::<M>(x);
    let y = if x == f64::INFINITY { x } else { y };
    let y = if x == 0.0 { f64::NEG_INFINITY } else { y };
    if x >= 0.0 { y } else { f64::NAN }
}

/// `ln(1 + x)`, accurate near 0.
#[inline(always)]
pub fn ln_1p<M: Fma>(x: f64) -> f64 {
    let u = 1.0 + x;
    let c = (x - (u - 1.0)) / u;
    let y = ln_positive::<M>(u) + c;
    let y = if x == f64::INFINITY { x } else { y };
    let y = if x == -1.0 { f64::NEG_INFINITY } else { y };
    let y = if x == 0.0 { x } else { y };
    if x >= -1.0 { y } else { f64::NAN }
}

/// Sine and cosine of the remainder, and the quadrant in the low two bits. For `|x| <= 2^20`.
#[inline(always)]
pub fn sin_cos<M: Fma>(x: f64) -> (f64, f64, u64) {
    // pi/2 in parts of 33 bits: their products with n are exact.
    const P1: f64 = f64::from_bits(0x3ff9_21fb_5440_0000);
    const P2: f64 = f64::from_bits(0x3dd0_b461_1a60_0000);
    const P3: f64 = f64::from_bits(0x3ba3_198a_2e03_7073);
    let shifted = M::fma64(x, std::f64::consts::FRAC_2_PI, ROUND);
    let n = shifted - ROUND;
    let r = M::fma64(n, -P3, M::fma64(n, -P2, M::fma64(n, -P1, x)));
    let z = r * r;
    let s = poly64::<M, 5>(
        z,
        [
            -0.16666666666631505,
            0.008333333325259925,
            -0.00019841263817788724,
            2.7555356823988566e-06,
            -2.4761592700512625e-08,
        ],
    );
    let c = poly64::<M, 5>(
        z,
        [
            -0.4999999999954459,
            0.04166666656199038,
            -0.0013888881073924834,
            2.479904000518185e-05,
            -2.718002460874325e-07,
        ],
    );
    (M::fma64(r * z, s, r), M::fma64(z, c, 1.0), shifted.to_bits())
}

/// `atan x`.
#[inline(always)]
pub fn atan<M: Fma>(x: f64) -> f64 {
    const TAN_PI_8: f64 = std::f64::consts::SQRT_2 - 1.0;
    let a = x.abs();
    let middle = a > TAN_PI_8;
    let far = a > 1.0 / TAN_PI_8;
    let top = if middle { a - 1.0 } else { a };
    let bottom = if middle { a + 1.0 } else { 1.0 };
    let base = if middle { FRAC_PI_2 / 2.0 } else { 0.0 };
    let top = if far { -1.0 } else { top };
    let bottom = if far { a } else { bottom };
    let base = if far { FRAC_PI_2 } else { base };
    let r = top / bottom;
    let z = r * r;
    let p = poly64::<M, 7>(
        z,
        [
            -0.33333333296221246,
            0.1999999437899242,
            -0.14285425479883185,
            0.11104033876914751,
            -0.08997083790031078,
            0.06992184485691795,
            -0.03793920768994384,
        ],
    );
    (base + M::fma64(r * z, p, r)).copysign(x)
}

/// `(asin(sqrt z) - sqrt z) / (z sqrt z)` for `z <= 1/4`.
#[inline(always)]
pub fn asin_poly<M: Fma>(z: f64) -> f64 {
    poly64::<M, 9>(
        z,
        [
            0.1666666666970887,
            0.07499999523754901,
            0.04464311335039786,
            0.030375212958053763,
            0.022471559546161243,
            0.016475909007280395,
            0.018638100953916145,
            -0.002875721448525451,
            0.03197573170580301,
        ],
    )
}
