//! Squares of registers turned over.

use std::arch::x86_64::*;

/// 16 x 16 in place: 4 x 4 inside each 128-bit lane, then whole lanes.
#[inline(always)]
pub(crate) unsafe fn transpose16(r: &mut [__m512; 16]) {
    for q in 0..4 {
        let (a, b, c, d) = (r[4 * q], r[4 * q + 1], r[4 * q + 2], r[4 * q + 3]);
        let (low_ab, high_ab) = (_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
        let (low_cd, high_cd) = (_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
        let (x, y) = (_mm512_castps_pd(low_ab), _mm512_castps_pd(low_cd));
        let (z, w) = (_mm512_castps_pd(high_ab), _mm512_castps_pd(high_cd));
        r[4 * q] = _mm512_castpd_ps(_mm512_unpacklo_pd(x, y));
        r[4 * q + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(x, y));
        r[4 * q + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(z, w));
        r[4 * q + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(z, w));
    }
    for i in 0..4 {
        let (a, b, c, d) = (r[i], r[4 + i], r[8 + i], r[12 + i]);
        let (even_ab, odd_ab) = (_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xdd>(a, b));
        let (even_cd, odd_cd) = (_mm512_shuffle_f32x4::<0x88>(c, d), _mm512_shuffle_f32x4::<0xdd>(c, d));
        r[i] = _mm512_shuffle_f32x4::<0x88>(even_ab, even_cd);
        r[8 + i] = _mm512_shuffle_f32x4::<0xdd>(even_ab, even_cd);
        r[4 + i] = _mm512_shuffle_f32x4::<0x88>(odd_ab, odd_cd);
        r[12 + i] = _mm512_shuffle_f32x4::<0xdd>(odd_ab, odd_cd);
    }
}

/// 8 x 8 in place: 2 x 2 inside each 128-bit lane, then whole lanes.
#[inline(always)]
pub(crate) unsafe fn transpose8x64(r: &mut [__m512d; 8]) {
    for q in 0..4 {
        let (a, b) = (r[2 * q], r[2 * q + 1]);
        (r[2 * q], r[2 * q + 1]) = (_mm512_unpacklo_pd(a, b), _mm512_unpackhi_pd(a, b));
    }
    for i in 0..2 {
        let (a, b, c, d) = (r[i], r[2 + i], r[4 + i], r[6 + i]);
        let (even_ab, odd_ab) = (_mm512_shuffle_f64x2::<0x88>(a, b), _mm512_shuffle_f64x2::<0xdd>(a, b));
        let (even_cd, odd_cd) = (_mm512_shuffle_f64x2::<0x88>(c, d), _mm512_shuffle_f64x2::<0xdd>(c, d));
        r[i] = _mm512_shuffle_f64x2::<0x88>(even_ab, even_cd);
        r[4 + i] = _mm512_shuffle_f64x2::<0xdd>(even_ab, even_cd);
        r[2 + i] = _mm512_shuffle_f64x2::<0x88>(odd_ab, odd_cd);
        r[6 + i] = _mm512_shuffle_f64x2::<0xdd>(odd_ab, odd_cd);
    }
}

/// 8 x 8 in place: 4 x 4 inside each half, then the halves.
#[inline(always)]
pub(crate) unsafe fn transpose8(r: &mut [__m256; 8]) {
    for q in 0..2 {
        let (a, b, c, d) = (r[4 * q], r[4 * q + 1], r[4 * q + 2], r[4 * q + 3]);
        let (low_ab, high_ab) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
        let (low_cd, high_cd) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
        r[4 * q] = _mm256_shuffle_ps::<0x44>(low_ab, low_cd);
        r[4 * q + 1] = _mm256_shuffle_ps::<0xee>(low_ab, low_cd);
        r[4 * q + 2] = _mm256_shuffle_ps::<0x44>(high_ab, high_cd);
        r[4 * q + 3] = _mm256_shuffle_ps::<0xee>(high_ab, high_cd);
    }
    for i in 0..4 {
        let (a, b) = (r[i], r[4 + i]);
        r[i] = _mm256_permute2f128_ps::<0x20>(a, b);
        r[4 + i] = _mm256_permute2f128_ps::<0x31>(a, b);
    }
}
