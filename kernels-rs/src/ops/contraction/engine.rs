//! One float product: which kernel, which blocks, which threads.
//!
//! Why our own kernel and no crate, and what its limits were measured by: `docs/kernels.md`.
//!
//! A packed right side is kept beside its storage from its second use on ([`crate::memory::packed`]), where packing is more than about 2 % of
//! the product. Which way a product goes never depends on what is kept: so keeping changes no bit. Row-major `f32` and f16 are read in place instead, but where
//! wide panels pay, those of `f32` and `f64` are kept as [`super::blocks::caches`] says.

use super::Matrix;
#[cfg(target_arch = "x86_64")]
use super::amx;
use super::blocks::{Blocks, caches_few_rows, deep_panels_in_place, few_rows, fewer_than_columns};
use super::call::{CACHED, Call, FEW_ROWS, cells, finish, first_addend, in_place, run, shifted};
use super::deep::{self, Whole};
use super::direct::{self, InPlace, Widened};
use super::epilogue::{Epilogue, Sum};
use super::format::{Format, Single, Wide};
use super::pack::{self, SLACK};
use super::pairs::{Pairs, Woven};
use super::side::{self, PackedSide};
use super::tile::{Multiply, Start, Strip};
use crate::array::Array;
use crate::dtype::{BF16, F16, Float};
use crate::error::Result;
#[cfg(target_arch = "x86_64")]
use crate::machine::amx::Processor;
use crate::machine::lanes::lane_count;
use crate::machine::threads::SharedMut;
use crate::memory::owned::Memory;
use crate::memory::packed::Columns;
use crate::memory::scratch::with_scratch;
use std::ops::Range;

/// A float type with matrix products.
pub trait Gemm: Float<Wide: Sum> {
    /// The product with both sides read where they lie; false, and nothing done, where that does not go.
    ///
    /// # Safety
    /// As [`multiply`].
    unsafe fn direct(call: &Call<Self>, split: bool) -> Result<bool>;
    /// The product in parts along `k`; false, and nothing done, where it is not cut.
    ///
    /// # Safety
    /// As [`multiply`].
    unsafe fn in_parts(_: &Call<Self>, _split: bool, _: Whole<Self>) -> Result<bool> {
        Ok(false)
    }
    /// The product by the unit that multiplies tiles; false, and nothing done, where that does not go.
    ///
    /// # Safety
    /// As [`multiply`].
    unsafe fn tiled(_: &Call<Self>, _split: bool, _: Option<&Array>) -> Result<bool> {
        Ok(false)
    }
    /// Packs a weight as products by packing read it, and keeps that beside it.
    ///
    /// # Safety
    /// The right side is all of `weights`.
    unsafe fn keep(b: Matrix<Self>, size: (usize, usize), weights: &Array) -> Result<()> {
        keep::<Single<Self>>(b, size, weights)
    }
    /// The product by packing.
    ///
    /// # Safety
    /// As [`multiply`].
    unsafe fn packed(call: &Call<Self>, split: bool, weights: Option<&Array>) -> Result<()> {
        packed::<Single<Self>>(call, split, weights)
    }
}

macro_rules! direct {
    ($($way:ty),*) => {
        unsafe fn direct(call: &Call<Self>, split: bool) -> Result<bool> {
            Ok($(direct::run::<$way>(call, split)? ||)* false)
        }
    };
}

