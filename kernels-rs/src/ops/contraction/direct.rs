//! Products that read the right side where it lies: rows in runs, few enough of them on the left that packing would not
//! pay.

use super::SERIAL;
use super::blocks::{WIDE, caches_few_rows, deep_panels_in_place, depth_of_wide, wide};
use super::call::{Call, FEW_DOTS, FEWER_THAN_COLUMNS, LYING_DEPTH, cells, finish, first_addend, in_place, shifted};
use super::epilogue::Sum;
use super::format::{Format, Same, Single, Streamed, Wide};
use super::pack::{self, SLACK};
use super::tile::{Multiply, Start, Strip, lying_rows, tile_rows, wide_rows};
use crate::array::Array;
use crate::dtype::{DType, Float};
use crate::error::Result;
use crate::machine::lanes::{Real, is_baseline, lane_count};
use crate::machine::simd::has_bf16_pairs;
use crate::machine::threads;
use crate::memory::owned::Memory;
use crate::memory::scratch::with_scratch;
use std::marker::PhantomData;
use std::ops::Range;

/// How both sides are read.
pub trait Way: 'static {
    /// Cells of the columns that fill no panel, which are packed, and of a left side that is.
    type Packed: Format<Elem: Float<Wide: Sum>>;
    /// What the left side is read as.
    type Left: Copy;
    /// For whole panels.
    type Whole: Multiply<Left = Self::Left, Right = Elem<Self>, Real = Wide<Self::Packed>>;
    /// For the packed columns.
    type Tail: Multiply<Left = Self::Left, Right = Cell<Self>, Real = Wide<Self::Packed>>;
    /// True when the left side is packed first.
    const PACKS: bool;
    /// True when this way is open here.
    fn applies(call: &Call<Elem<Self>>) -> bool;
}

type Elem<W> = <<W as Way>::Packed as Format>::Elem;
type Cell<W> = <<W as Way>::Packed as Format>::Cell;

/// Elements that are summed in their own type.
pub struct InPlace<T>(PhantomData<T>);

impl<T: Float<Wide = T> + Real + Sum> Way for InPlace<T> {
    type Packed = Single<T>;
    type Left = T;
    type Whole = Same<T>;
    type Tail = Same<T>;
    const PACKS: bool = false;
    fn applies(_: &Call<T>) -> bool {
        true
    }
}

/// Elements that are widened: those of the left side once, those of the right side as they are read.
pub struct Widened<T>(PhantomData<T>);

impl<T: Float<Wide: Sum>> Way for Widened<T> {
    type Packed = Single<T>;
    type Left = T::Wide;
    type Whole = Streamed<T>;
    type Tail = Same<T::Wide>;
    const PACKS: bool = true;
    fn applies(call: &Call<T>) -> bool {
        // Pairs are twice as fast from where packing them pays.
        !is_baseline() && (call.size.0 <= FEW_DOTS || T::DTYPE != DType::BF16 || !has_bf16_pairs())
    }
}

/// Elements along `k` of a block: a strip of it stays in the first-level cache for all rows of the left side, or in the second
/// where wide panels are read from there. One or two rows of a matrix beyond the caches read few lines of it at a time, in long
/// runs, unless they are to be kept.
fn depth_of<W: Way>(width: usize, (m, k, n): (usize, usize, usize)) -> usize {
    let long = width == WIDE && m <= 2 && k * n >= 1 << 22 && !caches_few_rows::<W::Packed>((m, k, n));
    let deep = !W::PACKS && deep_panels_in_place::<W::Packed>(m, n);
    W::Packed::DEPTH
        * match (long, deep) {
            (true, _) => 8,
            (_, true) => depth_of_wide(),
            _ => LYING_DEPTH,
        }
}

/// Registers across a strip. Tasks are whole strips: narrow ones where wide ones would leave threads without work.
fn width_of<W: Way>((m, _, n): (usize, usize, usize), split: bool, lanes: usize) -> usize {
    let few = split && n < WIDE * lanes * threads::num_threads();
    if n <= lanes {
        W::Whole::TILES.1[0]
    } else if n >= WIDE * lanes && (m <= wide_rows() || !W::PACKS && wide() && !few) {
        WIDE
    } else {
        2
    }
}

