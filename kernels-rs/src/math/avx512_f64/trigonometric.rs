//! `sin` and `cos`.

use super::{Doubles, each, poly};
use crate::math::double::LIMIT;
use std::arch::x86_64::*;

// pi in parts of 33 bits: their products with multiples of 1/2 up to 2^20 are exact.
const P1: f64 = 3.1415926534682512;
const P2: f64 = 1.2154201012607932e-10;
const P3: f64 = 4.044532497591901e-21;
const ROUND: f64 = 6755399441055744.0; // 1.5 * 2^52
const COSINE: f64 = 4.0 / (std::f64::consts::PI * std::f64::consts::PI);
// (sin r - r + r^3 / 6) / r^5 as a polynomial of r^2, for |r| <= pi/2
#[rustfmt::skip]
const TERMS: [f64; 7] = [0.008333333333333226, -0.00019841269841223708, 2.7557319214016933e-06, -2.505210716309458e-08, 1.605895529396292e-10, -7.643416564624278e-13, 2.7258037631915198e-15];

/// `sin(x - turns pi)` with the sign turned for each odd number in the low bits of `odd`.
#[inline(always)]
unsafe fn turned(x: Doubles, turns: Doubles, odd: Doubles) -> Doubles {
    let of = |value: f64| _mm512_set1_pd(value);
    let first = each!(i => _mm512_fnmadd_pd(turns[i], of(P1), x[i]));
    let near = each!(i => _mm512_fnmadd_pd(turns[i], of(P2), first[i]));
    // What the remainder loses goes along as `low`.
    let low = each!(i => _mm512_fnmadd_pd(turns[i], of(P2), _mm512_sub_pd(first[i], near[i])));
    let low = each!(i => _mm512_fnmadd_pd(turns[i], of(P3), low[i]));
    let r = each!(i => _mm512_add_pd(near[i], low[i]));
    let low = each!(i => _mm512_add_pd(_mm512_sub_pd(near[i], r[i]), low[i]));
    let z = each!(i => _mm512_mul_pd(r[i], r[i]));
    let cube = each!(i => _mm512_mul_pd(r[i], z[i]));
    let p = poly(z, TERMS);
    // Times the cosine of r, roughly; and what the square has lost.
    let low = each!(i => _mm512_mul_pd(low[i], _mm512_fnmadd_pd(z[i], of(COSINE), of(1.0))));
    let sixth = each!(i => _mm512_mul_pd(r[i], of(1.0 / 6.0)));
    let low = each!(i => _mm512_fnmadd_pd(sixth[i], _mm512_fmsub_pd(r[i], r[i], z[i]), low[i]));
    // The largest term first, so that what is rounded at full size is little.
    let top = each!(i => _mm512_fnmadd_pd(cube[i], of(1.0 / 6.0), r[i]));
    let low = each!(i => _mm512_fmadd_pd(_mm512_mul_pd(cube[i], z[i]), p[i], low[i]));
    let y = each!(i => _mm512_add_pd(top[i], low[i]));
    each!(i => {
        let flip = _mm512_slli_epi64::<63>(_mm512_castpd_si512(odd[i]));
        _mm512_xor_pd(y[i], _mm512_castsi512_pd(flip))
    })
}

/// What is beyond [`LIMIT`] goes through the platform's function, NaN and infinities too.
#[inline(always)]
unsafe fn far(x: Doubles, y: Doubles, function: fn(f64) -> f64) -> Doubles {
    // SAFETY: buffers hold a vector.
    each!(i => {
        let beyond = _mm512_cmp_pd_mask::<_CMP_NLE_UQ>(_mm512_abs_pd(x[i]), _mm512_set1_pd(LIMIT));
        if beyond == 0 { y[i] } else { one_by_one(x[i], y[i], beyond, function) }
    })
}

#[cold]
#[inline(never)]
#[target_feature(enable = "avx512f")]
unsafe fn one_by_one(x: __m512d, y: __m512d, chosen: u8, function: fn(f64) -> f64) -> __m512d {
    let (mut from, mut to) = ([0.0; 8], [0.0; 8]);
    // SAFETY: the buffers hold a vector.
    _mm512_storeu_pd(from.as_mut_ptr(), x);
    _mm512_storeu_pd(to.as_mut_ptr(), y);
    for (at, (slot, x)) in to.iter_mut().zip(from).enumerate() {
        if chosen >> at & 1 == 1 {
            *slot = function(x);
        }
    }
    _mm512_loadu_pd(to.as_ptr())
}

/// `sin x`.
///
/// # Safety
/// The machine has AVX-512 F and DQ.
#[inline(always)]
pub unsafe fn sin(x: Doubles) -> Doubles {
    let of = |value: f64| _mm512_set1_pd(value);
    let shifted = each!(i => _mm512_fmadd_pd(x[i], of(std::f64::consts::FRAC_1_PI), of(ROUND)));
    let turns = each!(i => _mm512_sub_pd(shifted[i], of(ROUND)));
    let y = turned(x, turns, shifted);
    // A zero keeps its sign.
    let y = each!(i => _mm512_mask_mov_pd(y[i], _mm512_cmp_pd_mask::<_CMP_EQ_OQ>(x[i], of(0.0)), x[i]));
    far(x, y, f64::sin)
}

/// `cos x`, as the sine of what is left of half turns from the quarter on.
///
/// # Safety
/// The machine has AVX-512 F and DQ.
#[inline(always)]
pub unsafe fn cos(x: Doubles) -> Doubles {
    let of = |value: f64| _mm512_set1_pd(value);
    let half = each!(i => _mm512_fmadd_pd(x[i], of(std::f64::consts::FRAC_1_PI), of(0.5)));
    let shifted = each!(i => _mm512_add_pd(half[i], of(ROUND)));
    let turns = each!(i => _mm512_sub_pd(_mm512_sub_pd(shifted[i], of(ROUND)), of(0.5)));
    far(x, turned(x, turns, shifted), f64::cos)
}
