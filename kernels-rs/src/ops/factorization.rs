//! Factorisations of matrices: Cholesky's, elimination with pivots, and orthonormal columns; and what they solve.
//!
//! All end in panels of [`panel::WIDTH`] columns. A panel is copied column by column into a buffer, where its steps are
//! loops over whole columns; what columns do to the rest of the matrix is products ([`add`]), of half of the columns and
//! the other half where the order of steps allows it. So nearly all work is that of the products of this crate, which is
//! why no library stands behind it. Beside `PyTorch`'s LAPACK: `docs/performance.md`.

mod cholesky;
mod elimination;
mod panel;
mod reflection;
mod substitution;
mod system;
#[cfg(test)]
mod tests;

use crate::array::Array;
use crate::array::copy::dense_copy;
use crate::array::shape;
use crate::array::view;
use crate::dtype::DType;
use crate::error::{Error, Result, named};
use crate::machine::lanes::Real;
use crate::machine::threads::{self, SharedMut};
use crate::ops::contraction::{Call, Epilogue, Gemm, Matrix, add};
use crate::ops::elementwise::convert::cast;
use crate::vectorize;
use std::ops::Range;
use substitution::Side;

/// Calls with the type that is computed in.
macro_rules! by_type {
    ($x:expr, $ty:ident => $call:expr) => {
        if $x.dtype() == DType::F64 {
            type $ty = f64;
            $call
        } else {
            type $ty = f32;
            $call
        }
    };
}
/// Multiply-adds below which matrices share a task.
const BUNDLE: usize = 1 << 18;

/// A float type that matrices are factored in.
pub trait Number: Gemm<Wide = Self> + Real {
    /// 1.
    const ONE: Self;
    /// Sums of squares between these are computed without overflow, and with nothing lost that counts.
    const SQUARES: [Self; 2];
    /// Lengths below this are lifted by a power of two, since what is near the smallest numbers has few digits.
    const SHORT: Self;
    /// By what.
    const LIFT: Self;
    /// Without its sign.
    fn size(self) -> Self;
    /// The square root.
    fn root(self) -> Self;
    /// This size, with the sign of another number.
    fn with_sign(self, of: Self) -> Self;
    /// `sqrt(self² + other²)`, without overflow in between.
    fn hypotenuse(self, other: Self) -> Self;
}

macro_rules! numbers {
    ($($ty:ident $least:literal $most:literal $short:literal $lift:literal)*) => {$(
        impl Number for $ty {
            const ONE: Self = 1.0;
            const SQUARES: [Self; 2] = [$least, $most];
            const SHORT: Self = $short;
            const LIFT: Self = $lift;
            #[inline(always)]
            fn size(self) -> Self { self.abs() }
            #[inline(always)]
            fn root(self) -> Self { self.sqrt() }
            #[inline(always)]
            fn with_sign(self, of: Self) -> Self { self.copysign(of) }
            #[inline(always)]
            fn hypotenuse(self, other: Self) -> Self { self.hypot(other) }
        }
    )*};
}
numbers! {
    f32 1e-24 1e36 1e-25 1.2676506002282294e+30
    f64 1e-270 1e300 1e-250 6.668014432879854e+240
}

/// How many orthonormal columns there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// As many as rows.
    Complete,
    /// The smaller size.
    Reduced,
}

named!(Columns, "qr": "complete" Complete, "reduced" Reduced);

/// The lower factor of `(x + xᵀ)/2`, or the upper one. Narrow floats are computed in `f32`.
pub fn cholesky(x: &Array, upper: bool) -> Result<Array> {
    let (batch, n) = squares("cholesky", x)?;
    let out = cast(&by_type!(x, T => cholesky::factors::<T>(x, batch, n)?), x.dtype())?;
    let mut order: Vec<usize> = (0..x.rank()).collect();
    if upper {
        order.swap(x.rank() - 2, x.rank() - 1);
    }
    view::permute_dims(&out, &order)
}

/// `permutation @ lower @ upper`; the pivot of a column is its largest element. Narrow floats are computed in `f32`.
pub fn lu(x: &Array) -> Result<(Array, Array, Array)> {
    let (batch, sizes) = matrices("lu", x)?;
    let (permutation, lower, upper) = by_type!(x, T => elimination::factors::<T>(x, batch, sizes)?);
    Ok((cast(&permutation, x.dtype())?, cast(&lower, x.dtype())?, cast(&upper, x.dtype())?))
}

