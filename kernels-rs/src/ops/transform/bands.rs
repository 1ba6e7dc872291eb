//! Columns side by side, some of them at a time.

use super::Transformed;
use super::butterfly::turned_by;
use super::columns::{Columns, Rows};
use super::real::Halves;
use super::rows::sign;
use crate::dtype::Element;
use crate::machine::lanes::{Kernel, Lanes, Real, launch};
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::with_scratch;
use std::ops::Range;

/// Elements of the columns of a task: what is between two stages stays in the second-level cache.
const TASK: usize = 1 << 14;
/// Columns of a task, at least: cache lines of the operands are used whole.
const LEAST: usize = 16;

/// Which columns, and what becomes of them.
pub struct Bands {
    /// Elements of a column.
    pub n: usize,
    /// Elements of a column of results.
    pub out: usize,
    /// Columns that lie side by side.
    pub beside: usize,
    /// Matrices of such columns.
    pub batches: usize,
    pub inverse: bool,
}

impl Bands {
    /// Runs `work(batch, columns)` over all columns, in parallel.
    fn run(&self, work: &(dyn Fn(usize, Range<usize>) + Sync)) {
        let width = (TASK / self.n / LEAST * LEAST).max(LEAST);
        let bands = self.beside.div_ceil(width);
        threads::parallel(self.batches * bands, &|task| {
            let (batch, first) = (task / bands, task % bands * width);
            work(batch, first..self.beside.min(first + width));
        });
    }

    /// Columns of two parts.
    pub fn complex<T: Transformed>(&self, plan: &Columns<T>, from: [&[T]; 2], to: [SharedMut<T>; 2]) {
        let (n, pitch) = (self.n, self.beside);
        let size = self.batches * n * pitch;
        assert!(from[0].len() == size && from[1].len() == size && plan.length == n && self.out == n);
        self.run(&|batch, columns| {
            let (at, width) = (batch * n * pitch + columns.start, columns.len());
            with_scratch::<T, _>(4 * n * width, |room| {
                let place = places(room, n * width, width);
                // SAFETY: `width` columns of this matrix, each task its own.
                let to = unsafe { Rows { re: to[0].ptr().add(at), im: to[1].ptr().add(at), pitch } };
                let from = Rows::new(&from[0][at..], &from[1][at..], pitch);
                // With both parts in each other's place, conjugates times i.
                let (from, to) = if self.inverse { (from.turned(), to.turned()) } else { (from, to) };
                // SAFETY: operands, results and room have `n` rows of `width` elements, and none of them overlap.
                unsafe { plan.run(from, to, width, place) };
            });
        });
    }

    /// Real columns of even length: each second row is the imaginary part of the one before.
    pub fn halved<T: Transformed>(
        &self,
        plan: &Columns<T>,
        halves: &Halves<T>,
        from: &[T],
        results: [SharedMut<T>; 2],
    ) {
        let (n, out, half, pitch) = (self.n, self.out, self.n / 2, self.beside);
        assert!(from.len() == self.batches * n * pitch && plan.length == half && (out == n || out == half + 1));
        let sign = sign(self.inverse);
        self.run(&|batch, columns| {
            let (first, width) = (batch * n * pitch + columns.start, columns.len());
            with_scratch::<T, _>(4 * half * width, |room| {
                let (place, found) = room.split_at_mut(2 * half * width);
                let ((re, im), (real, imag)) = (place.split_at_mut(half * width), found.split_at_mut(half * width));
                let rows = Rows::new(&from[first..], &from[first + pitch..], 2 * pitch);
                let to = Rows::over(real, imag, width);
                // SAFETY: operands, results and place have `half` rows of `width` elements, and none of them overlap.
                unsafe { plan.run(rows, to, width, [to, Rows::over(re, im, width)]) };
                let (real, imag) = (&*real, &*imag);
                for k in 0..=half / 2 {
                    let row = |k: usize| {
                        let row = k % half * width..(k % half + 1) * width;
                        [real[row.clone()].as_ptr(), imag[row].as_ptr()]
                    };
                    let slots = |k: usize| {
                        let at = (batch * out + k) * pitch + columns.start;
                        // SAFETY: a row of the results.
                        unsafe { [results[0].ptr().add(at), results[1].ptr().add(at)] }
                    };
                    let mirrored = (out == n && k > 0).then(|| [slots(n - k), slots(half + k)]);
                    let (from, to) = ([row(k), row(half - k)], [slots(k), slots(half - k)]);
                    launch(Untangle { from, turn: halves.at(k), sign, to, mirrored, width, first: k == 0 });
                }
            });
        });
    }
}

/// Two places of rows that lie together.
fn places<T: Transformed>(room: &mut [T], len: usize, width: usize) -> [Rows<T>; 2] {
    let (first, second) = room.split_at_mut(2 * len);
    [first, second].map(|place| {
        let (re, im) = place.split_at_mut(len);
        Rows::over(re, im, width)
    })
}

/// Of some columns, the numbers at k and at half - k from those of their halves, and their conjugates: as of lines.
struct Untangle<T> {
    from: [[*const T; 2]; 2],
    /// Half of it.
    turn: [T; 2],
    sign: T,
    to: [[*mut T; 2]; 2],
    mirrored: Option<[[*mut T; 2]; 2]>,
    width: usize,
    /// At 0 and half, where sums of real numbers have no imaginary part.
    first: bool,
}

impl<T: Real> Kernel<T> for Untangle<T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let [near, far] = self.from;
        // SAFETY: all rows have `width` elements, which each task has alone where they are written.
        let (one_half, sign) = (V::splat(Element::from_f64(0.5)), V::splat(self.sign));
        let (minus, zero) = (V::splat(Element::from_f64(-1.0)), V::splat(T::default()));
        let turn = [V::splat(self.turn[0]), V::splat(self.turn[1])];
        for at in (0..self.width).step_by(V::N) {
            let count = V::N.min(self.width - at);
            let (a, b) = (V::load_some(near[0].add(at), count), V::load_some(near[1].add(at), count));
            let (c, d) = (V::load_some(far[0].add(at), count), V::load_some(far[1].add(at), count));
            let (re, im) = turned_by((b.add(d), c.sub(a)), turn);
            let (sum, gap) = (a.add(c), b.sub(d));
            let (near_re, near_im) = (sum.mul_add(one_half, re), gap.mul_add(one_half, im).mul(sign));
            let (far_re, far_im) = (sum.mul_sub(one_half, re), gap.mul_sub(one_half, im).mul(sign));
            let (near_im, far_im) = if self.first { (zero, zero) } else { (near_im, far_im) };
            let [[to_re, to_im], [to_far_re, to_far_im]] = self.to;
            near_re.store_some(to_re.add(at), count);
            near_im.store_some(to_im.add(at), count);
            far_re.store_some(to_far_re.add(at), count);
            far_im.mul(minus).store_some(to_far_im.add(at), count);
            if let Some([[to_re, to_im], [to_far_re, to_far_im]]) = self.mirrored {
                near_re.store_some(to_re.add(at), count);
                near_im.mul(minus).store_some(to_im.add(at), count);
                far_re.store_some(to_far_re.add(at), count);
                far_im.store_some(to_far_im.add(at), count);
            }
        }
    }
}
