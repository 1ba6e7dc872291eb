//! References in `f64` of many numbers at once: the vector mathematics of glibc (libmvec, at most 4 ulp of `f64`) where it is
//! there, else the platform's scalar functions.

use crate::math::libm;

/// Applies a function that compilers turn into vector instructions.
#[inline(always)]
pub fn many(x: &[f64], y: &mut [f64], f: impl Fn(f64) -> f64) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = f(x);
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod vector {
    use std::arch::x86_64::{__m256d, _mm256_loadu_pd, _mm256_storeu_pd};
    use std::ffi::{CString, c_void};
    use std::sync::OnceLock;

    #[expect(improper_ctypes_definitions, reason = "the ABI of vectors is what libmvec is made for")]
    type Four = unsafe extern "C" fn(__m256d) -> __m256d;

    fn library() -> Option<*mut c_void> {
        static LIBRARY: OnceLock<usize> = OnceLock::new();
        // SAFETY: the library only holds functions; it is never closed.
        let handle =
            *LIBRARY.get_or_init(|| unsafe { libc::dlopen(c"libmvec.so.1".as_ptr(), libc::RTLD_NOW) } as usize);
        (handle != 0 && is_x86_feature_detected!("avx2")).then_some(handle as *mut c_void)
    }

    /// `y = f(x)` by the function of libmvec with this name; false where there is none.
    pub fn apply(name: &str, x: &[f64], y: &mut [f64]) -> bool {
        let Some(library) = library() else { return false };
        // The name of the vector ABI: AVX2 (d), no mask (N), four lanes, one vector argument.
        let symbol = CString::new(format!("_ZGVdN4v_{name}")).unwrap();
        // SAFETY: an open library and a C string.
        let address = unsafe { libc::dlsym(library, symbol.as_ptr()) };
        if address.is_null() {
            return false;
        }
        // SAFETY: the vector ABI gives functions of this name this type; AVX2 was found.
        unsafe { run(std::mem::transmute::<*mut c_void, Four>(address), x, y) };
        true
    }

    #[target_feature(enable = "avx2")]
    unsafe fn run(f: Four, x: &[f64], y: &mut [f64]) {
        for (x, y) in x.chunks(4).zip(y.chunks_mut(4)) {
            let mut four = [1.0; 4];
            four[..x.len()].copy_from_slice(x);
            let mut out = [0.0; 4];
            // SAFETY: both arrays hold four numbers; the caller vouches for the function.
            unsafe { _mm256_storeu_pd(out.as_mut_ptr(), f(_mm256_loadu_pd(four.as_ptr()))) };
            y.copy_from_slice(&out[..y.len()]);
        }
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64")))]
mod vector {
    pub fn apply(_name: &str, _x: &[f64], _y: &mut [f64]) -> bool {
        false
    }
}

macro_rules! functions {
    ($($name:ident $symbol:literal $scalar:expr;)*) => {$(
        pub fn $name(x: &[f64], y: &mut [f64]) {
            if !vector::apply($symbol, x, y) {
                many(x, y, $scalar);
            }
        }
    )*};
}

functions! {
    acos "acos" f64::acos;
    acosh "acosh" libm::acosh;
    asin "asin" f64::asin;
    asinh "asinh" libm::asinh;
    atan "atan" f64::atan;
    atanh "atanh" libm::atanh;
    cosh "cosh" f64::cosh;
    erf "erf" libm::erf;
    erfc "erfc" libm::erfc;
    exp "exp" f64::exp;
    expm1 "expm1" f64::exp_m1;
    log "log" f64::ln;
    log10 "log10" f64::log10;
    log1p "log1p" f64::ln_1p;
    log2 "log2" f64::log2;
    near_cos "cos" f64::cos;
    near_sin "sin" f64::sin;
    sinh "sinh" f64::sinh;
    tanh "tanh" f64::tanh;
}

/// 2/pi in binary after 64 zeros: the first 256 bits of the table in fdlibm's `e_rem_pio2.c`.
const TWO_OVER_PI: [u64; 5] =
    [0, 0xa2f9_836e_4e44_1529, 0xfc27_57d1_f534_ddc0, 0xdb62_9599_3c43_9041, 0xfe51_63ab_debb_c561];

/// `x` as (quarter turns modulo 4, the rest in radians within pi/4), for a number of `f32`: by the bits of 2/pi that matter,
/// so that nothing is lost however large `x` is.
fn reduce(x: f64) -> (u8, f64) {
    let exponent = ((x.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    if !(0..128).contains(&exponent) {
        return (0, x);
    }
    let mantissa = ((x.to_bits() & ((1 << 52) - 1)) | (1 << 52)) >> 29;
    // 128 bits of 2/pi, from the one that the exponent of the mantissa's last bit brings to weight 4.
    let first = (61 + exponent - 23) as usize;
    let word = |at: usize| {
        let (high, low) = (TWO_OVER_PI[at / 64], TWO_OVER_PI[at / 64 + 1]);
        if at.is_multiple_of(64) { high } else { (high << (at % 64)) | (low >> (64 - at % 64)) }
    };
    let turns = (((word(first) as u128) << 64) | word(first + 64) as u128).wrapping_mul(mantissa as u128);
    let fraction = (turns << 3) as i128;
    let quarters = (turns >> 125) as u8 + u8::from(fraction < 0);
    let rest = fraction as f64 * 2f64.powi(-128) * std::f64::consts::FRAC_PI_2;
    if x < 0.0 { (quarters.wrapping_neg() & 3, -rest) } else { (quarters & 3, rest) }
}

/// `choose(quarter, sin rest, cos rest)` of every number.
#[inline(always)]
fn turned(x: &[f64], y: &mut [f64], choose: impl Fn(u8, f64, f64) -> f64) {
    let (quarters, rests): (Vec<u8>, Vec<f64>) = x.iter().map(|&x| reduce(x)).unzip();
    let (mut sines, mut cosines) = (vec![0.0; x.len()], vec![0.0; x.len()]);
    near_sin(&rests, &mut sines);
    near_cos(&rests, &mut cosines);
    for (i, y) in y.iter_mut().enumerate() {
        *y = choose(quarters[i], sines[i], cosines[i]);
    }
}

pub fn sin(x: &[f64], y: &mut [f64]) {
    turned(x, y, |quarter, sin, cos| [sin, cos, -sin, -cos][quarter as usize]);
}

pub fn cos(x: &[f64], y: &mut [f64]) {
    turned(x, y, |quarter, sin, cos| [cos, -sin, -cos, sin][quarter as usize]);
}

pub fn tan(x: &[f64], y: &mut [f64]) {
    turned(x, y, |quarter, sin, cos| if quarter % 2 == 0 { sin / cos } else { -cos / sin });
}

/// `y = after(x, f(before(x)))`.
#[inline(always)]
fn between(
    x: &[f64],
    y: &mut [f64],
    before: impl Fn(f64) -> f64,
    f: fn(&[f64], &mut [f64]),
    after: impl Fn(f64, f64) -> f64,
) {
    let mut inner = vec![0.0; x.len()];
    many(x, &mut inner, before);
    f(&inner, y);
    for (y, &x) in y.iter_mut().zip(x) {
        *y = after(x, *y);
    }
}

pub fn gelu(x: &[f64], y: &mut [f64]) {
    between(x, y, |x| -x * std::f64::consts::FRAC_1_SQRT_2, erfc, |x, tail| x * 0.5 * tail);
}

pub fn gelu_tanh(x: &[f64], y: &mut [f64]) {
    between(x, y, |x| -formulas::gelu_tanh_inner(x), exp, |x, power| x / (1.0 + power));
}

pub fn log_sigmoid(x: &[f64], y: &mut [f64]) {
    let mut power = vec![0.0; x.len()];
    between(x, &mut power, |x| -x.abs(), exp, |_, power| power);
    log1p(&power, y);
    for (y, &x) in y.iter_mut().zip(x) {
        *y = x.min(0.0) - *y;
    }
}

pub fn sigmoid(x: &[f64], y: &mut [f64]) {
    between(x, y, |x| -x, exp, |_, power| 1.0 / (1.0 + power));
}

pub fn silu(x: &[f64], y: &mut [f64]) {
    between(x, y, |x| -x, exp, |x, power| x / (1.0 + power));
}

pub fn softplus(x: &[f64], y: &mut [f64]) {
    let mut power = vec![0.0; x.len()];
    between(x, &mut power, |x| -x.abs(), exp, |_, power| power);
    log1p(&power, y);
    for (y, &x) in y.iter_mut().zip(x) {
        *y += x.max(0.0);
    }
}

/// Functions of one number that the platform lacks.
pub mod formulas {
    use crate::math::libm;

    pub fn normal(x: f64) -> f64 {
        0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
    }

    pub fn sigmoid(x: f64) -> f64 {
        if x >= 0.0 { 1.0 / (1.0 + (-x).exp()) } else { x.exp() / (1.0 + x.exp()) }
    }

    pub fn softplus(x: f64) -> f64 {
        if x.is_nan() { x } else { x.max(0.0) + (-x.abs()).exp().ln_1p() }
    }

    pub fn log_sigmoid(x: f64) -> f64 {
        -softplus(-x)
    }

    /// `x * f(x)` with the limit 0 at minus infinity, where the sign of the 0 is left open.
    pub fn times(x: f64, f: fn(f64) -> f64) -> f64 {
        if x == f64::NEG_INFINITY { -1e-300 } else { x * f(x) }
    }

    pub fn gelu(x: f64) -> f64 {
        times(x, normal)
    }

    pub fn silu(x: f64) -> f64 {
        times(x, sigmoid)
    }

    pub fn gelu_tanh_inner(x: f64) -> f64 {
        2.0 * (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x)
    }

    pub fn gelu_tanh(x: f64) -> f64 {
        times(x, |x| sigmoid(gelu_tanh_inner(x)))
    }

    #[inline(always)]
    pub fn relu(x: f64) -> f64 {
        if x < 0.0 { 0.0 } else { x }
    }

    #[inline(always)]
    pub fn sign(x: f64) -> f64 {
        if x > 0.0 {
            1.0
        } else if x < 0.0 {
            -1.0
        } else if x == 0.0 {
            0.0 // of either sign, as in NumPy
        } else {
            x
        }
    }

    /// The nearest number, ties to even, with so many digits in the significand and this exponent of the smallest normal
    /// number; the largest exponent is 1 less than minus the smallest.
    pub fn narrow(x: f64, digits: i32, lowest: i32) -> f64 {
        if !x.is_finite() || x == 0.0 {
            return x;
        }
        let exponent = ((x.to_bits() >> 52) & 0x7ff) as i32 - 1023;
        let unit = 2f64.powi(exponent.max(lowest) - (digits - 1));
        let nearest = (x / unit).round_ties_even() * unit;
        if nearest.abs() >= 2f64.powi(2 - lowest) { f64::INFINITY.copysign(x) } else { nearest }
    }
}
