//! Products of bfloat16 by tiles: 32 x 32 sums at a time, by the unit that multiplies them ([`crate::machine::amx`]).
//!
//! The right side is packed in panels of 32 columns, pair under pair, two tiles for each 32 elements of the depth. A panel stays in
//! the first-level cache for 512 elements of the depth, while all rows of a task meet it; the left side of the task lies in
//! the second-level cache, packed row by row, or where it is: all of it, or as much of the depth as fits at a time. The sums of
//! 32 x 32 lie together until they are whole, and are rounded from there. Long sums of few rows and columns are cut along the depth
//! in parts, which are added up in order. What a sum is added up from, and in which order, depends on the shape alone ([`grid`]).

pub mod grid;
pub mod pack;

use super::call::{Call, finish, run};
use super::side::{self, PackedSide};
use super::{Epilogue, Matrix};
use crate::array::Array;
use crate::dtype::BF16;
use crate::error::Result;
use crate::machine::amx::{LINE, LINES, STEP, Sides, Unit};
use crate::machine::caches::second_level;
use crate::machine::simd;
use crate::machine::threads::{self, SharedMut};
use crate::memory::owned::Memory;
use crate::memory::scratch::Arena;
use grid::{Grid, SUMS, pieces};
use std::arch::x86_64::*;
use std::ops::Range;

/// Rows, and columns, of the sums that are computed at once.
pub const SIDE: usize = 2 * LINES;
/// Elements along the depth of a step.
pub const DEEP: usize = LINE / 2;
/// Steps of a panel that stay in the first-level cache.
pub const CHUNK: usize = 16;
/// Rows up to which, and bytes of a row up to which, the left side is read where it lies; long rows share few sets of the
/// first-level cache.
const FEW_LYING: usize = 64;
const SHORT: usize = 1024;
/// Rows below which a right side that may be kept, or may not, is read where it lies instead.
const FEWEST_KEPT: usize = 5;
const FEWEST_ONCE: usize = 13;
/// Columns and depth below which a tile is mostly empty.
const NARROWEST: usize = 8;
/// What marks the panels among what is kept.
const FORM: (usize, usize) = (SIDE, 3);

/// Whether a product goes by tiles; `weights` may be kept packed.
pub fn applies((m, k, n): (usize, usize, usize), weights: bool) -> bool {
    let fewest = if weights { FEWEST_KEPT } else { FEWEST_ONCE };
    simd::has_amx() && m >= fewest && n >= NARROWEST && k >= NARROWEST
}

/// Computes a product.
///
/// # Safety
/// As [`super::multiply`]; the unit and AVX-512 with bfloat16 are there.
pub unsafe fn multiply<U: Unit>(call: &Call<BF16>, split: bool, weights: Option<&Array>) -> Result<()> {
    let (m, k, n) = call.size;
    let steps = k.div_ceil(DEEP);
    let (bytes, parts) = (n.div_ceil(SIDE) * steps * STEP, grid::parts((m, n), steps));
    let right = PackedSide::of(call, FORM, bytes, weights);
    // SAFETY: a part of the operands and of the result lies inside them. There is room for all panels.
    if let PackedSide::Kept(cells, columns) = right {
        let first = columns.first / SIDE * steps * STEP;
        let panels = Panels::Packed(SharedMut::new(cells.data().wrapping_add(first)));
        return Product::new(call, parts, panels).run::<U>(split);
    }
    let once = matches!(right, PackedSide::Once);
    if once && grid::alone(m) {
        return Product::new(call, parts, Panels::Aside).run::<U>(split);
    }
    let most = side::columns(steps * STEP / SIDE, SIDE);
    if once && n > most {
        return side::parts(call, most).try_for_each(|part| multiply::<U>(&part, split, None));
    }
    let cells = Memory::new(bytes)?;
    Product::new(call, parts, Panels::Fresh(SharedMut::new(cells.data()))).run::<U>(split)?;
    if let PackedSide::Wanted(layout, list) = right {
        list.keep(layout, cells);
    }
    Ok(())
}

