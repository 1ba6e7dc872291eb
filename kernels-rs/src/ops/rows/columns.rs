//! Softmax, its relatives and moments along an axis that is not the last: the passes of a row, over a strip of columns at
//! once. A strip is walked line by line, so that memory is read in order; exponentials are computed again rather than kept.

use super::{Op, RowElement, Spread, Wide, finite, for_rows};
use crate::array::reader::Reader;
use crate::dtype::Element;
use crate::machine::lanes::{Kernel, Lanes, launch};
use crate::machine::threads::{SharedMut, num_threads};
use crate::math::Fma;
use crate::memory::scratch::{cut, with_scratch};

/// Columns side by side, in a strip: memory is read in long runs, and their state stays in the first-level cache.
const WIDE: usize = 1024;
/// Not fewer, however many threads there are.
const LEAST: usize = 64;
/// Lines whose sums are added up before they join the others: errors grow slowly.
const BLOCK: usize = 32;

/// One operand or two, as `outer` matrices of `len` lines of `inner` elements. A row reduction is one along the lines.
pub struct Columns<'a, T> {
    /// The operand.
    pub x: Reader<'a, T>,
    /// The second operand, if it is another.
    pub y: Option<Reader<'a, T>>,
    /// (outer, len, inner), none of them 0.
    pub size: [usize; 3],
}

/// What a line adds to the state of its columns, or makes from it. State: top, then two sums.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Max,
    ExpBelowSum,
    ExpSum,
    Products,
    Sum,
    Moments,
    Softmax,
    LogSoftmax,
    Pull,
    PullLog,
}

impl<T: RowElement> Columns<'_, T> {
    /// Writes the result of a softmax op.
    pub fn softmax(&self, op: Op, out: &mut [T]) {
        assert!(out.len() == self.size.iter().product::<usize>(), "a result per element");
        let to = SharedMut::new(out.as_mut_ptr());
        self.strips(&|strip, state| {
            let (first, last) = match op {
                Op::Softmax => (Pass::ExpBelowSum, Pass::Softmax),
                Op::LogSoftmax => (Pass::ExpBelowSum, Pass::LogSoftmax),
                Op::SoftmaxBackward => (Pass::Products, Pass::Pull),
                Op::LogSoftmaxBackward => (Pass::Sum, Pass::PullLog),
            };
            if first == Pass::ExpBelowSum {
                strip.tops(state);
            }
            strip.fold(first, state);
            let (zero, one) = (T::Wide::ZERO, T::Wide::ONE);
            for sum in &mut *state.sums[0] {
                match op {
                    Op::Softmax => *sum = if *sum == zero { one } else { one / *sum },
                    Op::LogSoftmax => *sum = if *sum == zero { zero } else { sum.ln() },
                    _ => {}
                }
            }
            // SAFETY: the result is as large as the matrices, and each strip belongs to one task.
            unsafe { strip.write(last, state, to) };
        });
    }

    /// Writes `ln(sum of e^x)` of each column.
    pub fn logsumexp(&self, out: &mut [T]) {
        assert!(out.len() == self.size[0] * self.size[2], "a result per column");
        let to = SharedMut::new(out.as_mut_ptr());
        self.strips(&|strip, state| {
            strip.tops(state);
            // An infinite maximum does not shift.
            state.tops.iter_mut().filter(|top| !top.to_f64().is_finite()).for_each(|top| *top = T::Wide::ZERO);
            strip.fold(Pass::ExpSum, state);
            // SAFETY: one result per column, and each column lies in one strip.
            let out = unsafe { to.slice(strip.result..strip.result + strip.width) };
            for ((slot, sum), &top) in out.iter_mut().zip(&*state.sums[0]).zip(&*state.tops) {
                *slot = T::narrow(sum.ln() + top);
            }
        });
    }

    /// Writes the variance of each column, or its root.
    pub fn spread(&self, rule: Spread, out: &mut [T]) {
        assert!(out.len() == self.size[0] * self.size[2], "a result per column");
        let to = SharedMut::new(out.as_mut_ptr());
        let count = T::Wide::count(self.size[1]);
        self.strips(&|strip, state| {
            strip.fold(Pass::Sum, state);
            for (mean, sum) in state.tops.iter_mut().zip(&mut *state.sums[0]) {
                (*mean, *sum) = (*sum / count, T::Wide::ZERO);
            }
            strip.fold(Pass::Moments, state);
            // SAFETY: one result per column, and each column lies in one strip.
            let out = unsafe { to.slice(strip.result..strip.result + strip.width) };
            for ((slot, &first), &second) in out.iter_mut().zip(&*state.sums[0]).zip(&*state.sums[1]) {
                *slot = T::narrow(rule.of([first, second], self.size[1]));
            }
        });
    }

    /// Calls `work` for every strip, with fresh state.
    fn strips<F: Fn(&Strip<'_, T>, &mut State<'_, T::Wide>) + Sync>(&self, work: &F) {
        let [outer, len, inner] = self.size;
        // Columns do not meet, so how many go together may depend on the threads.
        let wanted = num_threads().div_ceil(outer).max(inner.div_ceil(WIDE));
        let strips = wanted.min(inner.div_ceil(LEAST));
        let width = inner.div_ceil(strips);
        for_rows(outer * strips, len * width, &|first, end| {
            let room = 10 * width + self.x.room(width) + self.y.as_ref().map_or(0, |y| y.room(width));
            with_scratch(room, |scratch: &mut [T::Wide]| {
                for index in first..end {
                    let (matrix, start) = (index / strips, index % strips * width);
                    let (at, result) = (matrix * len * inner + start, matrix * inner + start);
                    let strip = Strip { columns: self, at, result, width: width.min(inner - start) };
                    work(&strip, &mut State::new(scratch, strip.width));
                }
            });
        });
    }
}

