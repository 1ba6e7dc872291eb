//! Exponentials, logarithms, powers and hyperbolic functions.

use super::{Fma, poly, wide};
use std::f32::consts::LOG2_E;

const ROUND: f32 = 12582912.0; // 1.5 * 2^23
// ln 2 in two parts; the first has 9 bits (Cephes).
const LN2_HI: f32 = 0.693_359_375;
const LN2_LO: f32 = -2.121_944_4e-4;

/// `e^x` in pieces: `2^n * (1 + r + t)`, where `t` is small beside `r` and holds what `r` has lost.
#[derive(Clone, Copy)]
pub(super) struct Parts {
    pub r: f32,
    pub t: f32,
    n: i32,
}

/// Splits `e^(x + low)` for `|x| < 10^4` and `low` far below it. NaN stays NaN in `r`.
#[inline(always)]
pub(super) fn split<M: Fma>(x: f32, low: f32) -> Parts {
    let shifted = M::fma(x, LOG2_E, ROUND);
    let n = shifted - ROUND;
    let exact = M::fma(n, -LN2_HI, x);
    let low = M::fma(n, -LN2_LO, low);
    let r = exact + low;
    let lost = (exact - r) + low;
    let q = poly::<M, 5>(
        r,
        [0.4999999344756086, 0.16666520629435552, 0.04166838809252977, 0.008368717091209156, 0.0013814596392370557],
    );
    Parts { r, t: M::fma(r * r, q, lost), n: shifted.to_bits().wrapping_sub(ROUND.to_bits()) as i32 }
}

impl Parts {
    /// `1 + r + t`, rounded once.
    #[inline(always)]
    pub fn mantissa(self) -> f32 {
        let top = 1.0 + self.r;
        top + ((1.0 - top) + self.r + self.t)
    }

    /// Two factors of `2^n`, since that alone may be out of range where the result is not.
    #[inline(always)]
    pub fn scales(self) -> (f32, f32) {
        let half = self.n >> 1;
        (power_of_two(half), power_of_two(self.n.wrapping_sub(half)))
    }
}

#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// `e^x`.
#[inline(always)]
pub fn exp<M: Fma>(x: f32) -> f32 {
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    let parts = split::<M>(x, 0.0);
    let (s1, s2) = parts.scales();
    parts.mantissa() * s1 * s2
}

/// `e^x` for `x <= 0`, with half the work: 0 where the value would be subnormal. NaN stays NaN.
#[inline(always)]
pub fn exp_below<M: Fma>(x: f32) -> f32 {
    // The last number whose exponential is not below 2^-126.
    const SMALLEST_NORMAL: f32 = -87.33654;
    // Biased, so that the low bits shifted up are 2^n.
    const BIASED: f32 = ROUND + 127.0;
    let shifted = M::fma(x, LOG2_E, BIASED);
    let n = shifted - BIASED;
    let r = M::fma(n, -LN2_LO, M::fma(n, -LN2_HI, x));
    let q = poly::<M, 5>(
        r,
        [0.4999999344756086, 0.16666520629435552, 0.04166838809252977, 0.008368717091209156, 0.0013814596392370557],
    );
    let y = (1.0 + M::fma(r * r, q, r)) * f32::from_bits(shifted.to_bits() << 23);
    if x < SMALLEST_NORMAL { 0.0 } else { y }
}

/// `e^x - 1`.
#[inline(always)]
pub fn expm1<M: Fma>(x: f32) -> f32 {
    let clamped = if x > 89.0 { 89.0 } else { x };
    let clamped = if clamped < -18.0 { -18.0 } else { clamped };
    let parts = split::<M>(clamped, 0.0);
    // Halved, since 2^128 is out of range where the result is not.
    let s = power_of_two(parts.n.wrapping_sub(1));
    let y = 2.0 * M::fma(s, parts.r + parts.t, s - 0.5);
    if x.abs() < 1e-8 { x } else { y }
}

