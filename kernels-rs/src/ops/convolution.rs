//! Two-dimensional convolution and its gradients, NCHW.
//!
//! The forward pass and the input gradient are one algorithm ([`correlation`]): a tile of the source is copied into scratch
//! in a form where every tap reads at a fixed distance ([`band`]), and a register tile of results stays in registers
//! over all taps ([`correlate`]). Lanes are neighbouring positions, so images stay NCHW and weights are read where they lie. With many
//! channels it is a matrix product whose right side is packed in panels through the offset table ([`implicit`]); no
//! im2col matrix exists. Source of the idea: "The Indirect Convolution Algorithm", arXiv 1907.02129.
//! Few positions: dot products of what they read with the weights where they lie ([`few`]).
//! One small plane and many weights: the input gradient is a matrix product with the weights where they lie ([`columns`]).
//! Kernels of 1 x 1 that read every position are plain matrix products ([`pointwise`], [`pointwise_grad`]).
//! Kernels of 3 x 3 with stride 1 and enough work go through tiles of 2 x 2 results ([`winograd`]).
//! Bfloat16 where there is a unit for tiles: a matrix product whose right side is pairs of channels in a band ([`amx`]).
//! The weight gradient ([`weight_grad`]) exchanges the roles of positions and taps; for such kernels it sums tiles, too
//! ([`winograd::gradient`]).

#[cfg(target_arch = "x86_64")]
mod amx;
pub mod axis;
pub mod band;
mod columns;
mod correlate;
mod cut;
mod depthwise;
mod few;
mod implicit;
mod panel;
mod pointwise;
mod pointwise_grad;
#[cfg(test)]
mod reference;
mod rows;
#[cfg(test)]
mod tests;
pub mod weight_grad;
mod wide;
mod window;
mod winograd;

use crate::array::Array;
use crate::dtype::{BF16, DType, Element};
use crate::error::{Error, Result};
#[cfg(target_arch = "x86_64")]
use crate::machine::amx::Processor;
use crate::machine::lanes::Real;
use crate::machine::threads::SharedMut;
use crate::ops::contraction::Gemm;
use crate::ops::elementwise::convert::cast;
use crate::ops::parts::{self, PART};
use axis::Axis;
use cut::{Side, cut};
pub use window::{Settings, Window};

/// `out[n, o, t, u] = bias[o] + sum over c and taps of w[o, c, tap] * source[n, c, ...]`, per group.
struct Correlation<'a, T> {
    /// Batch, groups.
    batch: usize,
    /// Groups.
    groups: usize,
    /// Channels of the source, per group.
    channels: usize,
    /// Channels of the result, per group.
    outputs: usize,
    /// Rows and columns of the source.
    source_size: (usize, usize),
    /// Rows and columns of the result.
    out_size: (usize, usize),
    /// The source, row-major.
    source: &'a [T],
    /// The kernel.
    weight: Weights<'a, T>,
    /// One per output channel.
    bias: Option<&'a [T]>,
    /// Row axis.
    row_axis: &'a Axis,
    /// Column axis.
    col_axis: &'a Axis,
}

/// A kernel tensor with the meaning of its axes.
#[derive(Clone, Copy)]
struct Weights<'a, T> {
    /// Row-major `[.., .., kh, kw]`.
    data: &'a [T],
    /// From one group to the next.
    group: usize,
    /// From one output channel to the next.
    output: usize,
    /// From one source channel to the next.
    channel: usize,
    /// Columns of the kernel.
    kernel_cols: usize,
}

/// `out[n, o, i, j] = bias[o] + sum over c, k, l of x[n, c, i*s + k*d - p, j*s + l*d - p] * weight[o, c, k, l]`, per group.
/// Narrow floats are computed in `f32`.
pub fn conv2d(x: &Array, weight: &Array, bias: Option<&Array>, settings: &Settings) -> Result<Array> {
    let window = Window::new("conv2d", x.shape(), weight.shape(), settings)?;
    if bias.is_some_and(|bias| bias.shape()[..] != [window.outputs]) {
        return Err(Error::value("conv2d", format!("wrong bias: got {bias:?}, expected shape [{}]", window.outputs)));
    }
    let shape = window.output_shape();
    let dtype = compute_dtype("conv2d", &[Some(x), Some(weight), bias])?;
    if pointwise::applies(&window, dtype) {
        return pointwise::forward(&window, x, weight, bias);
    }
    match (dtype, tiles(&window)) {
        (DType::BF16, Some(tiles)) => forward::<BF16>(tiles.forward, &window, x, weight, bias, &shape),
        (DType::F64, _) => forward::<f64>(forward_way(&window), &window, x, weight, bias, &shape),
        _ => forward::<f32>(forward_way(&window), &window, x, weight, bias, &shape),
    }
}

