//! gelu, its derivative, and the complement of the error function.
//!
//! The normal tail is `T(t) * exp(-t^2 / 2)` with a smooth `T`. Its argument is cut into 16 intervals by the exponent and
//! the first two bits of the mantissa of `scale t + 1.05`; each has a center and a polynomial around it, to half a unit in
//! the last place of the result. Entry 0 is the interval from 2 on, since the exponent of 1 ends in 11.
//! Fits as in [`crate::math`]; centers are chosen such that the first coefficient is hardly rounded.

use super::{VECTORS, Vectors, each};
use std::arch::x86_64::*;

/// A function of `t`, times `exp(-t^2 / 2)` or `exp(-t^2)`, from 0 to where that is below what `f32` can hold.
struct Table<const N: usize> {
    /// The share of the square that is the exponent.
    share: f32,
    scale: f32,
    center: [f32; 16],
    /// Lowest first.
    coefficients: [[f32; 16]; N],
}

/// Beyond it the normal tails are 0.
const END: f32 = 14.4;
/// Beyond it the complement of the error function is 0.
const ERFC_END: f32 = 10.07;

/// `table(t) * exp(-share t^2)` for `t` from 0 to its end; NaN stays NaN.
#[inline(always)]
unsafe fn tail<const N: usize>(t: Vectors, table: &Table<N>) -> Vectors {
    const ROUND: f32 = 12582912.0; // 1.5 * 2^23
    // ln 2 in two parts; the first has 9 bits, so that its product with n is exact.
    const LN2_HI: f32 = 0.693_359_375;
    const LN2_LO: f32 = -2.121_944_4e-4;
    // exp(-r) - 1
    const BELL: [f32; 6] = [-1.0, 4.999_999_4e-1, -1.666_652_1e-1, 4.166_828_8e-2, -8.368_704e-3, 1.381_893_1e-3];
    let (share, whole) = (table.share, 1.0 / table.share);
    let mut bells = BELL;
    let mut power = 1.0;
    for coefficient in &mut bells {
        power *= share;
        *coefficient *= power;
    }
    // The loads are of whole tables.
    let of = |value: f32| _mm512_set1_ps(value);
    let row = |row: &[f32; 16]| _mm512_loadu_ps(row.as_ptr());
    let place = each!(i => _mm512_fmadd_ps(t[i], of(table.scale), of(1.05)));
    let square = each!(i => _mm512_mul_ps(t[i], t[i]));
    let place = each!(i => _mm512_srli_epi32::<21>(_mm512_castps_si512(place[i])));
    let shifted = each!(i => _mm512_fmadd_ps(square[i], of(-share * std::f32::consts::LOG2_E), of(ROUND)));
    let d = each!(i => _mm512_sub_ps(t[i], _mm512_permutexvar_ps(place[i], row(&table.center))));
    let n = each!(i => _mm512_sub_ps(shifted[i], of(ROUND)));
    // The square is exact in here: r = t^2 + n ln 2 / share has lost nothing but its own rounding.
    let r = each!(i => _mm512_mul_ps(n[i], of(whole * LN2_HI)));
    let r = each!(i => _mm512_fmadd_ps(t[i], t[i], r[i]));
    let r = each!(i => _mm512_fmadd_ps(n[i], of(whole * LN2_LO), r[i]));
    let mut h = each!(i => _mm512_permutexvar_ps(place[i], row(&table.coefficients[N - 1])));
    let mut bell = [of(bells[5]); VECTORS];
    let mut at = N - 1;
    while at > 0 {
        at -= 1;
        if at > 0 {
            h = each!(i => _mm512_fmadd_ps(h[i], d[i], _mm512_permutexvar_ps(place[i], row(&table.coefficients[at]))));
        }
        if at < 5 {
            bell = each!(i => _mm512_fmadd_ps(bell[i], r[i], of(bells[at])));
        }
    }
    // exp(-share r) - 1.
    let bell = each!(i => _mm512_mul_ps(bell[i], r[i]));
    let first = each!(i => _mm512_permutexvar_ps(place[i], row(&table.coefficients[0])));
    let whole = each!(i => _mm512_fmadd_ps(h[i], d[i], first[i]));
    // Small terms first: (first + h d) (1 + bell) is rounded at its full size only once.
    let rest = each!(i => _mm512_fmadd_ps(h[i], d[i], _mm512_mul_ps(whole[i], bell[i])));
    each!(i => _mm512_scalef_ps(_mm512_add_ps(rest[i], first[i]), n[i]))
}

