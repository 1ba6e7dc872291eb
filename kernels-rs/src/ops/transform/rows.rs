//! Lines one after another.

use super::line::From;
use super::plans::{Transformed, halves_plan, lines_plan};
use super::real::{tangle, untangle, weave};
use crate::array::reader::Reader;
use crate::dtype::Element;
use crate::machine::simd::prefetch_to_write;
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::Arena;
use std::ops::Range;

/// Elements per task.
const TASK: usize = 1 << 13;
/// Bytes of results that are asked for before the work that leads to them begins, at most: a quarter of the first-level cache. Of
/// 512 numbers all 512 lines take 0.8 of the time, of 4096 they would take 1.1 times as long (Intel Xeon, family 6, model 207).
const ASKED: usize = 12 << 10;

/// What is done to some lines, with rooms for them.
type Work<'a, T, const N: usize> = &'a (dyn Fn(Range<usize>, [&mut [T]; N]) + Sync);

/// Which lines, and what becomes of them.
pub struct Job {
    /// Elements of a line, and of its transform.
    pub n: usize,
    /// Elements of a line of results.
    pub out: usize,
    pub inverse: bool,
    pub lines: usize,
}

impl Job {
    /// Runs `work(lines, room)`, in parallel, with rooms for so many elements.
    fn run<T: Transformed, const N: usize>(&self, beside: usize, rooms: [usize; N], work: Work<'_, T, N>) {
        let together = (TASK / self.n).max(1).next_multiple_of(beside);
        threads::parallel(self.lines.div_ceil(together), &|task| {
            let lines = task * together..self.lines.min((task + 1) * together);
            let bytes = rooms.map(|len| len.saturating_mul(size_of::<T>()));
            Arena::with(bytes, |mut room| work(lines, rooms.map(|len| room.take::<T>(len))));
        });
    }

    /// Lines of two parts.
    pub fn complex<T: Transformed>(&self, re: &Reader<'_, T>, im: &Reader<'_, T>, to: [SharedMut<T>; 2]) {
        let (n, plan) = (self.n, lines_plan::<T>(self.n));
        // With both parts in each other's place, conjugates times i: forwards, what the inverse gives, turned so too.
        let (re, im, to) = if self.inverse { (im, re, [to[1], to[0]]) } else { (re, im, to) };
        self.run(plan.beside(), [plan.room()], &|lines, [room]: [&mut [T]; 1]| {
            let line = |at: usize| at * n..(at + 1) * n;
            plan.run_all(
                lines,
                room,
                &mut |at, give| {
                    let [re, im] = [re, im].map(|part| part.part::<T>(line(at), &mut []));
                    give(From::Parts(re, im));
                },
                &mut |at, take| take(results(to, line(at))),
            );
        });
    }

    /// Real lines of odd length. Half of the results tells the other: they are conjugates.
    pub fn odd<T: Transformed>(&self, re: &Reader<'_, T>, to: [SharedMut<T>; 2]) {
        let (n, out, plan) = (self.n, self.out, lines_plan::<T>(self.n));
        self.run(plan.beside(), [n, n, n, plan.room()], &|lines, [zeros, real, imag, room]: [&mut [T]; 4]| {
            zeros.fill(T::default());
            let given = &mut |at: usize, give: &mut dyn FnMut(From<'_, T>)| {
                give(From::Parts(re.part::<T>(at * n..(at + 1) * n, &mut []), zeros));
            };
            plan.run_all(lines, room, given, &mut |at, take| {
                take([&mut *real, &mut *imag]);
                // The sum of real numbers has no imaginary part.
                imag[0] = T::default();
                let [to_real, to_imag] = results(to, at * out..(at + 1) * out);
                for k in 0..out {
                    let (near, sign) = if k <= n / 2 { (k, sign(self.inverse)) } else { (n - k, sign(!self.inverse)) };
                    (to_real[k], to_imag[k]) = (real[near], imag[near] * sign);
                }
            });
        });
    }

