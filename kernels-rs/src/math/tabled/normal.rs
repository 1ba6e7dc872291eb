//! gelu and its derivative.
//!
//! The normal tail is `T(t) * exp(-t^2 / 2)` with a smooth `T`. Its argument is cut into 16 intervals by the exponent and
//! the first two bits of the mantissa of `1.035 t + 1.05`; each has a center and a polynomial of degree 5 around it, to
//! half a unit in the last place of the result. Entry 0 is the interval from 2 on, since the exponent of 1 ends in 11.
//! Fits as in [`crate::math`]; centers are chosen such that the first coefficient is hardly rounded.

use super::{VECTORS, Vectors, each};
use std::arch::x86_64::*;

/// A function of `t` from 0 to 14.4, where the bell is below what `f32` can hold.
struct Table {
    center: [f32; 16],
    /// Lowest first.
    coefficients: [[f32; 16]; 6],
}

/// Beyond it the tails are 0.
const END: f32 = 14.4;

/// `table(t) * exp(-t^2 / 2)` for `0 <= t <= END`; NaN stays NaN.
#[inline(always)]
unsafe fn tail(t: Vectors, table: &Table) -> Vectors {
    const ROUND: f32 = 12582912.0; // 1.5 * 2^23
    // 2 ln 2 in two parts; the first has 9 bits, so that its product with n is exact.
    const TWO_LN2_HI: f32 = 2.0 * 0.693_359_375;
    const TWO_LN2_LO: f32 = 2.0 * -2.121_944_4e-4;
    const BELL: [f32; 6] = [-0.5, 1.24999985e-1, -2.0833151e-2, 2.604268e-3, -2.61522e-4, 2.159208e-5];
    // SAFETY: the caller has the instructions; the loads are of whole tables.
    unsafe {
        let of = |value: f32| _mm512_set1_ps(value);
        let row = |row: &[f32; 16]| _mm512_loadu_ps(row.as_ptr());
        let place = each!(i => _mm512_fmadd_ps(t[i], of(1.035), of(1.05)));
        let square = each!(i => _mm512_mul_ps(t[i], t[i]));
        let place = each!(i => _mm512_srli_epi32::<21>(_mm512_castps_si512(place[i])));
        let shifted = each!(i => _mm512_fmadd_ps(square[i], of(-0.5 * std::f32::consts::LOG2_E), of(ROUND)));
        let d = each!(i => _mm512_sub_ps(t[i], _mm512_permutexvar_ps(place[i], row(&table.center))));
        let n = each!(i => _mm512_sub_ps(shifted[i], of(ROUND)));
        // The square is exact in here: r = t^2 + 2 n ln 2 has lost nothing but its own rounding.
        let r = each!(i => _mm512_mul_ps(n[i], of(TWO_LN2_HI)));
        let r = each!(i => _mm512_fmadd_ps(t[i], t[i], r[i]));
        let r = each!(i => _mm512_fmadd_ps(n[i], of(TWO_LN2_LO), r[i]));
        let mut h = each!(i => _mm512_permutexvar_ps(place[i], row(&table.coefficients[5])));
        let mut bell = [of(BELL[5]); VECTORS];
        let mut at = 5;
        while at > 0 {
            at -= 1;
            if at > 0 {
                h = each!(i => _mm512_fmadd_ps(h[i], d[i], _mm512_permutexvar_ps(place[i], row(&table.coefficients[at]))));
            }
            bell = each!(i => _mm512_fmadd_ps(bell[i], r[i], of(BELL[at])));
        }
        // exp(-r / 2) - 1.
        let bell = each!(i => _mm512_mul_ps(bell[i], r[i]));
        let first = each!(i => _mm512_permutexvar_ps(place[i], row(&table.coefficients[0])));
        let whole = each!(i => _mm512_fmadd_ps(h[i], d[i], first[i]));
        // Small terms first: (first + h d) (1 + bell) is rounded at its full size only once.
        let rest = each!(i => _mm512_fmadd_ps(h[i], d[i], _mm512_mul_ps(whole[i], bell[i])));
        each!(i => _mm512_scalef_ps(_mm512_add_ps(rest[i], first[i]), n[i]))
    }
}

/// `x` times the normal distribution function.
///
/// # Safety
/// The machine has AVX-512 F and DQ.
#[inline(always)]
pub unsafe fn gelu(x: Vectors) -> Vectors {
    const SMALLER_MAGNITUDE: i32 = 0b1010;
    // SAFETY: arithmetic on registers alone, whose instructions the caller promises.
    unsafe {
        let t = each!(i => _mm512_range_ps::<SMALLER_MAGNITUDE>(x[i], _mm512_set1_ps(END)));
        let beyond = tail(t, &GELU);
        // The second operand where it is 0 or NaN.
        each!(i => _mm512_sub_ps(_mm512_max_ps(_mm512_set1_ps(-0.0), x[i]), beyond[i]))
    }
}

