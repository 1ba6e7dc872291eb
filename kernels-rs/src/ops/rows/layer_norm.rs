//! Layer and root-mean-square normalization over the last axis: the second is the first with 0 for the mean.

use super::{
    RowElement, Wide, check_alike, finite_or_zero, float_rows, for_gathered_rows, narrowed, not_below_zero, parameter,
    wide,
};
use crate::array::Array;
use crate::array::fold::{dot, dot_weighted, moments, sum};
use crate::array::reader::Reader;
use crate::dtype::{DType, Element, Float};
use crate::error::{Error, Result};
use crate::machine::lanes::{Kernel, Lanes, launch};
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::{filled, with_buffers};
use crate::ops::elementwise::convert::cast;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows whose parameter gradients are summed one after the other.
const BLOCK: usize = 64;
/// Copies of the parameter gradients, at most.
const CHUNKS: usize = 32;
/// Elements that are gathered at a time.
const GATHERED: usize = 1 << 14;

/// Rows and their length; an error where there is no last axis.
fn sizes(op: &str, x: &Array) -> Result<(usize, usize)> {
    let Some(&len) = x.shape().last() else {
        return Err(Error::value(op, "wrong rank: got a 0-d tensor, expected a last axis"));
    };
    Ok((x.numel().checked_div(len).unwrap_or(0), len))
}

/// `(x - mean) / sqrt(var + epsilon) * weight + bias` over the last axis, with the biased variance.
pub fn layer_norm(x: &Array, weight: Option<&Array>, bias: Option<&Array>, epsilon: f64) -> Result<Array> {
    let (rows, len) = sizes("layer_norm", x)?;
    let out = float_rows!("layer_norm", x.dtype(), T => {
        let weight = parameter::<_, T>("layer_norm", weight, len)?;
        let bias = parameter::<_, T>("layer_norm", bias, len)?;
        forward::<T>(x, (rows, len), (weight.as_deref(), bias.as_deref()), Norm { centered: true, epsilon })
    })?;
    if let Some(out) = out {
        return Ok(out);
    }
    let [weight, bias] = [weight.map(wide).transpose()?, bias.map(wide).transpose()?];
    cast(&layer_norm(&wide(x)?, weight.as_ref(), bias.as_ref(), epsilon)?, x.dtype())
}

/// `x / sqrt(mean of x^2 + epsilon) * weight` over the last axis.
pub fn rms_norm(x: &Array, weight: Option<&Array>, epsilon: f64) -> Result<Array> {
    let (rows, len) = sizes("rms_norm", x)?;
    let out = float_rows!("rms_norm", x.dtype(), T => {
        let weight = parameter::<_, T>("rms_norm", weight, len)?;
        forward::<T>(x, (rows, len), (weight.as_deref(), None), Norm { centered: false, epsilon })
    })?;
    if let Some(out) = out {
        return Ok(out);
    }
    let weight = weight.map(wide).transpose()?;
    cast(&rms_norm(&wide(x)?, weight.as_ref(), epsilon)?, x.dtype())
}

/// What a row is divided by.
#[derive(Clone, Copy)]
struct Norm {
    /// Whether the mean is subtracted first.
    centered: bool,
    epsilon: f64,
}

type Parameters<'a, W> = (Option<&'a [W]>, Option<&'a [W]>);

/// Whether squares of rows left the range of a type that is narrower than float64.
fn overflowed<T: Float>(flag: AtomicBool) -> bool {
    T::DTYPE != DType::F64 && flag.into_inner()
}

