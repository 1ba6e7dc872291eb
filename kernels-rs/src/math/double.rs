//! Functions of `f64`, within 2 ulp (`tanh` 2.5), written as those of `f32` are so that loops over them vectorise. Sources of methods and
//! coefficients, unless another is named: FreeBSD's `msun`, by Sun Microsystems, made branch-free.

use super::{Fma, poly64};
use std::f64::consts::{FRAC_2_PI, LOG2_E, PI};

/// Adding and subtracting it rounds to the nearest integer and leaves that integer in the low bits.
const ROUND: f64 = 6755399441055744.0; // 1.5 * 2^52
/// ln 2 in two parts: the product of the first with a whole number of 11 bits is exact.
const LN2_HI: f64 = 6.931_471_803_691_238e-1;
const LN2_LO: f64 = 1.908_214_929_270_587_7e-10;
/// 2^52 + 1023: less than it, a float with a biased exponent in its low bits is that exponent.
const BIASED: f64 = 4503599627371519.0;
const LOW_52: u64 = (1 << 52) - 1;
/// Largest argument of [`sin`] and [`cos`]; beyond, the kernel redoes those elements through libm.
pub const LIMIT: f64 = 1048576.0;

/// `e^x` as `2^n * (1 + p)`, n in the low bits of the first.
#[inline(always)]
fn parts<M: Fma>(x: f64) -> (f64, f64) {
    let shifted = M::fma64(x, LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = M::fma64(n, -LN2_LO, M::fma64(n, -LN2_HI, x));
    // Near-minimax on ln 2 / 2; off by an eighth of an ulp at most.
    let q = poly64::<M, 10>(
        r,
        [
            0.5000000000000001,
            0.16666666666666669,
            0.04166666666662416,
            0.008333333333330063,
            0.0013888888917199863,
            0.00019841269863042963,
            2.4801521317484083e-05,
            2.7557268476553695e-06,
            2.7620078203806394e-07,
            2.5100377619606372e-08,
        ],
    );
    (shifted, M::fma64(r * r, q, r))
}

/// `2^n` of a biased n from 1 to 2046.
#[inline(always)]
fn power_of_two(biased: u64) -> f64 {
    f64::from_bits(biased << 52)
}

/// `e^x`.
#[inline(always)]
pub fn exp<M: Fma>(x: f64) -> f64 {
    let x = if x > 710.0 { 710.0 } else { x };
    let x = if x < -746.0 { -746.0 } else { x };
    let (shifted, p) = parts::<M>(x);
    // Two factors, since the power of two alone may be out of range where the result is not.
    let n = shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(2 * 1023);
    let half = n >> 1;
    (1.0 + p) * power_of_two(half) * power_of_two(n.wrapping_sub(half))
}

/// `e^x - 1` for `0 <= x <= 700`.
#[inline(always)]
fn expm1_above<M: Fma>(x: f64) -> f64 {
    let (shifted, p) = parts::<M>(x);
    let s = power_of_two(shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(1023));
    M::fma64(s, p, s - 1.0)
}

/// `ln x`.
#[inline(always)]
pub fn log<M: Fma>(x: f64) -> f64 {
    const SQRT_HALF_BITS: u64 = 0x3fe6_a09e_667f_3bcd;
    const ONE_BITS: u64 = 0x3ff0_0000_0000_0000;
    let tiny = x < f64::MIN_POSITIVE;
    let scaled = if tiny { x * 18014398509481984.0 } else { x }; // 2^54
    let bits = scaled.to_bits().wrapping_add(ONE_BITS - SQRT_HALF_BITS);
    let e = f64::from_bits(0x4330_0000_0000_0000 | (bits >> 52)) - BIASED;
    let k = if tiny { e - 54.0 } else { e };
    let f = f64::from_bits((bits & LOW_52).wrapping_add(SQRT_HALF_BITS)) - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let half = 0.5 * f * f;
    let p = z * poly64::<M, 7>(
        z,
        [
            6.666666666666735130e-01,
            3.999999999940941908e-01,
            2.857142874366239149e-01,
            2.222219843214978396e-01,
            1.818357216161805012e-01,
            1.531383769920937332e-01,
            1.479819860511658591e-01,
        ],
    );
    let y = M::fma64(k, LN2_HI, f - (half - M::fma64(s, half + p, k * LN2_LO)));
    let y = if x == f64::INFINITY { x } else { y };
    let y = if x == 0.0 { f64::NEG_INFINITY } else { y };
    if x >= 0.0 { y } else { f64::NAN }
}

/// Sine and cosine of the remainder, and the quadrant in the low two bits. For `|x| <= LIMIT`.
#[inline(always)]
fn sin_cos<M: Fma>(x: f64) -> (f64, f64, u64) {
    // pi/2 in parts of 33 bits: their products with n are exact.
    const P1: f64 = f64::from_bits(0x3ff9_21fb_5440_0000);
    const P2: f64 = f64::from_bits(0x3dd0_b461_1a60_0000);
    const P3: f64 = f64::from_bits(0x3ba3_198a_2e03_7073);
    let shifted = M::fma64(x, FRAC_2_PI, ROUND);
    let n = shifted - ROUND;
    let first = M::fma64(n, -P1, x);
    let second = n * P2;
    let near = first - second;
    // What the remainder loses goes along as `low`.
    let gap = ((first - near) - second) - n * P3;
    let r = near + gap;
    let low = (near - r) + gap;
    let z = r * r;
    let v = z * r;
    let sine = poly64::<M, 5>(
        z,
        [
            8.33333333332248946124e-03,
            -1.98412698298579493134e-04,
            2.75573137070700676789e-06,
            -2.50507602534068634195e-08,
            1.58969099521155010221e-10,
        ],
    );
    let s = r - ((z * (0.5 * low - v * sine) - low) - v * -1.66666666666666324348e-01);
    let cosine = z * poly64::<M, 6>(
        z,
        [
            4.16666666666666019037e-02,
            -1.38888888888741095749e-03,
            2.48015872894767294178e-05,
            -2.75573143513906633035e-07,
            2.08757232129817482790e-09,
            -1.13596475577881948265e-11,
        ],
    );
    let half = 0.5 * z;
    let top = 1.0 - half;
    let c = top + (((1.0 - top) - half) + (z * cosine - r * low));
    (s, c, shifted.to_bits())
}

/// `sin x` for `|x| <= LIMIT`.
#[inline(always)]
pub fn sin<M: Fma>(x: f64) -> f64 {
    let (s, c, quadrant) = sin_cos::<M>(x);
    let y = if quadrant & 1 == 0 { s } else { c };
    let y = if quadrant & 2 == 0 { y } else { -y };
    if x == 0.0 { x } else { y }
}

/// `cos x` for `|x| <= LIMIT`.
#[inline(always)]
pub fn cos<M: Fma>(x: f64) -> f64 {
    let (s, c, quadrant) = sin_cos::<M>(x);
    let y = if quadrant & 1 == 0 { c } else { -s };
    if quadrant & 2 == 0 { y } else { -y }
}

/// `tanh x`, as `(e^2x - 1) / (e^2x + 1)`.
#[inline(always)]
pub fn tanh<M: Fma>(x: f64) -> f64 {
    let a = x.abs();
    let a = if a > 22.0 { 22.0 } else { a };
    let e = expm1_above::<M>(a + a);
    (e / (e + 2.0)).copysign(x)
}

/// Numerators of Stirling's series, B(2k) / (2k * (2k - 1)).
const STIRLING: [f64; 8] = [
    1.0 / 12.0,
    -1.0 / 360.0,
    1.0 / 1260.0,
    -1.0 / 1680.0,
    1.0 / 1188.0,
    -691.0 / 360360.0,
    1.0 / 156.0,
    -3617.0 / 122400.0,
];

/// `ln |Gamma(x)|` by Stirling's series from 8 on, below it by the product that leads there, and by reflection below 1/2.
/// Infinite at 0 and negative whole numbers. Digits that cancel near the zeros at 1 and 2 are lost.
#[inline(always)]
pub fn lgamma<M: Fma>(x: f64) -> f64 {
    const HALF_LN_2_PI: f64 = 0.918_938_533_204_672_8;
    let low = x < 0.5;
    let at = if low { 1.0 - x } else { x };
    let close = at < 8.0;
    let mut product = at;
    for step in [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0] {
        product *= at + step;
    }
    let product = if close { product } else { 1.0 };
    let base = if close { at + 8.0 } else { at };
    let inverse = 1.0 / base;
    let series = poly64::<M, 8>(inverse * inverse, STIRLING) * inverse;
    let value = M::fma64(base - 0.5, log::<M>(base), HALF_LN_2_PI - base) + series;
    // ln |Gamma(x) * Gamma(1 - x)| = -ln(|sin(pi x)| / pi), and -ln |x| where that is next to nothing.
    let whole = x.round_ties_even();
    let rest = (x - whole).abs();
    let least = rest < 1e-290;
    let beside = if least { rest } else { sin::<M>(PI * if low { rest } else { 0.25 }) / (PI * product) };
    let last = log::<M>(if low { beside } else { product });
    let mirrored = -last - if least { 0.0 } else { value };
    let value = if low { mirrored } else { value - last };
    let pole = low & (x == whole);
    if pole | (x.abs() == f64::INFINITY) { f64::INFINITY } else { value }
}
