//! The inner loop of the weight gradient whose lanes are output channels: the source is read one scalar at a time and
//! broadcast, so any stride, dilation and width costs the same.

use crate::machine::lanes::Lanes;
use crate::machine::tile::{self, Around, Even};

/// `acc[j][r] += sum over positions p of g[p][r] * x[p + taps[j]]`, over `rows x cols` positions; from row to row and
/// from position to position `x` moves by `pitch` and `step`.
///
/// # Safety
/// `g` holds `rows * cols` rows of `R` registers, `x` every position read; the machine has the instructions of `V`.
#[inline(always)]
pub unsafe fn gradient<V: Lanes, const J: usize, const R: usize>(
    ((rows, cols), (pitch, step)): ((usize, usize), (usize, usize)),
    g: *const V::Elem,
    x: *const V::Elem,
    taps: &[usize; J],
    acc: &mut [[V; R]; J],
) {
    for t in 0..rows {
        let x = Around { at: x.wrapping_add(t * pitch), places: taps, far: step as isize };
        let g = Even { at: g.wrapping_add(t * cols * R * V::N), near: V::N, far: (R * V::N) as isize };
        // SAFETY: the caller promises the instructions of `V`, and the weights and positions of the tile.
        unsafe { tile::multiply(cols, x, g, acc) }
    }
}
