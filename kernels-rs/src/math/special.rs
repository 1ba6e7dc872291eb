//! The error function and the activations.

use super::{Fma, exponential, poly, poly64, wide};

const SQRT_2_OVER_PI: f64 = 0.797_884_560_802_865_4;
const INV_SQRT_2_PI: f64 = 0.398_942_280_401_432_7;
/// Below it the activations are 0 in `f32`; clamping there keeps `-inf * 0` away.
const FLOOR: f64 = -16.0;

/// Error function. Source of the method and coefficients: N. Juffa, "a faster and more accurate `erff()`", 2018.
#[inline(always)]
pub fn erf<M: Fma>(x: f32) -> f32 {
    let t = x.abs();
    let s = x * x;
    let u = M::fma(-3.88396438e-3, t, 2.42546219e-2);
    let r = M::fma(M::fma(-1.72853470e-5, t, 3.83197126e-4), s, u);
    let r = M::fma(r, t, -1.06777877e-1);
    let r = M::fma(r, t, -6.34846687e-1);
    let r = M::fma(r, t, -1.28717512e-1);
    let r = M::fma(r, t, -t);
    // From 4 on the result is 1; the polynomial is not good there.
    let r = if t > 4.0 { -100.0 } else { r };
    let far = (1.0 - exponential::exp::<M>(r)).copysign(x);
    let p =
        poly::<M, 6>(s, [1.28379166e-1, -3.76125336e-1, 1.12819925e-1, -2.67681349e-2, 4.99119423e-3, -5.96761703e-4]);
    let near = M::fma(p, x, x);
    if t > 0.927734375 { far } else { near }
}

/// The normal tail `P(Z > t)` in pieces, for `t = |x|` up to 15.
#[derive(Clone, Copy)]
struct Tail {
    t: f32,
    /// `t * P(Z > t) / exp(-t^2 / 2)`, good from 0.7 on.
    h: f32,
    /// `(P(Z <= x) - 1/2) / x`, good up to 0.7.
    s: f32,
    bell: exponential::Parts,
}

#[inline(always)]
fn tail<M: Fma>(x: f32) -> Tail {
    let t = x.abs();
    let t = if t > 15.0 { 15.0 } else { t };
    let square = t * t;
    // The exponent must be exact, so what the square lost goes along.
    let bell = exponential::split::<M>(-0.5 * square, -0.5 * M::square_error(t, square));
    // A polynomial in q is best conditioned where q is small, so the map is centred near the border to the other formula.
    let q = (t - 1.0) / (t + 1.0);
    let h = poly::<M, 13>(
        q,
        [
            0.26157829209685113,
            0.24842861661094845,
            -0.05259886366538385,
            -0.05745532000173849,
            -0.019406421648052112,
            0.0031186719952757368,
            0.008257438377737425,
            0.007336479311468863,
            0.008187322685395834,
            -0.024498189104898198,
            0.04319614214154055,
            -0.03971506905474235,
            0.012512896112133015,
        ],
    );
    let s = poly::<M, 5>(
        square,
        [0.39894227975569363, -0.06649031827672014, 0.00997260518963483, -0.0011821638755753956, 0.0001038653335184857],
    );
    Tail { t, h, s, bell }
}

/// `v * exp(-t^2 / 2)`.
#[inline(always)]
fn times_bell<M: Fma>(v: f32, bell: exponential::Parts) -> f32 {
    let (s1, s2) = bell.scales();
    M::fma(v, bell.r + bell.t, v) * s1 * s2
}

/// `x` times the normal distribution function.
#[inline(always)]
pub fn gelu<M: Fma>(x: f32) -> f32 {
    let tail = tail::<M>(x);
    let beyond = times_bell::<M>(tail.h, tail.bell);
    let far = if x > 0.0 { x - beyond } else { -beyond };
    let near = M::fma(x * x, tail.s, 0.5 * x);
    if x.abs() < 0.7 { near } else { far }
}

