//! One float product: which kernel, which blocks, which threads.
//!
//! Why our own kernel and no crate: gemmkit 0.1.2, used before, reached the target for large row-major `f32` alone. It
//! packed right sides stored by columns element by element (64x256x784: 80 GF/s; here 96), packed where reading in place
//! is faster, has neither residual nor gelu in its epilogue, and fell to 35 GF/s in builds without link-time
//! optimization, since its tile was not inlined. Here, on AMD EPYC (Zen 4), one thread, `f32` peak 117 GF/s, processor
//! time on a busy machine: 64^3 107, 128^3 and 256^3 114, 512^3 and 1024^3 104, 64x784x256 112, 8x1024x1024 103 (by
//! columns 96), 96 x (128x32x128) 108; `f64` 256^3 56 of 59; bfloat16 1024^3 211.
//!
//! A packed right side is kept beside its storage from its second use on ([`crate::memory::kept`]), where packing is more than about 2 % of
//! the product. Which way a product goes never depends on what is kept: so keeping changes no bit. 64x1024x1024 without and
//! with it, GF/s: `f32` by columns 89/104, `f64` 37/46, bfloat16 185/211. Row-major `f32` and f16 are read in place instead, but where
//! wide panels pay, those of `f32` and `f64` are kept as [`super::blocks::keeps`] says.

use super::Matrix;
#[cfg(target_arch = "x86_64")]
use super::amx;
use super::blocks::{Blocks, few_rows, fewer_than_columns, keeps, keeps_few, reads_deep};
use super::call::{CACHED, Call, FEW_DOTS, FEW_ROWS, cells, finish, first_addend, in_place, run, shifted};
use super::deep;
use super::direct::{self, InPlace, Widened};
use super::dots;
use super::epilogue::{Epilogue, Finish, Sum};
use super::format::{Format, Single, Wide};
use super::held::{self, Right};
use super::pack::{self, SLACK};
use super::pairs::{Pairs, Woven};
use super::tile::{Multiply, Start, Strip};
use crate::array::Array;
use crate::dtype::{BF16, F16, Float};
use crate::error::Result;
#[cfg(target_arch = "x86_64")]
use crate::machine::amx::Processor;
use crate::machine::lanes::{lane_count, launch};
use crate::machine::threads::SharedMut;
use crate::memory::kept::Columns;
use crate::memory::owned::Memory;
use crate::memory::scratch::{filled, with_scratch};
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
    unsafe fn in_parts(_: &Call<Self>, _split: bool) -> Result<bool> {
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
        // SAFETY: the operands and the result are as the caller promises; a part of them lies inside them.
        unsafe { packed::<Single<Self>>(call, split, weights) }
    }
}

macro_rules! direct {
    ($($way:ty),*) => {
        unsafe fn direct(call: &Call<Self>, split: bool) -> Result<bool> {
            // SAFETY: the operands and the result are as the caller promises; a part of them lies inside them.
            unsafe { Ok($(direct::run::<$way>(call, split)? ||)* false) }
        }
    };
}

impl Gemm for f32 {
    direct!(InPlace<f32>);
    unsafe fn in_parts(call: &Call<Self>, split: bool) -> Result<bool> {
        deep::multiply_parts(call, split, in_one_piece)
    }
}
impl Gemm for f64 {
    direct!(InPlace<f64>);
    unsafe fn in_parts(call: &Call<Self>, split: bool) -> Result<bool> {
        deep::multiply_parts(call, split, in_one_piece)
    }
}
impl Gemm for F16 {
    direct!(Widened<F16>);
}
impl Gemm for BF16 {
    direct!(Woven, Widened<BF16>);
    #[cfg(target_arch = "x86_64")]
    unsafe fn tiled(call: &Call<Self>, split: bool, weights: Option<&Array>) -> Result<bool> {
        let goes = amx::takes(call.size, weights.is_some());
        if goes {
            // SAFETY: the operands and the result are as the caller promises, and the unit is there.
            unsafe { amx::multiply::<Processor>(call, split, weights)? };
        }
        Ok(goes)
    }
    unsafe fn keep(b: Matrix<Self>, size: (usize, usize), weights: &Array) -> Result<()> {
        #[cfg(target_arch = "x86_64")]
        if amx::takes((usize::MAX, size.0, size.1), true) {
            return amx::keep(b, size, weights);
        }
        if Pairs::supported() { keep::<Pairs>(b, size, weights) } else { keep::<Single<Self>>(b, size, weights) }
    }
    unsafe fn packed(call: &Call<Self>, split: bool, weights: Option<&Array>) -> Result<()> {
        if Pairs::supported() {
            // SAFETY: the operands and the result are as the caller promises; a part of them lies inside them.
            return unsafe { packed::<Pairs>(call, split, weights) };
        }
        // SAFETY: the operands and the result are as the caller promises; a part of them lies inside them.
        unsafe { packed::<Single<Self>>(call, split, weights) }
    }
}

