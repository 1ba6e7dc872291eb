//! What happens to a product while its tile is in cache: scale, bias, residual, activation, rounding.

use super::Matrix;
use super::format::load;
#[cfg(target_arch = "x86_64")]
use crate::dtype::DType;
use crate::dtype::{Element, Float};
use crate::error::named;
use crate::machine::lanes::{Kernel, Lanes, Real};
#[cfg(target_arch = "x86_64")]
use crate::math::avx512_f32;
use crate::math::special;

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

named!(Activation, "fused_linear": "none" None, "relu" Relu, "gelu" Gelu);

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
    /// Whether the sums begin with what stands in the result: see [`super::add`], the one to ask for it.
    pub adds: bool,
}

impl<T> Default for Epilogue<T> {
    fn default() -> Self {
        Self { scale: 1.0, bias: None, residual: None, activation: Activation::None, adds: false }
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
    /// `x * Phi(x)` of a line, to the bit what the elementwise op makes of the same numbers.
    ///
    /// # Safety
    /// The machine has the instructions of `V`.
    unsafe fn gelu<V: Lanes<Elem = Self>>(line: &mut [Self]);
}

impl Sum for f32 {
    #[inline(always)]
    unsafe fn gelu<V: Lanes<Elem = Self>>(line: &mut [Self]) {
        #[cfg(target_arch = "x86_64")]
        if V::N == 16 {
            let start = line.as_mut_ptr();
            // SAFETY: only AVX-512 has registers of sixteen, and the caller has them; the line is written over itself.
            return avx512_f32::gelu_run(start, start, line.len());
        }
        for value in line {
            *value = special::gelu::<V::Math>(*value);
        }
    }
}

impl Sum for f64 {
    #[inline(always)]
    unsafe fn gelu<V: Lanes<Elem = Self>>(line: &mut [Self]) {
        for value in line {
            *value = special::double::gelu(*value);
        }
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
        let Self { from, pitch, rows, cols, to, epilogue: end } = self;
        let moved = !std::ptr::eq(to.start.cast::<T::Wide>(), from);
        if end.is_empty() {
            for i in 0..if moved { rows } else { 0 } {
                put::<T, V>(from.wrapping_offset(i as isize * pitch), cols, to.at(i, 0));
            }
            return;
        }
        for i in 0..rows {
            let from = from.wrapping_offset(i as isize * pitch);
            let line = std::slice::from_raw_parts_mut(from, cols);
            if end.scale != 1.0 {
                let scale = T::Wide::from_f64(end.scale);
                for value in &mut *line {
                    *value = *value * scale;
                }
            }
            // Each on its own: putting them into a list would copy them for every row, in words that stall.
            if let Some(bias) = end.bias {
                add::<T, V>(line, bias.at(i, 0));
            }
            if let Some(residual) = end.residual {
                add::<T, V>(line, residual.at(i, 0));
            }
            match end.activation {
                Activation::None => {}
                Activation::Relu => {
                    let zero = T::Wide::default();
                    for value in &mut *line {
                        *value = if *value < zero { zero } else { *value };
                    }
                }
                Activation::Gelu => T::Wide::gelu::<V>(line),
            }
            if moved {
                put::<T, V>(from, cols, to.at(i, 0));
            }
        }
    }
}

#[inline(always)]
unsafe fn add<T: Float<Wide: Real>, V: Lanes<Elem = T::Wide>>(line: &mut [T::Wide], addend: Matrix<T>) {
    let mut done = 0;
    // Whole registers end before it does.
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

/// Rounds a row of sums into the result.
#[inline(always)]
unsafe fn put<T: Float, V: Lanes<Elem = T::Wide>>(from: *const T::Wide, cols: usize, to: Matrix<T>)
where
    T::Wide: Real,
{
    let mut done = 0;
    // Whole registers end before it does.
    while to.col == 1 && done + V::N <= cols {
        let (from, to) = (from.add(done), to.start.add(done));
        done += V::N;
        #[cfg(target_arch = "x86_64")]
        if T::DTYPE == DType::F16 && V::N >= 8 {
            use std::arch::x86_64::{_MM_FROUND_TO_NEAREST_INT, _mm_storeu_si128, _mm256_cvtps_ph, _mm256_loadu_ps};
            for half in 0..V::N / 8 {
                let wide = _mm256_loadu_ps(from.add(8 * half).cast());
                let narrow = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(wide);
                _mm_storeu_si128(to.add(8 * half).cast(), narrow);
            }
            continue;
        }
        // Through locals, which overlap nothing: so they become vectors.
        let mut wide = [T::Wide::default(); 16];
        V::load(from).store(wide.as_mut_ptr());
        let mut narrow = [T::narrow(T::Wide::default()); 16];
        for j in 0..V::N {
            narrow[j] = T::narrow(wide[j]);
        }
        std::ptr::copy_nonoverlapping(narrow.as_ptr(), to, V::N);
    }
    for j in done..cols {
        *to.at(0, j).start = T::narrow(*from.add(j));
    }
}
