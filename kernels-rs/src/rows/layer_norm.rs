//! Layer normalization over the last axis.

use super::fold::{map_sum, moments, sum, sum2};
use super::{RowElement, Wide, check_alike, float_rows, narrowed, parameter};
use crate::array::Array;
use crate::dtype::{Element, Float};
use crate::error::{Error, Result};
use crate::lanes::{Kernel, Lanes, launch};
use crate::scratch::with_scratch;
use crate::threads::{self, SharedMut};

/// Rows whose parameter gradients are summed one after the other.
const BLOCK: usize = 64;
/// Copies of the parameter gradients, at most.
const CHUNKS: usize = 32;

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
    float_rows!("layer_norm", x.dtype(), T => {
        let weight = parameter::<_, T>("layer_norm", weight, len)?;
        let bias = parameter::<_, T>("layer_norm", bias, len)?;
        forward::<T>(x, (rows, len), (weight.as_deref(), bias.as_deref()), epsilon)
    })
}

type Parameters<'a, W> = (Option<&'a [W]>, Option<&'a [W]>);

fn forward<T: RowElement>(
    x: &Array,
    (rows, len): (usize, usize),
    parameters: Parameters<'_, T::Wide>,
    epsilon: f64,
) -> Result<Array> {
    let source = x.contiguous()?;
    let mut out = Array::uninit(x.dtype(), x.shape())?;
    let xs = source.as_slice::<T>().expect("made contiguous");
    let to = SharedMut::new(out.mut_ptr::<T>());
    super::for_rows(rows, len, &|first, end| {
        let range = first * len..end * len;
        // SAFETY: each task owns its rows of the result.
        let out = unsafe { to.slice(range.clone()) };
        with_scratch(len, |row: &mut [T::Wide]| {
            let epsilon = T::Wide::from_f64(epsilon);
            launch::<T::Wide, _>(Forward { x: &xs[range], out, row, parameters, epsilon });
        });
    });
    Ok(out)
}

struct Forward<'a, T: Float> {
    x: &'a [T],
    out: &'a mut [T],
    row: &'a mut [T::Wide],
    parameters: Parameters<'a, T::Wide>,
    epsilon: T::Wide,
}

/// Fills `row` with `x - m` for a rounded mean m; returns what m lacks to the mean, and `1 / sqrt(var + epsilon)`.
#[inline(always)]
fn centered<T: RowElement>(x: &[T], row: &mut [T::Wide], epsilon: T::Wide) -> (T::Wide, T::Wide) {
    let count = T::Wide::count(x.len());
    let mean = sum(x, Float::widen) / count;
    let row = &mut row[..x.len()];
    let (rest, squares) = moments(x, |x| x.widen() - mean, |i, d| row[i] = d);
    let rest = rest / count;
    let var = squares / count - rest * rest;
    (rest, T::Wide::ONE / (var + epsilon).sqrt())
}

