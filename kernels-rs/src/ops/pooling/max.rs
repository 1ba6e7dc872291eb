//! Maximum pools.

use super::halve::Halve;
use super::row::{Folder, larger, larger_with_indices};
use super::{Pool, PoolAxis};
use crate::array::float::{RowElement, Wide};
use crate::array::number::Ordered;
use crate::error::{Error, Result};
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::{filled, with_scratch};
use crate::vectorize;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// Source elements per task.
const TASK: usize = 1 << 15;

/// Tasks of a pool: bands of output rows of one plane, or several planes.
struct Cut {
    planes: usize,
    bands: usize,
    band_rows: usize,
}

impl Cut {
    fn new(pool: &Pool) -> Self {
        let plane = (pool.row.input * pool.col.input).max(pool.row.output * pool.col.output).max(1);
        let bands = (plane / TASK).clamp(1, pool.row.output.max(1));
        let band_rows = pool.row.output.div_ceil(bands).max(1);
        Self { planes: (TASK / plane).max(1), bands: pool.row.output.div_ceil(band_rows), band_rows }
    }

    /// Calls `work(plane, first output row, end)` for all bands, in parallel.
    fn run(&self, pool: &Pool, work: &(dyn Fn(usize, usize, usize) + Sync)) {
        let groups = pool.planes().div_ceil(self.planes);
        let all = |index: usize| {
            let (group, band) = (index / self.bands, index % self.bands);
            let first = band * self.band_rows;
            for plane in group * self.planes..((group + 1) * self.planes).min(pool.planes()) {
                work(plane, first, (first + self.band_rows).min(pool.row.output));
            }
        };
        if pool.planes() * self.bands <= self.planes {
            (0..groups * self.bands).for_each(all);
        } else {
            threads::parallel(groups * self.bands, &all);
        }
    }
}

/// True for the pool of 2 x 2 squares side by side.
fn halves(pool: &Pool) -> bool {
    let plain = |axis: &PoolAxis| {
        axis.kernel == 2 && axis.stride == 2 && axis.dilation == 1 && axis.pad.0 == 0 && axis.output * 2 <= axis.input
    };
    plain(&pool.row) && plain(&pool.col)
}

/// Writes all of `out`, and of `places` where they are wanted.
pub fn run<T: Halve>(pool: &Pool, x: &[T], out: &mut [T], places: Option<&mut [i64]>) {
    if out.is_empty() {
        return;
    }
    let (rows, cols) = (pool.row.input, pool.col.input);
    let to = SharedMut::new(out.as_mut_ptr());
    let to_places = places.map(|places| SharedMut::new(places.as_mut_ptr()));
    let direct = halves(pool);
    Cut::new(pool).run(pool, &|plane, first, end| {
        let source = &x[plane * rows * cols..(plane + 1) * rows * cols];
        let range = [first, end].map(|row| (plane * pool.row.output + row) * pool.col.output);
        // SAFETY: each task owns its rows of the results.
        let part = unsafe { to.slice(range[0]..range[1]) };
        // SAFETY: as above.
        let places = to_places.map(|places| unsafe { places.slice(range[0]..range[1]) });
        if direct {
            let start = 2 * first * cols;
            let places = places.map(|places| (places, start as i32));
            return T::halve(&source[start..2 * end * cols], cols, part, places);
        }
        let band = Band::new(pool, first, end);
        match places {
            None => band_values(&band, pool, source, part),
            Some(places) => band_with_indices(&band, pool, source, part, places),
        }
    });
}

/// Output rows `first..end` of a plane, and the source rows that they read.
struct Band {
    first: usize,
    end: usize,
    /// First source row and how many.
    rows: (usize, usize),
}

impl Band {
    fn new(pool: &Pool, first: usize, end: usize) -> Self {
        let positions = |at: usize| pool.row.taps(at).map(move |tap| pool.row.position(at, tap));
        let low = (first..end).filter_map(|at| positions(at).next()).min().unwrap_or(0);
        let high = (first..end).filter_map(|at| positions(at).next_back()).max().map_or(low, |last| last + 1);
        Self { first, end, rows: (low, high - low) }
    }
}

vectorize!(band_values[T: Ordered](band: &Band, pool: &Pool, source: &[T], out: &mut [T]) => band_values_body::<T>, wide T::WIDE, fast T::DTYPE.is_float());

