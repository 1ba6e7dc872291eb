//! How a product is cut: by registers, caches and its shape.

use super::call::{FEW_ROWS, FEWER_THAN_COLUMNS, LYING_DEPTH, READ};
use super::format::{Format, Wide};
use super::tile::{tile_rows, wide_rows};
use super::{Matrix, SERIAL};
use crate::machine::caches::second_level;
use crate::machine::lanes::{lane_count, register_bytes};
use crate::machine::simd::{Level, level};
use crate::machine::threads;

/// Registers across a wide panel.
pub const WIDE: usize = 4;
/// Bytes of a second-level cache from which wide panels pay: they are read from there, narrow ones from the first level.
const LARGE_CACHE: usize = 2 << 20;
/// Depth of a block of narrow panels, in cells.
const DEPTH: usize = 256;
/// Rows of a task with narrow panels: its block of the left side is at most 168 KiB, in the second-level cache.
const MOST_ROWS: usize = 168;
/// Tasks with narrow panels, at least, where there is work for them.
const NARROW_TASKS: usize = 32;
/// Rows of a task with wide panels from which more tasks are made by cutting columns.
const FEWEST_ROWS: usize = 128;
/// Rows up to which a right side is read where it lies until it is kept.
const FEW_KEPT: usize = 32;
/// Bytes from one row to the next from which all rows share a few sets of the first-level cache.
const PAGE: isize = 4096;

/// True where wide panels pay.
pub fn wide() -> bool {
    level() == Level::Avx512 && second_level() >= LARGE_CACHE
}

/// Cells along `k` of a wide panel, which is a sixteenth of the second-level cache. Panels twice as deep are as fast, and their
/// sums twice as long.
pub fn depth_of_wide() -> usize {
    second_level() / 16 / (WIDE * register_bytes()) / LYING_DEPTH * LYING_DEPTH
}

/// Whether wide panels of a right side that is read where it lies are as deep as packed ones, whatever the threads. Few rows walk
/// in the steps of [`caches_few_rows`].
pub fn deep_panels_in_place<F: Format>(m: usize, n: usize) -> bool {
    F::DIRECT && wide() && m > FEW_KEPT && n >= WIDE * lane_count::<Wide<F>>()
}

/// Rows of the result up to which a right side in rows, `step` bytes apart, of `size` bytes, is read where it lies, where there
/// are columns enough to share out. One that fills the second-level cache is packed.
pub fn fewer_than_columns(step: isize, size: usize) -> usize {
    let lies = !wide() || step.abs() < PAGE && size <= second_level() / 2;
    if lies { FEWER_THAN_COLUMNS } else { 0 }
}

/// Rows of the result up to which a right side in rows, `step` bytes apart, is read where it lies, however few its columns.
pub fn few_rows(step: isize) -> usize {
    if wide() && step.abs() >= PAGE { FEW_KEPT } else { FEW_ROWS }
}

/// Whether few rows times a right side in rows are worth packing it from its second use on: it is read from beyond the
/// first-level cache each time, so in long runs, and by each thread its own part. Before, it is read where it lies, in blocks
/// of [`LYING_DEPTH`], as the panels then are.
pub fn caches_few_rows<F: Format>((m, k, n): (usize, usize, usize)) -> bool {
    let few = m <= FEW_KEPT && n >= WIDE * lane_count::<Wide<F>>();
    F::DIRECT && few && wide() && k * n * size_of::<F::Cell>() >= second_level() / 8
}

/// Whether a right side in rows that could be read where it lies is packed from its second use on.
pub fn caches<F: Format>(size @ (m, _, n): (usize, usize, usize)) -> bool {
    caches_few_rows::<F>(size) || m > FEWER_THAN_COLUMNS / 2 && deep_panels_in_place::<F>(m, n)
}

/// The blocks of a packed product.
#[derive(Clone, Copy)]
pub struct Blocks {
    /// Registers across a panel.
    pub width: usize,
    /// Cells across a panel.
    pub panel: usize,
    /// Rows of a tile at most.
    pub high: usize,
    /// Cells along `k` at most.
    pub depth: usize,
    /// Cells along `k` that are walked at a time. Few rows walk in the steps in which they read a right side that is not kept.
    pub step: usize,
    /// Rows of a task at most.
    rows: usize,
}

