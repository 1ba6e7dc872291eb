//! The inverse of the error function.
//!
//! It is its argument times a smooth function of `w = -ln(1 - x^2)`, as by M. Giles, "Approximating the erfinv function",
//! 2010, which is cut into 16 intervals as in [`super::normal`], each with a center and a polynomial of degree 5 around it.

use super::exponential::log_parts;
use super::{Vectors, each};
use std::arch::x86_64::*;

/// Largest `w` of a number below 1, and a little more.
const END: f32 = 16.0;
/// Such that `SCALE * END + START` is below 16.
const SCALE: f32 = 0.93;
const START: f32 = 1.05;

/// The number of which `erf` is `x`.
///
/// # Safety
/// The machine has AVX-512 F and DQ.
#[inline(always)]
pub unsafe fn erfinv(x: Vectors) -> Vectors {
    // SAFETY: the loads are of whole tables.
    let of = |value: f32| _mm512_set1_ps(value);
    let row = |row: &[f32; 16]| _mm512_loadu_ps(row.as_ptr());
    let product = each!(i => _mm512_mul_ps(_mm512_sub_ps(of(1.0), x[i]), _mm512_add_ps(of(1.0), x[i])));
    // -w in two parts, of which the sum would be rounded once more.
    let (top, low) = log_parts(product);
    let top = each!(i => _mm512_max_ps(of(-END), top[i]));
    let place = each!(i => _mm512_fnmadd_ps(_mm512_add_ps(top[i], low[i]), of(SCALE), of(START)));
    let place = each!(i => _mm512_srli_epi32::<21>(_mm512_castps_si512(place[i])));
    let d = each!(i => _mm512_add_ps(top[i], _mm512_permutexvar_ps(place[i], row(&INVERSE.center))));
    let d = each!(i => _mm512_add_ps(d[i], low[i]));
    let mut h = each!(i => _mm512_permutexvar_ps(place[i], row(&INVERSE.coefficients[5])));
    let mut at = 5;
    while at > 0 {
        at -= 1;
        let next = row(&INVERSE.coefficients[at]);
        // The other way round, since d is that of -w.
        h = each!(i => _mm512_fnmadd_ps(h[i], d[i], _mm512_permutexvar_ps(place[i], next)));
    }
    each!(i => {
        let edge = _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(product[i], _mm512_setzero_ps());
        let beyond = _mm512_cmp_ps_mask::<_CMP_NGE_UQ>(product[i], _mm512_setzero_ps());
        let h = _mm512_mask_mov_ps(h[i], edge, of(f32::INFINITY));
        _mm512_mul_ps(x[i], _mm512_mask_mov_ps(h, beyond, of(f32::NAN)))
    })
}

struct Table {
    center: [f32; 16],
    /// Lowest first.
    coefficients: [[f32; 16]; 6],
}

/// `erfinv(x) / x` of `w`.
#[rustfmt::skip]
static INVERSE: Table = Table {
    center: [1.3007812, 1.7548828, 2.2929688, 2.9389648, 3.6591797, 4.828125, 5.9067383, 6.959961, 8.743652, 1.0983398e+01, 1.2668457e+01, 1.5135254e+01, 9.9609375e-2, 3.4375e-1, 6.074219e-1, 9.1552734e-1],
    coefficients: [
        [1.2022387, 1.3159002, 1.4501796, 1.6087729, 1.7801222, 2.0428674, 2.2677393, 2.472266, 2.7898896, 3.148365, 3.3952112, 3.729165, 9.0944993e-1, 9.6724993e-1, 1.0308815, 1.1064711],
        [2.4975736e-1, 2.5041535e-1, 2.4820109e-1, 2.4232134e-1, 2.3318589e-1, 2.1621019e-1, 2.0097573e-1, 1.877057e-1, 1.6923049e-1, 1.517603e-1, 1.4156474e-1, 1.2970166e-1, 2.3424453e-1, 2.3910856e-1, 2.4337721e-1, 2.4706364e-1],
        [2.1705937e-3, -6.473754e-4, -3.3427547e-3, -5.5806777e-3, -6.9234325e-3, -7.322181e-3, -6.717594e-3, -5.870543e-3, -4.5385123e-3, -3.347182e-3, -2.7357892e-3, -2.1164366e-3, 1.0844187e-2, 9.06973e-3, 7.1176095e-3, 4.8569464e-3],
        [-2.2237466e-3, -1.8976333e-3, -1.4351384e-3, -8.8459766e-4, -3.843209e-4, 9.130635e-5, 2.5001122e-4, 2.7283438e-4, 2.1763403e-4, 1.4145751e-4, 1.02918544e-4, 6.7720386e-5, -2.3820896e-3, -2.4553123e-3, -2.4703455e-3, -2.4084907e-3],
        [1.5101854e-4, 2.0224224e-4, 2.2030651e-4, 1.9948518e-4, 1.458752e-4, 6.247056e-5, 1.69193e-5, -2.639406e-6, -9.566001e-6, -6.8903923e-6, -4.6819046e-6, -2.6761488e-6, -8.667101e-5, -4.5164576e-5, 1.0818823e-5, 8.512437e-5],
        [2.917378e-5, 1.16448955e-5, 9.820427e-7, -7.644999e-6, -1.598719e-5, -1.18707885e-5, -6.0053617e-6, -2.3805412e-6, -1.0866729e-7, 3.0674843e-7, 2.1195022e-7, 1.2937652e-7, 5.2757594e-5, 6.188559e-5, 6.419721e-5, 7.717079e-5],
    ],
};
