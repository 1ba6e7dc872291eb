//! Products of small matrices that lie in cache, by register tiles: rows of the left side times two registers (or one)
//! of the right side.
//!
//! Why not [`crate::ops::contraction`]: it packs both sides at every call. Here one side is packed once for many products, the other
//! is read where it lies, and results stay where the next product wants them.

use crate::machine::lanes::{Block, Kernel, Lanes, Real, launch};
use crate::machine::tile::{self, Even};

/// The left side, in groups of [`Lanes::ROWS`] rows: element `(r, k)` of group `g` lies at `g * group + r * row + k * step`.
/// The row step is known when the kernel is compiled: see [`Product`].
#[derive(Clone, Copy)]
pub struct Left<W> {
    /// Element (0, 0).
    pub at: *const W,
    /// From one group to the next.
    pub group: usize,
    /// From one column to the next.
    pub step: isize,
}

/// The right side or the result, in panels of `REGS` registers.
#[derive(Clone, Copy)]
pub struct Panels<P> {
    /// Element (0, 0).
    pub at: P,
    /// From one panel to the next.
    pub panel: usize,
    /// From one row to the next.
    pub row: usize,
}

/// What a product is added to.
#[derive(Clone, Copy)]
pub enum Onto<W> {
    /// Nothing: the result is overwritten.
    Nothing,
    /// The result.
    Sum,
    /// The result times one value per column of a panel.
    Faded(*const W),
}

/// `c = a @ b`, or that added to `c`. Rows of `a` are `LINES` registers apart, or one element where `LINES` is 0.
pub struct Product<W, const LINES: usize, const REGS: usize> {
    /// Rows of the result.
    pub rows: usize,
    /// Inner size.
    pub depth: usize,
    /// Panels of the result.
    pub panels: usize,
    /// Left side.
    pub a: Left<W>,
    /// Right side.
    pub b: Panels<*const W>,
    /// Result.
    pub c: Panels<*mut W>,
    /// What it is added to.
    pub onto: Onto<W>,
}

impl<W: Real, const LINES: usize, const REGS: usize> Product<W, LINES, REGS> {
    /// Computes it.
    ///
    /// # Safety
    /// Both sides are valid for the sizes, the result for whole panels; nothing overlaps the result.
    pub unsafe fn run(self) {
        launch(self);
    }

    #[expect(clippy::needless_range_loop, reason = "plain loops are sure to be unrolled into registers")]
    #[inline(always)]
    unsafe fn group<V: Lanes<Elem = W>, const R: usize>(&self, first: usize) {
        if R > V::ROWS {
            return; // Never reached: lets the compiler drop tiles that the register file cannot hold.
        }
        let row_step = if LINES == 0 { 1 } else { LINES * V::N };
        let left = self.a.at.wrapping_add(first / V::ROWS * self.a.group);
        for panel in 0..self.panels {
            // SAFETY: rows first..first + R and whole panels.
            let a = Even { at: left, near: row_step, far: self.a.step };
            let b = Even { at: self.b.at.add(panel * self.b.panel), near: V::N, far: self.b.row as isize };
            let mut sums = [[V::splat(W::default()); REGS]; R];
            tile::multiply(self.depth, a, b, &mut sums);
            let c = self.c.at.add(panel * self.c.panel + first * self.c.row);
            for w in 0..REGS {
                let fade = match self.onto {
                    Onto::Faded(fade) => V::load(fade.add(w * V::N)),
                    _ => V::splat(W::from_f64(1.0)),
                };
                for r in 0..R {
                    let to = c.add(r * self.c.row + w * V::N);
                    match self.onto {
                        Onto::Nothing => sums[r][w].store(to),
                        _ => V::load(to).mul_add(fade, sums[r][w]).store(to),
                    }
                }
            }
        }
    }
}

impl<W: Real, const LINES: usize, const REGS: usize> Kernel<W> for Product<W, LINES, REGS> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = W>>(self) {
        let mut first = 0;
        while first < self.rows {
            // SAFETY: a group is at most the rest of them.
            match (self.rows - first).min(V::ROWS) {
                1 => self.group::<V, 1>(first),
                2 => self.group::<V, 2>(first),
                3 => self.group::<V, 3>(first),
                4 => self.group::<V, 4>(first),
                5 => self.group::<V, 5>(first),
                6 => self.group::<V, 6>(first),
                7 => self.group::<V, 7>(first),
                8 => self.group::<V, 8>(first),
                9 => self.group::<V, 9>(first),
                10 => self.group::<V, 10>(first),
                11 => self.group::<V, 11>(first),
                12 => self.group::<V, 12>(first),
                13 => self.group::<V, 13>(first),
                _ => self.group::<V, 14>(first),
            }
            first += V::ROWS;
        }
    }
}

/// Turns rows into columns: rows `g * width..` become a dense `cols x width` block, zero-filled, for every `g`.
pub struct Turn<W> {
    /// The rows.
    pub from: Block<W>,
    /// The blocks, one after the other.
    pub to: *mut W,
    /// Rows per block.
    pub width: usize,
}

impl<W: Real> Turn<W> {
    /// Does it.
    ///
    /// # Safety
    /// Both sides are valid for the sizes and do not overlap.
    pub unsafe fn run(self) {
        launch(self);
    }
}

impl<W: Real> Kernel<W> for Turn<W> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = W>>(self) {
        let Block { at, pitch, rows, cols } = self.from;
        for group in (0..rows).step_by(self.width) {
            for row in (0..self.width).step_by(V::N) {
                let (first, keep) = (group + row, V::N.min(self.width - row));
                let count = rows.saturating_sub(first).min(keep);
                for col in (0..cols).step_by(V::N) {
                    let part = Block {
                        at: at.wrapping_add(first * pitch + col),
                        pitch,
                        rows: count,
                        cols: V::N.min(cols - col),
                    };
                    let to = self.to.wrapping_add(group * cols + col * self.width + row);
                    // SAFETY: inside both sides.
                    V::transpose(part, to, self.width, keep);
                }
            }
        }
    }
}
