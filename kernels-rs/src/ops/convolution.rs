//! Two-dimensional convolution and its gradients, NCHW.
//!
//! Which way computes it: [`ways`]. The forward pass and the input gradient are one algorithm: a tile of the source is
//! copied into scratch in a form where every tap reads at a fixed distance ([`band`]), and a register tile of results
//! stays in registers over all taps ([`correlate`]). Lanes are neighbouring positions, so images stay NCHW and weights are
//! read where they lie. No im2col matrix exists. Source of the idea: "The Indirect Convolution Algorithm", arXiv 1907.02129.
//! The weight gradient exchanges the roles of positions and taps.

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
pub mod ways;
pub mod weight_grad;
mod wide;
mod window;
mod winograd;

use crate::array::Array;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use axis::Axis;
use cut::Given;
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
    check_dtypes("conv2d", &[Some(x), Some(weight), bias])?;
    ways::forward(&Given { window: &window, source: x, weight, bias, shape: &shape })
}

/// The gradient of [`conv2d`] with respect to `x`, which has shape `input_shape`.
pub fn conv2d_input_grad(g: &Array, weight: &Array, input_shape: &[usize], settings: &Settings) -> Result<Array> {
    let window = Window::new("conv2d_input_grad", input_shape, weight.shape(), settings)?;
    window.check_gradient("conv2d_input_grad", g)?;
    check_dtypes("conv2d_input_grad", &[Some(g), Some(weight)])?;
    ways::input_grad(&Given { window: &window, source: g, weight, bias: None, shape: input_shape })
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
    check_dtypes(OP, &[Some(x), Some(weight), bias])?;
    ways::input_grad(&Given { window: &window, source: x, weight, bias, shape: &shape })
}

/// The gradient of [`conv2d`] with respect to `weight`, which has shape `weight_shape`.
pub fn conv2d_weight_grad(g: &Array, x: &Array, weight_shape: &[usize], settings: &Settings) -> Result<Array> {
    let window = Window::new("conv2d_weight_grad", x.shape(), weight_shape, settings)?;
    window.check_gradient("conv2d_weight_grad", g)?;
    check_dtypes("conv2d_weight_grad", &[Some(g), Some(x)])?;
    ways::weight_gradient(&window, g, x, weight_shape)
}

/// The operands must have one float dtype.
fn check_dtypes(op: &str, operands: &[Option<&Array>]) -> Result<()> {
    let dtype = operands[0].map_or(DType::F32, Array::dtype);
    if dtype.is_float() && operands.iter().flatten().all(|x| x.dtype() == dtype) {
        return Ok(());
    }
    let got: Vec<_> = operands.iter().flatten().map(|x| x.dtype().name()).collect();
    Err(Error::value(op, format!("wrong dtypes: got {got:?}, expected one float dtype")))
}

fn slice<T: Element>(x: &Array) -> &[T] {
    x.as_slice().expect("made contiguous")
}
