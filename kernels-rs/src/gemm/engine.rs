//! One float product: which kernel, which blocks, which threads.
//!
//! Why our own kernel and no crate: gemmkit 0.1.2, used before, reached the target for large row-major `f32` alone. It
//! packed right sides stored by columns element by element (64x256x784: 80 GF/s; here 96), packed where reading in place
//! is faster, has neither residual nor gelu in its epilogue, and fell to 35 GF/s in builds without link-time
//! optimization, since its tile was not inlined. Here, on AMD EPYC (Zen 4), one thread, `f32` peak 117 GF/s, processor
//! time on a busy machine: 64^3 107, 128^3 and 256^3 114, 512^3 and 1024^3 104, 64x784x256 112, 8x1024x1024 103 (by
//! columns 96), 96 x (128x32x128) 108; `f64` 256^3 56 of 59; bfloat16 1024^3 189.
//!
//! Packed weights are not kept between calls. Packing takes 0.4 ns an element (64x784x256). A product of `f32` with at
//! least as many columns as rows packs only from 513 rows on, where that is 4% of its time; keeping a second copy of each
//! weight is not worth this much. For narrow floats with 16 to 100 rows it would be.

use super::dots::Dots;
use super::epilogue::{Epilogue, Finish, Sum};
use super::format::{Format, Pairs, Same, Single, Streamed, Wide};
use super::pack::{self, SLACK};
use super::tile::{Multiply, Start, Strip, wide_rows};
use super::{Matrix, SERIAL};
use crate::dtype::{BF16, F16, Float};
use crate::error::Result;
use crate::lanes::{lane_count, launch};
use crate::scratch::with_scratch;
use crate::storage::Storage;
use crate::threads::{self, SharedMut};
use std::ops::Range;

/// `c = epilogue(a @ b)` for sizes `(m, k, n)` of at least 1. Narrow floats accumulate in `f32` and are rounded once.
/// Where the CPU has a bf16 dot product, bfloat16 operands below the normal range may count as 0.
#[derive(Clone, Copy)]
pub struct Call<T> {
    /// `(m, k, n)`.
    pub size: (usize, usize, usize),
    /// The left side.
    pub a: Matrix<T>,
    /// The right side.
    pub b: Matrix<T>,
    /// The result.
    pub c: Matrix<T>,
    /// What happens to the product.
    pub end: Epilogue<T>,
}

/// A float type with matrix products.
pub trait Gemm: Float<Wide: Sum> {
    /// How its elements meet widened ones where they lie.
    type Direct: Multiply<Left = Self::Wide, Right = Self, Real = Self::Wide>;
    /// The product by packing.
    ///
    /// # Safety
    /// As [`multiply`].
    unsafe fn packed(call: &Call<Self>, split: bool) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { packed::<Single<Self>>(call, split) }
    }
}

impl Gemm for f32 {
    type Direct = Same<f32>;
}
impl Gemm for f64 {
    type Direct = Same<f64>;
}
impl Gemm for F16 {
    type Direct = Streamed<F16>;
}
impl Gemm for BF16 {
    type Direct = Streamed<BF16>;
    unsafe fn packed(call: &Call<Self>, split: bool) -> Result<()> {
        if Pairs::supported() {
            // SAFETY: the caller's.
            return unsafe { packed::<Pairs>(call, split) };
        }
        // SAFETY: the caller's.
        unsafe { packed::<Single<Self>>(call, split) }
    }
}

/// Columns below which a product is computed transposed, where it has more rows.
const FEW_COLUMNS: usize = 8;
/// Rows up to which dot products beat packing.
const FEW_DOTS: usize = 8;
/// Depth below which dot products do not pay.
const FEW_DEEP: usize = 16;
/// Rows of the result up to which the right side is read where it lies. Measured on AMD EPYC (Zen 4), one thread, GF/s of
/// f32, as it lies / packed first: 32x1024x1024 106/81, 64x784x256 113/85, 128^3 114/101,
/// 256^3 114/105.
const FEW_ROWS: usize = 64;
/// The same where there are columns enough to share out.
const FEWER_THAN_COLUMNS: usize = 512;
/// Elements of a right side that stays in the first-level cache: no reason to pack it.
const CACHED: usize = 1 << 12;

