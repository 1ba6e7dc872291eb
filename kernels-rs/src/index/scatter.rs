//! Writing at indices: `scatter` and `index_add`. Updates of one element are made in the order of the indices.

use super::resolve::{Target, Unchecked, resolve};
use super::{check_along, check_axis, split};
use crate::array::Array;
use crate::dtype::{DType, Element};
use crate::elementwise::convert::cast;
use crate::error::{Error, Result};
use crate::movement::{dense, dense_copy};
use crate::threads::{self, SharedMut};
use std::ops::Range;

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
    let places = Unchecked::new(indices, Target { op: "scatter", axis, size: x.shape()[axis] })?;
    let values = dense(values)?;
    let (outer, count, inner) = split(indices.shape(), axis);
    let size = x.shape()[axis];
    let tiles = Tiles { height: size.max(1), down: 1, ..Tiles::new(outer, count, inner, size) };
    // Many tiles are copied by the tasks that update them, while they are warm.
    let warm = outer * tiles.across >= 4 * threads::num_threads();
    let (out, x) = if warm { (Array::uninit(x.dtype(), x.shape())?, dense(x)?) } else { (dense_copy(x)?, x.clone()) };
    let job = Along {
        places: &places,
        x: warm.then_some(&x),
        values: &values,
        out: &out,
        tiles,
        dims: [outer, count, inner, size],
    };
    if update == Update::Set {
        match x.dtype().itemsize() {
            1 => job.run::<u8>(|_, new| new),
            2 => job.run::<u16>(|_, new| new),
            4 => job.run::<u32>(|_, new| new),
            _ => job.run::<u64>(|_, new| new),
        }
    } else {
        crate::dispatch!(@arms x.dtype(), T => job.update::<T>(update), unreachable!("narrow floats are cast");
            F32 f32, F64 f64, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, Bool bool);
    }
    places.finish()?;
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
    let job =
        Slices { places: places.values(), values: &values, out: &out, outer, count, inner, size: x.shape()[axis] };
    match x.dtype() {
        DType::F32 => job.run::<f32>(),
        DType::F64 => job.run::<f64>(),
        // Signed and unsigned sums are the same bits.
        DType::I8 | DType::U8 => job.run::<i8>(),
        DType::I16 | DType::U16 => job.run::<i16>(),
        DType::I32 | DType::U32 => job.run::<i32>(),
        _ => job.run::<i64>(),
    }
    Ok(out)
}

/// How the updates are cut into tasks: each has elements of its own and sees their updates in order.
struct Tiles {
    /// Columns of a tile, and tiles beside each other.
    width: usize,
    across: usize,
    /// Rows of the result of a tile, and tiles below each other.
    height: usize,
    down: usize,
}

impl Tiles {
    /// Where the cuts lie changes nothing; whole cache lines, and not more tasks than are of use.
    fn new(outer: usize, count: usize, inner: usize, size: usize) -> Self {
        let threads = threads::num_threads();
        let share = inner.div_ceil(2 * threads).next_multiple_of(64);
        let width = (GRAIN / count.max(1)).max(share).min(inner).max(1);
        let across = inner.div_ceil(width);
        // Few columns: the rows are cut as well. Each task then looks at all indices, but they are few beside the values.
        let lacking = if outer * across < threads && width >= 16 && count * width > 2 * GRAIN { threads } else { 1 };
        let height = size.div_ceil(lacking).max(1);
        Self { width, across, height, down: size.div_ceil(height) }
    }

    /// Calls `work(outer index, rows, columns)`.
    fn each(&self, dims: [usize; 4], work: &(dyn Fn(usize, Range<usize>, Range<usize>) + Sync)) {
        let [outer, count, inner, size] = dims;
        let jobs = outer * self.across * self.down;
        let together = (GRAIN / (count.max(size / 4) * self.width).max(1)).max(1);
        threads::parallel(jobs.div_ceil(together), &|task| {
            for job in task * together..jobs.min((task + 1) * together) {
                let (column, rest) = (job % self.across * self.width, job / self.across);
                let row = rest % self.down * self.height;
                let rows = row..size.min(row + self.height);
                work(rest / self.down, rows, column..inner.min(column + self.width));
            }
        });
    }
}