/// `1 - erf x`, in `f64` lanes: `e^(-x^2) * e^(x^2) erfc(x)`, where the second factor times `1 + x` is a polynomial of
/// `(x - 2) / (x + 2)`.
#[inline(always)]
pub fn erfc<M: Fma>(x: f32) -> f32 {
    let a = (x as f64).abs();
    let a = if a > 10.06 { 10.06 } else { a };
    let p = poly64::<M, 14>(
        (a - 2.0) / (a + 2.0),
        [
            0.7661870289623003,
            -0.2599748368144787,
            0.037813893764439145,
            0.042536339246603716,
            -0.025243446687844666,
            -0.0005180928758787725,
            0.00393683421538194,
            0.0001431678317153453,
            -0.0007031580345080502,
            -0.00013370042988819492,
            0.00011152465578832844,
            4.86640617892422e-05,
            -6.843679419462641e-06,
            -5.707853911483116e-06,
        ],
    );
    let tail = wide::exp::<M>(-(a * a)) * p / (1.0 + a);
    (if x < 0.0 { 2.0 - tail } else { tail }) as f32
}

/// The number of which `erf` is `x`. Two ranges of `w = -ln(1 - x^2)` as by M. Giles, "Approximating the erfinv function",
/// 2010; `w` is good enough in `f32`, the polynomials are not.
#[inline(always)]
pub fn erfinv<M: Fma>(x: f32) -> f32 {
    let w = -exponential::log::<M>((1.0 - x) * (1.0 + x));
    let near = poly64::<M, 10>(
        w as f64 - 2.5,
        [
            1.5014093598328817,
            0.24664028938940943,
            -0.0041773897590807445,
            -0.0012527484164548393,
            0.00021834691469302115,
            -4.959743495821235e-06,
            -3.4633561655939872e-06,
            4.654287306283573e-07,
            2.3285844510028886e-08,
            -8.739830983687219e-09,
        ],
    );
    let far = poly64::<M, 11>(
        w as f64 - 10.85,
        [
            3.1280605371136874,
            0.15266089920424422,
            -0.003404545896309364,
            0.00014521219676407875,
            -7.086612135601227e-06,
            3.0191037111178585e-07,
            -4.257593599523903e-09,
            -1.112028385195389e-09,
            2.3871141742957343e-10,
            -3.280242194301324e-11,
            1.911637252594415e-12,
        ],
    );
    let y = ((if w < 5.0 { near } else { far }) * x as f64) as f32;
    if x.abs() == 1.0 { f32::INFINITY.copysign(x) } else { y }
}

/// `ln |Gamma(x)|`; around its zeros 1 and 2 these times a polynomial.
#[inline(always)]
pub fn lgamma<M: Fma>(x: f32) -> f32 {
    let x = x as f64;
    let u = x - 1.5;
    let p = poly64::<M, 15>(
        u,
        [
            0.4831289505586791,
            -0.1459598971853303,
            0.06291139774804982,
            -0.031308396849954005,
            0.01679719228141992,
            -0.009427490583084314,
            0.005445625623031082,
            -0.003195176147624643,
            0.0019247714470518268,
            -0.0012420143954270015,
            0.0007210720309673767,
            -0.0002520608702910301,
            0.00021479980472955605,
            -0.00037988235664451167,
            0.0002021767882219624,
        ],
    );
    let near = p * (x - 1.0) * (x - 2.0);
    (if (x > 0.8) & (x < 2.25) { near } else { super::double::lgamma::<M>(x) }) as f32
}

/// `g` times the derivative of [`gelu`] at `x`.
#[inline(always)]
pub fn gelu_backward<M: Fma>(g: f32, x: f32) -> f32 {
    let tail = tail::<M>(x);
    let far = times_bell::<M>(M::fma(tail.t, -INV_SQRT_2_PI as f32, tail.h / tail.t), tail.bell);
    let far = if x < 0.0 { far } else { 1.0 - far };
    // Up to 0.7 the bell has n = 0.
    let slope = M::fma(INV_SQRT_2_PI as f32, 1.0 + (tail.bell.r + tail.bell.t), tail.s);
    let near = M::fma(x, slope, 0.5);
    g * if x.abs() < 0.7 { near } else { far }
}