impl Blocks {
    /// For a product of this size.
    pub fn new<F: Format>(size: (usize, usize, usize)) -> Self {
        let (lanes, n) = (lane_count::<Wide<F>>(), size.2);
        if F::DIRECT && wide() && n >= WIDE * lanes {
            let depth = depth_of_wide();
            // The left side of a task is half of the second-level cache.
            let rows = second_level() / 2 / (depth * size_of::<F::Cell>());
            let step = if caches_few_rows::<F>(size) { LYING_DEPTH } else { depth };
            return Self { width: WIDE, panel: WIDE * lanes, high: wide_rows(), depth, step, rows };
        }
        let (width, high) = (if n <= lanes { 1 } else { 2 }, tile_rows::<Wide<F>>());
        Self { width, panel: width * lanes, high, depth: DEPTH, step: DEPTH, rows: MOST_ROWS }
    }

    /// Bytes of a packed right side.
    pub fn bytes<F: Format>(&self, (k, n): (usize, usize)) -> usize {
        k.div_ceil(F::DEPTH) * n.next_multiple_of(self.panel) * size_of::<F::Cell>()
    }

    /// Whether a left side of `m` rows is read where it lies: its few rows of a wide tile are read in runs. But many
    /// rows that lie 4 KiB and more apart share sets of the second-level cache.
    pub fn left_in_place<F: Format>(&self, a: Matrix<F::Elem>, m: usize) -> bool {
        let apart = m > FEW_ROWS && a.row.abs() * size_of::<F::Elem>() as isize >= PAGE;
        F::DIRECT && self.width == WIDE && a.col == 1 && !apart
    }

    /// Rows and columns of a task. `split`: more than one thread may help.
    pub fn grid<F: Format>(&self, size: (usize, usize, usize), split: bool) -> (usize, usize) {
        if self.width == WIDE { self.wide_grid(size, split) } else { self.narrow_grid::<F>(size, split) }
    }

    /// Rows are cut first: each task packs its rows of the left side. The cuts change no sum, so they may follow the threads.
    fn wide_grid(&self, (m, k, n): (usize, usize, usize), split: bool) -> (usize, usize) {
        let work = m.saturating_mul(k).saturating_mul(n);
        let alone = !split || threads::num_threads() == 1;
        // Few rows are bound by reading the right side: one task for each thread, which finds its part in its own cache.
        let most = if m <= FEW_ROWS { threads::num_threads() } else { threads::tasks(1) };
        let wanted = if alone { 1 } else { (work / SERIAL).max(k * n / READ).clamp(1, most) };
        if m <= FEW_ROWS {
            return (m, n.div_ceil(wanted).next_multiple_of(self.panel));
        }
        let (mut rows, mut cols) = (m.div_ceil(m.div_ceil(self.rows)), n);
        while m.div_ceil(rows) * n.div_ceil(cols) < wanted {
            if rows > FEWEST_ROWS {
                rows = rows.div_ceil(2);
            } else if cols > self.panel {
                cols = half(cols, self.panel);
            } else {
                break;
            }
        }
        (rows, cols)
    }

    /// Columns are cut first: panels are packed for all tasks together. Again the cuts change no sum.
    fn narrow_grid<F: Format>(&self, (m, k, n): (usize, usize, usize), split: bool) -> (usize, usize) {
        let panel = self.panel;
        let work = m.saturating_mul(k).saturating_mul(n);
        let most = if split { threads::tasks(NARROW_TASKS) } else { NARROW_TASKS };
        let wanted = if work < SERIAL { 1 } else { (work >> 18).min(most) };
        let (mut rows, mut cols) = (m.div_ceil(m.div_ceil(self.rows)), n);
        if size_of::<F::Elem>() < size_of::<Wide<F>>() && cols > 512 {
            // The sums are kept aside while there are several blocks along `k`.
            cols = n.div_ceil(n.div_ceil(512)).next_multiple_of(panel);
        }
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
}

fn half(count: usize, unit: usize) -> usize {
    count.div_ceil(2).next_multiple_of(unit)
}

#[cfg(test)]
mod tests;
