//! Reductions over any set of axes of any layout. The order of float additions depends on shape and axes alone
//! ([`block`]), so results do not change with the number of threads or the layout.

mod arg;
mod block;
mod dense;
mod fold;
mod kernel;
mod pass;
#[cfg(test)]
mod tests;

pub use arg::{argmax, argmin};
pub use block::BLOCK;
pub use dense::RowFold;

use crate::array::Array;
use crate::array::shape::{self, Shape, contiguous_strides};
use crate::dispatch;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::ops::elementwise::convert::cast;
use block::RowJob;
use kernel::{Kernel, Reduction};
use pass::{Axes, Axis, Pass};

/// Elements up to which planning costs more than the work.
const FEW: usize = 4 << 10;

/// The sum, as `dtype`. Integers wrap; floats narrower than `f32` accumulate in `f32`. Floats are cast before they are
/// summed as integers or as wider floats; integers after they are summed for a float, where their sums cannot wrap.
pub fn sum(x: &Array, axes: &[usize], keepdims: bool, dtype: DType) -> Result<Array> {
    reduce("sum", Reduction::Sum, x, axes, keepdims, dtype, None)
}

/// The product, as `dtype`. Integers wrap; floats narrower than `f32` accumulate in `f32`. Integers are cast before they
/// are multiplied as floats.
pub fn prod(x: &Array, axes: &[usize], keepdims: bool, dtype: DType) -> Result<Array> {
    let x = if x.dtype().is_float() && !dtype.is_float() { cast(x, dtype)? } else { x.clone() };
    // There are loops for wide types only.
    let wide = match x.dtype() {
        whole if !whole.is_float() && dtype.is_float() => cast(&x, DType::F64)?,
        DType::F32 | DType::F64 | DType::I64 | DType::U64 => x,
        narrow if narrow.is_float() => cast(&x, DType::F32)?,
        _ => cast(&x, DType::I64)?,
    };
    reduce("prod", Reduction::Prod, &wide, axes, keepdims, dtype, None)
}

/// The arithmetic mean of floats; NaN over nothing.
pub fn mean(x: &Array, axes: &[usize], keepdims: bool) -> Result<Array> {
    if !x.dtype().is_float() {
        return Err(Error::Rejected("mean takes floats"));
    }
    check_axes("mean", x, axes)?;
    let count: usize = axes.iter().map(|&axis| x.shape()[axis]).product();
    reduce("mean", Reduction::Sum, x, axes, keepdims, x.dtype(), Some(count))
}

/// Sums of squares of `f32` between these have lost nothing that counts.
const SAFE: std::ops::Range<f32> = 1e-30..1e37;
/// The same of `f64`.
const SAFE_DOUBLE: std::ops::Range<f64> = 1e-280..1e300;
/// 2^600: squares of what lies beyond those bounds, times or divided by it, are in range again.
const FAR: f64 = f64::from_bits((1023 + 600) << 52);

/// The root of the sum of squares of floats. In `f32`, but in `f64` where squares leave its range.
pub fn vector_norm(x: &Array, axes: &[usize], keepdims: bool) -> Result<Array> {
    cast(&wide_norm(x, axes, keepdims)?, x.dtype())
}

/// Euclidean norms in `f32` or `f64`, the latter where squares leave the range of the former.
pub fn wide_norm(x: &Array, axes: &[usize], keepdims: bool) -> Result<Array> {
    if !x.dtype().is_float() {
        return Err(Error::Rejected("vector_norm takes floats"));
    }
    if x.dtype() != DType::F64 {
        let mut sums = reduce("vector_norm", Reduction::Squares, x, axes, keepdims, DType::F32, None)?;
        let sums_of = sums.as_mut_slice::<f32>();
        if sums_of.iter().all(|sum| SAFE.contains(sum)) {
            for sum in sums_of.iter_mut() {
                *sum = sum.sqrt();
            }
            return Ok(sums);
        }
    }
    let x = cast(x, DType::F64)?;
    let mut norms = reduce("vector_norm", Reduction::Squares, &x, axes, keepdims, DType::F64, None)?;
    let found = norms.as_mut_slice::<f64>();
    if found.iter().any(|sum| !SAFE_DOUBLE.contains(sum) && !sum.is_nan()) {
        let [small, large] = [FAR, 1.0 / FAR].map(|by| scaled_squares(&x, axes, keepdims, by));
        for ((norm, small), large) in found.iter_mut().zip(small?).zip(large?) {
            *norm = match *norm {
                sum if sum <= SAFE_DOUBLE.start => small.sqrt() / FAR,
                sum if sum >= SAFE_DOUBLE.end => large.sqrt() * FAR,
                sum => sum.sqrt(),
            };
        }
        return Ok(norms);
    }
    for sum in found {
        *sum = sum.sqrt();
    }
    Ok(norms)
}