/// Computes a product. `split` allows more than one thread; it changes no bit.
///
/// # Safety
/// The matrices and addends are valid for these sizes; `c` has distinct elements and overlaps nothing.
pub unsafe fn multiply<T: Gemm>(call: &Call<T>, split: bool) -> Result<()> {
    let (m, k, n) = call.size;
    // SAFETY: the caller's.
    unsafe {
        if k == 0 {
            empty(call);
            return Ok(());
        }
        let shallow = k < FEW_DEEP && Single::<T>::DIRECT && (call.b.col == 1 || n == 1);
        if n < m && n < FEW_COLUMNS && !shallow {
            return multiply(&call.turned(), split);
        }
        if call.b.row == 1 && call.b.col != 1 && m <= FEW_DOTS && k >= FEW_DEEP {
            dots(call, split);
            return Ok(());
        }
        let few = m <= FEW_ROWS || (m <= FEWER_THAN_COLUMNS && n >= m) || k * n <= CACHED;
        if few && (call.b.col == 1 || n == 1) && (Single::<T>::DIRECT || m <= FEW_DOTS) {
            direct(call, split);
            return Ok(());
        }
        T::packed(call, split)
    }
}

impl<T: Copy> Call<T> {
    /// The same product by columns.
    fn turned(&self) -> Self {
        let (m, k, n) = self.size;
        let (a, b) = (self.b.turned(), self.a.turned());
        Self { size: (n, k, m), a, b, c: self.c.turned(), end: self.end.turned() }
    }

    fn work(&self) -> usize {
        self.size.0.saturating_mul(self.size.1).saturating_mul(self.size.2)
    }

    /// Cuts columns into tasks of whole panels: a function of the shape alone.
    fn by_columns(&self, split: bool, panel: usize, task: &(dyn Fn(Range<usize>) + Sync)) {
        let n = self.size.2;
        // Few rows are bound by memory: longer runs.
        let most = if self.size.0 <= 6 { 8 } else { 16 };
        let pieces = if self.work() < SERIAL { 1 } else { (self.work() >> 18).clamp(2, most) };
        let step = n.div_ceil(pieces).next_multiple_of(panel);
        let run = |index: usize| task(index * step..n.min((index + 1) * step));
        if split {
            threads::parallel(n.div_ceil(step), &run);
        } else {
            (0..n.div_ceil(step)).for_each(run);
        }
    }
}

/// Where sums are kept: in the result, if it has their type and runs along rows, else aside.
fn in_place<T: Float>(c: Matrix<T>) -> Option<*mut T::Wide> {
    (size_of::<T>() == size_of::<T::Wide>() && c.col == 1).then(|| c.start.cast())
}

/// Finishes a block of sums, where there is anything to do.
fn finish<T: Gemm>(from: *mut T::Wide, pitch: isize, (rows, cols): (usize, usize), to: Matrix<T>, end: Epilogue<T>) {
    if !(end.is_empty() && in_place(to).is_some()) {
        launch(Finish::<T> { from, pitch, rows, cols, to, epilogue: end });
    }
}

/// Bias that the sums can begin with.
fn first_addend<T: Float>(end: &mut Epilogue<T>) -> Start<T::Wide> {
    let Some(bias) = end.bias.filter(|_| end.scale == 1.0 && size_of::<T>() == size_of::<T::Wide>()) else {
        return Start::Zero;
    };
    let start = match (bias.row, bias.col) {
        (0, 1) => Start::Columns(bias.start.cast_const().cast()),
        (row, 0) => Start::Rows(bias.start.cast_const().cast(), row),
        _ => return Start::Zero,
    };
    end.bias = None;
    start
}

fn shifted<R>(start: Start<R>, cols: usize) -> Start<R> {
    match start {
        Start::Columns(at) => Start::Columns(at.wrapping_add(cols)),
        other => other,
    }
}

/// Cells of a scratch buffer of `W`.
fn cells<C, W>(count: usize) -> usize {
    (count * size_of::<C>()).div_ceil(64) * (64 / size_of::<W>())
}

/// The result of empty sums.
unsafe fn empty<T: Gemm>(call: &Call<T>) {
    let (m, _, n) = call.size;
    let mut sums = vec![T::Wide::default(); n];
    for i in 0..m {
        sums.fill(T::Wide::default());
        let (to, epilogue) = (call.c.at(i, 0), call.end.at(i, 0));
        launch(Finish::<T> { from: sums.as_mut_ptr(), pitch: 0, rows: 1, cols: n, to, epilogue });
    }
}

