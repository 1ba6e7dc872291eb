//! Weights that stay in the blocks of a file of llama.cpp: as floats, and in products. Rows that are multiplied become
//! integers of 8 bits first, with a scale for each 32 of them, so that sums of a block are those of whole numbers. A number of
//! 16 bits is a block too, by which rows are multiplied as they are.

#![allow(clippy::needless_range_loop, reason = "closures and iterator chains do not inherit the instruction set")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512_tiles; // many rows
mod dots; // loops for any processor
mod forms;
#[cfg(target_arch = "aarch64")]
mod neon;
mod stored;

use crate::array::Array;
use crate::array::view;
use crate::dtype::{BF16, DType, F16};
use crate::error::{Error, Result};
use crate::machine::threads::{self, SharedMut};
use crate::ops::contraction::{Call, Epilogue, Gemm, Matrix, multiply};
use crate::ops::elementwise::convert::cast;
use crate::ops::parts;
use crate::vectorize;
#[cfg(all(test, target_arch = "x86_64"))]
use forms::{Form, PART, SHARE};
use stored::Stored;

/// Rows up to which blocks are multiplied as they are stored by NEON and by loops; more meet floats of the weight.
const FEW: usize = 32;
/// Rows up to which narrow floats are multiplied as they are stored (Zen 3).
const MANY: usize = 256;
/// Numbers that share a scale where rows become integers.
pub const GROUP: usize = 32;
/// Multiply-adds below which a product is not worth a second thread: 5 us of the byte products of one row in memory.
const SERIAL: usize = 1 << 16;
/// Numbers of a task that makes floats: about 10 us, several times what it takes to hand a task to a thread that is awake.
const GRAIN: usize = 1 << 15;
/// Numbers of a weight that are floats at a time, 4 MiB of them: they stay in the last cache, and rows that are multiplied by
/// them, which each time are packed again, meet some hundred.
const AT_A_TIME: usize = 1 << 20;

/// Runs an expression with `$F` bound to the form of this name.
macro_rules! of_form {
    ($name:expr, $F:ident => $body:expr) => {
        of_form!(@arms $name, $F => $body; "Q4_0" Q4_0, "Q4_1" Q4_1, "Q4_K" Q4K, "Q5_0" Q5_0, "Q5_1" Q5_1, "Q5_K" Q5K,
            "Q6_K" Q6K, "Q8_0" Q8_0)
    };
    (@arms $name:expr, $F:ident => $body:expr; $($text:literal $form:ident),*) => {
        match $name {
            $($text => { type $F = forms::$form; $body })*
            _ => return Err(Error::Rejected("a form of blocks that is not built")),
        }
    };
}

/// The same, with `$F` bound to a narrow float too.
macro_rules! of_stored {
    ($name:expr, $F:ident => $body:expr) => {
        match $name {
            "BF16" => { type $F = BF16; $body }
            "F16" => { type $F = F16; $body }
            blocks => of_form!(blocks, $F => $body),
        }
    };
}

/// The rows of blocks and the numbers of a row.
fn sizes<F: Stored>(blocks: &Array) -> Result<(usize, usize)> {
    let bytes = if blocks.rank() == 0 { 0 } else { blocks.shape()[blocks.rank() - 1] };
    if blocks.dtype() != DType::U8 || blocks.rank() == 0 || !bytes.is_multiple_of(F::BYTES) {
        return Err(Error::Rejected("blocks are rows of bytes, whole blocks of them"));
    }
    Ok((blocks.numel().checked_div(bytes).unwrap_or(0), bytes / F::BYTES * F::SIZE))
}

/// Rows one behind the other; a number of 16 bits begins at an even address.
fn dense<F: Stored>(blocks: &Array) -> Result<Array> {
    let blocks = blocks.contiguous()?;
    if F::SIZE > 1 || blocks.data().addr().is_multiple_of(2) {
        return Ok(blocks);
    }
    Array::from_slice(blocks.as_slice::<u8>().unwrap_or(&[]), blocks.shape())
}