/// Sums of squares of `f64` times a number.
fn scaled_squares(x: &Array, axes: &[usize], keepdims: bool, by: f64) -> Result<Vec<f64>> {
    let scaled: Vec<f64> = x.to_vec::<f64>()?.into_iter().map(|value| value * by).collect();
    let scaled = Array::from_slice(&scaled, x.shape())?;
    reduce("vector_norm", Reduction::Squares, &scaled, axes, keepdims, DType::F64, None)?.to_vec()
}

/// The largest element; NaN if there is one; the lowest value over nothing.
pub fn max(x: &Array, axes: &[usize], keepdims: bool) -> Result<Array> {
    reduce("max", Reduction::Max, x, axes, keepdims, x.dtype(), None)
}

/// The smallest element; NaN if there is one; the highest value over nothing.
pub fn min(x: &Array, axes: &[usize], keepdims: bool) -> Result<Array> {
    reduce("min", Reduction::Min, x, axes, keepdims, x.dtype(), None)
}

/// Whether any element is true; false over nothing.
pub fn any(x: &Array, axes: &[usize], keepdims: bool) -> Result<Array> {
    only_bool(x, "any takes bool")?;
    reduce("any", Reduction::Max, x, axes, keepdims, DType::Bool, None)
}

/// Whether all elements are true; true over nothing.
pub fn all(x: &Array, axes: &[usize], keepdims: bool) -> Result<Array> {
    only_bool(x, "all takes bool")?;
    reduce("all", Reduction::Min, x, axes, keepdims, DType::Bool, None)
}

fn only_bool(x: &Array, why: &'static str) -> Result<()> {
    if x.dtype() == DType::Bool { Ok(()) } else { Err(Error::Rejected(why)) }
}

fn check_axes(op: &str, x: &Array, axes: &[usize]) -> Result<()> {
    let ordered = axes.windows(2).all(|pair| pair[0] < pair[1]);
    if ordered && axes.last().is_none_or(|&last| last < x.rank()) {
        return Ok(());
    }
    Err(Error::value(op, format!("wrong axes: got {axes:?}, expected rising axes below {}", x.rank())))
}

/// Reduces, then divides by `count` (for the mean), then converts to `dtype`.
fn reduce(
    op: &str,
    reduction: Reduction,
    x: &Array,
    axes: &[usize],
    keepdims: bool,
    dtype: DType,
    count: Option<usize>,
) -> Result<Array> {
    check_axes(op, x, axes)?;
    match (x.dtype().is_float(), dtype.is_float()) {
        (true, false) => return reduce(op, reduction, &cast(x, dtype)?, axes, keepdims, dtype, count),
        (false, true) if matches!(x.dtype(), DType::I64 | DType::U64) => {
            return reduce(op, reduction, &cast(x, DType::F64)?, axes, keepdims, dtype, count);
        }
        (false, true) => return cast(&reduce(op, reduction, x, axes, keepdims, DType::I64, count)?, dtype),
        (true, true) if dtype == DType::F64 && x.dtype() != dtype => {
            return reduce(op, reduction, &cast(x, dtype)?, axes, keepdims, dtype, count);
        }
        _ => {}
    }
    if let Some(common) = x.dtype().rare() {
        return reduce(op, reduction, &cast(x, common)?, axes, keepdims, dtype, count);
    }
    let mut shape = Shape::empty();
    for (axis, &len) in x.shape().iter().enumerate() {
        match (axes.contains(&axis), keepdims) {
            (true, true) => shape.push(1),
            (true, false) => {}
            (false, _) => shape.push(len),
        }
    }
    if x.numel() == 0 {
        return of_nothing(reduction, dtype, &shape, count.is_some());
    }
    let folded = all_runs(reduction, x, axes, dtype)?;
    let folded = match count {
        Some(count) => divided(folded, count),
        None => folded,
    };
    let out = if folded.dtype() == dtype { folded } else { converted(&folded, dtype)? };
    out.with_geometry(&shape, &contiguous_strides(&shape), 0)
}

fn of_nothing(reduction: Reduction, dtype: DType, shape: &[usize], mean: bool) -> Result<Array> {
    let value = if mean { f64::NAN } else { reduction.of_nothing() };
    let mut out = Array::uninit(dtype, shape)?;
    // `true` is above everything of its kind, but minus infinity is not `false`.
    let value = if dtype == DType::Bool && value < 0.0 { 0.0 } else { value };
    dispatch!(all dtype, T => out.as_mut_slice::<T>().fill(T::from_f64(value)));
    Ok(out)
}

