//! Runs a kernel over operands of any layout.
//!
//! Kernels only see contiguous runs. Here the order of the axes is chosen, and the axes are merged where all layouts
//! allow it; [`super::walk`] does the rest. So no op is compiled per layout.

use super::band::{self, Band};
use super::run::Run;
use super::walk::{View, Walk, is_narrow, merge_axes};
use super::{Input, Plan};
use crate::array::Array;
use crate::array::shape::{self, Shape, Strides};
use crate::error::Result;
use crate::machine::threads::{self, SharedMut};

/// Elements up to which bookkeeping costs more than the work.
const SMALL: usize = 4 << 10;
/// Shortest last axis for which a kernel call per run is cheaper than tiles.
const SHORT: usize = 24;
/// Elements of light work that are worth a task of their own.
const GRAIN: usize = 16 << 10;
/// The same for heavy work.
const HEAVY_GRAIN: usize = 4 << 10;

/// Runs `plan` on operands that are known to broadcast to `shape`.
#[inline]
pub fn run<const N: usize>(plan: &Plan, sources: [Input<'_>; N], shape: &[usize]) -> Result<Array> {
    match run_small(plan, &sources) {
        Some(out) => out,
        None => run_any(plan, sources, shape),
    }
}

/// The short way for a few elements in row-major order, where the bookkeeping would cost more than the work.
#[inline]
fn run_small<const N: usize>(plan: &Plan, sources: &[Input<'_>; N]) -> Option<Result<Array>> {
    let mut first: Option<&Array> = None;
    let mut run = Run { src: [std::ptr::null(); 3], unit: [false; 3], dst: std::ptr::null_mut(), len: 0 };
    for (k, source) in sources.iter().enumerate() {
        match source {
            Input::Array(array) => {
                let fits = array.is_contiguous() && (plan.raw || !is_narrow(array.dtype()));
                if !fits || first.is_some_and(|first| !first.same_shape(array)) {
                    return None;
                }
                first = first.or(Some(array));
                (run.src[k], run.unit[k]) = (array.data(), true);
            }
            Input::Value(value) => run.src[k] = (&raw const *value).cast(),
        }
    }
    let like = first?;
    run.len = like.numel();
    if run.len >= SMALL || (!plan.raw && is_narrow(plan.dtype)) {
        return None;
    }
    let out = match like.uninit_like(plan.dtype) {
        Ok(out) => out,
        Err(error) => return Some(Err(error)),
    };
    run.dst = out.data().cast_mut();
    // SAFETY: operands and the fresh result are dense and hold `len` elements of the kernel's types.
    unsafe { (plan.kernel)(&run) };
    Some(Ok(out))
}

#[inline(never)]
fn run_any<const N: usize>(plan: &Plan, sources: [Input<'_>; N], shape: &[usize]) -> Result<Array> {
    if let Some(strides) = common_layout(&sources, shape) {
        let out = Array::uninit(plan.dtype, shape)?;
        let views = sources.map(|source| View::flat(plan, source));
        execute(plan, &views, &[shape::numel(shape)], &out);
        if strides[..] == out.strides()[..] {
            return Ok(out);
        }
        return out.with_geometry(out.shape(), &strides, 0);
    }
    let views = sources.map(|source| View::broadcast(plan, source, shape));
    let Some(order) = foreign_order(&sources, shape) else {
        let out = Array::uninit(plan.dtype, shape)?;
        walk_all(plan, views, shape, &out);
        return Ok(out);
    };
    let mut dims = Shape::empty();
    order.iter().for_each(|&axis| dims.push(shape[axis]));
    let out = Array::uninit(plan.dtype, &dims)?;
    let mut strides = Strides::filled(0, shape.len());
    order.iter().zip(out.strides().iter()).for_each(|(&axis, &step)| strides[axis] = step);
    walk_all(plan, views.map(|view| view.permuted(&order)), &dims, &out);
    let shape = Shape::from_slice(shape)?;
    out.with_geometry(&shape, &strides, 0)
}

fn walk_all<const N: usize>(plan: &Plan, mut views: [View; N], shape: &[usize], out: &Array) {
    let dims = merge_axes(&mut views, shape);
    execute(plan, &views, &dims, out);
}

/// Fills the dense `out`, whose elements in memory order are the walk over `dims`.
#[inline]
fn execute<const N: usize>(plan: &Plan, views: &[View; N], dims: &[usize], out: &Array) {
    let len = shape::numel(dims);
    let target = SharedMut::new(out.data().cast_mut());
    let walk = Walk { plan, views, dims, target };
    let last = dims[dims.len() - 1];
    let steps_ok = views.iter().all(|view| view.narrow.is_none() && matches!(view.last(), 0 | 1));
    let moving = views.iter().any(|view| view.last() == 1);
    let scalars_ok = plan.scalars || views.iter().all(|view| view.last() == 1);
    let direct =
        steps_ok && moving && scalars_ok && (plan.raw || !is_narrow(plan.dtype)) && (dims.len() == 1 || last >= SHORT);
    let grain = if plan.heavy { HEAVY_GRAIN } else { GRAIN };
    if len < 2 * grain {
        if len > 0 {
            walk.range(direct, 0, len);
        }
        return;
    }
    if let Some(axis) = band::axis(views, dims) {
        return Band { plan, views, dims, axis, target }.run(grain);
    }
    threads::for_ranges(len, grain, &|range| walk.range(direct, range.start, range.end));
}

/// The order of the axes in memory, where it is not row-major and one same for all operands of the full shape: the
/// result takes it too, and nothing is transposed.
pub(crate) fn foreign_order(sources: &[Input<'_>], to: &[usize]) -> Option<Shape> {
    let steps = |x: &Array, axis: usize| if to[axis] == 1 { usize::MAX } else { x.strides()[axis].unsigned_abs() };
    let full = |source: &&Input<'_>| match source {
        Input::Array(x) => x.shape()[..] == *to && (0..to.len()).all(|axis| steps(x, axis) != 0),
        Input::Value(_) => false,
    };
    let mut order: Option<Shape> = None;
    for source in sources.iter().filter(full) {
        let Input::Array(x) = source else { continue };
        let axes = order.get_or_insert_with(|| {
            let mut axes: Vec<usize> = (0..to.len()).collect();
            axes.sort_by_key(|&axis| std::cmp::Reverse(steps(x, axis)));
            Shape::from_slice(&axes).expect("the rank of an array")
        });
        if axes.windows(2).any(|pair| steps(x, pair[0]) < steps(x, pair[1])) {
            return None;
        }
    }
    order.filter(|axes| axes.windows(2).any(|pair| pair[0] > pair[1]))
}

/// The strides of the result when every array has its shape and all lie in memory in one same dense order.
#[inline]
pub(crate) fn common_layout(sources: &[Input<'_>], to: &[usize]) -> Option<Strides> {
    let mut arrays = sources.iter().filter_map(|source| match source {
        Input::Array(array) => Some(*array),
        Input::Value(_) => None,
    });
    let first = arrays.next()?;
    if first.shape()[..] != *to {
        return None;
    }
    let dense = first.is_contiguous();
    if !dense && !is_dense_order(first) {
        return None;
    }
    for other in arrays {
        let same = other.shape()[..] == *to
            && if dense { other.is_contiguous() } else { other.strides()[..] == first.strides()[..] };
        if !same {
            return None;
        }
    }
    Some(if dense { shape::contiguous_strides(to) } else { *first.strides() })
}

/// True when the elements fill a block of memory in some order of the axes.
fn is_dense_order(x: &Array) -> bool {
    let mut axes: Vec<(isize, usize)> = x.strides().iter().copied().zip(x.shape().iter().copied()).collect();
    axes.retain(|&(_, n)| n != 1);
    axes.sort_unstable();
    let mut step = 1;
    axes.iter().all(|&(stride, n)| {
        let fits = stride == step;
        step *= n as isize;
        fits
    })
}
