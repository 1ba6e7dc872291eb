//! Writing at indices: `scatter` and `index_add`. Updates of one element are made in the order of the indices.

use super::resolve::{Target, resolve};
use super::{check_along, check_axis, split};
use crate::array::Array;
use crate::dtype::{DType, Element};
use crate::elementwise::convert::cast;
use crate::error::{Error, Result};
use crate::movement::{dense, dense_copy};
use crate::threads::{self, SharedMut};

/// Updates that are worth a task of their own.
const GRAIN: usize = 1 << 14;

/// How a value changes the element at its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Adds (bool: or).
    Add,
    /// Keeps the larger; NaN wins.
    Max,
    /// Keeps the smaller; NaN wins.
    Min,
    /// Multiplies (bool: and).
    Mul,
    /// Replaces.
    Set,
}

impl Update {
    /// From the name used in Python.
    pub fn from_name(name: &str) -> Result<Self> {
        Ok(match name {
            "add" => Update::Add,
            "max" => Update::Max,
            "min" => Update::Min,
            "mul" => Update::Mul,
            "set" => Update::Set,
            _ => {
                let text = format!("unknown update: got {name:?}, expected add, max, min, mul or set");
                return Err(Error::value("scatter", text));
            }
        })
    }
}

/// An element that can be updated.
trait Number: Element {
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn larger(self, other: Self) -> Self;
    fn smaller(self, other: Self) -> Self;
}

macro_rules! integers {
    ($($rust:ident),*) => {$(
        impl Number for $rust {
            #[inline(always)]
            fn plus(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn times(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline(always)]
            fn larger(self, other: Self) -> Self { self.max(other) }
            #[inline(always)]
            fn smaller(self, other: Self) -> Self { self.min(other) }
        }
    )*};
}
integers!(i16, i32, i64, i8, u16, u32, u64, u8);

macro_rules! floats {
    ($($rust:ident),*) => {$(
        impl Number for $rust {
            #[inline(always)]
            fn plus(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn times(self, other: Self) -> Self { self * other }
            #[inline(always)]
            fn larger(self, other: Self) -> Self { if self >= other || self.is_nan() { self } else { other } }
            #[inline(always)]
            fn smaller(self, other: Self) -> Self { if self <= other || self.is_nan() { self } else { other } }
        }
    )*};
}
floats!(f32, f64);

impl Number for bool {
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self | other
    }
    #[inline(always)]
    fn times(self, other: Self) -> Self {
        self & other
    }
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        self | other
    }
    #[inline(always)]
    fn smaller(self, other: Self) -> Self {
        self & other
    }
}

/// A copy of `x` in which `out[.., indices[.., j, ..], ..]` is updated with `values[.., j, ..]`. With `Set` the last of
/// repeated indices stays. Narrow floats are updated in `f32` and rounded once.
pub fn scatter(x: &Array, indices: &Array, values: &Array, axis: usize, update: Update) -> Result<Array> {
    check_along("scatter", x, indices, axis)?;
    if values.dtype() != x.dtype() {
        return Err(Error::Rejected("operands of different dtypes"));
    }
    if values.shape()[..] != indices.shape()[..] {
        let text = format!("values do not fit: got {:?}, expected {:?}", values.shape(), indices.shape());
        return Err(Error::value("scatter", text));
    }
    if matches!(x.dtype(), DType::BF16 | DType::F16) && update != Update::Set {
        let wide = scatter(&cast(x, DType::F32)?, indices, &cast(values, DType::F32)?, axis, update)?;
        return cast(&wide, x.dtype());
    }
    let places = resolve(indices, Target { op: "scatter", axis, size: x.shape()[axis] })?;
    let (values, out) = (dense(values)?, dense_copy(x)?);
    let (outer, count, inner) = split(indices.shape(), axis);
    let job = Job { places: places.values(), values: &values, out: &out, outer, count, inner, size: x.shape()[axis] };
    if update == Update::Set {
        match x.dtype().itemsize() {
            1 => job.along::<u8>(|_, new| new),
            2 => job.along::<u16>(|_, new| new),
            4 => job.along::<u32>(|_, new| new),
            _ => job.along::<u64>(|_, new| new),
        }
    } else {
        crate::dispatch!(@arms x.dtype(), T => job.update::<T>(update), unreachable!("narrow floats are cast");
            F32 f32, F64 f64, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, Bool bool);
    }
    Ok(out)
}