/// Orthonormal columns and an upper triangle, with the signs of LAPACK. Narrow floats are computed in `f32`.
pub fn qr(x: &Array, columns: Columns) -> Result<(Array, Array)> {
    let (batch, sizes) = matrices("qr", x)?;
    let (q, r) = by_type!(x, T => reflection::factors::<T>(x, batch, sizes, columns)?);
    Ok((cast(&q, x.dtype())?, cast(&r, x.dtype())?))
}

/// The triangles of [`qr`] of `x1` (…, m, n), where m is no less than n, and what its reflections make of the first n rows of
/// `x2` (…, m, k), of an equal batch: what is nearest for the one is so for the other. Both in the type that is computed in, for
/// narrow floats `f32`.
pub fn reflected(x1: &Array, x2: &Array) -> Result<(Array, Array)> {
    let ((batch, [m, n]), (_, [rows, k])) = (matrices("lstsq", x1)?, matrices("lstsq", x2)?);
    let same = x1.shape()[..x1.rank() - 2] == x2.shape()[..x2.rank() - 2] && x1.dtype() == x2.dtype();
    if m < n || m != rows || !same {
        return Err(Error::Rejected("no fewer rows than columns are reflected, with as many of another matrix"));
    }
    by_type!(x1, T => reflection::beside::<T>(x1, x2, batch, [m, n, k]))
}

/// What one triangle of `x1` gives `x2` when it is multiplied with it. Narrow floats are computed in `f32`.
pub fn solve_triangular(x1: &Array, x2: &Array, upper: bool, unit_diagonal: bool) -> Result<Array> {
    let (_, sizes) = matrices("solve_triangular", x1)?;
    let (a, b) = matched("solve_triangular", x1, x2, sizes)?;
    let side = Side { upper, unit: unit_diagonal };
    cast(&by_type!(x1, T => substitution::solutions::<T>(&a, &b, side)?), x1.dtype())
}

/// What gives `x2` when `x1` is multiplied with it, by elimination. Narrow floats are computed in `f32`.
pub fn solve(x1: &Array, x2: &Array) -> Result<Array> {
    let (_, sizes) = matrices("solve", x1)?;
    let (a, b) = matched("solve", x1, x2, sizes)?;
    cast(&by_type!(x1, T => system::solutions::<T>(&a, &b)?), x1.dtype())
}

/// The inverses, by elimination. Narrow floats are computed in `f32`.
pub fn inv(x: &Array) -> Result<Array> {
    let (batch, n) = squares("inv", x)?;
    cast(&by_type!(x, T => system::inverses::<T>(x, batch, n)?), x.dtype())
}

/// The determinants, by elimination. Narrow floats are computed in `f32`, products of pivots in `f64`.
pub fn det(x: &Array) -> Result<Array> {
    let (batch, n) = squares("det", x)?;
    let found = by_type!(x, T => system::determinants::<T>(x, batch, n, &|pivots, odd| {
        [pivots.iter().fold(if odd { -1.0 } else { 1.0 }, |product, &pivot| product * pivot), 0.0]
    })?);
    cast(&found[0], x.dtype())
}

/// The signs of the determinants, and the logarithms of their sizes; computed as [`det`] is.
pub fn slogdet(x: &Array) -> Result<(Array, Array)> {
    let (batch, n) = squares("slogdet", x)?;
    let [sign, size] = by_type!(x, T => system::determinants::<T>(x, batch, n, &|pivots, odd| {
        let below = pivots.iter().filter(|&&pivot| pivot < 0.0).count() % 2 == 1;
        let sign = if below == odd { 1.0 } else { -1.0 };
        let size = pivots.iter().map(|pivot| pivot.abs().ln()).sum();
        [if pivots.contains(&0.0) { 0.0 } else { sign }, size]
    })?);
    Ok((cast(&sign, x.dtype())?, cast(&size, x.dtype())?))
}

/// How many square matrices, and their size.
fn squares(op: &'static str, x: &Array) -> Result<(usize, usize)> {
    match matrices(op, x)? {
        (batch, [m, n]) if m == n => Ok((batch, n)),
        _ => Err(Error::value(op, format!("not square: got {:?}, expected (.., n, n)", x.shape()))),
    }
}