/// Packs a weight in panels and keeps them beside it.
///
/// # Safety
/// The right side is all of `weights`; AVX-512 with bfloat16 is there.
pub unsafe fn keep(b: Matrix<BF16>, (k, n): (usize, usize), weights: &Array) -> Result<()> {
    let (steps, all) = (k.div_ceil(DEEP), n.div_ceil(SIDE));
    side::keep(weights, (k, n), (b.row, b.col), FORM, || {
        let cells = Memory::new(all * steps * STEP)?;
        let none = Matrix::new(std::ptr::null_mut(), (0, 0));
        let call = Call { size: (1, k, n), a: none, b, c: none, end: Epilogue::default() };
        let to = SharedMut::new(cells.data());
        let product = Product::new(&call, 1, Panels::Fresh(to));
        // SAFETY: there is room for all panels, and each task has its own.
        run(true, all, &|at| product.pack_whole(at, to));
        Ok(cells)
    })
}

/// A product of up to 32 rows: tiles of fewer are cut. A lower tile that has no rows reads one of the upper tile.
///
/// # Safety
/// As [`Unit::rows`]; `product` takes what it may.
pub unsafe fn cut<U: Unit>(rows: usize, mut sides: Sides, product: impl FnOnce(Sides)) {
    if rows == SIDE {
        return product(sides);
    }
    sides.lower = if rows > LINES { sides.lower } else { 0 };
    U::rows(rows.min(LINES), rows.saturating_sub(LINES).max(1));
    product(sides);
    U::rows(LINES, LINES);
}

/// A product and its right side in panels.
struct Product<'a> {
    call: &'a Call<BF16>,
    steps: usize,
    /// Parts of the depth, whose sums are added up in order.
    parts: usize,
    /// Whether the left side is read where it lies.
    lies: bool,
    right: Panels,
}

/// Where the panels are.
#[derive(Clone, Copy)]
enum Panels {
    /// Packed before.
    Packed(SharedMut<u8>),
    /// To be packed here.
    Fresh(SharedMut<u8>),
    /// Packed by the task that reads them, a chunk at a time.
    Aside,
}

/// What a task computes: some rows times some panels, along a part of the depth.
struct Task {
    rows: Range<usize>,
    panels: Range<usize>,
    steps: Range<usize>,
}

/// A chunk of a panel and the rows that meet it.
struct Chunk {
    panel: usize,
    steps: Range<usize>,
    /// The first 32 rows, where they are packed, and bytes from them to the next.
    left: (*const u8, usize),
    right: *const u8,
    /// Those of each 32 rows follow each other, but for one chunk alone.
    sums: *mut f32,
    next: usize,
}

impl<'a> Product<'a> {
    fn new(call: &'a Call<BF16>, parts: usize, right: Panels) -> Self {
        let ((m, k, _), steps) = (call.size, call.size.1.div_ceil(DEEP));
        let whole = call.a.col == 1 && call.a.row >= 0 && k.is_multiple_of(DEEP);
        Self { call, steps, parts, lies: whole && (m <= FEW_LYING || steps * LINE <= SHORT), right }
    }

    /// All of it.
    #[expect(clippy::cast_ptr_alignment, reason = "memory begins at a cache line")]
    unsafe fn run<U: Unit>(&self, split: bool) -> Result<()> {
        let (m, _, n) = self.call.size;
        let (work, all, blocks) = (self.call.work(), n.div_ceil(SIDE), m.div_ceil(SIDE));
        let split = split && (self.parts == 1 || grid::shared(work));
        if let (Panels::Fresh(cells), false) = (self.right, grid::alone(m)) {
            let some = all.div_ceil(2 * threads::num_threads());
            run(split, all.div_ceil(some), &|index| {
                // SAFETY: the caller promises room for the panels, and each task has its own.
                (index * some..all.min((index + 1) * some)).for_each(|at| self.pack_whole(at, cells));
            });
        }
        let grid = Grid::new((m, n), self.steps.div_ceil(self.parts), (work, self.parts), self.lies, split);
        let (high, across) = (m.div_ceil(grid.rows), all.div_ceil(grid.panels));
        let apart = if self.parts > 1 { Some(Memory::new(self.parts * all * blocks * SUMS)?) } else { None };
        let apart = apart.as_ref().map(|sums| SharedMut::new(sums.data().cast::<f32>()));
        run(split, self.parts * high * across, &|index| {
            let (part, index) = (index / (high * across), index % (high * across));
            let (i, j) = (index / across * grid.rows, index % across * grid.panels);
            let steps = part * self.steps / self.parts..(part + 1) * self.steps / self.parts;
            let task = Task { rows: i..m.min(i + grid.rows), panels: j..all.min(j + grid.panels), steps };
            let sums = apart.map(|sums| sums.ptr().wrapping_add((part * all + j) * blocks * SIDE * SIDE));
            // SAFETY: each task has its own part of the result or of the sums, and of the panels where it packs them.
            self.task::<U>(&task, &grid, sums);
        });
        if let Some(sums) = apart {
            // SAFETY: the tasks wrote all sums of all parts; each block of the result is one task's.
            run(split, all * blocks, &|at| self.add_up(sums, at));
        }
        Ok(())
    }

