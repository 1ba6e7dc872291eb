//! Few queries (decoding): each key and value is read once, as it lies, and the speed is that of memory. Long key axes
//! are cut into pieces, whose results are merged in order.

use super::Job;
use super::heads::Rows;
use super::scores::{Score, powers};
use crate::array::Array;
use crate::array::float::{RowElement, Wide};
use crate::dtype::Element;
use crate::error::Result;
use crate::machine::lanes::{Block, Kernel, Lanes, Real, lane_count, launch};
use crate::machine::simd;
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::{Arena, filled};

/// Queries of all heads that share a head of keys, at most: with more, blocks of queries are faster.
pub const MOST: usize = 8;
/// Keys of a tile: its values stay in the second-level cache while several rows of weights use them.
const TILE: usize = 128;
/// Keys of a piece, at least: those of a tile are read in 10 us.
const PIECE: usize = TILE;
/// Bytes of keys and values below which a second thread is not worth waking: 10 us of what a core reads from memory.
const SERIAL: usize = 1 << 17;
/// Tasks to aim for: by shape, not by threads, since the parts of a sum are added up. Four for each of eight threads.
const TASKS: usize = 32;
/// Rows that go through the keys together.
const ROWS: usize = 4;

/// Fills the result, which is row-major `[.., heads, queries, values]`.
pub fn run<T: RowElement<Wide: Score>>(job: &Job<T>, out: &mut Array) -> Result<()> {
    let rows = job.heads / job.shared * job.queries;
    let heads = job.batch * job.shared;
    let (pieces, piece) = cut(heads, job.keys);
    let len = rows * (job.values + 2);
    let mut parts = Array::uninit(<T::Wide as Element>::DTYPE, &[heads * pieces, len])?;
    let shared = SharedMut::new(parts.mut_ptr::<T::Wide>());
    let task = |index: usize| {
        let (head, first) = (index / pieces, index % pieces * piece);
        // SAFETY: each task has its own row.
        let to = unsafe { shared.slice(index * len..(index + 1) * len) };
        let bytes = scratch(job, rows) * size_of::<T::Wide>();
        Arena::with([bytes], |parts| part(job, head, (first, piece.min(job.keys - first)), parts, to));
    };
    if heads * job.keys * (job.size + job.values) * size_of::<T>() < SERIAL {
        (0..heads * pieces).for_each(task);
    } else {
        threads::parallel(heads * pieces, &task);
    }
    let parts = parts.as_slice::<T::Wide>().expect("row-major");
    let out = out.as_mut_slice::<T>().chunks_exact_mut(rows * job.values);
    for (out, parts) in out.zip(parts.chunks_exact(pieces * len)) {
        merge(job, rows, parts, out);
    }
    Ok(())
}

/// Pieces of a head, and keys of each but the last.
fn cut(heads: usize, keys: usize) -> (usize, usize) {
    let pieces = TASKS.div_ceil(heads).min(keys / PIECE).max(1);
    let piece = keys.div_ceil(pieces).next_multiple_of(TILE);
    (keys.div_ceil(piece), piece)
}

fn scratch<T: RowElement<Wide: Score>>(job: &Job<T>, rows: usize) -> usize {
    let lanes = lane_count::<T::Wide>();
    rows * (job.size + job.values.next_multiple_of(lanes) + TILE) + TILE * (job.size.max(job.values) + 1) + 16 * 6
}

/// Sums, total and top of each row over some of the keys.
fn part<T: RowElement<Wide: Score>>(
    job: &Job<T>,
    head: usize,
    (first, count): (usize, usize),
    mut parts: Arena<'_>,
    to: &mut [T::Wide],
) {
    let group = job.heads / job.shared;
    let rows = group * job.queries;
    let pitch = job.values.next_multiple_of(lane_count::<T::Wide>());
    let queries = parts.take(rows * job.size);
    let sums = parts.take(rows * pitch);
    let scores = parts.take(rows * TILE);
    let copy = parts.take(TILE * job.size.max(job.values));
    let change = parts.take(TILE);
    let place = |row: usize| (head * group + row / job.queries, row % job.queries);
    for row in 0..rows {
        let (head, query) = place(row);
        let to = &mut queries[row * job.size..][..job.size];
        // SAFETY: the row exists.
        unsafe { job.query.get(head).read(query, to, T::Wide::from_f64(job.query_unit())) };
    }
    sums.fill(T::Wide::ZERO);
    let (results, ends) = to.split_at_mut(rows * job.values);
    ends.chunks_exact_mut(2).for_each(|end| end.copy_from_slice(&[T::Wide::LOWEST, T::Wide::ZERO]));
    let last = first + count.min(job.changes.seen(job.queries - 1, job.keys).saturating_sub(first));
    for tile in (first..last).step_by(TILE) {
        let keys = TILE.min(last - tile);
        // SAFETY: the rows exist, the copy has room for a tile.
        unsafe {
            let (at, step) = job.key.get(head).from(tile, 0).dense((keys, job.size), copy.as_mut_ptr());
            let ahead = Ahead::new(job.value.get(head).from(tile, 0), job.values);
            let dots = Dots { queries, size: job.size, at, step, keys, ahead, to: &mut *scores };
            launch(dots);
        }
        for (row, end) in ends.chunks_exact_mut(2).enumerate() {
            let scores = &mut scores[row * TILE..][..keys];
            // SAFETY: the part lies inside the operands.
            unsafe { job.changes.apply_row(place(row), (tile, keys), job.cap_unit(), scores, &mut change[..keys]) };
            let fade = powers(scores, end);
            if fade != T::Wide::ONE {
                for slot in &mut sums[row * pitch..][..pitch] {
                    *slot = *slot * fade;
                }
            }
        }
        // SAFETY: the values of the tile lie inside the operand, and the copy has room for a tile.
        unsafe {
            let (at, step) = job.value.get(head).from(tile, 0).dense((keys, job.values), copy.as_mut_ptr());
            let more = if tile + TILE < last { job.size } else { 0 };
            let ahead = Ahead::new(job.key.get(head).from(tile + TILE, 0), more);
            launch(Mix { weights: scores, values: job.values, at, step, keys, ahead, to: &mut *sums });
        }
    }
    for (row, to) in sums.chunks_exact(pitch).zip(results.chunks_exact_mut(job.values)) {
        to.copy_from_slice(&row[..job.values]);
    }
}

