//! Distances of all rows of one matrix from all of another. Columns of the second lie beside each other, so that a
//! register holds the distances of one row from several; sums are in `f64`, one coordinate after another, but those of
//! squares of `f32` and narrower.

mod euclid;

use crate::array::Array;
use crate::array::shape::{self, Shape};
use crate::array::view;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::machine::threads::{self, SharedMut};
use crate::ops::elementwise::convert::cast;
use crate::{dispatch, vectorize};

/// Rows of the second matrix whose distances are summed at once.
const WIDTH: usize = 32;
/// Differences that are worth a task of their own.
const GRAIN: usize = 1 << 16;

/// Distances of the rows of `x1` (…, n, d) from those of `x2` (…, m, d) in the `p`-norm: (…, n, m).
pub fn cdist(x1: &Array, x2: &Array, p: f64) -> Result<Array> {
    if !x1.dtype().is_float() || x1.dtype() != x2.dtype() {
        return Err(Error::Rejected("distances are of floats"));
    }
    let (r1, r2) = (x1.rank(), x2.rank());
    if r1 < 2 || r2 < 2 || x1.shape()[r1 - 1] != x2.shape()[r2 - 1] || p.is_nan() || p < 0.0 {
        return Err(Error::Rejected("no rows to compare"));
    }
    let (n, m, d) = (x1.shape()[r1 - 2], x2.shape()[r2 - 2], x1.shape()[r1 - 1]);
    let front = shape::broadcast(&x1.shape()[..r1 - 2], &x2.shape()[..r2 - 2])?;
    let narrow = p == 2.0 && x1.dtype() != DType::F64;
    let computed = if narrow { DType::F32 } else { DType::F64 };
    let rows =
        |x: &Array, count: usize| cast(&view::broadcast_to(x, &joined(&front, [count, d])?)?, computed)?.contiguous();
    let (a, b) = (rows(x1, n)?, rows(x2, m)?);
    let mut out = Array::uninit(x1.dtype(), &joined(&front, [n, m])?)?;
    if out.numel() > 0 && narrow {
        let (a, b) = (a.as_slice::<f32>().expect("dense"), b.as_slice::<f32>().expect("dense"));
        dispatch!(float x1.dtype(), T => euclid::batches(a, b, out.as_mut_slice::<T>(), (n, m, d))?,
            else unreachable!("looked at above"));
    } else if out.numel() > 0 {
        let (a, b) = (a.as_slice::<f64>().expect("dense"), b.as_slice::<f64>().expect("dense"));
        dispatch!(float x1.dtype(), T => batches(a, b, out.as_mut_slice::<T>(), (n, m, d), p),
            else unreachable!("looked at above"));
    }
    Ok(out)
}

fn joined(front: &Shape, last: [usize; 2]) -> Result<Shape> {
    let mut all = *front;
    shape::check_rank(front.len() + 2)?;
    for n in last {
        all.push(n);
    }
    Ok(all)
}

fn batches<T: Element>(a: &[f64], b: &[f64], out: &mut [T], (n, m, d): (usize, usize, usize), p: f64) {
    let norm = Norm::new(p);
    let panels = m.div_ceil(WIDTH);
    let out_at = SharedMut::new(out.as_mut_ptr());
    let jobs = out.len() / (n * m) * panels;
    let together = (GRAIN / (n * d.max(1) * WIDTH)).max(1);
    threads::parallel(jobs.div_ceil(together), &|task| {
        let mut panel = crate::memory::scratch::filled(0.0, d * WIDTH);
        for job in task * together..jobs.min((task + 1) * together) {
            let (batch, first) = (job / panels, job % panels * WIDTH);
            let width = WIDTH.min(m - first);
            for column in 0..width {
                let row = (batch * m + first + column) * d;
                (0..d).for_each(|i| panel[i * WIDTH + column] = b[row + i]);
            }
            for row in 0..n {
                let mut sums = [0.0; WIDTH];
                let start = (batch * n + row) * d;
                norm.sums(&a[start..start + d], &panel, &mut sums);
                let to = (batch * n + row) * m + first;
                // SAFETY: `width` columns of a row of the result; each job has its own columns.
                let out = unsafe { out_at.slice(to..to + width) };
                out.iter_mut().zip(sums).for_each(|(out, sum)| *out = T::from_f64(norm.of(sum)));
            }
        }
    });
}

/// A norm by its number.
enum Norm {
    Count,
    Sum,
    Euclid,
    Most,
    Power(f64),
}

impl Norm {
    fn new(p: f64) -> Self {
        match p {
            0.0 => Self::Count,
            1.0 => Self::Sum,
            2.0 => Self::Euclid,
            f64::INFINITY => Self::Most,
            p => Self::Power(p),
        }
    }

    /// What the differences of a row from the columns of a panel sum up to.
    fn sums(&self, row: &[f64], panel: &[f64], sums: &mut [f64; WIDTH]) {
        match *self {
            Self::Count => counts(row, panel, sums),
            Self::Sum => absolutes(row, panel, sums),
            Self::Euclid => squares(row, panel, sums),
            Self::Most => largest(row, panel, sums),
            Self::Power(p) => fold(row, panel, sums, |sum, gap| sum + gap.abs().powf(p)),
        }
    }

    /// The distance of a sum.
    fn of(&self, sum: f64) -> f64 {
        match *self {
            Self::Euclid => sum.sqrt(),
            Self::Power(p) => sum.powf(1.0 / p),
            Self::Count | Self::Sum | Self::Most => sum,
        }
    }
}

#[inline(always)]
fn fold(row: &[f64], panel: &[f64], sums: &mut [f64; WIDTH], step: impl Fn(f64, f64) -> f64) {
    let mut local = *sums;
    for (&x, line) in row.iter().zip(panel.as_chunks::<WIDTH>().0) {
        for (sum, &y) in local.iter_mut().zip(line) {
            *sum = step(*sum, x - y);
        }
    }
    *sums = local;
}

#[inline(always)]
fn counts_body(row: &[f64], panel: &[f64], sums: &mut [f64; WIDTH]) {
    fold(row, panel, sums, |sum, gap| sum + f64::from(u8::from(gap != 0.0)));
}

#[inline(always)]
fn absolutes_body(row: &[f64], panel: &[f64], sums: &mut [f64; WIDTH]) {
    fold(row, panel, sums, |sum, gap| sum + gap.abs());
}

#[inline(always)]
fn squares_body(row: &[f64], panel: &[f64], sums: &mut [f64; WIDTH]) {
    fold(row, panel, sums, |sum, gap| sum + gap * gap);
}

#[inline(always)]
fn largest_body(row: &[f64], panel: &[f64], sums: &mut [f64; WIDTH]) {
    fold(row, panel, sums, |most, gap| if gap.abs() <= most || most.is_nan() { most } else { gap.abs() });
}

vectorize!(counts(row: &[f64], panel: &[f64], sums: &mut [f64; WIDTH]) => counts_body);
vectorize!(absolutes(row: &[f64], panel: &[f64], sums: &mut [f64; WIDTH]) => absolutes_body);
vectorize!(squares(row: &[f64], panel: &[f64], sums: &mut [f64; WIDTH]) => squares_body);
vectorize!(largest(row: &[f64], panel: &[f64], sums: &mut [f64; WIDTH]) => largest_body);

#[cfg(test)]
mod tests;
