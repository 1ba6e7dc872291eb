//! Square roots by an estimate and Newton's method, which leave the slow divider alone. The last step rounds as the
//! instruction does: it was compared with that for all numbers from 1 to 4, and there is nothing between powers of four.

use super::{Vectors, each};
use std::arch::x86_64::*;

/// The square root, and whether it is one: false where some number is not between 2^-100 and 2^125.
#[inline(always)]
unsafe fn quick(x: Vectors) -> (Vectors, bool) {
    const LEAST: i32 = (127 - 100) << 23;
    const SPAN: i32 = (100 + 125) << 23;
    let half = _mm512_set1_ps(0.5);
    let beyond = each!(i => {
        let above = _mm512_sub_epi32(_mm512_castps_si512(x[i]), _mm512_set1_epi32(LEAST));
        _mm512_cmpgt_epu32_mask(above, _mm512_set1_epi32(SPAN))
    });
    let estimate = each!(i => _mm512_rsqrt14_ps(x[i]));
    let root = each!(i => _mm512_mul_ps(x[i], estimate[i]));
    let inverse = each!(i => _mm512_mul_ps(estimate[i], half));
    let gap = each!(i => _mm512_fnmadd_ps(root[i], inverse[i], half));
    let root = each!(i => _mm512_fmadd_ps(root[i], gap[i], root[i]));
    let inverse = each!(i => _mm512_fmadd_ps(inverse[i], gap[i], inverse[i]));
    let gap = each!(i => _mm512_fnmadd_ps(root[i], root[i], x[i]));
    (each!(i => _mm512_fmadd_ps(gap[i], inverse[i], root[i])), beyond[0] | beyond[1] == 0)
}

/// The square root.
///
/// # Safety
/// The machine has AVX-512 F and DQ.
#[inline(always)]
pub unsafe fn sqrt(x: Vectors) -> Vectors {
    let (root, good) = quick(x);
    if good { root } else { each!(i => _mm512_sqrt_ps(x[i])) }
}

/// `x ^ 0.5`, which differs from the square root at -0.0 and at -inf.
///
/// # Safety
/// The machine has AVX-512 F and DQ.
#[inline(always)]
pub unsafe fn half_power(x: Vectors) -> Vectors {
    let (root, good) = quick(x);
    if good {
        return root;
    }
    each!(i => {
        let least = _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(x[i], _mm512_set1_ps(f32::NEG_INFINITY));
        let root = _mm512_sqrt_ps(_mm512_add_ps(x[i], _mm512_setzero_ps()));
        _mm512_mask_mov_ps(root, least, _mm512_set1_ps(f32::INFINITY))
    })
}
