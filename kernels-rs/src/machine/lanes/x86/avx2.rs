//! AVX2 registers.

use super::squares::transpose8;
use crate::machine::lanes::{Block, Lanes, riffled};
use crate::math::Fused;
use std::arch::x86_64::*;
use std::mem::transmute_copy;

/// Eight `f32`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct F32x8(__m256);
/// Four `f64`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct F64x4(__m256d);

/// Sign bits set in the first `count` lanes.
#[inline(always)]
unsafe fn mask_ps(count: usize) -> __m256i {
    _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
}

/// What differs by the names of instructions alone between floats of 256-bit registers; sign bits of a mask stand for lanes.
macro_rules! methods_by_sign {
    ($elem:ident $mask:ident, $load:ident $store:ident $compare:ident $both:ident $signs:ident) => {
        methods! {
            fn load_partial(from: *const $elem, count: usize) -> Self { Self($load(from, $mask(count))) }
            fn load_window(from: *const $elem, window: (usize, usize)) -> Self {
                Self($load(from, _mm256_andnot_si256($mask(window.0), $mask(window.1))))
            }
            fn store_partial(self, to: *mut $elem, count: usize) -> () { $store(to, $mask(count), self.0) }
            fn all_between(self, low: Self, high: Self) -> bool {
                let (above, below) = ($compare::<_CMP_GE_OQ>(self.0, low.0), $compare::<_CMP_LE_OQ>(self.0, high.0));
                $signs($both(above, below)) == (1 << Self::N) - 1
            }
        }
    };
}

impl Lanes for F32x8 {
    type Elem = f32;
    type Math = Fused;
    const N: usize = 8;
    const ROWS: usize = 6;
    methods_by_name!(f32, _mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_fmadd_ps _mm256_fmsub_ps _mm256_add_ps _mm256_sub_ps
        _mm256_mul_ps _mm256_div_ps _mm256_max_ps _mm256_sqrt_ps _mm256_round_ps);
    methods_by_sign!(f32 mask_ps, _mm256_maskload_ps _mm256_maskstore_ps _mm256_cmp_ps _mm256_and_ps _mm256_movemask_ps);
    methods! {
        fn store_inside(self, high: Self, to: *mut i32) -> () {
            let above = _mm256_cmp_ps::<_CMP_GE_OQ>(self.0, _mm256_setzero_ps());
            let inside = _mm256_and_ps(above, _mm256_cmp_ps::<_CMP_LE_OQ>(self.0, high.0));
            let whole = _mm256_blendv_ps(_mm256_set1_ps(-1.0), self.0, inside);
            _mm256_storeu_si256(to.cast(), _mm256_cvttps_epi32(whole));
        }
        fn deinterleave(a: Self, b: Self) -> (Self, Self) {
            // Halves of a and of b in turns, which are brought into order.
            let (even, odd) = (_mm256_shuffle_ps::<0x88>(a.0, b.0), _mm256_shuffle_ps::<0xdd>(a.0, b.0));
            let (even, odd) = (_mm256_castps_pd(even), _mm256_castps_pd(odd));
            let (even, odd) = (_mm256_permute4x64_pd::<0xd8>(even), _mm256_permute4x64_pd::<0xd8>(odd));
            (Self(_mm256_castpd_ps(even)), Self(_mm256_castpd_ps(odd)))
        }
        fn reverse(self) -> Self { Self(_mm256_permutevar8x32_ps(self.0, _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0))) }
        fn interleave(a: Self, b: Self) -> (Self, Self) {
            let (low, high) = (_mm256_unpacklo_ps(a.0, b.0), _mm256_unpackhi_ps(a.0, b.0));
            (Self(_mm256_permute2f128_ps::<0x20>(low, high)), Self(_mm256_permute2f128_ps::<0x31>(low, high)))
        }
        fn turned_over<const R: usize>(rows: [Self; R]) -> [Self; R] {
            if R != Self::N {
                return riffled(rows);
            }
            let mut square: [__m256; 8] = transmute_copy(&rows);
            transpose8(&mut square);
            transmute_copy(&square)
        }
        fn transpose(from: Block<f32>, to: *mut f32, to_pitch: usize, keep: usize) -> () {
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

impl Lanes for F64x4 {
    type Elem = f64;
    type Math = Fused;
    const N: usize = 4;
    const ROWS: usize = 6;
    methods_by_name!(f64, _mm256_set1_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_fmadd_pd _mm256_fmsub_pd _mm256_add_pd _mm256_sub_pd
        _mm256_mul_pd _mm256_div_pd _mm256_max_pd _mm256_sqrt_pd _mm256_round_pd);
    methods_by_sign!(f64 mask_pd, _mm256_maskload_pd _mm256_maskstore_pd _mm256_cmp_pd _mm256_and_pd _mm256_movemask_pd);
    methods! {
        fn store_inside(self, high: Self, to: *mut i32) -> () {
            let above = _mm256_cmp_pd::<_CMP_GE_OQ>(self.0, _mm256_setzero_pd());
            let inside = _mm256_and_pd(above, _mm256_cmp_pd::<_CMP_LE_OQ>(self.0, high.0));
            let whole = _mm256_blendv_pd(_mm256_set1_pd(-1.0), self.0, inside);
            _mm_storeu_si128(to.cast(), _mm256_cvttpd_epi32(whole));
        }
        fn deinterleave(a: Self, b: Self) -> (Self, Self) {
            let (low, high) = (_mm256_permute2f128_pd::<0x20>(a.0, b.0), _mm256_permute2f128_pd::<0x31>(a.0, b.0));
            (Self(_mm256_unpacklo_pd(low, high)), Self(_mm256_unpackhi_pd(low, high)))
        }
        fn interleave(a: Self, b: Self) -> (Self, Self) {
            let (low, high) = (_mm256_unpacklo_pd(a.0, b.0), _mm256_unpackhi_pd(a.0, b.0));
            (Self(_mm256_permute2f128_pd::<0x20>(low, high)), Self(_mm256_permute2f128_pd::<0x31>(low, high)))
        }
        fn reverse(self) -> Self { Self(_mm256_permute4x64_pd::<0x1b>(self.0)) }
    }
}

/// Sign bits set in the first `count` lanes.
#[inline(always)]
unsafe fn mask_pd(count: usize) -> __m256i {
    _mm256_cmpgt_epi64(_mm256_set1_epi64x(count as i64), _mm256_setr_epi64x(0, 1, 2, 3))
}