/// Adds the pieces of a head up, each faded to the largest top.
fn merge<T: RowElement<Wide: Score>>(job: &Job<T>, rows: usize, parts: &[T::Wide], out: &mut [T]) {
    let len = rows * (job.values + 2);
    let mut sums = filled(T::Wide::ZERO, job.values);
    for row in 0..rows {
        let end = |part: &[T::Wide]| (part[rows * job.values + 2 * row], part[rows * job.values + 2 * row + 1]);
        let larger = |a: T::Wide, b: T::Wide| if b > a { b } else { a };
        let top = parts.chunks_exact(len).map(|part| end(part).0).fold(T::Wide::LOWEST, larger);
        let mut total = T::Wide::ZERO;
        sums.fill(T::Wide::ZERO);
        for part in parts.chunks_exact(len) {
            let (own, sum) = end(part);
            if own == T::Wide::LOWEST && sum == T::Wide::ZERO {
                continue;
            }
            let shift = if top == T::Wide::LOWEST { T::Wide::ZERO } else { top };
            let fade = (own - shift).power::<crate::math::Baseline>();
            total = total + sum * fade;
            for (slot, &x) in sums.iter_mut().zip(&part[row * job.values..]) {
                *slot = *slot + x * fade;
            }
        }
        let by = if total == T::Wide::ZERO { T::Wide::ONE } else { T::Wide::ONE / total };
        for slot in &mut sums {
            *slot = *slot * by;
        }
        T::save(&sums, &mut out[row * job.values..][..job.values]);
    }
}

/// Calls `rows` of a kernel for groups of at most `ROWS` rows, each with its number as a constant.
macro_rules! in_groups {
    ($kernel:expr, $lanes:ident, $rows:ident) => {
        for first in (0..$rows).step_by(ROWS) {
            // SAFETY: the caller promises the instructions and all rows; these are at most those that are left.
            unsafe {
                match $rows - first {
                    1 => $kernel.rows::<$lanes, 1>(first),
                    2 => $kernel.rows::<$lanes, 2>(first),
                    3 => $kernel.rows::<$lanes, 3>(first),
                    _ => $kernel.rows::<$lanes, ROWS>(first),
                }
            }
        }
    };
}

/// Rows that are wanted next, which are fetched while others are used: one by one, since a core asks for few lines at once.
#[derive(Clone, Copy)]
struct Ahead {
    at: *const u8,
    /// Bytes from one row to the next.
    step: isize,
    /// Bytes of a row.
    bytes: usize,
}

impl Ahead {
    /// Rows of so many columns; none are fetched that do not lie dense.
    fn new<T>(rows: Rows<T>, cols: usize) -> Self {
        let size = size_of::<T>();
        let bytes = if rows.col == 1 { cols * size } else { 0 };
        Self { at: rows.at.cast(), step: rows.row * size as isize, bytes }
    }

    #[inline(always)]
    fn fetch(self, row: usize) {
        let at = self.at.wrapping_offset(row as isize * self.step);
        for line in (0..self.bytes).step_by(64) {
            simd::prefetch(at.wrapping_add(line));
        }
    }
}

/// Scores: products of dense queries with keys that lie `step` apart, `TILE` to a row.
struct Dots<'a, W> {
    queries: &'a [W],
    size: usize,
    at: *const W,
    step: isize,
    keys: usize,
    ahead: Ahead,
    to: &'a mut [W],
}

