//! Where the heads of the operands lie, and how their rows are read: any strides, any float dtype.

use crate::array::Array;
use crate::array::axes::offset;
use crate::array::float::{RowElement, Wide};
use crate::array::shape::{self, Inline};
use crate::dtype::Element;
use crate::machine::threads::SharedMut;

/// The matrices of an operand `[.., heads, rows, columns]`.
#[derive(Clone, Copy)]
pub struct Heads<T> {
    start: SharedMut<T>,
    lead: Inline<(usize, isize)>,
    row: isize,
    col: isize,
}

/// One of them.
#[derive(Clone, Copy)]
pub struct Rows<T> {
    /// Element (0, 0).
    pub at: *const T,
    /// From one row to the next.
    pub row: isize,
    /// From one column to the next.
    pub col: isize,
}

impl<T: Element> Heads<T> {
    /// Those of an array that broadcasts to this shape.
    pub fn new(x: &Array, to: &[usize]) -> Self {
        let steps = shape::broadcast_strides(x.shape(), x.strides(), to);
        let rank = to.len();
        let mut lead = Inline::empty();
        (0..rank - 2).for_each(|axis| lead.push((to[axis], steps[axis])));
        let start = SharedMut::new(x.ptr::<T>().cast_mut());
        Self { start, lead, row: steps[rank - 2], col: steps[rank - 1] }
    }

    /// The matrix number `index` in row-major order of the leading axes.
    pub fn get(&self, index: usize) -> Rows<T> {
        let at = self.start.ptr().cast_const().wrapping_offset(offset(&self.lead, index));
        Rows { at, row: self.row, col: self.col }
    }
}

impl<T: Element> Rows<T> {
    /// The rows from this one on.
    #[must_use]
    pub fn from(self, row: usize, col: usize) -> Self {
        let at = self.at.wrapping_offset(row as isize * self.row + col as isize * self.col);
        Self { at, ..self }
    }
}

impl<T: RowElement> Rows<T> {
    /// Copies one row out, multiplied.
    ///
    /// # Safety
    /// The row has that many columns.
    pub unsafe fn read(self, row: usize, to: &mut [T::Wide], by: T::Wide) {
        let at = self.at.wrapping_offset(row as isize * self.row);
        if self.col == 1 {
            T::load(std::slice::from_raw_parts(at, to.len()), to);
        } else {
            for (i, slot) in to.iter_mut().enumerate() {
                *slot = (*at.wrapping_offset(i as isize * self.col)).widen();
            }
        }
        if by != T::Wide::ONE {
            for slot in to {
                *slot = *slot * by;
            }
        }
    }

    /// Copies rows out, `pitch` apart.
    ///
    /// # Safety
    /// There are that many rows and columns, and room for them.
    pub unsafe fn read_all(self, (rows, cols): (usize, usize), to: *mut T::Wide, pitch: usize, by: T::Wide) {
        for row in 0..rows {
            self.read(row, std::slice::from_raw_parts_mut(to.add(row * pitch), cols), by);
        }
    }

    /// The rows as they lie, if kernels can read them so; else a copy.
    ///
    /// # Safety
    /// There are that many rows and columns, and room for them.
    pub unsafe fn dense(self, (rows, cols): (usize, usize), to: *mut T::Wide) -> (*const T::Wide, isize) {
        match T::wide_at(self.at) {
            Some(at) if self.col == 1 => (at, self.row),
            _ => {
                self.read_all((rows, cols), to, cols, T::Wide::ONE);
                (to.cast_const(), cols as isize)
            }
        }
    }
}
