//! Pooling over windows of (N, C, H, W): maximum and mean, and their gradients.
//!
//! Both passes are separable: a window's rows are folded along the columns first, each source row once, then down the
//! rows. Folding in that order also finds the first of equal maxima in row-major order.

mod average;
mod halve;
mod max;
mod row;
#[cfg(test)]
mod tests;

use crate::array::Array;
use crate::array::float::RowElement;
use crate::dispatch;
use crate::dtype::{BF16, DType, Element, F16};
use crate::error::{Error, Result};
use crate::machine::lanes::Real;
use crate::ops::elementwise::convert::cast;
use crate::ops::parts::{self, Planes};
use crate::ops::reduction;
use std::ops::Range;

type Pair = (usize, usize);

/// The attributes of a pool.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Rows, columns.
    pub kernel: Pair,
    /// Rows, columns.
    pub stride: Pair,
    /// (top, bottom), (left, right).
    pub padding: (Pair, Pair),
    /// Rows, columns.
    pub dilation: Pair,
    /// Whether a last, partial window counts.
    pub ceil_mode: bool,
}

/// One axis of a pool.
#[derive(Clone, Copy, Debug)]
struct PoolAxis {
    input: usize,
    output: usize,
    kernel: usize,
    stride: usize,
    pad: (usize, usize),
    dilation: usize,
}

/// A pool with all its sizes.
#[derive(Clone, Copy, Debug)]
struct Pool {
    batch: usize,
    channels: usize,
    row: PoolAxis,
    col: PoolAxis,
}

impl PoolAxis {
    fn new(op: &str, input: usize, axis: [usize; 3], pad: Pair, ceil_mode: bool) -> Result<Self> {
        let [kernel, stride, dilation] = axis;
        let all = [input, kernel, stride, dilation, pad.0, pad.1];
        let span = dilation as u128 * kernel.saturating_sub(1) as u128 + 1;
        let padded = input as u128 + pad.0 as u128 + pad.1 as u128;
        let fits = kernel > 0 && stride > 0 && dilation > 0 && span <= padded;
        if !fits || all.iter().any(|&n| n > i32::MAX as usize) {
            let text =
                format!("window does not fit: got size {input}, kernel {kernel}, stride {stride}, padding {pad:?}");
            return Err(Error::value(op, format!("{text}, expected a kernel inside the padded input")));
        }
        let room = (padded - span) as usize;
        let mut output = room / stride + 1;
        // The partial window counts when it starts inside the image or the padding before it.
        if ceil_mode && !room.is_multiple_of(stride) && output * stride < input + pad.0 {
            output += 1;
        }
        Ok(Self { input, output, kernel, stride, pad, dilation })
    }

    /// The taps of output `at` that lie inside the input.
    #[inline(always)]
    fn taps(&self, at: usize) -> std::ops::Range<usize> {
        let start = at * self.stride;
        let low = self.pad.0.saturating_sub(start).div_ceil(self.dilation);
        let high = (self.input + self.pad.0).saturating_sub(start).div_ceil(self.dilation).min(self.kernel);
        low..high.max(low)
    }

    /// The input position of a tap of [`PoolAxis::taps`].
    #[inline(always)]
    fn position(&self, at: usize, tap: usize) -> usize {
        at * self.stride + tap * self.dilation - self.pad.0
    }

    /// The outputs all of whose taps lie inside.
    fn interior(&self) -> std::ops::Range<usize> {
        let low = self.pad.0.div_ceil(self.stride).min(self.output);
        let last = (self.input + self.pad.0).checked_sub(self.dilation * (self.kernel - 1) + 1);
        let high = last.map_or(0, |last| last / self.stride + 1).min(self.output);
        low..high.max(low)
    }

    /// Elements over which the mean of output `at` is taken.
    fn count(&self, at: usize, include_pad: bool) -> usize {
        if include_pad {
            let start = at * self.stride;
            (start + self.kernel).min(self.input + self.pad.0 + self.pad.1).saturating_sub(start)
        } else {
            self.taps(at).len()
        }
    }
}

