//! AVX-512 and AVX2 registers.

use super::{Block, Lanes};
use crate::math::Fused;
use std::arch::x86_64::*;

/// Sixteen `f32`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct F32x16(__m512);
/// Eight `f64`.
#[derive(Clone, Copy)]
pub struct F64x8(__m512d);
/// Eight `f32`.
#[derive(Clone, Copy)]
pub struct F32x8(__m256);
/// Four `f64`.
#[derive(Clone, Copy)]
pub struct F64x4(__m256d);

macro_rules! methods {
    ($elem:ident, $set1:ident, $loadu:ident, $storeu:ident, $fmadd:ident, $add:ident, $sub:ident, $mul:ident, $div:ident, $max:ident,
     $sqrt:ident) => {
        #[inline(always)]
        unsafe fn splat(value: $elem) -> Self {
            // SAFETY: the caller has the instructions.
            Self(unsafe { $set1(value) })
        }
        #[inline(always)]
        unsafe fn load(from: *const $elem) -> Self {
            // SAFETY: the caller promises the instructions and `N` elements there; the access needs no alignment.
            Self(unsafe { $loadu(from) })
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut $elem) {
            // SAFETY: the caller promises the instructions and `N` elements there; the access needs no alignment.
            unsafe { $storeu(to, self.0) }
        }
        #[inline(always)]
        unsafe fn mul_add(self, by: Self, plus: Self) -> Self {
            // SAFETY: the caller has the instructions.
            Self(unsafe { $fmadd(self.0, by.0, plus.0) })
        }
        #[inline(always)]
        unsafe fn add(self, other: Self) -> Self {
            // SAFETY: the caller has the instructions.
            Self(unsafe { $add(self.0, other.0) })
        }
        #[inline(always)]
        unsafe fn sub(self, other: Self) -> Self {
            // SAFETY: the caller has the instructions.
            Self(unsafe { $sub(self.0, other.0) })
        }
        #[inline(always)]
        unsafe fn mul(self, other: Self) -> Self {
            // SAFETY: the caller has the instructions.
            Self(unsafe { $mul(self.0, other.0) })
        }
        #[inline(always)]
        unsafe fn div(self, other: Self) -> Self {
            // SAFETY: the caller has the instructions.
            Self(unsafe { $div(self.0, other.0) })
        }
        #[inline(always)]
        unsafe fn sqrt(self) -> Self {
            // SAFETY: the caller has the instructions.
            Self(unsafe { $sqrt(self.0) })
        }
        #[inline(always)]
        unsafe fn max(self, other: Self) -> Self {
            // The instruction gives its second operand where either is NaN.
            // SAFETY: the caller has the instructions.
            Self(unsafe { $max(other.0, self.0) })
        }
    };
}

impl Lanes for F32x16 {
    type Elem = f32;
    type Math = Fused;
    const N: usize = 16;
    const ROWS: usize = 14;
    methods!(
        f32,
        _mm512_set1_ps,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_fmadd_ps,
        _mm512_add_ps,
        _mm512_sub_ps,
        _mm512_mul_ps,
        _mm512_div_ps,
        _mm512_max_ps,
        _mm512_sqrt_ps
    );

    #[inline(always)]
    unsafe fn peak(self) -> f32 {
        // SAFETY: the caller has AVX-512.
        unsafe { _mm512_reduce_max_ps(self.0) }
    }
    #[inline(always)]
    unsafe fn load_partial(from: *const f32, count: usize) -> Self {
        // SAFETY: masked lanes are not read.
        Self(unsafe { _mm512_maskz_loadu_ps(mask16(count), from) })
    }
    #[inline(always)]
    unsafe fn load_window(from: *const f32, window: (usize, usize)) -> Self {
        // SAFETY: masked lanes are not read.
        Self(unsafe { _mm512_maskz_loadu_ps(window16(window), from) })
    }
    #[inline(always)]
    unsafe fn store_partial(self, to: *mut f32, count: usize) {
        // SAFETY: masked lanes are not written.
        unsafe { _mm512_mask_storeu_ps(to, mask16(count), self.0) }
    }
    #[inline(always)]
    unsafe fn even(a: Self, b: Self) -> Self {
        // SAFETY: the caller has AVX-512.
        unsafe {
            let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
            Self(_mm512_permutex2var_ps(a.0, even, b.0))
        }
    }
    #[inline(always)]
    unsafe fn interleave(a: Self, b: Self) -> (Self, Self) {
        // SAFETY: the caller has AVX-512.
        unsafe {
            let low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            let high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
            (Self(_mm512_permutex2var_ps(a.0, low, b.0)), Self(_mm512_permutex2var_ps(a.0, high, b.0)))
        }
    }
    #[inline(always)]
    unsafe fn transpose(from: Block<f32>, to: *mut f32, to_pitch: usize, keep: usize) {
        // SAFETY: rows and columns outside the block are masked off.
        unsafe {
            let mut r = [_mm512_setzero_ps(); 16];
            for (i, row) in r.iter_mut().enumerate() {
                if i < from.rows {
                    *row = _mm512_maskz_loadu_ps(mask16(from.cols), from.at.add(i * from.pitch));
                }
            }
            transpose16(&mut r);
            for (i, row) in r.iter().enumerate() {
                if i < from.cols {
                    _mm512_mask_storeu_ps(to.add(i * to_pitch), mask16(keep), *row);
                }
            }
        }
    }
}

