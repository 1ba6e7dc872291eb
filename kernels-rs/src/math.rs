//! Functions of a float, mostly within 2 ulp. Those of an `f32` are in [`exponential`], [`special`] and [`trigonometric`], those of
//! an `f64` in [`double`], or else in the platform's [`libm`]. All but the last are written so that loops over them vectorise: no
//! branches, no tables, no calls. For AVX-512 `avx512_f32` and `avx512_f64` have some again, on vectors and with tables in registers.
//!
//! The scalar ones are `#[inline(always)]` and generic over [`Fma`]: one text serves machines with and without fused multiply-add.
//! Where `f32` is not accurate enough, they compute in `f64` by polynomials of about 40 bits and round once ([`wide`]).
//! Coefficients are weighted least-squares fits driven to near-minimax, unless a source is named.

#[cfg(target_arch = "x86_64")]
pub mod avx512_f32;
#[cfg(target_arch = "x86_64")]
pub mod avx512_f64;
pub mod division;
pub mod double;
pub mod exponential;
pub mod special;
pub mod trigonometric;
pub mod wide;

/// How `a * b + c` is computed.
pub trait Fma: Copy + Send + Sync + 'static {
    /// Whether it is for x86-64 without AVX2.
    const BASELINE: bool = false;
    /// `a * b + c` in `f32`.
    fn fma(a: f32, b: f32, c: f32) -> f32;
    /// `a * b + c` in `f64`.
    fn fma64(a: f64, b: f64, c: f64) -> f64;
    /// `a * a - square`, exactly, where `square` is `a * a` rounded.
    fn square_error(a: f32, square: f32) -> f32;
    /// `a - whole * b` rounded once where `whole` is an integer up to 2^24, so that its sign is right.
    fn rest(a: f32, whole: f32, b: f32) -> f32;
}

/// One rounding, one instruction: for code compiled with FMA.
#[derive(Clone, Copy)]
pub struct Fused;

/// Two roundings: where a fused operation would be a library call.
#[derive(Clone, Copy)]
pub struct Split;

impl Fma for Fused {
    #[inline(always)]
    fn fma(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
    #[inline(always)]
    fn fma64(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }
    #[inline(always)]
    fn square_error(a: f32, square: f32) -> f32 {
        a.mul_add(a, -square)
    }
    #[inline(always)]
    fn rest(a: f32, whole: f32, b: f32) -> f32 {
        (-whole).mul_add(b, a)
    }
}

impl Fma for Split {
    const BASELINE: bool = cfg!(target_arch = "x86_64");
    #[inline(always)]
    fn fma(a: f32, b: f32, c: f32) -> f32 {
        a * b + c
    }
    #[inline(always)]
    fn fma64(a: f64, b: f64, c: f64) -> f64 {
        a * b + c
    }
    #[inline(always)]
    fn square_error(a: f32, square: f32) -> f32 {
        // Veltkamp and Dekker: the halves have 12 bits, so their products are exact.
        let big = a * 4097.0;
        let high = big - (big - a);
        let low = a - high;
        ((high * high - square) + 2.0 * high * low) + low * low
    }
    #[inline(always)]
    fn rest(a: f32, whole: f32, b: f32) -> f32 {
        // Both have 24 bits, so their product is exact; the sum is rounded, which keeps its sign.
        (a as f64 - whole as f64 * b as f64) as f32
    }
}

/// What baseline code uses: NEON has FMA, SSE2 has not.
#[cfg(target_arch = "aarch64")]
pub type Baseline = Fused;
/// What baseline code uses: NEON has FMA, SSE2 has not.
#[cfg(not(target_arch = "aarch64"))]
pub type Baseline = Split;

/// Horner's rule in `f32`, lowest coefficient first.
#[inline(always)]
pub fn poly<M: Fma, const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut sum = coefficients[N - 1];
    let mut at = N - 1;
    while at > 0 {
        at -= 1;
        sum = M::fma(sum, x, coefficients[at]);
    }
    sum
}

/// Horner's rule in `f64`, lowest coefficient first.
#[inline(always)]
pub fn poly64<M: Fma, const N: usize>(x: f64, coefficients: [f64; N]) -> f64 {
    let mut sum = coefficients[N - 1];
    let mut at = N - 1;
    while at > 0 {
        at -= 1;
        sum = M::fma64(sum, x, coefficients[at]);
    }
    sum
}

/// Functions of the platform's libm for `f64` that `std` lacks, or computes by formulas that lose digits or overflow.
pub mod libm {
    macro_rules! functions {
        ($($name:ident)*) => {
            mod raw {
                unsafe extern "C" {
                    $(pub fn $name(x: f64) -> f64;)*
                }
            }
            $(
                #[doc = concat!("`", stringify!($name), " x`.")]
                #[inline]
                pub fn $name(x: f64) -> f64 {
                    // SAFETY: a pure function of a number.
                    unsafe { raw::$name(x) }
                }
            )*
        };
    }
    functions! { acosh asinh atanh erf erfc lgamma }
}
