//! `argmax` and `argmin`: elements are compared as integer keys in which NaN is above everything, both zeros are equal
//! and, for `argmin`, the order is reversed. The first of equal keys wins.

use crate::array::Array;
use crate::array::axes::{merged, offset};
use crate::array::key::Keyed;
use crate::array::shape::{Inline, Shape, contiguous_strides};
use crate::array::source::{Source, Strided};
use crate::dtype::{BF16, DType, F16};
use crate::error::{Error, Result};
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::{Arena, filled};
use crate::ops::elementwise::convert::cast;
use crate::vectorize;

/// Elements in one piece of a row; also the grain of tasks.
const PIECE: usize = 1 << 15;
/// Elements between two looks at the best key so far.
const BLOCK: usize = 1024;
/// Columns that are followed at once.
const WIDTH: usize = 128;
/// Columns that are followed in registers, for [`ROUND`] rows at a time.
const LANES: usize = 16;
const ROUND: usize = 32;

/// The best key and where it was found.
#[derive(Clone, Copy)]
struct Best {
    key: i64,
    at: i64,
}

/// Dense rows.
struct RowJob {
    reversed: bool,
    x: *const u8,
    len: usize,
    count: usize,
    step: isize,
    out: *mut Best,
    out_step: usize,
}

struct ColumnJob {
    reversed: bool,
    x: *const u8,
    /// Rows and the step between them, in elements.
    rows: (usize, isize),
    /// At most [`WIDTH`] columns and the step between them.
    columns: (usize, isize),
    out: *mut Best,
}

struct Kernel {
    size: usize,
    row: unsafe fn(&RowJob),
    columns: unsafe fn(&ColumnJob),
}

vectorize!(
    /// Finds the best of each row of a job.
    ///
    /// # Safety
    /// The addresses in the job are good for what it says of them, and nothing else touches its results meanwhile.
    unsafe best_of_row[T: Keyed](job: &RowJob) => best_of_row_any::<T>, wide false, fast T::FAST
);
vectorize!(
    /// Finds the best of each column of a job.
    ///
    /// # Safety
    /// As for [`best_of_row`].
    unsafe best_of_columns[T: Keyed](job: &ColumnJob) => best_of_columns_any::<T>, wide false, fast T::FAST
);

/// # Safety
/// As for [`best_of_row`].
#[inline(always)]
unsafe fn best_of_row_any<T: Keyed>(job: &RowJob) {
    let flip = T::flip(job.reversed);
    for row in 0..job.count {
        // SAFETY: the caller promises the rows that the job speaks of, and its results.
        let x = job.x.cast::<T>().offset(row as isize * job.step);
        let (key, at) = best_of::<T>(std::slice::from_raw_parts(x, job.len), flip);
        job.out.add(row * job.out_step).write(Best { key: key.into(), at: at as i64 });
    }
}

#[inline(always)]
fn best_of<T: Keyed>(x: &[T], flip: T::Key) -> (T::Key, usize) {
    if x.len() < 32 {
        let (mut best, mut at) = (x[0].summed_key(flip), 0);
        for (i, x) in x.iter().enumerate().skip(1) {
            let key = x.summed_key(flip);
            at = if key > best { i } else { at };
            best = best.max(key);
        }
        return (best, at);
    }
    let (mut best, mut block) = (highest_key::<T>(&x[..BLOCK.min(x.len())], flip), 0);
    for (at, part) in x.chunks(BLOCK).enumerate().skip(1) {
        let key = highest_key::<T>(part, flip);
        if key > best {
            (best, block) = (key, at);
        }
    }
    let part = &x[block * BLOCK..x.len().min((block + 1) * BLOCK)];
    (best, block * BLOCK + position::<T>(part, best, flip))
}

#[inline(always)]
fn highest_key<T: Keyed>(x: &[T], flip: T::Key) -> T::Key {
    let mut lanes = [T::LOWEST; 32];
    let (chunks, rest) = x.as_chunks::<32>();
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane = x.summed_key(flip).max(*lane);
        }
    }
    for half in [16, 8, 4, 2, 1] {
        for lane in 0..half {
            lanes[lane] = lanes[lane].max(lanes[lane + half]);
        }
    }
    rest.iter().fold(lanes[0], |best, &x| best.max(x.summed_key(flip)))
}

#[inline(always)]
fn position<T: Keyed>(x: &[T], best: T::Key, flip: T::Key) -> usize {
    let (chunks, _) = x.as_chunks::<32>();
    // LLVM 22 cannot select code for WebAssembly where many comparisons of bytes become one bit.
    #[cfg(target_arch = "wasm32")]
    let found = |chunk: &[T; 32]| highest_key::<T>(chunk, flip) == best;
    #[cfg(not(target_arch = "wasm32"))]
    let found = |chunk: &[T; 32]| chunk.iter().fold(false, |found, &x| found | (x.summed_key(flip) == best));
    let skipped = chunks.iter().take_while(|chunk| !found(chunk)).count() * 32;
    skipped + x[skipped..].iter().position(|&x| x.summed_key(flip) == best).unwrap_or(0)
}

