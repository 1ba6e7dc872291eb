//! Where each result along an axis reads.

use super::Mode;
use crate::machine::lanes::Real;
use crate::memory::scratch::{collected, filled};
use std::ops::Range;

/// The constant of Keys' cubic convolution that `PyTorch` and Burn use.
const CUBIC: f64 = -0.75;
/// Results with more neighbors than this are not stored by columns.
const MOST: usize = 16;

/// For each result a run of sources and their weights. Runs lie inside the sources.
pub struct Map<T> {
    /// Sources along the axis.
    pub sources: usize,
    /// First source of each result.
    pub starts: Vec<u32>,
    /// Where the weights of each result begin; one more at the end.
    offsets: Vec<usize>,
    weights: Vec<T>,
    /// Results in a row that have equally many neighbors, and their weights: of the first neighbors, the second, ...
    pub even: Range<usize>,
    /// See `even`.
    pub columns: Vec<Vec<T>>,
}

impl Map<f64> {
    /// `count` results from `sources` pixels. Pixels beyond the edge are those of the edge.
    pub fn new(sources: usize, count: usize, mode: Mode, align_corners: bool) -> Self {
        let mut map = Self::empty(sources);
        for at in 0..count {
            let (first, weights) = taps(sources, count, at, mode, align_corners);
            let inside = |k: usize| (first + k as i64).clamp(0, sources as i64 - 1) as usize;
            map.starts.push(inside(0) as u32);
            for (k, &weight) in weights.iter().enumerate().take(mode.width()) {
                if k > 0 && inside(k) == inside(k - 1) {
                    *map.weights.last_mut().expect("the tap before it") += weight;
                } else {
                    map.weights.push(weight);
                }
            }
            map.offsets.push(map.weights.len());
        }
        map
    }

    /// Of the first source that each result reads, and the weights from there on.
    pub fn of_runs(sources: usize, runs: impl Iterator<Item = (usize, Vec<f64>)>) -> Self {
        let mut map = Self::empty(sources);
        for (start, weights) in runs {
            map.starts.push(start as u32);
            map.weights.extend(weights);
            map.offsets.push(map.weights.len());
        }
        map
    }

    /// Of as many results as sources, which they are.
    pub fn same(count: usize) -> Self {
        Self::of_runs(count, (0..count).map(|at| (at, vec![1.0])))
    }

    /// What each source gives to the results. Runs follow each other, so these are runs as well.
    pub fn transposed(&self) -> Self {
        let mut lists: Vec<(u32, Vec<f64>)> = filled((0, Vec::new()), self.sources);
        for at in 0..self.len() {
            for (source, &weight) in self.run(at).zip(self.weights_of(at)) {
                let (start, list) = &mut lists[source];
                if list.is_empty() {
                    *start = at as u32;
                }
                list.push(weight);
            }
        }
        Self::of_runs(self.len(), lists.into_iter().map(|(start, list)| (start as usize, list)))
    }

    /// With weights of another type.
    pub fn narrow<T: Real>(self) -> Map<T> {
        let count = |at: usize| self.weights_of(at).len();
        let middle = self.len() / 2;
        let usual = count(middle);
        let start = (0..middle).rev().take_while(|&at| count(at) == usual).last().unwrap_or(middle);
        let end = (middle..self.len()).take_while(|&at| count(at) == usual).last().unwrap_or(middle) + 1;
        let even = if (1..=MOST).contains(&usual) { start..end } else { 0..0 };
        let narrow = |weight: f64| T::from_f64(weight);
        let columns = (0..if even.is_empty() { 0 } else { usual })
            .map(|k| collected(even.clone().map(|at| narrow(self.weights_of(at)[k]))))
            .collect();
        let weights = collected(self.weights.iter().copied().map(narrow));
        Map { sources: self.sources, starts: self.starts, offsets: self.offsets, weights, even, columns }
    }

    fn empty(sources: usize) -> Self {
        Self { sources, starts: vec![], offsets: vec![0], weights: vec![], even: 0..0, columns: vec![] }
    }
}

impl<T> Map<T> {
    /// Number of results.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// The sources of a result.
    #[inline(always)]
    pub fn run(&self, at: usize) -> Range<usize> {
        let start = self.starts[at] as usize;
        start..start + (self.offsets[at + 1] - self.offsets[at])
    }

    /// Their weights.
    #[inline(always)]
    pub fn weights_of(&self, at: usize) -> &[T] {
        &self.weights[self.offsets[at]..self.offsets[at + 1]]
    }
}

impl Mode {
    fn width(self) -> usize {
        match self {
            Mode::Bicubic => 4,
            Mode::Bilinear => 2,
            Mode::Nearest => 1,
        }
    }
}

/// The first position that result `at` reads, which may lie outside, and the weights from there on.
pub fn taps(sources: usize, count: usize, at: usize, mode: Mode, align_corners: bool) -> (i64, [f64; 4]) {
    if mode == Mode::Nearest {
        return ((at * sources / count) as i64, [1.0, 0.0, 0.0, 0.0]);
    }
    let place = if align_corners {
        (at * (sources - 1)) as f64 / count.saturating_sub(1).max(1) as f64
    } else {
        ((2 * at + 1) as i128 * sources as i128 - count as i128) as f64 / (2 * count) as f64
    };
    let place = if mode == Mode::Bilinear { place.max(0.0) } else { place };
    let (first, t) = (place.floor() as i64, place - place.floor());
    match mode {
        Mode::Bicubic => (first - 1, [far(1.0 + t), near(t), near(1.0 - t), far(2.0 - t)]),
        _ => (first, [1.0 - t, t, 0.0, 0.0]),
    }
}

fn near(t: f64) -> f64 {
    ((CUBIC + 2.0) * t - (CUBIC + 3.0)) * t * t + 1.0
}

fn far(t: f64) -> f64 {
    ((t - 5.0) * t + 8.0) * t * CUBIC - 4.0 * CUBIC
}
