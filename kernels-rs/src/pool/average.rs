//! Mean pools.

use super::{Pool, PoolAxis};
use crate::lanes::Real;
use crate::threads::{self, SharedMut};
use crate::vectorize;

/// Source elements per task.
const TASK: usize = 1 << 15;

fn grain(pool: &Pool) -> usize {
    TASK / (pool.row.input * pool.col.input).max(pool.row.output * pool.col.output).max(1) + 1
}

/// The reciprocal is not used: a division rounds once.
fn divisors<T: Real>(axis: &PoolAxis, include_pad: bool) -> Vec<T> {
    (0..axis.output).map(|at| T::from_i64(axis.count(at, include_pad) as i64)).collect()
}

/// Writes all of `out`.
pub fn forward<T: Real>(pool: &Pool, x: &[T], include_pad: bool, out: &mut [T]) {
    let (size, width) = (pool.row.input * pool.col.input, pool.col.output);
    let (by_row, by_col) = (divisors::<T>(&pool.row, include_pad), divisors::<T>(&pool.col, include_pad));
    let interior = pool.col.interior();
    let to = SharedMut::new(out.as_mut_ptr());
    threads::for_ranges(pool.planes(), grain(pool), &|range| {
        // The sums down the rows of a window, for every column.
        let mut sums = vec![T::default(); pool.col.input];
        for plane in range {
            let source = &x[plane * size..(plane + 1) * size];
            for at in 0..pool.row.output {
                sums.fill(T::default());
                for tap in pool.row.taps(at) {
                    add(&mut sums, &source[pool.row.position(at, tap) * pool.col.input..][..pool.col.input]);
                }
                let start = (plane * pool.row.output + at) * width;
                // SAFETY: each plane has one task.
                let line = unsafe { to.slice(start..start + width) };
                fold(&pool.col, &interior, &sums, line);
                for (slot, &cols) in line.iter_mut().zip(&by_col) {
                    *slot = *slot / (by_row[at] * cols);
                }
            }
        }
    });
}

/// Sums along the columns.
fn fold<T: Real>(axis: &PoolAxis, interior: &std::ops::Range<usize>, sums: &[T], line: &mut [T]) {
    for at in (0..interior.start).chain(interior.end..axis.output) {
        line[at] = axis.taps(at).fold(T::default(), |sum, tap| sum + sums[axis.position(at, tap)]);
    }
    let line = &mut line[interior.clone()];
    line.fill(T::default());
    for tap in 0..axis.kernel * usize::from(!line.is_empty()) {
        add_strided(line, &sums[axis.position(interior.start, tap)..], axis.stride);
    }
}

/// Writes all of `out`.
pub fn backward<T: Real>(pool: &Pool, g: &[T], include_pad: bool, out: &mut [T]) {
    let (size, width) = (pool.row.input * pool.col.input, pool.col.output);
    let (by_row, by_col) = (divisors::<T>(&pool.row, include_pad), divisors::<T>(&pool.col, include_pad));
    let to = SharedMut::new(out.as_mut_ptr());
    threads::for_ranges(pool.planes(), grain(pool), &|range| {
        // What each column gets from one row of windows.
        let mut shares = vec![T::default(); pool.col.input];
        for plane in range {
            // SAFETY: each plane has one task.
            let part = unsafe { to.slice(plane * size..(plane + 1) * size) };
            part.fill(T::default());
            for at in 0..pool.row.output {
                let line = &g[(plane * pool.row.output + at) * width..][..width];
                shares.fill(T::default());
                for (j, (&value, &cols)) in line.iter().zip(&by_col).enumerate() {
                    let share = value / (by_row[at] * cols);
                    for tap in pool.col.taps(j) {
                        let slot = &mut shares[pool.col.position(j, tap)];
                        *slot = *slot + share;
                    }
                }
                for tap in pool.row.taps(at) {
                    add(&mut part[pool.row.position(at, tap) * pool.col.input..][..pool.col.input], &shares);
                }
            }
        }
    });
}

vectorize!(add[T: Real](sums: &mut [T], other: &[T]) => add_body::<T>);

#[inline(always)]
fn add_body<T: Real>(sums: &mut [T], other: &[T]) {
    for (sum, &value) in sums.iter_mut().zip(other) {
        *sum = *sum + value;
    }
}

vectorize!(add_strided[T: Real](sums: &mut [T], from: &[T], stride: usize) => add_strided_body::<T>);

#[inline(always)]
fn add_strided_body<T: Real>(sums: &mut [T], from: &[T], stride: usize) {
    match stride {
        1 => add_body(sums, from),
        2 => sums.iter_mut().zip(from.iter().step_by(2)).for_each(|(sum, &value)| *sum = *sum + value),
        _ => sums.iter_mut().zip(from.iter().step_by(stride)).for_each(|(sum, &value)| *sum = *sum + value),
    }
}