/// `g` times the derivative of [`gelu`] at `x`.
///
/// # Safety
/// As for [`gelu`].
#[inline(always)]
pub unsafe fn gelu_backward(g: Vectors, x: Vectors) -> Vectors {
    // SAFETY: arithmetic on registers alone, whose instructions the caller promises.
    unsafe {
        let (end, one, zero) = (_mm512_set1_ps(END), _mm512_set1_ps(1.0), _mm512_setzero_ps());
        let magnitude = each!(i => _mm512_abs_ps(x[i]));
        // The second operand where it is NaN.
        let below = tail(each!(i => _mm512_min_ps(end, magnitude[i])), &SLOPE);
        each!(i => {
            // The slope at the end is not 0 yet.
            let inside = _mm512_cmp_ps_mask::<_CMP_NGE_UQ>(magnitude[i], end);
            let below = _mm512_maskz_mov_ps(inside, below[i]);
            let right = _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(x[i], zero);
            _mm512_mul_ps(g[i], _mm512_mask_sub_ps(below, right, one, below))
        })
    }
}

/// `t P(Z > t) exp(t^2 / 2)`.
#[rustfmt::skip]
static GELU: Table = Table {
    center: [1.152832, 1.6086426, 2.135254, 2.5979004, 3.2873535, 4.305664, 5.2160645, 6.173828, 7.7319336, 9.758545, 11.408203, 13.399414, 0.0, 0.31347656, 0.55566406, 0.814209],
    coefficients: [
        [0.2789284, 0.3158943, 0.34162, 0.3558942, 0.36928043, 0.38021004, 0.3856571, 0.3892077, 0.3925788, 0.3948785, 0.39594504, 0.39675644, 0.0, 0.12411895, 0.18753743, 0.23564492],
        [0.103594735, 0.06277867, 0.03759272, 0.02515841, 0.014824618, 0.007649899, 0.0046400633, 0.0029418662, 0.0015717711, 0.00080838153, 0.0005139466, 0.00032100925, 0.5, 0.30979264, 0.22003138, 0.1564576],
        [-0.06029782, -0.03255304, -0.017187024, -0.010368433, -0.0052943733, -0.0022631623, -0.0011837041, -0.00065328553, -0.00028703688, -0.00011946936, -6.5628315e-05, -3.517164e-05, -0.39894032, -0.2262661, -0.15027253, -0.09960255],
        [0.028627468, 0.013938215, 0.0065623233, 0.003600576, 0.001611331, 0.00057652954, 0.00026198023, 0.0001265224, 4.593014e-05, 1.5531707e-05, 7.402623e-06, 3.4079076e-06, 0.24989818, 0.13124895, 0.082181565, 0.051191967],
        [-0.011976372, -0.005287475, -0.002241106, -0.001124549, -0.0004496013, -0.00013563165, -5.3584103e-05, -2.2712558e-05, -6.978105e-06, -1.9058423e-06, -7.8470237e-07, -3.1076422e-07, -0.13131624, -0.06535598, -0.038799588, -0.022833014],
        [0.0044082617, 0.0017088875, 0.00071084173, 0.00031600075, 0.000108088585, 2.9676054e-05, 9.684919e-06, 3.6303807e-06, 1.0281747e-06, 2.4399083e-07, 7.3040454e-08, 2.658553e-08, 0.051576465, 0.02907041, 0.01631112, 0.009464557],
    ],
};

/// `P(Z > t) exp(t^2 / 2) - t / sqrt(2 pi)`.
#[rustfmt::skip]
static SLOPE: Table = Table {
    center: [1.1835938, 1.6208496, 2.1254883, 2.5942383, 3.3430176, 4.326172, 5.2561035, 6.27417, 7.727051, 9.695557, 11.557861, 13.399414, 0.099121094, 0.31884766, 0.5546875, 0.7861328],
    coefficients: [
        [-0.23387839, -0.45126134, -0.6873952, -0.8978005, -1.2229658, -1.6379708, -2.0234737, -2.4409523, -3.0318425, -3.827245, -4.5766554, -5.315983, 0.42324534, 0.26726985, 0.11641972, -0.019558672],
        [-0.51582575, -0.48122874, -0.45663333, -0.4420826, -0.42779508, -0.4175186, -0.41204354, -0.40838814, -0.40531343, -0.40305746, -0.40186405, -0.4011281, -0.75201243, -0.6721082, -0.61056215, -0.566712],
        [0.049981777, 0.030994669, 0.018964862, 0.012617242, 0.0071245427, 0.0037787997, 0.0022732255, 0.0014072869, 0.0007871753, 0.00041180526, 0.0002474083, 0.00016051384, 0.21389593, 0.15368637, 0.11016238, 0.08108678],
        [-0.019231644, -0.010683474, -0.0057931095, -0.0034699913, -0.0016774449, -0.0007425273, -0.00038445272, -0.0002053759, -9.591077e-05, -4.079054e-05, -2.0788148e-05, -1.1752566e-05, -0.110618025, -0.074724674, -0.050172683, -0.03467696],
        [0.006846117, 0.0034425063, 0.001673984, 0.00090714765, 0.00038435284, 0.00014287756, 6.3866384e-05, 2.9375227e-05, 1.17889995e-05, 4.043645e-06, 1.7339961e-06, 8.426909e-07, 0.05082215, 0.032551613, 0.020633122, 0.013480235],
        [-0.002421974, -0.0010114837, -0.0004614744, -0.00021709804, -8.554412e-05, -2.7320879e-05, -9.699356e-06, -4.732523e-06, -1.3960209e-06, -4.250233e-07, -1.575451e-07, -3.7057315e-08, -0.021503195, -0.012787016, -0.0076639424, -0.0046975925],
    ],
};
