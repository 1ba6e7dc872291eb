//! Batch normalization: channels are axis 1. Sums per channel, then one value per element: by runs where a channel's
//! elements lie together, else by lines.

mod lines;
mod runs;

use super::{
    RowElement, Wide, check_alike, finite_or_zero, float_rows, narrowed, not_below_zero, numel, order, parameter, wide,
};
use crate::array::Array;
use crate::array::reader::Reader;
use crate::array::shape::Shape;
use crate::array::view;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::machine::threads::SharedMut;
use crate::memory::scratch::{collected, filled};
use crate::ops::elementwise::convert::cast;
use std::ops::Range;

/// A run shorter than this is not worth its set-up.
const SHORT: usize = 16;

/// How an array is read: as `images` times `channels` runs of `len` elements, after a change of its axes.
struct Form {
    axes: Shape,
    images: usize,
    channels: usize,
    len: usize,
    /// Whether runs are so short that whole images are read at once.
    lines: bool,
}

impl Form {
    fn new(op: &str, x: &Array) -> Result<Self> {
        if x.rank() < 2 {
            return Err(Error::value(op, format!("wrong rank: got {x:?}, expected (N, C, ..)")));
        }
        let (images, channels, len) = (x.shape()[0], x.shape()[1], numel(&x.shape()[2..]));
        let lies = |axes: &Shape| Ok(!x.is_contiguous() && view::permute_dims(x, axes)?.is_contiguous());
        let mut first = order(x.rank(), &[]);
        first.swap(0, 1);
        if lies(&first)? {
            return Ok(Self { axes: first, images: 1, channels, len: images * len, lines: false });
        }
        let last = order(x.rank(), &[1]);
        if lies(&last)? {
            return Ok(Self { axes: last, images: images * len, channels, len: 1, lines: true });
        }
        let lines = len < SHORT && images > 1;
        Ok(Self { axes: order(x.rank(), &[]), images, channels, len, lines })
    }

    /// Elements per channel.
    fn count(&self) -> usize {
        self.images * self.len
    }

    /// Two sums per channel.
    fn fold<T: RowElement>(&self, operands: &Operands<'_, T>, fold: Fold<'_, T::Wide>) -> Vec<[T::Wide; 2]> {
        if self.count() == 0 {
            return filled([T::Wide::ZERO; 2], self.channels);
        }
        if self.lines { self.fold_lines(operands, fold) } else { self.fold_runs(operands, fold) }
    }

    /// A value per element, in the shape and the order of the operands.
    fn map<T: RowElement>(&self, operands: &Operands<'_, T>, like: &Array, map: Map<'_, T::Wide>) -> Result<Array> {
        let mut out = Array::uninit(T::DTYPE, view::permute_dims(like, &self.axes)?.shape())?;
        if out.numel() > 0 {
            let to = SharedMut::new(out.mut_ptr::<T>());
            // SAFETY: the fresh result has the shape of the operands, and only this call knows it.
            unsafe { if self.lines { self.map_lines(operands, map, to) } else { self.map_runs(operands, map, to) } }
        }
        let mut back = self.axes;
        self.axes.iter().enumerate().for_each(|(to, &from)| back[from] = to);
        view::permute_dims(&out, &back)
    }
}

/// x, and the gradient where there is one.
struct Operands<'a, T> {
    x: Reader<'a, T>,
    g: Option<Reader<'a, T>>,
}

impl<T: RowElement> Operands<'_, T> {
    /// Lengths of the buffers that [`Operands::read`] needs for parts of `len`.
    fn rooms(&self, len: usize) -> [usize; 4] {
        let (wide, g) = (T::buffer(len), self.g.as_ref());
        [wide, self.x.room(len), g.map_or(0, |_| wide), g.map_or(0, |g| g.room(len))]
    }

    /// A part of x, and of the gradient; x again where there is none.
    fn read<'b>(&'b self, range: Range<usize>, buffers: &'b mut [&mut [T::Wide]; 4]) -> (&'b [T::Wide], &'b [T::Wide]) {
        let [x_wide, x_gathered, g_wide, g_gathered] = buffers;
        let x = T::read(self.x.part(range.clone(), x_gathered), x_wide);
        (x, self.g.as_ref().map_or(x, |g| T::read(g.part(range, g_gathered), g_wide)))
    }
}

