//! Writing at indices: `scatter` and `index_add`. Updates of one element are made in the order of the indices.

use super::resolve::{Converted, Indices, Target, part_len};
use super::{check_along, check_axis};
use crate::array::Array;
use crate::array::copy::dense_copy;
use crate::array::number::Ring;
use crate::array::reader::Reader;
use crate::array::shape::around;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result, named};
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::with_scratch;
use crate::ops::parts;
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

named!(Update, "scatter": "add" Add, "max" Max, "min" Min, "mul" Mul, "set" Set);

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
        let whole = |[x, indices, values]: &[Array; 3]| scatter(x, indices, values, axis, update);
        return parts::widened([x, indices, values], axis, whole);
    }
    let places = Indices::new(indices, Target { op: "scatter", axis, size: x.shape()[axis] })?;
    let (outer, count, inner) = around("scatter", indices.shape(), axis)?;
    let size = x.shape()[axis];
    let tiles = Tiles { height: size.max(1), down: 1, ..Tiles::new(outer, count, inner, size) };
    // Many tiles are copied by the tasks that update them, while they are warm.
    let warm = outer * tiles.across >= 4 * threads::num_threads() && x.is_contiguous();
    let out = if warm { Array::uninit(x.dtype(), x.shape())? } else { dense_copy(x)? };
    let job =
        Along { places: &places, x: warm.then_some(x), values, out: &out, tiles, dims: [outer, count, inner, size] };
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
        return parts::widened([x, values], axis, |[x, values]| index_add(x, indices, values, axis));
    }
    let places = Indices::new(indices, Target { op: "index_add", axis, size: x.shape()[axis] })?;
    let out = dense_copy(x)?;
    let (outer, count, inner) = around("index_add", &expected, axis)?;
    if x.numel() == 0 {
        places.check_all();
    }
    let job = Slices { places: &places, values, out: &out, outer, count, inner, size: x.shape()[axis] };
    match x.dtype() {
        DType::F32 => job.run::<f32>(),
        DType::F64 => job.run::<f64>(),
        // Signed and unsigned sums are the same bits.
        DType::I8 | DType::U8 => job.run::<i8>(),
        DType::I16 | DType::U16 => job.run::<i16>(),
        DType::I32 | DType::U32 => job.run::<i32>(),
        _ => job.run::<i64>(),
    }
    places.finish()?;
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

/// Indices along an axis, a few at a time, each with these columns: calls `work` with indices and columns.
fn each_part(
    part: usize,
    (count, inner): (usize, usize),
    columns: &Range<usize>,
    work: &mut dyn FnMut(Range<usize>, Range<usize>),
) {
    let together = if columns.len() == inner { (part / inner.max(1)).max(1) } else { 1 };
    for first in (0..count).step_by(together) {
        for column in columns.clone().step_by(part) {
            work(first..count.min(first + together), column..columns.end.min(column + part));
        }
    }
}

/// One index for each value: indices and values (outer, count, inner), x and result (outer, size, inner), those dense.
struct Along<'a> {
    places: &'a Indices,
    /// What the result begins as; `None` where it does already.
    x: Option<&'a Array>,
    values: &'a Array,
    out: &'a Array,
    tiles: Tiles,
    /// Outer, count, inner, size.
    dims: [usize; 4],
}