unsafe fn dots<T: Gemm>(call: &Call<T>, split: bool) {
    let (m, k, _) = call.size;
    call.by_columns(split, 16, &|range| {
        let cols = range.len();
        let (c, end) = (call.c.at(0, range.start), call.end.at(0, range.start));
        let kept = Single::<T>::DIRECT && call.a.col == 1;
        let left_len = if kept { 0 } else { cells::<T::Wide, T::Wide>(m * k) };
        let sums = in_place(c);
        let sums_len = if sums.is_some() { 0 } else { m * cols };
        with_scratch(left_len + sums_len, |scratch: &mut [T::Wide]| {
            let (left, aside) = scratch.split_at_mut(left_len);
            let (mut from, mut row) = (call.a.start.cast::<T::Wide>().cast_const(), call.a.row);
            if !kept {
                for (i, line) in left[..m * k].chunks_exact_mut(k).enumerate() {
                    // SAFETY: inside the left side.
                    line.iter_mut().enumerate().for_each(|(l, x)| *x = unsafe { (*call.a.at(i, l).start).widen() });
                }
                (from, row) = (left.as_ptr(), k as isize);
            }
            let (to, pitch) = sums.map_or((aside.as_mut_ptr(), cols as isize), |to| (to, c.row));
            let right = call.b.at(0, range.start);
            launch(Dots::<T> { k, rows: m, cols, left: from, left_row: row, right, to, pitch });
            if sums.is_none() || !end.is_empty() {
                launch(Finish::<T> { from: to, pitch, rows: m, cols, to: c, epilogue: end });
            }
        });
    });
}

/// Depth of a block of a right side that is read where it lies: a strip of it stays in the first-level cache for all rows
/// of the left side. One or two rows of a matrix beyond the caches read few lines of it at a time, in long runs.
fn direct_depth(width: usize, (m, k, n): (usize, usize, usize)) -> usize {
    if width == 4 && m <= 2 && k * n >= 1 << 22 { 8 } else { 128 }
}

unsafe fn direct<T: Gemm>(call: &Call<T>, split: bool) {
    let lanes = lane_count::<T::Wide>();
    let width = match call.size {
        (_, _, n) if n <= lanes => 1,
        (m, _, n) if m <= wide_rows() && n >= 4 * lanes => 4,
        _ => 2,
    };
    let (m, k, n) = call.size;
    let tall = m.div_ceil(16).max(FEWER_THAN_COLUMNS);
    if n > width * lanes || m <= tall {
        return call.by_columns(split, width * lanes, &|range| {
            // SAFETY: the caller's; each task has its own columns.
            unsafe { direct_columns(call, range, width, lanes) };
        });
    }
    let rows = |index: usize| {
        let (first, count) = (index * tall, tall.min(m - index * tall));
        let (a, c, end) = (call.a.at(first, 0), call.c.at(first, 0), call.end.at(first, 0));
        // SAFETY: the caller's; each task has its own rows.
        unsafe { direct_columns(&Call { size: (count, k, n), a, c, end, ..*call }, 0..n, width, lanes) };
    };
    if split && call.work() >= SERIAL {
        threads::parallel(m.div_ceil(tall), &rows);
    } else {
        (0..m.div_ceil(tall)).for_each(rows);
    }
}

