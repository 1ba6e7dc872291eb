//! Packing: an operand laid out in the order in which the register tile reads it.

use super::Matrix;
use super::format::{Format, Wide};
use super::tile::{Cut, Multiply};
use crate::machine::lanes::{Kernel, Lanes};
use crate::machine::simd::prefetch;
use std::ops::Range;

/// Some neighbouring panels of an operand. A panel has one line of cells per step along `k`.
struct Panels<F: Format> {
    from: *const F::Elem,
    /// From one cell of a line to the next.
    along: isize,
    /// From one element to the next along `k`.
    deep: isize,
    /// Elements along `k`.
    k: usize,
    /// Elements that exist along a line, of all panels together.
    width: usize,
    /// Elements that may be read along a line: at least `width`.
    reach: usize,
    /// Heights of the panels of a left side.
    cut: Option<Cut>,
    /// Cells across the panels of a right side, and from one to the next.
    even: (usize, usize),
    count: usize,
    to: *mut F::Cell,
}

/// Panels that are packed together.
pub const MOST_PANELS: usize = 32;
/// Lines of a panel that are written at a time. Panels of a left side 512 deep and 6 high lie three pages apart, in one set of
/// the first-level cache: line by line, each write missed it.
const LINES: usize = 8;

/// Lines that are asked for ahead of the one that is packed.
const AHEAD: isize = 24;

/// First cell of a panel along the line, cells across, and where it goes.
type Place = (usize, usize, usize);

impl<F: Format> Kernel<Wide<F>> for Panels<F> {
    /// May write up to `N - 1` cells past the end.
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = Wide<F>>>(self) {
        for first in (0..self.count).step_by(MOST_PANELS) {
            self.some::<V>(first, MOST_PANELS.min(self.count - first));
        }
    }
}

impl<F: Format> Panels<F> {
    /// `count <= MOST_PANELS` panels from the first on.
    #[inline(always)]
    unsafe fn some<V: Lanes<Elem = Wide<F>>>(&self, first: usize, count: usize) {
        let lines = self.k.div_ceil(F::DEPTH);
        let mut places = [(0, 0, 0); MOST_PANELS];
        for (at, place) in places[..count].iter_mut().enumerate() {
            *place = self.place(first + at, lines);
        }
        let places = &places[..count];
        // SAFETY: reads inside the operand, writes inside the panels and the slack.
        if self.along == 1 {
            // A few lines over all panels, then the next: the operand is read in long runs, which prefetching follows,
            // and each panel is written in one.
            for first in (0..lines).step_by(LINES) {
                for &place in places {
                    self.lines::<V>(first..lines.min(first + LINES), place, lines);
                }
            }
            return;
        }
        for &place in places {
            if self.deep == 1 {
                self.turned::<V>(place);
            } else {
                for line in 0..lines {
                    self.gathered(line, place);
                }
            }
        }
    }

    #[inline(always)]
    fn place(&self, at: usize, lines: usize) -> Place {
        match self.cut {
            Some(cut) => (cut.first(at), cut.height(at), cut.first(at) * lines),
            None => (at * self.even.0, self.even.0, at * self.even.1),
        }
    }

    /// Some lines of a panel.
    #[inline(always)]
    unsafe fn lines<V: Lanes<Elem = Wide<F>>>(&self, some: Range<usize>, place: Place, lines: usize) {
        let (start, pitch, _) = place;
        // What whole registers write past a line belongs to the next lines, but at the end of a panel to the next panel.
        let past = (pitch.next_multiple_of(V::N) - pitch).div_ceil(pitch);
        let whole = lines.saturating_sub(past).clamp(some.start, some.end);
        match (start + pitch.next_multiple_of(V::N) <= self.reach, pitch.div_ceil(V::N)) {
            (true, 1) => self.runs::<V, 1>(some.start..whole, place),
            (true, 2) => self.runs::<V, 2>(some.start..whole, place),
            (true, 4) => self.runs::<V, 4>(some.start..whole, place),
            _ => self.runs::<V, 0>(some.start..whole, place),
        }
        for line in whole..some.end {
            self.gathered(line, place);
        }
    }