/// The lowest `count` bits set.
#[inline(always)]
fn mask16(count: usize) -> u16 {
    ((1u32 << count) - 1) as u16
}

/// Bits `window.0..window.1` set.
#[inline(always)]
fn window16(window: (usize, usize)) -> u16 {
    mask16(window.1) & !mask16(window.0)
}

/// 16 x 16 in place: 4 x 4 inside each 128-bit lane, then whole lanes.
#[inline(always)]
pub(crate) unsafe fn transpose16(r: &mut [__m512; 16]) {
    // SAFETY: the caller has AVX-512.
    unsafe {
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
}

impl Lanes for F64x8 {
    type Elem = f64;
    type Math = Fused;
    const N: usize = 8;
    const ROWS: usize = 14;
    methods!(
        f64,
        _mm512_set1_pd,
        _mm512_loadu_pd,
        _mm512_storeu_pd,
        _mm512_fmadd_pd,
        _mm512_add_pd,
        _mm512_sub_pd,
        _mm512_mul_pd,
        _mm512_div_pd,
        _mm512_max_pd,
        _mm512_sqrt_pd
    );

    #[inline(always)]
    unsafe fn peak(self) -> f64 {
        // SAFETY: the caller has AVX-512.
        unsafe { _mm512_reduce_max_pd(self.0) }
    }
    #[inline(always)]
    unsafe fn load_partial(from: *const f64, count: usize) -> Self {
        // SAFETY: masked lanes are not read.
        Self(unsafe { _mm512_maskz_loadu_pd(mask16(count) as u8, from) })
    }
    #[inline(always)]
    unsafe fn load_window(from: *const f64, window: (usize, usize)) -> Self {
        // SAFETY: masked lanes are not read.
        Self(unsafe { _mm512_maskz_loadu_pd(window16(window) as u8, from) })
    }
    #[inline(always)]
    unsafe fn store_partial(self, to: *mut f64, count: usize) {
        // SAFETY: masked lanes are not written.
        unsafe { _mm512_mask_storeu_pd(to, mask16(count) as u8, self.0) }
    }
    #[inline(always)]
    unsafe fn transpose(from: Block<f64>, to: *mut f64, to_pitch: usize, keep: usize) {
        // SAFETY: rows and columns outside the block are masked off.
        unsafe {
            let mut r = [_mm512_setzero_pd(); 8];
            for (i, row) in r.iter_mut().enumerate() {
                if i < from.rows {
                    *row = _mm512_maskz_loadu_pd(mask16(from.cols) as u8, from.at.add(i * from.pitch));
                }
            }
            transpose8x64(&mut r);
            for (i, row) in r.iter().enumerate() {
                if i < from.cols {
                    _mm512_mask_storeu_pd(to.add(i * to_pitch), mask16(keep) as u8, *row);
                }
            }
        }
    }
}

/// 8 x 8 in place: 2 x 2 inside each 128-bit lane, then whole lanes.
#[inline(always)]
unsafe fn transpose8x64(r: &mut [__m512d; 8]) {
    // SAFETY: the caller has AVX-512.
    unsafe {
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
}

/// Sign bits set in the first `count` lanes.
#[inline(always)]
unsafe fn mask_ps(count: usize) -> __m256i {
    // SAFETY: the caller has AVX2.
    unsafe { _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)) }
}

/// Sign bits set in lanes `window.0..window.1`.
#[inline(always)]
unsafe fn window_ps(window: (usize, usize)) -> __m256i {
    // SAFETY: the caller has AVX2.
    unsafe { _mm256_andnot_si256(mask_ps(window.0), mask_ps(window.1)) }
}

impl Lanes for F32x8 {
    type Elem = f32;
    type Math = Fused;
    const N: usize = 8;
    const ROWS: usize = 6;
    methods!(
        f32,
        _mm256_set1_ps,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_fmadd_ps,
        _mm256_add_ps,
        _mm256_sub_ps,
        _mm256_mul_ps,
        _mm256_div_ps,
        _mm256_max_ps,
        _mm256_sqrt_ps
    );