impl Gemm for f32 {
    direct!(InPlace<f32>);
    unsafe fn in_parts(call: &Call<Self>, split: bool, whole: Whole<Self>) -> Result<bool> {
        deep::multiply_parts(call, split, whole)
    }
}
impl Gemm for f64 {
    direct!(InPlace<f64>);
    unsafe fn in_parts(call: &Call<Self>, split: bool, whole: Whole<Self>) -> Result<bool> {
        deep::multiply_parts(call, split, whole)
    }
}
impl Gemm for F16 {
    direct!(Widened<F16>);
}
impl Gemm for BF16 {
    direct!(Woven, Widened<BF16>);
    #[cfg(target_arch = "x86_64")]
    unsafe fn tiled(call: &Call<Self>, split: bool, weights: Option<&Array>) -> Result<bool> {
        let goes = amx::applies(call.size, weights.is_some());
        if goes {
            // SAFETY: the operands and the result are as the caller promises, and the unit is there.
            amx::multiply::<Processor>(call, split, weights)?;
        }
        Ok(goes)
    }
    unsafe fn keep(b: Matrix<Self>, size: (usize, usize), weights: &Array) -> Result<()> {
        #[cfg(target_arch = "x86_64")]
        if amx::applies((usize::MAX, size.0, size.1), true) {
            return amx::keep(b, size, weights);
        }
        if Pairs::supported() { keep::<Pairs>(b, size, weights) } else { keep::<Single<Self>>(b, size, weights) }
    }
    unsafe fn packed(call: &Call<Self>, split: bool, weights: Option<&Array>) -> Result<()> {
        if Pairs::supported() {
            // SAFETY: a part of the operands and of the result lies inside them.
            return packed::<Pairs>(call, split, weights);
        }
        packed::<Single<Self>>(call, split, weights)
    }
}

/// Whether a right side in rows is read where it lies.
pub fn reads_in_place<T>(&Call { size: (m, k, n), b: Matrix { row: step, .. }, .. }: &Call<T>) -> bool {
    let (step, size) = (step * size_of::<T>() as isize, k * n * size_of::<T>());
    m <= few_rows(step) || (m <= fewer_than_columns(step, size) && n >= m) || k * n <= CACHED
}

/// Whether a right side is read where it lies as long as it is not kept.
fn in_place_until_cached<F: Format>(call: &Call<F::Elem>) -> bool {
    let (m, _, n) = call.size;
    call.b.col == 1 && (caches_few_rows::<F>(call.size) || deep_panels_in_place::<F>(m, n) && reads_in_place(call))
}

/// `c += a @ b`, where `c` lies in rows and has the type of the sums.
///
/// # Safety
/// As [`multiply`], but that `c` holds values.
pub unsafe fn add<T: Gemm<Wide = T>>(call: &Call<T>, split: bool) -> Result<()> {
    assert!(call.c.col == 1 && call.size.1 > 0 && call.end.is_empty(), "sums that are kept in place");
    let call = Call { end: Epilogue { adds: true, ..call.end }, ..*call };
    if reads_in_place(&call) && call.b.col == 1 && T::direct(&call, split)? {
        return Ok(());
    }
    T::packed(&call, split, None)
}

/// The right side in panels, block after block along `k`.
struct Panels<C> {
    start: *const C,
    /// Of all that was packed.
    count: usize,
    /// The first that is meant.
    first: usize,
    /// Cells across one.
    panel: usize,
    /// Lines of all blocks together, and of one at most.
    depth: (usize, usize),
}

impl<C> Panels<C> {
    /// Where the panel from column `j` on has line `at`.
    fn line(&self, at: usize, j: usize) -> *const C {
        let (depth, most) = self.depth;
        let first = at / most * most;
        let deep = most.min(depth - first);
        let place = self.first + j / self.panel;
        self.start.wrapping_add((first * self.count + place * deep + at - first) * self.panel)
    }

    /// Where a task of some columns reads after `step` lines from `at` on of the panel from column `j` on, and how many cells.
    fn after(&self, (at, j): (usize, usize), columns: &Range<usize>, step: usize) -> (*const C, usize) {
        let next = j + self.panel;
        let (at, j) = if next < columns.end { (at, next) } else { (at + step, columns.start) };
        let lines = step.min(self.depth.0.saturating_sub(at));
        (if lines > 0 { self.line(at, j) } else { self.start }, lines * self.panel)
    }
}

