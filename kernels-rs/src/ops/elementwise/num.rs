//! Arithmetic that the rows of the table are generic over, with the rules of the numeric spec: integers wrap, division
//! by 0 gives 0, NaN propagates through `maximum` and `minimum`, rounding is half to even.

use crate::array::number::Ring;

/// Floats and integers.
pub trait Num: Ring + PartialOrd {
    /// Zero.
    const ZERO: Self;
    /// `|x|`.
    fn absolute(self) -> Self;
    /// `a - b`.
    fn minus(self, other: Self) -> Self;
    /// `-x`.
    fn opposite(self) -> Self;
    /// -1, 0, 1 or NaN.
    fn signum_zero(self) -> Self;
    /// Rounded up.
    fn round_up(self) -> Self;
    /// Rounded down.
    fn round_down(self) -> Self;
    /// Rounded to the nearest, half to even.
    fn round_even(self) -> Self;
    /// Rounded toward 0.
    fn round_zero(self) -> Self;
    /// Quotient rounded down.
    fn floor_divided(self, other: Self) -> Self;
    /// Remainder with the sign of the divisor.
    fn floor_remainder(self, other: Self) -> Self;
    /// Remainder with the sign of the dividend.
    fn trunc_remainder(self, other: Self) -> Self;
    /// Not NaN and not infinite.
    fn finite(self) -> bool;
    /// Infinite.
    fn infinite(self) -> bool;
    /// NaN.
    fn not_a_number(self) -> bool;
}

/// The exact quotient rounded down, as long as `f64` holds it; NaN for an infinite dividend, as in Python.
#[inline(always)]
fn floor_divided(a: f64, b: f64) -> f64 {
    let quotient = (a / b).floor();
    // The division may have rounded up to a whole number: the sign of what is left tells, for it is exact.
    let rest = (-quotient).mul_add(b, a);
    let rest = if b.abs() == f64::INFINITY { a } else { rest };
    let above = ((rest < 0.0) & (b > 0.0)) | ((rest > 0.0) & (b < 0.0));
    let quotient = if above { quotient - 1.0 } else { quotient };
    if (a.abs() == f64::INFINITY) & (b != 0.0) { f64::NAN } else { quotient }
}

macro_rules! float_num {
    ($($ty:ident),*) => {$(
        impl Num for $ty {
            const ZERO: Self = 0.0;
            #[inline(always)]
            fn absolute(self) -> Self { self.abs() }
            #[inline(always)]
            fn minus(self, other: Self) -> Self { self - other }
            #[inline(always)]
            fn opposite(self) -> Self { -self }
            #[inline(always)]
            fn signum_zero(self) -> Self {
                let sign = if self > 0.0 { 1.0 } else { 0.0 };
                let sign = if self < 0.0 { -1.0 } else { sign };
                if self.is_nan() { self } else { sign }
            }
            #[inline(always)]
            fn round_up(self) -> Self { self.ceil() }
            #[inline(always)]
            fn round_down(self) -> Self { self.floor() }
            #[inline(always)]
            fn round_even(self) -> Self { self.round_ties_even() }
            #[inline(always)]
            fn round_zero(self) -> Self { self.trunc() }
            #[inline(always)]
            fn floor_divided(self, other: Self) -> Self { floor_divided(self as f64, other as f64) as $ty }
            #[inline(always)]
            fn floor_remainder(self, other: Self) -> Self {
                let rest = self % other;
                if rest == 0.0 {
                    (0.0 as $ty).copysign(other)
                } else if (rest < 0.0) == (other < 0.0) {
                    rest
                } else {
                    rest + other
                }
            }
            #[inline(always)]
            fn trunc_remainder(self, other: Self) -> Self { self % other }
            #[inline(always)]
            fn finite(self) -> bool { self.abs() < $ty::INFINITY }
            #[inline(always)]
            fn infinite(self) -> bool { self.abs() == $ty::INFINITY }
            #[inline(always)]
            fn not_a_number(self) -> bool { self.is_nan() }
        }
    )*};
}
float_num!(f32, f64);