/// The rows, normalized; `None` where squares left the range of the type.
fn forward<T: RowElement>(
    x: &Array,
    (rows, len): (usize, usize),
    parameters: Parameters<'_, T::Wide>,
    norm: Norm,
) -> Result<Option<Array>> {
    let source = Reader::<T>::new(x);
    let overflow = AtomicBool::new(false);
    let mut out = Array::uninit(x.dtype(), x.shape())?;
    let to = SharedMut::new(out.mut_ptr::<T>());
    for_gathered_rows(source.room(1) > 0, rows, len, &|first, end| {
        let range = first * len..end * len;
        // SAFETY: each task owns its rows of the result.
        let out = unsafe { to.slice(range.clone()) };
        let (size, room) = (T::buffer(len), source.room(range.len()));
        with_buffers([size, size, room], |[buffer, out_buffer, gathered]: [&mut [T::Wide]; _]| {
            for (x, out) in source.part(range, gathered).chunks_exact(len).zip(out.chunks_exact_mut(len)) {
                let x = T::read(x, buffer);
                let overflow = &overflow;
                T::write(out, out_buffer, |out| launch::<T::Wide, _>(Forward { x, out, parameters, norm, overflow }));
            }
        });
    });
    Ok((!overflowed::<T>(overflow)).then_some(out))
}

struct Forward<'a, W> {
    x: &'a [W],
    out: &'a mut [W],
    parameters: Parameters<'a, W>,
    norm: Norm,
    overflow: &'a AtomicBool,
}

/// A row is normalized as `((x - rounded_mean) + back) * scale`. Far from 0 one number of its type is no mean of it: what
/// rounding takes from that is then no small part of the distances. Of a mean of 0 `back` is -0, which leaves the sign
/// of a zero.
struct Statistics<W> {
    rounded_mean: W,
    back: W,
    scale: W,
}

/// Whether squares alone left the range of the type.
#[cold]
#[inline(never)]
fn all_finite<W: Wide>(x: &[W]) -> bool {
    x.iter().all(|x| x.to_f64().is_finite())
}

/// With 0 for the mean, and the mean of the squares for the variance, where the mean is left alone. Says where
/// squares leave the range of the type.
#[inline(always)]
unsafe fn statistics<V: Lanes<Elem: Wide>>(x: &[V::Elem], norm: Norm, overflow: &AtomicBool) -> Statistics<V::Elem> {
    let (count, epsilon) = (V::Elem::count(x.len()), V::Elem::from_f64(norm.epsilon));
    let (rounded_mean, back, var) = if norm.centered {
        let rounded_mean = sum::<V>(x) / count;
        let [errors, squares] = moments::<V>(x, rounded_mean);
        let mean_error = errors / count;
        (rounded_mean, V::Elem::ZERO - mean_error, not_below_zero(squares / count - mean_error * mean_error))
    } else {
        (V::Elem::ZERO, V::Elem::from_f64(-0.0), dot::<V>(x, x) / count)
    };
    if !var.to_f64().is_finite() && all_finite(x) {
        overflow.store(true, Ordering::Relaxed);
    }
    Statistics { rounded_mean, back, scale: V::Elem::ONE / (var + epsilon).sqrt() }
}

impl<W: Wide> Kernel<W> for Forward<'_, W> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = W>>(self) {
        let Forward { x, out, parameters, norm, overflow } = self;
        let Statistics { rounded_mean, back, scale } = statistics::<V>(x, norm, overflow);
        let shift = back * scale;
        match parameters {
            (None, None) => {
                for (slot, &x) in out.iter_mut().zip(x) {
                    *slot = (x - rounded_mean).times_plus::<V::Math>(scale, shift);
                }
            }
            (Some(weight), None) => {
                for ((slot, &x), &w) in out.iter_mut().zip(x).zip(weight) {
                    *slot = (x - rounded_mean).times_plus::<V::Math>(scale, shift) * w;
                }
            }
            (None, Some(bias)) => {
                for ((slot, &x), &b) in out.iter_mut().zip(x).zip(bias) {
                    *slot = (x - rounded_mean).times_plus::<V::Math>(scale, shift + b);
                }
            }
            (Some(weight), Some(bias)) => {
                for (((slot, &x), &w), &b) in out.iter_mut().zip(x).zip(weight).zip(bias) {
                    *slot = (x - rounded_mean).times_plus::<V::Math>(scale, shift).times_plus::<V::Math>(w, b);
                }
            }
        }
    }
}

