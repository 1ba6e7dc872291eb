//! Quotients rounded down and remainders, exact. Remainders are computed in `f64` lanes.

use super::Fma;

/// Bound of the quotients of [`floor_divide`]: below it `f32` holds all whole numbers.
pub const WHOLE: f32 = 16777216.0; // 2^24

/// Bound of the quotients of remainders: below it the product of quotient and divisor is exact in `f64`.
pub const EXACT: f32 = 134217728.0; // 2^27

/// True where the quotient is not below the bound, 0 / 0 and NaN apart: there a function of this file does not hold.
#[inline(always)]
pub fn is_far(a: f32, b: f32, bound: f32) -> bool {
    a.abs() >= b.abs() * bound
}

/// The exact quotient rounded down, unless [`is_far`]; NaN for an infinite dividend, as in Python.
///
/// Rounding keeps order, so the rounded quotient is below no whole number that the exact one reaches: its floor is right or,
/// where it was rounded up to a whole number, one too large. The sign of what is left tells.
#[inline(always)]
pub fn floor_divide<M: Fma>(a: f32, b: f32) -> f32 {
    let quotient = (a / b).floor();
    let rest = M::rest(a, quotient, b);
    let rest = if b.abs() == f32::INFINITY { a } else { rest };
    let above = ((rest < 0.0) & (b > 0.0)) | ((rest > 0.0) & (b < 0.0));
    let quotient = if above { quotient - 1.0 } else { quotient };
    if (a.abs() == f32::INFINITY) & (b != 0.0) { f32::NAN } else { quotient }
}

/// The remainder with the sign of `a`, unless [`is_far`].
#[inline(always)]
pub fn fmod<M: Fma>(a: f32, b: f32) -> f32 {
    let (x, y) = (a as f64, b as f64);
    let rest = M::fma64(-(x / y).trunc(), y, x);
    // The quotient may have been rounded up to a whole number.
    let rest = if rest * x < 0.0 { rest + y.abs().copysign(x) } else { rest };
    let rest = if (y.abs() == f64::INFINITY) & (x.abs() < f64::INFINITY) { x } else { rest };
    (if rest == 0.0 { rest.copysign(x) } else { rest }) as f32
}

/// The remainder with the sign of `b`, unless [`is_far`].
#[inline(always)]
pub fn remainder<M: Fma>(a: f32, b: f32) -> f32 {
    let rest = fmod::<M>(a, b);
    let moved = if (rest < 0.0) == (b < 0.0) { rest } else { rest + b };
    if rest == 0.0 { 0f32.copysign(b) } else { moved }
}

#[cfg(test)]
mod tests;