/// What is summed over a channel.
#[derive(Clone, Copy)]
enum Fold<'a, W> {
    /// x.
    Sum,
    /// The distances of x from these means, and their squares.
    Moments(&'a [W]),
    /// g, and g times the distances of x from these means.
    Products(&'a [W]),
}

impl<'a, W> Fold<'a, W> {
    fn means(self) -> Option<&'a [W]> {
        match self {
            Fold::Sum => None,
            Fold::Moments(means) | Fold::Products(means) => Some(means),
        }
    }

    fn with<'b>(self, change: impl FnOnce(&'a [W]) -> &'b [W]) -> Fold<'b, W> {
        match self {
            Fold::Sum => Fold::Sum,
            Fold::Moments(means) => Fold::Moments(change(means)),
            Fold::Products(means) => Fold::Products(change(means)),
        }
    }
}

/// What is made of an element, with up to four values per channel.
#[derive(Clone, Copy)]
struct Map<'a, W> {
    rule: Rule,
    by: [&'a [W]; 4],
}

#[derive(Clone, Copy)]
enum Rule {
    /// `(x - mean) * scale + bias`; the fourth value is not used.
    Affine,
    /// `scale * (g - level - (x - mean) * pull)`.
    Pull,
}

/// `(x - mean) / sqrt(var + epsilon) * weight + bias`, each `[C]`.
pub fn batch_norm(x: &Array, weight: &Array, bias: &Array, [mean, var]: [&Array; 2], epsilon: f64) -> Result<Array> {
    const OP: &str = "batch_norm";
    let form = Form::new(OP, x)?;
    float_rows!(OP, x.dtype(), T => {
        let [weight, bias, mean, var] = parameters::<T, 4>(OP, [weight, bias, mean, var], form.channels)?;
        let source = view::permute_dims(x, &form.axes)?;
        let operands = Operands::<T> { x: Reader::new(&source), g: None };
        let scale = scales(&weight, &var, epsilon);
        form.map(&operands, x, Map { rule: Rule::Affine, by: [&mean, &scale, &bias, &bias] })
    })
}

fn parameters<T: RowElement, const K: usize>(op: &str, all: [&Array; K], channels: usize) -> Result<[Vec<T::Wide>; K]> {
    let mut out = [const { Vec::new() }; K];
    for (slot, x) in out.iter_mut().zip(all) {
        *slot = parameter::<_, T>(op, Some(x), channels)?.unwrap_or_default();
    }
    Ok(out)
}

/// `weight / sqrt(var + epsilon)`.
fn scales<W: Wide>(weight: &[W], var: &[W], epsilon: f64) -> Vec<W> {
    collected(weight.iter().zip(var).map(|(&weight, &var)| weight / (var + W::from_f64(epsilon)).sqrt()))
}

/// [`batch_norm`] by the batch's own mean and biased variance, which are results too.
pub fn batch_norm_train(x: &Array, weight: &Array, bias: &Array, epsilon: f64) -> Result<(Array, Array, Array)> {
    const OP: &str = "batch_norm_train";
    let form = Form::new(OP, x)?;
    let out = float_rows!(OP, x.dtype(), T => {
        let [weight, bias] = parameters::<T, 2>(OP, [weight, bias], form.channels)?;
        let source = view::permute_dims(x, &form.axes)?;
        train(&form, &Operands::<T> { x: Reader::new(&source), g: None }, x, [&weight, &bias], epsilon)
    })?;
    if let Some([out, mean, var]) = out {
        return Ok((out, mean, var));
    }
    let (out, mean, var) = batch_norm_train(&wide(x)?, &wide(weight)?, &wide(bias)?, epsilon)?;
    Ok((cast(&out, x.dtype())?, cast(&mean, x.dtype())?, cast(&var, x.dtype())?))
}