    #[inline(always)]
    unsafe fn load_partial(from: *const f32, count: usize) -> Self {
        // SAFETY: masked lanes are not read.
        Self(unsafe { _mm256_maskload_ps(from, mask_ps(count)) })
    }
    #[inline(always)]
    unsafe fn load_window(from: *const f32, window: (usize, usize)) -> Self {
        // SAFETY: masked lanes are not read.
        Self(unsafe { _mm256_maskload_ps(from, window_ps(window)) })
    }
    #[inline(always)]
    unsafe fn store_partial(self, to: *mut f32, count: usize) {
        // SAFETY: masked lanes are not written.
        unsafe { _mm256_maskstore_ps(to, mask_ps(count), self.0) }
    }
    #[inline(always)]
    unsafe fn even(a: Self, b: Self) -> Self {
        // SAFETY: the caller has AVX2.
        unsafe {
            let halves = _mm256_shuffle_ps::<0x88>(a.0, b.0);
            Self(_mm256_castpd_ps(_mm256_permute4x64_pd::<0xd8>(_mm256_castps_pd(halves))))
        }
    }
    #[inline(always)]
    unsafe fn interleave(a: Self, b: Self) -> (Self, Self) {
        // SAFETY: the caller has AVX2.
        unsafe {
            let (low, high) = (_mm256_unpacklo_ps(a.0, b.0), _mm256_unpackhi_ps(a.0, b.0));
            (Self(_mm256_permute2f128_ps::<0x20>(low, high)), Self(_mm256_permute2f128_ps::<0x31>(low, high)))
        }
    }
    #[inline(always)]
    unsafe fn transpose(from: Block<f32>, to: *mut f32, to_pitch: usize, keep: usize) {
        // SAFETY: rows and columns outside the block are masked off.
        unsafe {
            let (cols, kept) = (mask_ps(from.cols), mask_ps(keep));
            let mut r = [_mm256_setzero_ps(); 8];
            for (i, row) in r.iter_mut().enumerate() {
                if i < from.rows {
                    *row = _mm256_maskload_ps(from.at.add(i * from.pitch), cols);
                }
            }
            transpose8(&mut r);
            for (i, row) in r.iter().enumerate() {
                if i < from.cols {
                    _mm256_maskstore_ps(to.add(i * to_pitch), kept, *row);
                }
            }
        }
    }
}

/// 8 x 8 in place: 4 x 4 inside each half, then the halves.
#[inline(always)]
pub(crate) unsafe fn transpose8(r: &mut [__m256; 8]) {
    // SAFETY: the caller has AVX2.
    unsafe {
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
}

impl Lanes for F64x4 {
    type Elem = f64;
    type Math = Fused;
    const N: usize = 4;
    const ROWS: usize = 6;
    methods!(
        f64,
        _mm256_set1_pd,
        _mm256_loadu_pd,
        _mm256_storeu_pd,
        _mm256_fmadd_pd,
        _mm256_add_pd,
        _mm256_sub_pd,
        _mm256_mul_pd,
        _mm256_div_pd,
        _mm256_max_pd,
        _mm256_sqrt_pd
    );

    #[inline(always)]
    unsafe fn load_partial(from: *const f64, count: usize) -> Self {
        // SAFETY: masked lanes are not read.
        Self(unsafe { _mm256_maskload_pd(from, mask_pd(count)) })
    }
    #[inline(always)]
    unsafe fn load_window(from: *const f64, window: (usize, usize)) -> Self {
        // SAFETY: masked lanes are not read.
        Self(unsafe { _mm256_maskload_pd(from, window_pd(window)) })
    }
    #[inline(always)]
    unsafe fn store_partial(self, to: *mut f64, count: usize) {
        // SAFETY: masked lanes are not written.
        unsafe { _mm256_maskstore_pd(to, mask_pd(count), self.0) }
    }
}

/// Sign bits set in the first `count` lanes.
#[inline(always)]
unsafe fn mask_pd(count: usize) -> __m256i {
    // SAFETY: the caller has AVX2.
    unsafe { _mm256_cmpgt_epi64(_mm256_set1_epi64x(count as i64), _mm256_setr_epi64x(0, 1, 2, 3)) }
}

/// Sign bits set in lanes `window.0..window.1`.
#[inline(always)]
unsafe fn window_pd(window: (usize, usize)) -> __m256i {
    // SAFETY: the caller has AVX2.
    unsafe { _mm256_andnot_si256(mask_pd(window.0), mask_pd(window.1)) }
}
