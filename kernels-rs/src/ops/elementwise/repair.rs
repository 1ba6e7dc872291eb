//! `nan_to_num`: numbers in place of what is none.

use super::kernel::{Kernel, Run, operand, result, versions};
use super::num::Num;
use super::{Input, Plan, compute_type, engine, scalar_word};
use crate::array::Array;
use crate::array::scalar::Scalar;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::math::Baseline;

/// `x` with `number` in place of NaN and these in place of the infinities; the largest finite numbers where there are none.
pub fn nan_to_num(x: &Array, number: Option<Scalar>, high: Option<Scalar>, low: Option<Scalar>) -> Result<Array> {
    let dtype = x.dtype();
    let most = match dtype {
        DType::F16 => 65504.0,
        DType::BF16 => 3.389_531_389_251_535_5e38,
        DType::F32 => f32::MAX as f64,
        DType::F64 => f64::MAX,
        _ => return Err(Error::Rejected("dtype outside the kind of the op")),
    };
    let word = |value: Option<Scalar>, usual: f64| scalar_word(value.unwrap_or(Scalar::Float(usual)), dtype);
    let apply = |kernel: Kernel, sources: [Input<'_>; 3]| {
        engine::run(&Plan { kernel, dtype, raw: false, heavy: false, scalars: true }, sources, x.shape())
    };
    let number = Input::Value(word(number, 0.0)?);
    let (hold, replace, choose): (Kernel, Kernel, Kernel) = match compute_type(dtype) {
        DType::F32 => (
            versions!(wide f32, |run| hold::<T>(run)),
            versions!(wide f32, |run| replace::<T>(run)),
            versions!(wide f32, |run| choose::<T>(run)),
        ),
        _ => (
            versions!(wide f64, |run| hold::<T>(run)),
            versions!(wide f64, |run| replace::<T>(run)),
            versions!(wide f64, |run| choose::<T>(run)),
        ),
    };
    if high.is_none() && low.is_none() {
        return apply(hold, [Input::Array(x), number, Input::Value(word(None, most)?)]);
    }
    let ends = [Input::Array(x), Input::Value(word(high, most)?), Input::Value(word(low, -most)?)];
    // What replaces an infinity may be NaN, and stays.
    apply(choose, [Input::Array(x), Input::Array(&apply(replace, ends)?), number])
}

/// Holds finite what is infinite, and replaces NaN. The operands are elements, a number, and the largest magnitude.
///
/// # Safety
/// As for [`Kernel`].
#[inline(always)]
unsafe fn hold<T: Num + Element>(run: &Run) {
    // SAFETY: the run is valid for these types and this length.
    let (x, number, most, out) = (operand::<T>(run, 0), operand::<T>(run, 1), operand::<T>(run, 2), result::<T>(run));
    let (Some(&number), Some(&most)) = (number.first(), most.first()) else { return };
    let least = most.opposite();
    for (slot, &x) in out.iter_mut().zip(x) {
        let held = if x > most { most } else { x };
        let held = if held < least { least } else { held };
        *slot = if x.not_a_number() { number } else { held };
    }
}

/// Replaces infinities. The operands are elements, and what stands for each infinity.
///
/// # Safety
/// As for [`Kernel`].
#[inline(always)]
unsafe fn replace<T: Num + Element>(run: &Run) {
    // SAFETY: the run is valid for these types and this length.
    let (x, high, low, out) = (operand::<T>(run, 0), operand::<T>(run, 1), operand::<T>(run, 2), result::<T>(run));
    let (Some(&high), Some(&low)) = (high.first(), low.first()) else { return };
    for (slot, &x) in out.iter_mut().zip(x) {
        let end = if x > T::ZERO { high } else { low };
        *slot = if x.infinite() { end } else { x };
    }
}

/// The second operand, but where the first is NaN the third, a number.
///
/// # Safety
/// As for [`Kernel`].
#[inline(always)]
unsafe fn choose<T: Num + Element>(run: &Run) {
    // SAFETY: the run is valid for these types and this length.
    let (x, finite, number, out) = (operand::<T>(run, 0), operand::<T>(run, 1), operand::<T>(run, 2), result::<T>(run));
    let (Some(&number), Some(&first)) = (number.first(), x.first()) else { return };
    if !run.unit[0] {
        let same = out.iter_mut().zip(finite);
        return same.for_each(|(slot, &finite)| *slot = if first.not_a_number() { number } else { finite });
    }
    for ((slot, &x), &finite) in out.iter_mut().zip(x).zip(finite) {
        *slot = if x.not_a_number() { number } else { finite };
    }
}