/// # Safety
/// As for [`best_of_columns`].
#[inline(always)]
unsafe fn best_of_columns_any<T: Keyed>(job: &ColumnJob) {
    let flip = T::flip(job.reversed);
    let (mut best, mut at) = ([[T::LOWEST; LANES]; WIDTH / LANES], [[0i32; LANES]; WIDTH / LANES]);
    let ((count, step), (rows, row_step)) = (job.columns, job.rows);
    let x = job.x.cast::<T>();
    for round in (0..rows).step_by(ROUND) {
        for group in 0..count.div_ceil(LANES) {
            let (mut best_here, mut at_here) = (best[group], at[group]);
            let last = count - 1 - group * LANES;
            for row in round..rows.min(round + ROUND) {
                let values: [T; LANES] = {
                    let start = x.offset(row as isize * row_step + (group * LANES) as isize * step);
                    if step == 1 && last >= LANES - 1 {
                        start.cast::<[T; LANES]>().read_unaligned()
                    } else {
                        std::array::from_fn(|i| *start.offset(i.min(last) as isize * step))
                    }
                };
                for i in 0..LANES {
                    let key = values[i].summed_key(flip);
                    at_here[i] = if key > best_here[i] { row as i32 } else { at_here[i] };
                    best_here[i] = best_here[i].max(key);
                }
            }
            (best[group], at[group]) = (best_here, at_here);
        }
    }
    for i in 0..count {
        let found = Best { key: best[i / LANES][i % LANES].into(), at: at[i / LANES][i % LANES] as i64 };
        job.out.add(i).write(found);
    }
}

fn kernel_of<T: Keyed>() -> &'static Kernel {
    const { &Kernel { size: size_of::<T>(), row: best_of_row::<T>, columns: best_of_columns::<T> } }
}

fn kernel(dtype: DType) -> &'static Kernel {
    match dtype {
        DType::Bool | DType::U8 => kernel_of::<u8>(),
        DType::F16 => kernel_of::<F16>(),
        DType::BF16 => kernel_of::<BF16>(),
        _ => crate::dispatch!(common dtype, T => kernel_of::<T>(), else unreachable!("cast before")),
    }
}

/// Index of the first largest element (NaN counts as the largest), as `int64`; without an axis, of the flattened
/// array.
pub fn argmax(x: &Array, axis: Option<usize>, keepdims: bool) -> Result<Array> {
    arg_reduce("argmax", false, x, axis, keepdims)
}

/// Index of the first smallest element (NaN counts as the smallest), as `int64`; without an axis, of the flattened
/// array.
pub fn argmin(x: &Array, axis: Option<usize>, keepdims: bool) -> Result<Array> {
    arg_reduce("argmin", true, x, axis, keepdims)
}

type Dims = Inline<(usize, isize)>;

fn arg_reduce(op: &str, reversed: bool, x: &Array, axis: Option<usize>, keepdims: bool) -> Result<Array> {
    if let Some(common) = x.dtype().rare() {
        return arg_reduce(op, reversed, &cast(x, common)?, axis, keepdims);
    }
    let (mut shape, mut kept, mut run) = (Shape::empty(), Dims::empty(), Dims::empty());
    if axis.is_some_and(|axis| axis >= x.rank()) {
        return Err(Error::value(op, format!("wrong axis: got {axis:?}, expected below {}", x.rank())));
    }
    for (at, (&len, &step)) in x.shape().iter().zip(x.strides().iter()).enumerate() {
        if axis.is_none_or(|axis| axis == at) {
            run.push((len, step));
            keepdims.then(|| shape.push(1));
        } else {
            kept.push((len, step));
            shape.push(len);
        }
    }
    let mut out = Array::uninit(DType::I64, &shape)?;
    let len: usize = run.iter().map(|dim| dim.0).product();
    if len == 0 {
        return Err(Error::value(op, "no elements: got an empty axis, expected at least one element"));
    }
    if out.numel() > 0 {
        let (kept, run) = (merged(kept.iter().copied()), merged(run.iter().copied()));
        let job = Search { kernel: kernel(x.dtype()), reversed, x: x.data(), kept, run, len };
        job.run(out.as_mut_slice::<i64>());
    }
    out.with_geometry(&shape, &contiguous_strides(&shape), 0)
}

struct Search<'a> {
    kernel: &'a Kernel,
    reversed: bool,
    x: *const u8,
    kept: Dims,
    run: Dims,
    len: usize,
}

