//! Few rows times a right side that is stored by columns: dot products, read where they are.

use super::Matrix;
use super::call::{Call, finish, in_place, run};
use super::epilogue::Sum;
use super::format::{Format, Single, load, load_partial};
use crate::dtype::Float;
use crate::error::Result;
use crate::machine::lanes::{Block, Kernel, Lanes, Real, launch};
use crate::machine::threads::SharedMut;
use crate::memory::owned::Memory;
use crate::memory::scratch::{filled, with_scratch};

/// Elements of one dot product that are added up before their sum goes to the others.
const PIECE: usize = 1 << 14;
/// Elements of one dot product that are worth a second thread.
const SHARED: usize = 1 << 17;

/// The product of few rows by dot products.
///
/// # Safety
/// As [`super::multiply`]; the row step of the right side is 1.
pub unsafe fn multiply<T: Float<Wide: Sum>>(call: &Call<T>, split: bool) -> Result<()> {
    let (m, k, _) = call.size;
    // Rows of the left side in runs of the wide type: as they are, or copied once for all tasks.
    let (mut left, mut left_row, mut held) = (call.a.start.cast::<T::Wide>().cast_const(), call.a.row, None);
    if !Single::<T>::DIRECT || call.a.col != 1 {
        let copy = held.insert(Memory::new(m * k * size_of::<T::Wide>())?);
        let lines = copy.data().cast::<T::Wide>();
        for (i, l) in (0..k).flat_map(|l| (0..m).map(move |i| (i, l))) {
            // SAFETY: inside the left side, and inside the copy.
            lines.add(i * k + l).write((*call.a.at(i, l).start).widen());
        }
        (left, left_row) = (lines.cast_const(), k as isize);
    }
    let left = SharedMut::new(left.cast_mut());
    if (m, call.size.2) == (1, 1) {
        // SAFETY: a run of the left side, and a right side as the caller promises.
        dot(call, left, split);
        return Ok(());
    }
    call.by_columns(split, 16, &|range| {
        let cols = range.len();
        let (c, end) = (call.c.at(0, range.start), call.end.at(0, range.start));
        let sums = in_place(c);
        with_scratch(if sums.is_some() { 0 } else { m * cols }, |aside: &mut [T::Wide]| {
            let (to, pitch) = sums.map_or((aside.as_mut_ptr(), cols as isize), |to| (to, c.row));
            let right = call.b.at(0, range.start);
            launch(Dots::<T> { k, rows: m, cols, left: left.ptr(), left_row, right, to, pitch });
            finish(to, pitch, (m, cols), c, end);
        });
    });
    Ok(())
}

/// `rows x cols` dot products of length `k`.
pub struct Dots<T: Float> {
    /// Length.
    pub k: usize,
    /// Of the left side.
    pub rows: usize,
    /// Of the right side.
    pub cols: usize,
    /// Rows of the left side, each in one run.
    pub left: *const T::Wide,
    /// From one row to the next.
    pub left_row: isize,
    /// The right side; its row step is 1.
    pub right: Matrix<T>,
    /// The results.
    pub to: *mut T::Wide,
    /// From one row of the results to the next.
    pub pitch: isize,
}

impl<T: Float<Wide: Real>> Kernel<T::Wide> for Dots<T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T::Wide>>(self) {
        let mut col = 0;
        // Eight streams of one row, or four of several: enough of them to keep the memory busy.
        let across = if self.rows == 1 { 8 } else { 4 };
        while col < self.cols {
            let whole = self.cols - col >= across;
            let mut row = 0;
            while row < self.rows {
                let high = if V::ROWS > 6 { (self.rows - row).min(4) } else { (self.rows - row).min(2) };
                match (whole, self.rows, high) {
                    (true, 1, _) => self.tile::<V, 1, 8>(row, col),
                    (true, _, 1) => self.tile::<V, 1, 4>(row, col),
                    (true, _, 2) => self.tile::<V, 2, 4>(row, col),
                    (true, _, 3) => self.tile::<V, 3, 4>(row, col),
                    (true, _, _) => self.tile::<V, 4, 4>(row, col),
                    (_, _, 1) => self.tile::<V, 1, 1>(row, col),
                    (_, _, 2) => self.tile::<V, 2, 1>(row, col),
                    (_, _, 3) => self.tile::<V, 3, 1>(row, col),
                    _ => self.tile::<V, 4, 1>(row, col),
                }
                row += high;
            }
            col += if whole { across } else { 1 };
        }
    }
}

