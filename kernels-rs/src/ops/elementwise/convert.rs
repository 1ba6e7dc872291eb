//! `cast`, `full`, `arange`.

use super::compute_type;
use super::kernel::{Kernel, Run, operand, result, versions};
use super::loops::map1;
use super::{Input, Plan, engine};
use crate::array::Array;
use crate::array::narrow;
use crate::array::scalar::Scalar;
use crate::dispatch;
use crate::dtype::{DType, Element, Kind, round_to_odd};
use crate::error::{Error, Result};
use crate::machine::threads::{self, SharedMut};
use crate::math::Baseline;

/// The elements in another type: floats are truncated to integers (NaN gives 0, out of range saturates), integers wrap,
/// anything to bool is `!= 0`. The same dtype shares the data.
pub fn cast(x: &Array, dtype: DType) -> Result<Array> {
    if x.dtype() == dtype {
        return Ok(x.clone());
    }
    let direct = direct_kernel(x.dtype(), dtype);
    let kernel = direct.unwrap_or_else(|| cast_kernel(compute_type(x.dtype()), dtype));
    let plan = Plan { kernel, dtype, raw: direct.is_some(), heavy: false, scalars: false };
    engine::run(&plan, [Input::Array(x)], x.shape())
}

/// Kernels on elements as they are stored, where there is a faster way than one by one.
fn direct_kernel(from: DType, to: DType) -> Option<Kernel> {
    macro_rules! stored {
        ($convert:path, $narrow:expr) => {{
            unsafe fn kernel(run: &Run) {
                // SAFETY: casts take no scalars, so the operand is a run.
                $convert($narrow, run.src[0].cast(), run.dst.cast(), run.len);
            }
            Some(kernel as Kernel)
        }};
    }
    match (from, to) {
        (DType::BF16, DType::F32) => stored!(narrow::widen, DType::BF16),
        (DType::F16, DType::F32) => stored!(narrow::widen, DType::F16),
        (DType::F32, DType::BF16) => stored!(narrow::narrow, DType::BF16),
        (DType::F32, DType::F16) => stored!(narrow::narrow, DType::F16),
        (DType::F32, DType::I64) => Some(versions!(wide f32, |run| near_integers(run))),
        _ => None,
    }
}

/// `f32` to `i64` by way of `i32`, which vectorises, where a block has no number beyond it.
///
/// # Safety
/// As for [`Kernel`].
#[inline(always)]
unsafe fn near_integers(run: &Run) {
    const END: f32 = 2147483648.0;
    // SAFETY: the run is valid for these types and this length.
    let (x, out) = (operand::<f32>(run, 0), result::<i64>(run));
    for (x, out) in x.chunks(128).zip(out.chunks_mut(128)) {
        let mut near = true;
        for x in x {
            near &= x.abs() < END;
        }
        for (slot, &x) in out.iter_mut().zip(x) {
            // SAFETY: a number from above -2^31 up to below 2^31.
            *slot = if near { x.to_int_unchecked::<i32>() as i64 } else { x as i64 };
        }
    }
}

/// Conversion between two Rust types by the rules of [`cast`].
pub(crate) trait To<U> {
    /// The value as the other type.
    fn to(self) -> U;
}

macro_rules! conversions {
    ($($from:ident)*) => {$(
        conversions!(@as $from; i8 i16 i32 i64 u8 u16 u32 u64 f32 f64);
        impl To<bool> for $from {
            #[inline(always)]
            fn to(self) -> bool { self != (0 as $from) }
        }
        impl To<$from> for bool {
            #[inline(always)]
            fn to(self) -> $from { self as u8 as $from }
        }
    )*};
    (@as f32; i8 i16 i32 i64 u8 u16 $($rest:ident)*) => {
        conversions!(@as f32; i64 $($rest)*);
        conversions!(@small i8 i16 u8 u16);
        impl To<i32> for f32 {
            /// `as`, in a form that vectorises.
            #[inline(always)]
            fn to(self) -> i32 {
                const END: f32 = 2147483648.0;
                let x = if self.is_nan() { 0.0 } else { self };
                let x = if x < -END { -END } else { x };
                let inside = if x < END { x } else { 0.0 };
                // SAFETY: a number from -2^31 up to below 2^31.
                let y = unsafe { inside.to_int_unchecked::<i32>() };
                if x < END { y } else { i32::MAX }
            }
        }
    };
    (@small $($to:ident)*) => {$(
        impl To<$to> for f32 {
            /// `as`, in a form that vectorises.
            #[inline(always)]
            fn to(self) -> $to {
                let (low, high) = ($to::MIN as f32, $to::MAX as f32);
                let x = if self.is_nan() { 0.0 } else { self };
                let x = if x < low { low } else { x };
                let x = if x > high { high } else { x };
                // SAFETY: a number between the ends of a small integer type.
                unsafe { x.to_int_unchecked::<i32>() as $to }
            }
        }
    )*};
    (@as $from:ident; $($to:ident)*) => {$(
        impl To<$to> for $from {
            #[inline(always)]
            fn to(self) -> $to { self as $to }
        }
    )*};
}
conversions!(i8 i16 i32 i64 u8 u16 u32 u64 f32 f64);

