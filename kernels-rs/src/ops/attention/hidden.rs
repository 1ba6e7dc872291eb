//! What mask, bias and causality do to a block of scores.

use super::heads::{Heads, Rows};
use super::scores::{self, Score};
use super::tile::Turn;
use crate::array::float::{RowElement, Wide};
use crate::dtype::Element;
use crate::machine::lanes::Block;

/// The operands that change scores, and whether queries see later keys.
pub struct Changes<T> {
    /// True where a query may not look.
    pub mask: Option<Heads<bool>>,
    /// Added to the scores.
    pub bias: Option<Heads<T>>,
    /// Key `j` is hidden from query `i` where `j > i + behind`.
    pub behind: Option<isize>,
    /// What a bias is multiplied with.
    pub unit: f64,
}

/// Part of the scores of one head.
#[derive(Clone, Copy)]
pub struct Part {
    /// Which head, of all heads of all batches.
    pub head: usize,
    /// First query, number of queries.
    pub queries: (usize, usize),
    /// First key, number of keys.
    pub keys: (usize, usize),
}

impl<T: RowElement<Wide: Score>> Changes<T> {
    /// Elements of the buffer of [`Changes::apply`].
    pub fn buffer(&self, keys: usize, width: usize) -> usize {
        if self.mask.is_none() && self.bias.is_none() { 0 } else { 2 * keys * width }
    }

    /// How many of `keys` some of the queries up to `last` see.
    pub fn seen(&self, last: usize, keys: usize) -> usize {
        self.behind.map_or(keys, |behind| (last as isize + behind + 1).clamp(0, keys as isize) as usize)
    }

    /// Changes a block of scores, `width` lanes for each key.
    ///
    /// # Safety
    /// The part lies inside the operands.
    pub unsafe fn apply(&self, part: Part, width: usize, block: &mut [T::Wide], buffer: &mut [T::Wide]) {
        let (mask, bias) = (self.mask.map(|mask| mask.get(part.head)), self.bias.map(|bias| bias.get(part.head)));
        if mask.is_some() || bias.is_some() {
            let mask = mask.map(|mask| mask.from(part.queries.0, part.keys.0));
            let bias = bias.map(|bias| bias.from(part.queries.0, part.keys.0));
            let (rows, turned) = buffer.split_at_mut(part.keys.1 * width);
            let alike = mask.is_none_or(|mask| mask.row == 0) && bias.is_none_or(|bias| bias.row == 0);
            let count = if alike { 1 } else { part.queries.1 };
            for (query, row) in rows.chunks_exact_mut(part.keys.1).take(count).enumerate() {
                // SAFETY: the caller promises a mask and a bias as large as the scores, of which this is one row.
                self.row(mask, bias, query, row);
            }
            if alike {
                for (row, &by) in block.chunks_exact_mut(width).zip(rows.iter()) {
                    if by == T::Wide::LOWEST {
                        row.fill(by);
                    } else if by != T::Wide::ZERO {
                        for slot in row {
                            *slot = *slot + by;
                        }
                    }
                }
            } else {
                let from = Block { at: rows.as_ptr(), pitch: part.keys.1, rows: count, cols: part.keys.1 };
                // SAFETY: one half of the buffer into the other.
                Turn { from, to: turned.as_mut_ptr(), width }.run();
                scores::shift(block, turned);
            }
        }
        if let Some(behind) = self.behind {
            // Key `j` of the block is hidden from the lanes before `first + j`.
            let first = part.keys.0 as isize - part.queries.0 as isize - behind;
            let start = (1 - first).clamp(0, part.keys.1 as isize) as usize;
            for (key, row) in block.chunks_exact_mut(width).enumerate().skip(start) {
                let hidden = (first + key as isize).clamp(0, width as isize) as usize;
                row[..hidden].fill(T::Wide::LOWEST);
            }
        }
    }

    /// Caps and changes the scores of query `place.1` of head `place.0` with `keys.1` keys from `keys.0` on.
    ///
    /// # Safety
    /// The part lies inside the operands.
    pub unsafe fn apply_row(
        &self,
        (head, query): (usize, usize),
        (first, count): (usize, usize),
        cap: Option<f64>,
        scores: &mut [T::Wide],
        buffer: &mut [T::Wide],
    ) {
        if let Some(cap) = cap {
            scores::cap(scores, <T::Wide as Element>::from_f64(cap));
        }
        if self.mask.is_some() || self.bias.is_some() {
            let mask = self.mask.map(|mask| mask.get(head).from(0, first));
            let bias = self.bias.map(|bias| bias.get(head).from(0, first));
            // SAFETY: the caller promises a mask and a bias as large as the scores, of which this is one row.
            self.row(mask, bias, query, buffer);
            scores::shift(scores, buffer);
        }
        let seen = self.seen(query, first + count).saturating_sub(first);
        scores[seen..].fill(T::Wide::LOWEST);
    }

    /// What mask and bias add to the scores of one query.
    unsafe fn row(&self, mask: Option<Rows<bool>>, bias: Option<Rows<T>>, query: usize, to: &mut [T::Wide]) {
        match bias {
            None => to.fill(T::Wide::ZERO),
            // SAFETY: the caller promises a mask and a bias as large as the scores, of which this is one row.
            Some(bias) => bias.read(query, to, <T::Wide as Element>::from_f64(self.unit)),
        }
        let Some(mask) = mask else { return };
        let at = mask.at.wrapping_offset(query as isize * mask.row);
        if mask.col == 1 {
            // SAFETY: the caller promises a mask and a bias as large as the scores, of which this is one row.
            return scores::hide(std::slice::from_raw_parts(at, to.len()), to);
        }
        for (key, slot) in to.iter_mut().enumerate() {
            // SAFETY: the caller promises a mask and a bias as large as the scores, of which this is one row.
            if *at.wrapping_offset(key as isize * mask.col) {
                *slot = T::Wide::LOWEST;
            }
        }
    }
}
