//! Packed right sides: kept beside their storage from their second use on, or made for one product.

use super::call::{CACHED, Call};
use crate::array::Array;
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::memory::owned::Memory;
use crate::memory::packed::{Columns, Layout, PackedCache};

/// Bytes of a right side that are packed at a time; fewer in tests, whose products have parts too.
const MOST_PACKED: usize = if cfg!(test) { 128 << 10 } else { 16 << 20 };
/// Rows of a product up to which packing is more than about 2 % of it, so that a packed right side is worth keeping.
pub const KEEPS: usize = 1024;

/// What is to be done about a right side.
pub enum PackedSide<'a> {
    /// It was packed before, perhaps as columns of a larger one.
    Kept(&'a Memory, Columns),
    /// Pack it, then keep it.
    Wanted(Layout, PackedCache<'a>),
    /// Pack it for this product alone.
    Once,
}

impl<'a> PackedSide<'a> {
    /// For a right side that takes so many `bytes`. `form`: cells across a panel, and elements in a cell.
    pub fn of<T: Element>(call: &Call<T>, form: (usize, usize), bytes: usize, weights: Option<&'a Array>) -> Self {
        let (m, k, n) = call.size;
        let Some(weights) = weights.filter(|_| k * n > CACHED) else { return Self::Once };
        let list = weights.storage().packed();
        let layout = layout(weights, (k, n), (call.b.row, call.b.col), form);
        match list.find_columns(&layout, form.0) {
            Some((cells, columns)) => Self::Kept(cells, columns),
            None if m <= KEEPS && list.is_wanted(&layout, bytes) => Self::Wanted(layout, list),
            None => Self::Once,
        }
    }
}

/// How a matrix lies in its storage, and what is made of it: cells across a panel, and elements in a cell.
pub fn layout(weights: &Array, size: (usize, usize), steps: (isize, isize), (panel, cell): (usize, usize)) -> Layout {
    let form = (panel * 4 + cell) * DType::ALL.len() + weights.dtype() as usize;
    Layout { offset: weights.offset(), size, steps, form }
}

/// Keeps what `pack` makes of a weight, unless it is kept already, and has what is made of its parts kept from their first use
/// on. `form` as in [`layout`].
pub fn keep(
    weights: &Array,
    size: (usize, usize),
    steps: (isize, isize),
    form: (usize, usize),
    pack: impl FnOnce() -> Result<Memory>,
) -> Result<()> {
    let list = weights.storage().packed();
    let layout = layout(weights, size, steps, form);
    if list.find_columns(&layout, form.0).is_none() {
        list.keep(layout, pack()?);
    }
    list.want_all();
    Ok(())
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

#[cfg(test)]
mod tests;
