//! Results that see one channel each, as in depthwise kernels. A plane is copied into a band ([`super::band`]); tiles
//! of [`ROWS`] rows by one register of columns stay in registers, and so do the weights of a column of the kernel: a row of
//! the band is read once for all result rows that it reaches.

#![expect(clippy::needless_range_loop, reason = "counted loops over a tile are unrolled into registers")]

use super::axis::Axis;
use super::band::{Layout, Plane};
use super::{Correlation, rows};
use crate::machine::lanes::{Kernel, Lanes, Real, launch};
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::{collected, with_scratch};

/// Bytes of a band: a fraction of the second-level cache.
const BAND_BYTES: usize = 128 << 10;
/// Tasks to aim for, at least: each computes whole results.
const TASKS: usize = 32;
/// Results that a task is worth.
const WORK: usize = 1 << 14;
/// Result rows of a tile.
const ROWS: usize = 7;
/// Result rows of a tile where [`ROWS`] waste more.
const FEW: usize = 4;

/// Most rows of a [`Run`].
const MOST: usize = 5;

/// Rows of the kernel that read neighboring rows of the band.
struct Run {
    /// Where the first reads, for result row 0.
    at: usize,
    count: usize,
    /// Where their weights start.
    weights: [usize; MOST],
}

struct Plan<'a, T> {
    call: &'a Correlation<'a, T>,
    out: SharedMut<T>,
    layout: Layout,
    runs: Vec<Run>,
    /// Where the columns of the kernel read, and their weights.
    cols: Vec<(usize, usize)>,
    row_tiles: usize,
    col_tiles: usize,
    /// Planes of a task.
    bundle: usize,
}

/// True when this is the way to compute it.
pub fn applies<T>(call: &Correlation<'_, T>) -> bool {
    call.channels == 1
}

/// Runs the correlation, writing the results at the places that the axes name.
///
/// # Safety
/// `out` holds `batch * groups * outputs * out_size` elements that nobody else touches; no size is 0.
pub unsafe fn run<T: Real>(call: &Correlation<'_, T>, out: SharedMut<T>) {
    let (row_axis, col_axis) = (call.row_axis, call.col_axis);
    let planes = call.batch * call.groups;
    let wanted = threads::tasks(TASKS);
    let tiles = wanted.div_ceil(planes).min(row_axis.count.div_ceil(2 * ROWS));
    let layout = Layout::fit(row_axis, col_axis, 1, BAND_BYTES / size_of::<T>(), tiles);
    let runs = runs(row_axis, &layout, call.weight.kernel_cols);
    let col = |tap: &super::axis::Tap| (tap.slot * layout.col_extent + tap.shift, tap.index);
    let cols = collected(col_axis.taps.iter().map(col));
    let (row_tiles, col_tiles) = (row_axis.count.div_ceil(layout.rows), col_axis.count.div_ceil(layout.cols));
    let work = row_axis.count * col_axis.count * call.outputs;
    let bundle = if row_tiles * col_tiles > 1 { 1 } else { (WORK / work).clamp(1, planes.div_ceil(wanted)) };
    let plan = Plan { call, out, layout, runs, cols, row_tiles, col_tiles, bundle };
    let len = plan.layout.len(1);
    threads::parallel(planes.div_ceil(bundle) * row_tiles * col_tiles, &|index| {
        with_scratch(len, |band| launch(Task { plan: &plan, band, index }));
    });
}

/// Rows of the kernel, those together that read neighboring rows.
fn runs(axis: &Axis, layout: &Layout, kernel_cols: usize) -> Vec<Run> {
    let mut taps = collected(axis.taps.iter().map(|tap| (tap.slot, tap.shift, tap.index * kernel_cols)));
    taps.sort_unstable();
    let mut runs = Vec::new();
    let mut rest = &taps[..];
    while let Some(&(slot, shift, _)) = rest.first() {
        let follows = |&(i, tap): &(usize, &(usize, usize, usize))| tap.0 == slot && tap.1 == shift + i;
        let count = match rest.iter().enumerate().take_while(follows).count() {
            // More than five rows of weights are not unrolled well.
            count @ 0..=5 => count,
            6 => 3,
            7 => 4,
            _ => MOST,
        };
        let mut weights = [0; MOST];
        weights.iter_mut().zip(&rest[..count]).for_each(|(to, tap)| *to = tap.2);
        runs.push(Run { at: (slot * layout.row_extent + shift) * layout.pitch, count, weights });
        rest = &rest[count..];
    }
    runs
}

struct Task<'a, T> {
    plan: &'a Plan<'a, T>,
    band: &'a mut [T],
    index: usize,
}

/// Part of a plane.
#[derive(Clone, Copy)]
struct Place {
    plane: usize,
    first: (usize, usize),
    rows: usize,
    cols: usize,
}

