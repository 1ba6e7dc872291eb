//! The nearest pixel, or the four around a place, found and read in registers: what is written on the way to the results is a
//! list of numbers of pixels.

use super::taps::{Axis, Margin, Place, together};
use crate::machine::lanes::{Kernel, Lanes};

/// Pixels of an axis up to which a float holds each number.
pub const EXACT: usize = 1 << 24;

/// All channels of some places, from planes of (C, H, W), which have [`EXACT`] rows and columns at most; places outside are not
/// reflected. `K` is 1 or 4.
pub struct Direct<'a, T, const K: usize> {
    pub image: &'a [T],
    /// Pairs of column and row.
    pub grid: &'a [T],
    /// Along rows, and down.
    pub axes: [Axis; 2],
    pub channels: usize,
    /// The first place in the first channel of the result.
    pub to: *mut T,
    /// Elements from channel to channel of the result.
    pub pitch: usize,
}

/// The pixels that the places of a register read.
enum Found {
    /// The numbers of the first, which are all there, as are those behind and below them; or -1 where no others are read.
    Inside([i32; 16]),
    /// The numbers of each, or -1.
    Some([[i32; 16]; 4]),
}

impl<T: Place, const K: usize> Kernel<T> for Direct<'_, T, K> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let Self { image, grid, axes: [across, down], channels, to, pitch } = self;
        let (count, plane) = (grid.len() / 2, image.len() / channels);
        assert!(across.n.max(down.n) <= EXACT && plane == across.n * down.n, "planes of these axes");
        for first in (0..count).step_by(V::N) {
            let some = V::N.min(count - first);
            // SAFETY: the machine has the instructions, as the caller promises; the places are there, and behind the last are
            // those of a middle; numbers are of pixels, which lie in each plane; the room in the result is the task's.
            let (here, behind) = (V::N.min(2 * some), (2 * some).saturating_sub(V::N));
            let at = grid.as_ptr().add(2 * first);
            let (x, y) = V::deinterleave(V::load_some(at, here), V::load_some(at.wrapping_add(here), behind));
            let (x, y) = (spread::<T, V>(&across, x), spread::<T, V>(&down, y));
            let (column, row) = if K == 1 { (x.round(), y.round()) } else { (x.floor(), y.floor()) };
            let found = found::<T, V, K>(&across, &down, column, row);
            let weights = weights(x.sub(column), y.sub(row));
            for channel in 0..channels {
                let from = image.as_ptr().add(channel * plane);
                let out = match &found {
                    Found::Inside(pixels) if K == 1 => V::gather(from, pixels.as_ptr(), V::N),
                    Found::Inside(pixels) => {
                        let (p, q) = V::gather_pairs(from, pixels.as_ptr());
                        let (r, s) = V::gather_pairs(from.add(down.step), pixels.as_ptr());
                        sum([p, q, r, s], weights)
                    }
                    Found::Some([p, q, r, s]) => {
                        let (p, q) = (V::gather(from, p.as_ptr(), V::N), V::gather(from, q.as_ptr(), V::N));
                        let (r, s) = (V::gather(from, r.as_ptr(), V::N), V::gather(from, s.as_ptr(), V::N));
                        sum([p, q, r, s], weights)
                    }
                };
                out.store_some(to.add(channel * pitch + first), some);
            }
        }
    }
}

/// From places between -1 and 1 to where they lie among the pixels, as by [`Axis`].
///
/// # Safety
/// The machine has the instructions.
#[inline(always)]
unsafe fn spread<T: Place, V: Lanes<Elem = T>>(axis: &Axis, place: V) -> V {
    let (zero, one) = (V::splat(T::default()), V::splat(T::of(1.0)));
    let (half, n) = (V::splat(T::of(0.5)), V::splat(T::of(axis.n as f64)));
    let at = if axis.settings.align_corners {
        place.add(one).mul(V::splat(T::of((axis.n as f64 - 1.0) / 2.0)))
    } else {
        place.add(one).mul(n).sub(one).mul(half)
    };
    if axis.settings.margin != Margin::Border {
        return at;
    }
    // NaN is the first pixel. The lesser is the opposite of the larger of the opposites.
    let (at, most) = (zero.max(at), V::splat(T::of(axis.n as f64 - 1.0)));
    zero.sub(zero.sub(most).max(zero.sub(at)))
}

/// Which pixels are read.
///
/// # Safety
/// The machine has the instructions.
#[inline(always)]
unsafe fn found<T: Place, V: Lanes<Elem = T>, const K: usize>(across: &Axis, down: &Axis, column: V, row: V) -> Found {
    let (mut lists, step) = ([[0; 16]; 4], down.step as i32);
    // SAFETY: no register has more than 16 lanes.
    let (right, bottom) = (last::<T, V>(across), last::<T, V>(down));
    let [mut columns, mut rows] = [[0; 16]; 2];
    column.store_inside(right, columns.as_mut_ptr());
    row.store_inside(bottom, rows.as_mut_ptr());
    let list = |rows: &[i32; 16], columns: &[i32; 16], list: &mut [i32; 16]| {
        (0..16).for_each(|i| list[i] = together(rows[i], columns[i], step));
    };
    list(&rows, &columns, &mut lists[0]);
    if K == 1 || (inside::<T, V>(across, column) && inside::<T, V>(down, row)) {
        return Found::Inside(lists[0]);
    }
    let one = V::splat(T::of(1.0));
    let [mut next_columns, mut next_rows] = [[0; 16]; 2];
    column.add(one).store_inside(right, next_columns.as_mut_ptr());
    row.add(one).store_inside(bottom, next_rows.as_mut_ptr());
    list(&rows, &next_columns, &mut lists[1]);
    list(&next_rows, &columns, &mut lists[2]);
    list(&next_rows, &next_columns, &mut lists[3]);
    Found::Some(lists)
}

/// # Safety
/// The machine has the instructions.
#[inline(always)]
unsafe fn last<T: Place, V: Lanes<Elem = T>>(axis: &Axis) -> V {
    V::splat(T::of(axis.n as f64 - 1.0))
}

/// Whether all of these pixels of an axis are there, and those behind them.
///
/// # Safety
/// The machine has the instructions.
#[inline(always)]
unsafe fn inside<T: Place, V: Lanes<Elem = T>>(axis: &Axis, pixels: V) -> bool {
    pixels.all_between(V::splat(T::default()), V::splat(T::of(axis.n as f64 - 2.0)))
}

/// Of four pixels, by what a place is behind and below the first.
///
/// # Safety
/// The machine has the instructions.
#[inline(always)]
unsafe fn weights<V: Lanes<Elem: Place>>(behind: V, below: V) -> [V; 4] {
    let one = V::splat(V::Elem::of(1.0));
    let (before, above) = (one.sub(behind), one.sub(below));
    [above.mul(before), above.mul(behind), below.mul(before), below.mul(behind)]
}

/// # Safety
/// The machine has the instructions.
#[inline(always)]
unsafe fn sum<V: Lanes>([p, q, r, s]: [V; 4], [a, b, c, d]: [V; 4]) -> V {
    s.mul_add(d, r.mul_add(c, q.mul_add(b, p.mul(a))))
}
