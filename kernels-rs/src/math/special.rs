//! The error function and the activations.

use super::{Fma, exponential, poly, wide};

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
    use crate::math::libm::erfc;

    const SQRT_HALF: f64 = std::f64::consts::FRAC_1_SQRT_2;

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
