//! Lines one after another.

use super::line::From;
use super::plans::{Transformed, halves_plan, lines_plan};
use super::real::{tangle, untangle, weave};
use crate::array::reader::Reader;
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
    fn run<T: Transformed, const N: usize>(&self, rooms: [usize; N], work: Work<'_, T, N>) {
        let together = (TASK / self.n).max(1);
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
        self.run([plan.room()], &|lines, [room]: [&mut [T]; 1]| {
            for at in lines {
                let line = at * n..(at + 1) * n;
                let from = [re, im].map(|part| part.part::<T>(line.clone(), &mut []));
                plan.run(From::Parts(from[0], from[1]), results(to, line), room);
            }
        });
    }

    /// Real lines of odd length. Half of the results tells the other: they are conjugates.
    pub fn odd<T: Transformed>(&self, re: &Reader<'_, T>, to: [SharedMut<T>; 2]) {
        let (n, out, plan) = (self.n, self.out, lines_plan::<T>(self.n));
        self.run([n, n, n, plan.room()], &|lines, [zeros, real, imag, room]: [&mut [T]; 4]| {
            zeros.fill(T::zero());
            for at in lines {
                let from = re.part::<T>(at * n..(at + 1) * n, &mut []);
                plan.run(From::Parts(from, zeros), [&mut *real, &mut *imag], room);
                // The sum of real numbers has no imaginary part.
                imag[0] = T::zero();
                let [to_real, to_imag] = results(to, at * out..(at + 1) * out);
                let sign = self.sign::<T>();
                for k in 0..out {
                    let (near, sign) = if k <= n / 2 { (k, sign) } else { (n - k, -sign) };
                    (to_real[k], to_imag[k]) = (real[near], imag[near] * sign);
                }
            }
        });
    }

    /// Real lines of even length.
    pub fn halved<T: Transformed>(&self, re: &Reader<'_, T>, to: [SharedMut<T>; 2]) {
        let (n, out, half) = (self.n, self.out, self.n / 2);
        let (plan, halves) = (lines_plan::<T>(half), halves_plan::<T>(n));
        self.run([half + 1, half + 1, plan.room()], &|lines, [real, imag, room]: [&mut [T]; 3]| {
            for at in lines {
                let from = re.part::<T>(at * n..(at + 1) * n, &mut []);
                let to = results(to, at * out..(at + 1) * out);
                ask(&to);
                plan.run(From::Pairs(from), [&mut real[..half], &mut imag[..half]], room);
                (real[half], imag[half]) = (real[0], imag[0]);
                untangle([real, imag], &halves, self.sign(), to);
            }
        });
    }

    /// Lines of even length that become real: from half of their transforms.
    pub fn mended<T: Transformed>(&self, re: &Reader<'_, T>, im: &Reader<'_, T>, to: SharedMut<T>) {
        let (n, half) = (self.n, self.n / 2);
        let (plan, halves) = (lines_plan::<T>(half), halves_plan::<T>(n));
        let rooms = [half + 1, half + 1, half, half, plan.room()];
        self.run(rooms, &|lines, [whole, parts, real, imag, room]: [&mut [T]; 5]| {
            for at in lines {
                let from = [re, im].map(|part| part.part::<T>(at * (half + 1)..(at + 1) * (half + 1), &mut []));
                // SAFETY: tasks ask for their own lines, which are inside the results.
                let to = [unsafe { to.slice(at * n..(at + 1) * n) }];
                ask(&to);
                tangle(from, &halves, [&mut *whole, &mut *parts]);
                // The inverse, as of lines of two parts.
                plan.run(From::Parts(&parts[..half], &whole[..half]), [&mut *imag, &mut *real], room);
                let [to] = to;
                weave(real, imag, to);
            }
        });
    }

    /// Those of odd length.
    pub fn mended_odd<T: Transformed>(&self, re: &Reader<'_, T>, im: &Reader<'_, T>, to: SharedMut<T>) {
        let (n, known) = (self.n, self.n / 2 + 1);
        let plan = lines_plan::<T>(n);
        self.run([n, n, n, plan.room()], &|lines, [real, imag, lost, room]: [&mut [T]; 4]| {
            for at in lines {
                let [re, im] = [re, im].map(|part| part.part::<T>(at * known..(at + 1) * known, &mut []));
                (real[0], imag[0]) = (re[0], T::zero());
                for k in 1..known {
                    (real[k], imag[k]) = (re[k], im[k]);
                    (real[n - k], imag[n - k]) = (re[k], -im[k]);
                }
                // SAFETY: tasks ask for their own lines, which are inside the results.
                let to = unsafe { to.slice(at * n..(at + 1) * n) };
                plan.run(From::Parts(imag, real), [&mut *lost, to], room);
            }
        });
    }

    /// Of the imaginary parts of what is real: the inverse is the conjugate.
    fn sign<T: Transformed>(&self) -> T {
        if self.inverse { -T::one() } else { T::one() }
    }
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