unsafe fn packed<F: Format<Elem: Gemm>>(call: &Call<F::Elem>, split: bool, weights: Option<&Array>) -> Result<()>
where
    Wide<F>: Sum,
{
    let (_, k, n) = call.size;
    let blocks = Blocks::new::<F>(call.size);
    let panel = blocks.panel;
    let bytes = blocks.bytes::<F>((k, n));
    let all = |count: usize| Columns { first: 0, count };
    // SAFETY: the panels are theirs.
    let multiply = |call: &Call<F::Elem>, cells: &Memory, columns: Columns| {
        by_panels::<F>(call, split, &blocks, (cells.data().cast::<F::Cell>().cast_const(), columns));
    };
    let fresh = |call: &Call<F::Elem>| -> Result<Memory> {
        let size = (k, call.size.2);
        let cells = Memory::new(blocks.bytes::<F>(size))?;
        // SAFETY: inside the right side, and there is room for it.
        pack_right::<F>(call.b, size, &blocks, cells.data().cast(), split);
        Ok(cells)
    };
    match PackedSide::of(call, (panel, F::DEPTH), bytes, weights) {
        PackedSide::Kept(cells, columns) => multiply(call, cells, columns),
        PackedSide::Wanted(layout, list) => multiply(call, list.keep(layout, fresh(call)?), all(n)),
        PackedSide::Once if in_place_until_cached::<F>(call) && F::Elem::direct(call, split)? => {}
        PackedSide::Once => {
            // Parts have the blocks of the whole, whatever their own columns: so they have the sums of what is kept.
            for part in side::parts(call, side::columns(k * size_of::<F::Cell>(), panel)) {
                multiply(&part, &fresh(&part)?, all(part.size.2));
            }
        }
    }
    Ok(())
}

/// The product with these columns of a right side in panels.
///
/// # Safety
/// As [`multiply`]; the right side is packed in these blocks.
unsafe fn by_panels<F: Format<Elem: Gemm>>(
    call: &Call<F::Elem>,
    split: bool,
    blocks: &Blocks,
    (cells, columns): (*const F::Cell, Columns),
) where
    Wide<F>: Sum,
{
    let (m, _, n) = call.size;
    let (rows, cols) = blocks.grid::<F>(call.size, split);
    let across = n.div_ceil(cols);
    let start = SharedMut::new(cells.cast_mut());
    run(split, m.div_ceil(rows) * across, &|index| {
        let (i, j) = (index / across * rows, index % across * cols);
        let (count, first) = (columns.count.div_ceil(blocks.panel), columns.first / blocks.panel);
        let depth = (call.size.1.div_ceil(F::DEPTH), blocks.depth);
        let right = Panels { start: start.ptr().cast_const(), count, first, panel: blocks.panel, depth };
        // SAFETY: a part of the operands and of the result lies inside them; each task has its own part of the result.
        block::<F>(call, i..m.min(i + rows), j..n.min(j + cols), &right, blocks);
    });
}

/// Packs a weight in this format and keeps that beside it.
///
/// # Safety
/// The right side is all of `weights`.
unsafe fn keep<F: Format>(b: Matrix<F::Elem>, size: (usize, usize), weights: &Array) -> Result<()> {
    let blocks = Blocks::new::<F>((usize::MAX, size.0, size.1));
    side::keep(weights, size, (b.row, b.col), (blocks.panel, F::DEPTH), || {
        let cells = Memory::new(blocks.bytes::<F>(size))?;
        // SAFETY: there is room for it.
        pack_right::<F>(b, size, &blocks, cells.data().cast(), true);
        Ok(cells)
    })
}

/// Packs a right side, block after block along `k`.
///
/// # Safety
/// There is room for it.
unsafe fn pack_right<F: Format>(
    b: Matrix<F::Elem>,
    (k, n): (usize, usize),
    &Blocks { panel, depth: most, .. }: &Blocks,
    to: *mut F::Cell,
    split: bool,
) {
    let (count, depth, to) = (n.div_ceil(panel), k.div_ceil(F::DEPTH), SharedMut::new(to));
    // Panels per task: about 64 Ki elements of a block.
    let bundle = ((1 << 16) / (k.min(most * F::DEPTH) * panel) + 1).clamp(4, pack::MOST_PANELS);
    let across = count.div_ceil(bundle);
    run(split && k * n >= 1 << 16, depth.div_ceil(most) * across, &|index| {
        let (first, at) = (index / across * most, index % across * bundle);
        let (panels, deep) = (at..count.min(at + bundle), most.min(depth - first));
        let cols = panel * panels.start..n.min(panel * panels.end);
        let to = to.ptr().wrapping_add(first * count * panel + panels.start * deep * panel);
        let from = b.at(first * F::DEPTH, cols.start);
        let k = (deep * F::DEPTH).min(k - first * F::DEPTH);
        // SAFETY: inside the right side; each task has its own lines of its own panels.
        pack::right::<F>(from, k, cols.len(), (panel, deep * panel), to);
    });
}

