//! Rows shorter than a register: as many at a time as it has lanes, each in a lane of its own. Sums add one element after the
//! other, as those of such a row by itself do.

use super::{Wide, finite};
use crate::machine::lanes::{Block, Lanes};

/// Lanes of the widest register.
pub const LANES: usize = 16;

/// How many rows of this length are worth taking at a time; those who take them ask the register itself.
pub fn together(len: usize) -> usize {
    if len < LANES { LANES } else { 1 }
}

/// What a softmax of short rows is made of.
pub struct Exps<W> {
    /// By the place in a row, `e^(x - top)` there of each row.
    pub lines: [[W; LANES]; LANES],
    /// What the rows are shifted by.
    pub tops: [W; LANES],
    /// Their sums.
    pub totals: [W; LANES],
}

impl<W: Wide> Exps<W> {
    /// Those of at most as many rows as a register has lanes, shorter than it.
    ///
    /// # Safety
    /// The machine has the instructions of `V`.
    #[inline(always)]
    pub unsafe fn of<V: Lanes<Elem = W>>(x: &[W], len: usize) -> Self {
        debug_assert!(len < V::N && x.len() <= len * V::N, "{len}");
        let mut own = Self { lines: [[W::ZERO; LANES]; LANES], tops: [W::ZERO; LANES], totals: [W::ZERO; LANES] };
        let rows = Block { at: x.as_ptr(), pitch: len, rows: x.len() / len, cols: len };
        // SAFETY: the rows lie in `x`, and a line has room for a register.
        unsafe {
            V::transpose(rows, own.lines.as_mut_ptr().cast(), LANES, V::N);
            let mut top = V::splat(W::LOWEST);
            for line in &own.lines[..len] {
                top = top.max(V::load(line.as_ptr()));
            }
            top.store(own.tops.as_mut_ptr());
        }
        for top in &mut own.tops[..V::N] {
            *top = finite(*top);
        }
        for line in &mut own.lines[..len] {
            for ((slot, &top), total) in line[..V::N].iter_mut().zip(&own.tops).zip(&mut own.totals) {
                *slot = (*slot - top).exp_below::<V::Math>();
                *total = *total + *slot;
            }
        }
        own
    }

    /// Multiplies each row by a number of its own, and writes the rows.
    ///
    /// # Safety
    /// As for [`Self::of`]; `out` is as long as what the rows were read from.
    #[inline(always)]
    pub unsafe fn scaled<V: Lanes<Elem = W>>(&mut self, by: &[W; LANES], out: &mut [W], len: usize) {
        for line in &mut self.lines[..len] {
            for (slot, &by) in line[..V::N].iter_mut().zip(by) {
                *slot = *slot * by;
            }
        }
        let lines = Block { at: self.lines.as_ptr().cast(), pitch: LANES, rows: len, cols: out.len() / len };
        // SAFETY: lines of a register each; the rows have room for them.
        V::transpose(lines, out.as_mut_ptr(), len, len);
    }
}
