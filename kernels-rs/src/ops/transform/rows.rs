//! Lines one after another, through `rustfft`: those of a task are copied into complex numbers, transformed there, and copied
//! out into real and imaginary parts. What `realfft` does in scalars is done in vectors here: it took longer than the
//! transform (4096 in `f32` on AMD EPYC, Zen 3, one thread: 3.0 us of 5.3).

use super::{Transformed, halves_plan, lines_plan};
use crate::array::reader::Reader;
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::filled;
use crate::vectorize;
use rustfft::Fft;
use rustfft::num_complex::Complex;
use std::ops::Range;

/// Elements per task.
const TASK: usize = 1 << 13;

/// Which lines, and what becomes of them.
pub struct Job {
    /// Elements of a line.
    pub n: usize,
    /// Elements of a line of results.
    pub out: usize,
    pub inverse: bool,
    pub lines: usize,
}

impl Job {
    /// Runs `work(first line, end)` over the lines, in parallel.
    fn run(&self, work: &(dyn Fn(usize, usize) + Sync)) {
        let together = (TASK / self.n).max(1);
        let tasks = self.lines.div_ceil(together);
        threads::parallel(tasks, &|task| work(task * together, self.lines.min((task + 1) * together)));
    }

    /// Lines of two parts.
    pub fn complex<T: Transformed>(&self, re: &Reader<'_, T>, im: &Reader<'_, T>, to: [SharedMut<T>; 2]) {
        let (n, plan) = (self.n, lines_plan::<T>(self.n));
        self.run(&|first, end| {
            let mut room = Room::new(&*plan, end - first);
            let range = |at: usize| at * n..(at + 1) * n;
            // With both parts in each other's place, conjugates times i: forwards, what the inverse gives, turned so too.
            let (a, b) = if self.inverse { (im, re) } else { (re, im) };
            for (at, line) in (first..end).zip(room.lines.chunks_exact_mut(n)) {
                together(a.part::<T>(range(at), &mut []), b.part::<T>(range(at), &mut []), line);
            }
            room.transform(&*plan);
            let to = if self.inverse { [to[1], to[0]] } else { to };
            for (at, line) in (first..end).zip(room.lines.chunks_exact(n)) {
                // SAFETY: each task has its own lines.
                apart(line, T::one(), unsafe { to[0].slice(range(at)) }, unsafe { to[1].slice(range(at)) });
            }
        });
    }

    /// Real lines of odd length. Half of the results tells the other: they are conjugates.
    pub fn odd<T: Transformed>(&self, re: &Reader<'_, T>, to: [SharedMut<T>; 2]) {
        let (n, out, plan) = (self.n, self.out, lines_plan::<T>(self.n));
        self.run(&|first, end| {
            let mut room = Room::new(&*plan, end - first);
            for (at, line) in (first..end).zip(room.lines.chunks_exact_mut(n)) {
                let from = re.part::<T>(at * n..(at + 1) * n, &mut []);
                line.iter_mut().zip(from).for_each(|(slot, &re)| *slot = Complex::new(re, T::zero()));
            }
            room.transform(&*plan);
            for (at, line) in (first..end).zip(room.lines.chunks_exact(n)) {
                let [real, imag] = results(to, at * out..(at + 1) * out);
                apart(&line[..=n / 2], self.sign(), real, imag);
                // The sum of real numbers has no imaginary part.
                imag[0] = T::zero();
                mirror(n / 2 + 1, real, imag);
            }
        });
    }

    /// Real lines of even length, as half as many complex numbers.
    pub fn halved<T: Transformed>(&self, re: &Reader<'_, T>, to: [SharedMut<T>; 2]) {
        let (n, out, half) = (self.n, self.out, self.n / 2);
        let (plan, halves) = (lines_plan::<T>(half), halves_plan::<T>(n));
        self.run(&|first, end| {
            let mut room = Room::new(&*plan, end - first);
            for (at, line) in (first..end).zip(room.lines.chunks_exact_mut(half)) {
                let from = re.part::<T>(at * n..(at + 1) * n, &mut []);
                // SAFETY: a complex number is its two parts, one behind the other, and the line has `half` such pairs.
                line.copy_from_slice(unsafe { std::slice::from_raw_parts(from.as_ptr().cast(), half) });
            }
            room.transform(&*plan);
            for (at, line) in (first..end).zip(room.lines.chunks_exact(half)) {
                let results = results(to, at * out..(at + 1) * out);
                untangle(line, [&halves.0[0], &halves.0[1]], self.sign(), results);
            }
        });
    }

    /// Of the imaginary parts of what is real: the inverse is the conjugate.
    fn sign<T: Transformed>(&self) -> T {
        if self.inverse { -T::one() } else { T::one() }
    }
}

