//! `exp` and `log`.

use super::{Doubles, Row, each, pick, poly};
use std::arch::x86_64::*;

/// Powers of two with sixteenths of 1 as exponents.
#[rustfmt::skip]
static POWERS: Row = [1.0, 1.0442737824274138, 1.0905077326652577, 1.1387886347566916, 1.189207115002721, 1.241857812073484, 1.2968395546510096, 1.3542555469368927, std::f64::consts::SQRT_2, 1.4768261459394993, 1.5422108254079407, 1.6104903319492543, 1.681792830507429, 1.7562521603732995, 1.8340080864093424, 1.9152065613971474];
/// What [`POWERS`] have lost, relative to them.
#[rustfmt::skip]
static POWERS_LOST: Row = [0.0, 8.189317638195514e-17, -2.7939114859515733e-17, 7.826573258636075e-17, 3.3484623336251524e-17, 3.7508542013031266e-17, 1.9572585293112036e-17, 5.68648095791174e-17, -6.835808657661923e-17, -2.3591094770850053e-17, 5.1548301170786783e-17, 1.5341410053603723e-17, 4.875160526227061e-17, 1.685487290628973e-17, 1.790126907604513e-17, -5.5450656186394274e-17];

/// `e^(x + low)`, where `low` is far below `x`: a power of two in sixteenths times what is left.
#[inline(always)]
pub(super) unsafe fn exp_of_sum(x: Doubles, low: Doubles) -> Doubles {
    // Sixteenths are its last place, so that they are the last four bits of what is added to it.
    const ROUND: f64 = 422212465065984.0; // 1.5 * 2^48
    // ln 2 in two parts; the product of the first with a number of 16 bits is exact.
    const LN2_HI: f64 = 6.931_471_803_691_238e-1;
    const LN2_LO: f64 = 1.908_214_929_270_587_7e-10;
    // (e^r - 1 - r) / r^2 for |r| <= ln 2 / 32
    #[rustfmt::skip]
    const TERMS: [f64; 5] = [0.5, 0.16666666665301144, 0.041666666664959766, 0.008333449724528355, 0.0013889034377693012];
    let of = |value: f64| _mm512_set1_pd(value);
    // The second operand where it is NaN.
    let x = each!(i => _mm512_min_pd(of(710.0), x[i]));
    let x = each!(i => _mm512_max_pd(of(-746.0), x[i]));
    let shifted = each!(i => _mm512_fmadd_pd(x[i], of(std::f64::consts::LOG2_E), of(ROUND)));
    let n = each!(i => _mm512_sub_pd(shifted[i], of(ROUND)));
    let place = each!(i => _mm512_castpd_si512(shifted[i]));
    let r = each!(i => _mm512_fnmadd_pd(n[i], of(LN2_HI), x[i]));
    let low = each!(i => _mm512_fnmadd_pd(n[i], of(LN2_LO), low[i]));
    let r = each!(i => _mm512_add_pd(r[i], low[i]));
    let lost = pick(&POWERS_LOST, place);
    let q = poly(r, TERMS);
    let rest = each!(i => _mm512_fmadd_pd(_mm512_mul_pd(r[i], r[i]), q[i], _mm512_add_pd(r[i], lost[i])));
    let power = pick(&POWERS, place);
    // Of n, it takes the integer below.
    each!(i => _mm512_scalef_pd(_mm512_fmadd_pd(power[i], rest[i], power[i]), n[i]))
}

/// `e^x`.
///
/// # Safety
/// The machine has AVX-512 F and DQ.
#[inline(always)]
pub unsafe fn exp(x: Doubles) -> Doubles {
    exp_of_sum(x, [_mm512_setzero_pd(); 2])
}

/// Near the reciprocals of numbers from 0.75 to 1.5, by the first four bits of their mantissa: such that the logarithm of
/// each is next to a multiple of 2^-42, and 1 on both sides of 1.
#[rustfmt::skip]
static RECIPROCAL: Row = [1.0, 0.9139435499907848, 0.8643278096975886, 0.818948416069491, 0.7816644832168701, 0.7427753310384931, 0.7101053817693, 0.6808704702355542, 1.3070538251357953, 1.2533373161668142, 1.2067918004212999, 1.1645058278553826, 1.1224678138913833, 1.0850071117555256, 1.0486210654106336, 1.0];
/// `-ln` of [`RECIPROCAL`], as that multiple.
#[rustfmt::skip]
static LOG: Row = [0.0, 0.08998647093335421, 0.14580317276340793, 0.19973418115478125, 0.2463296800997341, 0.2973616608271641, 0.3423418949334973, 0.38438319615806904, -0.2677756159944238, -0.2258098465213152, -0.1879654337994907, -0.15229681492860436, -0.1155296666297545, -0.0815865415843291, -0.0474760300357957, 0.0];

/// `ln x`.
///
/// # Safety
/// The machine has AVX-512 F and DQ.
#[inline(always)]
pub unsafe fn log(x: Doubles) -> Doubles {
    // What takes the place of the result, by kind of x, four bits for each: NaN, signaling NaN, 0, 1, -inf, inf, below 0,
    // above 0. 0: nothing; 2: x; 3: NaN; 4: -inf; 5: inf.
    const INSTEAD: i64 = 0x0353_0422;
    // The first is a multiple of 2^-42.
    const LN2_HI: f64 = 0.6931471805598903;
    const LN2_LO: f64 = 5.497923018708371e-14;
    // (ln(1 + r) - r) / r^2 for -1/32 <= r <= 1/16
    #[rustfmt::skip]
    const TERMS: [f64; 10] = [-0.5, 0.3333333333333332, -0.2500000000002199, 0.2000000000027513, -0.16666666584911918, 0.1428571285712813, -0.1250009444459753, 0.11113400829816374, -0.09974630903209279, 0.08002487795172133];
    let of = |value: f64| _mm512_set1_pd(value);
    let m = each!(i => _mm512_getmant_pd::<_MM_MANT_NORM_P75_1P5, _MM_MANT_SIGN_SRC>(x[i]));
    let below = each!(i => _mm512_cmp_pd_mask::<_CMP_LT_OQ>(m[i], of(1.0)));
    let e = each!(i => _mm512_getexp_pd(x[i]));
    let e = each!(i => _mm512_mask_add_pd(e[i], below[i], e[i], of(1.0)));
    let place = each!(i => _mm512_srli_epi64::<48>(_mm512_castpd_si512(m[i])));
    let reciprocal = pick(&RECIPROCAL, place);
    let r = each!(i => _mm512_fmsub_pd(m[i], reciprocal[i], of(1.0)));
    let log = pick(&LOG, place);
    // Exact.
    let top = each!(i => _mm512_fmadd_pd(e[i], of(LN2_HI), log[i]));
    let h = poly(r, TERMS);
    let low = each!(i => _mm512_fmadd_pd(_mm512_mul_pd(r[i], r[i]), h[i], _mm512_mul_pd(e[i], of(LN2_LO))));
    each!(i => {
        let y = _mm512_add_pd(top[i], _mm512_add_pd(r[i], low[i]));
        _mm512_fixupimm_pd::<0>(y, x[i], _mm512_set1_epi64(INSTEAD))
    })
}
