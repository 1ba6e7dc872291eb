//! Which pixels a place reads, and with which weights.

use super::Settings;
use crate::error::{Error, Result};
use crate::machine::lanes::Real;
use crate::memory::scratch::{cut, filled};
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

impl Mode {
    /// From the name used in Python.
    pub fn from_name(name: &str) -> Result<Self> {
        Ok(match name {
            "bicubic" => Self::Bicubic,
            "bilinear" => Self::Bilinear,
            "nearest" => Self::Nearest,
            _ => return Err(unknown("mode", name, "bicubic, bilinear or nearest")),
        })
    }
}

impl Margin {
    /// From the name used in Python.
    pub fn from_name(name: &str) -> Result<Self> {
        Ok(match name {
            "border" => Self::Border,
            "reflection" => Self::Reflection,
            "zeros" => Self::Zeros,
            _ => return Err(unknown("padding_mode", name, "border, reflection or zeros")),
        })
    }
}

fn unknown(what: &str, name: &str, expected: &str) -> Error {
    Error::value("grid_sample", format!("unknown {what}: got {name:?}, expected {expected}"))
}

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
    /// As a whole number; NaN is 0.
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
            fn whole(self) -> i32 { self as i32 }
        }
    )*};
}
places!(f32 f64);

/// The pixels of some places, by number in the plane, and their weights: `K` lists of each. A number of -1 stands for 0.
pub struct Taps<T, const K: usize> {
    pixels: Vec<i32>,
    weights: Vec<T>,
    len: usize,
}

impl<T: Place, const K: usize> Taps<T, K> {
    /// Of pairs of column and row, or of column, row and layer: last axes first.
    pub fn new(grid: &[T], sizes: &[usize], settings: Settings) -> Self {
        let len = grid.len() / sizes.len();
        let mut taps = Self { pixels: filled(-1, K * len), weights: filled(T::default(), K * len), len };
        match *sizes {
            _ if settings.margin == Margin::Reflection || K == 16 => taps.fill(grid, sizes, settings),
            [rows, cols] if K == 1 => nearest(grid, [rows, cols], settings, &mut taps.pixels, &mut taps.weights),
            [rows, cols] => bilinear(grid, [rows, cols], settings, &mut taps.pixels, &mut taps.weights),
            [layers, rows, cols] if K == 8 => {
                trilinear(grid, [layers, rows, cols], settings, &mut taps.pixels, &mut taps.weights);
            }
            _ => taps.fill(grid, sizes, settings),
        }
        taps
    }

    /// Place after place, in any way.
    fn fill(&mut self, grid: &[T], sizes: &[usize], settings: Settings) {
        let side = if K == 16 { 4 } else { K.min(2) };
        let (axes, one) = (sizes.len(), T::of(1.0));
        for (i, place) in grid.chunks_exact(axes).enumerate() {
            let mut lines = [[(Some(0), one); 4]; 3];
            for (axis, (line, &n)) in lines.iter_mut().zip(sizes).enumerate() {
                *line = Axis { n, settings }.taps(place[axes - 1 - axis]);
            }
            for tap in 0..K {
                let (mut pixel, mut weight, mut rest) = (Some(0), one, K);
                for (line, &n) in lines.iter().zip(sizes) {
                    rest /= side;
                    let (at, share) = line[tap / rest % side];
                    pixel = pixel.zip(at).map(|(before, at)| before * n + at);
                    weight = weight * share;
                }
                self.pixels[tap * self.len + i] = pixel.map_or(-1, |pixel| pixel as i32);
                self.weights[tap * self.len + i] = weight;
            }
        }
    }

    /// Places.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether every number is below this one.
    pub fn all_below(&self, size: usize) -> bool {
        self.pixels.iter().fold(i32::MIN, |most, &pixel| most.max(pixel)) < size.min(i32::MAX as usize) as i32
    }

    /// The numbers of a tap.
    pub fn pixels(&self, tap: usize) -> &[i32] {
        &self.pixels[tap * self.len..(tap + 1) * self.len]
    }

    /// The weights of a tap.
    pub fn weights(&self, tap: usize) -> &[T] {
        &self.weights[tap * self.len..(tap + 1) * self.len]
    }
}

vectorize!(
    bilinear[T: Place](grid: &[T], size: [usize; 2], settings: Settings, pixels: &mut [i32], weights: &mut [T])
        => bilinear_body::<T>
);