    /// A task; its sums go `apart`, those of its panels after each other, or into the result.
    unsafe fn task<U: Unit>(&self, task: &Task, grid: &Grid, apart: Option<*mut f32>) {
        let (blocks, deep) = (task.rows.len().div_ceil(SIDE), grid.block.min(task.steps.len()));
        let left = if self.lies { 0 } else { blocks * deep * STEP };
        let aside = if matches!(self.right, Panels::Aside) { CHUNK * STEP } else { 0 };
        let (own, each) = match apart {
            Some(_) => (0, blocks * task.panels.len()),
            None => [grid.under_way(task.steps.len(), blocks, task.panels.len()); 2].into(),
        };
        Arena::with([left, aside, own * SUMS], |mut room| {
            let (left, aside) = (room.take::<u8>(left).as_mut_ptr(), room.take::<u8>(aside).as_mut_ptr());
            let own = room.take::<f32>(own * SIDE * SIDE).as_mut_ptr();
            let sums = apart.unwrap_or(own);
            // SAFETY: the scratch memory has room for the packed rows, a chunk of a panel and the sums.
            U::rows(LINES, LINES);
            for block in pieces(task.steps.clone(), grid.block) {
                if !self.lies {
                    self.pack_left(task.rows.clone(), block.clone(), left);
                }
                for (panel, steps) in grid.chunks(block.clone(), task.panels.clone()) {
                    let packed = left.wrapping_add((steps.start - block.start) * STEP).cast_const();
                    let right = self.ready(panel, steps.clone(), aside);
                    let first = (panel - task.panels.start) * blocks % each;
                    let sums = sums.wrapping_add(first * SIDE * SIDE);
                    let next = if each == 1 { 0 } else { SIDE * SIDE };
                    let left = (packed, block.len() * STEP);
                    self.chunk::<U>(task, &Chunk { panel, steps, left, right, sums, next });
                }
            }
            U::release();
            _mm_sfence();
        });
    }

    /// A chunk of a panel, packed, `aside` where it has no place.
    unsafe fn ready(&self, panel: usize, steps: Range<usize>, aside: *mut u8) -> *const u8 {
        let place = |cells: SharedMut<u8>| cells.ptr().wrapping_add((panel * self.steps + steps.start) * STEP);
        let to = match self.right {
            Panels::Fresh(cells) if grid::alone(self.call.size.0) => place(cells),
            Panels::Packed(cells) | Panels::Fresh(cells) => return place(cells),
            Panels::Aside => aside,
        };
        // SAFETY: room for the chunk.
        self.pack_panel(panel, steps, to);
        to
    }

    /// All rows of a task times a chunk of a panel.
    unsafe fn chunk<U: Unit>(&self, task: &Task, chunk: &Chunk) {
        let steps = chunk.steps.len();
        for (block, rows) in pieces(task.rows.clone(), SIDE).enumerate() {
            let sums = chunk.sums.wrapping_add(block * chunk.next);
            let sides = if self.lies {
                let line = self.call.a.row as usize * size_of::<BF16>();
                let left = self.call.a.at(rows.start, chunk.steps.start * DEEP).start.cast_const().cast();
                Sides { left, row: line, lower: LINES * line, deep: LINE, right: chunk.right, steps }
            } else {
                let left = chunk.left.0.wrapping_add(block * chunk.left.1);
                Sides { left, row: LINE, lower: STEP / 2, deep: STEP, right: chunk.right, steps }
            };
            cut::<U>(rows.len(), sides, |sides| U::multiply(sides, sums, chunk.steps.start > task.steps.start));
            if chunk.steps.end == self.steps && self.parts == 1 {
                self.round(sums, rows, chunk.panel * SIDE);
            }
        }
    }