/// A line of results, for writing: each task has its own.
fn results<'a, T>(to: [SharedMut<T>; 2], range: Range<usize>) -> [&'a mut [T]; 2] {
    // SAFETY: tasks ask for their own lines, which are inside the results.
    unsafe { [to[0].slice(range.clone()), to[1].slice(range)] }
}

/// The lines of a task as complex numbers, and what their transforms need beside them.
struct Room<T> {
    lines: Vec<Complex<T>>,
    scratch: Vec<Complex<T>>,
}

impl<T: Transformed> Room<T> {
    fn new(plan: &dyn Fft<T>, lines: usize) -> Self {
        let zero = Complex::new(T::zero(), T::zero());
        Self { lines: filled(zero, lines * plan.len()), scratch: filled(zero, plan.get_inplace_scratch_len()) }
    }

    /// All lines, in their place.
    fn transform(&mut self, plan: &dyn Fft<T>) {
        plan.process_with_scratch(&mut self.lines, &mut self.scratch);
    }
}

vectorize!(together[T: Transformed](re: &[T], im: &[T], to: &mut [Complex<T>]) => together_body::<T>);

#[inline(always)]
fn together_body<T: Transformed>(re: &[T], im: &[T], to: &mut [Complex<T>]) {
    to.iter_mut().zip(re.iter().zip(im)).for_each(|(slot, (&re, &im))| *slot = Complex::new(re, im));
}

vectorize!(apart[T: Transformed](from: &[Complex<T>], sign: T, real: &mut [T], imag: &mut [T]) => apart_body::<T>);

/// Real parts, and imaginary parts times a sign.
#[inline(always)]
fn apart_body<T: Transformed>(from: &[Complex<T>], sign: T, real: &mut [T], imag: &mut [T]) {
    for ((real, imag), value) in real.iter_mut().zip(imag).zip(from) {
        (*real, *imag) = (value.re, value.im * sign);
    }
}

/// `E + turn O` of a number and its opposite, `(a + i b, c + i d)`: see [`untangle`].
#[inline(always)]
pub fn joined<T: Transformed>([a, b]: [T; 2], [c, d]: [T; 2], [cos, sin]: [T; 2], sign: T) -> [T; 2] {
    let half = T::one() / (T::one() + T::one());
    let (even, odd) = (((a + c) * half, (b - d) * half), ((b + d) * half, (c - a) * half));
    [even.0 + (cos * odd.0 - sin * odd.1), (even.1 + (cos * odd.1 + sin * odd.0)) * sign]
}

vectorize!(
    untangle[T: Transformed](from: &[Complex<T>], turns: [&[T]; 2], sign: T, to: [&mut [T]; 2]) => untangle_body::<T>
);

/// The transform of a line x of n elements from that of `x[2 j] + i x[2 j + 1]`, Z: `E + exp(-2 pi i k / n) O`, where E and O
/// are the transforms of the even and the odd elements, `(Z[k] + conj Z[-k]) / 2` and `(Z[k] - conj Z[-k]) / 2i`.
#[inline(always)]
fn untangle_body<T: Transformed>(from: &[Complex<T>], [cos, sin]: [&[T]; 2], sign: T, [real, imag]: [&mut [T]; 2]) {
    let Some((first, others)) = from.split_first() else { return };
    let half = from.len();
    (real[0], imag[0]) = (first.re + first.im, T::zero());
    (real[half], imag[half]) = (first.re - first.im, T::zero());
    let turns = cos[1..half].iter().zip(&sin[1..half]);
    let slots = real[1..half].iter_mut().zip(&mut imag[1..half]);
    for (((here, there), (&cos, &sin)), (real, imag)) in others.iter().zip(others.iter().rev()).zip(turns).zip(slots) {
        [*real, *imag] = joined([here.re, here.im], [there.re, there.im], [cos, sin], sign);
    }
    mirror_body(half + 1, real, imag);
}

vectorize!(mirror[T: Transformed](first: usize, real: &mut [T], imag: &mut [T]) => mirror_body::<T>);

/// The conjugates of the numbers before `first`, behind them from back to front; the number at 0 has none.
#[inline(always)]
fn mirror_body<T: Transformed>(first: usize, real: &mut [T], imag: &mut [T]) {
    let (known, rest) = real.split_at_mut(first);
    let count = rest.len();
    rest.iter_mut().zip(known[1.min(first)..][..count].iter().rev()).for_each(|(slot, &x)| *slot = x);
    let (known, rest) = imag.split_at_mut(first);
    rest.iter_mut().zip(known[1.min(first)..][..count].iter().rev()).for_each(|(slot, &x)| *slot = -x);
}