/// One dot product, piece by piece: the pieces follow from its length alone.
///
/// # Safety
/// As `multiply`, of one row and one column, each in one run; the row is `left`.
pub unsafe fn dot<T: Float<Wide: Sum>>(call: &Call<T>, left: SharedMut<T::Wide>, split: bool) {
    let k = call.size.1;
    let pieces = k.div_ceil(PIECE);
    // Most are one piece, for which there is room without an allocation.
    let mut one = [T::Wide::default()];
    let mut more;
    let sums = if pieces <= 1 {
        &mut one[..pieces]
    } else {
        more = filled(T::Wide::default(), pieces);
        &mut more[..]
    };
    let (right, to) = (call.b, SharedMut::new(sums.as_mut_ptr()));
    run(split && k >= SHARED, pieces, &|piece| {
        let from = piece * PIECE;
        launch(Dot::<T> {
            k: PIECE.min(k - from),
            left: left.ptr().wrapping_add(from),
            right: right.at(from, 0).start,
            to: to.ptr().wrapping_add(piece),
        });
    });
    let mut total = sums.iter().fold(T::Wide::default(), |total, &sum| total + sum);
    match in_place(call.c).filter(|_| call.end.is_empty()) {
        // SAFETY: the one element of the result, which is the caller's.
        Some(to) => *to = total,
        None => finish(&raw mut total, 1, (1, 1), call.c, call.end),
    }
}

/// One dot product of two runs: sums in as many registers as keep the memory busy.
pub struct Dot<T: Float> {
    /// Length.
    pub k: usize,
    /// The left side.
    pub left: *const T::Wide,
    /// The right side.
    pub right: *const T,
    /// The result.
    pub to: *mut T::Wide,
}

impl<T: Float<Wide: Real>> Kernel<T::Wide> for Dot<T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T::Wide>>(self) {
        const ABREAST: usize = 8;
        let Self { k, left, right, to } = self;
        let mut sums = [V::splat(T::Wide::default()); ABREAST];
        let mut at = 0;
        while at + ABREAST * V::N <= k {
            for (i, sum) in sums.iter_mut().enumerate() {
                let value = load::<T, V>(right.add(at + i * V::N));
                *sum = V::load(left.add(at + i * V::N)).mul_add(value, *sum);
            }
            at += ABREAST * V::N;
        }
        while at < k {
            let count = V::N.min(k - at);
            let whole = count == V::N;
            let value = if whole { load::<T, V>(right.add(at)) } else { load_partial::<T, V>(right.add(at), count) };
            sums[0] = V::load_partial(left.add(at), count).mul_add(value, sums[0]);
            at += count;
        }
        let [a, b, c, d, e, f, g, h] = sums;
        let total = a.add(e).add(b.add(f)).add(c.add(g).add(d.add(h)));
        *to = total.sum();
    }
}

impl<T: Float<Wide: Real>> Dots<T> {
    #[inline(always)]
    unsafe fn tile<V: Lanes<Elem = T::Wide>, const R: usize, const C: usize>(&self, row: usize, col: usize) {
        let mut left = [self.left; R];
        for (i, line) in left.iter_mut().enumerate() {
            *line = self.left.wrapping_offset((row + i) as isize * self.left_row);
        }
        let mut right = [self.right.start.cast_const(); C];
        for (j, line) in right.iter_mut().enumerate() {
            *line = self.right.at(0, col + j).start;
        }
        let mut sums = [[V::splat(T::Wide::default()); C]; R];
        let mut at = 0;
        while at + V::N <= self.k {
            let mut factors = [V::splat(T::Wide::default()); R];
            for i in 0..R {
                factors[i] = V::load(left[i].add(at));
            }
            for j in 0..C {
                let value = load::<T, V>(right[j].add(at));
                for i in 0..R {
                    sums[i][j] = factors[i].mul_add(value, sums[i][j]);
                }
            }
            at += V::N;
        }
        if at < self.k {
            for j in 0..C {
                let value = load_partial::<T, V>(right[j].add(at), self.k - at);
                for i in 0..R {
                    let factor = V::load_partial(left[i].add(at), self.k - at);
                    sums[i][j] = factor.mul_add(value, sums[i][j]);
                }
            }
        }
        // A copy: what has an address does not stay in registers.
        let done = sums;
        self.put::<V, R, C>(row, col, &done);
    }

    /// Adds the lanes of each register, in order: as many registers at a time as they have lanes, turned.
    #[inline(always)]
    unsafe fn put<V: Lanes<Elem = T::Wide>, const R: usize, const C: usize>(
        &self,
        row: usize,
        col: usize,
        sums: &[[V; C]; R],
    ) {
        let mut lines = [T::Wide::default(); 256];
        // SAFETY: at most 16 registers of at most 16 lanes; the results belong to the caller.
        for (at, sum) in sums.as_flattened().iter().enumerate() {
            sum.store(lines.as_mut_ptr().add(at * V::N));
        }
        for first in (0..R * C).step_by(V::N) {
            let mut turned = [T::Wide::default(); 256];
            let rows = V::N.min(R * C - first);
            let block = Block { at: lines.as_ptr().add(first * V::N), pitch: V::N, rows, cols: V::N };
            V::transpose(block, turned.as_mut_ptr(), V::N, V::N);
            let mut total = V::load(turned.as_ptr());
            for line in 1..V::N {
                total = total.add(V::load(turned.as_ptr().add(line * V::N)));
            }
            let mut totals = [T::Wide::default(); 16];
            total.store(totals.as_mut_ptr());
            for (at, &value) in totals[..rows].iter().enumerate() {
                let (i, j) = ((first + at) / C, (first + at) % C);
                *self.to.offset((row + i) as isize * self.pitch).add(col + j) = value;
            }
        }
    }
}