/// The gradients of [`layer_norm`] for x, weight and bias; the last two have the length of the last axis.
pub fn layer_norm_backward(
    g: &Array,
    x: &Array,
    weight: Option<&Array>,
    epsilon: f64,
) -> Result<(Array, Array, Array)> {
    check_alike("layer_norm_backward", g, x)?;
    let (rows, len) = sizes("layer_norm_backward", x)?;
    let grads = float_rows!("layer_norm_backward", x.dtype(), T => {
        let weight = parameter::<_, T>("layer_norm_backward", weight, len)?;
        let weight = weight.unwrap_or_else(|| filled(<T as Float>::Wide::ONE, len));
        backward::<T>(g, x, (rows, len), &weight, Norm { centered: true, epsilon })
    })?;
    if let Some([dx, dweight, dbias]) = grads {
        return Ok((dx, dweight, dbias));
    }
    let weight = weight.map(wide).transpose()?;
    let (dx, dweight, dbias) = layer_norm_backward(&wide(g)?, &wide(x)?, weight.as_ref(), epsilon)?;
    Ok((cast(&dx, x.dtype())?, cast(&dweight, x.dtype())?, cast(&dbias, x.dtype())?))
}

/// The gradients of [`rms_norm`] for x and weight; the second has the length of the last axis.
pub fn rms_norm_backward(g: &Array, x: &Array, weight: Option<&Array>, epsilon: f64) -> Result<(Array, Array)> {
    check_alike("rms_norm_backward", g, x)?;
    let (rows, len) = sizes("rms_norm_backward", x)?;
    let grads = float_rows!("rms_norm_backward", x.dtype(), T => {
        let weight = parameter::<_, T>("rms_norm_backward", weight, len)?;
        let weight = weight.unwrap_or_else(|| filled(<T as Float>::Wide::ONE, len));
        backward::<T>(g, x, (rows, len), &weight, Norm { centered: false, epsilon })
    })?;
    if let Some([dx, dweight, _]) = grads {
        return Ok((dx, dweight));
    }
    let weight = weight.map(wide).transpose()?;
    let (dx, dweight) = rms_norm_backward(&wide(g)?, &wide(x)?, weight.as_ref(), epsilon)?;
    Ok((cast(&dx, x.dtype())?, cast(&dweight, x.dtype())?))
}

/// Gradients for x, weight and bias; `None` where squares left the range of the type.
fn backward<T: RowElement>(
    g: &Array,
    x: &Array,
    (rows, len): (usize, usize),
    weight: &[T::Wide],
    norm: Norm,
) -> Result<Option<[Array; 3]>> {
    let operands = [Reader::<T>::new(g), Reader::new(x)];
    let overflow = AtomicBool::new(false);
    let mut dx = Array::uninit(x.dtype(), x.shape())?;
    let blocks = rows.div_ceil(BLOCK);
    let chunks = blocks.min(CHUNKS);
    let mut sums = filled(T::Wide::ZERO, chunks.max(1) * 2 * len);
    let (to, to_sums) = (SharedMut::new(dx.mut_ptr::<T>()), SharedMut::new(sums.as_mut_ptr()));
    let work = |chunk: usize| {
        // SAFETY: one task per chunk.
        let sums = unsafe { to_sums.slice(chunk * 2 * len..(chunk + 1) * 2 * len) };
        let job = Job { operands: &operands, to, len, weight, norm, overflow: &overflow };
        let chunk = chunk * blocks / chunks * BLOCK..rows.min((chunk + 1) * blocks / chunks * BLOCK);
        // SAFETY: each row belongs to one chunk.
        unsafe { job.chunk(chunk, sums) };
    };
    threads::parallel(chunks, &work);
    if overflowed::<T>(overflow) {
        return Ok(None);
    }
    let (first, others) = sums.split_at_mut(2 * len);
    for other in others.chunks_exact((2 * len).max(1)) {
        first.iter_mut().zip(other).for_each(|(sum, &part)| *sum = *sum + part);
    }
    Ok(Some([dx, narrowed::<T>(&first[..len], &[len])?, narrowed::<T>(&first[len..], &[len])?]))
}

struct Job<'a, T: RowElement> {
    /// The gradient and x.
    operands: &'a [Reader<'a, T>; 2],
    to: SharedMut<T>,
    len: usize,
    weight: &'a [T::Wide],
    norm: Norm,
    overflow: &'a AtomicBool,
}