/// One index for each value. Dense arrays: values (outer, count, inner), x and result (outer, size, inner).
struct Along<'a> {
    places: &'a Unchecked,
    /// What the result begins as; `None` where it does already.
    x: Option<&'a Array>,
    values: &'a Array,
    out: &'a Array,
    tiles: Tiles,
    /// Outer, count, inner, size.
    dims: [usize; 4],
}

impl Along<'_> {
    fn update<T: Number>(&self, update: Update) {
        match update {
            Update::Add => self.run(T::plus),
            Update::Max => self.run(T::larger),
            Update::Min => self.run(T::smaller),
            _ => self.run(T::times),
        }
    }

    fn run<T: Copy + Send + Sync>(&self, change: impl Fn(T, T) -> T + Sync) {
        let [_, count, inner, size] = self.dims;
        let out = SharedMut::new(data_of::<T>(self.out));
        let x = self.x.map(|x| SharedMut::new(data_of::<T>(x)));
        let values = SharedMut::new(data_of::<T>(self.values));
        let indices = self.places.values();
        self.tiles.each(self.dims, &|outer, _, columns| {
            let start = outer * size * inner;
            if let Some(x) = x {
                let (rows, len) = if columns.len() == inner { (1, size * inner) } else { (size, columns.len()) };
                for at in (0..rows).map(|row| start + row * inner + columns.start) {
                    // SAFETY: these elements of the fresh result belong to this task.
                    unsafe { std::ptr::copy_nonoverlapping(x.ptr().add(at), out.ptr().add(at), len) };
                }
            }
            let (check, mut bad) = (self.places.check(), false);
            let first = outer * count * inner;
            // SAFETY: each place is checked; these columns belong to this task.
            unsafe {
                let (out, values) = (out.ptr().add(start), values.ptr().add(first));
                let indices = &indices[first..first + count * inner];
                if inner == 1 {
                    for (k, &index) in indices.iter().enumerate() {
                        match check.place(index) {
                            Some(place) => *out.add(place) = change(*out.add(place), *values.add(k)),
                            None => bad = true,
                        }
                    }
                } else {
                    for (k, indices) in indices.chunks_exact(inner).enumerate() {
                        for column in columns.clone() {
                            match check.place(indices[column]) {
                                Some(place) => {
                                    let slot = out.add(place * inner + column);
                                    *slot = change(*slot, *values.add(k * inner + column));
                                }
                                None => bad = true,
                            }
                        }
                    }
                }
            }
            self.places.note(bad);
        });
    }
}

fn data_of<T>(x: &Array) -> *mut T {
    x.data().cast_mut().cast()
}

/// One index for each slice of values. Dense arrays: values (outer, count, inner), result (outer, size, inner).
struct Slices<'a> {
    places: &'a [i64],
    values: &'a Array,
    out: &'a Array,
    outer: usize,
    count: usize,
    inner: usize,
    size: usize,
}

impl Slices<'_> {
    fn run<T: Number>(&self) {
        let out = SharedMut::new(self.out.storage().data().cast::<T>());
        let values = SharedMut::new(data_of::<T>(self.values));
        let tiles = Tiles::new(self.outer, self.count, self.inner, self.size);
        tiles.each([self.outer, self.count, self.inner, self.size], &|outer, rows, columns| {
            for (k, &place) in self.places.iter().enumerate() {
                let place = place as usize;
                if !rows.contains(&place) {
                    continue;
                }
                let from = (outer * self.count + k) * self.inner;
                let to = (outer * self.size + place) * self.inner;
                // SAFETY: the place was checked; these rows and columns belong to this task; the values are only read.
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
