//! Order, sums and products of elements of any dtype, by the rules of the numeric spec.

use crate::dtype::{BF16, Element, F16};

/// An element that can be compared.
pub trait Ordered: Element + PartialOrd {
    /// Not above anything.
    const LOWEST: Self;
    /// Not below anything.
    const HIGHEST: Self;
    /// True for NaN.
    #[inline(always)]
    #[expect(clippy::eq_op, reason = "only NaN differs from itself")]
    fn is_nan(self) -> bool {
        self != self
    }
    /// Greater than the other, or NaN where the other is not.
    #[inline(always)]
    #[expect(clippy::neg_cmp_op_on_partial_ord, reason = "true for NaN, on purpose")]
    fn beats(self, other: Self) -> bool {
        !(self <= other) & !other.is_nan()
    }
}

macro_rules! ordered {
    ($($rust:ident $lowest:expr, $highest:expr;)*) => {$(
        impl Ordered for $rust {
            const LOWEST: Self = $lowest;
            const HIGHEST: Self = $highest;
        }
    )*};
}
ordered! {
    BF16 BF16(0xff80), BF16(0x7f80);
    F16 F16(0xfc00), F16(0x7c00);
    bool false, true;
    f32 f32::NEG_INFINITY, f32::INFINITY;
    f64 f64::NEG_INFINITY, f64::INFINITY;
    i16 i16::MIN, i16::MAX;
    i32 i32::MIN, i32::MAX;
    i64 i64::MIN, i64::MAX;
    i8 i8::MIN, i8::MAX;
    u16 u16::MIN, u16::MAX;
    u32 u32::MIN, u32::MAX;
    u64 u64::MIN, u64::MAX;
    u8 u8::MIN, u8::MAX;
}

/// Integers wrap, bool is or and and, NaN wins a comparison.
pub trait Ring: Ordered {
    /// What a sum begins with. Negative zero for floats: `-0.0 + x` is `x`, the sign of zero included.
    const NEUTRAL: Self;
    /// One.
    const ONE: Self;
    /// `a + b`.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// `a * b`.
    #[must_use]
    fn times(self, other: Self) -> Self;
    /// The larger; the first of equal ones, and of NaN.
    #[must_use]
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        if self >= other || self.is_nan() { self } else { other }
    }
    /// The smaller; the first of equal ones, and of NaN.
    #[must_use]
    #[inline(always)]
    fn smaller(self, other: Self) -> Self {
        if self <= other || self.is_nan() { self } else { other }
    }
}

macro_rules! ring {
    ($neutral:literal $one:literal |$a:ident, $b:ident| $plus:expr, $times:expr; $($rust:ident)*) => {$(
        impl Ring for $rust {
            const NEUTRAL: Self = $neutral;
            const ONE: Self = $one;
            #[inline(always)]
            fn plus(self, other: Self) -> Self { let ($a, $b) = (self, other); $plus }
            #[inline(always)]
            fn times(self, other: Self) -> Self { let ($a, $b) = (self, other); $times }
        }
    )*};
}
ring!(-0.0 1.0 |a, b| a + b, a * b; f32 f64);
ring!(0 1 |a, b| a.wrapping_add(b), a.wrapping_mul(b); i16 i32 i64 i8 u16 u32 u64 u8);
ring!(false true |a, b| a | b, a & b; bool);
