//! Several passes over a row in one op: softmax and its relatives, normalizations, variance.
//!
//! A row is read once from memory and then stays in cache for its other passes. Narrow floats are widened on reading and
//! rounded on writing; rows with gaps are gathered, those of one task together. Sums over rows run in blocks cut by shape.

mod batch_norm;
mod columns;
mod cross_entropy;
pub(crate) mod fold;
mod layer_norm;
mod moments;
mod softmax;
#[cfg(test)]
mod tests;

use crate::array::Array;
use crate::array::dtype::{BF16, F16, Float};
use crate::array::narrow;
use crate::array::shape::{self, Shape};
use crate::array::view;
use crate::error::{Error, Result};
use crate::machine::lanes::Real;
use crate::machine::threads;
use crate::math::{Fma, exponential};

pub use batch_norm::{batch_norm, batch_norm_backward, batch_norm_train};
pub use cross_entropy::{cross_entropy, cross_entropy_backward};
pub use layer_norm::{layer_norm, layer_norm_backward, rms_norm, rms_norm_backward};
pub use moments::{logsumexp, var};
pub use softmax::{log_softmax, log_softmax_backward, softmax, softmax_backward};

/// Elements per task.
const TASK: usize = 1 << 14;

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

/// Runs an expression with `$T` bound to the Rust type of a float dtype; another dtype is an error of `$op`.
macro_rules! float_rows {
    ($op:expr, $dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::DType::F16 => {
                type $T = crate::array::dtype::F16;
                $body
            }
            $crate::DType::BF16 => {
                type $T = crate::array::dtype::BF16;
                $body
            }
            $crate::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::DType::F64 => {
                type $T = f64;
                $body
            }
            other => Err(Error::value($op, format!("wrong dtype: got {}, expected a float", other.name()))),
        }
    };
}
use float_rows;

/// A view with some axes moved to the end: rows of `len` elements.
struct Rows {
    view: Array,
    len: usize,
}

/// Axes in the order kept, moved.
fn order(rank: usize, moved: &[usize]) -> Shape {
    let mut axes = Shape::empty();
    (0..rank).filter(|axis| !moved.contains(axis)).chain(moved.iter().copied()).for_each(|axis| axes.push(axis));
    axes
}

impl Rows {
    /// Rows along these axes.
    fn along(op: &str, x: &Array, axes: &[usize]) -> Result<Self> {
        let rank = x.rank();
        if axes.windows(2).any(|pair| pair[0] >= pair[1]) || axes.last().is_some_and(|&axis| axis >= rank) {
            return Err(Error::value(op, format!("wrong axis: got {axes:?}, expected ascending axes below {rank}")));
        }
        let len = axes.iter().map(|&axis| x.shape()[axis]).product();
        Ok(Self { view: view::permute_dims(x, &order(rank, axes))?, len })
    }
}

/// The shape as (axes before, the axis, axes after).
fn split_at_axis(op: &str, x: &Array, axis: usize) -> Result<(usize, usize, usize)> {
    let Some(&len) = x.shape().get(axis) else {
        return Err(Error::value(op, format!("wrong axis: got {axis}, expected below {}", x.rank())));
    };
    Ok((numel(&x.shape()[..axis]), len, numel(&x.shape()[axis + 1..])))
}

/// The shape left by a reduction.
fn reduced(x: &Array, axes: &[usize], keepdims: bool) -> Shape {
    let mut out = Shape::empty();
    for (axis, &n) in x.shape().iter().enumerate() {
        if !axes.contains(&axis) {
            out.push(n);
        } else if keepdims {
            out.push(1);
        }
    }
    out
}

/// Calls `work(first, end)` for blocks of rows, in parallel when there is enough to do. Where the cuts lie depends on
/// the shape alone.
fn for_rows(count: usize, len: usize, work: &(dyn Fn(usize, usize) + Sync)) {
    for_blocks(count, len, (TASK / len.max(1)).max(1), work);
}

/// [`for_rows`] of arrays that may have gaps: then a block has rows enough to use whole cache lines of turned ones, up to
/// the size of a second-level cache.
fn for_gathered_rows(gaps: bool, count: usize, len: usize, work: &(dyn Fn(usize, usize) + Sync)) {
    let len = len.max(1);
    let least = if gaps { (8 * TASK / len).min(16) } else { 1 };
    for_blocks(count, len, (TASK / len).max(least).max(1), work);
}

fn for_blocks(count: usize, len: usize, block: usize, work: &(dyn Fn(usize, usize) + Sync)) {
    let blocks = count.div_ceil(block);
    let one = |index: usize| work(index * block, ((index + 1) * block).min(count));
    if count * len < 2 * TASK { (0..blocks).for_each(one) } else { threads::parallel(blocks, &one) }
}

/// A vector of per-column or per-channel parameters, widened.
fn parameter<W: Wide, T: Float<Wide = W>>(op: &str, x: Option<&Array>, len: usize) -> Result<Option<Vec<W>>> {
    let Some(x) = x else { return Ok(None) };
    if x.shape()[..] != [len] || x.dtype() != T::DTYPE {
        let text = format!("parameter does not fit: got {x:?}, expected {} [{len}]", T::DTYPE.name());
        return Err(Error::value(op, text));
    }
    Ok(Some(x.to_vec::<T>()?.into_iter().map(Float::widen).collect()))
}

/// A float array of these values.
fn narrowed<T: Float>(values: &[T::Wide], shape: &[usize]) -> Result<Array> {
    let mut out = Array::uninit(T::DTYPE, shape)?;
    out.as_mut_slice::<T>().iter_mut().zip(values).for_each(|(slot, &value)| *slot = T::narrow(value));
    Ok(out)
}

/// Both operands have one shape and dtype.
fn check_alike(op: &str, a: &Array, b: &Array) -> Result<()> {
    if a.shape() == b.shape() && a.dtype() == b.dtype() {
        return Ok(());
    }
    Err(Error::value(op, format!("operands differ: got {a:?} and {b:?}, expected one shape and dtype")))
}

fn numel(shape: &[usize]) -> usize {
    shape::numel(shape)
}