/// `x` times the normal distribution function.
///
/// # Safety
/// The machine has AVX-512 F and DQ.
#[inline(always)]
pub unsafe fn gelu(x: Vectors) -> Vectors {
    const SMALLER_MAGNITUDE: i32 = 0b1010;
    let t = each!(i => _mm512_range_ps::<SMALLER_MAGNITUDE>(x[i], _mm512_set1_ps(END)));
    let beyond = tail(t, &GELU);
    // The second operand where it is 0 or NaN.
    each!(i => _mm512_sub_ps(_mm512_max_ps(_mm512_set1_ps(-0.0), x[i]), beyond[i]))
}

/// `g` times the derivative of [`gelu`] at `x`.
///
/// # Safety
/// As for [`gelu`].
#[inline(always)]
pub unsafe fn gelu_backward(g: Vectors, x: Vectors) -> Vectors {
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

/// `1 - erf x`.
///
/// # Safety
/// As for [`gelu`].
#[inline(always)]
pub unsafe fn erfc(x: Vectors) -> Vectors {
    let (end, two, zero) = (_mm512_set1_ps(ERFC_END), _mm512_set1_ps(2.0), _mm512_setzero_ps());
    // The second operand where it is NaN.
    let t = each!(i => _mm512_min_ps(end, _mm512_abs_ps(x[i])));
    let right = tail(t, &ERFC);
    each!(i => {
        let left = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(x[i], zero);
        _mm512_mask_sub_ps(right[i], left, two, right[i])
    })
}

/// `erfc(t) exp(t^2)`.
#[rustfmt::skip]
static ERFC: Table<7> = Table {
    share: 1.0,
    scale: 1.48,
    center: [8.208008e-1, 1.1308594, 1.4736328, 1.7802734, 2.239746, 3.0576172, 3.6254883, 4.4057617, 5.370117, 6.7612305, 8.0, 9.319336, 7.714844e-2, 2.2607422e-1, 3.959961e-1, 5.8203125e-1],
    coefficients: [
        [4.8199818e-1, 3.9430758e-1, 3.2595325e-1, 2.8105763e-1, 2.3199797e-1, 1.7592026e-1, 1.5027079e-1, 1.24985516e-1, 1.0332678e-1, 8.2560554e-2, 6.9985166e-2, 6.0197e-2, 9.185707e-1, 7.884685e-1, 6.7316407e-1, 5.7593477e-1],
        [-3.3713022e-1, -2.3656632e-1, -1.6770837e-1, -1.2766032e-1, -8.9146085e-2, -5.258553e-2, -3.8769193e-2, -2.7066363e-2, -1.862531e-2, -1.19573e-2, -8.616508e-3, -6.3870465e-3, -9.866466e-1, -7.7187437e-1, -5.952385e-1, -4.579551e-1],
        [2.0528151e-1, 1.267843e-1, 7.881268e-2, 5.378745e-2, 3.233325e-2, 1.5133862e-2, 9.713541e-3, 5.737572e-3, 3.3067125e-3, 1.7145001e-3, 1.0531027e-3, 6.7396904e-4, 8.424529e-1, 6.1396813e-1, 4.374516e-1, 3.0939054e-1],
        [-1.1242032e-1, -6.2125504e-2, -3.4378726e-2, -2.1268778e-2, -1.1151878e-2, -4.2078393e-3, -2.3685147e-3, -1.1919856e-3, -5.7849614e-4, -2.4343366e-4, -1.2778558e-4, -7.073176e-5, -6.144218e-1, -4.2205325e-1, -2.813239e-1, -1.8526189e-1],
        [5.6490656e-2, 2.8268546e-2, 1.4077939e-2, 7.9551665e-3, 3.683404e-3, 1.1330368e-3, 5.6325115e-4, 2.4288717e-4, 9.981901e-5, 3.4231263e-5, 1.5403002e-5, 7.384142e-6, 3.9737323e-1, 2.5907242e-1, 1.6316043e-1, 1.0075779e-1],
        [-2.6646905e-2, -1.217652e-2, -5.4615606e-3, -2.855605e-3, -1.1689613e-3, -2.996824e-4, -1.3179546e-4, -4.889714e-5, -1.7375327e-5, -4.8419215e-6, -1.8589665e-6, -7.76653e-7, -2.3649918e-1, -1.4487913e-1, -8.881293e-2, -4.902579e-2],
        [1.2011727e-2, 4.783667e-3, 1.9266496e-3, 1.0200688e-3, 3.012685e-4, 8.19474e-5, 2.8378427e-5, 1.0230989e-5, 2.9118144e-6, 6.875628e-7, 2.0904608e-7, 8.106254e-8, 1.3218096e-1, 9.543852e-2, 2.7337002e-2, 3.631743e-2],
    ],
};

/// `t P(Z > t) exp(t^2 / 2)`.
#[rustfmt::skip]
static GELU: Table<6> = Table {
    share: 0.5,
    scale: 1.035,
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
static SLOPE: Table<6> = Table {
    share: 0.5,
    scale: 1.035,
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
