//! `lerp`: the way from one number to another, in one pass over three operands.

use super::kernel::{Kernel, Run, operand, result, versions};
use super::num::Num;
use super::{Input, Operand, Plan, compute_type, engine, scalar_word};
use crate::array::Array;
use crate::array::shape;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::math::Baseline;

/// `x1 + weight * (x2 - x1)`, from the end that is nearer. Narrow floats are computed in `f32`.
pub fn lerp(x1: Operand<'_>, x2: Operand<'_>, weight: Operand<'_>) -> Result<Array> {
    let operands = [x1, x2, weight];
    let (mut dtype, mut to) = (None, shape::Shape::empty());
    for array in
        operands.iter().filter_map(|operand| if let Operand::Array(array) = operand { Some(array) } else { None })
    {
        if *dtype.get_or_insert(array.dtype()) != array.dtype() {
            return Err(Error::Rejected("operands of different dtypes"));
        }
        to = shape::broadcast(&to, array.shape())?;
    }
    let dtype = dtype.ok_or(Error::Rejected("no operand has a dtype"))?;
    let kernel = match compute_type(dtype) {
        DType::F32 => versions!(wide f32, |run| lerp_run::<T>(run)),
        DType::F64 => versions!(wide f64, |run| lerp_run::<T>(run)),
        _ => return Err(Error::Rejected("dtype outside the kind of the op")),
    };
    let mut sources = [Input::Value(0); 3];
    for (source, operand) in sources.iter_mut().zip(operands) {
        *source = match operand {
            Operand::Array(array) => Input::Array(array),
            Operand::Scalar(value) => Input::Value(scalar_word(value, dtype)?),
        };
    }
    engine::run(&Plan { kernel, dtype, raw: false, heavy: false, scalars: true }, sources, &to)
}

/// Where the difference of the ends is finite, or nan.
#[inline(always)]
fn near<T: Num>(a: T, b: T, weight: T, half: T) -> T {
    let gap = b.minus(a);
    let (from_a, from_b) = (a.plus(weight.times(gap)), b.minus(gap.times(T::ONE.minus(weight))));
    if weight < half { from_a } else { from_b }
}

/// Where it is infinite. Beside an infinity a number counts by its sign: times a large weight it could be another one.
fn far<T: Num>(a: T, b: T, weight: T) -> T {
    let start = if b.infinite() && a.finite() { a.signum_zero() } else { a };
    let end = if a.infinite() && b.finite() { b.signum_zero() } else { b };
    start.times(T::ONE.minus(weight)).plus(end.times(weight))
}

/// # Safety
/// As for [`Kernel`].
#[inline(always)]
unsafe fn lerp_run<T: Num>(run: &Run) {
    const BLOCK: usize = 256;
    // SAFETY: the run is valid for these types and this length.
    let (operands, out) = ([operand::<T>(run, 0), operand::<T>(run, 1), operand::<T>(run, 2)], result::<T>(run));
    if out.is_empty() {
        return;
    }
    let half = T::from_f64(0.5);
    // What does not move is read from a block of it.
    let fixed = operands.map(|x| [x[0]; BLOCK]);
    for (block, out) in out.chunks_mut(BLOCK).enumerate() {
        let moved = block * BLOCK..block * BLOCK + out.len();
        let part = |at: usize| if run.unit[at] { &operands[at][moved.clone()] } else { &fixed[at][..moved.len()] };
        let (a, b, weight) = (part(0), part(1), part(2));
        let mut any = false;
        for (((slot, &a), &b), &weight) in out.iter_mut().zip(a).zip(b).zip(weight) {
            any |= b.minus(a).infinite();
            *slot = near(a, b, weight, half);
        }
        if any {
            for (((slot, &a), &b), &weight) in out.iter_mut().zip(a).zip(b).zip(weight) {
                if b.minus(a).infinite() {
                    *slot = far(a, b, weight);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
