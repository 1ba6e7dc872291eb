//! Mean pools.

use super::{Pool, PoolAxis};
use crate::machine::lanes::Real;
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::{collected, filled};
use crate::vectorize;
use std::ops::Range;

/// Source elements per task.
const TASK: usize = 1 << 15;

/// Calls `work` with ranges of planes, in parallel.
fn for_planes(pool: &Pool, work: &(dyn Fn(Range<usize>) + Sync)) {
    let plane = (pool.row.input * pool.col.input).max(pool.row.output * pool.col.output).max(1);
    let (count, together) = (pool.planes(), TASK / plane + 1);
    threads::parallel(count.div_ceil(together), &|task| work(task * together..count.min((task + 1) * together)));
}

/// The reciprocal is not used: a division rounds once.
fn divisors<T: Real>(axis: &PoolAxis, include_pad: bool) -> Vec<T> {
    collected((0..axis.output).map(|at| T::from_i64(axis.count(at, include_pad) as i64)))
}

/// Writes all of `out`.
pub fn forward<T: Real>(pool: &Pool, x: &[T], include_pad: bool, out: &mut [T]) {
    let (size, results) = (pool.row.input * pool.col.input, pool.row.output * pool.col.output);
    let by = [divisors::<T>(&pool.row, include_pad), divisors::<T>(&pool.col, include_pad)];
    let to = SharedMut::new(out.as_mut_ptr());
    for_planes(pool, &|range| {
        let mut sums = filled(T::default(), pool.col.input);
        for plane in range {
            let source = &x[plane * size..(plane + 1) * size];
            // SAFETY: each plane has one task.
            let part = unsafe { to.slice(plane * results..(plane + 1) * results) };
            forward_plane(pool, [&by[0], &by[1]], source, &mut sums, part);
        }
    });
}

vectorize!(
    forward_plane[T: Real](pool: &Pool, by: [&[T]; 2], source: &[T], sums: &mut [T], out: &mut [T])
        => forward_plane_body::<T>, wide T::WIDE
);

#[inline(always)]
fn forward_plane_body<T: Real>(pool: &Pool, by: [&[T]; 2], source: &[T], sums: &mut [T], out: &mut [T]) {
    let interior = pool.col.interior();
    for (at, line) in out.chunks_exact_mut(pool.col.output).enumerate() {
        // Down the rows of the window for every column, then along the columns.
        sums.fill(T::default());
        for tap in pool.row.taps(at) {
            add(sums, &source[pool.row.position(at, tap) * pool.col.input..][..pool.col.input]);
        }
        for at in (0..interior.start).chain(interior.end..pool.col.output) {
            line[at] = pool.col.taps(at).fold(T::default(), |sum, tap| sum + sums[pool.col.position(at, tap)]);
        }
        let inside = &mut line[interior.clone()];
        inside.fill(T::default());
        for tap in 0..pool.col.kernel * usize::from(!inside.is_empty()) {
            let from = &sums[pool.col.position(interior.start, tap)..];
            match pool.col.stride {
                1 => add_strided(inside, from, 1),
                2 => add_strided(inside, from, 2),
                stride => add_strided(inside, from, stride),
            }
        }
        for (slot, &cols) in line.iter_mut().zip(by[1]) {
            *slot = *slot / (by[0][at] * cols);
        }
    }
}

#[inline(always)]
fn add<T: Real>(sums: &mut [T], other: &[T]) {
    for (sum, &value) in sums.iter_mut().zip(other) {
        *sum = *sum + value;
    }
}

#[inline(always)]
fn add_strided<T: Real>(sums: &mut [T], from: &[T], stride: usize) {
    let from = &from[..=sums.len().saturating_sub(1) * stride];
    for (i, sum) in sums.iter_mut().enumerate() {
        *sum = *sum + from[i * stride];
    }
}

/// Writes all of `out`.
pub fn backward<T: Real>(pool: &Pool, g: &[T], include_pad: bool, out: &mut [T]) {
    let (size, results) = (pool.row.input * pool.col.input, pool.row.output * pool.col.output);
    let by = [divisors::<T>(&pool.row, include_pad), divisors::<T>(&pool.col, include_pad)];
    let to = SharedMut::new(out.as_mut_ptr());
    for_planes(pool, &|range| {
        let mut scratch = filled(T::default(), pool.col.input + pool.col.output);
        for plane in range {
            // SAFETY: each plane has one task.
            let part = unsafe { to.slice(plane * size..(plane + 1) * size) };
            let source = &g[plane * results..(plane + 1) * results];
            backward_plane(pool, [&by[0], &by[1]], source, &mut scratch, part);
        }
    });
}

vectorize!(
    backward_plane[T: Real](pool: &Pool, by: [&[T]; 2], g: &[T], scratch: &mut [T], out: &mut [T])
        => backward_plane_body::<T>, wide T::WIDE
);

#[inline(always)]
fn backward_plane_body<T: Real>(pool: &Pool, by: [&[T]; 2], g: &[T], scratch: &mut [T], out: &mut [T]) {
    let interior = pool.col.interior();
    let (shares, columns) = scratch.split_at_mut(pool.col.output);
    out.fill(T::default());
    for (at, line) in g.chunks_exact(pool.col.output).enumerate() {
        for ((share, &value), &cols) in shares.iter_mut().zip(line).zip(by[1]) {
            *share = value / (by[0][at] * cols);
        }
        // What each column gets from this row of windows.
        columns.fill(T::default());
        for at in (0..interior.start).chain(interior.end..pool.col.output) {
            for tap in pool.col.taps(at) {
                let slot = &mut columns[pool.col.position(at, tap)];
                *slot = *slot + shares[at];
            }
        }
        for tap in 0..pool.col.kernel * usize::from(!interior.is_empty()) {
            let to = columns[pool.col.position(interior.start, tap)..].iter_mut().step_by(pool.col.stride);
            for (slot, &share) in to.zip(&shares[interior.clone()]) {
                *slot = *slot + share;
            }
        }
        for tap in pool.row.taps(at) {
            add(&mut out[pool.row.position(at, tap) * pool.col.input..][..pool.col.input], columns);
        }
    }
}