/// Where the left side is: steps of rows and cells, or blocks of panels along `k`.
struct Left<L> {
    start: *const L,
    steps: Option<(isize, isize)>,
}

// SAFETY: addresses; each use of them is unsafe and argues for itself.
unsafe impl<L> Sync for Left<L> {}

impl<L> Left<L> {
    /// Where its columns from `depth` on begin, `cell` of them to a cell, `rows` of it to a block.
    fn at(&self, depth: usize, cell: usize, rows: usize) -> *const L {
        self.start.wrapping_offset(match self.steps {
            Some(steps) => (depth / cell) as isize * steps.1,
            None => (depth * rows) as isize,
        })
    }
}

/// Computes a product, if the way is open.
///
/// # Safety
/// As `multiply`; columns of the right side lie side by side.
pub unsafe fn run<W: Way>(call: &Call<Elem<W>>, split: bool) -> Result<bool>
where
    Wide<W::Packed>: Sum,
{
    if !W::applies(call) {
        return Ok(false);
    }
    let lanes = lane_count::<Wide<W::Packed>>();
    let width = width_of::<W>(call.size, split, lanes);
    let (m, k, n) = call.size;
    let tall = m.div_ceil(threads::tasks(16)).max(FEWER_THAN_COLUMNS);
    let by_columns = n > width * lanes || m <= tall;
    let rows_at_once = if by_columns { m } else { tall };
    // SAFETY: a part of the operands and of the result lies inside them.
    let held = widened::<W>(call, rows_at_once, depth_of::<W>(width, call.size))?;
    let left = |first: usize| {
        let steps = (call.a.row, call.a.col * W::Packed::DEPTH as isize);
        let lies = Left { start: call.a.at(first, 0).start.cast::<W::Left>().cast_const(), steps: Some(steps) };
        let panels = |held: &Memory| held.data().cast::<W::Left>().wrapping_add(first * k).cast_const();
        held.as_ref().map_or(lies, |held| Left { start: panels(held), steps: None })
    };
    if by_columns {
        let left = left(0);
        call.by_columns(split, width * lanes, &|range| {
            // SAFETY: a part of the operands and of the result lies inside them; each task has its own columns.
            columns::<W>(call, &left, range, width, lanes);
        });
        return Ok(true);
    }
    let rows = |index: usize| {
        let (first, count) = (index * tall, tall.min(m - index * tall));
        let (a, c, end) = (call.a.at(first, 0), call.c.at(first, 0), call.end.at(first, 0));
        // SAFETY: a part of the operands and of the result lies inside them; each task has its own rows.
        columns::<W>(&Call { size: (count, k, n), a, c, end, ..*call }, &left(first), 0..n, width, lanes);
    };
    if split && call.work() >= SERIAL {
        threads::parallel(m.div_ceil(tall), &rows);
    } else {
        (0..m.div_ceil(tall)).for_each(rows);
    }
    Ok(true)
}

/// A left side that is packed, once for all tasks: in blocks of rows, then of depth.
unsafe fn widened<W: Way>(call: &Call<Elem<W>>, high: usize, deep: usize) -> Result<Option<Memory>> {
    if !W::PACKS {
        return Ok(None);
    }
    let (m, k, _) = call.size;
    let held = Memory::new((m * k + SLACK) * size_of::<W::Left>())?;
    for first in (0..m).step_by(high) {
        let rows = high.min(m - first);
        for depth in (0..k).step_by(deep) {
            let to = held.data().cast::<Cell<W>>().wrapping_add(first * k + depth * rows);
            // SAFETY: inside the left side; what goes past a block is overwritten by the next, or is slack.
            pack::left::<W::Packed>(
                call.a.at(first, depth),
                (rows, rows),
                deep.min(k - depth),
                (tile_rows::<Wide<W::Packed>>(), to),
            );
        }
    }
    Ok(Some(held))
}