    /// Real lines of even length.
    pub fn halved<T: Transformed>(&self, re: &Reader<'_, T>, to: [SharedMut<T>; 2]) {
        let (n, out, half) = (self.n, self.out, self.n / 2);
        let (plan, halves) = (lines_plan::<T>(half), halves_plan::<T>(n));
        self.run(plan.beside(), [half + 1, half + 1, plan.room()], &|lines, [real, imag, room]: [&mut [T]; 3]| {
            let given = &mut |at: usize, give: &mut dyn FnMut(From<'_, T>)| {
                give(From::Pairs(re.part::<T>(at * n..(at + 1) * n, &mut [])));
            };
            plan.run_all(lines, room, given, &mut |at, take| {
                let to = results(to, at * out..(at + 1) * out);
                ask(&to);
                take([&mut real[..half], &mut imag[..half]]);
                (real[half], imag[half]) = (real[0], imag[0]);
                untangle([real, imag], &halves, sign(self.inverse), to);
            });
        });
    }

    /// Lines of even length that become real: from half of their transforms.
    pub fn mended<T: Transformed>(&self, re: &Reader<'_, T>, im: &Reader<'_, T>, to: SharedMut<T>) {
        let (n, half) = (self.n, self.n / 2);
        let (plan, halves) = (lines_plan::<T>(half), halves_plan::<T>(n));
        let rooms = [half + 1, half + 1, half, half, plan.room()];
        self.run(plan.beside(), rooms, &|lines, [whole, parts, real, imag, room]: [&mut [T]; 5]| {
            let given = &mut |at: usize, give: &mut dyn FnMut(From<'_, T>)| {
                let from = [re, im].map(|part| part.part::<T>(at * (half + 1)..(at + 1) * (half + 1), &mut []));
                tangle(from, &halves, [&mut *whole, &mut *parts]);
                // The inverse, as of lines of two parts.
                give(From::Parts(&parts[..half], &whole[..half]));
            };
            plan.run_all(lines, room, given, &mut |at, take| {
                // SAFETY: tasks ask for their own lines, which are inside the results.
                let to = [unsafe { to.slice(at * n..(at + 1) * n) }];
                ask(&to);
                take([&mut *imag, &mut *real]);
                let [to] = to;
                weave(real, imag, to);
            });
        });
    }

    /// Those of odd length.
    pub fn mended_odd<T: Transformed>(&self, re: &Reader<'_, T>, im: &Reader<'_, T>, to: SharedMut<T>) {
        let (n, known) = (self.n, self.n / 2 + 1);
        let plan = lines_plan::<T>(n);
        self.run(plan.beside(), [n, n, n, plan.room()], &|lines, [real, imag, lost, room]: [&mut [T]; 4]| {
            let given = &mut |at: usize, give: &mut dyn FnMut(From<'_, T>)| {
                let [re, im] = [re, im].map(|part| part.part::<T>(at * known..(at + 1) * known, &mut []));
                (real[0], imag[0]) = (re[0], T::default());
                for k in 1..known {
                    (real[k], imag[k]) = (re[k], im[k]);
                    (real[n - k], imag[n - k]) = (re[k], im[k] * sign(true));
                }
                give(From::Parts(imag, real));
            };
            plan.run_all(lines, room, given, &mut |at, take| {
                // SAFETY: tasks ask for their own lines, which are inside the results.
                let to = unsafe { to.slice(at * n..(at + 1) * n) };
                take([&mut *lost, to]);
            });
        });
    }
}

/// Of the imaginary parts of what is real: the inverse is the conjugate.
pub fn sign<T: Transformed>(inverse: bool) -> T {
    <T as Element>::from_f64(if inverse { -1.0 } else { 1.0 })
}

/// Asks for the memory of results, unless there is much of it.
fn ask<T>(to: &[&mut [T]]) {
    if size_of_val(to[0]) * to.len() <= ASKED {
        let lines = to.iter().flat_map(|part| part.chunks(64 / size_of::<T>()));
        lines.for_each(|line| prefetch_to_write(line.as_ptr()));
    }
}

/// A line of results, for writing: each task has its own.
fn results<'a, T>(to: [SharedMut<T>; 2], range: Range<usize>) -> [&'a mut [T]; 2] {
    // SAFETY: tasks ask for their own lines, which are inside the results.
    unsafe { [to[0].slice(range.clone()), to[1].slice(range)] }
}