/// The gradient of [`conv2d`] with respect to `x`, which has shape `input_shape`.
pub fn conv2d_input_grad(g: &Array, weight: &Array, input_shape: &[usize], settings: &Settings) -> Result<Array> {
    let window = Window::new("conv2d_input_grad", input_shape, weight.shape(), settings)?;
    window.check_gradient("conv2d_input_grad", g)?;
    let dtype = compute_dtype("conv2d_input_grad", &[Some(g), Some(weight)])?;
    input_grad(dtype, &window, g, weight, None, input_shape)
}

/// The transposed convolution: the input gradient of the convolution with this weight `[in, out / groups, kh, kw]`, for an
/// input that has `extra` rows and columns more at its end, and `bias` added to its channels.
pub fn conv_transpose2d(
    x: &Array,
    weight: &Array,
    bias: Option<&Array>,
    settings: &Settings,
    extra: (usize, usize),
) -> Result<Array> {
    const OP: &str = "conv_transpose2d";
    let (window, shape) = Window::transposed(OP, x.shape(), weight.shape(), settings, extra)?;
    if bias.is_some_and(|bias| bias.shape()[..] != [window.inputs]) {
        return Err(Error::value(OP, format!("wrong bias: got {bias:?}, expected shape [{}]", window.inputs)));
    }
    let dtype = compute_dtype(OP, &[Some(x), Some(weight), bias])?;
    input_grad(dtype, &window, x, weight, bias, &shape)
}

/// The gradient of [`conv2d`] with respect to `weight`, which has shape `weight_shape`.
pub fn conv2d_weight_grad(g: &Array, x: &Array, weight_shape: &[usize], settings: &Settings) -> Result<Array> {
    let window = Window::new("conv2d_weight_grad", x.shape(), weight_shape, settings)?;
    window.check_gradient("conv2d_weight_grad", g)?;
    let dtype = compute_dtype("conv2d_weight_grad", &[Some(g), Some(x)])?;
    if let (DType::BF16, Some(tiles)) = (dtype, tiles(&window))
        && let Some(out) = (tiles.weight_grad)(&window, g, x, weight_shape)?
    {
        return Ok(out);
    }
    match dtype {
        DType::F64 => weight_grad::<f64>(&window, g, x, weight_shape),
        _ => weight_grad::<f32>(&window, g, x, weight_shape),
    }
}

/// The common dtype of the operands, which must be a float.
fn compute_dtype(op: &str, operands: &[Option<&Array>]) -> Result<DType> {
    let dtype = operands[0].map_or(DType::F32, Array::dtype);
    if dtype.is_float() && operands.iter().flatten().all(|x| x.dtype() == dtype) {
        return Ok(dtype);
    }
    let got: Vec<_> = operands.iter().flatten().map(|x| x.dtype().name()).collect();
    Err(Error::value(op, format!("wrong dtypes: got {got:?}, expected one float dtype")))
}

/// Bytes of images that are made ready at a time: no fewer than those of the weights, which are packed, or added up, for
/// each part.
fn most<T: Element>(weight: &Array) -> usize {
    PART.max(weight.numel() * size_of::<T>())
}

/// What computes images of a convolution, or of its input gradient: from the source, the kernel, and what is added.
type Run<T> = fn(&Window, &[T], &[T], Option<&[T]>, &mut [T]) -> Result<()>;

/// What computes a gradient with respect to the kernel; none if a sum is not finite.
type Gradient = fn(&Window, &Array, &Array, &[usize]) -> Result<Option<Array>>;

/// The ways of bfloat16 by tiles.
struct Tiles {
    forward: Run<BF16>,
    input_grad: Run<BF16>,
    weight_grad: Gradient,
}

