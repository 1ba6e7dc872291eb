//! Rows as integers of 8 bits, and their products with rows of blocks.

use super::GROUP;
use super::forms::{Form, LANES, MOST, PART, Part, SHARE, TOGETHER, blocks_of};
#[cfg(target_arch = "aarch64")]
use super::neon::products;
#[cfg(target_arch = "aarch64")]
use crate::machine::simd;
use crate::memory::scratch::filled;
use std::ops::Range;

/// Calls a kernel of that many rows.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! by_rows {
    ($rows:expr, $kernel:ident::<$form:ident>($($given:expr),*)) => {
        match $rows {
            1 => $kernel::<$form, 1>($($given),*),
            2 => $kernel::<$form, 2>($($given),*),
            3 => $kernel::<$form, 3>($($given),*),
            _ => $kernel::<$form, TOGETHER>($($given),*),
        }
    };
}
#[cfg(target_arch = "x86_64")]
pub(super) use by_rows;

/// Rows in the parts of a form.
pub struct Rows {
    parts: Vec<Part>,
    /// Rows, and parts of each.
    size: (usize, usize),
}

impl Rows {
    /// Rows of `k` numbers.
    pub fn new<F: Form>(from: &[f32], (rows, k): (usize, usize)) -> Self {
        let count = k.div_ceil(PART);
        let empty = Part { whole: [0; PART], scale: [0.0; LANES], sums: [0; LANES] };
        let mut parts = filled(empty, rows * count);
        for (from, to) in from.chunks_exact(k.max(1)).zip(parts.chunks_exact_mut(count.max(1))) {
            into_parts::<F>(from, to);
        }
        Self { parts, size: (rows, count) }
    }

    #[cfg(all(test, target_arch = "x86_64"))]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The products of a row of blocks with some rows.
    pub fn dots<F: Form>(&self, row: &[u8], rows: Range<usize>, sums: &mut [f32; TOGETHER]) {
        let count = self.size.1;
        let x = &self.parts[rows.start * count..rows.end * count];
        #[cfg(target_arch = "aarch64")]
        if simd::has_byte_products() {
            // SAFETY: the instructions were asked for, and there are one to `TOGETHER` rows of `count` parts.
            return unsafe { by_rows!(rows.len(), products::<F>(row, x, count, sums)) };
        }
        plain::<F>(row, x, count, sums);
    }
}

fn into_parts<F: Form>(from: &[f32], to: &mut [Part]) {
    for (group, from) in from.chunks_exact(GROUP).enumerate() {
        let (part, start) = (&mut to[group / 2], group % 2 * GROUP);
        let mut whole = [0; GROUP];
        let scale = into_bytes(from, &mut whole);
        part.whole[start..start + GROUP].copy_from_slice(&whole);
        for (i, four) in whole.as_chunks::<4>().0.iter().enumerate() {
            let sum = sum_of_four(*four);
            part.scale[start / 4 + i] = scale;
            part.sums[start / 4 + i] =
                if F::HAS_LEAST { (sum as f32 * scale).to_bits() as i32 } else { -F::OFFSET * sum };
        }
    }
}

/// Writes a group of numbers as integers, and returns their scale: NaN where one of them is none, or infinite.
#[inline(always)]
pub fn into_bytes(from: &[f32], to: &mut [i8; GROUP]) -> f32 {
    let from: &[f32; GROUP] = from.try_into().expect("a group");
    // Without signs, floats are in the order of their bits, infinity and NaN behind all numbers.
    let most = from.iter().fold(0, |most, v| (v.to_bits() & 0x7fff_ffff).max(most));
    let scale = f32::from_bits(most) / 127.0;
    let by = if scale > 0.0 { scale } else { f32::INFINITY };
    for (to, v) in to.iter_mut().zip(from) {
        // Of 1.5 * 2^23 and a small number the last bits are the nearest integer, the even one of two. Beside a scale that
        // is none they may be any.
        *to = ((v / by).clamp(-127.0, 127.0) + 12_582_912.0).to_bits() as i8;
    }
    if scale.is_finite() { scale } else { f32::NAN }
}

/// The sum of four signed bytes.
#[inline(always)]
pub fn sum_of_four(bytes: [i8; 4]) -> i32 {
    let from_zero = u32::from_le_bytes(bytes.map(|v| v as u8)) ^ 0x8080_8080;
    let pairs = (from_zero & 0x00ff_00ff) + (from_zero >> 8 & 0x00ff_00ff);
    (pairs & 0xffff) as i32 + (pairs >> 16) as i32 - 4 * 128
}

/// The products of a row of blocks with up to [`TOGETHER`] rows, whose parts are `count` each, by loops: for processors that have
/// none of these instructions.
pub fn plain<F: Form>(row: &[u8], x: &[Part], count: usize, sums: &mut [f32; TOGETHER]) {
    const PAIRS: usize = SHARE / 2;
    let mut whole = [0; PART];
    let mut totals = [[0.0f32; PAIRS]; TOGETHER];
    for at in 0..count {
        let mut room = [0; MOST];
        let (blocks, part) = blocks_of::<F>(row, at, &mut room);
        F::whole(blocks, part, &mut whole);
        let (factors, least) = F::factors(blocks, part);
        for ((total, sum), x) in totals.iter_mut().zip(&mut *sums).zip(x.chunks_exact(count)) {
            let x = &x[at];
            for share in 0..PART / SHARE {
                let (w, v) = (&whole[share * SHARE..][..SHARE], &x.whole[share * SHARE..][..SHARE]);
                let by = factors[share] * x.scale[share * 4];
                for i in 0..PAIRS {
                    let value = |at: usize| i32::from(w[at]) - F::OFFSET;
                    let dot = value(2 * i) * i32::from(v[2 * i]) + value(2 * i + 1) * i32::from(v[2 * i + 1]);
                    total[i] += by * dot as f32;
                }
                if F::HAS_LEAST {
                    let all: f32 = (0..4).map(|i| f32::from_bits(x.sums[share * 4 + i] as u32)).sum();
                    *sum += least[share] * all;
                }
            }
        }
    }
    for (sum, total) in sums.iter_mut().zip(totals) {
        *sum += total.iter().sum::<f32>();
    }
}