    /// Some lines of `W` whole registers each, or of any width where that is 0.
    #[inline(always)]
    unsafe fn runs<V: Lanes<Elem = Wide<F>>, const W: usize>(&self, some: Range<usize>, (start, pitch, offset): Place) {
        let step = self.deep * F::DEPTH as isize;
        let mut from = self.from.wrapping_offset(some.start as isize * step).wrapping_add(start);
        let mut to = self.to.wrapping_add(offset + some.start * pitch);
        for line in some {
            let across = if W == 0 { pitch.div_ceil(V::N) } else { W };
            for at in 0..across {
                let first = at * V::N;
                let count = if W == 0 { self.reach.saturating_sub(start + first).min(V::N) } else { V::N };
                prefetch(from.wrapping_offset(AHEAD * step).wrapping_add(first));
                F::line::<V>(from.wrapping_add(first), self.deep, self.k - line * F::DEPTH, count, to.add(first));
            }
            from = from.wrapping_offset(step);
            to = to.wrapping_add(pitch);
        }
    }

    /// One line by single cells; the cells after the last element repeat it.
    #[inline(always)]
    unsafe fn gathered(&self, line: usize, (start, pitch, offset): Place) {
        let from = self.from.wrapping_offset((line * F::DEPTH) as isize * self.deep);
        for i in 0..pitch {
            let from = from.wrapping_offset((start + i).min(self.width - 1) as isize * self.along);
            let cell = F::gather(from, self.deep, self.k - line * F::DEPTH);
            self.to.add(offset + line * pitch + i).write(cell);
        }
    }

    #[inline(always)]
    unsafe fn turned<V: Lanes<Elem = Wide<F>>>(&self, (start, pitch, offset): Place) {
        for first in (0..pitch).step_by(V::N) {
            let rows = self.width.saturating_sub(start + first).min(V::N).min(pitch - first);
            let keep = if pitch <= V::N { V::N } else { V::N.min(pitch - first) };
            let from = self.from.wrapping_offset((start + first) as isize * self.along);
            for k in (0..self.k).step_by(V::N * F::DEPTH) {
                let to = self.to.add(offset + k / F::DEPTH * pitch + first);
                F::turn::<V>(from.wrapping_add(k), self.along, (rows, self.k - k), to, (pitch, keep));
            }
        }
    }
}

/// Cells that packing may write past the end.
pub const SLACK: usize = 16;

/// Packs rows of the left side into the panels of [`Cut`], of at most `high` rows. `reach`: rows that exist from the first one on.
///
/// # Safety
/// `from` has these rows and `k` columns; `to` has room for `rows * k` cells and [`SLACK`].
pub unsafe fn left<F: Format>(
    from: Matrix<F::Elem>,
    (rows, reach): (usize, usize),
    k: usize,
    (high, to): (usize, *mut F::Cell),
) {
    let cut = Cut::new(rows, high);
    F::Product::launch(Panels::<F> {
        from: from.start,
        along: from.row,
        deep: from.col,
        k,
        width: rows,
        reach,
        cut: Some(cut),
        even: (0, 0),
        count: cut.count,
        to,
    });
}

/// Packs `cols` columns of the right side into panels of `pitch` cells, a multiple of a register, that lie `step` cells
/// apart. The cells after `cols` are finite where the operand is.
///
/// # Safety
/// `from` has `k` rows and `cols` columns; `to` has room for the panels.
pub unsafe fn right<F: Format>(
    from: Matrix<F::Elem>,
    k: usize,
    cols: usize,
    even @ (pitch, _): (usize, usize),
    to: *mut F::Cell,
) {
    F::Product::launch(Panels::<F> {
        from: from.start,
        along: from.col,
        deep: from.row,
        k,
        width: cols,
        reach: cols,
        cut: None,
        even,
        count: cols.div_ceil(pitch),
        to,
    });
}
