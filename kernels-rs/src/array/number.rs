//! Sums and products of elements of any dtype, by the rules of the numeric spec.

use crate::dtype::Element;

/// Integers wrap, bool is or and and, NaN wins a comparison.
pub trait Ring: Element {
    /// `a + b`.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// `a * b`.
    #[must_use]
    fn times(self, other: Self) -> Self;
    /// The larger.
    #[must_use]
    fn larger(self, other: Self) -> Self;
    /// The smaller.
    #[must_use]
    fn smaller(self, other: Self) -> Self;
}

macro_rules! ring {
    ($($rust:ident |$a:ident, $b:ident| $plus:expr, $times:expr, $larger:expr, $smaller:expr;)*) => {$(
        impl Ring for $rust {
            #[inline(always)]
            fn plus(self, other: Self) -> Self { let ($a, $b) = (self, other); $plus }
            #[inline(always)]
            fn times(self, other: Self) -> Self { let ($a, $b) = (self, other); $times }
            #[inline(always)]
            fn larger(self, other: Self) -> Self { let ($a, $b) = (self, other); $larger }
            #[inline(always)]
            fn smaller(self, other: Self) -> Self { let ($a, $b) = (self, other); $smaller }
        }
    )*};
    (float $($rust:ident)*) => {
        ring! {$(
            $rust |a, b| a + b, a * b, if a >= b || a.is_nan() { a } else { b }, if a <= b || a.is_nan() { a } else { b };
        )*}
    };
    (int $($rust:ident)*) => {
        ring! {$(
            $rust |a, b| a.wrapping_add(b), a.wrapping_mul(b), if a >= b { a } else { b }, if a <= b { a } else { b };
        )*}
    };
}
ring!(float f32 f64);
ring!(int i8 i16 i32 i64 u8 u16 u32 u64);
ring! {
    bool |a, b| a | b, a & b, a | b, a & b;
}