macro_rules! int_num {
    ($($ty:ident |$x:ident| $absolute:expr, $sign:expr;)*) => {$(
        impl Num for $ty {
            const ZERO: Self = 0;
            #[inline(always)]
            fn absolute(self) -> Self { let $x = self; $absolute }
            #[inline(always)]
            fn minus(self, other: Self) -> Self { self.wrapping_sub(other) }
            #[inline(always)]
            fn opposite(self) -> Self { self.wrapping_neg() }
            #[inline(always)]
            fn signum_zero(self) -> Self { let $x = self; $sign }
            #[inline(always)]
            fn round_up(self) -> Self { self }
            #[inline(always)]
            fn round_down(self) -> Self { self }
            #[inline(always)]
            fn round_even(self) -> Self { self }
            #[inline(always)]
            fn round_zero(self) -> Self { self }
            #[inline(always)]
            fn floor_divided(self, other: Self) -> Self {
                if other == 0 {
                    return 0;
                }
                let quotient = self.wrapping_div(other);
                let exact = self.wrapping_rem(other) == 0;
                if exact || (self > 0) == (other > 0) { quotient } else { quotient.wrapping_sub(1) }
            }
            #[inline(always)]
            fn floor_remainder(self, other: Self) -> Self {
                if other == 0 {
                    return 0;
                }
                let rest = self.wrapping_rem(other);
                if rest == 0 || (rest > 0) == (other > 0) { rest } else { rest.wrapping_add(other) }
            }
            #[inline(always)]
            fn trunc_remainder(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_rem(other) }
            }
            #[inline(always)]
            fn finite(self) -> bool { true }
            #[inline(always)]
            fn infinite(self) -> bool { false }
            #[inline(always)]
            fn not_a_number(self) -> bool { false }
        }
    )*};
}
int_num! {
    i8 |x| x.wrapping_abs(), x.signum();
    i16 |x| x.wrapping_abs(), x.signum();
    i32 |x| x.wrapping_abs(), x.signum();
    i64 |x| x.wrapping_abs(), x.signum();
    u8 |x| x, (x != 0) as u8;
    u16 |x| x, (x != 0) as u16;
    u32 |x| x, (x != 0) as u32;
    u64 |x| x, (x != 0) as u64;
}

/// Integers.
pub trait Int: Num {
    /// `x << by`, 0 when `by` is negative or not below the width.
    fn shifted_left(self, by: Self) -> Self;
    /// `x >> by` with the sign kept; the sign alone when `by` is negative or not below the width.
    fn shifted_right(self, by: Self) -> Self;
    /// `x ** n` for `n >= 0`, wrapping.
    fn raised(self, n: Self) -> Self;
}

macro_rules! int_ops {
    ($($ty:ident $fill:expr;)*) => {$(
        impl Int for $ty {
            #[inline(always)]
            fn shifted_left(self, by: Self) -> Self {
                if (by as u64) < $ty::BITS as u64 { self.wrapping_shl(by as u32) } else { 0 }
            }
            #[inline(always)]
            fn shifted_right(self, by: Self) -> Self {
                if (by as u64) < $ty::BITS as u64 { self.wrapping_shr(by as u32) } else { $fill(self) }
            }
            #[inline(always)]
            fn raised(self, n: Self) -> Self {
                let (mut base, mut n, mut out) = (self, n as u64, 1 as $ty);
                while n > 0 {
                    if n & 1 == 1 {
                        out = out.wrapping_mul(base);
                    }
                    base = base.wrapping_mul(base);
                    n >>= 1;
                }
                out
            }
        }
    )*};
}
int_ops! {
    i8 |x| if x < 0 { -1 } else { 0 };
    i16 |x| if x < 0 { -1 } else { 0 };
    i32 |x| if x < 0 { -1 } else { 0 };
    i64 |x| if x < 0 { -1 } else { 0 };
    u8 |_| 0;
    u16 |_| 0;
    u32 |_| 0;
    u64 |_| 0;
}
