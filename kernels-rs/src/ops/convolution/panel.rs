//! The inner loops of the implicit matrix product: lanes are result positions. A panel `[tap][position]` is packed from
//! the band through the offset table, a few registers wide; rows of weights are read where they lie.

use crate::machine::lanes::Lanes;
use crate::machine::tile::{self, Even, Lines};

/// Registers in a row of a full panel.
pub const REGISTERS: usize = 3;
/// Most lanes in a row of a panel.
pub const LANES: usize = REGISTERS * 16;

/// Positions of a panel that lie side by side in the band and in the result.
#[derive(Clone, Copy, Default)]
pub struct Segment {
    /// Where they start in the band, for an offset of 0.
    pub from: usize,
    /// Where they start in the panel.
    pub at: usize,
    /// How many.
    pub len: usize,
    /// Where they go in the result, for output channel 0.
    pub to: usize,
}

/// The segments of one panel.
pub struct Segments {
    list: [Segment; LANES],
    count: usize,
}

impl Segments {
    /// None.
    pub fn new() -> Self {
        Self { list: [Segment::default(); LANES], count: 0 }
    }

    /// Appends positions, which may continue the last segment. `step` is the distance of neighbours in the result.
    #[inline(always)]
    pub fn push(&mut self, next: Segment, step: usize) {
        if let Some(last) = self.list[..self.count].last_mut()
            && last.from + last.len == next.from
            && last.to + last.len * step == next.to
        {
            last.len += next.len;
        } else {
            self.list[self.count] = next;
            self.count += 1;
        }
    }

    /// Appends positions as a segment of their own.
    #[inline(always)]
    pub fn add(&mut self, next: Segment) {
        self.list[self.count] = next;
        self.count += 1;
    }

    /// All of them, in order.
    #[inline(always)]
    pub fn slice(&self) -> &[Segment] {
        &self.list[..self.count]
    }
}

/// Fills a panel of `Q` registers per row. Lanes after the last segment get arbitrary values.
///
/// # Safety
/// `band` reaches all positions plus a register at every offset, `panel` holds a row per offset; the machine has the
/// instructions of `V`.
#[inline(always)]
pub unsafe fn pack<V: Lanes, const Q: usize>(
    segments: &Segments,
    offsets: &[usize],
    band: *const V::Elem,
    panel: *mut V::Elem,
) {
    let width = Q * V::N;
    // Later segments overwrite what earlier ones write too far; only the end of the row must be kept.
    for segment in segments.slice() {
        let (from, room) = (band.wrapping_add(segment.from), width - segment.at);
        let whole = segment.len.div_ceil(V::N).min(room / V::N);
        let rest = if whole * V::N < segment.len { room - whole * V::N } else { 0 };
        let mut to = panel.wrapping_add(segment.at);
        for &offset in offsets {
            // SAFETY: segments lie inside the source, and the panel holds whole rows; a partial store ends with the row.
            let source = from.add(offset);
            for v in 0..whole {
                V::load(source.add(v * V::N)).store(to.add(v * V::N));
            }
            if rest > 0 {
                V::load(source.add(whole * V::N)).store_partial(to.add(whole * V::N), rest);
            }
            to = to.wrapping_add(width);
        }
    }
}

/// `acc[m][q] += sum over l of rows[m][taps[l]] * panel[l][q]`.
///
/// # Safety
/// `panel` holds `taps.len()` rows of `Q` registers, each row of weights every tap; the machine has the instructions
/// of `V`.
#[inline(always)]
pub unsafe fn multiply<V: Lanes, const M: usize, const Q: usize>(
    taps: &[usize],
    rows: [*const V::Elem; M],
    panel: *const V::Elem,
    acc: &mut [[V; Q]; M],
) {
    let panel = Even { at: panel, near: V::N, far: (Q * V::N) as isize };
    tile::multiply(taps.len(), Lines::new(rows, taps), panel, acc);
}

/// Moves a tile `[m][lane]` of `M` output channels to its places: `plane` from channel to channel, `step` between
/// neighbours.
///
/// # Safety
/// `tile` holds `M * width` elements; the places in `out` are valid and belong to the caller.
#[inline(always)]
pub unsafe fn scatter<V: Lanes, const M: usize>(
    segments: &Segments,
    tile: *const V::Elem,
    width: usize,
    out: *mut V::Elem,
    (plane, step): (usize, usize),
) {
    for segment in segments.slice() {
        for m in 0..M {
            // SAFETY: segments lie inside the source, and the panel holds whole rows.
            let from = tile.add(m * width + segment.at);
            let to = out.add(m * plane + segment.to);
            if step == 1 {
                let mut i = 0;
                while i + V::N <= segment.len {
                    V::load(from.add(i)).store(to.add(i));
                    i += V::N;
                }
                if i < segment.len {
                    let rest = segment.len - i;
                    V::load_partial(from.add(i), rest).store_partial(to.add(i), rest);
                }
            } else {
                for i in 0..segment.len {
                    *to.add(i * step) = *from.add(i);
                }
            }
        }
    }
}

/// As [`scatter`] for neighbors that stay neighbors, of `(width, count)` lanes and channels. False when a value is not
/// finite.
///
/// # Safety
/// As for [`scatter`].
#[inline(always)]
pub unsafe fn scatter_finite<V: Lanes>(
    segments: &Segments,
    tile: *const V::Elem,
    (width, count): (usize, usize),
    out: *mut V::Elem,
    plane: usize,
) -> bool {
    let zero = V::splat(V::Elem::default());
    let mut sum = zero;
    for segment in segments.slice() {
        for m in 0..count {
            let from = tile.wrapping_add(m * width + segment.at);
            let to = out.wrapping_add(m * plane + segment.to);
            for i in (0..segment.len).step_by(V::N) {
                let rest = (segment.len - i).min(V::N);
                // SAFETY: segments lie inside the source, and the panel holds whole rows.
                let value = if rest == V::N { V::load(from.add(i)) } else { V::load_partial(from.add(i), rest) };
                // 0 times what is not finite is NaN.
                sum = value.mul_add(zero, sum);
                if rest == V::N { value.store(to.add(i)) } else { value.store_partial(to.add(i), rest) }
            }
        }
    }
    sum.sum() == V::Elem::default()
}
