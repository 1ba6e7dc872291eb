//! Runs of float16 and bfloat16 to and from `f32`.

use crate::dtype::{BF16, DType, F16};
use crate::vectorize;

/// Widens `len` elements of a narrow dtype.
///
/// # Safety
/// `from` holds `len` elements of `dtype`, `to` room for `len` `f32`; they do not overlap.
pub unsafe fn widen(dtype: DType, from: *const u16, to: *mut f32, len: usize) {
    // The narrow types are transparent over `u16`.
    let to = std::slice::from_raw_parts_mut(to, len);
    if dtype == DType::BF16 {
        widen_bf16(std::slice::from_raw_parts(from.cast(), len), to);
    } else {
        widen_f16(std::slice::from_raw_parts(from.cast(), len), to);
    }
}

/// Rounds `len` values to a narrow dtype.
///
/// # Safety
/// `from` holds `len` `f32`, `to` room for `len` elements of `dtype`; they do not overlap.
pub unsafe fn narrow(dtype: DType, from: *const f32, to: *mut u16, len: usize) {
    // The narrow types are transparent over `u16`.
    let from = std::slice::from_raw_parts(from, len);
    if dtype == DType::BF16 {
        narrow_bf16(from, std::slice::from_raw_parts_mut(to.cast(), len));
    } else {
        narrow_f16(from, std::slice::from_raw_parts_mut(to.cast(), len));
    }
}

vectorize!(
    /// Exact.
    pub widen_bf16(from: &[BF16], to: &mut [f32]) => widen_bf16_body
);
vectorize!(
    /// Rounds to nearest even.
    pub narrow_bf16(from: &[f32], to: &mut [BF16]) => narrow_bf16_body
);

#[inline(always)]
fn widen_bf16_body(from: &[BF16], to: &mut [f32]) {
    for (slot, x) in to.iter_mut().zip(from) {
        *slot = x.to_f32();
    }
}

#[inline(always)]
fn narrow_bf16_body(from: &[f32], to: &mut [BF16]) {
    for (slot, &x) in to.iter_mut().zip(from) {
        *slot = BF16::from_f32(x);
    }
}

/// Exact.
pub fn widen_f16(from: &[F16], to: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if crate::machine::simd::level() >= crate::machine::simd::Level::Avx2 {
        // SAFETY: the level includes F16C.
        return unsafe { f16c::widen(from, to) };
    }
    for (slot, x) in to.iter_mut().zip(from) {
        *slot = x.to_f32();
    }
}

/// Rounds to nearest even.
pub fn narrow_f16(from: &[f32], to: &mut [F16]) {
    #[cfg(target_arch = "x86_64")]
    if crate::machine::simd::level() >= crate::machine::simd::Level::Avx2 {
        // SAFETY: the level includes F16C.
        return unsafe { f16c::narrow(from, to) };
    }
    for (slot, &x) in to.iter_mut().zip(from) {
        *slot = F16::from_f32(x);
    }
}

#[cfg(target_arch = "x86_64")]
mod f16c {
    use super::F16;
    use std::arch::x86_64::{
        _MM_FROUND_TO_NEAREST_INT, _mm_loadu_si128, _mm_storeu_si128, _mm256_cvtph_ps, _mm256_cvtps_ph,
        _mm256_loadu_ps, _mm256_storeu_ps,
    };

    #[target_feature(enable = "avx,f16c")]
    pub fn widen(from: &[F16], to: &mut [f32]) {
        let (blocks, tail) = from.as_chunks::<8>();
        let (out, out_tail) = to.as_chunks_mut::<8>();
        for (block, slot) in blocks.iter().zip(out) {
            // SAFETY: both sides hold 8 elements; F16 is transparent over u16.
            unsafe { _mm256_storeu_ps(slot.as_mut_ptr(), _mm256_cvtph_ps(_mm_loadu_si128(block.as_ptr().cast()))) };
        }
        for (slot, x) in out_tail.iter_mut().zip(tail) {
            *slot = x.to_f32();
        }
    }

    #[target_feature(enable = "avx,f16c")]
    pub fn narrow(from: &[f32], to: &mut [F16]) {
        let (blocks, tail) = from.as_chunks::<8>();
        let (out, out_tail) = to.as_chunks_mut::<8>();
        for (block, slot) in blocks.iter().zip(out) {
            // SAFETY: both sides hold 8 elements; F16 is transparent over u16.
            unsafe {
                let narrow = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(block.as_ptr()));
                _mm_storeu_si128(slot.as_mut_ptr().cast(), narrow);
            }
        }
        for (slot, &x) in out_tail.iter_mut().zip(tail) {
            *slot = F16::from_f32(x);
        }
    }
}