/// [`gelu`] with the tanh formula.
#[inline(always)]
pub fn gelu_tanh<M: Fma>(x: f32) -> f32 {
    let x = x as f64;
    let x = if x < FLOOR { FLOOR } else { x };
    let u = 2.0 * SQRT_2_OVER_PI * M::fma64(0.044715 * x * x, x, x);
    (x * sigmoid64::<M>(u)) as f32
}

/// `g` times the derivative of [`gelu_tanh`] at `x`.
#[inline(always)]
pub fn gelu_tanh_backward<M: Fma>(g: f32, x: f32) -> f32 {
    const FIRST: f32 = (2.0 * SQRT_2_OVER_PI) as f32;
    const THIRD: f32 = (2.0 * SQRT_2_OVER_PI * 0.044715) as f32;
    // Beyond, the slope is 0 or 1.
    let x = if x < -12.0 { -12.0 } else { x };
    let x = if x > 12.0 { 12.0 } else { x };
    let square = x * x;
    let v = x * M::fma(square, THIRD, FIRST);
    let steep = x * M::fma(square, 3.0 * THIRD, FIRST);
    let e = exponential::exp::<M>(-v.abs());
    let d = 1.0 / (1.0 + e);
    let s = if v < 0.0 { e * d } else { d };
    let rest = if v < 0.0 { d } else { e * d };
    g * M::fma(steep * s, rest, s)
}

#[inline(always)]
fn sigmoid64<M: Fma>(x: f64) -> f64 {
    let e = wide::exp::<M>(-x.abs());
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}

/// `x * sigmoid(x)`.
#[inline(always)]
pub fn silu<M: Fma>(x: f32) -> f32 {
    // Far out the result is 0 or x; the clamp keeps inf * 0 away.
    let a = x.abs();
    let a = if a > 120.0 { 120.0 } else { a };
    let (f1, denominator, f2) = exponential::logistic_tail::<M>(a);
    let tail = a * f1 / denominator * f2;
    let right = if x > 120.0 { x } else { a - tail };
    if x.is_sign_negative() { -tail } else { right }
}

/// `g` times the derivative of [`silu`] at `x`.
#[inline(always)]
pub fn silu_backward<M: Fma>(g: f32, x: f32) -> f32 {
    let x = if x < -150.0 { -150.0 } else { x };
    let x = if x > 150.0 { 150.0 } else { x };
    let e = exponential::exp::<M>(-x.abs());
    let d = 1.0 / (1.0 + e);
    let s = if x < 0.0 { e * d } else { d };
    let rest = if x < 0.0 { d } else { e * d };
    g * M::fma(x * s, rest, s)
}

/// `ln(1 + e^x)`.
#[inline(always)]
pub fn softplus<M: Fma>(x: f32) -> f32 {
    let top = if x < 0.0 { 0.0 } else { x };
    top + exponential::log1p_unit::<M>(exponential::exp::<M>(-x.abs()))
}

/// `-ln(1 + e^-x)`.
#[inline(always)]
pub fn log_sigmoid<M: Fma>(x: f32) -> f32 {
    -softplus::<M>(-x)
}

/// `x` above 0, `alpha * (e^x - 1)` below.
#[inline(always)]
pub fn elu<M: Fma>(x: f32, alpha: f32) -> f32 {
    let low = alpha * exponential::expm1::<M>(x);
    if x > 0.0 { x } else { low }
}

/// The same functions for `f64`, through libm.
pub mod double {
    use super::{INV_SQRT_2_PI, SQRT_2_OVER_PI};
    use crate::math::Baseline;
    use crate::math::libm::{erf, erfc};

    const SQRT_HALF: f64 = std::f64::consts::FRAC_1_SQRT_2;