/// Squares and what they are solved for, with equal batches.
fn matched(op: &'static str, x1: &Array, x2: &Array, [m, n]: [usize; 2]) -> Result<(Array, Array)> {
    let (_, [rows, k]) = matrices(op, x2)?;
    if m != n || n != rows || x1.dtype() != x2.dtype() {
        return Err(Error::Rejected("a square of floats is solved for as many rows of them"));
    }
    let (r1, r2) = (x1.rank(), x2.rank());
    let mut front = shape::broadcast(&x1.shape()[..r1 - 2], &x2.shape()[..r2 - 2])?;
    shape::check_rank(front.len() + 2)?;
    let mut other = front;
    for (one, other_size) in [(n, n), (n, k)] {
        front.push(one);
        other.push(other_size);
    }
    Ok((view::broadcast_to(x1, &front)?, view::broadcast_to(x2, &other)?))
}

/// How many matrices, and their sizes.
fn matrices(op: &'static str, x: &Array) -> Result<(usize, [usize; 2])> {
    match x.shape()[..] {
        [ref batch @ .., m, n] if x.dtype().is_float() => Ok((batch.iter().product(), [m, n])),
        _ => Err(Error::value(op, format!("no matrix: got {x:?}, expected floats (.., m, n)"))),
    }
}

/// A dense array for results, of the batch of `x`.
fn fresh<T: Number>(x: &Array, [rows, columns]: [usize; 2], zeros: bool) -> Result<Array> {
    let mut shape = *x.shape();
    let rank = shape.len();
    (shape[rank - 2], shape[rank - 1]) = (rows, columns);
    if zeros { Array::zeros(T::DTYPE, &shape) } else { Array::uninit(T::DTYPE, &shape) }
}

/// A copy to work in.
fn copied<T: Number>(x: &Array) -> Result<Array> {
    if x.dtype() == T::DTYPE { dense_copy(x) } else { cast(x, T::DTYPE)?.contiguous() }
}

/// A nan where not all elements are finite: what such a matrix has for factors.
fn unbounded<T: Number>(a: &[T]) -> Option<T> {
    let gap = gaps(a);
    (gap != T::default()).then_some(gap)
}

vectorize!(gaps[T: Number](a: &[T]) -> T => gaps_body::<T>);

/// The sum of what elements differ from themselves by: 0, or a nan, since infinity less itself is one.
#[inline(always)]
#[expect(clippy::eq_op, reason = "infinity less itself is a nan in every float type")]
fn gaps_body<T: Number>(a: &[T]) -> T {
    let mut sums = [T::default(); panel::LANES];
    let (runs, rest) = a.as_chunks::<{ panel::LANES }>();
    for run in runs {
        sums.iter_mut().zip(run).for_each(|(sum, &value)| *sum = *sum + (value - value));
    }
    sums.iter_mut().zip(rest).for_each(|(sum, &value)| *sum = *sum + (value - value));
    sums.iter().fold(T::default(), |sum, &part| sum + part)
}

/// Runs `work(some matrices, whether they may use more than one thread)` until all of a batch are done.
fn each(count: usize, cost: usize, work: &(dyn Fn(Range<usize>, bool) -> Result<()> + Sync)) -> Result<()> {
    if cost >= BUNDLE && count < threads::num_threads() {
        return work(0..count, true);
    }
    let bundle = (BUNDLE / cost.max(1)).clamp(1, count.max(1));
    threads::try_parallel(count.div_ceil(bundle), &|task| work(task * bundle..count.min((task + 1) * bundle), false))
}

/// The matrices of a dense array, one for each task.
struct Each<T> {
    start: SharedMut<T>,
    len: usize,
}

impl<T: Number> Each<T> {
    fn of(x: &mut Array, len: usize) -> Self {
        Self { start: SharedMut::new(x.mut_ptr::<T>()), len }
    }

    /// # Safety
    /// Nobody else uses this matrix.
    #[allow(clippy::mut_from_ref)] // The caller keeps matrices apart.
    unsafe fn at(&self, index: usize) -> &mut [T] {
        // SAFETY: inside the array.
        self.start.slice(index * self.len..(index + 1) * self.len)
    }
}