impl To<bool> for bool {
    #[inline(always)]
    fn to(self) -> bool {
        self
    }
}

/// An `f32` on its way to a narrower float: rounded to odd, so that the second rounding is the only one that counts.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Odd(pub(crate) f32);

macro_rules! odd {
    ($($from:ident |$x:ident| $f:expr;)*) => {$(
        impl To<Odd> for $from {
            #[inline(always)]
            fn to(self) -> Odd { let $x = self; Odd($f) }
        }
    )*};
}
odd! {
    bool |x| x as u8 as f32;
    i8 |x| x as f32;
    i16 |x| x as f32;
    i32 |x| round_to_odd(x as f64);
    i64 |x| round_to_odd(x as f64);
    u8 |x| x as f32;
    u16 |x| x as f32;
    u32 |x| round_to_odd(x as f64);
    u64 |x| round_to_odd(x as f64);
    f32 |x| x;
    f64 |x| round_to_odd(x);
}

/// The kernel from a compute type to any dtype. For the narrow floats it leaves `f32`, which the engine rounds.
fn cast_kernel(from: DType, to: DType) -> Kernel {
    dispatch!(computed from, S => match to {
        DType::F16 | DType::BF16 => pair::<S, Odd>(),
        _ => dispatch!(computed to, U => pair::<S, U>(), else unreachable!()),
    }, else unreachable!())
}

fn pair<S: Element + To<U>, U>() -> Kernel {
    unsafe fn base<S: Element + To<U>, U>(run: &Run) {
        map1::<Baseline, S, U>(run, To::to);
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2")]
    unsafe fn avx2<S: Element + To<U>, U>(run: &Run) {
        map1::<crate::math::Fused, S, U>(run, To::to);
    }
    #[cfg(target_arch = "x86_64")]
    if crate::machine::simd::level() >= crate::machine::simd::Level::Avx2 {
        return avx2::<S, U>;
    }
    base::<S, U>
}

/// A fresh array of one value.
pub fn full(shape: &[usize], value: Scalar, dtype: DType) -> Result<Array> {
    let mut out = Array::uninit(dtype, shape)?;
    dispatch!(all dtype, T => {
        let value = fill_value::<T>(value);
        let count = out.numel();
        let to = SharedMut::new(out.mut_ptr::<T>());
        threads::for_ranges(count, 64 << 10, &|range| {
            // SAFETY: the ranges are disjoint parts of the fresh array.
            unsafe { to.slice(range) }.fill(value);
        });
    });
    Ok(out)
}

/// A fill value in the element type; what does not fit is converted as [`cast`] would.
fn fill_value<T: Element>(value: Scalar) -> T {
    match value {
        Scalar::Bool(value) => T::from_i64(value as i64),
        Scalar::Int(value) => T::from_i64(value),
        Scalar::Uint(value) if T::DTYPE.kind() == Kind::Float => T::from_f64(value as f64),
        Scalar::Uint(value) => T::from_i64(value as i64),
        Scalar::Float(value) => T::from_f64(value),
    }
}

/// `start + i * step` for `i` below `count`, 1-d. Integers wrap; floats are computed in `f64` and rounded once.
pub fn arange(start: Scalar, step: Scalar, count: usize, dtype: DType) -> Result<Array> {
    if dtype.kind() == Kind::Bool {
        return Err(Error::value("arange", "wrong dtype: got bool, expected a Float or Int dtype"));
    }
    let mut out = Array::uninit(dtype, &[count])?;
    let whole = |value: Scalar| match value {
        Scalar::Float(value) => value as i64,
        Scalar::Uint(value) => value as i64,
        Scalar::Int(value) => value,
        Scalar::Bool(value) => value as i64,
    };
    let (first, by) = (start.to_f64(), step.to_f64());
    let (first_int, by_int) = (whole(start), whole(step));
    dispatch!(num dtype, T => {
        for (i, slot) in out.as_mut_slice::<T>().iter_mut().enumerate() {
            *slot = if T::DTYPE.is_float() {
                T::from_f64(first + i as f64 * by)
            } else {
                T::from_i64(first_int.wrapping_add((i as i64).wrapping_mul(by_int)))
            };
        }
    }, else unreachable!());
    Ok(out)
}
