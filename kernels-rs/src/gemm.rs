//! Matrix products: `matmul` for every number dtype and batch, and `linear`.
//!
//! Floats go through [`engine`], integers through [`integer`]. The result is cut into tiles by its shape alone; a task
//! computes a tile over all of `k`, so nothing depends on the number of threads.

pub mod engine;
mod integer;
#[cfg(test)]
mod tests;

use crate::array::Array;
use crate::dtype::{BF16, DType, Element, F16, Kind};
use crate::error::{Error, Result};
use crate::shape::{self, Shape, Strides};
use crate::threads::{self, SharedMut};
use engine::{Gemm, Matrix};

/// Multiply-adds below which a product is not worth a second thread (about 5 us).
const SERIAL: usize = 1 << 19;
/// Multiply-adds of a task made of several small products.
const BUNDLE: usize = 1 << 18;

/// `NumPy`'s `matmul`: 1-d operands, broadcast batches. Narrow floats accumulate in `f32`, integers wrap.
pub fn matmul(x1: &Array, x2: &Array) -> Result<Array> {
    let dtype = x1.dtype();
    if dtype != x2.dtype() || dtype.kind() == Kind::Bool {
        return Err(Error::Rejected("matmul wants operands of one number dtype"));
    }
    if x1.rank() == 0 || x2.rank() == 0 {
        return Err(Error::Rejected("matmul wants operands of rank 1 or more"));
    }
    let product = Product::new(x1, x2)?;
    let mut out = Array::uninit(dtype, &product.shape)?;
    match dtype {
        DType::F16 => product.float::<F16>(x1, x2, None, &mut out),
        DType::BF16 => product.float::<BF16>(x1, x2, None, &mut out),
        DType::F32 => product.float::<f32>(x1, x2, None, &mut out),
        DType::F64 => product.float::<f64>(x1, x2, None, &mut out),
        _ => integer::run(&product, x1, x2, &mut out)?,
    }
    Ok(out)
}

/// `x[.., in] @ weight[in, out] + bias[out]`, the bias added while the tile is in registers.
pub fn linear(x: &Array, weight: &Array, bias: Option<&Array>) -> Result<Array> {
    let dtype = x.dtype();
    if !dtype.is_float() || dtype != weight.dtype() || bias.is_some_and(|bias| bias.dtype() != dtype) {
        return Err(Error::Rejected("linear wants operands of one float dtype"));
    }
    if x.rank() == 0 || weight.rank() != 2 || bias.is_some_and(|bias| bias.shape()[..] != weight.shape()[1..]) {
        return Err(Error::Rejected("linear wants x [.., in], weight [in, out], bias [out]"));
    }
    let product = Product::new(x, weight)?;
    let bias = bias.map(Array::contiguous).transpose()?;
    let mut out = Array::uninit(dtype, &product.shape)?;
    match dtype {
        DType::F16 => product.float::<F16>(x, weight, bias.as_ref(), &mut out),
        DType::BF16 => product.float::<BF16>(x, weight, bias.as_ref(), &mut out),
        DType::F64 => product.float::<f64>(x, weight, bias.as_ref(), &mut out),
        _ => product.float::<f32>(x, weight, bias.as_ref(), &mut out),
    }
    Ok(out)
}

/// The sizes and steps of a batch of products.
struct Product {
    /// Of the result.
    shape: Shape,
    m: usize,
    k: usize,
    n: usize,
    /// Leading axes.
    batch: Shape,
    batch_a: Strides,
    batch_b: Strides,
    /// Row and column steps.
    a: (isize, isize),
    b: (isize, isize),
}

/// Shape and strides with an axis added for a vector operand.
fn as_matrix(x: &Array, vector_axis: usize) -> Result<(Shape, Strides)> {
    let (mut shape, mut strides) = (*x.shape(), *x.strides());
    if x.rank() == 1 {
        shape.insert(vector_axis, 1);
        strides.insert(vector_axis, 0);
    }
    if shape.len() > shape::MAX_RANK {
        return Err(Error::Rejected("rank too large"));
    }
    Ok((shape, strides))
}

impl Product {
    fn new(x1: &Array, x2: &Array) -> Result<Self> {
        let ((a_shape, a_strides), (b_shape, b_strides)) = (as_matrix(x1, 0)?, as_matrix(x2, 1)?);
        let (a_rank, b_rank) = (a_shape.len(), b_shape.len());
        let (m, k, n) = (a_shape[a_rank - 2], a_shape[a_rank - 1], b_shape[b_rank - 1]);
        if b_shape[b_rank - 2] != k {
            return Err(Error::Rejected("inner sizes of matmul differ"));
        }
        let batch = shape::broadcast(&a_shape[..a_rank - 2], &b_shape[..b_rank - 2])?;
        let mut shape = batch;
        if x1.rank() > 1 {
            shape.push(m);
        }
        if x2.rank() > 1 {
            shape.push(n);
        }
        let batch_a = shape::broadcast_strides(&a_shape[..a_rank - 2], &a_strides[..a_rank - 2], &batch);
        let batch_b = shape::broadcast_strides(&b_shape[..b_rank - 2], &b_strides[..b_rank - 2], &batch);
        let a = (a_strides[a_rank - 2], a_strides[a_rank - 1]);
        let b = (b_strides[b_rank - 2], b_strides[b_rank - 1]);
        Ok(Self { shape, m, k, n, batch, batch_a, batch_b, a, b }.collapsed())
    }

