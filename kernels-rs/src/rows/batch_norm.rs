//! Batch normalization: channels are axis 1, a channel's elements lie in one run per image.

use super::fold::{dot_centered, moments, sum};
use super::{RowElement, Wide, check_alike, float_rows, narrowed, numel, parameter};
use crate::array::Array;
use crate::dtype::{Element, Float};
use crate::error::{Error, Result};
use crate::lanes::{Kernel, Lanes, launch};
use crate::scratch::with_scratch;
use crate::threads::{self, SharedMut};
use crate::view;

/// Elements per task.
const TASK: usize = 1 << 14;
/// A run shorter than this is not worth its set-up: the channels are moved to the front instead.
const SHORT: usize = 16;

/// An array as runs: run `(n, c)` has `len` elements and starts at `(n * channels + c) * len`.
struct Runs {
    data: Array,
    images: usize,
    channels: usize,
    len: usize,
    /// Whether the channels were moved to the front.
    swapped: bool,
}

impl Runs {
    fn new(op: &str, x: &Array) -> Result<Self> {
        if x.rank() < 2 {
            return Err(Error::value(op, format!("wrong rank: got {x:?}, expected (N, C, ..)")));
        }
        let (images, channels, len) = (x.shape()[0], x.shape()[1], numel(&x.shape()[2..]));
        if len >= SHORT || images == 1 {
            return Ok(Self { data: x.contiguous()?, images, channels, len, swapped: false });
        }
        let data = swap(x)?.contiguous()?;
        Ok(Self { data, images: 1, channels, len: images * len, swapped: true })
    }

    fn elements<T: Element>(&self) -> &[T] {
        self.data.as_slice().expect("made contiguous")
    }

    /// Elements per channel.
    fn count(&self) -> usize {
        self.images * self.len
    }

    /// A result of the form of `data`, in the form of the operand.
    fn restored(&self, out: Array) -> Result<Array> {
        if self.swapped { swap(&out) } else { Ok(out) }
    }

    /// Images per chunk of the sums, and chunks: by shape alone.
    fn chunks(&self) -> (usize, usize) {
        let wanted = (64 / self.channels.max(1)).clamp(1, self.images.max(1));
        let size = self.images.div_ceil(wanted).max(1);
        (size, self.images.div_ceil(size).max(1))
    }

    /// Per channel, the sum over its runs of what `of(channel, offset)` gives for a run, chunk by chunk.
    fn sums<W: Wide, const K: usize>(&self, of: &(dyn Fn(usize, usize) -> [W; K] + Sync)) -> Vec<[W; K]> {
        let (size, chunks) = self.chunks();
        let mut parts = vec![[W::ZERO; K]; self.channels * chunks];
        let to = SharedMut::new(parts.as_mut_ptr());
        let work = |range: std::ops::Range<usize>| {
            for index in range {
                let (c, chunk) = (index / chunks, index % chunks);
                let mut total = [W::ZERO; K];
                for n in chunk * size..((chunk + 1) * size).min(self.images) {
                    let part = of(c, (n * self.channels + c) * self.len);
                    total.iter_mut().zip(part).for_each(|(sum, value)| *sum = *sum + value);
                }
                // SAFETY: one task per part.
                unsafe { to.slice(index..index + 1)[0] = total };
            }
        };
        pieces(self.channels * chunks, size * self.len, &work);
        let add = |a: [W; K], b: &[W; K]| std::array::from_fn(|k| a[k] + b[k]);
        parts.chunks_exact(chunks).map(|parts| parts.iter().fold([W::ZERO; K], add)).collect()
    }

    /// Calls `of(channel, offset)` for every run.
    fn each(&self, of: &(dyn Fn(usize, usize) + Sync)) {
        let runs = |range: std::ops::Range<usize>| range.for_each(|run| of(run % self.channels, run * self.len));
        pieces(self.images * self.channels, self.len, &runs);
    }
}

/// Axes 0 and 1 exchanged.
fn swap(x: &Array) -> Result<Array> {
    let mut axes = crate::shape::Shape::empty();
    (0..x.rank()).for_each(|axis| axes.push(if axis < 2 { 1 - axis } else { axis }));
    view::permute_dims(x, &axes)
}

/// `count` pieces of `len` elements, several to a task.
fn pieces(count: usize, len: usize, work: &(dyn Fn(std::ops::Range<usize>) + Sync)) {
    let block = (TASK / len.max(1)).max(1);
    if count * len < 2 * TASK {
        return work(0..count);
    }
    threads::parallel(count.div_ceil(block), &|index| work(index * block..((index + 1) * block).min(count)));
}

