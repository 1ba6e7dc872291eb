//! `where` and `clip`: ops of three operands.

use super::kernel::{Kernel, Run, operand, result, versions};
use super::num::Num;
use super::{Input, Plan, engine};
use super::{Operand, compute_type, scalar_word, to_word};
use crate::array::Array;
use crate::array::scalar::Scalar;
use crate::array::shape;
use crate::dispatch;
use crate::dtype::{DType, Element, Kind};
use crate::error::{Error, Result};
use crate::math::Baseline;

/// `a` where the condition holds, else `b`. Elements are moved as bits, so one kernel serves all dtypes of a size.
pub fn select(condition: Operand<'_>, a: Operand<'_>, b: Operand<'_>) -> Result<Array> {
    let dtype = match (a, b) {
        (Operand::Array(a), Operand::Array(b)) if a.dtype() == b.dtype() => a.dtype(),
        (Operand::Array(array), Operand::Scalar(_)) | (Operand::Scalar(_), Operand::Array(array)) => array.dtype(),
        _ => return Err(Error::Rejected("operands of different dtypes, or none with a dtype")),
    };
    let truth = match condition {
        Operand::Array(array) if array.dtype() == DType::Bool => Input::Array(array),
        Operand::Scalar(Scalar::Bool(value)) => Input::Value(to_word(value)),
        _ => return Err(Error::Rejected("the condition is not Bool")),
    };
    let mut to = shape::Shape::empty();
    for operand in [condition, a, b] {
        if let Operand::Array(array) = operand {
            to = shape::broadcast(&to, array.shape())?;
        }
    }
    let plan = Plan { kernel: select_kernel(dtype), dtype, raw: true, heavy: false, scalars: true };
    engine::run(&plan, [truth, stored(a, dtype)?, stored(b, dtype)?], &to)
}

/// A scalar in the bytes of the dtype itself, not of its compute type.
fn stored(operand: Operand<'_>, dtype: DType) -> Result<Input<'_>> {
    match operand {
        Operand::Array(array) => Ok(Input::Array(array)),
        Operand::Scalar(value) => dispatch!(all dtype, T => Ok(Input::Value(to_word(value.to::<T>()?)))),
    }
}

fn select_kernel(dtype: DType) -> Kernel {
    match dtype.itemsize() {
        1 => versions!(narrow u8, |run| select_run::<T>(run)),
        2 => versions!(narrow u16, |run| select_run::<T>(run)),
        4 => versions!(narrow u32, |run| select_run::<T>(run)),
        _ => versions!(narrow u64, |run| select_run::<T>(run)),
    }
}

/// An unsigned integer that stands for an element of its size. Choosing by masks keeps the loops free of branches:
/// written as `if`, the loads move under the condition and nothing vectorises.
pub(crate) trait Word: Copy {
    /// `a` when `c` is 1, `b` when it is 0.
    fn choose(c: u8, a: Self, b: Self) -> Self;

    /// [`Word::choose`] by a word, so that it lies in vectors as the choices do.
    fn pick(c: Self, a: Self, b: Self) -> Self;
}

macro_rules! words {
    ($($ty:ident)*) => {$(
        impl Word for $ty {
            #[inline(always)]
            fn choose(c: u8, a: Self, b: Self) -> Self {
                Self::pick(c as $ty, a, b)
            }

            #[inline(always)]
            fn pick(c: Self, a: Self, b: Self) -> Self {
                let mask = c.wrapping_neg();
                (a & mask) | (b & !mask)
            }
        }
    )*};
}
words!(u8 u16 u32 u64);

/// # Safety
/// As for [`Kernel`].
#[inline(always)]
unsafe fn select_run<T: Word>(run: &Run) {
    // SAFETY: the run is valid for these types and this length. A bool is a byte of 0 or 1.
    let (c, a, b, out) = (operand::<u8>(run, 0), operand::<T>(run, 1), operand::<T>(run, 2), result::<T>(run));
    let (Some(&c0), Some(&a0), Some(&b0)) = (c.first(), a.first(), b.first()) else { return };
    if !run.unit[0] {
        let (from, fixed, moves) = if c0 == 0 { (b, b0, run.unit[2]) } else { (a, a0, run.unit[1]) };
        return if moves { out.copy_from_slice(from) } else { out.fill(fixed) };
    }
    match (run.unit[1], run.unit[2]) {
        (true, true) => {
            for (((slot, &c), &a), &b) in out.iter_mut().zip(c).zip(a).zip(b) {
                *slot = T::choose(c, a, b);
            }
        }
        (true, false) => choose_one(c, a, out, |c, a| T::choose(c, a, b0)),
        (false, true) => choose_one(c, b, out, |c, b| T::choose(c, a0, b)),
        (false, false) => choose_one(c, c, out, |c, _| T::choose(c, a0, b0)),
    }
}

#[inline(always)]
fn choose_one<S: Copy, T: Copy>(c: &[u8], x: &[S], out: &mut [T], f: impl Fn(u8, S) -> T) {
    for ((slot, &c), &x) in out.iter_mut().zip(c).zip(x) {
        *slot = f(c, x);
    }
}

/// `x` held between two bounds; a missing bound leaves that side open, NaN stays NaN.
pub fn clip(x: &Array, low: Option<Scalar>, high: Option<Scalar>) -> Result<Array> {
    let dtype = x.dtype();
    if dtype.kind() == Kind::Bool {
        return Err(Error::Rejected("dtype outside the kind of the op"));
    }
    let bound = |value: Option<Scalar>, open: f64| match value {
        None => bound_word(Scalar::Float(open), dtype),
        Some(value) => bound_word(value, dtype),
    };
    let sources =
        [Input::Array(x), Input::Value(bound(low, f64::NEG_INFINITY)?), Input::Value(bound(high, f64::INFINITY)?)];
    let plan = Plan { kernel: clip_kernel(compute_type(dtype)), dtype, raw: false, heavy: false, scalars: true };
    engine::run(&plan, sources, x.shape())
}

/// A bound in the dtype: integers saturate, floats are truncated for integer dtypes.
fn bound_word(value: Scalar, dtype: DType) -> Result<u64> {
    if dtype.is_float() {
        return scalar_word(value, dtype);
    }
    dispatch!(int dtype, T => Ok(to_word(match value {
        Scalar::Float(value) => T::from_f64(value),
        _ => value.to::<T>().unwrap_or_else(|_| T::from_f64(value.to_f64())),
    })), else Err(Error::Rejected("dtype outside the kind of the op")))
}

fn clip_kernel(dtype: DType) -> Kernel {
    match dtype {
        DType::F32 => versions!(wide f32, |run| clip_run::<T>(run)),
        DType::F64 => versions!(narrow f64, |run| clip_run::<T>(run)),
        _ => dispatch!(int dtype, I => versions!(narrow I, |run| clip_run::<T>(run)), else unreachable!()),
    }
}

/// # Safety
/// As for [`Kernel`].
#[inline(always)]
unsafe fn clip_run<T: Num + Element>(run: &Run) {
    // SAFETY: the run is valid for these types and this length.
    let (x, low, high, out) = (operand::<T>(run, 0), operand::<T>(run, 1), operand::<T>(run, 2), result::<T>(run));
    let (Some(&low), Some(&high)) = (low.first(), high.first()) else { return };
    for (slot, &x) in out.iter_mut().zip(x) {
        *slot = x.larger(low).smaller(high);
    }
}
