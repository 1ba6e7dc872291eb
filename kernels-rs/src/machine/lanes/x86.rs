//! AVX-512 and AVX2 registers.

pub(crate) mod squares;

use super::{Block, Lanes, riffled};
use crate::math::Fused;
pub use avx2::{F32x8, F64x4};
use squares::{transpose8x64, transpose16};
use std::arch::x86_64::*;
use std::mem::transmute_copy;

/// Sixteen `f32`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct F32x16(__m512);
/// Eight `f64`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct F64x8(__m512d);

/// What differs by the names of instructions alone.
macro_rules! methods_by_name {
    ($elem:ident, $set1:ident $loadu:ident $storeu:ident $fmadd:ident $fmsub:ident $add:ident $sub:ident $mul:ident $div:ident $max:ident
     $sqrt:ident $round:ident) => {
        methods! {
            fn splat(value: $elem) -> Self { Self($set1(value)) }
            fn load(from: *const $elem) -> Self { Self($loadu(from)) }
            fn store(self, to: *mut $elem) -> () { $storeu(to, self.0) }
            fn mul_add(self, by: Self, plus: Self) -> Self { Self($fmadd(self.0, by.0, plus.0)) }
            fn mul_sub(self, by: Self, minus: Self) -> Self { Self($fmsub(self.0, by.0, minus.0)) }
            fn add(self, other: Self) -> Self { Self($add(self.0, other.0)) }
            fn sub(self, other: Self) -> Self { Self($sub(self.0, other.0)) }
            fn mul(self, other: Self) -> Self { Self($mul(self.0, other.0)) }
            fn div(self, other: Self) -> Self { Self($div(self.0, other.0)) }
            fn sqrt(self) -> Self { Self($sqrt(self.0)) }
            // The instruction gives its second operand where either is NaN.
            fn max(self, other: Self) -> Self { Self($max(other.0, self.0)) }
            fn floor(self) -> Self { Self($round::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(self.0)) }
            fn round(self) -> Self { Self($round::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self.0)) }
        }
    };
}

mod avx2;

/// What differs by the names of instructions alone between floats of 512-bit registers; bits of a mask stand for lanes.
macro_rules! methods_by_mask {
    ($elem:ident $mask:ident $register:ident, $largest:ident $load:ident $store:ident $compare:ident $compare_some:ident $zero:ident $turn:ident) => {
        methods! {
            fn peak(self) -> $elem { $largest(self.0) }
            fn load_partial(from: *const $elem, count: usize) -> Self { Self($load(mask16(count) as $mask, from)) }
            fn load_window(from: *const $elem, window: (usize, usize)) -> Self {
                Self($load(window16(window) as $mask, from))
            }
            fn store_partial(self, to: *mut $elem, count: usize) -> () { $store(to, mask16(count) as $mask, self.0) }
            fn all_between(self, low: Self, high: Self) -> bool {
                let inside = $compare_some::<_CMP_LE_OQ>($compare::<_CMP_GE_OQ>(self.0, low.0), self.0, high.0);
                inside == $mask::MAX
            }
            fn turned_over<const R: usize>(rows: [Self; R]) -> [Self; R] {
                if R != Self::N {
                    return riffled(rows);
                }
                let mut square: [$register; Self::N] = transmute_copy(&rows);
                $turn(&mut square);
                transmute_copy(&square)
            }
            fn transpose(from: Block<$elem>, to: *mut $elem, to_pitch: usize, keep: usize) -> () {
                let mut r = [$zero(); Self::N];
                for (i, row) in r.iter_mut().enumerate() {
                    if i < from.rows {
                        *row = $load(mask16(from.cols) as $mask, from.at.add(i * from.pitch));
                    }
                }
                $turn(&mut r);
                for (i, row) in r.iter().enumerate() {
                    if i < from.cols {
                        $store(to.add(i * to_pitch), mask16(keep) as $mask, *row);
                    }
                }
            }
        }
    };
}

