//! Running products along an axis. Products of `f32` are kept in `f64`, so that only what is written is rounded; integers
//! wrap.

use crate::array::Array;
use crate::array::shape::around;
use crate::dispatch;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::machine::threads::{self, SharedMut};
use crate::ops::elementwise::convert::cast;
use crate::vectorize;

/// Elements that are worth a task of their own.
const GRAIN: usize = 1 << 14;
/// Rows that are followed at once, since each product waits for the one before.
const LANES: usize = 8;
/// Columns that are followed at once.
const WIDTH: usize = 256;

/// Running product along an axis, as `dtype`, to which the elements are cast first. With `initial` a 1 stands in front.
pub fn cumulative_prod(x: &Array, axis: usize, dtype: DType, initial: bool) -> Result<Array> {
    if dtype.common() != dtype {
        // Integers wrap as they are cast there and back.
        let x = if dtype.is_float() { x } else { &cast(x, dtype)? };
        return cast(&cumulative_prod(x, axis, dtype.common(), initial)?, dtype);
    }
    let (outer, len, inner) = around("cumulative_prod", x.shape(), axis)?;
    let x = cast(x, dtype)?.contiguous()?;
    let mut shape = *x.shape();
    shape[axis] += usize::from(initial);
    let mut out = Array::uninit(dtype, &shape)?;
    if out.numel() == 0 {
        return Ok(out);
    }
    let job = Job { outer, len, inner, ahead: usize::from(initial) };
    dispatch!(common dtype, T => job.run::<T>(&x, &mut out), else return Err(Error::Rejected("products are of numbers")));
    Ok(out)
}

/// An element, and what products of such are kept in.
trait Factor: Element {
    type Wide: Copy;
    const ONE: Self::Wide;
    fn times(product: Self::Wide, factor: Self) -> Self::Wide;
    fn rounded(product: Self::Wide) -> Self;
}

macro_rules! factors {
    ($($ty:ident $wide:ident |$p:ident, $x:ident| $times:expr;)*) => {$(
        impl Factor for $ty {
            type Wide = $wide;
            const ONE: $wide = 1 as $wide;
            #[inline(always)]
            fn times($p: $wide, $x: $ty) -> $wide { $times }
            #[inline(always)]
            fn rounded(product: $wide) -> $ty { product as $ty }
        }
    )*};
}
factors! {
    f32 f64 |p, x| p * x as f64;
    f64 f64 |p, x| p * x;
    i32 i32 |p, x| p.wrapping_mul(x);
    i64 i64 |p, x| p.wrapping_mul(x);
    u64 u64 |p, x| p.wrapping_mul(x);
}

/// Lengths before, along and after the axis; and the ones in front of each line.
struct Job {
    outer: usize,
    len: usize,
    inner: usize,
    ahead: usize,
}

impl Job {
    fn run<T: Factor>(&self, x: &Array, out: &mut Array) {
        let (x, out) = (x.as_slice::<T>().expect("dense"), out.as_mut_slice::<T>());
        if self.inner == 1 { self.rows(x, out) } else { self.columns(x, out) }
    }

    fn rows<T: Factor>(&self, x: &[T], out: &mut [T]) {
        let (len, wide) = (self.len, self.len + self.ahead);
        let to = SharedMut::new(out.as_mut_ptr());
        let together = (GRAIN / wide).max(1).next_multiple_of(LANES);
        threads::parallel(self.outer.div_ceil(together), &|task| {
            let rows = task * together..self.outer.min((task + 1) * together);
            // SAFETY: each task has its own rows of the result.
            let out = unsafe { to.slice(rows.start * wide..rows.end * wide) };
            let x = &x[rows.start * len..rows.end * len];
            for (row, out) in out.chunks_mut(LANES * wide).enumerate() {
                let x = &x[row * LANES * len..];
                if out.len() == LANES * wide {
                    self.follow::<T, LANES>(&x[..LANES * len], out);
                } else {
                    for (row, out) in out.chunks_exact_mut(wide).enumerate() {
                        self.follow::<T, 1>(&x[row * len..(row + 1) * len], out);
                    }
                }
            }
        });
    }

    /// Products along `L` rows.
    fn follow<T: Factor, const L: usize>(&self, x: &[T], out: &mut [T]) {
        let (len, wide) = (self.len, self.len + self.ahead);
        assert!(x.len() == L * len && out.len() == L * wide, "as many rows");
        if self.ahead > 0 {
            (0..L).for_each(|row| out[row * wide] = T::rounded(T::ONE));
        }
        let mut products = [T::ONE; L];
        for at in 0..len {
            for (row, product) in products.iter_mut().enumerate() {
                // SAFETY: `L` rows of both lengths were counted above.
                unsafe {
                    *product = T::times(*product, *x.get_unchecked(row * len + at));
                    *out.get_unchecked_mut(row * wide + self.ahead + at) = T::rounded(*product);
                }
            }
        }
    }

    fn columns<T: Factor>(&self, x: &[T], out: &mut [T]) {
        let (len, wide, inner) = (self.len, self.len + self.ahead, self.inner);
        let to = SharedMut::new(out.as_mut_ptr());
        let tiles = inner.div_ceil(WIDTH);
        let jobs = self.outer * tiles;
        let together = (GRAIN / (wide * inner.min(WIDTH))).max(1);
        threads::parallel(jobs.div_ceil(together), &|task| {
            for job in task * together..jobs.min((task + 1) * together) {
                let first = job % tiles * WIDTH;
                let width = WIDTH.min(inner - first);
                let mut products = [T::ONE; WIDTH];
                for row in 0..wide {
                    let start = (job / tiles * wide + row) * inner + first;
                    // SAFETY: each job has its own columns of the result.
                    let line = unsafe { to.slice(start..start + width) };
                    if row < self.ahead {
                        line.fill(T::rounded(T::ONE));
                        continue;
                    }
                    let from = (job / tiles * len + row - self.ahead) * inner + first;
                    next_line::<T>(&x[from..from + width], &mut products[..width], line);
                }
            }
        });
    }
}

vectorize!(next_line[T: Factor](x: &[T], products: &mut [T::Wide], out: &mut [T]) => next_line_body::<T>);

#[inline(always)]
fn next_line_body<T: Factor>(x: &[T], products: &mut [T::Wide], out: &mut [T]) {
    for ((&x, product), out) in x.iter().zip(products).zip(out) {
        *product = T::times(*product, x);
        *out = T::rounded(*product);
    }
}

#[cfg(test)]
mod tests;
