//! Which pixels a place reads, and with which weights.

use super::Settings;
use crate::error::named;
use crate::machine::lanes::Real;
use crate::vectorize;

/// Which pixels are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// 4 x 4 by Keys' cubic with a = -0.75.
    Bicubic,
    /// 2 x 2.
    Bilinear,
    /// The nearest.
    Nearest,
}

/// What is outside of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Margin {
    /// The pixels at the edges.
    Border,
    /// The image mirrored at its edges.
    Reflection,
    /// Zeros.
    Zeros,
}

named!(Mode, "grid_sample": "bicubic" Bicubic, "bilinear" Bilinear, "nearest" Nearest);

named!(Margin, "grid_sample": "border" Border, "reflection" Reflection, "zeros" Zeros);

/// A float that places are computed in.
pub trait Place: Real {
    /// Rounded down.
    #[must_use]
    fn floor(self) -> Self;
    /// Rounded to the nearest, half to even.
    #[must_use]
    fn round(self) -> Self;
    /// From a number.
    fn of(value: f64) -> Self;
    /// As a whole number; 0 for what is none from 0 to 2³¹ - 1. In vectors, which a cast that saturates is not.
    fn whole(self) -> i32;
}

macro_rules! places {
    ($($ty:ident)*) => {$(
        impl Place for $ty {
            #[inline(always)]
            fn floor(self) -> Self { $ty::floor(self) }
            #[inline(always)]
            fn round(self) -> Self { self.round_ties_even() }
            #[inline(always)]
            fn of(value: f64) -> Self { value as $ty }
            #[inline(always)]
            #[expect(clippy::manual_range_contains, reason = "a second comparison that waits for the first is a branch")]
            fn whole(self) -> i32 {
                let fits = (self >= 0.0) & (self < 2_147_483_648.0);
                // SAFETY: a number in the range of the type, and no NaN.
                unsafe { (if fits { self } else { 0.0 }).to_int_unchecked() }
            }
        }
    )*};
}
places!(f32 f64);

/// Places whose pixels are found at once: what is said of them stays in the first-level cache.
pub const PLACES: usize = 128;

/// One pixel of each place: its number in the plane, where -1 stands for 0, and its weight.
#[derive(Clone, Copy)]
pub struct Tap<T> {
    /// The numbers.
    pub pixels: [i32; PLACES],
    /// The weights.
    pub weights: [T; PLACES],
}

impl<T: Place> Tap<T> {
    fn none() -> Self {
        Self { pixels: [-1; PLACES], weights: [T::default(); PLACES] }
    }
}

/// The pixels of some places: `K` of each.
pub struct Taps<T, const K: usize> {
    taps: [Tap<T>; K],
    /// Along each axis, and of the first two of three.
    lines: [[Tap<T>; 4]; 4],
}

impl<T: Place, const K: usize> Taps<T, K> {
    /// Of no places.
    pub fn new() -> Self {
        Self { taps: [Tap::none(); K], lines: [[Tap::none(); 4]; 4] }
    }

    /// Of pairs of column and row, or of column, row and layer: last axes first. Every number is below the product of the
    /// sizes, which is below 2³¹; also behind the last place, up to [`PLACES`].
    pub fn find(&mut self, grid: &[T], sizes: &[usize], settings: Settings) -> &[Tap<T>; K] {
        let (side, axes, mut step) = (if K == 16 { 4 } else { K.min(2) }, sizes.len(), 1);
        for (from, &n) in sizes.iter().rev().enumerate() {
            let axis = Axis { n, step, settings };
            along(grid, (axes, from), &axis, &mut self.lines[axes - 1 - from]);
            step *= n;
        }
        let [first, second, third, both] = &mut self.lines;
        if axes == 2 {
            outer(&first[..side], &second[..side], &mut self.taps);
        } else {
            outer(&first[..side], &second[..side], &mut both[..side * side]);
            outer(&both[..side * side], &third[..side], &mut self.taps);
        }
        &self.taps
    }
}

vectorize!(outer[T: Place](a: &[Tap<T>], b: &[Tap<T>], to: &mut [Tap<T>]) => outer_body::<T>, wide T::WIDE);

/// Each of the first with each of the second.
#[inline(always)]
fn outer_body<T: Place>(a: &[Tap<T>], b: &[Tap<T>], to: &mut [Tap<T>]) {
    for (a, to) in a.iter().zip(to.chunks_exact_mut(b.len())) {
        for (b, to) in b.iter().zip(to) {
            for i in 0..PLACES {
                let (p, q) = (a.pixels[i], b.pixels[i]);
                to.pixels[i] = together(p, q, 1);
                to.weights[i] = a.weights[i] * b.weights[i];
            }
        }
    }
}

/// The number of a pixel by those of its row and its column, with so many pixels from row to row: -1 where one of them is.
#[inline(always)]
pub fn together(row: i32, column: i32, step: i32) -> i32 {
    (row | column) >> 31 | (row * step + column)
}

/// An axis of an image.
pub struct Axis {
    /// How many.
    pub n: usize,
    /// Pixels from one of this axis to the next.
    pub step: usize,
    /// How it is read.
    pub settings: Settings,
}

