//! Odd functions that end in 1: `tanh` and `erf`.
//!
//! The magnitude is cut into 16 intervals as in [`super::normal`], each with a center and a polynomial of degree 5 around
//! it. In the first interval the center is 0, and what the function adds to its argument is fitted, relative to the
//! function, so that small numbers lose nothing.

use super::{Vectors, each};
use std::arch::x86_64::*;

/// A function of magnitudes from 0 to `end`.
struct Table {
    /// From here on the value is 1.
    end: f32,
    /// `scale * end + START` is below 16.
    scale: f32,
    center: [f32; 16],
    /// Lowest first; in the first interval the second is less by 1.
    coefficients: [[f32; 16]; 6],
}

const START: f32 = 1.05;
/// The end of the first interval, on the scale of the intervals.
const FIRST: f32 = 1.25;

#[inline(always)]
unsafe fn odd(x: Vectors, table: &Table) -> Vectors {
    // The first operand, but where the third has bits the second.
    const CHOOSE: i32 = 0b1101_1000;
    // SAFETY: the loads are of whole tables.
    let of = |value: f32| _mm512_set1_ps(value);
    let row = |row: &[f32; 16]| _mm512_loadu_ps(row.as_ptr());
    // The second operand where it is NaN.
    let t = each!(i => _mm512_min_ps(of(table.end), _mm512_abs_ps(x[i])));
    let place = each!(i => _mm512_fmadd_ps(t[i], of(table.scale), of(START)));
    let beyond = each!(i => _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(place[i], of(FIRST)));
    let place = each!(i => _mm512_srli_epi32::<21>(_mm512_castps_si512(place[i])));
    let d = each!(i => _mm512_sub_ps(t[i], _mm512_permutexvar_ps(place[i], row(&table.center))));
    let mut h = each!(i => _mm512_permutexvar_ps(place[i], row(&table.coefficients[5])));
    let mut at = 5;
    while at > 1 {
        at -= 1;
        h = each!(i => _mm512_fmadd_ps(h[i], d[i], _mm512_permutexvar_ps(place[i], row(&table.coefficients[at]))));
    }
    let first = row(&table.coefficients[0]);
    let last = each!(i => _mm512_mask_permutexvar_ps(d[i], beyond[i], place[i], first));
    let h = each!(i => _mm512_castps_si512(_mm512_fmadd_ps(h[i], d[i], last[i])));
    let sign = _mm512_set1_epi32(i32::MIN);
    each!(i => {
        let signed = _mm512_ternarylogic_epi32::<CHOOSE>(h[i], _mm512_castps_si512(x[i]), sign);
        _mm512_castsi512_ps(signed)
    })
}

/// Error function.
///
/// # Safety
/// The machine has AVX-512 F and DQ.
#[inline(always)]
pub unsafe fn erf(x: Vectors) -> Vectors {
    odd(x, &ERF)
}

/// Hyperbolic tangent.
///
/// # Safety
/// The machine has AVX-512 F and DQ.
#[inline(always)]
pub unsafe fn tanh(x: Vectors) -> Vectors {
    odd(x, &TANH)
}