unsafe fn direct_columns<T: Gemm>(call: &Call<T>, range: Range<usize>, width: usize, lanes: usize) {
    let (m, k, _) = call.size;
    let (cols, panel, most) = (range.len(), width * lanes, direct_depth(width, call.size));
    let mut end = call.end.at(0, range.start);
    let first = first_addend(&mut end);
    let (b, c) = (call.b.at(0, range.start), call.c.at(0, range.start));
    let packed = !Single::<T>::DIRECT;
    let left_len = if packed { cells::<T::Wide, T::Wide>(m * k + SLACK) } else { 0 };
    // What whole panels leave over, in as few registers as hold it.
    let tail_width = if cols % panel <= lanes { 1 } else { width };
    let tail_len = if cols.is_multiple_of(panel) { 0 } else { most * tail_width * lanes };
    let sums = in_place(c);
    let sums_len = if sums.is_some() { 0 } else { m * cols };
    with_scratch(left_len + tail_len + sums_len, |scratch: &mut [T::Wide]| {
        let (left, rest) = scratch.split_at_mut(left_len);
        let (tail, aside) = rest.split_at_mut(tail_len);
        let (sums, pitch) = sums.map_or((aside.as_mut_ptr(), cols as isize), |to| (to, c.row));
        for depth in (0..k).step_by(most) {
            let deep = most.min(k - depth);
            let start = if depth == 0 { first } else { Start::Kept };
            let (a, steps) = (call.a.at(0, depth), (!packed).then_some((call.a.row, call.a.col)));
            let mut left = left.as_mut_ptr();
            if packed {
                // SAFETY: inside the left side.
                unsafe { pack::left::<Single<T>>(a, (m, m), deep, left) };
            } else {
                left = a.start.cast();
            }
            let strip = Strip::<T::Direct> {
                k: deep,
                rows: m,
                cols: panel,
                width,
                strips: cols / panel,
                left,
                left_steps: steps,
                right: b.at(depth, 0).start,
                right_step: b.row,
                prefetch: panel as isize,
                start,
                to: sums,
                pitch,
            };
            if tail_len > 0 {
                let j = cols / panel * panel;
                let even = (tail_width * lanes, 0);
                // SAFETY: inside the right side.
                unsafe { pack::right::<Single<T>>(b.at(depth, j), deep, cols - j, even, tail.as_mut_ptr()) };
                launch(Strip::<Same<T::Wide>> {
                    cols: cols - j,
                    width: tail_width,
                    strips: 1,
                    right_step: even.0 as isize,
                    prefetch: 0,
                    start: shifted(start, j),
                    to: sums.wrapping_add(j),
                    ..strip.same_left(tail.as_ptr())
                });
            }
            T::Direct::launch(strip);
        }
        finish(sums, pitch, (m, cols), c, end);
    });
}

/// Depth of a block, in cells. Measured for f32 512^3 and 1024^3, GF/s on one thread: 128 90/86, 256 105/104, 384 100/101.
const DEPTH: usize = 256;
/// Bytes of a right side that are packed at a time.
const MOST_PACKED: usize = 16 << 20;
/// Rows of a task: its block of the left side is at most 168 KiB, in the second-level cache.
const MOST_ROWS: usize = 168;

/// The right side in panels, block after block along `k`.
struct Panels<C> {
    start: *const C,
    /// Cells across a panel.
    width: usize,
    count: usize,
}

/// Rows and columns of a task: a function of the shape alone.
fn grid((m, k, n): (usize, usize, usize), panel: usize, narrow: bool) -> (usize, usize) {
    let work = m.saturating_mul(k).saturating_mul(n);
    let wanted = if work < SERIAL { 1 } else { (work >> 18).min(32) };
    let (mut rows, mut cols) = (m.div_ceil(m.div_ceil(MOST_ROWS)), n);
    if narrow && cols > 512 {
        // The sums are kept aside while there are several blocks along `k`.
        cols = n.div_ceil(n.div_ceil(512)).next_multiple_of(panel);
    }
    let half = |x: usize, unit: usize| x.div_ceil(2).next_multiple_of(unit);
    while m.div_ceil(rows) * n.div_ceil(cols) < wanted {
        if rows > 112 || (rows > 56 && cols <= 512) {
            rows = rows.div_ceil(2);
        } else if cols > 4 * panel {
            cols = half(cols, panel);
        } else if rows > 28 {
            rows = rows.div_ceil(2);
        } else if cols > panel {
            cols = half(cols, panel);
        } else {
            break;
        }
    }
    (rows, cols)
}

