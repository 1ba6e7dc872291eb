//! The error function and the activations.

use super::{Fma, exponential, poly, wide};

const SQRT_2_OVER_PI: f64 = 0.797_884_560_802_865_4;
const INV_SQRT_2_PI: f64 = 0.398_942_280_401_432_7;
/// Below it the activations are 0 in `f32`; clamping there keeps `-inf * 0` away.
const FLOOR: f64 = -16.0;

/// Error function. Source of the method and coefficients: N. Juffa, "a faster and more accurate erff()", 2018.
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

/// `x` times the normal distribution function.
#[inline(always)]
pub fn gelu<M: Fma>(x: f32) -> f32 {
    let x = x as f64;
    let x = if x < FLOOR { FLOOR } else { x };
    let t = x.abs();
    let (tail, _) = wide::normal_tail::<M>(if t > -FLOOR { -FLOOR } else { t });
    (x * if x < 0.0 { tail } else { 1.0 - tail }) as f32
}

/// `g` times the derivative of [`gelu`] at `x`.
#[inline(always)]
pub fn gelu_backward<M: Fma>(g: f32, x: f32) -> f32 {
    let x = x as f64;
    let x = if x < FLOOR { FLOOR } else { x };
    let x = if x > -FLOOR { -FLOOR } else { x };
    let (tail, bell) = wide::normal_tail::<M>(x.abs());
    let slope = if x < 0.0 { tail } else { 1.0 - tail };
    (g as f64 * M::fma64(x * INV_SQRT_2_PI, bell, slope)) as f32
}

/// [`gelu`] with the tanh formula.
#[inline(always)]
pub fn gelu_tanh<M: Fma>(x: f32) -> f32 {
    let x = x as f64;
    let x = if x < FLOOR { FLOOR } else { x };
    let u = 2.0 * SQRT_2_OVER_PI * M::fma64(0.044715 * x * x, x, x);
    (x * sigmoid64::<M>(u)) as f32
}

#[inline(always)]
fn sigmoid64<M: Fma>(x: f64) -> f64 {
    let e = wide::exp::<M>(-x.abs());
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}

/// `x * sigmoid(x)`.
#[inline(always)]
pub fn silu<M: Fma>(x: f32) -> f32 {
    // Far left the result is a subnormal, then 0: -inf must give 0 too.
    let x = if x < -120.0 { -120.0 } else { x };
    (x as f64 * sigmoid64::<M>(x as f64)) as f32
}

/// `g` times the derivative of [`silu`] at `x`.
#[inline(always)]
pub fn silu_backward<M: Fma>(g: f32, x: f32) -> f32 {
    let x = x as f64;
    let x = if x < -150.0 { -150.0 } else { x };
    let x = if x > 150.0 { 150.0 } else { x };
    let e = wide::exp::<M>(-x.abs());
    let d = 1.0 / (1.0 + e);
    let s = if x < 0.0 { e * d } else { d };
    let rest = if x < 0.0 { d } else { e * d };
    (g as f64 * M::fma64(x * s, rest, s)) as f32
}

/// `ln(1 + e^x)`.
#[inline(always)]
pub fn softplus<M: Fma>(x: f32) -> f32 {
    let x = x as f64;
    let top = if x < 0.0 { 0.0 } else { x };
    (top + wide::ln_1p::<M>(wide::exp::<M>(-x.abs()))) as f32
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
    use crate::math::erfc64;

    const SQRT_HALF: f64 = std::f64::consts::FRAC_1_SQRT_2;

    /// The normal distribution function.
    fn normal(x: f64) -> f64 {
        0.5 * erfc64(-x * SQRT_HALF)
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