impl<W: Score> Kernel<W> for Dots<'_, W> {
    const BASELINE: bool = false;
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = W>>(mut self) {
        let rows = self.to.len() / TILE;
        in_groups!(self, V, rows);
    }
}

impl<W: Real> Dots<'_, W> {
    #[expect(clippy::needless_range_loop, reason = "plain loops are sure to be unrolled into registers")]
    #[inline(always)]
    unsafe fn rows<V: Lanes<Elem = W>, const R: usize>(&mut self, first: usize) {
        // The registers of some keys, which are then turned over and added up together.
        let mut partial = [[W::default(); 256]; R];
        let mut turned = [W::default(); 256];
        let whole = self.size / V::N * V::N;
        let queries = self.queries[first * self.size..].as_ptr();
        for start in (0..self.keys).step_by(V::N) {
            let count = V::N.min(self.keys - start);
            // SAFETY: inside the rows and buffers.
            for key in 0..count {
                self.ahead.fetch(start + key);
                let at = self.at.wrapping_offset((start + key) as isize * self.step);
                let mut sums = [V::splat(W::default()); R];
                let mut d = 0;
                while d < whole {
                    let x = V::load(at.add(d));
                    for r in 0..R {
                        sums[r] = x.mul_add(V::load(queries.add(r * self.size + d)), sums[r]);
                    }
                    d += V::N;
                }
                if d < self.size {
                    let x = V::load_partial(at.add(d), self.size - d);
                    for r in 0..R {
                        let query = V::load_partial(queries.add(r * self.size + d), self.size - d);
                        sums[r] = x.mul_add(query, sums[r]);
                    }
                }
                for r in 0..R {
                    sums[r].store(partial[r].as_mut_ptr().add(key * V::N));
                }
            }
            for r in 0..R {
                let from = Block { at: partial[r].as_ptr(), pitch: V::N, rows: count, cols: V::N };
                V::transpose(from, turned.as_mut_ptr(), V::N, V::N);
                let mut sum = V::load(turned.as_ptr());
                for lane in 1..V::N {
                    sum = sum.add(V::load(turned.as_ptr().add(lane * V::N)));
                }
                let to = self.to.as_mut_ptr().add((first + r) * TILE + start);
                sum.store_partial(to, count);
            }
        }
    }
}

/// Adds values times weights: rows of `TILE` weights, values that lie `step` apart, sums in rows of whole registers.
struct Mix<'a, W> {
    weights: &'a [W],
    values: usize,
    at: *const W,
    step: isize,
    keys: usize,
    ahead: Ahead,
    to: &'a mut [W],
}

impl<W: Score> Kernel<W> for Mix<'_, W> {
    const BASELINE: bool = false;
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = W>>(mut self) {
        let rows = self.weights.len() / TILE;
        in_groups!(self, V, rows);
    }
}

impl<W: Real> Mix<'_, W> {
    #[inline(always)]
    unsafe fn rows<V: Lanes<Elem = W>, const R: usize>(&mut self, first: usize) {
        let mut col = 0;
        while col < self.values {
            // SAFETY: columns end at the last value.
            if V::ROWS > 6 && col + 4 * V::N <= self.values {
                self.columns::<V, R, 4>(first, col, V::N);
                col += 4 * V::N;
            } else if col + 2 * V::N <= self.values {
                self.columns::<V, R, 2>(first, col, V::N);
                col += 2 * V::N;
            } else {
                self.columns::<V, R, 1>(first, col, V::N.min(self.values - col));
                col += V::N;
            }
        }
    }

    /// `C` registers of columns; `count` of the last one are there.
    #[expect(clippy::needless_range_loop, reason = "plain loops are sure to be unrolled into registers")]
    #[inline(always)]
    unsafe fn columns<V: Lanes<Elem = W>, const R: usize, const C: usize>(
        &mut self,
        first: usize,
        col: usize,
        count: usize,
    ) {
        let pitch = self.values.next_multiple_of(V::N);
        // SAFETY: inside the rows.
        let mut sums = [[V::splat(W::default()); C]; R];
        let mut at = self.at.wrapping_add(col);
        let weights = self.weights.as_ptr().add(first * TILE);
        for key in 0..self.keys {
            if col == 0 {
                self.ahead.fetch(key);
            }
            let mut x = [V::splat(W::default()); C];
            for c in 0..C {
                let from = at.wrapping_add(c * V::N);
                x[c] = if C == 1 { V::load_partial(from, count) } else { V::load(from) };
            }
            for r in 0..R {
                let weight = V::splat(*weights.add(r * TILE + key));
                for c in 0..C {
                    sums[r][c] = weight.mul_add(x[c], sums[r][c]);
                }
            }
            at = at.wrapping_offset(self.step);
        }
        for r in 0..R {
            for c in 0..C {
                let to = self.to.as_mut_ptr().add((first + r) * pitch + col + c * V::N);
                V::load(to).add(sums[r][c]).store(to);
            }
        }
    }
}

#[cfg(test)]
mod tests;