impl Along<'_> {
    fn update<T: Ring>(&self, update: Update) {
        match (T::DTYPE, update) {
            (DType::F32, Update::Add) => self.run(T::plus),
            (DType::F32, Update::Max) => self.run(T::larger),
            // By a pointer, for which there is one build of the loops.
            (_, Update::Add) => self.run(T::plus as fn(T, T) -> T),
            (_, Update::Max) => self.run(T::larger as fn(T, T) -> T),
            (_, Update::Min) => self.run(T::smaller as fn(T, T) -> T),
            _ => self.run(T::times as fn(T, T) -> T),
        }
    }

    fn run<T: Element>(&self, change: impl Fn(T, T) -> T + Sync) {
        let [outers, count, inner, size] = self.dims;
        let out = SharedMut::new(data_of::<T>(self.out));
        let x = self.x.map(|x| SharedMut::new(data_of::<T>(x)));
        let values = Reader::<T>::bits(self.values);
        let part = part_len(self.values).max(self.places.part_len());
        let begin = |outer: usize, columns: &Range<usize>| {
            let Some(x) = x else { return };
            let start = outer * size * inner;
            let (rows, len) = if columns.len() == inner { (1, size * inner) } else { (size, columns.len()) };
            for at in (0..rows).map(|row| start + row * inner + columns.start) {
                // SAFETY: these elements of the fresh result belong to this task.
                unsafe { std::ptr::copy_nonoverlapping(x.ptr().add(at), out.ptr().add(at), len) };
            }
        };
        let (each, gaps) = (count * inner, part > part_len(self.out));
        if self.tiles.across == 1 && gaps && (1..=part / 2).contains(&each) {
            // Short ones are read together: those with gaps share cache lines.
            let together = (part / each).min(outers.div_ceil(4 * threads::num_threads()));
            return threads::parallel(outers.div_ceil(together), &|task| {
                let (first, end) = (task * together, outers.min((task + 1) * together));
                let (mut room, mut bad) = (Converted::default(), false);
                let indices = self.places.part(first * each..end * each, &mut room);
                with_scratch(values.room(part), |aside: &mut [f64]| {
                    let values = values.part(first * each..end * each, aside);
                    let parts = indices.chunks_exact(each).zip(values.chunks_exact(each));
                    for (outer, (indices, values)) in (first..end).zip(parts) {
                        begin(outer, &(0..inner));
                        let out = out.ptr().wrapping_add(outer * size * inner);
                        // SAFETY: this part of the result belongs to this task.
                        bad |= unsafe { self.change(indices, values, inner, out, &change) };
                    }
                });
                self.places.note(bad);
            });
        }
        self.tiles.each(self.dims, &|outer, _, columns| {
            begin(outer, &columns);
            let (mut room, mut bad) = (Converted::default(), false);
            with_scratch(values.room(part), |aside: &mut [f64]| {
                each_part(part, (count, inner), &columns, &mut |lines, columns| {
                    let first = (outer * count + lines.start) * inner + columns.start;
                    let part = first..first + (lines.len() - 1) * inner + columns.len();
                    let indices = self.places.part(part.clone(), &mut room);
                    // SAFETY: these columns belong to this task.
                    bad |= unsafe {
                        let out = out.ptr().add(outer * size * inner + columns.start);
                        self.change(indices, values.part(part, aside), columns.len(), out, &change)
                    };
                });
            });
            self.places.note(bad);
        });
    }

    /// Changes elements of some lines of columns; whether indices were bad.
    ///
    /// # Safety
    /// The columns of the result are the caller's.
    #[inline(always)]
    unsafe fn change<T: Copy>(
        &self,
        indices: &[i64],
        values: &[T],
        columns: usize,
        out: *mut T,
        change: &impl Fn(T, T) -> T,
    ) -> bool {
        let (check, mut bad, [_, _, inner, _]) = (self.places.check(), false, self.dims);
        // SAFETY: each place is checked.
        if inner == 1 {
            for (&index, &value) in indices.iter().zip(values) {
                match check.place(index) {
                    Some(place) => *out.add(place) = change(*out.add(place), value),
                    None => bad = true,
                }
            }
            return bad;
        }
        for (indices, values) in indices.chunks_exact(columns).zip(values.chunks_exact(columns)) {
            for (column, (&index, &value)) in indices.iter().zip(values).enumerate() {
                match check.place(index) {
                    Some(place) => {
                        let slot = out.add(place * inner + column);
                        *slot = change(*slot, value);
                    }
                    None => bad = true,
                }
            }
        }
        bad
    }
}

fn data_of<T>(x: &Array) -> *mut T {
    x.data().cast_mut().cast()
}

/// One index for each slice of values: values (outer, count, inner), result (outer, size, inner), dense.
struct Slices<'a> {
    places: &'a Indices,
    values: &'a Array,
    out: &'a Array,
    outer: usize,
    count: usize,
    inner: usize,
    size: usize,
}

impl Slices<'_> {
    fn run<T: Ring>(&self) {
        let out = SharedMut::new(self.out.storage().data().cast::<T>());
        let values = Reader::<T>::bits(self.values);
        let part = part_len(self.values).max(self.places.part_len());
        let Self { outer, count, inner, size, .. } = *self;
        let check = self.places.check();
        Tiles::new(outer, count, inner, size).each([outer, count, inner, size], &|outer, rows, columns| {
            let (mut room, mut bad) = (Converted::default(), false);
            with_scratch(values.room(part), |aside: &mut [f64]| {
                each_part(part, (count, inner), &columns, &mut |lines, columns| {
                    let first = (outer * count + lines.start) * inner + columns.start;
                    let part = first..first + (lines.len() - 1) * inner + columns.len();
                    let indices = self.places.part(lines, &mut room);
                    let values = values.part(part, aside);
                    for (&index, values) in indices.iter().zip(values.chunks_exact(columns.len())) {
                        let Some(place) = check.place(index) else {
                            bad = true;
                            continue;
                        };
                        if !rows.contains(&place) {
                            continue;
                        }
                        let to = (outer * size + place) * inner;
                        // SAFETY: the place was checked; these rows and columns belong to this task.
                        let out = unsafe { out.slice(to + columns.start..to + columns.end) };
                        for (out, &value) in out.iter_mut().zip(values) {
                            *out = out.plus(value);
                        }
                    }
                });
            });
            self.places.note(bad);
        });
    }
}
