//! Trigonometric functions. Beyond [`LIMIT`] the vector path is wrong, and the kernel redoes those elements through libm.

use super::{Fma, wide};
use std::f64::consts::{FRAC_PI_2, PI};

/// Largest argument of the vector path of `sin`, `cos` and `tan`.
pub const LIMIT: f32 = 1048576.0;

/// `sin x` for `|x| <= LIMIT`.
#[inline(always)]
pub fn sin<M: Fma>(x: f32) -> f32 {
    let (s, c, quadrant) = wide::sin_cos::<M>(x as f64);
    let y = if quadrant & 1 == 0 { s } else { c };
    let y = (if quadrant & 2 == 0 { y } else { -y }) as f32;
    if x == 0.0 { x } else { y }
}

/// `cos x` for `|x| <= LIMIT`.
#[inline(always)]
pub fn cos<M: Fma>(x: f32) -> f32 {
    let (s, c, quadrant) = wide::sin_cos::<M>(x as f64);
    let y = if quadrant & 1 == 0 { c } else { -s };
    (if quadrant & 2 == 0 { y } else { -y }) as f32
}

/// `tan x` for `|x| <= LIMIT`.
#[inline(always)]
pub fn tan<M: Fma>(x: f32) -> f32 {
    let (s, c, quadrant) = wide::sin_cos::<M>(x as f64);
    let (top, bottom) = if quadrant & 1 == 0 { (s, c) } else { (-c, s) };
    let y = (top / bottom) as f32;
    if x == 0.0 { x } else { y }
}

/// `asin a` up to 1/2, and half of `acos a` above; whether it is that.
#[inline(always)]
fn near_asin<M: Fma>(a: f64) -> (f64, bool) {
    let far = a > 0.5;
    let z = if far { 0.5 - 0.5 * a } else { a * a };
    let r = if far { z.sqrt() } else { a };
    (M::fma64(r * z, wide::asin_poly::<M>(z), r), far)
}

/// `asin x`.
#[inline(always)]
pub fn asin<M: Fma>(x: f32) -> f32 {
    let x = x as f64;
    let (y, far) = near_asin::<M>(x.abs());
    (if far { FRAC_PI_2 - 2.0 * y } else { y }).copysign(x) as f32
}

/// `acos x`.
#[inline(always)]
pub fn acos<M: Fma>(x: f32) -> f32 {
    let x = x as f64;
    let (y, far) = near_asin::<M>(x.abs());
    let beyond = if x < 0.0 { PI - 2.0 * y } else { 2.0 * y };
    (if far { beyond } else { FRAC_PI_2 - y.copysign(x) }) as f32
}

/// `atan x`.
#[inline(always)]
pub fn atan<M: Fma>(x: f32) -> f32 {
    wide::atan::<M>(x as f64) as f32
}

/// Angle of the point `(x, y)`.
#[inline(always)]
pub fn atan2<M: Fma>(y: f32, x: f32) -> f32 {
    let (a, b) = ((y as f64).abs(), (x as f64).abs());
    let infinite = (a == f64::INFINITY) & (b == f64::INFINITY);
    let ratio = if infinite { 1.0 } else { a / b };
    // 0 / 0 counts as 0; NaN operands stay NaN.
    let ratio = if (a == 0.0) & (b == 0.0) { 0.0 } else { ratio };
    let angle = wide::atan::<M>(ratio);
    let angle = if x.is_sign_negative() { PI - angle } else { angle };
    (angle.copysign(y as f64)) as f32
}

/// `sqrt(x^2 + y^2)` without overflow half way; an infinity wins over NaN.
#[inline(always)]
pub fn hypot(x: f32, y: f32) -> f32 {
    let (a, b) = (x as f64, y as f64);
    let out = (a * a + b * b).sqrt() as f32;
    if (x.abs() == f32::INFINITY) | (y.abs() == f32::INFINITY) { f32::INFINITY } else { out }
}
