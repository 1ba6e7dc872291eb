//! One line of complex numbers in two parts, of any length: by passes of our own where its factors allow it, else by `rustfft`,
//! whose numbers have their parts side by side.

use super::Transformed;
use super::columns::Rows;
use super::passes::{Numbers, Passes};
use super::powers::Powers;
use crate::vectorize;
use rustfft::Fft;
use rustfft::num_complex::Complex;
use std::sync::Arc;

/// How lines of one length are transformed.
pub enum Line<T: Transformed> {
    Powers(Powers<T>),
    Own(Passes<T>),
    Crate(Arc<dyn Fft<T>>),
}

/// Where the numbers of a line are read.
#[derive(Clone, Copy)]
pub enum From<'a, T> {
    /// Real parts here, imaginary parts there.
    Parts(&'a [T], &'a [T]),
    /// Real and imaginary parts in turns.
    Pairs(&'a [T]),
}

impl<T> From<'_, T> {
    fn numbers(self) -> Numbers<T> {
        match self {
            From::Parts(re, im) => Numbers::Parts(re.as_ptr(), im.as_ptr()),
            From::Pairs(pairs) => Numbers::Pairs(pairs.as_ptr()),
        }
    }
}

impl<T: Transformed> Line<T> {
    pub fn new(length: usize) -> Self {
        if let Some(powers) = Powers::new(length) {
            return Self::Powers(powers);
        }
        match Passes::new(length) {
            Some(passes) => Self::Own(passes),
            None => Self::Crate(of_crate(length)),
        }
    }

    /// Elements of a line.
    pub fn length(&self) -> usize {
        match self {
            Self::Powers(powers) => powers.length,
            Self::Own(passes) => passes.length,
            Self::Crate(plan) => plan.len(),
        }
    }

    /// Elements of the room that a transform needs.
    pub fn room(&self) -> usize {
        match self {
            Self::Powers(powers) => powers.room(),
            Self::Own(passes) => 2 * passes.length,
            Self::Crate(plan) => 2 * (plan.len() + plan.get_inplace_scratch_len()),
        }
    }

    /// Transforms a line.
    pub fn run(&self, from: From<'_, T>, [re, im]: [&mut [T]; 2], room: &mut [T]) {
        let n = self.length();
        assert!(re.len() == n && im.len() == n && room.len() == self.room());
        assert!(match from {
            From::Parts(re, im) => re.len() == n && im.len() == n,
            From::Pairs(pairs) => pairs.len() == 2 * n,
        });
        match self {
            Self::Powers(powers) => {
                // SAFETY: all were just measured, and those that are written are borrowed for it.
                unsafe { powers.run(from.numbers(), Rows::over(re, im, 1), room.as_mut_ptr()) };
            }
            Self::Own(passes) => {
                let (first, second) = room.split_at_mut(n);
                let (to, between) = (Rows::over(re, im, 1), Rows::over(first, second, 1));
                // SAFETY: all were just measured, and those that are written are borrowed for it.
                unsafe { passes.run(from.numbers(), to, [to, between]) };
            }
            Self::Crate(plan) => {
                let (line, scratch) = complex_mut(room).split_at_mut(n);
                match from {
                    From::Parts(re, im) => together(re, im, line),
                    From::Pairs(pairs) => line.copy_from_slice(complex(pairs)),
                }
                plan.process_with_scratch(line, scratch);
                apart(line, re, im);
            }
        }
    }
}

/// A plan of `rustfft`.
#[cfg(not(target_arch = "x86_64"))]
fn of_crate<T: Transformed>(length: usize) -> Arc<dyn Fft<T>> {
    rustfft::FftPlanner::new().plan_fft_forward(length)
}

/// A plan of `rustfft`. Processors without AVX get one of two methods: all that it has for them would be a tenth of the library.
#[cfg(target_arch = "x86_64")]
fn of_crate<T: Transformed>(length: usize) -> Arc<dyn Fft<T>> {
    rustfft::FftPlannerAvx::new().map_or_else(|()| without_avx(length), |mut plans| plans.plan_fft_forward(length))
}

/// By powers of 2, or Bluestein's method over them.
#[cfg(target_arch = "x86_64")]
pub(super) fn without_avx<T: Transformed>(length: usize) -> Arc<dyn Fft<T>> {
    use rustfft::FftDirection::Forward;
    use rustfft::algorithm::{BluesteinsAlgorithm, Radix4};
    if length.is_power_of_two() {
        return Arc::new(Radix4::new(length, Forward));
    }
    Arc::new(BluesteinsAlgorithm::new(length, Arc::new(Radix4::new((2 * length).next_power_of_two(), Forward))))
}

/// Pairs of parts as complex numbers.
fn complex<T>(pairs: &[T]) -> &[Complex<T>] {
    // SAFETY: a complex number is its two parts, one behind the other, and there are so many pairs.
    unsafe { std::slice::from_raw_parts(pairs.as_ptr().cast(), pairs.len() / 2) }
}

/// Pairs of parts as complex numbers, for writing.
fn complex_mut<T>(pairs: &mut [T]) -> &mut [Complex<T>] {
    // SAFETY: a complex number is its two parts, one behind the other, and there are so many pairs.
    unsafe { std::slice::from_raw_parts_mut(pairs.as_mut_ptr().cast(), pairs.len() / 2) }
}

vectorize!(together[T: Transformed](re: &[T], im: &[T], to: &mut [Complex<T>]) => together_body::<T>);

#[inline(always)]
fn together_body<T: Transformed>(re: &[T], im: &[T], to: &mut [Complex<T>]) {
    to.iter_mut().zip(re.iter().zip(im)).for_each(|(slot, (&re, &im))| *slot = Complex::new(re, im));
}

vectorize!(apart[T: Transformed](from: &[Complex<T>], real: &mut [T], imag: &mut [T]) => apart_body::<T>);

#[inline(always)]
fn apart_body<T: Transformed>(from: &[Complex<T>], real: &mut [T], imag: &mut [T]) {
    for ((real, imag), value) in real.iter_mut().zip(imag).zip(from) {
        (*real, *imag) = (value.re, value.im);
    }
}