/// `(x - mean) / sqrt(var + epsilon) * weight + bias`, each `[C]`.
pub fn batch_norm(x: &Array, weight: &Array, bias: &Array, [mean, var]: [&Array; 2], epsilon: f64) -> Result<Array> {
    const OP: &str = "batch_norm";
    let runs = Runs::new(OP, x)?;
    float_rows!(OP, x.dtype(), T => {
        let all = parameters::<T, 4>(OP, [weight, bias, mean, var], runs.channels)?;
        let out = scaled::<T>(&runs, &all, epsilon)?;
        runs.restored(out)
    })
}

fn parameters<T: RowElement, const K: usize>(op: &str, all: [&Array; K], channels: usize) -> Result<[Vec<T::Wide>; K]> {
    let mut out = [const { Vec::new() }; K];
    for (slot, x) in out.iter_mut().zip(all) {
        *slot = parameter::<_, T>(op, Some(x), channels)?.unwrap_or_default();
    }
    Ok(out)
}

/// Weight, bias, mean and variance applied.
fn scaled<T: RowElement>(runs: &Runs, [weight, bias, mean, var]: &[Vec<T::Wide>; 4], epsilon: f64) -> Result<Array> {
    let mut out = Array::uninit(T::DTYPE, runs.data.shape())?;
    let to = SharedMut::new(out.mut_ptr::<T>());
    let x = runs.elements::<T>();
    runs.each(&|c, at| {
        let scale = weight[c] / (var[c] + T::Wide::from_f64(epsilon)).sqrt();
        // SAFETY: each run is written once.
        let out = unsafe { to.slice(at..at + runs.len) };
        with_scratch(2 * T::buffer(runs.len), |scratch: &mut [T::Wide]| {
            let (buffer, out_buffer) = scratch.split_at_mut(T::buffer(runs.len));
            let x = T::read(&x[at..at + runs.len], buffer);
            let (mean, bias) = (mean[c], bias[c]);
            T::write(out, out_buffer, |out| launch::<T::Wide, _>(Affine { x, out, mean, scale, bias }));
        });
    });
    Ok(out)
}

struct Affine<'a, W> {
    x: &'a [W],
    out: &'a mut [W],
    mean: W,
    scale: W,
    bias: W,
}

impl<W: Wide> Kernel<W> for Affine<'_, W> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = W>>(self) {
        let Affine { x, out, mean, scale, bias } = self;
        for (slot, &x) in out.iter_mut().zip(x) {
            *slot = (x - mean).times_plus::<V::Math>(scale, bias);
        }
    }
}

/// [`batch_norm`] by the batch's own mean and biased variance, which are results too.
pub fn batch_norm_train(x: &Array, weight: &Array, bias: &Array, epsilon: f64) -> Result<(Array, Array, Array)> {
    const OP: &str = "batch_norm_train";
    let runs = Runs::new(OP, x)?;
    float_rows!(OP, x.dtype(), T => {
        let [weight, bias] = parameters::<T, 2>(OP, [weight, bias], runs.channels)?;
        let count = <T as Float>::Wide::count(runs.count());
        let sums = runs.sums(&|_, at| run_moments::<T>(&runs, at, None));
        let near: Vec<_> = sums.iter().map(|sum| sum[0] / count).collect();
        let sums = runs.sums(&|c, at| run_moments::<T>(&runs, at, Some(near[c])));
        let mean: Vec<_> = near.iter().zip(&sums).map(|(&near, sum)| near + sum[0] / count).collect();
        let var: Vec<_> = sums.iter().map(|sum| sum[1] / count - sum[0] / count * (sum[0] / count)).collect();
        let (to_mean, to_var) = (narrowed::<T>(&mean, &[runs.channels])?, narrowed::<T>(&var, &[runs.channels])?);
        let out = scaled::<T>(&runs, &[weight, bias, mean, var], epsilon)?;
        Ok((runs.restored(out)?, to_mean, to_var))
    })
}

/// The sum of a run, or those of its distances from a mean and of their squares.
fn run_moments<T: RowElement>(runs: &Runs, at: usize, mean: Option<T::Wide>) -> [T::Wide; 2] {
    with_scratch(T::buffer(runs.len), |buffer: &mut [T::Wide]| {
        let mut result = [T::Wide::ZERO; 2];
        let x = T::read(&runs.elements::<T>()[at..at + runs.len], buffer);
        launch::<T::Wide, _>(Moments { x, mean, result: &mut result });
        result
    })
}

struct Moments<'a, W> {
    x: &'a [W],
    mean: Option<W>,
    result: &'a mut [W; 2],
}

