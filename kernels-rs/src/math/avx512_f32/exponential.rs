//! `exp`, `log` and the logistic functions.

use super::{VECTORS, Vectors, each};
use std::arch::x86_64::*;

/// The sign of each lane.
#[inline(always)]
unsafe fn negative(x: __m512) -> __mmask16 {
    _mm512_movepi32_mask(_mm512_castps_si512(x))
}

/// `e^x` for `|x| < 10^4` as a factor near 1 and the exponent of a power of two. NaN stays NaN in the factor.
#[inline(always)]
unsafe fn split(x: Vectors) -> (Vectors, Vectors) {
    const ROUND: f32 = 12582912.0; // 1.5 * 2^23
    // ln 2 in two parts; the first has 9 bits (Cephes).
    const LN2_HI: f32 = 0.693_359_375;
    const LN2_LO: f32 = -2.121_944_4e-4;
    const TERMS: [f32; 7] = [1.0, 1.0, 0.49999994, 0.1666652, 0.04166839, 0.008368717, 0.0013814596];
    let of = |value: f32| _mm512_set1_ps(value);
    let shifted = each!(i => _mm512_fmadd_ps(x[i], of(std::f32::consts::LOG2_E), of(ROUND)));
    let n = each!(i => _mm512_sub_ps(shifted[i], of(ROUND)));
    let r = each!(i => _mm512_fnmadd_ps(n[i], of(LN2_HI), x[i]));
    let r = each!(i => _mm512_fnmadd_ps(n[i], of(LN2_LO), r[i]));
    let mut factor = [of(TERMS[6]); VECTORS];
    let mut at = 6;
    while at > 0 {
        at -= 1;
        factor = each!(i => _mm512_fmadd_ps(factor[i], r[i], of(TERMS[at])));
    }
    (factor, n)
}

/// `e^x`.
///
/// # Safety
/// The machine has AVX-512 F and DQ.
#[inline(always)]
pub unsafe fn exp(x: Vectors) -> Vectors {
    // SAFETY: arithmetic on registers alone, whose instructions the caller promises.
    // The second operand where it is NaN.
    let x = each!(i => _mm512_min_ps(_mm512_set1_ps(89.0), x[i]));
    let x = each!(i => _mm512_max_ps(_mm512_set1_ps(-104.0), x[i]));
    let (factor, n) = split(x);
    each!(i => _mm512_scalef_ps(factor[i], n[i]))
}

/// `(top + lost) / (1 + e)` for `0 <= e <= 1`, rounded once; `lost` is far below `top`.
#[inline(always)]
unsafe fn quotient(top: Vectors, lost: Vectors, e: Vectors) -> Vectors {
    let estimate = each!(i => _mm512_rcp14_ps(_mm512_add_ps(_mm512_set1_ps(1.0), e[i])));
    let q = each!(i => _mm512_mul_ps(top[i], estimate[i]));
    // The difference is exact, since q is between half of top and top.
    let rest = each!(i => _mm512_fnmadd_ps(q[i], e[i], _mm512_add_ps(_mm512_sub_ps(top[i], q[i]), lost[i])));
    each!(i => _mm512_fmadd_ps(rest[i], estimate[i], q[i]))
}

/// `-|x|`, but not below -120; NaN stays NaN.
#[inline(always)]
unsafe fn below_zero(x: Vectors) -> Vectors {
    let (sign, least) = (_mm512_set1_ps(-0.0), _mm512_set1_ps(-120.0));
    each!(i => _mm512_max_ps(least, _mm512_or_ps(x[i], sign)))
}

/// `1 / (1 + e^-x)`.
///
/// # Safety
/// The machine has AVX-512 F and DQ.
#[inline(always)]
pub unsafe fn sigmoid(x: Vectors) -> Vectors {
    let (factor, n) = split(below_zero(x));
    let e = each!(i => _mm512_scalef_ps(factor[i], n[i]));
    let top = each!(i => _mm512_mask_mov_ps(_mm512_set1_ps(1.0), negative(x[i]), e[i]));
    quotient(top, [_mm512_setzero_ps(); VECTORS], e)
}

