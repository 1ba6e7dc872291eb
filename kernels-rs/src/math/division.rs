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
mod tests {
    use super::*;
    use crate::math::{Fused, Split};
    use crate::ops::elementwise::num::Num;
    use crate::ops::samples::Rng;

    fn check(a: f32, b: f32) {
        if !is_far(a, b, WHOLE) {
            let exact = a.floor_divided(b);
            for got in [floor_divide::<Fused>(a, b), floor_divide::<Split>(a, b)] {
                assert!(
                    got.to_bits() == exact.to_bits() || got.is_nan() && exact.is_nan(),
                    "{a:e} // {b:e}: {got} {exact}"
                );
            }
        }
    }

    #[test]
    fn the_quotient_of_f32_lanes_is_that_of_f64() {
        let mut special: Vec<f32> = (-3..=3).flat_map(|n| [n as f32, n as f32 * 0.1]).collect();
        for value in
            [f32::INFINITY, f32::NAN, f32::MAX, f32::MIN_POSITIVE, 1e-45, 3e-45, 1e-40, WHOLE, WHOLE - 1.0, 1e38]
        {
            special.extend([value, -value]);
        }
        special.push(-0.0);
        for &a in &special {
            for &b in &special {
                check(a, b);
            }
        }
        let mut rng = Rng::new(7);
        let bits = |rng: &mut Rng| f32::from_bits(rng.below(1 << 32) as u32);
        for _ in 0..2_000_000 {
            let (a, b) = (bits(&mut rng), bits(&mut rng));
            check(a, b);
            // Quotients near whole numbers of every size, and operands of like size.
            let digits = rng.below(25);
            let whole = rng.below(1 << digits) as f32;
            let near = f32::from_bits((b * whole).to_bits().wrapping_add(rng.below(5) as u32).wrapping_sub(2));
            check(near, b);
            check(-near, b);
            check(f32::from_bits(a.to_bits() & 0x807f_ffff | b.to_bits() & 0x7f80_0000), b);
        }
    }
}
