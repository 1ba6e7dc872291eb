//! The inner loops of the forward pass by tiles: lanes are neighboring tiles.

#![expect(clippy::needless_range_loop, reason = "counted loops over a tile are unrolled into registers")]

use super::super::panel::Segments;
use super::{PAD, POINTS, ROWS};
use crate::dtype::Element;
use crate::machine::lanes::Lanes;
use crate::machine::tile::{self, Even};

/// A row of the points `B' d B` of every channel and tile: `panel[point][channel][tile]`.
///
/// # Safety
/// As for [`super::super::panel::pack`], for 16 offsets per channel.
#[inline(always)]
pub unsafe fn transform<V: Lanes, const Q: usize>(
    segments: &Segments,
    offsets: &[usize],
    line: usize,
    band: *const V::Elem,
    panel: *mut V::Elem,
) {
    let width = Q * V::N;
    let step = offsets.len() / POINTS * width + PAD;
    // d0 - d2, d1 + d2, d2 - d1, d1 - d3.
    let (plus, other, sign) = [(0, 2, -1), (1, 2, 1), (2, 1, -1), (1, 3, -1)][line];
    let sign = V::splat(V::Elem::from_i64(sign));
    for segment in segments.slice() {
        for v in (0..segment.len).step_by(V::N) {
            let count = (width - segment.at - v).min(V::N);
            let from = band.wrapping_add(segment.from + v);
            let mut to = panel.wrapping_add(segment.at + v);
            for offsets in offsets.as_chunks::<POINTS>().0 {
                // SAFETY: the caller promises the instructions of `V`, and sources, products and results of whole
                // tiles; a partial store ends with the row.
                let mut d = [sign; 4];
                for i in 0..4 {
                    let other = V::load(from.add(offsets[4 * other + i]));
                    d[i] = other.mul_add(sign, V::load(from.add(offsets[4 * plus + i])));
                }
                let line = [d[0].sub(d[2]), d[1].add(d[2]), d[2].sub(d[1]), d[1].sub(d[3])];
                for i in 0..4 {
                    line[i].store_some(to.add(i * step), count);
                }
                to = to.wrapping_add(width);
            }
        }
    }
}

/// `to[m][q] = sum over c of weights[c][m] * source[c][q]`.
///
/// # Safety
/// The sizes are those of the loops; the machine has the instructions of `V`.
#[inline(always)]
pub unsafe fn product<V: Lanes, const M: usize, const Q: usize>(
    channels: usize,
    weights: *const V::Elem,
    source: *const V::Elem,
    to: *mut V::Elem,
) {
    let mut acc = [[V::splat(V::Elem::default()); Q]; M];
    let weights = Even { at: weights, near: 1, far: ROWS as isize };
    let source = Even { at: source, near: V::N, far: (Q * V::N) as isize };
    tile::multiply(channels, weights, source, &mut acc);
    for m in 0..M {
        for q in 0..Q {
            acc[m][q].store(to.add((m * Q + q) * V::N));
        }
    }
}

/// `A' m A + bias` of every output channel and tile: `tile[row][channel][column]`.
///
/// # Safety
/// As for [`product`].
#[inline(always)]
pub unsafe fn results<V: Lanes, const Q: usize>(products: *const V::Elem, bias: &[V::Elem; ROWS], tile: *mut V::Elem) {
    let width = Q * V::N;
    for (m, &bias) in bias.iter().enumerate() {
        for q in 0..Q {
            // SAFETY: the caller promises the instructions of `V`, and sources, products and results of whole tiles.
            let at = products.add(m * width + q * V::N);
            let mut lines = [[V::splat(bias); 4]; 2];
            for j in 0..4 {
                let column = at.add(j * ROWS * width);
                let row = 4 * ROWS * width;
                let (a, b) = (V::load(column), V::load(column.add(row)));
                let (c, d) = (V::load(column.add(2 * row)), V::load(column.add(3 * row)));
                (lines[0][j], lines[1][j]) = (a.add(b).add(c), b.sub(c).sub(d));
            }
            for row in 0..2 {
                let [a, b, c, d] = lines[row];
                let start = V::splat(bias);
                let (left, right) = V::interleave(a.add(b).add(c).add(start), b.sub(c).sub(d).add(start));
                let to = tile.add((row * ROWS + m) * 2 * width + 2 * q * V::N);
                left.store(to);
                right.store(to.add(V::N));
            }
        }
    }
}