/// A small product of whole registers, by the kernel that [`run`] would come to, without anything on the way there; false,
/// and nothing done, for any other.
///
/// # Safety
/// `x1` is `m x k`, `x2` is `k x n`, `to` has room for a dense result.
pub unsafe fn tiny((m, k, n): (usize, usize, usize), x1: &Array, x2: &Array, to: *mut f32) -> bool {
    let lanes = lane_count::<f32>();
    let width = if n <= lanes { 1 } else { 2 };
    let fits = n.is_multiple_of(width * lanes) && m > wide_rows() && n > 0 && (1..=128).contains(&k);
    if !fits || x2.strides()[1] != 1 {
        return false;
    }
    Same::<f32>::launch(Strip::<Same<f32>> {
        k,
        rows: m,
        cols: width * lanes,
        width,
        high: lying_rows::<f32>(width),
        strips: n / (width * lanes),
        left: x1.ptr(),
        left_steps: Some((x1.strides()[0], x1.strides()[1])),
        right: x2.ptr(),
        right_step: x2.strides()[0],
        prefetch: (width * lanes) as isize,
        next: (x2.ptr(), 0),
        start: Start::Zero,
        to,
        pitch: n as isize,
    });
    true
}

unsafe fn columns<W: Way>(call: &Call<Elem<W>>, left: &Left<W::Left>, range: Range<usize>, width: usize, lanes: usize)
where
    Wide<W::Packed>: Sum,
{
    let (m, k, _) = call.size;
    let (cols, panel, most) = (range.len(), width * lanes, depth_of::<W>(width, call.size));
    let mut end = call.end.at(0, range.start);
    let first = first_addend(&mut end);
    let (b, c) = (call.b.at(0, range.start), call.c.at(0, range.start));
    // What whole panels leave over, in as few registers as hold it.
    let tail_width = if cols % panel <= lanes { 1 } else { width };
    let (tail_panel, tail_depth) = (tail_width * lanes, most / W::Packed::DEPTH);
    let tail_len =
        if cols.is_multiple_of(panel) { 0 } else { cells::<Cell<W>, Wide<W::Packed>>(tail_depth * tail_panel) };
    let high = if left.steps.is_some() { lying_rows::<Wide<W::Packed>>(width) } else { tile_rows::<Wide<W::Packed>>() };
    let sums = in_place(c);
    let sums_len = if sums.is_some() { 0 } else { m * cols };
    with_scratch(tail_len + sums_len, |scratch: &mut [Wide<W::Packed>]| {
        let (tail, aside) = scratch.split_at_mut(tail_len);
        let (sums, pitch) = sums.map_or((aside.as_mut_ptr(), cols as isize), |to| (to, c.row));
        for depth in (0..k).step_by(most) {
            let deep = most.min(k - depth);
            let start = if depth == 0 { first } else { Start::Kept };
            let strip = Strip::<W::Whole> {
                k: deep / W::Packed::DEPTH,
                rows: m,
                cols: panel,
                width,
                high,
                strips: cols / panel,
                left: left.at(depth, W::Packed::DEPTH, m),
                left_steps: left.steps,
                right: b.at(depth, 0).start,
                right_step: b.row * W::Packed::DEPTH as isize,
                prefetch: if most > LYING_DEPTH * W::Packed::DEPTH { 0 } else { panel as isize },
                next: (b.start, 0),
                start,
                to: sums,
                pitch,
            };
            if tail_len > 0 {
                let (j, cells) = (cols / panel * panel, tail.as_mut_ptr().cast::<Cell<W>>());
                // SAFETY: inside the right side.
                pack::right::<W::Packed>(b.at(depth, j), deep, cols - j, (tail_panel, 0), cells);
                W::Tail::launch(Strip::<W::Tail> {
                    cols: cols - j,
                    width: tail_width,
                    strips: 1,
                    right_step: tail_panel as isize,
                    prefetch: 0,
                    start: shifted(start, j),
                    to: sums.wrapping_add(j),
                    ..strip.same_left(cells.cast_const())
                });
            }
            W::Whole::launch(strip);
        }
        finish(sums, pitch, (m, cols), c, end);
    });
}