/// The numbers that blocks stand for.
pub fn dequantize_blocks(blocks: &Array, form: &str, dtype: DType) -> Result<Array> {
    let blocks = &cast(blocks, DType::U8)?;
    cast(&of_stored!(form, F => floats_of::<F>(blocks)?), dtype)
}

fn floats_of<F: Stored>(blocks: &Array) -> Result<Array> {
    let (rows, numbers) = sizes::<F>(blocks)?;
    let mut shape = *blocks.shape();
    shape[blocks.rank() - 1] = numbers;
    let mut out = Array::uninit(DType::F32, &shape)?;
    let blocks = dense::<F>(blocks)?;
    let Some(from) = blocks.as_slice::<u8>() else { unreachable!("dense") };
    let bytes = numbers / F::SIZE * F::BYTES;
    let to = SharedMut::new(out.mut_ptr::<f32>());
    threads::for_ranges(rows, GRAIN / numbers.max(1) + 1, &|range| {
        for row in range {
            // SAFETY: each task has its own rows, of which `out` has as many as there are rows of blocks.
            let to = unsafe { to.slice(row * numbers..(row + 1) * numbers) };
            F::widen(&from[row * bytes..(row + 1) * bytes], to);
        }
    });
    Ok(out)
}

/// `x[.., in] @ weight[out, in]ᵀ + bias[out]`, the weight in blocks; rounded, the rows of `x` are integers of 8 bits.
pub fn blocks_linear(x: &Array, blocks: &Array, bias: Option<&Array>, form: &str, rounded: bool) -> Result<Array> {
    let dtype = x.dtype();
    if !dtype.is_float() || bias.is_some_and(|bias| bias.dtype() != dtype) {
        return Err(Error::Rejected("blocks_linear wants x and bias of one float dtype"));
    }
    let blocks = &cast(blocks, DType::U8)?;
    of_stored!(form, F => product::<F>(x, blocks, bias, rounded))
}

fn product<F: Stored>(x: &Array, blocks: &Array, bias: Option<&Array>, rounded: bool) -> Result<Array> {
    let (n, k) = sizes::<F>(blocks)?;
    let fits = x.rank() > 0 && blocks.rank() == 2 && x.shape()[x.rank() - 1] == k;
    if !fits || bias.is_some_and(|bias| bias.shape()[..] != [n]) {
        return Err(Error::Rejected("blocks_linear wants x [.., in], blocks [out, bytes], bias [out]"));
    }
    let rounded = rounded && F::ROUNDS;
    let dtype = x.dtype();
    let rows: usize = x.shape()[..x.rank() - 1].iter().product();
    let size = (rows, k, n);
    if (rounded || !F::ROUNDS) && dtype != DType::F64 && (1..=F::most()).contains(&rows) && k > 0 {
        return as_stored::<F>(x, blocks, bias, size);
    }
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let mut given = parts::ready(x, if rounded { DType::F32 } else { wide })?;
    if rounded {
        let mut near = Array::uninit(DType::F32, x.shape())?;
        snap(given.as_slice::<f32>().unwrap_or(&[]), near.as_mut_slice());
        given = cast(&near, wide)?;
    }
    let bias = bias.map(|bias| cast(bias, wide)).transpose()?;
    let product = if wide == DType::F64 { by_floats::<F, f64> } else { by_floats::<F, f32> };
    cast(&product(&given, blocks, bias.as_ref(), size)?, dtype)
}

