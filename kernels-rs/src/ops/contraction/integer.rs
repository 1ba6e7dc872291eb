//! Integer products, two's complement.

use super::Product;
use crate::array::Array;
use crate::array::number::Ring;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::machine::threads::{self, SharedMut};
use crate::vectorize;

/// Columns that a row of sums keeps in the first-level cache.
const COLS: usize = 1024;

/// Writes all of an int32 `out` where both sides hold bytes; false, and nothing done, where that is no faster than int32.
pub fn of_bytes(product: &Product, x1: &Array, x2: &Array, out: &mut Array) -> Result<bool> {
    use super::bytes::run;
    match (x1.dtype(), x2.dtype()) {
        (DType::I8, DType::I8) => run::<i8, i8>(product, x1, x2, out),
        (DType::I8, DType::U8) => run::<i8, u8>(product, x1, x2, out),
        (DType::U8, DType::I8) => run::<u8, i8>(product, x1, x2, out),
        (DType::U8, DType::U8) => run::<u8, u8>(product, x1, x2, out),
        _ => Ok(false),
    }
}

/// Writes all of `out`.
pub fn run(product: &Product, x1: &Array, x2: &Array, out: &mut Array) -> Result<()> {
    dispatch!(int x1.dtype(), T => typed::<T>(product, x1, x2, out), else Err(Error::Rejected("matmul of bools")))
}

fn typed<T: Ring>(product: &Product, x1: &Array, x2: &Array, out: &mut Array) -> Result<()> {
    let Product { m, k, n, .. } = *product;
    if out.numel() == 0 {
        return Ok(());
    }
    let count = product.count();
    // Rows of the right side must lie side by side for the inner loop; a copy costs 1/m of the work.
    let dense = if n > 1 && product.b.1 != 1 { Some(x2.contiguous()?) } else { None };
    let dense_b = if let Some(dense) = &dense { Product::new(x1, dense)? } else { Product::new(x1, x2)? };
    let b = dense.as_ref().unwrap_or(x2).ptr::<T>();
    let (a, b) = (SharedMut::new(x1.ptr::<T>().cast_mut()), SharedMut::new(b.cast_mut()));
    let c = SharedMut::new(out.mut_ptr::<T>());
    let task = |index: usize| {
        let (item, row) = (index / m, index % m);
        let (at_a, at_b) = dense_b.offsets(item);
        let a = a.ptr().wrapping_offset(at_a + row as isize * dense_b.a.0).cast_const();
        let b = b.ptr().wrapping_offset(at_b).cast_const();
        // SAFETY: each row has one task.
        let sums = unsafe { c.slice((item * m + row) * n..(item * m + row + 1) * n) };
        // SAFETY: the offsets stay inside the operands.
        unsafe { sum_row((a, dense_b.a.1), (b, dense_b.b.0), k, sums) };
    };
    threads::for_ranges(count * m, (1 << 15) / (k * n).max(1) + 1, &|range| range.for_each(task));
    Ok(())
}

/// `sums[j] = sum over l of a[l] * b[l][j]`.
///
/// # Safety
/// `a` and `b` reach `k` elements and rows.
unsafe fn sum_row<T: Ring>((a, a_step): (*const T, isize), (b, b_step): (*const T, isize), k: usize, sums: &mut [T]) {
    sums.fill(T::from_i64(0));
    for (block, part) in sums.chunks_mut(COLS).enumerate() {
        for l in 0..k as isize {
            // SAFETY: lines and blocks lie inside them.
            let line = std::slice::from_raw_parts(b.offset(l * b_step).add(block * COLS), part.len());
            add_scaled(part, line, *a.offset(l * a_step));
        }
    }
}

vectorize!(add_scaled[T: Ring](sums: &mut [T], line: &[T], by: T) => add_scaled_body::<T>);

#[inline(always)]
fn add_scaled_body<T: Ring>(sums: &mut [T], line: &[T], by: T) {
    for (sum, &value) in sums.iter_mut().zip(line) {
        *sum = sum.plus(by.times(value));
    }
}
