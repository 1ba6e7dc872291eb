//! Exponentials, logarithms, powers and hyperbolic functions.

use super::{Fma, poly, wide};
use std::f32::consts::LOG2_E;

const ROUND: f32 = 12582912.0; // 1.5 * 2^23
// ln 2 in two parts; the first has 9 bits (Cephes).
const LN2_HI: f32 = 0.693_359_375;
const LN2_LO: f32 = -2.121_944_4e-4;

/// Splits `x` into `n ln 2 + r`; returns (r, bits whose low part is n).
#[inline(always)]
fn reduce<M: Fma>(x: f32) -> (f32, i32) {
    let shifted = M::fma(x, LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = M::fma(n, -LN2_LO, M::fma(n, -LN2_HI, x));
    (r, shifted.to_bits().wrapping_sub(ROUND.to_bits()) as i32)
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
    let (r, n) = reduce::<M>(x);
    let q = poly::<M, 5>(
        r,
        [0.4999999344756086, 0.16666520629435552, 0.04166838809252977, 0.008368717091209156, 0.0013814596392370557],
    );
    let p = M::fma(r * r, q, r) + 1.0;
    // Two factors, since 2^n alone may be out of range where the result is not.
    let half = n >> 1;
    p * power_of_two(half) * power_of_two(n.wrapping_sub(half))
}

/// `e^x - 1`.
#[inline(always)]
pub fn expm1<M: Fma>(x: f32) -> f32 {
    let clamped = if x > 89.0 { 89.0 } else { x };
    let clamped = if clamped < -18.0 { -18.0 } else { clamped };
    let (r, n) = reduce::<M>(clamped);
    let q = poly::<M, 6>(
        r,
        [
            0.5000000044165501,
            0.16666666370441216,
            0.041666360908256275,
            0.008333389371879116,
            0.0013940627651762255,
            0.00019845877070509835,
        ],
    );
    let p = M::fma(r * r, q, r);
    // Halved, since 2^128 is out of range where the result is not.
    let s = power_of_two(n.wrapping_sub(1));
    let y = 2.0 * M::fma(s, p, s - 0.5);
    if x.abs() < 1e-8 { x } else { y }
}

/// `tanh x`.
#[inline(always)]
pub fn tanh<M: Fma>(x: f32) -> f32 {
    let a = x.abs();
    let a = if a > 10.0 { 10.0 } else { a };
    let e = expm1::<M>(a + a);
    (e / (e + 2.0)).copysign(x)
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
pub fn sigmoid<M: Fma>(x: f32) -> f32 {
    let e = exp::<M>(-x.abs());
    let top = if x < 0.0 { e } else { 1.0 };
    top / (1.0 + e)
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
    let r = z * poly::<M, 4>(z, [0.66666662693, 0.40000972152, 0.28498786688, 0.24279078841]);
    let half = 0.5 * f * f;
    let low = M::fma(k, 9.0580006145e-06, s * (half + r));
    let y = M::fma(k, 6.9313812256e-01, f - (half - low));
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
    wide::ln_1p::<M>(t + (t * (t + 2.0)).sqrt()) as f32
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
    let odd = whole && half.trunc() != half;
    let negative = x.is_sign_negative();
    let signed = if negative && odd { -magnitude } else { magnitude };
    let out = if negative && !whole && a != 0.0 && a != f64::INFINITY { f32::NAN } else { signed };
    // (-1) ** (+-inf) = 1, like 1 ** anything and anything ** 0.
    let one = y == 0.0 || x == 1.0 || (x == -1.0 && y.abs() == f32::INFINITY);
    if one { 1.0 } else { out }
}
