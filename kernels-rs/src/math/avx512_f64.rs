//! `f64` functions of AVX-512, written as those of [`super::avx512_f32`] are. The other instruction sets have
//! [`super::double`] and the platform's libm. Tables are of 16 entries in two registers.

mod erf;
mod exponential;
mod gamma;
mod power;
mod trigonometric;

use super::avx512_f32::each;
pub use erf::erf;
pub use exponential::{exp, log};
pub use gamma::lgamma;
pub use power::pow;
use std::arch::x86_64::*;
pub use trigonometric::{cos, sin};

/// Two vectors, which hide the latency of one another.
pub type Doubles = [__m512d; 2];
/// Sixteen numbers for permutations.
type Row = [f64; 16];

/// Elements that a call works on.
pub const STEP: usize = 16;

/// Those entries of a row that the low four bits of each lane name.
#[inline(always)]
unsafe fn pick(row: &Row, place: [__m512i; 2]) -> Doubles {
    // The loads are of the two halves of the row.
    let (low, high) = (_mm512_loadu_pd(row.as_ptr()), _mm512_loadu_pd(row.as_ptr().add(8)));
    each!(i => _mm512_permutex2var_pd(low, place[i], high))
}

/// Horner's rule, lowest coefficient first.
#[inline(always)]
unsafe fn poly<const N: usize>(x: Doubles, coefficients: [f64; N]) -> Doubles {
    let mut sum = [_mm512_set1_pd(coefficients[N - 1]); 2];
    let mut at = N - 1;
    while at > 0 {
        at -= 1;
        sum = each!(i => _mm512_fmadd_pd(sum[i], x[i], _mm512_set1_pd(coefficients[at])));
    }
    sum
}

/// `y` with the sign of `sign`.
#[inline(always)]
unsafe fn signed(y: Doubles, sign: [__m512i; 2]) -> Doubles {
    // The first operand, but where the third has bits the second.
    const CHOOSE: i32 = 0b1101_1000;
    each!(i => {
        let top = _mm512_set1_epi64(i64::MIN);
        _mm512_castsi512_pd(_mm512_ternarylogic_epi64::<CHOOSE>(_mm512_castpd_si512(y[i]), sign[i], top))
    })
}

/// Reads [`STEP`] elements.
#[inline(always)]
unsafe fn load(from: *const f64) -> Doubles {
    [_mm512_loadu_pd(from), _mm512_loadu_pd(from.add(8))]
}

/// Writes [`STEP`] elements.
#[inline(always)]
unsafe fn store(values: Doubles, to: *mut f64) {
    _mm512_storeu_pd(to, values[0]);
    _mm512_storeu_pd(to.add(8), values[1]);
}

/// Reads [`STEP`] narrower elements.
#[inline(always)]
unsafe fn load_narrow(from: *const f32) -> Doubles {
    [_mm512_cvtps_pd(_mm256_loadu_ps(from)), _mm512_cvtps_pd(_mm256_loadu_ps(from.add(8)))]
}

/// Rounds and writes [`STEP`] narrower elements.
#[inline(always)]
unsafe fn store_narrow(values: Doubles, to: *mut f32) {
    _mm256_storeu_ps(to, _mm512_cvtpd_ps(values[0]));
    _mm256_storeu_ps(to.add(8), _mm512_cvtpd_ps(values[1]));
}

/// Functions of many elements. An element's result does not depend on its place.
macro_rules! runs {
    ($($run:ident $ty:ident $load:ident $store:ident $function:ident;)*) => {
        $(
            #[doc = concat!("[`", stringify!($function), "`] of `len` elements; it may write over them.")]
            ///
            /// # Safety
            /// The machine has AVX-512 F and DQ; `from` and `to` hold `len` elements, the same or apart.
            #[inline(always)]
            pub unsafe fn $run(from: *const $ty, to: *mut $ty, len: usize) {
                let whole = len / STEP * STEP;
                // SAFETY: whole steps lie inside both runs; what is left, fewer elements than a step, goes through a
                // buffer of a step.
                for at in (0..whole).step_by(STEP) {
                        $store($function($load(from.add(at))), to.add(at));
                    }
                    if whole == len {
                        return;
                    }
                    let mut rest = [0.5; STEP];
                    std::ptr::copy_nonoverlapping(from.add(whole), rest.as_mut_ptr(), len - whole);
                    $store($function($load(rest.as_ptr())), rest.as_mut_ptr());
                    std::ptr::copy_nonoverlapping(rest.as_ptr(), to.add(whole), len - whole);
            }
        )*
    };
}

runs! {
    cos_run f64 load store cos;
    erf_run f64 load store erf;
    exp_run f64 load store exp;
    lgamma_run f32 load_narrow store_narrow lgamma;
    log_run f64 load store log;
    sin_run f64 load store sin;
}

/// [`pow`] of `len` pairs of elements.
///
/// # Safety
/// The machine has AVX-512 F and DQ; `x` and `y` hold `len` elements, or one where their step is 0, and `to` `len`.
#[inline(always)]
pub unsafe fn pow_run(x: (*const f64, usize), y: (*const f64, usize), to: *mut f64, len: usize) {
    // SAFETY: whole steps lie inside the runs; what does not move, and what is left, goes through buffers of a step.
    let read = |(from, step): (*const f64, usize), at: usize| {
        let mut part = [1.0; STEP];
        let count = STEP.min(len - at);
        for (i, slot) in part[..count].iter_mut().enumerate() {
            *slot = *from.add((at + i) * step);
        }
        part
    };
    let (still_x, still_y) = (read((x.0, 0), 0), read((y.0, 0), 0));
    let whole = len / STEP * STEP;
    for at in (0..whole).step_by(STEP) {
        let from =
            |run: (*const f64, usize), still: &Row| load(if run.1 == 0 { still.as_ptr() } else { run.0.add(at) });
        store(pow(from(x, &still_x), from(y, &still_y)), to.add(at));
    }
    if whole < len {
        let (last_x, last_y) = (read(x, whole), read(y, whole));
        let mut rest = [0.0; STEP];
        store(pow(load(last_x.as_ptr()), load(last_y.as_ptr())), rest.as_mut_ptr());
        std::ptr::copy_nonoverlapping(rest.as_ptr(), to.add(whole), len - whole);
    }
}
