//! Right sides of products of bytes: panels of columns, four bytes of the depth in a cell, and the sums of the columns.

use super::{COLS, DEEP, Value};
use crate::error::Result;
use crate::machine::amx as unit;
use crate::machine::threads::{self, SharedMut};
use crate::memory::owned::Memory;
use crate::vectorize;

/// Words in front of the sums: the offset, and what brings the cells to a cache line.
const HEAD: usize = 16;

/// A right side in panels of [`COLS`] columns, four bytes of the depth in a cell.
#[derive(Clone, Copy)]
pub struct Panels<'a> {
    /// Panel after panel, [`lines_of`] lines each.
    pub cells: *const u32,
    /// What was taken from each value.
    pub offset: i32,
    /// Of what is packed, for each column.
    pub sums: &'a [i32],
}

// SAFETY: what is packed is only read.
unsafe impl Sync for Panels<'_> {}

impl<'a> Panels<'a> {
    /// Of what [`packed`] gave for so many columns.
    pub fn of(memory: &'a Memory, n: usize) -> Self {
        let words: *const i32 = memory.data().cast_const().cast();
        let count = n.div_ceil(COLS) * COLS;
        // SAFETY: `packed` wrote the offset and the sums in front of the cells.
        let (offset, sums) = unsafe { (*words, std::slice::from_raw_parts(words.add(HEAD), count)) };
        Self { cells: words.wrapping_add(HEAD + count).cast(), offset, sums }
    }
}

/// Lines of a panel: whole steps of the unit that multiplies tiles.
pub fn lines_of(k: usize) -> usize {
    k.div_ceil(DEEP).next_multiple_of(unit::LINES)
}

/// Packs a right side for [`Panels`].
pub fn packed<T: Value>(from: &[T], (k, n): (usize, usize), offset: i32) -> Result<Memory> {
    let (lines, panels) = (lines_of(k), n.div_ceil(COLS));
    let head = HEAD + panels * COLS;
    let memory = Memory::new((head + lines * panels * COLS) * size_of::<u32>())?;
    let words: *mut i32 = memory.data().cast();
    // SAFETY: the memory has room for the head; nobody else has it yet.
    unsafe {
        words.write_bytes(0, head);
        words.write(offset);
    }
    let (to, all) = (SharedMut::new(words.wrapping_add(head).cast::<u32>()), SharedMut::new(words.wrapping_add(HEAD)));
    threads::for_ranges(panels, (1 << 16) / (k * COLS) + 1, &|range| {
        for panel in range {
            let cols = panel * COLS..n.min((panel + 1) * COLS);
            // SAFETY: each panel has its own cells and sums.
            let (to, sums) = unsafe {
                (
                    to.slice(panel * lines * COLS..(panel + 1) * lines * COLS),
                    all.slice(panel * COLS..(panel + 1) * COLS),
                )
            };
            for (line, to) in to.chunks_exact_mut(COLS).enumerate() {
                to.fill(0);
                for at in 0..DEEP.min(k.saturating_sub(line * DEEP)) {
                    let row = (line * DEEP + at) * n;
                    add_bytes(&from[row + cols.start..row + cols.end], offset, 8 * at as u32, to, sums);
                }
            }
        }
    });
    Ok(memory)
}

vectorize!(add_bytes[T: Value](from: &[T], offset: i32, shift: u32, to: &mut [u32], sums: &mut [i32]) => add_bytes_body::<T>);

/// One line of bytes, into cells and sums.
#[inline(always)]
fn add_bytes_body<T: Value>(from: &[T], offset: i32, shift: u32, to: &mut [u32], sums: &mut [i32]) {
    for ((&value, to), sum) in from.iter().zip(to).zip(sums) {
        let byte = value.wide().wrapping_sub(offset);
        *to |= (byte as u32 & 255) << shift;
        *sum = sum.wrapping_add(byte);
    }
}