/// The short way for a few dense rows of one block each, where planning would cost more than the work.
fn few_rows(kernel: &Kernel, x: &Array, axes: &[usize], dtype: DType) -> Option<Result<Array>> {
    let kept = x.rank() - axes.len();
    let len = shape::numel(&x.shape()[kept..]);
    if !x.is_contiguous() || len > BLOCK || x.numel() > FEW || axes.first().is_some_and(|&first| first != kept) {
        return None;
    }
    let out = match Array::uninit(pass::same_bits(kernel.acc, dtype).unwrap_or(kernel.acc), &x.shape()[..kept]) {
        Ok(out) => out,
        Err(error) => return Some(Err(error)),
    };
    let (count, to) = (out.numel(), out.storage().data());
    let job = RowJob { x: x.data(), count, stride: len as isize, len, out: to, narrow: kernel.narrow };
    // SAFETY: rows of the dense operand, one after the other, and a result for each.
    unsafe { (kernel.rows)(&job) };
    Some(Ok(out))
}

/// Reduces one group of neighbouring axes after another, the longest first, and of equal ones the last: what is left
/// in between is small, and the order depends on the shape alone.
fn all_runs(reduction: Reduction, x: &Array, axes: &[usize], dtype: DType) -> Result<Array> {
    if let Some(out) = few_rows(reduction.kernel(x.dtype()), x, axes, dtype) {
        return out;
    }
    let mut all = Axes::empty();
    let mut reduced = [false; shape::MAX_RANK];
    for (axis, (&len, &step)) in x.shape().iter().zip(x.strides().iter()).enumerate() {
        if len != 1 {
            reduced[all.len()] = axes.contains(&axis);
            all.push(Axis { len, step, out: 0 });
        }
    }
    let mut kernel = reduction.kernel(x.dtype());
    let mut current: Option<Array> = None;
    loop {
        let (start, end) = longest_run(&all, &reduced);
        let last = !(0..all.len()).any(|axis| reduced[axis] && !(start..end).contains(&axis));
        let data = current.as_ref().map_or(x.data(), Array::data);
        let run = Axes::from_slice(&all[start..end])?;
        let mut kept = Axes::from_slice(&all[..start])?;
        all[end..].iter().for_each(|&axis| kept.push(axis));
        let wanted = if last { dtype } else { kernel.acc };
        // SAFETY: the axes are those of `x`, or of the dense array that the pass before gave.
        let out = unsafe { Pass { kernel, x: data, kept, run, wanted }.run()? };
        if last {
            return Ok(out);
        }
        kernel = reduction.again().kernel(out.dtype());
        reduced.copy_within(end.., start);
        let strides = contiguous_strides(out.shape());
        all = Axes::empty();
        out.shape().iter().zip(strides.iter()).for_each(|(&len, &step)| all.push(Axis { len, step, out: 0 }));
        current = Some(out);
    }
}

fn longest_run(all: &Axes, reduced: &[bool]) -> (usize, usize) {
    let (mut best, mut best_len) = ((all.len(), all.len()), 0);
    let mut start = 0;
    while start < all.len() {
        let mut end = start;
        while end < all.len() && reduced[end] {
            end += 1;
        }
        let len = all[start..end].iter().map(|axis| axis.len).product();
        if end > start && len >= best_len {
            (best, best_len) = ((start, end), len);
        }
        start = end + 1;
    }
    best
}

fn divided(mut sums: Array, count: usize) -> Array {
    match sums.dtype() {
        DType::F32 => sums.as_mut_slice::<f32>().iter_mut().for_each(|sum| *sum /= count as f32),
        _ => sums.as_mut_slice::<f64>().iter_mut().for_each(|sum| *sum /= count as f64),
    }
    sums
}

/// Floats round, integers wrap.
fn converted(x: &Array, dtype: DType) -> Result<Array> {
    let mut out = Array::uninit(dtype, x.shape())?;
    match x.dtype() {
        DType::F32 => dispatch!(all dtype, T => convert_each::<f32, T>(x, &mut out, |v| T::from_f64(v as f64))),
        DType::F64 => dispatch!(all dtype, T => convert_each::<f64, T>(x, &mut out, T::from_f64)),
        DType::I32 => dispatch!(all dtype, T => convert_each::<i32, T>(x, &mut out, |v| T::from_i64(v as i64))),
        _ => dispatch!(all dtype, T => convert_each::<i64, T>(x, &mut out, T::from_i64)),
    }
    Ok(out)
}

fn convert_each<S: Element, T: Element>(x: &Array, out: &mut Array, each: impl Fn(S) -> T) {
    let x = x.as_slice::<S>().expect("a pass gives a dense array");
    for (slot, &value) in out.as_mut_slice::<T>().iter_mut().zip(x) {
        *slot = each(value);
    }
}
