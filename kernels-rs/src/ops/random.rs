//! Random numbers by counter: what element `i` is depends on key, counter and `i` alone.

mod normal;
mod philox;
mod stream;
#[cfg(test)]
mod tests;

pub use stream::{Law, Stream};

use crate::array::Array;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::machine::threads::{self, SharedMut};
use crate::ops::elementwise::convert::cast;

/// Elements in one piece: its words fit the first cache.
const PIECE: usize = 1024;
/// Pieces in one task.
const TOGETHER: usize = 16;

/// The first `count` words of the stream of `key` from block `counter` on, as `dtype`.
pub fn random_bits(count: usize, key: u64, counter: u64, dtype: DType) -> Result<Array> {
    let mut out = Array::uninit(DType::U32, &[count])?;
    fill(out.as_mut_slice::<u32>(), 1, key, counter, &|words, out| {
        out.copy_from_slice(&words[..out.len()]);
    });
    if dtype == DType::U32 { Ok(out) } else { cast(&out, dtype) }
}

/// Uniform numbers in `[low, high)`: `low + u * (high - low)`, where `u` takes as many bits as the type holds.
pub fn random_uniform(shape: &[usize], low: f64, high: f64, dtype: DType, key: u64, counter: u64) -> Result<Array> {
    Stream { law: Law::Uniform, dtype, first: low, second: high, key, counter }.array(shape)
}

/// Normal numbers by Box and Muller (1958) from pairs of uniforms, in `f32` (`f64` for `f64`).
pub fn random_normal(shape: &[usize], mean: f64, std: f64, dtype: DType, key: u64, counter: u64) -> Result<Array> {
    Stream { law: Law::Normal, dtype, first: mean, second: std, key, counter }.array(shape)
}

fn not_float(op: &str, dtype: DType) -> Error {
    Error::value(op, format!("wrong dtype: got {}, expected a float", dtype.name()))
}

/// Runs `make(words, out)` on pieces of the result, with `per` words for each element; words come in pairs.
fn fill<T: Element>(out: &mut [T], per: usize, key: u64, counter: u64, make: &(dyn Fn(&[u32], &mut [T]) + Sync)) {
    let len = out.len();
    let to = SharedMut::new(out.as_mut_ptr());
    threads::parallel(len.div_ceil(PIECE * TOGETHER), &|task| {
        let mut buffer = [0u32; 2 * PIECE];
        let first = task * PIECE * TOGETHER;
        for start in (first..len.min(first + PIECE * TOGETHER)).step_by(PIECE) {
            // SAFETY: each piece belongs to one task.
            let out = unsafe { to.slice(start..len.min(start + PIECE)) };
            // One element is half of a pair.
            let words = &mut buffer[..out.len().next_multiple_of(2) * per];
            philox::words(words, key, counter.wrapping_add((start * per / philox::BLOCK) as u64));
            make(words, out);
        }
    });
}

/// The upper bits of a word as a number in [0, 1).
#[inline(always)]
fn unit<const DROP: u32>(word: u32) -> f32 {
    (word >> DROP) as f32 * (1.0 / (1u64 << (32 - DROP)) as f32)
}

/// 53 bits of two words as a number in [0, 1).
#[inline(always)]
fn unit64([high, low]: [u32; 2]) -> f64 {
    ((high >> 5) as f64 * (1u64 << 26) as f64 + (low >> 6) as f64) * (1.0 / (1u64 << 53) as f64)
}

crate::vectorize!(uniform_f32(words: &[u32], out: &mut [f32], start: f32, range: f32) => uniform_f32_any);

#[inline(always)]
fn uniform_f32_any(words: &[u32], out: &mut [f32], start: f32, range: f32) {
    for (out, &word) in out.iter_mut().zip(words) {
        *out = start + unit::<8>(word) * range;
    }
}