#[rustfmt::skip]
static ERF: Table = Table {
    end: 4.0,
    scale: 3.7,
    center: [3.3740234e-1, 4.6435547e-1, 5.78125e-1, 7.392578e-1, 9.663086e-1, 1.2338867, 1.4907227, 1.734375, 2.1411133, 2.6796875, 3.2631836, 3.7441406, 0.0, 9.5703125e-2, 1.6015625e-1, 2.1533203e-1],
    coefficients: [
        [3.6675107e-1, 4.8862475e-1, 5.864099e-1, 7.041935e-1, 8.2823884e-1, 9.1901153e-1, 9.649863e-1, 9.8582417e-1, 9.9753815e-1, 9.9984914e-1, 9.9999607e-1, 9.999999e-1, 0.0, 1.0766062e-1, 1.7918366e-1, 2.3927242e-1],
        [1.0069661, 9.09515e-1, 8.077956e-1, 6.5329933e-1, 4.4353878e-1, 2.4617937e-1, 1.22276224e-1, 5.5727918e-2, 1.1520842e-2, 8.587791e-4, 2.6840667e-5, 9.2119535e-7, 1.2837917e-1, 1.1180915, 1.0998043, 1.0772531],
        [-3.3975238e-1, -4.2233774e-1, -4.6700716e-1, -4.8295557e-1, -4.285956e-1, -3.0375835e-1, -1.8228228e-1, -9.66545e-2, -2.4663497e-2, -2.296922e-3, -8.696658e-5, -3.3951967e-6, 5.6602244e-7, -1.07003175e-1, -1.7614058e-1, -2.3196784e-1],
        [-2.5928256e-1, -1.724327e-1, -8.927843e-2, 2.0247037e-2, 1.282496e-1, 1.6786344e-1, 1.4043026e-1, 9.3172766e-2, 3.1385984e-2, 3.8288173e-3, 1.7650997e-4, 8.27025e-6, -3.7617835e-1, -3.659324e-1, -3.4786737e-1, -3.258418e-1],
        [1.5670379e-1, 1.804902e-1, 1.814928e-1, 1.53121e-1, 8.094276e-2, -2.0185825e-3, -4.3465406e-2, -4.8345145e-2, -2.5554815e-2, -4.5572547e-3, -2.8829733e-4, -1.6463377e-5, 1.5362236e-3, 5.067897e-2, 8.649004e-2, 1.1329495e-1],
        [6.378658e-2, 1.9435521e-2, -1.8240638e-2, -5.104793e-2, -6.8952665e-2, -5.2890304e-2, -1.8226255e-2, 6.03857e-3, 1.1985911e-2, 3.5056793e-3, 3.7388323e-4, 2.0458612e-5, 9.8549716e-2, 9.5818095e-2, 1.3550913e-1, 1.01338685e-1],
    ],
};

#[rustfmt::skip]
static TANH: Table = Table {
    end: 9.2,
    scale: 1.62,
    center: [7.441406e-1, 1.0634766, 1.3583984, 1.6557617, 2.1796875, 2.6870117, 3.3374023, 3.9311523, 4.7373047, 6.3095703, 7.421875, 8.664551, 0.0, 1.899414e-1, 3.7158203e-1, 5.229492e-1],
    coefficients: [
        [6.316403e-1, 7.869908e-1, 8.760211e-1, 9.2964405e-1, 9.747501e-1, 9.907719e-1, 9.9747854e-1, 9.992303e-1, 9.9984646e-1, 9.999934e-1, 9.999993e-1, 9.9999994e-1, 0.0, 1.8768968e-1, 3.5537472e-1, 4.7997302e-1],
        [6.010306e-1, 3.806453e-1, 2.3258704e-1, 1.3576196e-1, 4.986241e-2, 1.8370833e-2, 5.036518e-3, 1.5387364e-3, 3.0688327e-4, 1.3245908e-5, 1.4310874e-6, 1.1915581e-7, -1.1091195e-9, 9.647726e-1, 8.7370884e-1, 7.696259e-1],
        [-3.796348e-1, -2.9956838e-1, -2.0375402e-1, -1.2621124e-1, -4.8601642e-2, -1.8200424e-2, -5.023135e-3, -1.5374111e-3, -3.069181e-4, -1.3243452e-5, -1.4268892e-6, -1.1827678e-7, 4.177545e-7, -1.8107711e-1, -3.1049407e-1, -3.6939934e-1],
        [3.943151e-2, 1.08910374e-1, 1.0096564e-1, 7.2073236e-2, 3.0743524e-2, 1.1925195e-2, 3.3346473e-3, 1.0248838e-3, 2.0757099e-4, 8.585095e-6, 9.439938e-7, 7.944915e-8, -3.3335823e-1, -2.8759277e-1, -1.8093322e-1, -7.9253994e-2],
        [1.0156704e-1, 1.4748392e-2, -2.0143513e-2, -2.4819048e-2, -1.3842989e-2, -5.7840114e-3, -1.6748282e-3, -5.1684276e-4, -1.0502226e-4, -4.439147e-6, -5.0945334e-7, -4.42462e-8, 4.95344e-4, 1.13901876e-1, 1.6755797e-1, 1.6092841e-1],
        [-6.282613e-2, -4.0720705e-2, -1.0780144e-2, 2.2715414e-3, 4.4168727e-3, 1.9332523e-3, 6.2344474e-4, 1.8676705e-4, 3.1231073e-5, 2.636117e-6, 2.2389946e-7, 1.6173674e-8, 1.2992439e-1, 9.293643e-2, 2.8150422e-2, -3.0044502e-2],
    ],
};
