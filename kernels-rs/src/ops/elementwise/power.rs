//! Powers, some of which are products, quotients and roots.

use super::loops::{in_blocks, loop1};
use super::run::{Run, operand, result};
use std::ops::{Add, Div, Mul};

/// A float that is raised to powers.
pub(super) trait Power:
    Copy + PartialEq + From<f32> + Add<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    /// `x ** 0.5`, which differs from the square root at -0.0 and at -inf.
    fn half(self) -> Self;

    /// [`Power::half`] of all elements.
    #[inline(always)]
    fn halves(x: &[Self], out: &mut [Self]) {
        loop1(x, out, Self::half);
    }
}

macro_rules! powers {
    ($($ty:ident { $($halves:item)? })*) => {$(
        impl Power for $ty {
            #[inline(always)]
            fn half(self) -> Self {
                let root = (self + 0.0).sqrt();
                if self == $ty::NEG_INFINITY { $ty::INFINITY } else { root }
            }
            $($halves)?
        }
    )*};
}
powers! {
    f32 {
        #[inline(always)]
        fn halves(x: &[Self], out: &mut [Self]) {
            #[cfg(target_arch = "x86_64")]
            if crate::machine::simd::level() == crate::machine::simd::Level::Avx512 {
                // SAFETY: the level says that the machine has the features.
                return unsafe { half_powers(x, out) };
            }
            loop1(x, out, Self::half);
        }
    }
    f64 {}
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2")]
unsafe fn half_powers(x: &[f32], out: &mut [f32]) {
    let len = x.len().min(out.len());
    // SAFETY: the features are enabled here; so many elements are on both sides.
    crate::math::avx512_f32::half_power_run(x.as_ptr(), out.as_mut_ptr(), len);
}

/// A power that products, quotients and roots give within 1.5 ulp; `None` of other exponents.
#[inline(always)]
fn direct_power<T: Power>(x: T, exponent: T) -> Option<T> {
    let is = |number: f32| exponent == T::from(number);
    let one = T::from(1.0);
    match () {
        () if is(-2.0) => Some((one / x) * (one / x)),
        () if is(-1.0) => Some(one / x),
        () if is(-0.5) => Some(one / x.half()),
        () if is(0.5) => Some(x.half()),
        () if is(2.0) => Some(x * x),
        () if is(3.0) => Some(x * x * x),
        () if is(4.0) => Some((x * x) * (x * x)),
        () => None,
    }
}

/// Powers, of which some are [`direct_power`] wherever the exponent comes from: a program holds numbers as elements, and has
/// the bits of the op. The others are left to `general`.
///
/// # Safety
/// As for [`Kernel`].
#[inline(always)]
pub(super) unsafe fn map2_power<T: Power>(run: &Run, general: impl Fn(&Run)) {
    if (run.unit[0], run.unit[1]) == (true, false) {
        // SAFETY: the run is valid for these types and this length.
        let (x, exponent, out) = (operand::<T>(run, 0), operand::<T>(run, 1), result::<T>(run));
        macro_rules! of_constants {
            ($($number:literal)*) => {
                $(if exponent.first() == Some(&T::from($number)) {
                    return loop1(x, out, |x| direct_power(x, T::from($number)).unwrap_or(x));
                })*
            };
        }
        if exponent.first() == Some(&T::from(0.5)) {
            return T::halves(x, out);
        }
        of_constants!(-2.0 -1.0 -0.5 2.0 3.0 4.0);
        return general(run);
    }
    in_blocks::<T>(run, |part| {
        general(part);
        // SAFETY: the same part, whose slices are gone.
        let (x, exponents, out) = (operand::<T>(part, 0), operand::<T>(part, 1), result::<T>(part));
        let is_direct = |exponent: T| direct_power(T::from(1.0), exponent).is_some();
        if exponents.iter().fold(false, |some, &exponent| some | is_direct(exponent)) {
            for ((slot, &x), &exponent) in out.iter_mut().zip(x.iter().cycle()).zip(exponents) {
                *slot = direct_power(x, exponent).unwrap_or(*slot);
            }
        }
    });
}
