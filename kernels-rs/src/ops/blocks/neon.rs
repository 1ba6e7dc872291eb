//! Rows of 8 bits times rows of blocks by the instruction of NEON that multiplies four neighboring bytes and adds the products.

#![allow(clippy::needless_range_loop, reason = "closures and iterator chains do not inherit the instruction set")]

use super::forms::{Form, MOST, PART, Part, SHARE, TOGETHER, blocks_of};
use crate::machine::lanes::Lanes;
use crate::machine::lanes::neon::{F32x4, add_fours};
use std::arch::aarch64::vcvtq_f32_s32;
use std::mem::transmute_copy;

/// For each lane the sum of four products.
///
/// # Safety
/// 16 bytes can be read from each; the processor has `sdot`.
#[inline(always)]
unsafe fn fours(whole: *const i8, values: *const i8) -> F32x4 {
    // Registers hold any bits, and those of four `f32` are transparent.
    let found = add_fours(F32x4::load(whole.cast()), F32x4::load(values.cast()), F32x4::splat(0.0));
    transmute_copy(&vcvtq_f32_s32(transmute_copy(&found)))
}

/// The products of a row of blocks with `R` rows, whose parts are `count` each.
///
/// # Safety
/// The processor has `sdot`; `row` holds the blocks of `count` parts (of small ones the last may be missing),
/// `x` holds `R` rows of `count` parts.
#[inline(always)]
pub unsafe fn products<F: Form, const R: usize>(row: &[u8], x: &[Part], count: usize, sums: &mut [f32; TOGETHER]) {
    let mut totals = [F32x4::splat(0.0); R];
    for at in 0..count {
        let (mut room, mut whole) = ([0; MOST], [0; PART]);
        let (blocks, part) = blocks_of::<F>(row, at, &mut room);
        F::whole(blocks, part, &mut whole);
        let by = F::factors(blocks, part);
        let (mut signed, mut factors, mut least) = ([0; PART], [0.0; PART / 4], [0.0; PART / 4]);
        for i in 0..PART {
            signed[i] = whole[i].wrapping_sub(F::OFFSET as u8) as i8;
        }
        for i in 0..PART / 4 {
            (factors[i], least[i]) = (by.0[i * 4 / SHARE], by.1[i * 4 / SHARE]);
        }
        for first in (0..PART / 4).step_by(F32x4::N) {
            let (factor, less) = (F32x4::load(factors.as_ptr().add(first)), F32x4::load(least.as_ptr().add(first)));
            for (r, total) in totals.iter_mut().enumerate() {
                let values = &*x.as_ptr().add(r * count + at);
                let found = fours(signed.as_ptr().add(4 * first), values.whole.as_ptr().add(4 * first));
                let by = factor.mul(F32x4::load(values.scale.as_ptr().add(first)));
                *total = found.mul_add(by, *total);
                if F::HAS_LEAST {
                    *total = less.mul_add(F32x4::load(values.sums.as_ptr().cast::<f32>().add(first)), *total);
                }
            }
        }
    }
    for (sum, total) in sums.iter_mut().zip(totals) {
        *sum = total.sum();
    }
}