/// The four lists of [`Taps`], many places at a time: as by [`Axis::taps`], without a branch.
#[inline(always)]
fn bilinear_body<T: Place>(
    grid: &[T],
    [rows, cols]: [usize; 2],
    settings: Settings,
    pixels: &mut [i32],
    weights: &mut [T],
) {
    let len = grid.len() / 2;
    let [p, q, r, s] = cut(pixels, [len; 4]);
    let [a, b, c, d] = cut(weights, [len; 4]);
    let (across, down) = (Axis { n: cols, settings }, Axis { n: rows, settings });
    let width = cols as i32;
    for (i, place) in grid.as_chunks::<2>().0.iter().enumerate() {
        let ((col, left, right), x) = across.pair(place[0]);
        let ((row, above, below), y) = down.pair(place[1]);
        let (x0, y0) = (T::of(1.0) - x, T::of(1.0) - y);
        let first = row * width + col;
        p[i] = if above & left { first } else { -1 };
        q[i] = if above & right { first.wrapping_add(1) } else { -1 };
        r[i] = if below & left { first.wrapping_add(width) } else { -1 };
        s[i] = if below & right { first.wrapping_add(width).wrapping_add(1) } else { -1 };
        (a[i], b[i], c[i], d[i]) = (y0 * x0, y0 * x, y * x0, y * x);
    }
}

vectorize!(
    trilinear[T: Place](grid: &[T], size: [usize; 3], settings: Settings, pixels: &mut [i32], weights: &mut [T])
        => trilinear_body::<T>
);

/// The eight lists of [`Taps`] of a volume, as those of [`bilinear`].
#[inline(always)]
#[allow(clippy::needless_range_loop)] // A number of two lists, and of what they are made of.
fn trilinear_body<T: Place>(
    grid: &[T],
    [layers, rows, cols]: [usize; 3],
    settings: Settings,
    pixels: &mut [i32],
    weights: &mut [T],
) {
    let len = grid.len() / 3;
    let (lists, shares) = (cut(pixels, [len; 8]), cut(weights, [len; 8]));
    let [across, down, deep] = [cols, rows, layers].map(|n| Axis { n, settings });
    let (width, plane) = (cols as i32, (rows * cols) as i32);
    for (i, place) in grid.as_chunks::<3>().0.iter().enumerate() {
        let ((col, left, right), x) = across.pair(place[0]);
        let ((row, above, below), y) = down.pair(place[1]);
        let ((layer, before, behind), z) = deep.pair(place[2]);
        let first = layer * plane + row * width + col;
        let [x0, y0, z0] = [x, y, z].map(|share| T::of(1.0) - share);
        for tap in 0..8 {
            let (from, inside, share) = match tap / 2 {
                0 => (first, before & above, z0 * y0),
                1 => (first.wrapping_add(width), before & below, z0 * y),
                2 => (first.wrapping_add(plane), behind & above, z * y0),
                _ => (first.wrapping_add(plane).wrapping_add(width), behind & below, z * y),
            };
            let (at, here, by) = if tap % 2 == 0 { (from, left, x0) } else { (from.wrapping_add(1), right, x) };
            lists[tap][i] = if inside & here { at } else { -1 };
            shares[tap][i] = share * by;
        }
    }
}

vectorize!(
    nearest[T: Place](grid: &[T], size: [usize; 2], settings: Settings, pixels: &mut [i32], weights: &mut [T])
        => nearest_body::<T>
);

/// The one list of [`Taps`], many places at a time: as by [`Axis::taps`], without a branch.
#[inline(always)]
fn nearest_body<T: Place>(
    grid: &[T],
    [rows, cols]: [usize; 2],
    settings: Settings,
    pixels: &mut [i32],
    weights: &mut [T],
) {
    let (across, down) = (Axis { n: cols, settings }, Axis { n: rows, settings });
    weights.fill(T::of(1.0));
    for (slot, place) in pixels.iter_mut().zip(grid.as_chunks::<2>().0) {
        let ((col, left), (row, above)) = (across.one(place[0]), down.one(place[1]));
        *slot = if left & above { row * cols as i32 + col } else { -1 };
    }
}

/// An axis of an image.
struct Axis {
    n: usize,
    settings: Settings,
}

/// A position along an axis, None outside; and its weight.
type Tap<T> = (Option<usize>, T);

