//! What happens to a product while its tile is in cache: scale, bias, residual, activation, rounding.

use super::Matrix;
use super::format::load;
use crate::dtype::{DType, Element, Float};
use crate::error::{Error, Result};
use crate::lanes::{Kernel, Lanes, Real};
use crate::math::{Fma, special};

/// The last step of an epilogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// The identity.
    None,
    /// `max(x, 0)`; NaN stays NaN.
    Relu,
    /// `x * Phi(x)`.
    Gelu,
}

impl Activation {
    /// That of a name.
    pub fn from_name(name: &str) -> Result<Self> {
        match name {
            "none" => Ok(Self::None),
            "relu" => Ok(Self::Relu),
            "gelu" => Ok(Self::Gelu),
            _ => Err(Error::value("activation", format!("unknown name: got {name:?}, expected none, relu or gelu"))),
        }
    }
}

/// `activation(scale * product + bias + residual)`.
#[derive(Clone, Copy)]
pub struct Epilogue<T> {
    /// Factor of the product.
    pub scale: f64,
    /// An addend, any steps.
    pub bias: Option<Matrix<T>>,
    /// Another one.
    pub residual: Option<Matrix<T>>,
    /// The last step.
    pub activation: Activation,
}

impl<T> Default for Epilogue<T> {
    fn default() -> Self {
        Self { scale: 1.0, bias: None, residual: None, activation: Activation::None }
    }
}

impl<T: Copy> Epilogue<T> {
    /// That of the transposed product.
    pub fn turned(self) -> Self {
        Self { bias: self.bias.map(Matrix::turned), residual: self.residual.map(Matrix::turned), ..self }
    }

    /// That of the part that starts at a row and a column.
    pub fn at(self, row: usize, col: usize) -> Self {
        let part = |matrix: Matrix<T>| matrix.at(row, col);
        Self { bias: self.bias.map(part), residual: self.residual.map(part), ..self }
    }

    /// True when nothing but a rounding is left to do.
    pub fn is_empty(&self) -> bool {
        self.scale == 1.0 && self.bias.is_none() && self.residual.is_none() && self.activation == Activation::None
    }
}

/// A type that products are summed in.
pub trait Sum: Real + Float<Wide = Self> {
    /// `x * Phi(x)`.
    fn gelu<M: Fma>(self) -> Self;
}

impl Sum for f32 {
    #[inline(always)]
    fn gelu<M: Fma>(self) -> Self {
        special::gelu::<M>(self)
    }
}

impl Sum for f64 {
    #[inline(always)]
    fn gelu<M: Fma>(self) -> Self {
        special::double::gelu(self)
    }
}

/// Applies an epilogue to a block of sums, in place, and moves it to the result.
pub struct Finish<T: Float> {
    /// The sums.
    pub from: *mut T::Wide,
    /// From one row of the sums to the next.
    pub pitch: isize,
    /// Of the block.
    pub rows: usize,
    /// Of the block.
    pub cols: usize,
    /// Where the results go: may be the sums themselves.
    pub to: Matrix<T>,
    /// What to do.
    pub epilogue: Epilogue<T>,
}

impl<T: Float<Wide: Sum>> Kernel<T::Wide> for Finish<T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T::Wide>>(self) {
        for i in 0..self.rows {
            let from = self.from.wrapping_offset(i as isize * self.pitch);
            // SAFETY: the caller promises the block.
            let line = unsafe { std::slice::from_raw_parts_mut(from, self.cols) };
            let end = self.epilogue.at(i, 0);
            if end.scale != 1.0 {
                let scale = T::Wide::from_f64(end.scale);
                for value in &mut *line {
                    *value = *value * scale;
                }
            }
            for addend in [end.bias, end.residual].into_iter().flatten() {
                // SAFETY: the caller promises the addends.
                unsafe { add::<T, V>(line, addend) };
            }
            match end.activation {
                Activation::None => {}
                Activation::Relu => {
                    let zero = T::Wide::default();
                    for value in &mut *line {
                        *value = if *value < zero { zero } else { *value };
                    }
                }
                Activation::Gelu => {
                    for value in &mut *line {
                        *value = value.gelu::<V::Math>();
                    }
                }
            }
            let to = self.to.at(i, 0);
            if !std::ptr::eq(to.start.cast::<T::Wide>(), from) {
                // SAFETY: the caller promises the result.
                unsafe { put::<T, V>(line, to) };
            }
        }
    }
}

#[inline(always)]
unsafe fn add<T: Float<Wide: Real>, V: Lanes<Elem = T::Wide>>(line: &mut [T::Wide], addend: Matrix<T>) {
    let mut done = 0;
    // SAFETY: the caller's.
    unsafe {
        if addend.col == 1 {
            while done + V::N <= line.len() {
                let at = line.as_mut_ptr().add(done);
                V::load(at).add(load::<T, V>(addend.start.add(done))).store(at);
                done += V::N;
            }
        }
        if addend.col == 0 {
            let one = V::splat((*addend.start).widen());
            while done + V::N <= line.len() {
                let at = line.as_mut_ptr().add(done);
                V::load(at).add(one).store(at);
                done += V::N;
            }
        }
        for (j, value) in line.iter_mut().enumerate().skip(done) {
            *value = *value + (*addend.at(0, j).start).widen();
        }
    }
}

#[inline(always)]
unsafe fn put<T: Float, V: Lanes<Elem = T::Wide>>(line: &[T::Wide], to: Matrix<T>)
where
    T::Wide: Real,
{
    let mut done = 0;
    // SAFETY: the caller's.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if T::DTYPE == DType::F16 && V::N >= 8 && to.col == 1 {
            use std::arch::x86_64::{_MM_FROUND_TO_NEAREST_INT, _mm_storeu_si128, _mm256_cvtps_ph, _mm256_loadu_ps};
            while done + 8 <= line.len() {
                let wide = _mm256_loadu_ps(line.as_ptr().add(done).cast());
                let narrow = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(wide);
                _mm_storeu_si128(to.start.add(done).cast(), narrow);
                done += 8;
            }
        }
        if to.col == 1 {
            let to = std::slice::from_raw_parts_mut(to.start, line.len());
            to[done..].iter_mut().zip(&line[done..]).for_each(|(slot, &value)| *slot = T::narrow(value));
        } else {
            line.iter().enumerate().for_each(|(j, &value)| *to.at(0, j).start = T::narrow(value));
        }
    }
}
