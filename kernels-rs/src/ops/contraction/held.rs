//! Packed right sides: kept beside their storage from their second use on, or made for one product.

use super::call::{CACHED, Call};
use crate::array::Array;
use crate::dtype::{DType, Element};
use crate::memory::kept::{Layout, List};
use crate::memory::owned::Memory;

/// Bytes of a right side that are packed at a time.
const MOST_PACKED: usize = 16 << 20;
/// Rows of a product up to which packing is more than about 2 % of it, so that a packed right side is worth keeping.
pub const KEEPS: usize = 1024;

/// What is to be done about a right side.
pub enum Right<'a> {
    /// It was packed before.
    Kept(&'a Memory),
    /// Pack it, then keep it.
    Wanted(Layout, List<'a>),
    /// Pack it for this product alone.
    Once,
}

impl<'a> Right<'a> {
    /// For a right side that takes so many `bytes`. `form`: cells across a panel, and elements in a cell.
    pub fn of<T: Element>(call: &Call<T>, form: (usize, usize), bytes: usize, weights: Option<&'a Array>) -> Self {
        let (m, k, n) = call.size;
        let Some(weights) = weights.filter(|_| m <= KEEPS && k * n > CACHED) else { return Self::Once };
        let form = (form.0 * 4 + form.1) * DType::ALL.len() + T::DTYPE as usize;
        let layout = Layout { offset: weights.offset(), size: (k, n), steps: (call.b.row, call.b.col), form };
        let list = weights.storage().kept();
        match list.find(&layout) {
            Some(cells) => Self::Kept(cells),
            None if list.is_wanted(&layout, bytes) => Self::Wanted(layout, list),
            None => Self::Once,
        }
    }
}

/// Columns that are packed at once, in whole panels, where one takes so many `bytes`.
pub fn columns(bytes: usize, panel: usize) -> usize {
    (MOST_PACKED / bytes).max(1).next_multiple_of(panel)
}

/// The parts of a product that have so many columns.
pub fn parts<T: Copy>(call: &Call<T>, most: usize) -> impl Iterator<Item = Call<T>> {
    let (m, k, n) = call.size;
    (0..n).step_by(most).map(move |j| {
        let (b, c, end) = (call.b.at(0, j), call.c.at(0, j), call.end.at(0, j));
        Call { size: (m, k, most.min(n - j)), a: call.a, b, c, end }
    })
}