#[inline(always)]
fn band_values_body<T: Ordered>(band: &Band, pool: &Pool, source: &[T], out: &mut [T]) {
    let (width, cols) = (pool.col.output, pool.col.input);
    let mut folder = Folder::new(&pool.col);
    let mut folded = filled(T::LOWEST, band.rows.1 * width);
    let mut clean: Vec<Option<bool>> = filled(None, band.rows.1);
    for (at, line) in (band.first..band.end).zip(out.chunks_exact_mut(width)) {
        if pool.row.kernel == 1
            && let Some(tap) = pool.row.taps(at).next()
        {
            let row = pool.row.position(at, tap) * cols;
            folder.fold(&pool.col, &source[row..row + cols], line);
            continue;
        }
        let mut all_clean = true;
        let mut fresh = true;
        for tap in pool.row.taps(at) {
            let row = pool.row.position(at, tap);
            let slot = row - band.rows.0;
            let part = &mut folded[slot * width..(slot + 1) * width];
            all_clean &=
                *clean[slot].get_or_insert_with(|| folder.fold(&pool.col, &source[row * cols..(row + 1) * cols], part));
            match (std::mem::take(&mut fresh), all_clean) {
                (true, _) => line.copy_from_slice(part),
                (false, true) => larger::<T, true>(line, part),
                (false, false) => larger::<T, false>(line, part),
            }
        }
        if fresh {
            line.fill(T::LOWEST);
        }
    }
}

vectorize!(
    band_with_indices[T: Ordered](
        band: &Band, pool: &Pool, source: &[T], out: &mut [T], places: &mut [i64]
    ) => band_with_indices_body::<T>, wide T::WIDE, fast T::DTYPE.is_float()
);

#[inline(always)]
fn band_with_indices_body<T: Ordered>(band: &Band, pool: &Pool, source: &[T], out: &mut [T], places: &mut [i64]) {
    let (width, cols) = (pool.col.output, pool.col.input);
    let mut folded = filled(T::LOWEST, band.rows.1 * width);
    let mut columns = filled(-1i32, band.rows.1 * width);
    let mut folder = Folder::new(&pool.col);
    let mut clean: Vec<Option<bool>> = filled(None, band.rows.1);
    let mut line_places = filled(0i32, width);
    let lines = out.chunks_exact_mut(width).zip(places.chunks_exact_mut(width));
    for (at, (line, to)) in (band.first..band.end).zip(lines) {
        line.fill(T::LOWEST);
        line_places.fill(-1);
        let mut all_clean = true;
        for tap in pool.row.taps(at) {
            let row = pool.row.position(at, tap);
            let index = row - band.rows.0;
            let slot = index * width..(index + 1) * width;
            let (part, part_columns) = (&mut folded[slot.clone()], &mut columns[slot]);
            if clean[index].is_none() {
                let row = &source[row * cols..(row + 1) * cols];
                clean[index] = Some(folder.fold_with_indices(&pool.col, row, part, part_columns));
            }
            all_clean &= clean[index] == Some(true);
            let start = (row * cols) as i32;
            if all_clean {
                larger_with_indices::<T, true>(line, &mut line_places, part, part_columns, start);
            } else {
                larger_with_indices::<T, false>(line, &mut line_places, part, part_columns, start);
            }
        }
        for (to, &place) in to.iter_mut().zip(&line_places) {
            *to = place as i64;
        }
    }
}

/// Writes all of `out`: planes of zeros of this size, with each element of `g` added at its place.
pub fn backward<T: RowElement>(g: &[T], places: &[i64], (planes, size): (usize, usize), out: &mut [T]) -> Result<()> {
    if planes == 0 {
        return Ok(());
    }
    let windows = g.len() / planes;
    let to = SharedMut::new(out.as_mut_ptr());
    let bad = AtomicI64::new(i64::MIN);
    let one = |plane: usize, buffer: &mut [T::Wide]| {
        let from = g[plane * windows..].iter().zip(&places[plane * windows..(plane + 1) * windows]);
        // SAFETY: each plane has one task.
        let part = unsafe { to.slice(plane * size..(plane + 1) * size) };
        T::write(part, buffer, |sums| {
            sums.fill(T::Wide::ZERO);
            for (&value, &place) in from {
                let at = if place < 0 { place.wrapping_add(size as i64) } else { place } as usize;
                match sums.get_mut(at) {
                    Some(sum) => *sum = *sum + value.widen(),
                    None => bad.store(place, Relaxed),
                }
            }
        });
    };
    let block = (TASK / size.max(windows).max(1)).max(1);
    threads::parallel(planes.div_ceil(block), &|index| {
        with_scratch(T::buffer(size), |buffer: &mut [T::Wide]| {
            (index * block..((index + 1) * block).min(planes)).for_each(|plane| one(plane, buffer));
        });
    });
    match bad.into_inner() {
        i64::MIN => Ok(()),
        index => Err(Error::index("max_pool2d_backward", index, size, 2)),
    }
}
