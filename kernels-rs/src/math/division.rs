//! Remainders, exact, in `f64` lanes.

use super::Fma;

/// Largest quotient of the vector path: with it, the product of quotient and divisor is exact in `f64`.
const LIMIT: f32 = 134217728.0; // 2^27

/// True where the vector path does not hold.
#[inline(always)]
pub fn is_far(a: f32, b: f32) -> bool {
    a.abs() >= b.abs() * LIMIT
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