/// `x / (1 + e^-x)`.
///
/// # Safety
/// The machine has AVX-512 F and DQ.
#[inline(always)]
pub unsafe fn silu(x: Vectors) -> Vectors {
    // The first operand, but where the third has bits the second.
    const CHOOSE: i32 = 0b1101_1000;
    let one = _mm512_set1_ps(1.0);
    let (factor, n) = split(below_zero(x));
    let e = each!(i => _mm512_scalef_ps(factor[i], n[i]));
    let left = each!(i => negative(x[i]));
    // The power of two is multiplied in at the end, where the result may become subnormal.
    let factor = each!(i => _mm512_mask_mov_ps(one, left[i], factor[i]));
    let t = each!(i => _mm512_max_ps(_mm512_set1_ps(-120.0), x[i]));
    let top = each!(i => _mm512_mul_ps(factor[i], t[i]));
    let lost = each!(i => _mm512_fmsub_ps(factor[i], t[i], top[i]));
    let q = quotient(top, lost, e);
    let q = each!(i => _mm512_mask_scalef_ps(q[i], left[i], q[i], n[i]));
    let far = each!(i => _mm512_cmp_ps_mask::<_CMP_GT_OQ>(x[i], _mm512_set1_ps(120.0)));
    let q = each!(i => _mm512_castps_si512(_mm512_mask_mov_ps(q[i], far[i], x[i])));
    let sign = _mm512_set1_epi32(i32::MIN);
    each!(i => {
        let signed = _mm512_ternarylogic_epi32::<CHOOSE>(q[i], _mm512_castps_si512(x[i]), sign);
        _mm512_castsi512_ps(signed)
    })
}

/// Approximate reciprocals of numbers from 0.75 to 1.5, indexed by the first four bits of the mantissa. Each is chosen so
/// that its logarithm is close to a float32. For numbers next to 1, above and below, it is exactly 1.
#[rustfmt::skip]
static RECIPROCAL: [f32; 16] = [1.0, 0.9144761, 0.86498255, 0.820757, 0.78044915, 0.7438568, 0.71086055, 0.6806491, 1.3061446, 1.2551628, 1.2075895, 1.1636262, 1.1230763, 1.0843915, 1.0495269, 1.0];
/// `-ln` of [`RECIPROCAL`].
#[rustfmt::skip]
static LOG: [f32; 16] = [0.0, 0.08940395, 0.14504595, 0.19752823, 0.24788569, 0.29590675, 0.341279, 0.38470837, -0.26707974, -0.22726531, -0.18862623, -0.15154116, -0.116071634, -0.08101898, -0.04833952, 0.0];

/// `ln x` of a positive number as a sum of two, of which the second is small.
///
/// # Safety
/// The machine has AVX-512 F and DQ.
#[inline(always)]
pub(super) unsafe fn log_parts(x: Vectors) -> (Vectors, Vectors) {
    // ln(1 + r) = r + r^2 * (...), for -1/32 <= r <= 1/16.
    const TERMS: [f32; 4] = [-0.5, 0.3333443, -0.25007278, 0.18865345];
    // SAFETY: the loads are of whole tables.
    let of = |value: f32| _mm512_set1_ps(value);
    let row = |row: &[f32; 16]| _mm512_loadu_ps(row.as_ptr());
    let m = each!(i => _mm512_getmant_ps::<_MM_MANT_NORM_P75_1P5, _MM_MANT_SIGN_SRC>(x[i]));
    let below = each!(i => _mm512_cmp_ps_mask::<_CMP_LT_OQ>(m[i], of(1.0)));
    let e = each!(i => _mm512_getexp_ps(x[i]));
    let e = each!(i => _mm512_mask_add_ps(e[i], below[i], e[i], of(1.0)));
    let place = each!(i => _mm512_srli_epi32::<19>(_mm512_castps_si512(m[i])));
    let r = each!(i => _mm512_fmsub_ps(m[i], _mm512_permutexvar_ps(place[i], row(&RECIPROCAL)), of(1.0)));
    let mut h = [of(TERMS[3]); VECTORS];
    let mut at = 3;
    while at > 0 {
        at -= 1;
        h = each!(i => _mm512_fmadd_ps(h[i], r[i], of(TERMS[at])));
    }
    let log = each!(i => _mm512_permutexvar_ps(place[i], row(&LOG)));
    let top = each!(i => _mm512_fmadd_ps(e[i], of(std::f32::consts::LN_2), log[i]));
    (top, each!(i => _mm512_fmadd_ps(h[i], _mm512_mul_ps(r[i], r[i]), r[i])))
}

/// `ln x`.
///
/// # Safety
/// The machine has AVX-512 F and DQ.
#[inline(always)]
pub unsafe fn log(x: Vectors) -> Vectors {
    // What takes the place of the result, by kind of x, four bits for each: NaN, signaling NaN, 0, 1, -inf, inf, below 0,
    // above 0. 0: nothing; 2: x; 3: NaN; 4: -inf; 5: inf.
    const INSTEAD: i32 = 0x0353_0422;
    let (top, low) = log_parts(x);
    each!(i => {
        let y = _mm512_add_ps(top[i], low[i]);
        _mm512_fixupimm_ps::<0>(y, x[i], _mm512_set1_epi32(INSTEAD))
    })
}