vectorize!(
    along[T: Place](grid: &[T], from: (usize, usize), axis: &Axis, taps: &mut [Tap<T>; 4]) => along_body::<T>, wide T::WIDE
);

/// What places read along an axis, which is number `from` of so many `axes` of each.
#[inline(always)]
fn along_body<T: Place>(grid: &[T], (axes, from): (usize, usize), axis: &Axis, taps: &mut [Tap<T>; 4]) {
    let mut at = [T::default(); PLACES];
    if axes == 2 {
        at.iter_mut().zip(grid.as_chunks::<2>().0).for_each(|(at, place)| *at = place[from]);
    } else {
        at.iter_mut().zip(grid.as_chunks::<3>().0).for_each(|(at, place)| *at = place[from]);
    }
    axis.spread(&mut at);
    let one = T::of(1.0);
    match axis.settings.mode {
        Mode::Nearest => {
            axis.bring_inside(&mut at);
            at = at.map(T::round);
            axis.number(&at, &mut taps[0].pixels);
            taps[0].weights = [one; PLACES];
        }
        Mode::Bilinear => {
            axis.bring_inside(&mut at);
            let mut next = at;
            for (i, next) in next.iter_mut().enumerate() {
                let first = at[i].floor();
                let t = at[i] - first;
                (taps[0].weights[i], taps[1].weights[i]) = (one - t, t);
                (at[i], *next) = (first, first + one);
            }
            axis.number(&at, &mut taps[0].pixels);
            axis.number(&next, &mut taps[1].pixels);
        }
        Mode::Bicubic => {
            for (i, at) in at.iter_mut().enumerate() {
                let first = at.floor();
                let t = *at - first;
                let weights = [far(one + t), near(t), near(one - t), far(T::of(2.0) - t)];
                taps.iter_mut().zip(weights).for_each(|(tap, weight)| tap.weights[i] = weight);
                *at = first;
            }
            for (shift, tap) in [-1.0, 0.0, 1.0, 2.0].into_iter().zip(taps) {
                let mut moved = at.map(|at| at + T::of(shift));
                axis.bring_inside(&mut moved);
                axis.number(&moved, &mut tap.pixels);
            }
        }
    }
}

impl Axis {
    /// From places between -1 and 1 to where they lie among the pixels.
    #[inline(always)]
    fn spread<T: Place>(&self, places: &mut [T; PLACES]) {
        let (one, half, n) = (T::of(1.0), T::of(0.5), T::of(self.n as f64));
        if self.settings.align_corners {
            let scale = T::of((self.n as f64 - 1.0) / 2.0);
            for at in places {
                *at = (*at + one) * scale;
            }
        } else {
            for at in places {
                *at = ((*at + one) * n - one) * half;
            }
        }
    }

    /// The numbers of pixels; -1 for what is outside.
    #[inline(always)]
    fn number<T: Place>(&self, places: &[T; PLACES], pixels: &mut [i32; PLACES]) {
        let (last, step) = (self.n as i32 - 1, self.step as i32);
        let most = T::of(f64::from(last));
        for (pixel, &at) in pixels.iter_mut().zip(places) {
            // What was rounded up to the last is none behind it.
            *pixel = if (at >= T::default()) & (at <= most) { at.whole().min(last) * step } else { -1 };
        }
    }

    #[inline(always)]
    fn bring_inside<T: Place>(&self, places: &mut [T; PLACES]) {
        let most = T::of(self.n as f64 - 1.0);
        match self.settings.margin {
            Margin::Zeros => {}
            Margin::Border => places.iter_mut().for_each(|at| *at = clipped(*at, most)),
            Margin::Reflection => self.mirror(places, most),
        }
    }

    /// Reflects at the edges until all is inside.
    #[inline(always)]
    fn mirror<T: Place>(&self, places: &mut [T; PLACES], most: T) {
        let count = self.n as f64;
        let (low, span) = if self.settings.align_corners { (0.0, count - 1.0) } else { (-0.5, count) };
        if span == 0.0 {
            *places = [T::default(); PLACES];
            return;
        }
        let (low, span, two, half) = (T::of(low), T::of(span), T::of(2.0), T::of(0.5));
        for at in places {
            let off = *at - low;
            let off = if off < T::default() { T::default() - off } else { off };
            let turns = (off / span).floor();
            let rest = off - turns * span;
            let even = turns - two * (turns * half).floor() == T::default();
            *at = clipped((if even { rest } else { span - rest }) + low, most);
        }
    }
}

/// NaN is the first pixel, as in `PyTorch`.
#[inline(always)]
fn clipped<T: Place>(at: T, most: T) -> T {
    let at = if at > T::default() { at } else { T::default() };
    if at > most { most } else { at }
}

const CUBIC: f64 = -0.75;

#[inline(always)]
fn far<T: Place>(t: T) -> T {
    let [five, eight, a] = [5.0, 8.0, CUBIC].map(T::of);
    ((t - five) * t + eight) * t * a - T::of(4.0 * CUBIC)
}

#[inline(always)]
fn near<T: Place>(t: T) -> T {
    (T::of(CUBIC + 2.0) * t - T::of(CUBIC + 3.0)) * t * t + T::of(1.0)
}