impl<T: Real> Kernel<T> for Task<'_, T> {
    const BASELINE: bool = false;
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let Task { plan, band, index } = self;
        let (call, layout) = (plan.call, &plan.layout);
        let (index, col_tile) = (index / plan.col_tiles, index % plan.col_tiles);
        let (bundle, row_tile) = (index / plan.row_tiles, index % plan.row_tiles);
        let first = (row_tile * layout.rows, col_tile * layout.cols);
        let (rows, cols) =
            (layout.rows.min(call.row_axis.count - first.0), layout.cols.min(call.col_axis.count - first.1));
        // One tile per plane: the padding is the same for all.
        let whole = plan.row_tiles * plan.col_tiles == 1;
        if whole {
            band.fill(T::default());
        }
        let end = ((bundle + 1) * plan.bundle).min(call.batch * call.groups);
        for plane in bundle * plan.bundle..end {
            let size = call.source_size;
            let place = Place { plane, first, rows, cols };
            // SAFETY: the plane lies inside the source, the band has room for it, and the results belong to this task.
            let at = call.source.as_ptr().add(plane * size.0 * size.1);
            let source = Plane { at, rows: size.0, cols: size.1 };
            if whole {
                layout.refill::<V>((call.row_axis, call.col_axis), source, band.as_mut_ptr());
            } else {
                layout.fill::<V>((call.row_axis, call.col_axis), first, source, band.as_mut_ptr());
            }
            for output in 0..call.outputs {
                plan.plane::<V>(&place, output, band.as_ptr());
            }
        }
    }
}

impl<T: Real> Plan<'_, T> {
    /// One output channel of a place.
    #[inline(always)]
    unsafe fn plane<V: Lanes<Elem = T>>(&self, place: &Place, output: usize, band: *const T) {
        let padded = |rows: usize| place.rows.next_multiple_of(rows);
        // Groups end at its last row.
        if place.rows >= ROWS && padded(ROWS) * 8 <= padded(FEW) * 9 {
            self.tiles::<V, ROWS>(place, output, band);
        } else if place.rows >= FEW {
            self.tiles::<V, FEW>(place, output, band);
        } else {
            self.tiles::<V, 1>(place, output, band);
        }
    }

    /// Tiles of `R` rows, of which the last may compute some again.
    #[inline(always)]
    unsafe fn tiles<V: Lanes<Elem = T>, const R: usize>(&self, place: &Place, output: usize, band: *const T) {
        let (call, pitch) = (self.call, self.layout.pitch);
        let group = place.plane % call.groups;
        let bias = call.bias.map_or(T::default(), |bias| bias[group * call.outputs + output]);
        let weights = call.weight.data.as_ptr().wrapping_add(group * call.weight.group + output * call.weight.output);
        let (row_axis, col_axis) = (call.row_axis, call.col_axis);
        let mut next = 0;
        while next < place.rows {
            let t = next.min(place.rows - R);
            next = t + R;
            let line = (place.plane * call.outputs + output) * call.out_size.0;
            let row = line + row_axis.out_start + (place.first.0 + t) * row_axis.out_step;
            for u in (0..place.cols).step_by(V::N) {
                // SAFETY: taps stay inside the band and its slack; the results belong to this task.
                let mut acc = [V::splat(bias); R];
                for run in &self.runs {
                    let from = band.add(run.at + t * pitch + u);
                    match run.count {
                        1 => walk::<V, R, 1>(from, pitch, &self.cols, weights, &run.weights, &mut acc),
                        2 => walk::<V, R, 2>(from, pitch, &self.cols, weights, &run.weights, &mut acc),
                        3 => walk::<V, R, 3>(from, pitch, &self.cols, weights, &run.weights, &mut acc),
                        4 => walk::<V, R, 4>(from, pitch, &self.cols, weights, &run.weights, &mut acc),
                        _ => walk::<V, R, MOST>(from, pitch, &self.cols, weights, &run.weights, &mut acc),
                    }
                }
                let col = col_axis.out_start + (place.first.1 + u) * col_axis.out_step;
                let count = (place.cols - u).min(V::N);
                for r in 0..R {
                    let to = self.out.ptr().add((row + r * row_axis.out_step) * call.out_size.1 + col);
                    rows::put(acc[r], to, count, col_axis.out_step);
                }
            }
        }
    }
}

/// `acc[r] += sum over k < K and columns of weights[k][column] * from[(r + k) * pitch + column]`.
///
/// # Safety
/// The band holds every row and column read, and the weights every tap; the machine has the instructions of `V`.
#[inline(always)]
unsafe fn walk<V: Lanes, const R: usize, const K: usize>(
    from: *const V::Elem,
    pitch: usize,
    cols: &[(usize, usize)],
    weights: *const V::Elem,
    rows: &[usize; MOST],
    acc: &mut [V; R],
) {
    let mut kept = *acc;
    for &(col, at) in cols {
        // SAFETY: the band holds each row of a run and its slack.
        let mut factors = [V::splat(V::Elem::default()); K];
        for k in 0..K {
            factors[k] = V::splat(*weights.add(rows[k] + at));
        }
        for j in 0..R + K - 1 {
            let value = V::load(from.add(j * pitch + col));
            for k in 0..K {
                if k <= j && j - k < R {
                    kept[j - k] = value.mul_add(factors[k], kept[j - k]);
                }
            }
        }
    }
    *acc = kept;
}
