//! Products with weights of 8 or 4 bits and scales of groups. A few rows read the integers once and make floats of them in
//! registers, which takes a core longer than reading them; more rows make floats of the whole weight first.

#![allow(clippy::needless_range_loop, reason = "closures and iterator chains do not inherit the instruction set")]

use super::linear;
use crate::array::Array;
use crate::dtype::{DType, Element, Kind};
use crate::error::{Error, Result};
use crate::machine::lanes::{Kernel, Lanes, is_baseline, launch};
use crate::machine::simd::{has_amx, has_bf16_pairs};
use crate::machine::threads::{self, SharedMut};
use crate::math::Fma;
use crate::ops::elementwise::convert::cast;
use crate::ops::parts;
use crate::vectorize;

/// Rows up to which floats are made in registers, once for each [`ROWS`] of them.
const FEW: usize = 16;
/// Rows whose sums lie side by side.
const ROWS: usize = 4;
/// Columns of a task at most: its sums stay in the first-level cache.
const COLS: usize = 512;
/// Bytes of a row of the weight that are read together: a line of the caches.
const NARROWEST: usize = 64;
/// Rows of the weight that are added to a sum at a time.
const DEPTH: usize = 4;
/// Elements of a weight that a task makes floats of.
const GRAIN: usize = 1 << 15;

/// `x[.., in] @ (weight[in, out] * scale[groups, out]) + bias[out]`; of 4 bits, two neighbors along `in` are one integer
/// of the weight, the low one first.
pub fn quantized_linear(x: &Array, weight: &Array, scale: &Array, bias: Option<&Array>, bits: usize) -> Result<Array> {
    let dtype = x.dtype();
    let floats = [Some(scale), bias];
    if !dtype.is_float() || floats.into_iter().flatten().any(|other| other.dtype() != dtype) {
        return Err(Error::Rejected("quantized_linear wants x, scale and bias of one float dtype"));
    }
    if weight.dtype().kind() != Kind::Int || weight.rank() != 2 || scale.rank() != 2 || x.rank() == 0 {
        return Err(Error::Rejected("quantized_linear wants x [.., in], integers [in, out], scales [groups, out]"));
    }
    let (k, n, groups) = (x.shape()[x.rank() - 1], weight.shape()[1], scale.shape()[0]);
    let held = match bits {
        4 if k.is_multiple_of(2) => k / 2,
        8 => k,
        _ => return Err(Error::Rejected("quantized_linear wants 8 bits, or 4 of an even number of inputs")),
    };
    let fits = groups > 0 && k.is_multiple_of(groups) && scale.shape()[1] == n && weight.shape()[0] == held;
    if !fits || bias.is_some_and(|bias| bias.shape()[..] != [n]) {
        return Err(Error::Rejected("quantized_linear wants sizes that fit"));
    }
    let rows = x.numel().checked_div(k).unwrap_or(0);
    let whole = bits == 8 || (k / groups).is_multiple_of(2);
    if whole && !is_baseline() && weight.dtype() == DType::I8 && dtype != DType::F64 && (1..=FEW).contains(&rows) {
        return few(x, weight, scale, bias, bits);
    }
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let floats = floats_of(weight, scale, (k, n), bits, wide)?;
    if dtype == DType::BF16 && (has_amx() || has_bf16_pairs()) {
        return linear(x, &cast(&floats, dtype)?, bias);
    }
    // A weight that was rounded to float16 might leave its range.
    let bias = bias.map(|bias| cast(bias, wide)).transpose()?;
    cast(&linear(&cast(x, wide)?, &floats, bias.as_ref())?, dtype)
}

/// The weight as floats of 4 or 8 bytes.
fn floats_of(weight: &Array, scale: &Array, (k, n): (usize, usize), bits: usize, wide: DType) -> Result<Array> {
    let bytes_held = matches!(weight.dtype(), DType::I8 | DType::U8);
    let weight = if bytes_held { weight.clone() } else { cast(weight, DType::F64)? }.contiguous()?;
    let scale = parts::ready(scale, wide)?;
    let mut out = Array::uninit(wide, &[k, n])?;
    match (weight.dtype(), wide) {
        (DType::I8, DType::F32) => spread::<i8, f32>(&weight, &scale, bits, &mut out, bytes),
        (DType::I8, _) => spread::<i8, f64>(&weight, &scale, bits, &mut out, line),
        (DType::U8, DType::F32) => spread::<u8, f32>(&weight, &scale, bits, &mut out, line),
        (DType::U8, _) => spread::<u8, f64>(&weight, &scale, bits, &mut out, line),
        (_, DType::F32) => spread::<f64, f32>(&weight, &scale, bits, &mut out, line),
        _ => spread::<f64, f64>(&weight, &scale, bits, &mut out, line),
    }
    Ok(out)
}