impl Pool {
    fn new(op: &str, shape: &[usize], settings: &Settings) -> Result<Self> {
        let &[batch, channels, rows, cols] = shape else {
            return Err(Error::value(op, format!("wrong rank: got shape {shape:?}, expected (N, C, H, W)")));
        };
        let Settings { kernel, stride, padding, dilation, ceil_mode } = *settings;
        let row = PoolAxis::new(op, rows, [kernel.0, stride.0, dilation.0], padding.0, ceil_mode)?;
        let col = PoolAxis::new(op, cols, [kernel.1, stride.1, dilation.1], padding.1, ceil_mode)?;
        if rows.saturating_mul(cols) > i32::MAX as usize {
            return Err(Error::value(op, format!("plane too large: got {shape:?}, expected H * W below 2^31")));
        }
        Ok(Self { batch, channels, row, col })
    }

    fn shape(&self) -> [usize; 4] {
        [self.batch, self.channels, self.row.output, self.col.output]
    }

    /// True when one window covers each plane and nothing else.
    fn is_whole(&self) -> bool {
        [self.row, self.col].iter().all(|axis| axis.output == 1 && axis.kernel == axis.input && axis.pad == (0, 0))
    }

    fn planes(&self) -> usize {
        self.batch * self.channels
    }

    /// The pool of some planes.
    fn part(&self, planes: &Planes) -> Self {
        Self { batch: planes.images.len(), channels: planes.channels.len(), ..*self }
    }

    /// Where the results of some planes lie.
    fn results(&self, planes: &Planes) -> Range<usize> {
        let (of, size) = (planes.of(self.channels), self.row.output * self.col.output);
        of.start * size..of.end * size
    }

    fn check_gradient(&self, op: &str, g: &Array) -> Result<()> {
        if g.shape()[..] == self.shape() {
            return Ok(());
        }
        Err(Error::value(op, format!("wrong gradient: got shape {:?}, expected {:?}", g.shape(), self.shape())))
    }
}

/// The largest element of each window; NaN wins, the first of equals wins.
pub fn max_pool2d(x: &Array, settings: &Settings) -> Result<Array> {
    maxima("max_pool2d", x, settings, None)
}

/// [`max_pool2d`], and where in its `H * W` plane each maximum lies, as int64.
pub fn max_pool2d_with_indices(x: &Array, settings: &Settings) -> Result<(Array, Array)> {
    const OP: &str = "max_pool2d_with_indices";
    let mut places = Array::uninit(DType::I64, &Pool::new(OP, x.shape(), settings)?.shape())?;
    let out = maxima(OP, x, settings, Some(&mut places))?;
    Ok((out, places))
}

fn maxima(op: &str, x: &Array, settings: &Settings, mut places: Option<&mut Array>) -> Result<Array> {
    let common = pooled_as(op, x.dtype())?;
    if !x.dtype().is_float() && common != x.dtype() {
        return cast(&maxima(op, &cast(x, common)?, settings, places)?, x.dtype());
    }
    let pool = Pool::new(op, x.shape(), settings)?;
    let mut out = Array::uninit(x.dtype(), &pool.shape())?;
    for planes in Planes::cut(&[x], parts::made(&[x], common)) {
        let (pool, to) = (pool.part(&planes), pool.results(&planes));
        let source = parts::ready(&planes.take(x)?, common)?;
        let found = places.as_mut().map(|places| &mut places.as_mut_slice()[to.clone()]);
        dispatch!(@arms common, T => parts::write(&mut out, to, |to| {
            max::run::<T>(&pool, elements(&source), to, found);
            Ok(())
        })?, unreachable!("looked at above"); F32 f32, F64 f64, I64 i64, U64 u64);
    }
    Ok(out)
}

/// The type that maxima of this one are looked for in: small integers are exact in floats, and what an empty window gives there,
/// minus infinity, becomes the lowest of them.
fn pooled_as(op: &str, dtype: DType) -> Result<DType> {
    match dtype {
        DType::Bool => Err(Error::value(op, "wrong dtype: got bool, expected a number")),
        _ if dtype.itemsize() < 4 => Ok(DType::F32),
        DType::I32 | DType::U32 => Ok(DType::F64),
        _ => Ok(dtype.common()),
    }
}

