//! Python scalars as kernels see them.

use crate::dtype::{DType, Element, Kind};
use crate::error::{Error, Result};

/// A bool, int or float without a width: it takes the dtype of the array beside it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u64)] // The payload stays aligned: copies of odd layouts stall.
pub enum Scalar {
    /// True or false.
    Bool(bool),
    /// An int that fits `i64`.
    Int(i64),
    /// An int above `i64::MAX`.
    Uint(u64),
    /// A float.
    Float(f64),
}

impl Scalar {
    /// The value as an element of `T`: floats round, ints must fit, and the kinds must agree with the array API
    /// (a bool goes anywhere, an int into Int and Float, a float into Float only); else rejected.
    #[inline]
    pub fn to<T: Element>(self) -> Result<T> {
        let kind = T::DTYPE.kind();
        match self {
            Scalar::Bool(value) => Ok(T::from_i64(value as i64)),
            Scalar::Float(value) if kind == Kind::Float => Ok(T::from_f64(value)),
            Scalar::Int(value) if kind == Kind::Float => Ok(T::from_f64(value as f64)),
            Scalar::Uint(value) if kind == Kind::Float => Ok(T::from_f64(value as f64)),
            Scalar::Int(value) if kind == Kind::Int && int_fits(value as i128, T::DTYPE) => Ok(T::from_i64(value)),
            Scalar::Uint(value) if kind == Kind::Int && int_fits(value as i128, T::DTYPE) => {
                Ok(T::from_i64(value as i64))
            }
            _ => Err(Error::Rejected("scalar does not fit the dtype")),
        }
    }

    /// The value as `f64`.
    #[inline]
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Bool(value) => value as u8 as f64,
            Scalar::Int(value) => value as f64,
            Scalar::Uint(value) => value as f64,
            Scalar::Float(value) => value,
        }
    }
}

fn int_fits(value: i128, dtype: DType) -> bool {
    let bits = dtype.itemsize() as u32 * 8;
    match dtype {
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => value >= 0 && value < 1i128 << bits,
        _ => value >= -(1i128 << (bits - 1)) && value < 1i128 << (bits - 1),
    }
}