/// A line of integers, their scales, the floats, and which of two neighbors is meant where an integer holds two.
type Line<T, W> = fn(&[T], &[W], &mut [W], Option<usize>);

/// Writes all of `out`, line by line.
fn spread<T: Element, W: Element>(weight: &Array, scale: &Array, bits: usize, out: &mut Array, line: Line<T, W>) {
    let (k, n) = (out.shape()[0], out.shape()[1]);
    let group = (k / scale.shape()[0]).max(1);
    let (weight, scale) = (weight.as_slice::<T>(), scale.as_slice::<W>());
    let (Some(weight), Some(scale)) = (weight, scale) else { unreachable!("made dense above") };
    let to = SharedMut::new(out.mut_ptr::<W>());
    threads::for_ranges(k, GRAIN / n.max(1) + 1, &|rows| {
        for i in rows {
            let (held, half) = if bits == 4 { (i / 2, Some(i % 2)) } else { (i, None) };
            // SAFETY: each task has its own lines of the result.
            let to = unsafe { to.slice(i * n..(i + 1) * n) };
            line(&weight[held * n..(held + 1) * n], &scale[i / group * n..(i / group + 1) * n], to, half);
        }
    });
}

fn line<T: Element, W: Element>(from: &[T], scale: &[W], to: &mut [W], half: Option<usize>) {
    for ((to, &scale), &held) in to.iter_mut().zip(scale).zip(from) {
        let whole = held.to_f64();
        let value = match half {
            Some(0) => (whole as i64).wrapping_shl(60) >> 60,
            Some(_) => whole as i64 >> 4,
            None => 0,
        };
        *to = W::from_f64(if half.is_some() { value as f64 } else { whole } * scale.to_f64());
    }
}

vectorize!(bytes(from: &[i8], scale: &[f32], to: &mut [f32], half: Option<usize>) => bytes_body);

#[inline(always)]
fn bytes_body(from: &[i8], scale: &[f32], to: &mut [f32], half: Option<usize>) {
    let (left, right) = match half {
        Some(0) => (28, 28),
        Some(_) => (0, 4),
        None => (0, 0),
    };
    for i in 0..to.len().min(from.len()).min(scale.len()) {
        to[i] = (i32::from(from[i]) << left >> right) as f32 * scale[i];
    }
}

/// The product of a few rows.
fn few(x: &Array, weight: &Array, scale: &Array, bias: Option<&Array>, bits: usize) -> Result<Array> {
    let mut shape = *x.shape();
    let (k, n) = (shape[x.rank() - 1], weight.shape()[1]);
    shape[x.rank() - 1] = n;
    let (given, weight, scale) = (parts::ready(x, DType::F32)?, weight.contiguous()?, parts::ready(scale, DType::F32)?);
    let bias = bias.map(|bias| parts::ready(bias, DType::F32)).transpose()?;
    let mut out = Array::uninit(DType::F32, &shape)?;
    let to = SharedMut::new(out.mut_ptr::<f32>());
    let (x_at, weight_at) =
        (SharedMut::new(given.ptr::<f32>().cast_mut()), SharedMut::new(weight.ptr::<i8>().cast_mut()));
    let scale_at = SharedMut::new(scale.ptr::<f32>().cast_mut());
    let bias_at = bias.as_ref().map(|bias| SharedMut::new(bias.ptr::<f32>().cast_mut()));
    let (rows, group) = (given.numel() / k, k / scale.shape()[0]);
    let serial = rows * k * n < super::SERIAL;
    let cols = if serial { COLS } else { columns(n) };
    let task = |index: usize| {
        let first = index * cols;
        launch(Few {
            x: x_at.ptr(),
            weight: weight_at.ptr().wrapping_add(first),
            scale: scale_at.ptr().wrapping_add(first),
            bias: bias_at.map(|bias| bias.ptr().wrapping_add(first).cast_const()),
            to: to.ptr().wrapping_add(first),
            size: (rows, k, cols.min(n - first)),
            pitch: n,
            group,
            bits,
        });
    };
    let tasks = n.div_ceil(cols);
    if serial {
        (0..tasks).for_each(task);
    } else {
        threads::parallel(tasks, &task);
    }
    cast(&out, x.dtype())
}