/// `tanh x`. Source of the near polynomial: Cephes `tanhf.c`.
#[inline(always)]
pub fn tanh<M: Fma>(x: f32) -> f32 {
    let a = x.abs();
    let z = a * a;
    let p =
        poly::<M, 5>(z, [-3.33332819422e-1, 1.33314422036e-1, -5.37397155531e-2, 2.06390887954e-2, -5.70498872745e-3]);
    let near = M::fma(a * z, p, a);
    let capped = if a > 10.0 { 10.0 } else { a };
    let far = 1.0 - 2.0 / (exp::<M>(capped + capped) + 1.0);
    (if a < 0.625 { near } else { far }).copysign(x)
}

/// `1 / (1 + e^a)` for `0 <= a <= 120`, as `(factor / denominator) * factor`, so that a value may be multiplied in
/// before the result becomes subnormal. The denominator is rounded once.
#[inline(always)]
pub(super) fn logistic_tail<M: Fma>(a: f32) -> (f32, f32, f32) {
    let parts = split::<M>(a, 0.0);
    let half = parts.n >> 1;
    let (f1, f2) = (power_of_two(half.wrapping_neg()), power_of_two(half.wrapping_sub(parts.n)));
    let factor = f1 * f2;
    let base = 1.0 + factor;
    let top = base + parts.r;
    (f1, top + ((base - top) + parts.r + (parts.t + (factor - (base - 1.0)))), f2)
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
pub fn sigmoid<M: Fma>(x: f32) -> f32 {
    let a = x.abs();
    let (f1, denominator, f2) = logistic_tail::<M>(if a > 120.0 { 120.0 } else { a });
    let tail = f1 / denominator * f2;
    if x < 0.0 { tail } else { 1.0 - tail }
}

/// `ln(1 + e)` for `0 <= e <= 1`; NaN stays NaN. The method of [`log`].
#[inline(always)]
pub(super) fn log1p_unit<M: Fma>(e: f32) -> f32 {
    let u = 1.0 + e;
    let c = e - (u - 1.0);
    let upper = u > std::f32::consts::SQRT_2;
    let k = if upper { 1.0 } else { 0.0 };
    let f = (if upper { 0.5 * u } else { u }) - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let half = 0.5 * f * f;
    // c / u to a few bits is enough.
    let correction = c * M::fma(u, M::fma(u, 0.32, -1.46), 2.14);
    let low = M::fma(k, LOG_LN2_LO, M::fma(s, half + z * log_poly::<M>(z), correction));
    M::fma(k, LOG_LN2_HI, f - (half - low))
}

// ln 2 in two parts and the polynomial of FreeBSD `e_logf.c`.
const LOG_LN2_HI: f32 = 6.9313812256e-01;
const LOG_LN2_LO: f32 = 9.0580006145e-06;

#[inline(always)]
fn log_poly<M: Fma>(z: f32) -> f32 {
    poly::<M, 4>(z, [0.66666662693, 0.40000972152, 0.28498786688, 0.24279078841])
}

/// `ln x`. Source: FreeBSD `e_logf.c` (K.C. Ng), made branch-free.
#[inline(always)]
pub fn log<M: Fma>(x: f32) -> f32 {
    const SQRT_HALF_BITS: u32 = 0x3f35_04f3;
    let tiny = x < f32::MIN_POSITIVE;
    let scaled = if tiny { x * 8388608.0 } else { x };
    let bits = scaled.to_bits().wrapping_add(0x3f80_0000 - SQRT_HALF_BITS);
    let e = (bits >> 23) as i32 - if tiny { 127 + 23 } else { 127 };
    let m = f32::from_bits((bits & 0x007f_ffff) + SQRT_HALF_BITS);
    let k = e as f32;
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let half = 0.5 * f * f;
    let low = M::fma(k, LOG_LN2_LO, s * (half + z * log_poly::<M>(z)));
    let y = M::fma(k, LOG_LN2_HI, f - (half - low));
    let y = if x == f32::INFINITY { x } else { y };
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    if x >= 0.0 { y } else { f32::NAN }
}

/// `log2 x`.
#[inline(always)]
pub fn log2<M: Fma>(x: f32) -> f32 {
    (wide::ln::<M>(x as f64) * std::f64::consts::LOG2_E) as f32
}

/// `log10 x`.
#[inline(always)]
pub fn log10<M: Fma>(x: f32) -> f32 {
    (wide::ln::<M>(x as f64) * std::f64::consts::LOG10_E) as f32
}

/// `ln(1 + x)`.
#[inline(always)]
pub fn log1p<M: Fma>(x: f32) -> f32 {
    wide::ln_1p::<M>(x as f64) as f32
}

/// `ln(e^a + e^b)`.
#[inline(always)]
pub fn logaddexp<M: Fma>(a: f32, b: f32) -> f32 {
    let (a, b) = (a as f64, b as f64);
    let top = if a > b { a } else { b };
    // Equal infinities have no difference; a NaN in either makes the gap NaN.
    let gap = if a == b { 0.0 } else { -(a - b).abs() };
    (top + wide::ln_1p::<M>(wide::exp::<M>(gap))) as f32
}

/// `sinh x`.
#[inline(always)]
pub fn sinh<M: Fma>(x: f32) -> f32 {
    let x = x as f64;
    let e = wide::exp::<M>(x.abs());
    let far = 0.5 * (e - 1.0 / e);
    let z = x * x;
    let near = x.abs() * (1.0 + z * (1.0 / 6.0 + z * (1.0 / 120.0 + z / 5040.0)));
    (if z < 0.0625 { near } else { far }).copysign(x) as f32
}

/// `cosh x`.
#[inline(always)]
pub fn cosh<M: Fma>(x: f32) -> f32 {
    let e = wide::exp::<M>((x as f64).abs());
    (0.5 * (e + 1.0 / e)) as f32
}

/// `asinh x`.
#[inline(always)]
pub fn asinh<M: Fma>(x: f32) -> f32 {
    let x = x as f64;
    let a = x.abs();
    let z = a * a;
    let y = wide::ln_1p::<M>(a + z / (1.0 + (z + 1.0).sqrt()));
    (if a == f64::INFINITY { a } else { y }).copysign(x) as f32
}

/// `acosh x`.
#[inline(always)]
pub fn acosh<M: Fma>(x: f32) -> f32 {
    let t = x as f64 - 1.0;
    let y = wide::ln_1p::<M>(t + (t * (t + 2.0)).sqrt()) as f32;
    if t >= 0.0 { y } else { f32::NAN }
}

/// `atanh x`.
#[inline(always)]
pub fn atanh<M: Fma>(x: f32) -> f32 {
    let x = x as f64;
    let a = x.abs();
    (0.5 * wide::ln_1p::<M>(2.0 * a / (1.0 - a))).copysign(x) as f32
}

/// IEEE 754 `pow`.
#[inline(always)]
pub fn pow<M: Fma>(x: f32, y: f32) -> f32 {
    let (base, exponent) = (x as f64, y as f64);
    let a = base.abs();
    // ln 0 = -inf and ln inf = inf do the right thing below; inf * 0 is caught by the last line.
    let power = wide::exp2::<M>(exponent * wide::ln::<M>(a) * std::f64::consts::LOG2_E);
    // The clamp of exp2 lies far outside the range of f32, so the conversion gives 0 and inf.
    let magnitude = power as f32;
    let whole = exponent.trunc() == exponent;
    let half = exponent * 0.5;
    // Single & and |: no branches, so that the loop vectorises.
    let odd = whole & (half.trunc() != half);
    let negative = x.is_sign_negative();
    let signed = if negative & odd { -magnitude } else { magnitude };
    let out = if negative & !whole & (a != 0.0) & (a != f64::INFINITY) { f32::NAN } else { signed };
    // (-1) ** (+-inf) = 1, like 1 ** anything and anything ** 0.
    let one = (y == 0.0) | (x == 1.0) | ((x == -1.0) & (y.abs() == f32::INFINITY));
    if one { 1.0 } else { out }
}
