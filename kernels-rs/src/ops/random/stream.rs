//! Numbers of a law as a stream: all of an array, or some in the middle of it.

use super::{PIECE, fill, normal, not_float, philox, uniform_f32, unit, unit64};
use crate::array::Array;
use crate::dtype::{BF16, DType, Element, F16, Float};
use crate::error::Result;

/// What the numbers are distributed as, with two parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// From the first on, below the second.
    Uniform,
    /// Of a mean and a standard deviation.
    Normal,
}

impl Law {
    /// The law of an op, by its name.
    pub fn of(op: &str) -> Option<Self> {
        match op {
            "random_normal" => Some(Self::Normal),
            "random_uniform" => Some(Self::Uniform),
            _ => None,
        }
    }
}

/// The numbers that an op draws.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// What they are distributed as.
    pub law: Law,
    /// Of an element: a float.
    pub dtype: DType,
    /// The first parameter of the law.
    pub first: f64,
    /// The second one.
    pub second: f64,
    /// Of the words.
    pub key: u64,
    /// The first block of words.
    pub counter: u64,
}

/// Elements that are made of words.
trait Drawn: Element {
    /// Words of an element.
    const WORDS: usize;
    fn uniform(words: &[u32], out: &mut [Self], low: f64, high: f64);
    /// Words are those of whole pairs.
    fn normal(words: &[u32], out: &mut [Self], mean: f64, std: f64);
}

/// Runs a body with the type of the elements.
macro_rules! drawn {
    ($stream:expr, $T:ident => $body:expr) => {
        match $stream.dtype {
            DType::BF16 => {
                type $T = BF16;
                $body
            }
            DType::F16 => {
                type $T = F16;
                $body
            }
            DType::F32 => {
                type $T = f32;
                $body
            }
            DType::F64 => {
                type $T = f64;
                $body
            }
            _ => unreachable!("numbers of a law are floats"),
        }
    };
}

impl Stream {
    /// Elements of a part at most.
    pub const PART: usize = 128;

    /// The first elements, as an array.
    pub fn array(&self, shape: &[usize]) -> Result<Array> {
        if !self.dtype.is_float() {
            return Err(not_float(self.name(), self.dtype));
        }
        let mut out = Array::uninit(self.dtype, shape)?;
        drawn!(self, T => fill(out.as_mut_slice::<T>(), T::WORDS, self.key, self.counter, &|words, out| {
            self.make(words, out);
        }));
        Ok(out)
    }

    /// Writes the elements `at..at + len`, which begin with a block of words and are at most [`Stream::PART`].
    ///
    /// # Safety
    /// There is room for the elements at `to`, which is aligned for them and the caller's to write.
    pub unsafe fn part(&self, at: usize, len: usize, to: *mut u8) {
        assert!(at.is_multiple_of(philox::BLOCK) && len <= Self::PART, "{at} {len}");
        drawn!(self, T => {
            let mut buffer = [0u32; 2 * Self::PART];
            let words = &mut buffer[..len.next_multiple_of(2) * T::WORDS];
            philox::words(words, self.key, self.counter.wrapping_add((at * T::WORDS / philox::BLOCK) as u64));
            let to: *mut T = to.cast();
            // SAFETY: any bytes are an element.
            self.make(words, std::slice::from_raw_parts_mut(to, len));
        });
    }

    fn make<T: Drawn>(&self, words: &[u32], out: &mut [T]) {
        match self.law {
            Law::Normal => T::normal(words, out, self.first, self.second),
            Law::Uniform => T::uniform(words, out, self.first, self.second),
        }
    }

    fn name(&self) -> &'static str {
        match self.law {
            Law::Normal => "random_normal",
            Law::Uniform => "random_uniform",
        }
    }
}

impl Drawn for f32 {
    const WORDS: usize = 1;

    fn uniform(words: &[u32], out: &mut [f32], low: f64, high: f64) {
        uniform_f32(words, out, low as f32, (high - low) as f32);
    }

    fn normal(words: &[u32], out: &mut [f32], mean: f64, std: f64) {
        normals(words, out, mean, std);
    }
}

impl Drawn for F16 {
    const WORDS: usize = 1;

    fn uniform(words: &[u32], out: &mut [F16], low: f64, high: f64) {
        uniforms::<F16, 21>(words, out, low, high);
    }

    fn normal(words: &[u32], out: &mut [F16], mean: f64, std: f64) {
        normals(words, out, mean, std);
    }
}

impl Drawn for BF16 {
    const WORDS: usize = 1;

    fn uniform(words: &[u32], out: &mut [BF16], low: f64, high: f64) {
        uniforms::<BF16, 24>(words, out, low, high);
    }

    fn normal(words: &[u32], out: &mut [BF16], mean: f64, std: f64) {
        normals(words, out, mean, std);
    }
}

impl Drawn for f64 {
    const WORDS: usize = 2;

    fn uniform(words: &[u32], out: &mut [f64], low: f64, high: f64) {
        for (out, pair) in out.iter_mut().zip(words.as_chunks().0) {
            *out = low + unit64(*pair) * (high - low);
        }
    }

    fn normal(words: &[u32], out: &mut [f64], mean: f64, std: f64) {
        for (out, words) in out.chunks_mut(2).zip(words.as_chunks::<4>().0) {
            let [a, b, c, d] = *words;
            let radius = (-2.0 * (1.0 - unit64([a, b])).ln()).sqrt();
            let (sin, cos) = (std::f64::consts::TAU * unit64([c, d])).sin_cos();
            let pair = [mean + std * (radius * cos), mean + std * (radius * sin)];
            out.copy_from_slice(&pair[..out.len()]);
        }
    }
}

fn uniforms<T: Float<Wide = f32>, const DROP: u32>(words: &[u32], out: &mut [T], low: f64, high: f64) {
    let (start, range) = (low as f32, (high - low) as f32);
    for (out, &word) in out.iter_mut().zip(words) {
        *out = T::narrow(start + unit::<DROP>(word) * range);
    }
}

fn normals<T: Float<Wide = f32>>(words: &[u32], out: &mut [T], mean: f64, std: f64) {
    let mut wide = [0.0; PIECE];
    normal::normal(words, &mut wide[..words.len()], mean as f32, std as f32);
    for (out, &value) in out.iter_mut().zip(&wide) {
        *out = T::narrow(value);
    }
}