/// Columns below which a product is computed transposed, where it has more rows.
const FEW_COLUMNS: usize = 8;
/// [`FEW_DOTS`] where sums are long and the right side is not kept. Measured on AMD EPYC (Zen 4), one thread, 1024x1024 times 8
/// and 12 columns, GF/s of f32, by dots / directly: 90/36, 84/56; but 64x256 times 10 columns 47/57.
const DEEP_DOTS: usize = 12;
/// Length of a long sum.
const DEEP: usize = 512;
/// Depth below which dot products do not pay.
const FEW_DEEP: usize = 16;
/// Elements of a right side by columns, as in batches of scores of attention, up to which a copy in rows is read in place:
/// packing both sides took longer (64 times 128x64x128 on AMD EPYC, Zen 3, one thread: 2.7 ms).
const TURNED: usize = 1 << 15;

/// Computes a product. `split` allows more than one thread, which changes no bit. `weights`, the array behind the right side,
/// allows keeping it packed: what is kept changes no bit, but few rows, and a right side by columns, go another way where it is
/// allowed, so a product of a batch, which keeps nothing, may differ in the last bits from the same one alone.
///
/// # Safety
/// The matrices and addends are valid for these sizes; `c` has distinct elements and overlaps nothing. The right side is
/// all of `weights`.
pub unsafe fn multiply<T: Gemm>(call: &Call<T>, split: bool, weights: Option<&Array>) -> Result<()> {
    // SAFETY: the operands and the result are as the caller promises; a part of them lies inside them.
    unsafe {
        if call.size.1 == 0 {
            empty(call);
            return Ok(());
        }
        if T::in_parts(call, split)? { Ok(()) } else { in_one_piece(call, split, weights) }
    }
}

/// Computes a product that is not cut along `k`, and not empty.
///
/// # Safety
/// As [`multiply`].
unsafe fn in_one_piece<T: Gemm>(call: &Call<T>, split: bool, weights: Option<&Array>) -> Result<()> {
    let (m, k, n) = call.size;
    // SAFETY: the operands and the result are as the caller promises; a part of them lies inside them.
    unsafe {
        let shallow = k < FEW_DEEP && Single::<T>::DIRECT;
        if shallow && n < m && (2..FEW_COLUMNS).contains(&n) && call.b.col != 1 {
            return gathered(call, split);
        }
        // One row and few columns with gaps: packing would fill whole registers with each of them.
        let gaps = call.b.col != 1 && call.b.row != 1;
        if m == 1 && gaps && n < FEW_COLUMNS && T::direct(&call.turned(), split)? {
            return Ok(());
        }
        let fewest = if k >= DEEP { DEEP_DOTS + 1 } else { FEW_COLUMNS };
        if n < m && n < fewest && !shallow {
            return in_one_piece(&call.turned(), split, None);
        }
        if T::tiled(call, split, weights)? {
            return Ok(());
        }
        // A right side that is kept is packed for all rows to come; one that is not, for these alone.
        let dotted = m <= FEW_DOTS && k >= FEW_DEEP || m <= DEEP_DOTS && k >= DEEP && weights.is_none();
        if call.b.row == 1 && call.b.col != 1 && dotted {
            return dots::multiply(call, split);
        }
        let few = reads_in_place(call);
        let kept = weights.is_some() && call.b.col == 1 && keeps::<Single<T>>(call.size);
        if few && !kept && (call.b.col == 1 || n == 1) && T::direct(call, split)? {
            return Ok(());
        }
        let turns = call.b.row == 1 && weights.is_none() && Single::<T>::DIRECT && k * n <= TURNED;
        if few && turns && in_rows(call, split)? {
            return Ok(());
        }
        T::packed(call, split, weights)
    }
}

/// Whether a right side in rows is read where it lies.
fn reads_in_place<T>(&Call { size: (m, k, n), b: Matrix { row: step, .. }, .. }: &Call<T>) -> bool {
    let (step, size) = (step * size_of::<T>() as isize, k * n * size_of::<T>());
    m <= few_rows(step) || (m <= fewer_than_columns(step, size) && n >= m) || k * n <= CACHED
}

/// Whether a right side is read where it lies as long as it is not kept.
fn lies_until_kept<F: Format>(call: &Call<F::Elem>) -> bool {
    let (m, _, n) = call.size;
    call.b.col == 1 && (keeps_few::<F>(call.size) || reads_deep::<F>(m, n) && reads_in_place(call))
}

/// `c += a @ b`, where `c` lies in rows and has the type of the sums.
///
/// # Safety
/// As [`multiply`], but that `c` holds values.
pub unsafe fn add<T: Gemm<Wide = T>>(call: &Call<T>, split: bool) -> Result<()> {
    assert!(call.c.col == 1 && call.size.1 > 0 && call.end.is_empty(), "sums that are kept in place");
    let call = Call { end: Epilogue { adds: true, ..call.end }, ..*call };
    // SAFETY: the operands and the result are as the caller promises.
    unsafe {
        if reads_in_place(&call) && call.b.col == 1 && T::direct(&call, split)? {
            return Ok(());
        }
        T::packed(&call, split, None)
    }
}