impl<T: RowElement> Kernel<T::Wide> for Forward<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T::Wide>>(self) {
        let len = self.row.len();
        for (x, out) in self.x.chunks_exact(len).zip(self.out.chunks_exact_mut(len)) {
            let (rest, scale) = centered::<T>(x, self.row, self.epsilon);
            let normal = out.iter_mut().zip(self.row.iter().map(|&d| (d - rest) * scale));
            match self.parameters {
                (None, None) => normal.for_each(|(slot, y)| *slot = T::narrow(y)),
                (Some(weight), None) => normal.zip(weight).for_each(|((slot, y), &w)| *slot = T::narrow(y * w)),
                (None, Some(bias)) => normal.zip(bias).for_each(|((slot, y), &b)| *slot = T::narrow(y + b)),
                (Some(weight), Some(bias)) => {
                    for (((slot, y), &w), &b) in normal.zip(weight).zip(bias) {
                        *slot = T::narrow(y.times_plus::<V::Math>(w, b));
                    }
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
    float_rows!("layer_norm_backward", x.dtype(), T => {
        let weight = parameter::<_, T>("layer_norm_backward", weight, len)?;
        backward::<T>(g, x, (rows, len), weight.as_deref(), epsilon)
    })
}

fn backward<T: RowElement>(
    g: &Array,
    x: &Array,
    (rows, len): (usize, usize),
    weight: Option<&[T::Wide]>,
    epsilon: f64,
) -> Result<(Array, Array, Array)> {
    let (source, gradient) = (x.contiguous()?, g.contiguous()?);
    let mut dx = Array::uninit(x.dtype(), x.shape())?;
    let xs = source.as_slice::<T>().expect("made contiguous");
    let gs = gradient.as_slice::<T>().expect("made contiguous");
    let blocks = rows.div_ceil(BLOCK);
    let chunks = blocks.min(CHUNKS);
    let mut sums = vec![T::Wide::ZERO; chunks.max(1) * 2 * len];
    let (to, to_sums) = (SharedMut::new(dx.mut_ptr::<T>()), SharedMut::new(sums.as_mut_ptr()));
    let work = |chunk: usize| {
        // SAFETY: one task per chunk.
        let sums = unsafe { to_sums.slice(chunk * 2 * len..(chunk + 1) * 2 * len) };
        with_scratch(4 * len, |scratch: &mut [T::Wide]| {
            for block in chunk * blocks / chunks..(chunk + 1) * blocks / chunks {
                let range = block * BLOCK * len..((block + 1) * BLOCK).min(rows) * len;
                // SAFETY: each block of rows belongs to one chunk.
                let dx = unsafe { to.slice(range.clone()) };
                let epsilon = T::Wide::from_f64(epsilon);
                let (g, x) = (&gs[range.clone()], &xs[range]);
                launch::<T::Wide, _>(Backward { g, x, dx, weight, epsilon, scratch, len });
                sums.iter_mut().zip(&scratch[2 * len..]).for_each(|(sum, &part)| *sum = *sum + part);
            }
        });
    };
    threads::parallel(chunks, &work);
    let (first, others) = sums.split_at_mut(2 * len);
    for other in others.chunks_exact((2 * len).max(1)) {
        first.iter_mut().zip(other).for_each(|(sum, &part)| *sum = *sum + part);
    }
    Ok((dx, narrowed::<T>(&first[..len], &[len])?, narrowed::<T>(&first[len..], &[len])?))
}

struct Backward<'a, T: Float> {
    g: &'a [T],
    x: &'a [T],
    dx: &'a mut [T],
    weight: Option<&'a [T::Wide]>,
    epsilon: T::Wide,
    /// Two rows, and the sums of this block: first those for the weight, then those for the bias.
    scratch: &'a mut [T::Wide],
    len: usize,
}

impl<T: RowElement> Kernel<T::Wide> for Backward<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T::Wide>>(self) {
        let len = self.len;
        let count = T::Wide::count(len);
        let (rows, sums) = self.scratch.split_at_mut(2 * len);
        let (normal, inner) = rows.split_at_mut(len);
        sums.fill(T::Wide::ZERO);
        let (weight_sums, bias_sums) = sums.split_at_mut(len);
        let lines = self.g.chunks_exact(len).zip(self.x.chunks_exact(len));
        for ((g, x), dx) in lines.zip(self.dx.chunks_exact_mut(len)) {
            let (rest, scale) = centered::<T>(x, normal, self.epsilon);
            for d in normal.iter_mut() {
                *d = *d - rest;
            }
            let total = match self.weight {
                None => map_sum(g, inner, Float::widen),
                Some(weight) => {
                    for ((slot, &g), &w) in inner.iter_mut().zip(g).zip(weight) {
                        *slot = g.widen() * w;
                    }
                    sum(inner, |i| i)
                }
            };
            let product = sum2(inner, normal, |i: T::Wide, c: T::Wide| i * c) * scale;
            let (mean, pull) = (total / count, product / count * scale);
            for ((slot, &i), &c) in dx.iter_mut().zip(&*inner).zip(&*normal) {
                *slot = T::narrow(scale * (i - mean - c * pull));
            }
            for (((to_weight, to_bias), &g), &c) in weight_sums.iter_mut().zip(&mut *bias_sums).zip(g).zip(&*normal) {
                *to_weight = (g.widen() * scale).times_plus::<V::Math>(c, *to_weight);
                *to_bias = *to_bias + g.widen();
            }
        }
    }
}