/// Where a block of the left side is read, and its steps unless it is packed for that.
///
/// # Safety
/// As [`pack::left`]; what lies is read in cells.
unsafe fn left_block<F: Format>(
    from: Matrix<F::Elem>,
    rows: (usize, usize),
    length: usize,
    (high, to): (usize, *mut F::Cell),
    lies: bool,
) -> (*const F::Cell, Option<(isize, isize)>) {
    if lies {
        return (from.start.cast::<F::Cell>().cast_const(), Some((from.row, from.col)));
    }
    pack::left::<F>(from, rows, length, (high, to));
    (to.cast_const(), None)
}

/// A task: a part of the result over all of `k`.
unsafe fn block<F: Format<Elem: Gemm>>(
    call: &Call<F::Elem>,
    row_range: Range<usize>,
    col_range: Range<usize>,
    right: &Panels<F::Cell>,
    blocks: &Blocks,
) where
    Wide<F>: Sum,
{
    let (m, k, _) = call.size;
    let &Blocks { width, panel, high, step, .. } = blocks;
    let (rows, cols, depth, lanes) = (row_range.len(), col_range.len(), right.depth.0, lane_count::<Wide<F>>());
    let (mut end, c) = (call.end.at(row_range.start, col_range.start), call.c.at(row_range.start, col_range.start));
    let first = first_addend(&mut end);
    // Few rows are bound by what they read: asking for more of it holds it up.
    let asked = if F::DIRECT && m > FEW_ROWS { step } else { 0 };
    let lies = blocks.left_in_place::<F>(call.a, m);
    let left_len = if lies { 0 } else { cells::<F::Cell, Wide<F>>(rows * step.min(depth) + SLACK) };
    let sums = in_place(c);
    let sums_cols = if depth <= step { panel } else { cols.next_multiple_of(panel) };
    let sums_len = if sums.is_some() { 0 } else { rows * sums_cols };
    with_scratch(left_len + sums_len, |scratch: &mut [Wide<F>]| {
        let (packed, aside) = scratch.split_at_mut(left_len);
        let room = (high, packed.as_mut_ptr().cast::<F::Cell>());
        for at in (0..depth).step_by(step) {
            let deep = step.min(depth - at);
            let length = (deep * F::DEPTH).min(k - at * F::DEPTH);
            let (start, from) = (if at == 0 { first } else { Start::Kept }, call.a.at(row_range.start, at * F::DEPTH));
            // SAFETY: inside the left side, and room for its rows.
            let (left, left_steps) = left_block::<F>(from, (rows, m - row_range.start), length, room, lies);
            for j in (0..cols).step_by(panel) {
                let wide = panel.min(cols - j);
                let aside = aside.as_mut_ptr().wrapping_add(if depth <= step { 0 } else { j });
                let (to, pitch) = sums.map_or((aside, sums_cols as isize), |to| (to.wrapping_add(j), c.row));
                let column = col_range.start + j;
                F::Product::launch(Strip::<F::Product> {
                    k: deep,
                    rows,
                    cols: wide,
                    width: width.min(wide.div_ceil(lanes).next_power_of_two()),
                    high,
                    strips: 1,
                    left,
                    left_steps,
                    right: right.line(at, column),
                    right_step: panel as isize,
                    prefetch: 0,
                    next: right.after((at, column), &col_range, asked),
                    start: shifted(start, j),
                    to,
                    pitch,
                });
                if at + deep == depth {
                    finish::<F::Elem>(to, pitch, (rows, wide), c.at(0, j), end.at(0, j));
                }
            }
        }
    });
}
