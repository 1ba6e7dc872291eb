//! How a product by tiles is cut: the depth in parts by the shape alone, all else as it suits caches and threads.

use super::super::SERIAL;
use super::{CHUNK, SIDE};
use crate::machine::amx::LINE;
use crate::machine::caches::second_level;
use crate::machine::threads;
use std::ops::Range;

/// Bytes of 32 x 32 sums.
pub const SUMS: usize = SIDE * SIDE * size_of::<f32>();
/// Multiply-adds of bfloat16 that are worth a task.
const TASK: usize = 4 * SERIAL;
/// Rows of a task at most, so that their sums leave room in the second-level cache.
const MOST_ROWS: usize = 1024;
/// Rows up to which tasks are cut along columns, and each packs the panels that it reads: one that another core packed has to be
/// fetched from there.
const BY_COLUMNS: usize = 256;
/// Rows and columns from which a task is not cut in two.
const FEWEST: usize = 128;
/// Steps of the depth that a task takes at a time, at least, where its rows do not lie in the second-level cache along all of it.
const BLOCK: usize = 2 * CHUNK;
/// Parts of the depth at most, and steps of one at least: so much takes a good ten times as long as adding up its sums.
const MOST_PARTS: usize = 16;
const FEWEST_STEPS: usize = 64;

/// How the part of a result is cut.
pub struct Grid {
    /// Rows of a task.
    pub rows: usize,
    /// Panels of a task.
    pub panels: usize,
    /// Steps that a task takes at a time: all of its rows and panels meet in these, then in the next ones.
    pub block: usize,
}

impl Grid {
    /// For a result of `m` rows and `n` columns, each a sum of so many steps. The cuts change no sum, so they may follow the threads.
    /// `work`: what is to be done in all `parts` of the depth, in multiply-adds of bfloat16; `lies`: the left side is read where it
    /// lies.
    pub fn new(size: (usize, usize), steps: usize, (work, parts): (usize, usize), lies: bool, split: bool) -> Self {
        let (m, all) = (size.0, size.1.div_ceil(SIDE));
        // Rows of so many steps that lie there, or steps of so many rows.
        let fitting = |count: usize| second_level() / 2 / (count * LINE);
        let alone = alone(m);
        let deepest = if alone { fitting(m.next_multiple_of(SIDE)) / CHUNK * CHUNK } else { 0 };
        let block = if fitting(steps) >= m.min(BY_COLUMNS) { steps } else { steps.min(deepest.max(BLOCK)) };
        let most = (fitting(block) / SIDE * SIDE).clamp(SIDE, MOST_ROWS);
        let threads = if split { threads::num_threads() } else { 1 };
        let wanted = if threads == 1 { 1 } else { (work / TASK).clamp(1, 2 * threads) };
        let rows = if alone { m } else { m.div_ceil(m.div_ceil(most)) }.next_multiple_of(SIDE);
        // The sums of all panels wait for the next block.
        let widest = if block < steps { (second_level() / (rows / SIDE * SUMS)).max(1) } else { all };
        let mut grid = Self { rows, panels: all.div_ceil(all.div_ceil(widest)), block };
        if alone {
            // Where each task packs the left side anew, there is one for each thread.
            let pieces = if lies { wanted } else { wanted.min(threads) }.div_ceil(parts);
            grid.panels = all.div_ceil(pieces.max(all.div_ceil(widest)));
        } else {
            grid.cut(size, wanted);
        }
        grid
    }

    /// Halves rows or panels until there are as many tasks as wanted.
    fn cut(&mut self, (m, n): (usize, usize), wanted: usize) {
        while m.div_ceil(self.rows) * n.div_ceil(SIDE * self.panels) < wanted {
            let wide = SIDE * self.panels;
            if self.rows > FEWEST && (self.rows >= wide || wide <= FEWEST) {
                self.rows = (self.rows / 2).next_multiple_of(SIDE);
            } else if wide > FEWEST {
                self.panels = self.panels.div_ceil(2);
            } else {
                break;
            }
        }
    }

    /// The chunks of panels in their order, each with its panel.
    pub fn chunks(&self, steps: Range<usize>, panels: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
        let of_panel = |block: Range<usize>, panel| pieces(block, CHUNK).map(move |chunk| (panel, chunk));
        let of_block = move |block: Range<usize>| panels.clone().flat_map(move |panel| of_panel(block.clone(), panel));
        pieces(steps, self.block).flat_map(of_block)
    }

    /// How many of the 32 x 32 sums of a task are under way at once, of `rows` and `panels` 32 wide.
    pub fn under_way(&self, steps: usize, rows: usize, panels: usize) -> usize {
        let panels = if steps <= self.block { 1 } else { panels };
        if steps <= CHUNK { 1 } else { rows * panels }
    }
}

/// Whether tasks are cut along columns alone.
pub fn alone(m: usize) -> bool {
    m <= BY_COLUMNS
}

/// Into how many parts the depth is cut, whose sums are added up: by the shape alone, since they are rounded otherwise.
pub fn parts((m, n): (usize, usize), steps: usize) -> usize {
    if m.max(n) <= BY_COLUMNS { (steps / FEWEST_STEPS).clamp(1, MOST_PARTS) } else { 1 }
}

/// Whether parts are worth more than one thread.
pub fn shared(work: usize) -> bool {
    work >= 2 * TASK
}

/// A range in pieces of so many, the last of which may have fewer.
pub fn pieces(range: Range<usize>, most: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(most).map(move |start| start..end.min(start + most))
}