impl<W: Wide> Kernel<W> for Moments<'_, W> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = W>>(self) {
        // SAFETY: the caller has the instructions.
        *self.result = unsafe {
            match self.mean {
                None => [sum::<V>(self.x), W::ZERO],
                Some(mean) => moments::<V>(self.x, mean),
            }
        };
    }
}

/// The gradients of the first result of [`batch_norm_train`] for x, weight and bias.
pub fn batch_norm_backward(
    g: &Array,
    x: &Array,
    weight: &Array,
    [mean, var]: [&Array; 2],
    epsilon: f64,
) -> Result<(Array, Array, Array)> {
    const OP: &str = "batch_norm_backward";
    check_alike(OP, g, x)?;
    let (gradient, runs) = (Runs::new(OP, g)?, Runs::new(OP, x)?);
    float_rows!(OP, x.dtype(), T => {
        let [weight, mean, var] = parameters::<T, 3>(OP, [weight, mean, var], runs.channels)?;
        backward::<T>(&gradient, &runs, &[weight, mean, var], epsilon)
    })
}

fn backward<T: RowElement>(
    gradient: &Runs,
    runs: &Runs,
    [weight, mean, var]: &[Vec<T::Wide>; 3],
    epsilon: f64,
) -> Result<(Array, Array, Array)> {
    let (g, x) = (gradient.elements::<T>(), runs.elements::<T>());
    let scale: Vec<_> = var.iter().map(|&v| T::Wide::ONE / (v + T::Wide::from_f64(epsilon)).sqrt()).collect();
    let sums = runs.sums(&|c, at| {
        with_scratch(2 * T::buffer(runs.len), |scratch: &mut [T::Wide]| {
            let (g_buffer, x_buffer) = scratch.split_at_mut(T::buffer(runs.len));
            let (mut result, range) = ([T::Wide::ZERO; 2], at..at + runs.len);
            let (g, x) = (T::read(&g[range.clone()], g_buffer), T::read(&x[range], x_buffer));
            launch::<T::Wide, _>(Products { g, x, mean: mean[c], result: &mut result });
            result
        })
    });
    let bias_grad: Vec<_> = sums.iter().map(|sum| sum[0]).collect();
    let weight_grad: Vec<_> = sums.iter().zip(&scale).map(|(sum, &scale)| sum[1] * scale).collect();
    let count = T::Wide::count(runs.count());
    let mut out = Array::uninit(T::DTYPE, runs.data.shape())?;
    let to = SharedMut::new(out.mut_ptr::<T>());
    runs.each(&|c, at| {
        let range = at..at + runs.len;
        // SAFETY: each run is written once.
        let out = unsafe { to.slice(range.clone()) };
        let by = (bias_grad[c] / count, weight_grad[c] / count * scale[c]);
        with_scratch(3 * T::buffer(runs.len), |scratch: &mut [T::Wide]| {
            let (g_buffer, rest) = scratch.split_at_mut(T::buffer(runs.len));
            let (x_buffer, out_buffer) = rest.split_at_mut(T::buffer(runs.len));
            let (g, x) = (T::read(&g[range.clone()], g_buffer), T::read(&x[range], x_buffer));
            let (mean, scale) = (mean[c], weight[c] * scale[c]);
            T::write(out, out_buffer, |out| launch::<T::Wide, _>(Pull { g, x, out, mean, scale, by }));
        });
    });
    let channels = &[runs.channels];
    Ok((runs.restored(out)?, narrowed::<T>(&weight_grad, channels)?, narrowed::<T>(&bias_grad, channels)?))
}

/// The sums of `g` and of `g * (x - mean)`.
struct Products<'a, W> {
    g: &'a [W],
    x: &'a [W],
    mean: W,
    result: &'a mut [W; 2],
}

impl<W: Wide> Kernel<W> for Products<'_, W> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = W>>(self) {
        // SAFETY: the caller has the instructions; the runs have one length.
        *self.result = unsafe { dot_centered::<V>(self.g, self.x, self.mean) };
    }
}

struct Pull<'a, W> {
    g: &'a [W],
    x: &'a [W],
    out: &'a mut [W],
    mean: W,
    scale: W,
    by: (W, W),
}

impl<W: Wide> Kernel<W> for Pull<'_, W> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = W>>(self) {
        let Pull { g, x, out, mean, scale, by } = self;
        for ((slot, &g), &x) in out.iter_mut().zip(g).zip(x) {
            *slot = scale * (g - by.0 - (x - mean) * by.1);
        }
    }
}
