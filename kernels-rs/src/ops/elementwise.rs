//! Elementwise ops: a table of rows, kernels made from it, and one engine for every layout.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
mod band;
pub mod choice;
pub mod convert;
pub mod engine;
pub mod kernel;
pub mod lerp;
mod loops;
pub mod num;
mod power;
pub mod repair;
mod run;
pub(crate) mod stream;
pub(crate) mod table;
#[cfg(test)]
mod tests;
pub(crate) mod walk;

use crate::array::Array;
use crate::array::reader::Reader;
use crate::array::scalar::Scalar;
use crate::array::shape;
use crate::dispatch;
use crate::dtype::{BF16, DType, Element, F16, Kind};
use crate::error::{Error, Result};
use crate::memory::scratch::filled;
use kernel::{Class, Kernel, Op};

/// An operand: an array, or a scalar that takes the dtype of the array beside it.
#[derive(Clone, Copy)]
pub enum Operand<'a> {
    /// An array.
    Array(&'a Array),
    /// A weak scalar.
    Scalar(Scalar),
}

/// An operand of a [`Plan`].
#[derive(Clone, Copy)]
pub enum Input<'a> {
    /// Broadcasts to the shape of the result.
    Array(&'a Array),
    /// One element of the compute type.
    Value(u64),
}

/// What to run.
#[derive(Clone, Copy)]
pub struct Plan {
    /// Works on the compute types of the operands.
    pub kernel: Kernel,
    /// Dtype of the result.
    pub dtype: DType,
    /// Takes elements as they are stored: float16 and bfloat16 are not widened.
    pub raw: bool,
    /// Costs much more than memory traffic.
    pub heavy: bool,
    /// Takes an operand that does not advance.
    pub scalars: bool,
}

/// The dtype a kernel computes in: float32 for the narrow floats, else the dtype itself.
#[inline]
pub(crate) fn compute_type(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        other => other,
    }
}

/// A scalar as an element of `dtype`, as the bytes of the compute type. Narrow floats are rounded first.
#[inline]
pub(crate) fn scalar_word(value: Scalar, dtype: DType) -> Result<u64> {
    match dtype {
        DType::F32 => return Ok(to_word(value.to::<f32>()?)),
        DType::F16 => return Ok(to_word(value.to::<F16>()?.to_f32())),
        DType::BF16 => return Ok(to_word(value.to::<BF16>()?.to_f32())),
        _ => {}
    }
    dispatch!(all dtype, T => Ok(to_word(value.to::<T>()?)))
}

/// The bytes of an element, at the start of a word. (An aligned word, since copies of odd layouts stall.)
#[inline]
pub(crate) fn to_word<T: Element>(value: T) -> u64 {
    let mut out = 0u64;
    // SAFETY: elements are at most 8 bytes without padding.
    unsafe { (&raw mut out).cast::<T>().write(value) };
    out
}

/// Applies a row of one operand.
#[inline]
pub fn unary(op: &'static Op<1>, x: &Array) -> Result<Array> {
    let kernel = (op.select)(compute_type(x.dtype())).ok_or(Error::Rejected("dtype outside the kind of the op"))?;
    let dtype = op.class.result(x.dtype());
    let plan = Plan { kernel, dtype, raw: false, heavy: op.class.heavy(), scalars: false };
    engine::run(&plan, [Input::Array(x)], x.shape())
}

/// Applies a row of two operands. Dtypes must agree; shapes broadcast.
#[inline]
pub fn binary(op: &'static Op<2>, a: Operand<'_>, b: Operand<'_>) -> Result<Array> {
    binary_as(op, a, b, DType::F32)
}

/// [`binary`] with the float type that a quotient of integers gets.
#[inline]
pub fn binary_as(op: &'static Op<2>, a: Operand<'_>, b: Operand<'_>, float: DType) -> Result<Array> {
    let (dtype, like) = match (a, b) {
        (Operand::Array(a), Operand::Array(b)) if a.dtype() == b.dtype() => (a.dtype(), a),
        (Operand::Array(array), Operand::Scalar(_)) | (Operand::Scalar(_), Operand::Array(array)) => {
            (array.dtype(), array)
        }
        _ => return Err(Error::Rejected("operands of different dtypes")),
    };
    let Some(kernel) = (op.select)(compute_type(dtype)) else {
        return if op.class == Class::quotient && dtype.kind() == Kind::Int {
            int_quotient(op, a, b, float)
        } else {
            Err(Error::Rejected("dtype outside the kind of the op"))
        };
    };
    if op.class == Class::power && dtype.kind() == Kind::Int {
        refuse_negative(b)?;
    }
    let plan = Plan { kernel, dtype: op.class.result(dtype), raw: false, heavy: op.class.heavy(), scalars: true };
    let mut sources = [source(a, dtype)?, source(b, dtype)?];
    if op.class == Class::turned {
        sources.reverse();
    }
    match (a, b) {
        (Operand::Array(a), Operand::Array(b)) if !a.same_shape(b) => {
            engine::run(&plan, sources, &shape::broadcast(a.shape(), b.shape())?)
        }
        _ => engine::run(&plan, sources, like.shape()),
    }
}

#[inline]
fn source(operand: Operand<'_>, dtype: DType) -> Result<Input<'_>> {
    match operand {
        Operand::Array(array) => Ok(Input::Array(array)),
        Operand::Scalar(value) => Ok(Input::Value(scalar_word(value, dtype)?)),
    }
}

#[cold]
fn int_quotient(op: &'static Op<2>, a: Operand<'_>, b: Operand<'_>, float: DType) -> Result<Array> {
    if matches!((a, b), (Operand::Scalar(Scalar::Float(_)), _) | (_, Operand::Scalar(Scalar::Float(_)))) {
        return Err(Error::Rejected("float scalar beside integers"));
    }
    let lift = |operand| match operand {
        Operand::Array(array) => convert::cast(array, float).map(Some),
        Operand::Scalar(_) => Ok(None),
    };
    let (lifted_a, lifted_b) = (lift(a)?, lift(b)?);
    binary(op, lifted_a.as_ref().map_or(a, Operand::Array), lifted_b.as_ref().map_or(b, Operand::Array))
}

/// A negative exponent of an integer power is an error.
fn refuse_negative(exponent: Operand<'_>) -> Result<()> {
    let negative = match exponent {
        Operand::Scalar(value) => value.to_f64() < 0.0,
        Operand::Array(array) => match array.dtype() {
            DType::I8 => any_negative::<i8>(array),
            DType::I16 => any_negative::<i16>(array),
            DType::I32 => any_negative::<i32>(array),
            DType::I64 => any_negative::<i64>(array),
            _ => false,
        },
    };
    if negative {
        return Err(Error::value("pow", "integer power with a negative exponent: expected exponents >= 0"));
    }
    Ok(())
}

/// Looks at some elements at a time.
fn any_negative<T: Element + num::Num>(x: &Array) -> bool {
    const PART: usize = 1 << 14;
    let reader = Reader::<T>::new(x);
    let mut room = filled(0.0, reader.room(PART.min(x.numel())));
    let mut starts = (0..x.numel()).step_by(PART);
    starts.any(|first| reader.part(first..x.numel().min(first + PART), &mut room).iter().any(|&value| value < T::ZERO))
}