/// The product of dense rows with the weight as floats, which are made for some columns of the result at a time.
fn by_floats<F: Stored, T: Gemm>(
    x: &Array,
    blocks: &Array,
    bias: Option<&Array>,
    (m, k, n): (usize, usize, usize),
) -> Result<Array> {
    let mut shape = *x.shape();
    shape[x.rank() - 1] = n;
    let mut out = Array::uninit(T::DTYPE, &shape)?;
    let step = (AT_A_TIME / k.max(1) + 1).next_multiple_of(64);
    for first in (0..n).step_by(step).filter(|_| m > 0) {
        let count = step.min(n - first);
        let some = view::slice(blocks, &[first, 0], &[count, blocks.shape()[1]], &[1, 1])?;
        let weight = cast(&floats_of::<F>(&some)?, T::DTYPE)?;
        let at = |bias: &Array| Matrix::new(bias.ptr::<T>().cast_mut(), (0, bias.strides()[0])).at(0, first);
        let call = Call {
            size: (m, k, count),
            a: Matrix::new(x.ptr::<T>().cast_mut(), (k as isize, 1)),
            b: Matrix::new(weight.ptr::<T>().cast_mut(), (1, k as isize)),
            c: Matrix::new(out.mut_ptr::<T>(), (n as isize, 1)).at(0, first),
            end: Epilogue { bias: bias.map(at), ..Epilogue::default() },
        };
        // SAFETY: dense rows of these sizes, and columns of a fresh result that no other turn writes.
        unsafe { multiply(&call, true, None)? };
    }
    Ok(out)
}

/// Rows as the integers that they become, times their scales.
fn snap(from: &[f32], to: &mut [f32]) {
    let (len, to) = (to.len(), SharedMut::new(to.as_mut_ptr()));
    threads::for_ranges(len / GROUP, GRAIN / GROUP, &|range| {
        let range = range.start * GROUP..len.min(range.end * GROUP);
        // SAFETY: each task has its own groups, and the range ends with `to` at the latest.
        snap_groups(&from[range.clone()], unsafe { to.slice(range) });
    });
}

vectorize!(snap_groups(from: &[f32], to: &mut [f32]) => snap_groups_body);

#[inline(always)]
fn snap_groups_body(from: &[f32], to: &mut [f32]) {
    let mut whole = [0; GROUP];
    for (from, to) in from.chunks_exact(GROUP).zip(to.chunks_exact_mut(GROUP)) {
        let scale = dots::into_bytes(from, &mut whole);
        for (to, whole) in to.iter_mut().zip(whole) {
            *to = f32::from(whole) * scale;
        }
    }
}

/// The product of rows with the weight as it is stored.
fn as_stored<F: Stored>(x: &Array, blocks: &Array, bias: Option<&Array>, size: (usize, usize, usize)) -> Result<Array> {
    let (count, k, n) = size;
    let dtype = x.dtype();
    let mut shape = *x.shape();
    shape[x.rank() - 1] = n;
    let (given, blocks) = (parts::ready(x, DType::F32)?, dense::<F>(blocks)?);
    let bias = bias.map(|bias| parts::ready(bias, DType::F32)).transpose()?;
    let mut out = Array::uninit(DType::F32, &shape)?;
    let (Some(given), Some(from)) = (given.as_slice::<f32>(), blocks.as_slice::<u8>()) else { unreachable!("dense") };
    let bias = bias.as_ref().and_then(|bias| bias.as_slice::<f32>());
    let to = SharedMut::new(out.mut_ptr::<f32>());
    if F::tiles(given, from, bias, size, to) {
        return cast(&out, dtype);
    }
    let rows = F::rows(given, (count, k));
    // No sum goes over columns, so threads may say how many a task has: they have as many tasks each, of as many columns.
    let threads = threads::num_threads();
    let pieces = (2 * count * k * n / SERIAL).min(4 * threads);
    let pieces = (pieces - if pieces > threads { pieces % threads } else { 0 }).max(1);
    let step = n.div_ceil(pieces).next_multiple_of(8);
    threads::parallel(n.div_ceil(step.max(1)), &|task| {
        F::times(&rows, from, task * step..n.min((task + 1) * step), bias, size, to);
    });
    cast(&out, dtype)
}

// Behind the macro, which it uses too.
#[cfg(test)]
mod tests;
