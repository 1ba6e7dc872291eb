//! The floats that kernels compute in, and those that arrays hold.

use super::narrow;
use crate::dtype::{BF16, F16, Float};
use crate::machine::lanes::Real;
use crate::math::{Fma, exponential};

/// A type that rows are computed in.
pub trait Wide: Real + Float<Wide = Self> {
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// Minus infinity.
    const LOWEST: Self;
    /// Exponential.
    #[must_use]
    fn exp<M: Fma>(self) -> Self;
    /// Exponential of a number up to 0, or NaN; small results may be 0.
    #[must_use]
    fn exp_below<M: Fma>(self) -> Self;
    /// Natural logarithm.
    #[must_use]
    fn ln(self) -> Self;
    /// Square root.
    #[must_use]
    fn sqrt(self) -> Self;
    /// `self * by + plus`.
    #[must_use]
    fn times_plus<M: Fma>(self, by: Self, plus: Self) -> Self;
    /// From a count.
    fn count(n: usize) -> Self {
        Self::from_f64(n as f64)
    }
}

impl Wide for f32 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    const LOWEST: Self = f32::NEG_INFINITY;
    #[inline(always)]
    fn exp<M: Fma>(self) -> Self {
        exponential::exp::<M>(self)
    }
    #[inline(always)]
    fn exp_below<M: Fma>(self) -> Self {
        exponential::exp_below::<M>(self)
    }
    #[inline(always)]
    fn ln(self) -> Self {
        f32::ln(self)
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        f32::sqrt(self)
    }
    #[inline(always)]
    fn times_plus<M: Fma>(self, by: Self, plus: Self) -> Self {
        M::fma(self, by, plus)
    }
}

impl Wide for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    const LOWEST: Self = f64::NEG_INFINITY;
    #[inline(always)]
    fn exp<M: Fma>(self) -> Self {
        f64::exp(self)
    }
    #[inline(always)]
    fn exp_below<M: Fma>(self) -> Self {
        f64::exp(self)
    }
    #[inline(always)]
    fn ln(self) -> Self {
        f64::ln(self)
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        f64::sqrt(self)
    }
    #[inline(always)]
    fn times_plus<M: Fma>(self, by: Self, plus: Self) -> Self {
        M::fma64(self, by, plus)
    }
}

/// A float that rows hold. Kernels see rows of [`Wide`]: those of `f32` and `f64` themselves, copies of the others.
pub trait RowElement: Float<Wide: Wide> {
    /// Elements of a buffer for a row of `len`.
    fn buffer(len: usize) -> usize;
    /// The row, in the buffer where it has to be widened.
    fn read<'a>(row: &'a [Self], buffer: &'a mut [Self::Wide]) -> &'a [Self::Wide];
    /// Lets `work` fill the row, by way of the buffer where it has to be narrowed.
    fn write(row: &mut [Self], buffer: &mut [Self::Wide], work: impl FnOnce(&mut [Self::Wide]));
    /// The row itself, where it need not be narrowed.
    fn wide(row: &mut [Self]) -> Option<&mut [Self::Wide]>;
    /// The elements of a row, where they need no widening.
    fn wide_at(row: *const Self) -> Option<*const Self::Wide>;
    /// Copies a row into a buffer of its length, widened.
    fn load(row: &[Self], buffer: &mut [Self::Wide]);
    /// Copies a buffer into a row of its length, narrowed.
    fn save(buffer: &[Self::Wide], row: &mut [Self]);
}

macro_rules! row_elements {
    ($($rust:ident $widen:path, $narrow:path;)*) => {$(
        impl RowElement for $rust {
            fn buffer(len: usize) -> usize {
                len
            }
            #[inline]
            fn read<'a>(row: &'a [Self], buffer: &'a mut [f32]) -> &'a [f32] {
                $widen(row, &mut buffer[..row.len()]);
                &buffer[..row.len()]
            }
            #[inline]
            fn write(row: &mut [Self], buffer: &mut [f32], work: impl FnOnce(&mut [f32])) {
                let buffer = &mut buffer[..row.len()];
                work(buffer);
                $narrow(buffer, row);
            }
            fn wide(_: &mut [Self]) -> Option<&mut [f32]> {
                None
            }
            fn wide_at(_: *const Self) -> Option<*const f32> {
                None
            }
            fn load(row: &[Self], buffer: &mut [f32]) {
                $widen(row, buffer);
            }
            fn save(buffer: &[f32], row: &mut [Self]) {
                $narrow(buffer, row);
            }
        }
    )*};
    ($($rust:ident)*) => {$(
        impl RowElement for $rust {
            #[inline(always)]
            fn buffer(_: usize) -> usize {
                0
            }
            #[inline(always)]
            fn read<'a>(row: &'a [Self], _: &'a mut [Self]) -> &'a [Self] {
                row
            }
            #[inline(always)]
            fn write(row: &mut [Self], _: &mut [Self], work: impl FnOnce(&mut [Self])) {
                work(row);
            }
            fn wide(row: &mut [Self]) -> Option<&mut [Self]> {
                Some(row)
            }
            fn wide_at(row: *const Self) -> Option<*const Self> {
                Some(row)
            }
            fn load(row: &[Self], buffer: &mut [Self]) {
                buffer.copy_from_slice(row);
            }
            fn save(buffer: &[Self], row: &mut [Self]) {
                row.copy_from_slice(buffer);
            }
        }
    )*};
}
row_elements!(f32 f64);
row_elements! {
    BF16 narrow::widen_bf16, narrow::narrow_bf16;
    F16 narrow::widen_f16, narrow::narrow_f16;
}