/// Those, where there is such a unit and it pays.
#[cfg(target_arch = "x86_64")]
fn tiles(window: &Window) -> Option<Tiles> {
    amx::takes(window).then_some(Tiles {
        forward: amx::forward::<Processor>,
        input_grad: amx::input_grad::<Processor>,
        weight_grad: amx::gradient::run::<Processor>,
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn tiles(_: &Window) -> Option<Tiles> {
    None
}

fn forward_way<T: Real + Gemm>(window: &Window) -> Run<T> {
    if few::applies(window) {
        return few::forward;
    }
    |window, x, weight, bias, out| window::forward(window, x, weight, bias, out, correlation)
}

fn input_grad_way<T: Real + Gemm>(window: &Window) -> Run<T> {
    if columns::applies(window) {
        return columns::input_grad;
    }
    |window, g, weight, bias, out| window::input_grad(window, g, weight, bias, out, correlation)
}

fn forward<T: Element>(
    run: Run<T>,
    window: &Window,
    x: &Array,
    weight: &Array,
    bias: Option<&Array>,
    shape: &[usize],
) -> Result<Array> {
    let ready = |x: &Array| parts::ready(x, T::DTYPE);
    let (kernel, bias) = (ready(weight)?, bias.map(ready).transpose()?);
    let (kernel, bias) = (slice(&kernel), bias.as_ref().map(slice::<T>));
    let mut out = Array::uninit(x.dtype(), shape)?;
    for part in cut(window, Side::Output, parts::made(&[x, &out], T::DTYPE), most::<T>(weight)) {
        let source = part.input::<T>(x)?;
        part.write(&mut out, &part.output, |to| run(&part.window, slice::<T>(&source), kernel, bias, to))?;
    }
    Ok(out)
}

/// The input gradient by the way that fits, with `bias` added to its channels.
fn input_grad(
    dtype: DType,
    window: &Window,
    g: &Array,
    weight: &Array,
    bias: Option<&Array>,
    shape: &[usize],
) -> Result<Array> {
    if pointwise::applies(window, dtype) {
        return pointwise::input_grad(window, g, weight, bias, shape);
    }
    match (dtype, tiles(window)) {
        (DType::BF16, Some(tiles)) => input_grad_in_parts::<BF16>(tiles.input_grad, window, g, weight, bias, shape),
        (DType::F64, _) => input_grad_in_parts::<f64>(input_grad_way(window), window, g, weight, bias, shape),
        _ => input_grad_in_parts::<f32>(input_grad_way(window), window, g, weight, bias, shape),
    }
}

fn input_grad_in_parts<T: Element>(
    run: Run<T>,
    window: &Window,
    g: &Array,
    weight: &Array,
    bias: Option<&Array>,
    shape: &[usize],
) -> Result<Array> {
    let ready = |x: &Array| parts::ready(x, T::DTYPE);
    let (kernel, bias) = (ready(weight)?, bias.map(ready).transpose()?);
    let (kernel, bias) = (slice(&kernel), bias.as_ref().map(slice::<T>));
    let mut out = Array::uninit(g.dtype(), shape)?;
    for part in cut(window, Side::Input, parts::made(&[g, &out], T::DTYPE), most::<T>(weight)) {
        let source = part.output::<T>(g)?;
        part.write(&mut out, &part.input, |to| run(&part.window, slice::<T>(&source), kernel, bias, to))?;
    }
    Ok(out)
}

fn weight_grad<T: Real + Gemm>(window: &Window, g: &Array, x: &Array, shape: &[usize]) -> Result<Array> {
    let mut out = Array::uninit(T::DTYPE, shape)?;
    let all = cut(window, Side::Output, parts::made(&[g, x], T::DTYPE), most::<T>(&out));
    for (i, part) in all.iter().enumerate() {
        let (gradient, source) = (part.output::<T>(g)?, part.input::<T>(x)?);
        let (g, x) = (slice::<T>(&gradient), slice(&source));
        if i == 0 {
            part_of_weight_grad(&part.window, g, x, out.as_mut_slice())?;
        } else {
            let mut more = Array::uninit(T::DTYPE, shape)?;
            part_of_weight_grad(&part.window, g, x, more.as_mut_slice())?;
            out.as_mut_slice::<T>().iter_mut().zip(slice(&more)).for_each(|(sum, &term)| *sum = *sum + term);
        }
    }
    cast(&out, g.dtype())
}

/// Writes the sums over the images of the window.
fn part_of_weight_grad<T: Real + Gemm>(window: &Window, g: &[T], x: &[T], out: &mut [T]) -> Result<()> {
    if pointwise_grad::applies(window) {
        pointwise_grad::run(window, g, x, out)
    } else {
        weight_grad::run(window, g, x, out)
    }
}

/// Runs a correlation by the way that fits, writing the results at the places that the axes name.
///
/// # Safety
/// `out` holds `batch * groups * outputs * out_size` elements that nobody else touches.
unsafe fn correlation<T: Real>(call: &Correlation<'_, T>, out: SharedMut<T>) -> Result<()> {
    if call.batch * call.groups * call.outputs * call.row_axis.count * call.col_axis.count == 0 {
        return Ok(());
    }
    // SAFETY: the call goes on as it came: its arrays are as large as the caller promises.
    unsafe {
        if winograd::run(call, out)? {
            return Ok(());
        }
        if depthwise::applies(call) {
            depthwise::run(call, out);
        } else if implicit::pays(call) {
            implicit::run(call, out);
        } else {
            correlate::run(call, out);
        }
    }
    Ok(())
}

fn slice<T: Element>(x: &Array) -> &[T] {
    x.as_slice().expect("made contiguous")
}
