//! Several passes over a row in one op: softmax and its relatives, normalizations, variance.
//!
//! A row is read once from memory and then stays in cache for its other passes. Narrow floats are widened on reading and
//! rounded on writing; rows with gaps are gathered, those of one task together. Sums over rows run in blocks cut by shape.

mod batch_norm;
mod columns;
mod cross_entropy;
mod layer_norm;
mod moments;
mod short;
mod softmax;
#[cfg(test)]
mod tests;

use crate::array::Array;
use crate::array::float::{RowElement, Wide};
use crate::array::shape::{self, Shape};
use crate::array::view;
use crate::dtype::{DType, Float};
use crate::error::{Error, Result};
use crate::machine::threads;
use crate::ops::elementwise::convert::cast;

pub use batch_norm::{batch_norm, batch_norm_backward, batch_norm_train};
pub use cross_entropy::{cross_entropy, cross_entropy_backward};
pub use layer_norm::{layer_norm, layer_norm_backward, rms_norm, rms_norm_backward};
pub use moments::{logsumexp, std, var};
pub use softmax::{log_softmax, log_softmax_backward, softmax, softmax_backward};

/// Elements per task.
const TASK: usize = 1 << 14;

/// Runs an expression with `$T` bound to the Rust type of a float dtype; another dtype is an error of `$op`.
macro_rules! float_rows {
    ($op:expr, $dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::DType::F16 => {
                type $T = crate::dtype::F16;
                $body
            }
            $crate::DType::BF16 => {
                type $T = crate::dtype::BF16;
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

/// What the softmax family makes of a row. The second operand of the forward ops is the first one.
#[derive(Clone, Copy)]
enum Op {
    Softmax,
    LogSoftmax,
    SoftmaxBackward,
    LogSoftmaxBackward,
}

/// What to shift a row by: the maximum, or 0 for a row of minus infinities.
#[inline(always)]
fn finite<W: Wide>(top: W) -> W {
    if top == W::LOWEST { W::ZERO } else { top }
}

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

/// A copy in float64: ops run again on it where squares leave the range of a narrower type.
fn wide(x: &Array) -> Result<Array> {
    cast(x, DType::F64)
}

/// A variance; what rounding leaves of one that is 0 may be below it.
#[inline(always)]
fn not_below_zero<W: Wide>(var: W) -> W {
    if var < W::ZERO { W::ZERO } else { var }
}

/// What is made of the sum of squared distances.
#[derive(Clone, Copy)]
struct Spread {
    /// Less than the count by this.
    correction: f64,
    /// Of what that gives, the root.
    root: bool,
}

impl Spread {
    /// From the sums of distances from about the mean, and of their squares.
    #[inline(always)]
    fn of<W: Wide>(self, [first, second]: [W; 2], count: usize) -> W {
        let squares = not_below_zero(second - first / W::count(count) * first);
        let var = squares / W::from_f64((count as f64 - self.correction).max(0.0));
        if self.root { var.sqrt() } else { var }
    }
}

/// A correction; none beside an infinity, whose product with a correction of 0 is NaN.
#[inline(always)]
fn finite_or_zero<W: Wide>(x: W) -> W {
    if x.to_f64().is_finite() { x } else { W::ZERO }
}

fn numel(shape: &[usize]) -> usize {
    shape::numel(shape)
}