    /// Adds up the sums of all parts, in order, and rounds them, of one block of the result.
    unsafe fn add_up(&self, sums: SharedMut<f32>, at: usize) {
        let (m, _, n) = self.call.size;
        let (all, blocks) = (n.div_ceil(SIDE), m.div_ceil(SIDE));
        let of_part = |part: usize| sums.ptr().wrapping_add((part * all * blocks + at) * SIDE * SIDE);
        let first = at % blocks * SIDE;
        let rows = first..m.min(first + SIDE);
        (1..self.parts).for_each(|part| add(of_part(part), rows.len(), of_part(0)));
        self.round(of_part(0), rows, at / blocks * SIDE);
        _mm_sfence();
    }

    /// Rounds sums of some rows into the result.
    unsafe fn round(&self, sums: *mut f32, rows: Range<usize>, col: usize) {
        let ((m, _, n), (row, rows)) = (self.call.size, (rows.start, rows.len()));
        let (cols, c) = (SIDE.min(n - col), self.call.c.at(row, col));
        if cols < SIDE || c.col != 1 || !self.call.end.is_empty() {
            return finish(sums, SIDE as isize, (rows, cols), c, self.call.end.at(row, col));
        }
        // What leaves the caches anyway goes past them, in whole lines of them.
        let past = m * n * 2 > second_level() / 2 && c.start.addr().is_multiple_of(LINE) && c.row % SIDE as isize == 0;
        narrow(sums, rows, c, past);
    }

    /// Packs a panel all along the depth.
    unsafe fn pack_whole(&self, at: usize, cells: SharedMut<u8>) {
        self.pack_panel(at, 0..self.steps, cells.ptr().wrapping_add(at * self.steps * STEP));
    }

    /// Packs some steps of 32 columns.
    unsafe fn pack_panel(&self, at: usize, steps: Range<usize>, to: *mut u8) {
        let (_, k, n) = self.call.size;
        let (b, col) = (self.call.b, at * SIDE);
        let cols = SIDE.min(n - col);
        for (place, step) in steps.enumerate() {
            let size = (cols, DEEP.min(k - step * DEEP));
            // SAFETY: inside the right side and the panel.
            pack::right(b.at(step * DEEP, col), size, to.wrapping_add(place * STEP));
        }
    }

    /// Packs some steps of rows: 32 of them step after step, an upper and a lower tile for each.
    unsafe fn pack_left(&self, rows: Range<usize>, steps: Range<usize>, to: *mut u8) {
        let (k, a) = (self.call.size.1, self.call.a);
        for (block, rows) in pieces(rows, SIDE).enumerate() {
            let to = to.wrapping_add(block * steps.len() * STEP);
            for (place, step) in steps.clone().enumerate() {
                let size = (rows.len(), DEEP.min(k - step * DEEP));
                // SAFETY: inside the left side and what is packed of it.
                pack::left(a.at(rows.start, step * DEEP), size, to.wrapping_add(place * STEP));
            }
        }
    }
}

/// Adds rows of 32 sums to others.
///
/// # Safety
/// They are there, aligned; the machine has AVX-512.
#[target_feature(enable = "avx512f")]
unsafe fn add(sums: *const f32, rows: usize, to: *mut f32) {
    for at in (0..rows * SIDE).step_by(LINES) {
        _mm512_store_ps(to.add(at), _mm512_add_ps(_mm512_load_ps(to.add(at)), _mm512_load_ps(sums.add(at))));
    }
}

/// Rounds rows of 32 sums.
///
/// # Safety
/// They are there, and room for them, aligned where they go past the caches; the machine has these instructions.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
#[expect(clippy::cast_ptr_alignment, reason = "aligned where the instruction asks for it")]
unsafe fn narrow(sums: *const f32, rows: usize, to: Matrix<BF16>, past: bool) {
    for i in 0..rows {
        let from = sums.add(i * SIDE);
        let both = _mm512_cvtne2ps_pbh(_mm512_load_ps(from.add(LINES)), _mm512_load_ps(from));
        let (line, to) = (std::mem::transmute::<__m512bh, __m512i>(both), to.at(i, 0).start.cast::<__m512i>());
        if past { _mm512_stream_si512(to, line) } else { _mm512_storeu_si512(to, line) }
    }
}

#[cfg(test)]
mod tests;