/// `None` where squares left the range of a type that is narrower than float64.
fn train<T: RowElement>(
    form: &Form,
    operands: &Operands<'_, T>,
    x: &Array,
    [weight, bias]: [&[T::Wide]; 2],
    epsilon: f64,
) -> Result<Option<[Array; 3]>> {
    let count = T::Wide::count(form.count());
    let near = collected(form.fold(operands, Fold::Sum).iter().map(|sum| sum[0] / count));
    let sums = form.fold(operands, Fold::Moments(&near));
    let rest = collected(sums.iter().map(|sum| sum[0] / count));
    let var = collected(sums.iter().zip(&rest).map(|(sum, &rest)| not_below_zero(sum[1] / count - rest * rest)));
    if T::DTYPE != DType::F64 && var.iter().any(|var| !var.to_f64().is_finite()) {
        return Ok(None);
    }
    let scale = scales(weight, &var, epsilon);
    // Far from 0 the mean is no number of the type: `(x - near) * scale + (bias - rest * scale)`.
    let by = rest.iter().zip(&scale).zip(bias);
    let shift = collected(by.map(|((&rest, &scale), &bias)| bias - finite_or_zero(rest * scale)));
    let out = form.map(operands, x, Map { rule: Rule::Affine, by: [&near, &scale, &shift, &shift] })?;
    let mean = collected(near.iter().zip(&rest).map(|(&near, &rest)| near + rest));
    let channels = &[form.channels];
    Ok(Some([out, narrowed::<T>(&mean, channels)?, narrowed::<T>(&var, channels)?]))
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
    let form = Form::new(OP, x)?;
    float_rows!(OP, x.dtype(), T => {
        let [weight, mean, var] = parameters::<T, 3>(OP, [weight, mean, var], form.channels)?;
        let (gradient, source) = (view::permute_dims(g, &form.axes)?, view::permute_dims(x, &form.axes)?);
        let operands = Operands::<T> { x: Reader::new(&source), g: Some(Reader::new(&gradient)) };
        backward(&form, &operands, x, &[weight, mean, var], epsilon)
    })
}

fn backward<T: RowElement>(
    form: &Form,
    operands: &Operands<'_, T>,
    x: &Array,
    [weight, mean, var]: &[Vec<T::Wide>; 3],
    epsilon: f64,
) -> Result<(Array, Array, Array)> {
    let one = filled(T::Wide::ONE, form.channels);
    let (invert, scale) = (scales(&one, var, epsilon), scales(weight, var, epsilon));
    let sums = form.fold(operands, Fold::Products(mean));
    let rest = rests(form, operands, mean, var);
    let bias_grad = collected(sums.iter().map(|sum| sum[0]));
    let products = sums.iter().zip(&rest).map(|(sum, &rest)| sum[1] - finite_or_zero(rest * sum[0]));
    let weight_grad = collected(products.zip(&invert).map(|(product, &invert)| product * invert));
    let count = T::Wide::count(form.count());
    let pull = collected(weight_grad.iter().zip(&invert).map(|(&grad, &invert)| grad / count * invert));
    let by = bias_grad.iter().zip(&rest).zip(&pull);
    let level = collected(by.map(|((&grad, &rest), &pull)| grad / count - finite_or_zero(rest * pull)));
    let out = form.map(operands, x, Map { rule: Rule::Pull, by: [mean, &scale, &level, &pull] })?;
    let channels = &[form.channels];
    Ok((out, narrowed::<T>(&weight_grad, channels)?, narrowed::<T>(&bias_grad, channels)?))
}

/// What rounding took from the mean of each channel: far from 0 that is no small part of the distances from it. Nothing
/// where it is no more than about eight times the spread, or where another number was given for the mean.
fn rests<T: RowElement>(form: &Form, operands: &Operands<'_, T>, mean: &[T::Wide], var: &[T::Wide]) -> Vec<T::Wide> {
    let far = |(mean, var): (&T::Wide, &T::Wide)| mean.to_f64().powi(2) > 64.0 * var.to_f64();
    if !mean.iter().zip(var).any(far) {
        return filled(T::Wide::ZERO, form.channels);
    }
    let count = form.count() as f64;
    let sums = form.fold(operands, Fold::Moments(mean));
    collected(sums.iter().zip(mean).map(|(sum, mean)| {
        let rest = sum[0].to_f64() / count;
        T::Wide::from_f64(if rest.abs() <= mean.to_f64().abs() / 256.0 { rest } else { 0.0 })
    }))
}