impl Axis {
    /// What a place between -1 and 1 reads.
    fn taps<T: Place>(&self, place: T) -> [Tap<T>; 4] {
        let (one, at) = (T::of(1.0), self.at(place));
        let none = (None, T::default());
        match self.settings.mode {
            Mode::Nearest => [(self.pixel(self.inside(at).round()), one), none, none, none],
            Mode::Bilinear => {
                let at = self.inside(at);
                let first = at.floor();
                let t = at - first;
                [(self.pixel(first), one - t), (self.pixel(first + one), t), none, none]
            }
            Mode::Bicubic => {
                let first = at.floor();
                let t = at - first;
                let weights = [far(one + t), near(t), near(one - t), far(T::of(2.0) - t)];
                let mut i = -2.0;
                weights.map(|weight| {
                    i += 1.0;
                    (self.pixel(self.inside(first + T::of(i))), weight)
                })
            }
        }
    }

    /// Where a place between -1 and 1 lies among the pixels.
    #[inline(always)]
    fn at<T: Place>(&self, place: T) -> T {
        let (one, n) = (T::of(1.0), T::of(self.n as f64));
        if self.settings.align_corners {
            (place + one) * T::of((self.n as f64 - 1.0) / 2.0)
        } else {
            ((place + one) * n - one) * T::of(0.5)
        }
    }

    /// The pixel before a place, whether it and the next are there, and the weight of the next.
    #[inline(always)]
    fn pair<T: Place>(&self, place: T) -> ((i32, bool, bool), T) {
        let at = self.at(place);
        let at = if self.settings.margin == Margin::Border { clipped(at, self.n) } else { at };
        let (first, zero, last) = (at.floor(), T::default(), T::of(self.n as f64 - 1.0));
        let next = first + T::of(1.0);
        let (here, there) = ((first >= zero) & (first <= last), (next >= zero) & (next <= last));
        // Just before the first pixel at least, so that nothing overflows.
        let near = if here | there { first } else { zero };
        ((near.whole(), here, there), at - first)
    }

    /// The pixel nearest to a place, and whether it is there.
    #[inline(always)]
    fn one<T: Place>(&self, place: T) -> (i32, bool) {
        let at = self.at(place);
        let at = (if self.settings.margin == Margin::Border { clipped(at, self.n) } else { at }).round();
        let here = (at >= T::default()) & (at <= T::of(self.n as f64 - 1.0));
        ((if here { at } else { T::default() }).whole(), here)
    }

    fn pixel<T: Place>(&self, at: T) -> Option<usize> {
        (at >= T::default() && at <= T::of(self.n as f64 - 1.0)).then(|| at.whole() as usize)
    }

    fn inside<T: Place>(&self, at: T) -> T {
        match self.settings.margin {
            Margin::Zeros => at,
            Margin::Border => clipped(at, self.n),
            Margin::Reflection => self.mirrored(at),
        }
    }

    /// Reflected at the edges until it is inside.
    fn mirrored<T: Place>(&self, at: T) -> T {
        let count = self.n as f64;
        let (low, span) = if self.settings.align_corners { (0.0, count - 1.0) } else { (-0.5, count) };
        if span == 0.0 {
            return T::default();
        }
        let (low, span) = (T::of(low), T::of(span));
        let off = at - low;
        let off = if off < T::default() { T::default() - off } else { off };
        let turns = (off / span).floor();
        let rest = off - turns * span;
        let even = turns - T::of(2.0) * (turns * T::of(0.5)).floor() == T::default();
        clipped((if even { rest } else { span - rest }) + low, self.n)
    }
}

/// NaN is the first pixel, as in `PyTorch`.
#[inline(always)]
fn clipped<T: Place>(at: T, n: usize) -> T {
    let last = T::of(n as f64 - 1.0);
    if at > last {
        last
    } else if at > T::default() {
        at
    } else {
        T::default()
    }
}

const CUBIC: f64 = -0.75;

fn far<T: Place>(t: T) -> T {
    let [five, eight, a] = [5.0, 8.0, CUBIC].map(T::of);
    ((t - five) * t + eight) * t * a - T::of(4.0 * CUBIC)
}

fn near<T: Place>(t: T) -> T {
    (T::of(CUBIC + 2.0) * t - T::of(CUBIC + 3.0)) * t * t + T::of(1.0)
}
