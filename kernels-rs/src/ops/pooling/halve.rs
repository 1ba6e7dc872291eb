//! The pool of 2 x 2 squares side by side, the one that most networks use.

use crate::array::number::Ordered;
use crate::vectorize;

/// Where places go, and the place of the first element of the rows.
pub type Places<'a> = (&'a mut [i64], i32);

/// An element with such a pool.
pub trait Halve: Ordered {
    /// The maxima of 2 x 2 squares of whole pairs of rows, with their places (counted from a start) where wanted.
    fn halve(rows: &[Self], cols: usize, out: &mut [Self], places: Option<Places<'_>>) {
        any(rows, cols, out, places);
    }
}

macro_rules! halves {
    ($($rust:ident)*) => {$(
        impl Halve for $rust {}
    )*};
}
halves!(f64 i32 i64 u64);

impl Halve for f32 {
    // Rows are often shorter than a register of neighbours, so masks pay.
    fn halve(rows: &[f32], cols: usize, out: &mut [f32], places: Option<Places<'_>>) {
        #[cfg(target_arch = "x86_64")]
        if crate::machine::simd::level() == crate::machine::simd::Level::Avx512 && cols >= 2 {
            // SAFETY: the level says that the CPU has the instructions.
            return unsafe { avx512::halve(rows, cols, out, places) };
        }
        any(rows, cols, out, places);
    }
}

fn any<T: Ordered>(rows: &[T], cols: usize, out: &mut [T], places: Option<Places<'_>>) {
    match places {
        None => values(rows, cols, out),
        Some((places, start)) => with_places(rows, cols, out, places, start),
    }
}

vectorize!(values[T: Ordered](rows: &[T], cols: usize, out: &mut [T]) => values_body::<T>, wide T::WIDE, fast T::DTYPE.is_float());

#[inline(always)]
fn values_body<T: Ordered>(rows: &[T], cols: usize, out: &mut [T]) {
    for (pair, line) in rows.chunks_exact(2 * cols).zip(out.chunks_exact_mut(cols / 2)) {
        let (top, bottom) = (pair[..cols].as_chunks::<2>().0, pair[cols..].as_chunks::<2>().0);
        for ((slot, &[a, b]), &[c, d]) in line.iter_mut().zip(top).zip(bottom) {
            let first = if b.beats(a) { b } else { a };
            let second = if d.beats(c) { d } else { c };
            *slot = if second.beats(first) { second } else { first };
        }
    }
}

vectorize!(
    with_places[T: Ordered](rows: &[T], cols: usize, out: &mut [T], places: &mut [i64], start: i32)
        => with_places_body::<T>, wide T::WIDE, fast T::DTYPE.is_float()
);

#[inline(always)]
fn with_places_body<T: Ordered>(rows: &[T], cols: usize, out: &mut [T], places: &mut [i64], start: i32) {
    let lines = out.chunks_exact_mut(cols / 2).zip(places.chunks_exact_mut(cols / 2));
    for (at, (pair, (line, line_places))) in rows.chunks_exact(2 * cols).zip(lines).enumerate() {
        let start = start + (2 * at * cols) as i32;
        let (top, bottom) = (pair[..cols].as_chunks::<2>().0, pair[cols..].as_chunks::<2>().0);
        for (i, (((slot, place), &[a, b]), &[c, d])) in
            line.iter_mut().zip(line_places).zip(top).zip(bottom).enumerate()
        {
            let (right, low_right) = (b.beats(a), d.beats(c));
            let first = if right { b } else { a };
            let second = if low_right { d } else { c };
            let low = second.beats(first);
            *slot = if low { second } else { first };
            let offset = if low { cols as i32 + low_right as i32 } else { right as i32 };
            *place = (start + 2 * i as i32 + offset) as i64;
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::Places;
    use std::arch::x86_64::*;

    /// True where `b` is greater than `a`, or NaN where `a` is not.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn beats(b: __m512, a: __m512) -> __mmask16 {
        _mm512_cmp_ps_mask::<_CMP_NLE_UQ>(b, a) & _mm512_cmp_ps_mask::<_CMP_ORD_Q>(a, a)
    }

    #[inline]
    fn low_bits(count: usize) -> __mmask16 {
        ((1u32 << count.min(16)) - 1) as __mmask16
    }

    /// The even and the odd ones of the first `2 * count` elements.
    ///
    /// # Safety
    /// So many elements are readable.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn unzip(from: *const f32, count: usize) -> (__m512, __m512) {
        let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        let odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
        // SAFETY: masked lanes are not read.
        let (x, y) = {
            let rest = (2 * count).saturating_sub(16);
            (
                _mm512_maskz_loadu_ps(low_bits(2 * count), from),
                _mm512_maskz_loadu_ps(low_bits(rest), from.wrapping_add(16)),
            )
        };
        (_mm512_permutex2var_ps(x, even, y), _mm512_permutex2var_ps(x, odd, y))
    }

    #[target_feature(enable = "avx512f")]
    pub fn halve(rows: &[f32], cols: usize, out: &mut [f32], mut places: Option<Places<'_>>) {
        let width = cols / 2;
        let steps = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        let one = _mm512_set1_epi32(1);
        for (at, (pair, line)) in rows.chunks_exact(2 * cols).zip(out.chunks_exact_mut(width)).enumerate() {
            for first in (0..width).step_by(16) {
                let count = (width - first).min(16);
                // SAFETY: both rows hold 2 * (first + count) elements.
                let ((a, b), (c, d)) = unsafe {
                    let top = pair.as_ptr().add(2 * first);
                    (unzip(top, count), unzip(top.add(cols), count))
                };
                let (right, low_right) = (beats(b, a), beats(d, c));
                let upper = _mm512_mask_blend_ps(right, a, b);
                let lower = _mm512_mask_blend_ps(low_right, c, d);
                let low = beats(lower, upper);
                let best = _mm512_mask_blend_ps(low, upper, lower);
                // SAFETY: masked lanes are not written.
                unsafe { _mm512_mask_storeu_ps(line.as_mut_ptr().add(first), low_bits(count), best) };
                let Some((places, start)) = &mut places else { continue };
                let offset = _mm512_mask_blend_epi32(
                    low,
                    _mm512_maskz_mov_epi32(right, one),
                    _mm512_mask_add_epi32(
                        _mm512_set1_epi32(cols as i32),
                        low_right,
                        _mm512_set1_epi32(cols as i32),
                        one,
                    ),
                );
                let base = *start + (2 * at * cols + 2 * first) as i32;
                let place = _mm512_add_epi32(_mm512_add_epi32(_mm512_set1_epi32(base), steps), offset);
                let (near, far) = (_mm512_castsi512_si256(place), _mm512_extracti64x4_epi64::<1>(place));
                let bits = low_bits(count);
                // SAFETY: `places` is as long as `out`; masked lanes are not written.
                unsafe {
                    let to = places.as_mut_ptr().add(at * width + first);
                    _mm512_mask_storeu_epi64(to, bits as __mmask8, _mm512_cvtepi32_epi64(near));
                    _mm512_mask_storeu_epi64(to.wrapping_add(8), (bits >> 8) as __mmask8, _mm512_cvtepi32_epi64(far));
                }
            }
        }
    }
}