impl<T: RowElement> Job<'_, T> {
    /// Some rows; adds their sums, block by block.
    ///
    /// # Safety
    /// No other task writes these rows of the result.
    unsafe fn chunk(&self, rows: Range<usize>, sums: &mut [T::Wide]) {
        let &Self { operands, to, len, weight, norm, overflow } = self;
        let size = T::buffer(len);
        // Rows with gaps are gathered a few at a time.
        let together = (GATHERED / len.max(1)).clamp(1, BLOCK);
        let [g_room, x_room] = [0, 1].map(|k: usize| operands[k].room(together * len));
        let lens = [2 * len, size, size, size, g_room, x_room];
        with_buffers(lens, |[block_sums, g_buffer, x_buffer, dx_buffer, for_g, for_x]: [&mut [T::Wide]; _]| {
            for block in rows.clone().step_by(BLOCK) {
                block_sums.fill(T::Wide::ZERO);
                let end = rows.end.min(block + BLOCK);
                for first in (block..end).step_by(together) {
                    let range = first * len..end.min(first + together) * len;
                    let dx = to.slice(range.clone());
                    let (g, x) = (operands[0].part(range.clone(), for_g), operands[1].part(range, for_x));
                    for ((g, x), dx) in g.chunks_exact(len).zip(x.chunks_exact(len)).zip(dx.chunks_exact_mut(len)) {
                        let (g, x) = (T::read(g, g_buffer), T::read(x, x_buffer));
                        let sums = &mut *block_sums;
                        T::write(dx, dx_buffer, |dx| {
                            launch::<T::Wide, _>(Backward { g, x, dx, weight, norm, overflow, sums });
                        });
                    }
                }
                sums.iter_mut().zip(&*block_sums).for_each(|(sum, &part)| *sum = *sum + part);
            }
        });
    }
}

struct Backward<'a, W> {
    g: &'a [W],
    x: &'a [W],
    dx: &'a mut [W],
    weight: &'a [W],
    norm: Norm,
    overflow: &'a AtomicBool,
    /// Those for the weight, then those for the bias.
    sums: &'a mut [W],
}

impl<W: Wide> Kernel<W> for Backward<'_, W> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = W>>(self) {
        let Backward { g, x, dx, weight, norm, overflow, sums } = self;
        let count = W::count(x.len());
        // All rows have one length, the sums twice that.
        let Statistics { rounded_mean, back, scale } = statistics::<V>(x, norm, overflow);
        let [total, product] = dot_weighted::<V>(g, weight, x, rounded_mean);
        let product = product + finite_or_zero(back * total);
        let (level, pull) = (total / count, product * scale / count * scale);
        let level = if norm.centered { level } else { W::ZERO };
        // One loop over six rows in explicit registers: the compiler gives up on so many that may overlap.
        let [rounded_mean_v, back_v, scale_v, level_v, pull_v] =
            [rounded_mean, back, scale, level, W::ZERO - pull].map(|value| V::splat(value));
        let (weight_sums, bias_sums) = sums.split_at_mut(x.len());
        let full = x.len() / V::N * V::N;
        for at in (0..full).step_by(V::N) {
            let (g, w) = (V::load(g.as_ptr().add(at)), V::load(weight.as_ptr().add(at)));
            let centered = V::load(x.as_ptr().add(at)).sub(rounded_mean_v).add(back_v);
            let pulled = centered.mul_add(pull_v, g.mul(w).sub(level_v));
            pulled.mul(scale_v).store(dx.as_mut_ptr().add(at));
            let (to_weight, to_bias) = (weight_sums.as_mut_ptr().add(at), bias_sums.as_mut_ptr().add(at));
            g.mul(scale_v).mul_add(centered, V::load(to_weight)).store(to_weight);
            g.add(V::load(to_bias)).store(to_bias);
        }
        for i in full..x.len() {
            let centered = x[i] - rounded_mean + back;
            dx[i] = scale * (g[i] * weight[i] - level - centered * pull);
            weight_sums[i] = weight_sums[i] + g[i] * scale * centered;
            bias_sums[i] = bias_sums[i] + g[i];
        }
    }
}