/// A copy of `x` to which slice `k` of `values` along the axis is added at `indices[k]`; repeats add up, in order.
pub fn index_add(x: &Array, indices: &Array, values: &Array, axis: usize) -> Result<Array> {
    check_axis("index_add", x, axis)?;
    if values.dtype() != x.dtype() || x.dtype() == DType::Bool {
        return Err(Error::Rejected("index_add takes numbers of one dtype"));
    }
    let mut expected = *x.shape();
    expected[axis] = indices.numel();
    if indices.rank() != 1 || values.shape()[..] != expected[..] {
        let text =
            format!("values do not fit: got {:?} for {:?}, expected {expected:?}", values.shape(), indices.shape());
        return Err(Error::value("index_add", text));
    }
    if matches!(x.dtype(), DType::BF16 | DType::F16) {
        let wide = index_add(&cast(x, DType::F32)?, indices, &cast(values, DType::F32)?, axis)?;
        return cast(&wide, x.dtype());
    }
    let places = resolve(indices, Target { op: "index_add", axis, size: x.shape()[axis] })?;
    let (values, out) = (dense(values)?, dense_copy(x)?);
    let (outer, count, inner) = split(&expected, axis);
    let job = Job { places: places.values(), values: &values, out: &out, outer, count, inner, size: x.shape()[axis] };
    match x.dtype() {
        DType::F32 => job.rows::<f32>(),
        DType::F64 => job.rows::<f64>(),
        // Signed and unsigned sums are the same bits.
        DType::I8 | DType::U8 => job.rows::<i8>(),
        DType::I16 | DType::U16 => job.rows::<i16>(),
        DType::I32 | DType::U32 => job.rows::<i32>(),
        _ => job.rows::<i64>(),
    }
    Ok(out)
}

/// Dense arrays: values (outer, count, inner), result (outer, size, inner).
struct Job<'a> {
    places: &'a [i64],
    values: &'a Array,
    out: &'a Array,
    outer: usize,
    count: usize,
    inner: usize,
    size: usize,
}

impl Job<'_> {
    fn update<T: Number>(&self, update: Update) {
        match update {
            Update::Add => self.along(T::plus),
            Update::Max => self.along(T::larger),
            Update::Min => self.along(T::smaller),
            _ => self.along(T::times),
        }
    }

    /// Cuts the columns, so that each task has elements of its own and sees their updates in order.
    fn each_tile(&self, work: impl Fn(usize, std::ops::Range<usize>) + Sync) {
        if self.values.numel() == 0 {
            return;
        }
        // Where the cuts lie changes nothing; whole cache lines, and not more tasks than are of use.
        let share = self.inner.div_ceil(2 * threads::num_threads()).next_multiple_of(64);
        let width = (GRAIN / self.count).max(share).min(self.inner);
        let tiles = self.inner.div_ceil(width);
        let (jobs, together) = (self.outer * tiles, (GRAIN / (self.count * width)).max(1));
        threads::parallel(jobs.div_ceil(together), &|task| {
            for job in task * together..jobs.min((task + 1) * together) {
                let first = job % tiles * width;
                work(job / tiles, first..self.inner.min(first + width));
            }
        });
    }

    /// One index for each value.
    fn along<T: Copy + Send + Sync>(&self, change: impl Fn(T, T) -> T + Sync) {
        let out = SharedMut::new(self.out.storage().data().cast::<T>());
        let values = SharedMut::new(self.values.data().cast_mut().cast::<T>());
        self.each_tile(|outer, columns| {
            for k in 0..self.count {
                let line = (outer * self.count + k) * self.inner;
                for column in columns.clone() {
                    let place = self.places[line + column] as usize;
                    // SAFETY: the place was checked; these columns belong to this task.
                    unsafe {
                        let slot = out.ptr().add((outer * self.size + place) * self.inner + column);
                        slot.write(change(*slot, *values.ptr().add(line + column)));
                    }
                }
            }
        });
    }

    /// One index for each slice of values.
    fn rows<T: Number>(&self) {
        let out = SharedMut::new(self.out.storage().data().cast::<T>());
        let values = SharedMut::new(self.values.data().cast_mut().cast::<T>());
        self.each_tile(|outer, columns| {
            for (k, &place) in self.places.iter().enumerate() {
                let from = (outer * self.count + k) * self.inner;
                let to = (outer * self.size + place as usize) * self.inner;
                // SAFETY: the place was checked; these columns belong to this task; the values are only read.
                let (out, values) = unsafe {
                    let out = out.slice(to + columns.start..to + columns.end);
                    (out, &*values.slice(from + columns.start..from + columns.end))
                };
                for (out, &value) in out.iter_mut().zip(values) {
                    *out = out.plus(value);
                }
            }
        });
    }
}