/// Adds each element of `g` at the place in its plane that `indices` names.
pub fn max_pool2d_backward(g: &Array, indices: &Array, input_shape: &[usize]) -> Result<Array> {
    const OP: &str = "max_pool2d_backward";
    let fits = |a: &[usize], b: &[usize]| a.len() == 4 && b.len() == 4 && a[..2] == b[..2];
    if g.shape() != indices.shape() || !fits(g.shape(), input_shape) || indices.dtype().is_float() {
        let text = format!("operands do not fit: got g {g:?}, indices {indices:?}, input shape {input_shape:?}");
        return Err(Error::value(OP, format!("{text}, expected equal shapes (N, C, .., ..) and Int indices")));
    }
    let mut out = Array::uninit(g.dtype(), input_shape)?;
    match g.dtype() {
        DType::F16 => scattered::<F16>(g, indices, &mut out)?,
        DType::BF16 => scattered::<BF16>(g, indices, &mut out)?,
        DType::F32 => scattered::<f32>(g, indices, &mut out)?,
        DType::F64 => scattered::<f64>(g, indices, &mut out)?,
        _ => return Err(Error::value(OP, format!("wrong dtype: got {}, expected a float", g.dtype().name()))),
    }
    Ok(out)
}

fn scattered<T: RowElement>(g: &Array, indices: &Array, out: &mut Array) -> Result<()> {
    let (channels, size) = (out.shape()[1], out.shape()[2] * out.shape()[3]);
    let made = parts::made(&[g], T::DTYPE) + parts::made(&[indices], DType::I64);
    for planes in Planes::cut(&[g, indices], made) {
        let source = planes.take(g)?.contiguous()?;
        let places = parts::ready(&planes.take(indices)?, DType::I64)?;
        let of = planes.of(channels);
        let to = &mut out.as_mut_slice()[of.start * size..of.end * size];
        max::backward::<T>(elements(&source), elements(&places), (planes.count(), size), to)?;
    }
    Ok(())
}

/// The mean of each window. Narrow floats are computed in `f32`.
pub fn avg_pool2d(x: &Array, settings: &Settings, count_include_pad: bool) -> Result<Array> {
    let pool = Pool::new("avg_pool2d", x.shape(), settings)?;
    if pool.is_whole() && x.dtype().is_float() {
        return reduction::mean(x, &[2, 3], true);
    }
    match x.dtype() {
        DType::F64 => averaged::<f64>(&pool, x, count_include_pad),
        dtype if dtype.is_float() => averaged::<f32>(&pool, x, count_include_pad),
        dtype => Err(Error::value("avg_pool2d", format!("wrong dtype: got {}, expected a float", dtype.name()))),
    }
}

fn averaged<T: Real>(pool: &Pool, x: &Array, include_pad: bool) -> Result<Array> {
    let mut out = Array::uninit(x.dtype(), &pool.shape())?;
    parts::map_planes(x, &mut out, |planes, x, to| average::forward::<T>(&pool.part(planes), x, include_pad, to))?;
    Ok(out)
}

/// The gradient of [`avg_pool2d`] with respect to `x`, which has shape `input_shape`.
pub fn avg_pool2d_backward(
    g: &Array,
    input_shape: &[usize],
    settings: &Settings,
    count_include_pad: bool,
) -> Result<Array> {
    let pool = Pool::new("avg_pool2d_backward", input_shape, settings)?;
    pool.check_gradient("avg_pool2d_backward", g)?;
    match g.dtype() {
        DType::F64 => shared_out::<f64>(&pool, g, input_shape, count_include_pad),
        dtype if dtype.is_float() => shared_out::<f32>(&pool, g, input_shape, count_include_pad),
        dtype => {
            Err(Error::value("avg_pool2d_backward", format!("wrong dtype: got {}, expected a float", dtype.name())))
        }
    }
}

fn shared_out<T: Real>(pool: &Pool, g: &Array, shape: &[usize], include_pad: bool) -> Result<Array> {
    let mut out = Array::uninit(g.dtype(), shape)?;
    parts::map_planes(g, &mut out, |planes, g, to| average::backward::<T>(&pool.part(planes), g, include_pad, to))?;
    Ok(out)
}

fn elements<T: Element>(x: &Array) -> &[T] {
    x.as_slice().expect("made contiguous")
}