/// The product with a copy of a right side by columns in rows, read there; false, and nothing done, where that does not go.
///
/// # Safety
/// As [`multiply`], of a type that is its own wide type.
unsafe fn in_rows<T: Gemm>(call: &Call<T>, split: bool) -> Result<bool> {
    let (_, k, n) = call.size;
    let pitch = n.next_multiple_of(lane_count::<T::Wide>());
    let held = Memory::new((k * pitch + SLACK) * size_of::<T>())?;
    // SAFETY: all of the right side as one panel, for which there is room; then a product as the caller promises.
    unsafe {
        pack::right::<Single<T>>(call.b, k, n, (pitch, k * pitch), held.data().cast());
        T::direct(&Call { b: Matrix::new(held.data().cast(), (pitch as isize, 1)), ..*call }, split)
    }
}

/// The product with a copy of the right side, of few elements, in rows.
///
/// # Safety
/// As [`multiply`].
unsafe fn gathered<T: Gemm>(call: &Call<T>, split: bool) -> Result<()> {
    let (_, k, n) = call.size;
    let held = Memory::new(k * n * size_of::<T>())?;
    let rows = held.data().cast::<T>();
    for (l, j) in (0..k).flat_map(|l| (0..n).map(move |j| (l, j))) {
        // SAFETY: inside the right side, and inside the copy.
        unsafe { rows.add(l * n + j).write(*call.b.at(l, j).start) };
    }
    // SAFETY: the operands and the result are as the caller promises; a part of them lies inside them.
    unsafe { in_one_piece(&Call { b: Matrix::new(rows, (n as isize, 1)), ..*call }, split, None) }
}

/// The result of empty sums.
unsafe fn empty<T: Gemm>(call: &Call<T>) {
    let (m, _, n) = call.size;
    let mut sums = filled(T::Wide::default(), n);
    for i in 0..m {
        sums.fill(T::Wide::default());
        let (to, epilogue) = (call.c.at(i, 0), call.end.at(i, 0));
        launch(Finish::<T> { from: sums.as_mut_ptr(), pitch: 0, rows: 1, cols: n, to, epilogue });
    }
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
    // SAFETY: for this product and its parts, the operands and the result are as the caller promises; the panels are theirs.
    let multiply = |call: &Call<F::Elem>, cells: &Memory, columns: Columns| unsafe {
        by_panels::<F>(call, split, &blocks, (cells.data().cast::<F::Cell>().cast_const(), columns));
    };
    let fresh = |call: &Call<F::Elem>| -> Result<Memory> {
        let size = (k, call.size.2);
        let cells = Memory::new(blocks.bytes::<F>(size))?;
        // SAFETY: inside the right side, and there is room for it.
        unsafe { pack_right::<F>(call.b, size, &blocks, cells.data().cast(), split) };
        Ok(cells)
    };
    match Right::of(call, (panel, F::DEPTH), bytes, weights) {
        Right::Kept(cells, columns) => multiply(call, cells, columns),
        Right::Wanted(layout, list) => multiply(call, list.keep(layout, fresh(call)?), all(n)),
        // SAFETY: the operands and the result are as the caller promises.
        Right::Once if lies_until_kept::<F>(call) && unsafe { F::Elem::direct(call, split)? } => {}
        Right::Once => {
            // Parts have the blocks of the whole, whatever their own columns: so they have the sums of what is kept.
            for part in held::parts(call, held::columns(k * size_of::<F::Cell>(), panel)) {
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
        // SAFETY: the operands and the result are as the caller promises; a part of them lies inside them; each
        // task has its own part of the result.
        unsafe { block::<F>(call, i..m.min(i + rows), j..n.min(j + cols), &right, blocks) };
    });
}

/// Packs a weight in this format and keeps that beside it.
///
/// # Safety
/// The right side is all of `weights`.
unsafe fn keep<F: Format>(b: Matrix<F::Elem>, size: (usize, usize), weights: &Array) -> Result<()> {
    let blocks = Blocks::new::<F>((usize::MAX, size.0, size.1));
    held::keep(weights, size, (b.row, b.col), (blocks.panel, F::DEPTH), || {
        let cells = Memory::new(blocks.bytes::<F>(size))?;
        // SAFETY: as the caller promises; there is room for it.
        unsafe { pack_right::<F>(b, size, &blocks, cells.data().cast(), true) };
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
        unsafe { pack::right::<F>(from, k, cols.len(), (panel, deep * panel), to) };
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
    // SAFETY: the caller promises the left side, and room for it.
    unsafe { pack::left::<F>(from, rows, length, (high, to)) };
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
    let lies = blocks.left_lies::<F>(call.a, m);
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
            let (left, left_steps) = unsafe { left_block::<F>(from, (rows, m - row_range.start), length, room, lies) };
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
