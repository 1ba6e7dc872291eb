//! The inner loop of the weight gradient whose lanes are output channels: the source is read one scalar at a time and
//! broadcast, so any stride, dilation and width costs the same.

#![expect(clippy::needless_range_loop, reason = "counted loops over a tile are unrolled into registers")]

use crate::machine::lanes::Lanes;

/// `acc[j][r] += sum over positions p of g[p][r] * x[p + taps[j]]`, over `rows x cols` positions; from row to row and
/// from position to position `x` moves by `pitch` and `step`.
///
/// # Safety
/// `g` holds `rows * cols` rows of `R` registers, `x` every position read; the machine has the instructions of `V`.
#[inline(always)]
pub unsafe fn gradient<V: Lanes, const J: usize, const R: usize>(
    ((rows, cols), (pitch, step)): ((usize, usize), (usize, usize)),
    mut g: *const V::Elem,
    x: *const V::Elem,
    taps: &[usize; J],
    acc: &mut [[V; R]; J],
) {
    for t in 0..rows {
        for u in 0..cols {
            let mut row = [V::splat(V::Elem::default()); R];
            for r in 0..R {
                row[r] = V::load(g.add(r * V::N));
            }
            let at = x.add(t * pitch + u * step);
            for j in 0..J {
                let value = V::splat(*at.add(taps[j]));
                for r in 0..R {
                    acc[j][r] = row[r].mul_add(value, acc[j][r]);
                }
            }
            g = g.add(R * V::N);
        }
    }
}
