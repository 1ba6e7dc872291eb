//! What a reduction computes: a neutral value, how an element enters, how two values become one.

use crate::dtype::{BF16, Element, F16};
use std::marker::PhantomData;

/// One reduction over elements of one type. `combine` must take the neutral value on either side without changing a
/// bit of the other one: short blocks are filled with it.
pub trait Fold: 'static {
    /// Stored type. `bool` goes as `u8`.
    type In: Element;
    /// What partial results are held in.
    type Acc: Element;
    /// Goes on folding values of type `Acc`.
    type Again: Fold<In = Self::Acc, Acc = Self::Acc>;
    /// The neutral value.
    const NEUTRAL: Self::Acc;
    /// The element as a partial result.
    fn lift(x: Self::In) -> Self::Acc;
    /// Two partial results, the earlier one first.
    fn combine(a: Self::Acc, b: Self::Acc) -> Self::Acc;
}

/// An element that sums and products accumulate in `Acc`.
pub trait Widen: Element {
    /// `f32` for narrow floats, `i64` for integers (unsigned ones wrap to the same bits).
    type Acc: Accumulator;
    /// Exact, or wrapping.
    fn widen(self) -> Self::Acc;
}

/// A type that sums and products are computed in.
pub trait Accumulator: Widen<Acc = Self> {
    /// Negative zero for floats: `-0.0 + x` is `x`, the sign of zero included.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// Integers wrap.
    fn add(self, other: Self) -> Self;
    /// Integers wrap.
    fn mul(self, other: Self) -> Self;
}

macro_rules! widen {
    ($($rust:ident $acc:ident |$x:ident| $body:expr;)*) => {$(
        impl Widen for $rust {
            type Acc = $acc;
            #[inline(always)]
            fn widen(self) -> $acc { let $x = self; $body }
        }
    )*};
}
widen! {
    BF16 f32 |x| x.to_f32();
    F16 f32 |x| x.to_f32();
    f32 f32 |x| x;
    f64 f64 |x| x;
    i16 i64 |x| x as i64;
    i32 i64 |x| x as i64;
    i64 i64 |x| x;
    i8 i64 |x| x as i64;
    u16 i64 |x| x as i64;
    u32 i64 |x| x as i64;
    u8 i64 |x| x as i64;
}

macro_rules! accumulators {
    ($($rust:ident $zero:literal $one:literal |$a:ident, $b:ident| $add:expr, $mul:expr;)*) => {$(
        impl Accumulator for $rust {
            const ZERO: Self = $zero;
            const ONE: Self = $one;
            #[inline(always)]
            fn add(self, other: Self) -> Self { let ($a, $b) = (self, other); $add }
            #[inline(always)]
            fn mul(self, other: Self) -> Self { let ($a, $b) = (self, other); $mul }
        }
    )*};
}
accumulators! {
    f32 -0.0 1.0 |a, b| a + b, a * b;
    f64 -0.0 1.0 |a, b| a + b, a * b;
    i64 0 1 |a, b| a.wrapping_add(b), a.wrapping_mul(b);
}

/// The sum.
pub struct Sum<T>(PhantomData<T>);
/// The product.
pub struct Prod<T>(PhantomData<T>);
/// The largest; NaN if there is one.
pub struct Max<T>(PhantomData<T>);
/// The smallest; NaN if there is one.
pub struct Min<T>(PhantomData<T>);

impl<T: Widen> Fold for Sum<T> {
    type In = T;
    type Acc = T::Acc;
    type Again = Sum<T::Acc>;
    const NEUTRAL: T::Acc = T::Acc::ZERO;
    #[inline(always)]
    fn lift(x: T) -> T::Acc {
        x.widen()
    }
    #[inline(always)]
    fn combine(a: T::Acc, b: T::Acc) -> T::Acc {
        a.add(b)
    }
}

impl<T: Widen> Fold for Prod<T> {
    type In = T;
    type Acc = T::Acc;
    type Again = Prod<T::Acc>;
    const NEUTRAL: T::Acc = T::Acc::ONE;
    #[inline(always)]
    fn lift(x: T) -> T::Acc {
        x.widen()
    }
    #[inline(always)]
    fn combine(a: T::Acc, b: T::Acc) -> T::Acc {
        a.mul(b)
    }
}

/// An element that can be compared; narrow floats are compared as `f32`.
pub trait Ordered: Element {
    /// What it is compared as.
    type Key: Ordered<Key = Self::Key> + PartialOrd;
    /// Not above anything.
    const LOWEST: Self::Key;
    /// Not below anything.
    const HIGHEST: Self::Key;
    /// Exact.
    fn key(self) -> Self::Key;
}

macro_rules! ordered {
    ($($rust:ident $key:ident $lowest:expr, $highest:expr, |$x:ident| $body:expr;)*) => {$(
        impl Ordered for $rust {
            type Key = $key;
            const LOWEST: $key = $lowest;
            const HIGHEST: $key = $highest;
            #[inline(always)]
            fn key(self) -> $key { let $x = self; $body }
        }
    )*};
}
ordered! {
    BF16 f32 f32::NEG_INFINITY, f32::INFINITY, |x| x.to_f32();
    F16 f32 f32::NEG_INFINITY, f32::INFINITY, |x| x.to_f32();
    f32 f32 f32::NEG_INFINITY, f32::INFINITY, |x| x;
    f64 f64 f64::NEG_INFINITY, f64::INFINITY, |x| x;
    i16 i16 i16::MIN, i16::MAX, |x| x;
    i32 i32 i32::MIN, i32::MAX, |x| x;
    i64 i64 i64::MIN, i64::MAX, |x| x;
    i8 i8 i8::MIN, i8::MAX, |x| x;
    u16 u16 u16::MIN, u16::MAX, |x| x;
    u32 u32 u32::MIN, u32::MAX, |x| x;
    u64 u64 u64::MIN, u64::MAX, |x| x;
    u8 u8 u8::MIN, u8::MAX, |x| x;
}

macro_rules! extremes {
    ($($fold:ident $neutral:ident $better:tt;)*) => {$(
        impl<T: Ordered> Fold for $fold<T> {
            type In = T;
            type Acc = T::Key;
            type Again = $fold<T::Key>;
            const NEUTRAL: T::Key = T::$neutral;
            #[inline(always)]
            fn lift(x: T) -> T::Key {
                x.key()
            }
            #[inline(always)]
            #[allow(clippy::eq_op)] // `a != a` finds NaN and folds away for integers.
            fn combine(a: T::Key, b: T::Key) -> T::Key {
                if a $better b || a != a { a } else { b }
            }
        }
    )*};
}
extremes! {
    Max LOWEST >=;
    Min HIGHEST <=;
}
