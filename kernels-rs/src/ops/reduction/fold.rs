//! What a reduction computes: a neutral value, how an element enters, how two values become one.

use crate::array::number::{Ordered, Ring};
use crate::dtype::Element;
use std::marker::PhantomData;

/// One reduction over elements of one type. `combine` must take the neutral value on either side without changing a
/// bit of the other one: short blocks are filled with it.
pub trait Fold: 'static {
    /// Stored type. `bool` goes as `u8`.
    type In: Element;
    /// What partial results are held in.
    type Acc: Element;
    /// Goes on folding the results of blocks.
    type Again: Fold<In = Self::Acc>;
    /// The neutral value.
    const NEUTRAL: Self::Acc;
    /// The element as a partial result.
    fn lift(x: Self::In) -> Self::Acc;
    /// Two partial results, the earlier one first.
    fn combine(a: Self::Acc, b: Self::Acc) -> Self::Acc;
}

/// A type that sums and products are computed in.
pub trait Accumulator: Ring {
    /// What the results of many blocks are added in.
    type Wide: Accumulator<Wide = Self::Wide>;
}

/// An element that can be accumulated in `A`: exact, or wrapping (unsigned integers wrap to the same bits).
pub trait Widen<A>: Element {
    /// The value in the wider type.
    fn widen(self) -> A;
}

macro_rules! accumulators {
    ($($rust:ident $wide:ident;)*) => {$(
        impl Accumulator for $rust {
            type Wide = $wide;
        }
        impl Widen<$wide> for $rust {
            #[inline(always)]
            fn widen(self) -> $wide { self as $wide }
        }
    )*};
}
accumulators! {
    f32 f32;
    f64 f64;
    i32 i64;
    i64 i64;
}

macro_rules! widen {
    ($($rust:ident $acc:ident |$x:ident| $body:expr;)*) => {$(
        impl Widen<$acc> for $rust {
            #[inline(always)]
            fn widen(self) -> $acc { let $x = self; $body }
        }
    )*};
}
widen! {
    u8 i32 |x| x as i32;
}

/// The sum of elements `T`, within a block in `A`: `f32` for narrow floats, `i32` for integers so narrow that a block
/// cannot overflow, else `i64`.
pub struct Sum<T, A>(PhantomData<(T, A)>);
/// The sum of squares, in the type of the elements.
pub struct Squares<T>(PhantomData<T>);
/// The product.
pub struct Prod<T, A>(PhantomData<(T, A)>);
/// The largest; NaN if there is one.
pub struct Max<T>(PhantomData<T>);
/// The smallest; NaN if there is one.
pub struct Min<T>(PhantomData<T>);

impl<T: Widen<A>, A: Accumulator + Widen<A::Wide>> Fold for Sum<T, A>
where
    A::Wide: Widen<A::Wide>,
{
    type In = T;
    type Acc = A;
    type Again = Sum<A, A::Wide>;
    const NEUTRAL: A = A::NEUTRAL;
    #[inline(always)]
    fn lift(x: T) -> A {
        x.widen()
    }
    #[inline(always)]
    fn combine(a: A, b: A) -> A {
        a.plus(b)
    }
}

impl<T: Accumulator<Wide = T> + Widen<T>> Fold for Squares<T> {
    type In = T;
    type Acc = T;
    type Again = Sum<T, T>;
    const NEUTRAL: T = T::NEUTRAL;
    #[inline(always)]
    fn lift(x: T) -> T {
        x.times(x)
    }
    #[inline(always)]
    fn combine(a: T, b: T) -> T {
        a.plus(b)
    }
}

impl<T: Widen<A>, A: Accumulator + Widen<A>> Fold for Prod<T, A> {
    type In = T;
    type Acc = A;
    type Again = Prod<A, A>;
    const NEUTRAL: A = A::ONE;
    #[inline(always)]
    fn lift(x: T) -> A {
        x.widen()
    }
    #[inline(always)]
    fn combine(a: A, b: A) -> A {
        a.times(b)
    }
}

macro_rules! extremes {
    ($($fold:ident $neutral:ident $better:tt;)*) => {$(
        impl<T: Ordered> Fold for $fold<T> {
            type In = T;
            type Acc = T;
            type Again = Self;
            const NEUTRAL: T = T::$neutral;
            #[inline(always)]
            fn lift(x: T) -> T {
                x
            }
            #[inline(always)]
            fn combine(a: T, b: T) -> T {
                let better = if b $better a { b } else { a };
                // Not `b`: a choice between `a` and `b` alone becomes a masked store, which is slow.
                if b.is_nan() { T::from_f64(f64::NAN) } else { better }
            }
        }
    )*};
}
extremes! {
    Max LOWEST >;
    Min HIGHEST <;
}