// SAFETY: tasks only read through the address, which belongs to the operand.
unsafe impl Sync for Search<'_> {}

impl Search<'_> {
    fn run(&self, out: &mut [i64]) {
        let pieces = self.len.div_ceil(PIECE);
        let mut best = filled(Best { key: 0, at: 0 }, out.len() * pieces);
        let to = SharedMut::new(best.as_mut_ptr());
        // SAFETY: there is a slot for each piece of each result, and only this call knows them.
        unsafe {
            match (&self.kept[..], &self.run[..]) {
                (&[.., (_, near)], &[(_, far)]) if near != 0 && near.abs() < far.abs() => self.by_columns(pieces, to),
                (_, &[] | &[(_, 1)]) => self.by_rows(pieces, false, to),
                _ => self.by_rows(pieces, true, to),
            }
        }
        for (out, candidates) in out.iter_mut().zip(best.chunks(pieces)) {
            let mut first = 0;
            for (piece, candidate) in candidates.iter().enumerate() {
                if candidate.key > candidates[first].key {
                    first = piece;
                }
            }
            *out = (first * PIECE) as i64 + candidates[first].at;
        }
    }

    /// Rows of the run, gathered where it is not dense.
    ///
    /// # Safety
    /// There is a slot for each piece of each result, which nothing else touches meanwhile.
    unsafe fn by_rows(&self, pieces: usize, gather: bool, out: SharedMut<Best>) {
        let all = self.kept.iter().chain(self.run.iter()).copied();
        let source = Strided::new(self.x, self.kernel.size, all);
        let rows: usize = self.kept.iter().map(|dim| dim.0).product();
        let (inner, step) = self.kept.last().copied().unwrap_or((1, 0));
        let together = (PIECE / self.len).max(1);
        threads::parallel(rows.div_ceil(together) * pieces, &|task| {
            let (mut row, start) = (task / pieces * together, task % pieces * PIECE);
            let end = rows.min(row + together);
            let len = PIECE.min(self.len - start);
            while row < end {
                let out = out.ptr().add(row * pieces + task % pieces);
                let mut job = RowJob { reversed: self.reversed, x: self.x, len, count: 1, step, out, out_step: pieces };
                if gather {
                    job.step = len as isize;
                    job.count = if pieces == 1 { end - row } else { 1 };
                    let (first, count) = (row * self.len + start, job.count * len);
                    let bytes = source.room(count) * self.kernel.size;
                    Arena::with([bytes], |mut room| {
                        // SAFETY: a part of each of these rows, which lie in the operand; elements of the room are aligned.
                        let x = source.part(first..first + count, room.take::<u8>(bytes));
                        (self.kernel.row)(&RowJob { x, ..job });
                    });
                } else {
                    job.count = (inner - row % inner).min(end - row);
                    let at = offset(&self.kept, row) + start as isize;
                    // SAFETY: a part of each of these rows, which lie in the operand as far apart as `step` says.
                    job.x = self.x.offset(at * self.kernel.size as isize);
                    (self.kernel.row)(&job);
                }
                row += job.count;
            }
        });
    }

    /// Neighboring columns together.
    ///
    /// # Safety
    /// As for [`Search::by_rows`].
    unsafe fn by_columns(&self, pieces: usize, out: SharedMut<Best>) {
        let (width, step) = self.kept[self.kept.len() - 1];
        let outer = &self.kept[..self.kept.len() - 1];
        let tiles = width.div_ceil(WIDTH);
        let jobs = outer.iter().map(|dim| dim.0).product::<usize>() * tiles * pieces;
        let together = (PIECE / (self.len.min(PIECE) * WIDTH)).max(1);
        threads::parallel(jobs.div_ceil(together), &|task| {
            for job in task * together..jobs.min((task + 1) * together) {
                let (piece, first, row) = (job % pieces, job / pieces % tiles * WIDTH, job / pieces / tiles);
                let (start, count) = (piece * PIECE, WIDTH.min(width - first));
                let mut found = [Best { key: 0, at: 0 }; WIDTH];
                let at = offset(outer, row) + first as isize * step + start as isize * self.run[0].1;
                // SAFETY: rows and columns of the operand from one of its elements on; `found` holds as many results.
                (self.kernel.columns)(&ColumnJob {
                    reversed: self.reversed,
                    x: self.x.offset(at * self.kernel.size as isize),
                    rows: (PIECE.min(self.len - start), self.run[0].1),
                    columns: (count, step),
                    out: found.as_mut_ptr(),
                });
                for (column, &best) in found[..count].iter().enumerate() {
                    out.ptr().add((row * width + first + column) * pieces + piece).write(best);
                }
            }
        });
    }
}
