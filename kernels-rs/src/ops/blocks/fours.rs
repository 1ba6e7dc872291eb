//! Products of four neighboring bytes each, for registers of 128 bits.

#![allow(clippy::needless_range_loop, reason = "closures and iterator chains do not inherit the instruction set")]

use super::forms::{Form, MOST, PART, Part, SHARE, TOGETHER, blocks_of};
use crate::machine::lanes::Lanes;
use std::mem::transmute_copy;

/// Registers of floats that know them.
///
/// # Safety
/// As for [`Lanes`].
pub trait Fours: Lanes<Elem = f32> {
    /// For each lane the sum of four products; no value is -128.
    ///
    /// # Safety
    /// There are four bytes a lane.
    unsafe fn fours(whole: *const i8, values: *const i8) -> Self;
}

impl Fours for crate::machine::lanes::neon::F32x4 {
    #[inline(always)]
    unsafe fn fours(whole: *const i8, values: *const i8) -> Self {
        use crate::machine::lanes::neon::add_fours;
        // Registers hold any bits, and those of four `f32` are transparent.
        let fours: Self = add_fours(Self::load(whole.cast()), Self::load(values.cast()), Self::splat(0.0));
        transmute_copy(&std::arch::aarch64::vcvtq_f32_s32(transmute_copy(&fours)))
    }
}

/// The products of a row of blocks with `R` rows, whose parts are `count` each.
///
/// # Safety
/// The processor has the instructions of `V`; `row` holds the blocks of `count` parts (of small ones the last may be missing),
/// `x` holds `R` rows of `count` parts.
#[inline(always)]
pub unsafe fn products<F: Form, V: Fours, const R: usize>(
    row: &[u8],
    x: &[Part],
    count: usize,
    sums: &mut [f32; TOGETHER],
) {
    let mut totals = [V::splat(0.0); R];
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
        for first in (0..PART / 4).step_by(V::N) {
            let (factor, less) = (V::load(factors.as_ptr().add(first)), V::load(least.as_ptr().add(first)));
            for (r, total) in totals.iter_mut().enumerate() {
                let values = &*x.as_ptr().add(r * count + at);
                let found = V::fours(signed.as_ptr().add(4 * first), values.whole.as_ptr().add(4 * first));
                let by = factor.mul(V::load(values.scale.as_ptr().add(first)));
                *total = found.mul_add(by, *total);
                if F::HAS_LEAST {
                    *total = less.mul_add(V::load(values.sums.as_ptr().cast::<f32>().add(first)), *total);
                }
            }
        }
    }
    for (sum, total) in sums.iter_mut().zip(totals) {
        *sum = total.sum();
    }
}