impl Lanes for F32x16 {
    type Elem = f32;
    type Math = Fused;
    const N: usize = 16;
    const ROWS: usize = 14;
    methods_by_name!(f32, _mm512_set1_ps _mm512_loadu_ps _mm512_storeu_ps _mm512_fmadd_ps _mm512_fmsub_ps _mm512_add_ps _mm512_sub_ps
        _mm512_mul_ps _mm512_div_ps _mm512_max_ps _mm512_sqrt_ps _mm512_roundscale_ps);
    methods_by_mask!(f32 u16 __m512, _mm512_reduce_max_ps _mm512_maskz_loadu_ps _mm512_mask_storeu_ps
        _mm512_cmp_ps_mask _mm512_mask_cmp_ps_mask _mm512_setzero_ps transpose16);
    methods! {
        fn gather(from: *const f32, places: *const i32, count: usize) -> Self {
            let at = _mm512_maskz_loadu_epi32(mask16(count), places);
            let inside = mask16(count) & _mm512_cmpge_epi32_mask(at, _mm512_setzero_si512());
            Self(_mm512_mask_i32gather_ps::<4>(_mm512_setzero_ps(), inside, at, from))
        }
        fn store_inside(self, high: Self, to: *mut i32) -> () {
            let above = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(self.0, _mm512_setzero_ps());
            let inside = _mm512_mask_cmp_ps_mask::<_CMP_LE_OQ>(above, self.0, high.0);
            _mm512_storeu_epi32(to, _mm512_mask_cvttps_epi32(_mm512_set1_epi32(-1), inside, self.0));
        }
        fn gather_pairs(from: *const f32, places: *const i32) -> (Self, Self) {
            let pairs = |at: *const i32| {
                let at = _mm256_loadu_epi32(at);
                Self(_mm512_castpd_ps(_mm512_i32gather_pd::<4>(at, from.cast())))
            };
            Self::deinterleave(pairs(places), pairs(places.add(8)))
        }
        fn near_sqrt(self) -> Self {
            // The root from an inverse one of 14 bits, then one step of Newton's: a fifth of the time of the divider.
            let inverse = _mm512_rsqrt14_ps(self.0);
            let (root, half) = (_mm512_mul_ps(self.0, inverse), _mm512_mul_ps(inverse, _mm512_set1_ps(0.5)));
            Self(_mm512_fmadd_ps(_mm512_fnmadd_ps(root, root, self.0), half, root))
        }
        fn halves(a: Self, b: Self) -> (Self, Self) {
            (Self(_mm512_shuffle_f32x4::<0x44>(a.0, b.0)), Self(_mm512_shuffle_f32x4::<0xee>(a.0, b.0)))
        }
        fn deinterleave(a: Self, b: Self) -> (Self, Self) {
            let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
            let odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
            (Self(_mm512_permutex2var_ps(a.0, even, b.0)), Self(_mm512_permutex2var_ps(a.0, odd, b.0)))
        }
        fn reverse(self) -> Self {
            let order = _mm512_setr_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
            Self(_mm512_permutexvar_ps(order, self.0))
        }
        fn interleave(a: Self, b: Self) -> (Self, Self) {
            let low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            let high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
            (Self(_mm512_permutex2var_ps(a.0, low, b.0)), Self(_mm512_permutex2var_ps(a.0, high, b.0)))
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

impl Lanes for F64x8 {
    type Elem = f64;
    type Math = Fused;
    const N: usize = 8;
    const ROWS: usize = 14;
    methods_by_name!(f64, _mm512_set1_pd _mm512_loadu_pd _mm512_storeu_pd _mm512_fmadd_pd _mm512_fmsub_pd _mm512_add_pd _mm512_sub_pd
        _mm512_mul_pd _mm512_div_pd _mm512_max_pd _mm512_sqrt_pd _mm512_roundscale_pd);
    methods_by_mask!(f64 u8 __m512d, _mm512_reduce_max_pd _mm512_maskz_loadu_pd _mm512_mask_storeu_pd
        _mm512_cmp_pd_mask _mm512_mask_cmp_pd_mask _mm512_setzero_pd transpose8x64);
    methods! {
        fn deinterleave(a: Self, b: Self) -> (Self, Self) {
            let (even, odd) =
                (_mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14), _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15));
            (Self(_mm512_permutex2var_pd(a.0, even, b.0)), Self(_mm512_permutex2var_pd(a.0, odd, b.0)))
        }
        fn interleave(a: Self, b: Self) -> (Self, Self) {
            let (low, high) =
                (_mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15));
            (Self(_mm512_permutex2var_pd(a.0, low, b.0)), Self(_mm512_permutex2var_pd(a.0, high, b.0)))
        }
        fn reverse(self) -> Self { Self(_mm512_permutexvar_pd(_mm512_setr_epi64(7, 6, 5, 4, 3, 2, 1, 0), self.0)) }
        fn gather(from: *const f64, places: *const i32, count: usize) -> Self {
            let at = _mm256_maskz_loadu_epi32(mask16(count) as u8, places);
            let inside = mask16(count) as u8 & _mm256_cmpge_epi32_mask(at, _mm256_setzero_si256());
            Self(_mm512_mask_i32gather_pd::<8>(_mm512_setzero_pd(), inside, at, from))
        }
        fn store_inside(self, high: Self, to: *mut i32) -> () {
            let above = _mm512_cmp_pd_mask::<_CMP_GE_OQ>(self.0, _mm512_setzero_pd());
            let inside = _mm512_mask_cmp_pd_mask::<_CMP_LE_OQ>(above, self.0, high.0);
            _mm256_storeu_epi32(to, _mm512_mask_cvttpd_epi32(_mm256_set1_epi32(-1), inside, self.0));
        }
        fn gather_pairs(from: *const f64, places: *const i32) -> (Self, Self) {
            (Self::gather(from, places, 8), Self::gather(from.add(1), places, 8))
        }
    }
}
