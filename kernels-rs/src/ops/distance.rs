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
mod tests {
    use super::*;
    use crate::machine::threads::set_num_threads;
    use crate::ops::samples::{Rng, floats, view_of};

    #[test]
    fn every_norm_type_and_layout_is_as_pair_by_pair() {
        let mut rng = Rng::new(29);
        for round in 0..150 {
            let dtype = [DType::F32, DType::F64, DType::F16, DType::BF16][round % 4];
            let p = [2.0, 1.0, 0.0, f64::INFINITY, 3.0][round % 5];
            let (n, m, d) = (rng.pick(&[0, 1, 2, 7]), rng.pick(&[0, 1, 31, 32, 70]), rng.pick(&[0, 1, 3, 20]));
            let (x1, x2) =
                (view_of(&mut rng, dtype, &[2, 1, n, d], false), view_of(&mut rng, dtype, &[3, m, d], false));
            set_num_threads(1 + round % 3);
            let out = cdist(&x1, &x2, p).unwrap();
            assert_eq!((&out.shape()[..], out.dtype()), (&[2, 3, n, m][..], dtype));
            let (a, b, found) = (floats(&x1), floats(&x2), floats(&out));
            for (at, found) in found.iter().enumerate() {
                let (batch, row, column) = (at / (n * m), at / m % n, at % m);
                let gap = |i: usize| (a[(batch / 3 * n + row) * d + i] - b[(batch % 3 * m + column) * d + i]).abs();
                let gaps = (0..d).map(gap);
                let wanted = match p {
                    0.0 => gaps.filter(|&gap| gap != 0.0).count() as f64,
                    f64::INFINITY => gaps.fold(0.0, f64::max),
                    p => gaps.map(|gap| gap.powf(p)).sum::<f64>().powf(1.0 / p),
                };
                let part = [1e-6, 1e-13, 1e-3, 8e-3][round % 4];
                let inside =
                    (found - wanted).abs() <= part * (1.0 + wanted.abs()) || (wanted > 6e4 && dtype == DType::F16);
                assert!(inside, "{found} for {wanted}");
            }
        }
    }

    #[test]
    fn products_stand_where_nothing_cancels() {
        let mut rng = Rng::new(31);
        for round in 0..12 {
            let dtype = [DType::F32, DType::BF16][round % 2];
            let (n, m, d) = (rng.pick(&[1, 130, 260]), rng.pick(&[3, 257, 300]), rng.pick(&[24, 40, 65]));
            let mut rows = |count: usize| {
                // Some rows, then all of them, are near each other and far from 0.
                let far = rng.pick(&[0, 1, usize::MAX]);
                let x = floats(&view_of(&mut rng, DType::F32, &[count * d], false));
                let values: Vec<f32> = x
                    .iter()
                    .enumerate()
                    .map(|(at, &x)| if at / d % 40 < far { 1e3 + x as f32 } else { x as f32 })
                    .collect();
                cast(&Array::from_slice(&values, &[1, count, d]).unwrap(), dtype).unwrap()
            };
            let (x1, x2) = (rows(n), rows(m));
            let x2 = if n == m { x1.clone() } else { x2 };
            set_num_threads(1 + round % 3);
            let (a, b, found) = (floats(&x1), floats(&x2), floats(&cdist(&x1, &x2, 2.0).unwrap()));
            for (at, &found) in found.iter().enumerate() {
                let (row, column) = (at / m * d, at % m * d);
                let wanted = (0..d).map(|i| (a[row + i] - b[column + i]).powi(2)).sum::<f64>().sqrt();
                let part = [2e-6, 8e-3][round % 2];
                assert!((found - wanted).abs() <= part * wanted, "{found} for {wanted} of {n} {m} {d}");
            }
        }
    }

    #[test]
    fn distances_beyond_the_squares_of_a_type_are_finite() {
        let x1 = Array::from_slice(&[3e30_f32, 3e-30, 0.0, 1.0], &[4, 1]).unwrap();
        let x2 = Array::from_slice(&[-1e30_f32, 0.0], &[2, 1]).unwrap();
        let found = floats(&cdist(&x1, &x2, 2.0).unwrap());
        let wanted = [4e30, 3e30, 1e30, 3e-30, 1e30, 0.0, 1e30, 1.0];
        for (found, wanted) in found.iter().zip(wanted) {
            assert!((found - wanted).abs() <= 1e-6 * wanted, "{found} for {wanted}");
        }
    }

    #[test]
    fn nan_is_a_distance_in_every_norm() {
        let x = Array::from_slice(&[f32::NAN, 1.0], &[1, 2]).unwrap();
        for p in [1.0, 2.0, f64::INFINITY, 1.5] {
            assert!(floats(&cdist(&x, &x, p).unwrap())[0].is_nan());
        }
        assert!(cdist(&x, &x, -1.0).is_err());
    }
}
