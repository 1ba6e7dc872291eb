//! The transforms of tiles, as rows of four points.

#![expect(clippy::needless_range_loop, reason = "counted loops over a tile are unrolled into registers")]

use crate::dtype::Element;
use crate::machine::lanes::Lanes;

/// A row of `B' d B`.
///
/// # Safety
/// `from` is the corner of a window of 4 x 4; the machine has the instructions of `V`.
#[inline(always)]
pub unsafe fn source_points<V: Lanes>(line: usize, from: *const V::Elem, (row, col): (usize, usize)) -> [V; 4] {
    // d0 - d2, d1 + d2, d2 - d1, d1 - d3.
    let (plus, other, sign) = [(0, 2, -1), (1, 2, 1), (2, 1, -1), (1, 3, -1)][line];
    let sign = V::splat(V::Elem::from_i64(sign));
    let mut d = [sign; 4];
    for i in 0..4 {
        let other = V::load(from.add(other * row + i * col));
        d[i] = other.mul_add(sign, V::load(from.add(plus * row + i * col)));
    }
    [d[0].sub(d[2]), d[1].add(d[2]), d[2].sub(d[1]), d[1].sub(d[3])]
}

/// A row of `A g A'`.
///
/// # Safety
/// `from` is the corner of a tile of 2 x 2; the machine has the instructions of `V`.
#[inline(always)]
pub unsafe fn gradient_points<V: Lanes>(line: usize, from: *const V::Elem, (row, col): (usize, usize)) -> [V; 4] {
    // g0, g0 + g1, g0 - g1, -g1.
    let (plus, other) = [(1, 0), (1, 1), (1, -1), (0, -1)][line];
    let (plus, other) = (V::splat(V::Elem::from_i64(plus)), V::splat(V::Elem::from_i64(other)));
    let a = V::load(from.add(row)).mul_add(other, V::load(from).mul(plus));
    let b = V::load(from.add(row + col)).mul_add(other, V::load(from.add(col)).mul(plus));
    [a, a.add(b), a.sub(b), V::splat(V::Elem::default()).sub(b)]
}

/// `G g`: three taps to four points.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub unsafe fn points<V: Lanes>([a, b, c]: [V; 3], half: V) -> [V; 4] {
    let (ends, middle) = (a.add(c).mul(half), b.mul(half));
    [a, ends.add(middle), ends.sub(middle), c]
}

/// `G' m`: four points to three taps.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub unsafe fn taps<V: Lanes>([a, b, c, d]: [V; 4], half: V) -> [V; 3] {
    let (sum, difference) = (b.add(c).mul(half), b.sub(c).mul(half));
    [a.add(sum), difference, sum.add(d)]
}
