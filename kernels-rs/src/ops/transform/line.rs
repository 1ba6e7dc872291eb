//! One line of complex numbers in two parts, of any length: by passes where its factors allow it, as columns beside each other, or by
//! Bluestein's method ("A linear filtering approach to the computation of the discrete Fourier transform", 1970).

use super::columns::{Columns, Rows, turn};
use super::passes::{Numbers, Passes};
use super::powers::Powers;
use crate::dtype::Element;
use crate::machine::lanes::{Real, lane_count};
use crate::memory::scratch::{Aligned, cut};
use crate::vectorize;
use std::ops::Range;

/// The longest lines of which several are transformed beside each other: what is held of them stays in the second-level cache.
const LONGEST_COLUMN: usize = 2048;

/// How lines of one length are transformed.
pub enum Line<T> {
    One,
    Powers(Powers<T>),
    Own(Passes<T>),
    Columns(Columns<T>),
    Chirp(Chirp<T>),
}

/// Where the numbers of a line are read.
#[derive(Clone, Copy)]
pub enum From<'a, T> {
    /// Real parts here, imaginary parts there.
    Parts(&'a [T], &'a [T]),
    /// Real and imaginary parts in turns.
    Pairs(&'a [T]),
}

impl<'a, T> From<'a, T> {
    fn numbers(self) -> Numbers<T> {
        match self {
            From::Parts(re, im) => Numbers::Parts(re.as_ptr(), im.as_ptr()),
            From::Pairs(pairs) => Numbers::Pairs(pairs.as_ptr()),
        }
    }