unsafe fn packed<F: Format<Elem: Gemm>>(call: &Call<F::Elem>, split: bool) -> Result<()>
where
    Wide<F>: Sum,
{
    let (m, k, n) = call.size;
    let lanes = lane_count::<Wide<F>>();
    let width = if n <= lanes { 1 } else { 2 };
    let panel = width * lanes;
    let most = (MOST_PACKED / (k * size_of::<F::Cell>())).max(1).next_multiple_of(panel);
    if n > most {
        return (0..n).step_by(most).try_for_each(|j| {
            let (b, c, end) = (call.b.at(0, j), call.c.at(0, j), call.end.at(0, j));
            let part = Call { size: (m, k, most.min(n - j)), a: call.a, b, c, end };
            // SAFETY: the caller's.
            unsafe { packed::<F>(&part, split) }
        });
    }
    let count = n.div_ceil(panel);
    let depth = k.div_ceil(F::DEPTH);
    let storage = Storage::uninit(depth * count * panel * size_of::<F::Cell>())?;
    let cells = SharedMut::new(storage.data().cast::<F::Cell>());
    let run = |tasks: usize, task: &(dyn Fn(usize) + Sync)| {
        if split {
            threads::parallel(tasks, task);
        } else {
            (0..tasks).for_each(task);
        }
    };
    // Panels per task: about 64 Ki elements.
    let bundle = ((1 << 16) / (k * panel) + 1).clamp(8, pack::MOST_PANELS);
    let pack = |index: usize| {
        let panels = index * bundle..count.min((index + 1) * bundle);
        let cols = panel * panels.start..n.min(panel * panels.end);
        for first in (0..depth).step_by(DEPTH) {
            let deep = DEPTH.min(depth - first);
            let to = cells.ptr().wrapping_add(first * count * panel + panels.start * deep * panel);
            let from = call.b.at(first * F::DEPTH, cols.start);
            let k = (deep * F::DEPTH).min(k - first * F::DEPTH);
            // SAFETY: inside the right side; each task has its own panels.
            unsafe { pack::right::<F>(from, k, cols.len(), (panel, deep * panel), to) };
        }
    };
    if k * n < 1 << 16 {
        (0..count.div_ceil(bundle)).for_each(pack);
    } else {
        run(count.div_ceil(bundle), &pack);
    }
    let (rows, cols) = grid(call.size, panel, size_of::<F::Elem>() < size_of::<Wide<F>>());
    let across = n.div_ceil(cols);
    run(m.div_ceil(rows) * across, &|index| {
        let (i, j) = (index / across * rows, index % across * cols);
        let right = Panels { start: cells.ptr().cast_const(), width, count };
        // SAFETY: the caller's; each task has its own part of the result.
        unsafe { block::<F>(call, i..m.min(i + rows), j..n.min(j + cols), &right) };
    });
    Ok(())
}

/// A task: a part of the result over all of `k`.
unsafe fn block<F: Format<Elem: Gemm>>(
    call: &Call<F::Elem>,
    row_range: Range<usize>,
    col_range: Range<usize>,
    right: &Panels<F::Cell>,
) where
    Wide<F>: Sum,
{
    let (m, k, _) = call.size;
    let (rows, cols) = (row_range.len(), col_range.len());
    let panel = right.width * lane_count::<Wide<F>>();
    let depth = k.div_ceil(F::DEPTH);
    let mut end = call.end.at(row_range.start, col_range.start);
    let first = first_addend(&mut end);
    let c = call.c.at(row_range.start, col_range.start);
    let left_len = cells::<F::Cell, Wide<F>>(rows * DEPTH.min(depth) + SLACK);
    let sums = in_place(c);
    let sums_cols = if depth <= DEPTH { panel } else { cols.next_multiple_of(panel) };
    let sums_len = if sums.is_some() { 0 } else { rows * sums_cols };
    with_scratch(left_len + sums_len, |scratch: &mut [Wide<F>]| {
        let (left, aside) = scratch.split_at_mut(left_len);
        let left = left.as_mut_ptr().cast::<F::Cell>();
        for at in (0..depth).step_by(DEPTH) {
            let deep = DEPTH.min(depth - at);
            let (l, length) = (at * F::DEPTH, (deep * F::DEPTH).min(k - at * F::DEPTH));
            let start = if at == 0 { first } else { Start::Kept };
            // SAFETY: inside the left side.
            unsafe { pack::left::<F>(call.a.at(row_range.start, l), (rows, m - row_range.start), length, left) };
            for j in (0..cols).step_by(panel) {
                let wide = panel.min(cols - j);
                let place = (col_range.start + j) / panel;
                let aside_at = if depth <= DEPTH { 0 } else { j };
                let (to, pitch) = sums.map_or((aside.as_mut_ptr().wrapping_add(aside_at), sums_cols as isize), |to| {
                    (to.wrapping_add(j), c.row)
                });
                F::Product::launch(Strip::<F::Product> {
                    k: deep,
                    rows,
                    cols: wide,
                    width: right.width,
                    strips: 1,
                    left,
                    left_steps: None,
                    right: right.start.wrapping_add(at * right.count * panel + place * deep * panel),
                    right_step: panel as isize,
                    prefetch: 0,
                    start: shifted(start, j),
                    to,
                    pitch,
                });
                if at + deep == depth && !(end.is_empty() && sums.is_some()) {
                    let epilogue = end.at(0, j);
                    launch(Finish::<F::Elem> { from: to, pitch, rows, cols: wide, to: c.at(0, j), epilogue });
                }
            }
        }
    });
}
