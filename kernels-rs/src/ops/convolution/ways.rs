//! Which way computes a convolution: one row each, in the order in which they are asked.

#[cfg(target_arch = "x86_64")]
use super::amx;
use super::cut::{Given, Run, Side, cut, most};
use super::window::{self, Window};
use super::{
    Correlation, columns, correlate, depthwise, few, implicit, pointwise, pointwise_grad, slice, weight_grad, winograd,
};
use crate::array::Array;
use crate::dtype::{BF16, DType};
use crate::error::Result;
#[cfg(target_arch = "x86_64")]
use crate::machine::amx::Processor;
use crate::machine::lanes::{Real, is_baseline};
use crate::machine::threads::SharedMut;
use crate::ops::contraction::Gemm;
use crate::ops::elementwise::convert::cast;
use crate::ops::parts;
use crate::ops::ways::{Ways, ways};

/// The tables, in the order of the computation.
pub static TABLES: [&Ways; 5] = [&FORWARD, &INPUT_GRAD, &CORRELATION, &WEIGHT_GRAD, &TAPS];

ways! {
    FORWARD "conv2d"
    /// The forward pass.
    #[inline]
    [pub fn] forward[](given: &Given<'_>) -> Result<Array> {
        "pointwise" if pointwise::applies(given.window, given.dtype()) => pointwise::forward(given);
        "tiles" if true => tiles(given.window, given.dtype(), |tiles| given.in_parts(Side::Output, tiles.forward)), or next;
        "few" if few::applies(given.window) => given.in_floats(Side::Output, few::forward, few::forward);
        "correlation" if true => given.in_floats(Side::Output, correlated, correlated);
    }
}

ways! {
    INPUT_GRAD "conv2d_input_grad"
    /// The gradient with respect to the input, with the bias added to its channels.
    #[inline]
    [pub fn] input_grad[](given: &Given<'_>) -> Result<Array> {
        "pointwise" if pointwise::applies(given.window, given.dtype()) => pointwise::input_grad(given);
        "tiles" if true => tiles(given.window, given.dtype(), |tiles| given.in_parts(Side::Input, tiles.input_grad)), or next;
        "columns" if columns::applies(given.window) => given.in_floats(Side::Input, columns::input_grad, columns::input_grad);
        "correlation" if true => given.in_floats(Side::Input, correlated_back, correlated_back);
    }
}

ways! {
    CORRELATION "correlation"
    /// Runs a correlation, which is not empty, writing the results at the places that the axes name.
    ///
    /// # Safety
    /// `out` holds `batch * groups * outputs * out_size` elements that nobody else touches.
    [unsafe fn] not_empty[T: Real](call: &Correlation<'_, T>, out: SharedMut<T>) -> Result<()> {
        "winograd" if quick::<T>() => winograd::run(call, out), or next;
        "depthwise" if quick::<T>() && depthwise::applies(call) => { depthwise::run(call, out); Ok(()) };
        "implicit" if quick::<T>() && implicit::applies(call) => { implicit::run(call, out); Ok(()) };
        "taps" if true => { correlate::run(call, out); Ok(()) };
    }
}

ways! {
    WEIGHT_GRAD "conv2d_weight_grad"
    /// The gradient with respect to the kernel.
    [pub fn] weight_gradient[](window: &Window, g: &Array, x: &Array, shape: &[usize]) -> Result<Array> {
        "tiles" if true => tiles(window, g.dtype(), |tiles| (tiles.weight_grad)(window, g, x, shape)).map(Option::flatten), or next;
        "sums" if true => if g.dtype() == DType::F64 { summed::<f64>(window, g, x, shape) } else { summed::<f32>(window, g, x, shape) };
    }
}

ways! {
    TAPS "taps"
    /// Writes the sums over the images of the window.
    [fn] sums[T: Real](window: &Window, g: &[T], x: &[T], out: &mut [T]) -> Result<()> {
        "pointwise" if quick::<T>() && pointwise_grad::applies(window) => pointwise_grad::run(window, g, x, out);
        "winograd" if quick::<T>() && winograd::gradient::applies::<T>(window) => winograd::gradient::run(window, g, x, out), or next;
        "taps" if true => weight_grad::run(window, g, x, out);
    }
}

/// Whether there are the quicker ways: `f64`, which few networks have, goes by those that always apply, as do old processors.
fn quick<T: Real>() -> bool {
    !matches!(T::DTYPE, DType::F64) && !is_baseline()
}

/// What computes a gradient with respect to the kernel; none if a sum is not finite.
type Gradient = fn(&Window, &Array, &Array, &[usize]) -> Result<Option<Array>>;

/// The ways of bfloat16 by tiles.
struct Tiles {
    forward: Run<BF16>,
    input_grad: Run<BF16>,
    weight_grad: Gradient,
}

/// What `run` gives where there is a unit for tiles, and they would be well filled.
#[cfg(target_arch = "x86_64")]
fn tiles<R>(window: &Window, dtype: DType, run: impl Fn(Tiles) -> Result<R>) -> Result<Option<R>> {
    let tiles = Tiles {
        forward: amx::forward::<Processor>,
        input_grad: amx::input_grad::<Processor>,
        weight_grad: amx::gradient::run::<Processor>,
    };
    if dtype == DType::BF16 && amx::applies(window) { run(tiles).map(Some) } else { Ok(None) }
}

#[cfg(not(target_arch = "x86_64"))]
#[expect(clippy::unnecessary_wraps, reason = "the unit for tiles can fail, where there is one")]
fn tiles<R>(_: &Window, _: DType, _: impl Fn(Tiles) -> Result<R>) -> Result<Option<R>> {
    Ok(None)
}

/// Runs a correlation.
///
/// # Safety
/// As [`not_empty`].
unsafe fn correlation<T: Real>(call: &Correlation<'_, T>, out: SharedMut<T>) -> Result<()> {
    let results = call.batch * call.groups * call.outputs * call.row_axis.count * call.col_axis.count;
    if results == 0 { Ok(()) } else { not_empty(call, out) }
}

fn correlated<T: Real>(window: &Window, x: &[T], weight: &[T], bias: Option<&[T]>, out: &mut [T]) -> Result<()> {
    window::forward(window, x, weight, bias, out, correlation)
}

fn correlated_back<T: Real>(window: &Window, g: &[T], weight: &[T], bias: Option<&[T]>, out: &mut [T]) -> Result<()> {
    window::input_grad(window, g, weight, bias, out, correlation)
}

/// The gradient with respect to the kernel, summed over parts of a few images.
fn summed<T: Real + Gemm>(window: &Window, g: &Array, x: &Array, shape: &[usize]) -> Result<Array> {
    let mut out = Array::uninit(T::DTYPE, shape)?;
    if out.numel() == 0 || window.batch * window.row.output * window.col.output == 0 {
        return Array::zeros(g.dtype(), shape);
    }
    let all = cut(window, Side::Output, parts::made(&[g, x], T::DTYPE), most::<T>(&out));
    for (i, part) in all.iter().enumerate() {
        let (gradient, source) = (part.output::<T>(g)?, part.input::<T>(x)?);
        let (g, x) = (slice::<T>(&gradient), slice(&source));
        if i == 0 {
            sums(&part.window, g, x, out.as_mut_slice())?;
        } else {
            let mut more = Array::uninit(T::DTYPE, shape)?;
            sums(&part.window, g, x, more.as_mut_slice())?;
            out.as_mut_slice::<T>().iter_mut().zip(slice(&more)).for_each(|(sum, &term)| *sum = *sum + term);
        }
    }
    cast(&out, g.dtype())
}