/// Some neighbouring columns of one matrix.
struct Strip<'a, T> {
    columns: &'a Columns<'a, T>,
    /// Place of the first element, and of the first column among all.
    at: usize,
    result: usize,
    width: usize,
}

/// What is known of each column.
struct State<'a, W> {
    tops: &'a mut [W],
    sums: [&'a mut [W]; 2],
    /// Sums of one block of lines.
    parts: [&'a mut [W]; 2],
    /// What rounding took from the sums: one large element would take it from all others.
    lost: [&'a mut [W]; 2],
    lines: Lines<'a, W>,
    out: &'a mut [W],
}

/// Where the lines of the operands are widened, and where those with gaps are gathered.
struct Lines<'a, W> {
    x: &'a mut [W],
    y: &'a mut [W],
    gathered: &'a mut [W],
}

impl<'a, W: Wide> State<'a, W> {
    fn new(scratch: &'a mut [W], width: usize) -> Self {
        scratch[..7 * width].fill(W::ZERO);
        let (lines, gathered) = scratch.split_at_mut(10 * width);
        let [tops, a, b, c, d, e, f, x, y, out] = cut(lines, [width; 10]);
        Self { tops, sums: [a, b], parts: [c, d], lost: [e, f], lines: Lines { x, y, gathered }, out }
    }
}

impl<T: RowElement> Strip<'_, T> {
    /// Sets the tops to the largest elements, or to 0 where all are minus infinity.
    fn tops(&self, state: &mut State<'_, T::Wide>) {
        state.tops.fill(T::Wide::LOWEST);
        self.fold(Pass::Max, state);
        state.tops.iter_mut().for_each(|top| *top = finite(*top));
    }

    /// Adds all lines to the state.
    fn fold(&self, pass: Pass, state: &mut State<'_, T::Wide>) {
        let State { tops, sums, parts, lost, lines, .. } = state;
        let len = self.columns.size[1];
        let used = match pass {
            Pass::Max => 0,
            Pass::Moments => 2,
            _ => 1,
        };
        for block in (0..len).step_by(BLOCK) {
            for i in block..len.min(block + BLOCK) {
                let (x, y) = self.line(i, lines);
                let [first, second] = parts;
                launch::<T::Wide, _>(Line { pass, x, y, out: &mut [], tops, sums: [first, second] });
            }
            for ((sums, parts), lost) in sums.iter_mut().zip(&mut *parts).zip(&mut *lost).take(used) {
                let (first, last) = (block == 0, block + BLOCK >= len);
                launch::<T::Wide, _>(Join { sums, parts, lost, first, last });
            }
        }
    }

    /// Makes all lines of the result from the state.
    ///
    /// # Safety
    /// There is room for an element of each of the matrices; nothing else touches those of this strip meanwhile.
    unsafe fn write(&self, pass: Pass, state: &mut State<'_, T::Wide>, to: SharedMut<T>) {
        let State { tops, sums: [first, second], lines, out: out_buffer, .. } = state;
        for i in 0..self.columns.size[1] {
            let (x, y) = self.line(i, lines);
            let at = self.at + i * self.columns.size[2];
            // SAFETY: the caller gives room for all lines, and a strip lies inside them.
            let out = to.slice(at..at + self.width);
            T::write(out, out_buffer, |out| {
                launch::<T::Wide, _>(Line { pass, x, y, out, tops, sums: [first, second] });
            });
        }
    }

    fn line<'b>(&'b self, i: usize, lines: &'b mut Lines<'_, T::Wide>) -> (&'b [T::Wide], &'b [T::Wide]) {
        let Columns { x, y, size } = self.columns;
        let at = self.at + i * size[2];
        let line = at..at + self.width;
        let (for_x, for_y) = lines.gathered.split_at_mut(x.room(self.width));
        let x = T::read(x.part(line.clone(), for_x), lines.x);
        (x, y.as_ref().map_or(x, |y| T::read(y.part(line, for_y), lines.y)))
    }
}