    /// The number of which `erf` is `x`: Newton's method from where the function of `f32` ends.
    pub fn erfinv(x: f64) -> f64 {
        let a = x.abs();
        if a >= 1.0 || x == 0.0 || x.is_nan() {
            return if a == 1.0 {
                f64::INFINITY.copysign(x)
            } else if x == 0.0 {
                x
            } else {
                f64::NAN
            };
        }
        let mut y = if a <= 0.999_999_9 {
            super::erfinv::<Baseline>(a as f32) as f64
        } else {
            // Far out erfc(y) = e^(-y^2) / (y * sqrt(pi)) * (1 - 1/(2y^2) + ...).
            let far = -(1.0 - a).ln() - 0.5 * std::f64::consts::PI.ln();
            (0..4).fold(far.sqrt(), |y, _| (far - y.ln() + (1.0 - 0.5 / (y * y)).ln()).sqrt())
        };
        for _ in 0..3 {
            let gap = if a < 0.5 { erf(y) - a } else { (1.0 - a) - erfc(y) };
            // The second term is Halley's, for the steepness of the tail.
            let step = gap * (y * y).exp() * (0.5 * std::f64::consts::PI.sqrt());
            y -= step / (1.0 + y * step);
        }
        y.copysign(x)
    }

    /// The normal distribution function.
    fn normal(x: f64) -> f64 {
        0.5 * erfc(-x * SQRT_HALF)
    }

    /// See [`super::gelu`].
    pub fn gelu(x: f64) -> f64 {
        x.max_nan(-40.0) * normal(x)
    }

    /// See [`super::gelu_backward`].
    pub fn gelu_backward(g: f64, x: f64) -> f64 {
        let near = x.max_nan(-40.0).min_nan(40.0);
        g * (normal(x) + near * INV_SQRT_2_PI * (-0.5 * near * near).exp())
    }

    /// See [`super::gelu_tanh`].
    pub fn gelu_tanh(x: f64) -> f64 {
        let x = x.max_nan(-40.0);
        x * sigmoid(2.0 * SQRT_2_OVER_PI * (x + 0.044715 * x * x * x))
    }

    /// See [`super::gelu_tanh_backward`].
    pub fn gelu_tanh_backward(g: f64, x: f64) -> f64 {
        let x = x.max_nan(-40.0).min_nan(40.0);
        let v = 2.0 * SQRT_2_OVER_PI * (x + 0.044715 * x * x * x);
        let slope = 2.0 * SQRT_2_OVER_PI * (1.0 + 3.0 * 0.044715 * x * x);
        let s = sigmoid(v);
        g * (s + x * slope * s * sigmoid(-v))
    }

    /// `1 / (1 + e^-x)`.
    pub fn sigmoid(x: f64) -> f64 {
        let e = (-x.abs()).exp();
        (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
    }

    /// See [`super::silu`].
    pub fn silu(x: f64) -> f64 {
        x.max_nan(-800.0) * sigmoid(x)
    }

    /// See [`super::silu_backward`].
    pub fn silu_backward(g: f64, x: f64) -> f64 {
        let x = x.max_nan(-800.0).min_nan(800.0);
        let s = sigmoid(x);
        g * (s + x * s * sigmoid(-x))
    }

    /// See [`super::softplus`].
    pub fn softplus(x: f64) -> f64 {
        x.max_nan(0.0) + (-x.abs()).exp().ln_1p()
    }

    /// `ln(e^a + e^b)`.
    pub fn logaddexp(a: f64, b: f64) -> f64 {
        if a == b {
            return a + std::f64::consts::LN_2;
        }
        let top = if a > b { a } else { b };
        top + (-(a - b).abs()).exp().ln_1p()
    }

    /// Clamps that keep NaN.
    trait Clamp {
        fn max_nan(self, low: f64) -> f64;
        fn min_nan(self, high: f64) -> f64;
    }

    impl Clamp for f64 {
        fn max_nan(self, low: f64) -> f64 {
            if self < low { low } else { self }
        }
        fn min_nan(self, high: f64) -> f64 {
            if self > high { high } else { self }
        }
    }
}