    /// Where the parts of the first number are, and of all behind it, and how far these are from each other.
    fn parts(self) -> ([&'a [T]; 2], usize) {
        match self {
            From::Parts(re, im) => ([re, im], 1),
            From::Pairs(pairs) => ([pairs, &pairs[1..]], 2),
        }
    }
}

/// Hands a line over.
pub type Given<'a, T> = &'a mut dyn FnMut(usize, &mut dyn FnMut(From<'_, T>));
/// Says where the transform of a line goes, and goes on with it when it is there.
pub type Taken<'a, T> = &'a mut dyn FnMut(usize, &mut dyn FnMut([&mut [T]; 2]));

impl<T: Real> Line<T> {
    pub fn new(length: usize) -> Self {
        if length == 1 {
            return Self::One;
        }
        if let Some(powers) = Powers::new(length) {
            return Self::Powers(powers);
        }
        if let Some(passes) = Passes::new(length) {
            return Self::Own(passes);
        }
        Columns::new(length).map_or_else(|| Self::Chirp(Chirp::new(length)), Self::Columns)
    }

    /// Elements of a line.
    pub fn length(&self) -> usize {
        match self {
            Self::One => 1,
            Self::Powers(powers) => powers.length,
            Self::Own(passes) => passes.length,
            Self::Columns(columns) => columns.length,
            Self::Chirp(chirp) => chirp.turns[0].len(),
        }
    }

    /// Elements of the room that a transform needs.
    pub fn room(&self) -> usize {
        match self {
            Self::Chirp(chirp) => 4 * chirp.line.length() + chirp.line.room(),
            Self::Columns(columns) => 6 * columns.length * self.beside(),
            _ => 2 * self.length(),
        }
    }

    /// Lines that are transformed at once.
    pub fn beside(&self) -> usize {
        match self {
            Self::Columns(columns) if columns.length <= LONGEST_COLUMN => lane_count::<T>(),
            _ => 1,
        }
    }

    /// Transforms some lines: `given` hands each of them over, `taken` says where its transform goes.
    pub fn run_all(&self, lines: Range<usize>, room: &mut [T], given: Given<'_, T>, taken: Taken<'_, T>) {
        let Self::Columns(columns) = self else {
            return lines.for_each(|at| given(at, &mut |from| taken(at, &mut |to| self.run(from, to, room))));
        };
        let (n, beside) = (columns.length, self.beside());
        let [re, im, to_re, to_im, next_re, next_im] = cut(room, [n * beside; 6]);
        for first in lines.clone().step_by(beside) {
            let group = first..lines.end.min(first + beside);
            for (place, at) in group.clone().enumerate() {
                given(at, &mut |from| {
                    let ([from_re, from_im], step) = from.parts();
                    for k in 0..n {
                        (re[k * beside + place], im[k * beside + place]) = (from_re[k * step], from_im[k * step]);
                    }
                });
            }
            let (to, between) = (Rows::over(to_re, to_im, beside), Rows::over(next_re, next_im, beside));
            // SAFETY: all have rows of so many numbers, as many as a line, and those that are written are borrowed for it.
            unsafe { columns.run(Rows::new(re, im, beside), to, group.len(), [to, between]) };
            for (place, at) in group.enumerate() {
                taken(at, &mut |[re, im]| {
                    for k in 0..n {
                        (re[k], im[k]) = (to_re[k * beside + place], to_im[k * beside + place]);
                    }
                });
            }
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
            Self::One => {
                let ([from_re, from_im], _) = from.parts();
                (re[0], im[0]) = (from_re[0], from_im[0]);
            }
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
            Self::Columns(_) => {
                self.run_all(0..1, room, &mut |_, give| give(from), &mut |_, take| take([&mut *re, &mut *im]));
            }
            Self::Chirp(chirp) => chirp.run(from, [re, im], room),
        }
    }
}

/// `j k` is `(j^2 + k^2 - (k - j)^2) / 2`, so that a transform is a convolution, which transforms of a length with small factors do.
pub struct Chirp<T> {
    line: Box<Line<T>>,
    /// `exp(-pi i k^2 / n)`, its cosines and sines.
    turns: [Aligned<T>; 2],
    /// The transform of the conjugates, by the length of `line`.
    against: [Aligned<T>; 2],
}

impl<T: Real> Chirp<T> {
    pub(super) fn new(n: usize) -> Self {
        let long = |factor: usize| factor * (2 * n - 1).div_ceil(factor).next_power_of_two();
        let line = Box::new(Line::new([5, 6, 7, 8].map(long).into_iter().fold(usize::MAX, usize::min)));
        let m = line.length();
        let place = |k: usize| turn((k as u128 * k as u128 % (2 * n) as u128) as usize, 2 * n);
        let (mut turns, mut against) = ([(); 2].map(|()| Aligned::zeros(n)), [(); 2].map(|()| Aligned::zeros(m)));
        let mut conjugates = [(); 2].map(|()| Aligned::<T>::zeros(m));
        for k in 0..n {
            let turned = place(k);
            for (part, sign) in [1.0, -1.0].into_iter().enumerate() {
                turns[part][k] = <T as Element>::from_f64(turned[part]);
                let value = <T as Element>::from_f64(sign * turned[part] / m as f64);
                (conjugates[part][k], conjugates[part][(m - k) % m]) = (value, value);
            }
        }
        let (mut room, [re, im]) = (Aligned::zeros(line.room()), &mut against);
        line.run(From::Parts(&conjugates[0], &conjugates[1]), [re, im], &mut room);
        Self { line, turns, against }
    }

    fn run(&self, from: From<'_, T>, [re, im]: [&mut [T]; 2], room: &mut [T]) {
        let (n, m, ([from_re, from_im], step)) = (re.len(), self.line.length(), from.parts());
        let [real, imag, to_real, to_imag, room] = cut(room, [m, m, m, m, self.line.room()]);
        for (k, (re, im)) in from_re.iter().step_by(step).zip(from_im.iter().step_by(step)).enumerate() {
            (real[k], imag[k]) = (*re, *im);
        }
        turn_all([&mut real[..n], &mut imag[..n]], &self.turns);
        real[n..].fill(T::default());
        imag[n..].fill(T::default());
        self.line.run(From::Parts(real, imag), [&mut *to_real, &mut *to_imag], room);
        turn_all([&mut *to_real, &mut *to_imag], &self.against);
        // With both parts in each other's place: the inverse.
        self.line.run(From::Parts(to_imag, to_real), [&mut *imag, &mut *real], room);
        re.copy_from_slice(&real[..n]);
        im.copy_from_slice(&imag[..n]);
        turn_all([re, im], &self.turns);
    }
}

vectorize!(turn_all[T: Real](line: [&mut [T]; 2], by: &[Aligned<T>; 2]) => turn_all_body::<T>, wide false);

/// Complex numbers times others.
#[inline(always)]
fn turn_all_body<T: Real>([re, im]: [&mut [T]; 2], [cos, sin]: &[Aligned<T>; 2]) {
    for ((re, im), (&cos, &sin)) in re.iter_mut().zip(im).zip(cos.iter().zip(&**sin)) {
        (*re, *im) = (*re * cos - *im * sin, *re * sin + *im * cos);
    }
}