/// Adds the sums of a block to those of all, which are 0 before the first; after the last one, what rounding took from
/// them.
struct Join<'a, W> {
    sums: &'a mut [W],
    parts: &'a mut [W],
    lost: &'a mut [W],
    first: bool,
    last: bool,
}

impl<W: Wide> Kernel<W> for Join<'_, W> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = W>>(self) {
        let Join { sums, parts, lost, first, last } = self;
        if first {
            sums.copy_from_slice(parts);
            parts.fill(W::ZERO);
            return;
        }
        for ((sum, part), lost) in sums.iter_mut().zip(parts).zip(lost) {
            // Source: Knuth, The Art of Computer Programming 2, 4.2.2, theorem B.
            let (a, b) = (*sum, *part);
            let total = a + b;
            let back = total - a;
            *lost = *lost + ((a - (total - back)) + (b - back));
            *part = W::ZERO;
            *sum = total;
            if last {
                // Beside an infinite sum it is NaN.
                *sum = if lost.to_f64().is_nan() { total } else { total + *lost };
                *lost = W::ZERO;
            }
        }
    }
}

struct Line<'a, W> {
    pass: Pass,
    x: &'a [W],
    y: &'a [W],
    out: &'a mut [W],
    tops: &'a mut [W],
    sums: [&'a mut [W]; 2],
}

impl<W: Wide> Kernel<W> for Line<'_, W> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = W>>(self) {
        let Line { pass, x, y, out, tops, sums: [first, second] } = self;
        match pass {
            Pass::Max => each(x, y, tops, |x, _, top| if x > top { x } else { top }),
            Pass::ExpBelowSum => add_exp_below::<W, V::Math>(x, tops, first),
            Pass::ExpSum => add_exp::<W, V::Math>(x, tops, first),
            Pass::Products => each(x, y, first, W::times_plus::<V::Math>),
            Pass::Sum => each(x, x, first, |x, _, sum| sum + x),
            Pass::Moments => add_moments::<W, V::Math>(x, tops, first, second),
            Pass::Softmax => scaled_exp::<W, V::Math>([x, tops, first], out),
            Pass::LogSoftmax => make(x, tops, first, out, |x, top, log| x - top - log),
            Pass::Pull => make(x, y, first, out, |g, y, sum| y * (g - sum)),
            Pass::PullLog => pull_exp::<W, V::Math>([x, y, first], out),
        }
    }
}

// Functions of slices, so that the compiler knows that they do not overlap.

#[inline(always)]
fn each<W: Copy>(a: &[W], b: &[W], state: &mut [W], f: impl Fn(W, W, W) -> W) {
    for ((slot, &a), &b) in state.iter_mut().zip(a).zip(b) {
        *slot = f(a, b, *slot);
    }
}

#[inline(always)]
fn make<W: Copy>(a: &[W], b: &[W], c: &[W], out: &mut [W], f: impl Fn(W, W, W) -> W) {
    for (((slot, &a), &b), &c) in out.iter_mut().zip(a).zip(b).zip(c) {
        *slot = f(a, b, c);
    }
}

/// Distances from means, and their squares.
#[inline(always)]
pub fn add_moments<W: Wide, M: Fma>(x: &[W], means: &[W], first: &mut [W], second: &mut [W]) {
    for (((first, second), &x), &mean) in first.iter_mut().zip(second).zip(x).zip(means) {
        let rest = x - mean;
        (*first, *second) = (*first + rest, rest.times_plus::<M>(rest, *second));
    }
}

// Exponentials are written out: a closure of their size might stay a call, which does not inherit the instructions.

// As along a row: a softmax takes `exp_below` whatever the axis.

#[inline(always)]
fn add_exp_below<W: Wide, M: Fma>(x: &[W], tops: &[W], sums: &mut [W]) {
    for ((sum, &x), &top) in sums.iter_mut().zip(x).zip(tops) {
        *sum = *sum + (x - top).exp_below::<M>();
    }
}

#[inline(always)]
fn add_exp<W: Wide, M: Fma>(x: &[W], tops: &[W], sums: &mut [W]) {
    for ((sum, &x), &top) in sums.iter_mut().zip(x).zip(tops) {
        *sum = *sum + (x - top).exp::<M>();
    }
}

#[inline(always)]
fn scaled_exp<W: Wide, M: Fma>([x, tops, scales]: [&[W]; 3], out: &mut [W]) {
    for (((slot, &x), &top), &scale) in out.iter_mut().zip(x).zip(tops).zip(scales) {
        *slot = (x - top).exp_below::<M>() * scale;
    }
}

#[inline(always)]
fn pull_exp<W: Wide, M: Fma>([g, y, sums]: [&[W]; 3], out: &mut [W]) {
    for (((slot, &g), &y), &sum) in out.iter_mut().zip(g).zip(y).zip(sums) {
        *slot = g - y.exp_below::<M>() * sum;
    }
}