    /// One right side for the whole batch, and a left side whose rows follow each other through the batch: one product.
    fn collapsed(mut self) -> Self {
        while let Some(last) = self.batch.len().checked_sub(1) {
            let follows = self.m == 1 || self.batch_a[last] == self.a.0 * self.m as isize;
            if self.batch[last] != 1 && (self.batch_b[last] != 0 || !follows) {
                break;
            }
            if self.batch[last] != 1 {
                self.a.0 = if self.m == 1 { self.batch_a[last] } else { self.a.0 };
                self.m *= self.batch[last];
            }
            self.batch.remove(last);
            self.batch_a.remove(last);
            self.batch_b.remove(last);
        }
        self
    }

    /// Offsets of the operands of one product.
    fn offsets(&self, index: usize) -> (isize, isize) {
        let (mut rest, mut a, mut b) = (index, 0, 0);
        for axis in (0..self.batch.len()).rev() {
            let at = (rest % self.batch[axis]) as isize;
            rest /= self.batch[axis];
            a += at * self.batch_a[axis];
            b += at * self.batch_b[axis];
        }
        (a, b)
    }

    fn float<T: Gemm>(&self, x1: &Array, x2: &Array, bias: Option<&Array>, out: &mut Array) {
        let count = shape::numel(&self.batch);
        if out.numel() == 0 {
            return;
        }
        if self.k == 0 {
            return fill_rows(out.as_mut_slice::<T>(), bias.map(|bias| bias.as_slice().expect("made contiguous")));
        }
        let work = self.m * self.k * self.n;
        let (tile_m, tile_n) = tiles(self.m, self.k, self.n);
        let (rows, cols) = (self.m.div_ceil(tile_m), self.n.div_ceil(tile_n));
        let bundle = if rows * cols == 1 { (BUNDLE / work.max(1)).clamp(1, count) } else { 1 };
        let (a, b, bias) = (x1.ptr::<T>(), x2.ptr::<T>(), bias.map(Array::ptr::<T>));
        let (a, b, c) =
            (SharedMut::new(a.cast_mut()), SharedMut::new(b.cast_mut()), SharedMut::new(out.mut_ptr::<T>()));
        let bias = bias.map(|bias| SharedMut::new(bias.cast_mut()));
        let task = |index: usize| {
            let (bundle_index, tile) = (index / (rows * cols), index % (rows * cols));
            let (i, j) = (tile / cols * tile_m, tile % cols * tile_n);
            let (m, n) = (tile_m.min(self.m - i), tile_n.min(self.n - j));
            for item in bundle_index * bundle..((bundle_index + 1) * bundle).min(count) {
                let (at_a, at_b) = self.offsets(item);
                let (i_step, j_step) = (i as isize, j as isize);
                let left = Matrix::new(a.ptr().wrapping_offset(at_a + i_step * self.a.0), self.a);
                let right = Matrix::new(b.ptr().wrapping_offset(at_b + j_step * self.b.1), self.b);
                let to = Matrix::new(c.ptr().wrapping_add((item * self.m + i) * self.n + j), (self.n as isize, 1));
                let bias = bias.map(|bias| bias.ptr().wrapping_add(j).cast_const());
                // SAFETY: the offsets stay inside the operands, and each task has its own part of the result.
                unsafe { T::gemm((m, self.k, n), left, right, to, bias) };
            }
        };
        if work * count < SERIAL {
            (0..count.div_ceil(bundle) * rows * cols).for_each(task);
        } else {
            threads::parallel(count.div_ceil(bundle) * rows * cols, &task);
        }
    }
}

/// The result of an empty sum: zeros, or the bias in every row.
fn fill_rows<T: Element>(out: &mut [T], bias: Option<&[T]>) {
    match bias {
        Some(bias) => out.chunks_exact_mut(bias.len()).for_each(|row| row.copy_from_slice(bias)),
        None => out.fill(T::from_f64(0.0)),
    }
}

/// The size of the tiles of an `m x n` result: a function of the shape alone.
fn tiles(m: usize, k: usize, n: usize) -> (usize, usize) {
    let work = m.saturating_mul(k).saturating_mul(n);
    if work < SERIAL {
        return (m, n);
    }
    if m == 1 || n == 1 {
        // Bound by memory: a few long runs.
        let pieces = (work >> 18).min(8);
        let length = (m * n).div_ceil(pieces).next_multiple_of(64).max(256);
        return if m == 1 { (1, length.min(n)) } else { (length.min(m), 1) };
    }
    let wanted = (work >> 18).min(16).max(work >> 27).min(1024);
    let (mut tile_m, mut tile_n) = (m, n);
    // 12 and 32 are the sides of the kernel's register tile.
    while m.div_ceil(tile_m) * n.div_ceil(tile_n) < wanted {
        if tile_n > 64 && (tile_n >= tile_m || tile_m <= 24) {
            tile_n = tile_n.div_ceil(2).next_multiple_of(32);
        } else if tile_m > 24 {
            tile_m = tile_m.div_ceil(2).next_multiple_of(12);
        } else {
            break;
        }
    }
    (tile_m, tile_n)
}