/// Columns of a task: no sum goes over them, so threads may say how many.
fn columns(n: usize) -> usize {
    match threads::num_threads() {
        1 => COLS,
        _ => n.div_ceil(threads::tasks(1)).next_multiple_of(NARROWEST).min(COLS),
    }
}

/// Up to [`COLS`] columns of the result.
struct Few {
    x: *const f32,
    weight: *const i8,
    scale: *const f32,
    bias: Option<*const f32>,
    to: *mut f32,
    /// Rows, inputs, columns.
    size: (usize, usize, usize),
    /// Columns of the whole weight, its scales and the result.
    pitch: usize,
    /// Inputs of a scale; with 4 bits an even number.
    group: usize,
    bits: usize,
}

impl Kernel<f32> for Few {
    const BASELINE: bool = false;
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = f32>>(self) {
        let rows = self.size.0;
        for row in (0..rows).step_by(ROWS) {
            // SAFETY: rows that exist.
            match (self.bits, rows - row) {
                (4, 1) => self.some::<V, 1, true>(row),
                (4, 2) => self.some::<V, 2, true>(row),
                (4, 3) => self.some::<V, 3, true>(row),
                (4, _) => self.some::<V, ROWS, true>(row),
                (_, 1) => self.some::<V, 1, false>(row),
                (_, 2) => self.some::<V, 2, false>(row),
                (_, 3) => self.some::<V, 3, false>(row),
                _ => self.some::<V, ROWS, false>(row),
            }
        }
    }
}

impl Few {
    /// `R` rows from the first on.
    #[inline(always)]
    unsafe fn some<V: Lanes<Elem = f32>, const R: usize, const FOUR: bool>(&self, row: usize) {
        let (_, k, cols) = self.size;
        let (mut total, mut sums) = ([[0.0f32; COLS]; R], [[0.0f32; COLS]; R]);
        for start in (0..k).step_by(self.group.max(1)) {
            for r in 0..R {
                for j in 0..cols.min(COLS) {
                    sums[r][j] = 0.0;
                }
            }
            let end = start + self.group;
            let mut at = start;
            // SAFETY: inputs of one group, in pairs where a byte holds two.
            while at + DEPTH <= end {
                self.add::<V, R, DEPTH, FOUR>(row, at, &mut sums);
                at += DEPTH;
            }
            while FOUR && at + 2 <= end {
                self.add::<V, R, 2, FOUR>(row, at, &mut sums);
                at += 2;
            }
            while !FOUR && at < end {
                self.add::<V, R, 1, false>(row, at, &mut sums);
                at += 1;
            }
            let scale = self.scale.wrapping_add(start / self.group * self.pitch);
            for r in 0..R {
                for j in 0..cols.min(COLS) {
                    total[r][j] = V::Math::fma(sums[r][j], *scale.add(j), total[r][j]);
                }
            }
        }
        for r in 0..R {
            for j in 0..cols.min(COLS) {
                let bias = self.bias.map_or(0.0, |bias| *bias.add(j));
                *self.to.add((row + r) * self.pitch + j) = total[r][j] + bias;
            }
        }
    }

    /// Adds the products with `D` inputs. `FOUR`: each row of the weight is two.
    #[inline(always)]
    unsafe fn add<V: Lanes<Elem = f32>, const R: usize, const D: usize, const FOUR: bool>(
        &self,
        row: usize,
        at: usize,
        sums: &mut [[f32; COLS]; R],
    ) {
        let (_, k, cols) = self.size;
        let mut factors = [[0.0f32; D]; R];
        for (r, factors) in factors.iter_mut().enumerate() {
            for (d, factor) in factors.iter_mut().enumerate() {
                // SAFETY: an input of a row that exists.
                *factor = *self.x.add((row + r) * k + at + d);
            }
        }
        let line = self.weight.wrapping_add(if FOUR { at / 2 } else { at } * self.pitch);
        for j in 0..cols.min(COLS) {
            let mut values = [0.0f32; D];
            for d in 0..D {
                // SAFETY: the lines of these inputs, and columns that exist.
                let held = i32::from(*line.add(if FOUR { d / 2 } else { d } * self.pitch + j));
                let value = if !FOUR {
                    held
                } else if d % 2 == 0 {
                    held << 28 >> 28
                } else {
                    held >> 4
                };
                values[d] = value as f32;
            }
            for r in 0..R {
                for d in 0..D {
                    sums[r][j] = V::Math::fma(values[d], factors[r][d], sums[r][j]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
