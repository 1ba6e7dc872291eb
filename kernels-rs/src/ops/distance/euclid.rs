//! Euclidean distances of `f32`: differences are squared and added in registers, a tile of some rows and columns at a time.
//! Of many coordinates `|a|² + |b|² - 2ab`, by products of this crate, takes a third as long, and stands where at most a bit
//! of it cancels: other distances, or blocks with many of these, are found by differences. What leaves the range is found in
//! `f64`.

use super::{GRAIN, WIDTH};
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::machine::lanes::{Kernel, Lanes, Real, launch};
use crate::machine::threads::{self, SharedMut};
use crate::memory::owned::Memory;
use crate::memory::scratch::{collected, filled, reserved};
use crate::ops::contraction::{Call, Epilogue, Matrix, multiply};
use crate::vectorize;
use std::ops::{Range, RangeInclusive};

/// Rows of a tile.
const ROWS: usize = 4;
/// Squares that are added before their sum goes to the others, so that errors grow slowly.
const DEPTH: usize = 32;
/// Coordinates from which on products are tried: of fewer, many rows are near each other.
const MANY: usize = 24;
/// Rows and columns of a block of products, which stay in the second-level cache.
const BLOCK: [usize; 2] = [256, 256];
/// Of how many distances of a block one may be found by itself; with more, all are found by tiles.
const FEW: usize = 16;
/// Sums of squares from the first to the second have lost nothing that counts.
const SAFE: RangeInclusive<f32> = 1e-30..=1e37;

/// Distances of `n` rows from `m` rows of `d` coordinates, for each of a batch.
pub fn batches<T: Element>(a: &[f32], b: &[f32], out: &mut [T], (n, m, d): (usize, usize, usize)) -> Result<()> {
    let batches = out.len() / (n * m);
    let job = Job { a, b, out: SharedMut::new(out.as_mut_ptr()), sizes: [n, m, d] };
    if d < MANY {
        let panels = m.div_ceil(WIDTH);
        let (jobs, together) = (batches * panels, (GRAIN / (n * d.max(1) * WIDTH)).max(1));
        threads::parallel(jobs.div_ceil(together), &|task| {
            for at in task * together..jobs.min((task + 1) * together) {
                let first = at % panels * WIDTH;
                job.by_differences(at / panels, 0..n, first..m.min(first + WIDTH));
            }
        });
        return Ok(());
    }
    let [high, wide] = BLOCK;
    let (down, across) = (n.div_ceil(high), m.div_ceil(wide));
    threads::try_parallel(batches * down * across, &|task| {
        let (top, left) = (task / across % down * high, task % across * wide);
        job.by_products(task / (down * across), top..n.min(top + high), left..m.min(left + wide))
    })
}

struct Job<'a, T> {
    a: &'a [f32],
    b: &'a [f32],
    out: SharedMut<T>,
    /// Rows of both, and coordinates.
    sizes: [usize; 3],
}

impl<T: Element> Job<'_, T> {
    /// A row of the first.
    fn row(&self, batch: usize, row: usize) -> &[f32] {
        let [n, _, d] = self.sizes;
        &self.a[(batch * n + row) * d..][..d]
    }

    /// Some rows of the second.
    fn others(&self, batch: usize, columns: &Range<usize>) -> &[f32] {
        let [_, m, d] = self.sizes;
        &self.b[(batch * m + columns.start) * d..(batch * m + columns.end) * d]
    }

    /// Where the distances of a row from some of the others go. Each task has its own.
    fn put(&self, batch: usize, row: usize, columns: &Range<usize>, distances: &[f32]) {
        let [n, m, _] = self.sizes;
        let to = (batch * n + row) * m;
        // SAFETY: some columns of a row of the result; each task has its own block.
        let out = unsafe { self.out.slice(to + columns.start..to + columns.end) };
        out.iter_mut().zip(distances).for_each(|(out, &distance)| *out = T::from_f64(f64::from(distance)));
    }

    /// By products, which lie where the distances go, if these are as wide.
    #[expect(clippy::cast_ptr_alignment, reason = "memory begins on a cache line")]
    fn by_products(&self, batch: usize, rows: Range<usize>, columns: Range<usize>) -> Result<()> {
        let [n, m, d] = self.sizes;
        let (high, wide) = (rows.len(), columns.len());
        let others = self.others(batch, &columns);
        let aside = if T::DTYPE == DType::F32 { None } else { Some(Memory::new(high * wide * size_of::<f32>())?) };
        let there = self.out.ptr().wrapping_add((batch * n + rows.start) * m + columns.start);
        let (to, pitch) = aside.as_ref().map_or((there.cast(), m), |held| (held.data().cast::<f32>(), wide));
        let call = Call {
            size: (high, d, wide),
            a: Matrix::new(self.row(batch, rows.start).as_ptr().cast_mut(), (d as isize, 1)),
            b: Matrix::new(others.as_ptr().cast_mut(), (1, d as isize)),
            c: Matrix::new(to, (pitch as isize, 1)),
            end: Epilogue::default(),
        };
        // SAFETY: rows of both that are only read, and a block of our own, in the result or aside.
        unsafe { multiply(&call, false, None)? };
        // SAFETY: the product has filled a row of the block, which nobody else has.
        let line = |row: usize| unsafe { std::slice::from_raw_parts_mut(to.add(row * pitch), wide) };
        let sizes = collected(others.chunks_exact(d).map(size));
        let own = |row: usize| self.row(batch, rows.start + row);
        let most = high * wide / FEW;
        let mut unknown = reserved(most + wide);
        for row in 0..high {
            launch(Distances { size: size(own(row)), sizes: &sizes, line: line(row), row, unknown: &mut unknown });
            if unknown.len() > most {
                for first in columns.clone().step_by(WIDTH) {
                    self.by_differences(batch, rows.clone(), first..columns.end.min(first + WIDTH));
                }
                return Ok(());
            }
        }
        for [row, column] in unknown {
            line(row)[column] = alone(own(row), &others[column * d..(column + 1) * d]);
        }
        if aside.is_some() {
            (0..high).for_each(|row| self.put(batch, rows.start + row, &columns, line(row)));
        }
        Ok(())
    }

    /// Of at most [`WIDTH`] columns.
    fn by_differences(&self, batch: usize, rows: Range<usize>, columns: Range<usize>) {
        let d = self.sizes[2];
        let others = self.others(batch, &columns);
        let mut panel = filled(0.0, d * WIDTH);
        for column in 0..columns.len() {
            (0..d).for_each(|i| panel[i * WIDTH + column] = others[column * d + i]);
        }
        for top in rows.clone().step_by(ROWS) {
            // The last row again where a tile ends behind it.
            let own: [&[f32]; ROWS] = std::array::from_fn(|row| self.row(batch, (top + row).min(rows.end - 1)));
            let mut sums = [[0.0; WIDTH]; ROWS];
            launch(Tile { rows: own, panel: &panel, sums: &mut sums });
            for (row, sums) in sums.iter_mut().enumerate().take(rows.end - top) {
                roots(sums, columns.len(), own[row], others);
                self.put(batch, top + row, &columns, &sums[..columns.len()]);
            }
        }
    }
}

/// The distance of two rows.
fn alone(a: &[f32], b: &[f32]) -> f32 {
    let square = gap(a, b);
    if SAFE.contains(&square) { square.sqrt() } else { exactly(a, b) }
}

/// Distances of sums of squares.
fn roots(sums: &mut [f32; WIDTH], width: usize, row: &[f32], others: &[f32]) {
    // Without coordinates all is 0, which is its own root.
    if row.is_empty() {
        return;
    }
    let squares = *sums;
    let mut safe = true;
    launch(Roots { of: sums, safe: &mut safe });
    if safe {
        return;
    }
    for ((sum, square), other) in sums.iter_mut().zip(&squares).take(width).zip(others.chunks_exact(row.len())) {
        if !SAFE.contains(square) {
            *sum = exactly(row, other);
        }
    }
}

/// Roots of numbers in their place, and whether all of these are [`SAFE`]; anything of those that are not.
struct Roots<'a> {
    of: &'a mut [f32; WIDTH],
    safe: &'a mut bool,
}

impl Kernel<f32> for Roots<'_> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = f32>>(self) {
        for first in (0..WIDTH).step_by(V::N) {
            // SAFETY: a whole number of registers.
            let at = self.of.as_mut_ptr().add(first);
            let squares = V::load(at);
            *self.safe &= squares.all_between(V::splat(*SAFE.start()), V::splat(*SAFE.end()));
            squares.near_sqrt().store(at);
        }
    }
}

vectorize!(exactly(a: &[f32], b: &[f32]) -> f32 => exactly_body);

#[inline(always)]
fn exactly_body(a: &[f32], b: &[f32]) -> f32 {
    let gap = |a: f32, b: f32| f64::from(a) - f64::from(b);
    in_sixteen(a, b, |sum: f64, a, b| sum + gap(a, b) * gap(a, b)).sqrt() as f32
}

vectorize!(size(row: &[f32]) -> f32 => size_body);

/// The sum of the squares of some coordinates.
#[inline(always)]
fn size_body(row: &[f32]) -> f32 {
    in_sixteen(row, row, |sum: f32, x, _| sum + x * x)
}

vectorize!(gap(a: &[f32], b: &[f32]) -> f32 => gap_body);

/// The sum of the squares of the differences of some coordinates.
#[inline(always)]
fn gap_body(a: &[f32], b: &[f32]) -> f32 {
    in_sixteen(a, b, |sum: f32, a, b| sum + (a - b) * (a - b))
}

/// A sum of pairs, in sixteen parts that are added by halves: one after another, each would wait for the one before it.
#[inline(always)]
fn in_sixteen<T: Real>(a: &[f32], b: &[f32], step: impl Fn(T, f32, f32) -> T) -> T {
    let mut sums = [T::default(); 16];
    let ((a, x), (b, y)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    for (a, b) in a.iter().zip(b) {
        (0..16).for_each(|i| sums[i] = step(sums[i], a[i], b[i]));
    }
    for (sum, (&a, &b)) in sums.iter_mut().zip(x.iter().zip(y)) {
        *sum = step(*sum, a, b);
    }
    for width in [8, 4, 2, 1] {
        (0..width).for_each(|i| sums[i] = sums[i] + sums[i + width]);
    }
    sums[0]
}

/// Distances of a row in the place of products; those where too much cancelled or left the range are told instead.
struct Distances<'a> {
    /// The sum of the squares of the row, and of each of the others.
    size: f32,
    sizes: &'a [f32],
    line: &'a mut [f32],
    row: usize,
    /// Rows and columns.
    unknown: &'a mut Vec<[usize; 2]>,
}

impl Kernel<f32> for Distances<'_> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = f32>>(self) {
        let Self { size, sizes, line, row, unknown } = self;
        assert_eq!(sizes.len(), line.len(), "a product of each");
        for first in (0..line.len()).step_by(V::N) {
            let some = V::N.min(line.len() - first);
            // SAFETY: as many products and sizes, and no register has more than 16 lanes.
            let at = line.as_mut_ptr().add(first);
            let both = V::splat(size).add(V::load_some(sizes.as_ptr().add(first), some));
            let squares = V::load_some(at, some).mul_add(V::splat(-2.0), both);
            let least = both.mul(V::splat(0.5)).max(V::splat(*SAFE.start()));
            squares.near_sqrt().store_some(at, some);
            if !squares.all_between(least, V::splat(*SAFE.end())) {
                let [mut lanes, mut limits] = [[0.0; 16]; 2];
                squares.store(lanes.as_mut_ptr());
                least.store(limits.as_mut_ptr());
                let known = |lane: usize| lanes[lane] >= limits[lane] && lanes[lane] <= *SAFE.end();
                unknown.extend((0..some).filter(|&lane| !known(lane)).map(|lane| [row, first + lane]));
            }
        }
    }
}

/// Sums of squares of differences of rows and the columns of a panel.
struct Tile<'a> {
    rows: [&'a [f32]; ROWS],
    panel: &'a [f32],
    sums: &'a mut [[f32; WIDTH]; ROWS],
}

impl Kernel<f32> for Tile<'_> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = f32>>(self) {
        let depth = self.rows[0].len();
        assert!(self.panel.len() >= depth * WIDTH && WIDTH.is_multiple_of(2 * V::N));
        let rows = self.rows.map(<[f32]>::as_ptr);
        // Rows have `depth` elements, registers lie inside a line of the panel, which has as many lines, and inside the sums.
        for column in (0..WIDTH).step_by(2 * V::N) {
            let mut total = [[V::splat(0.0); 2]; ROWS];
            let mut first = 0;
            while first < depth {
                let end = depth.min(first + DEPTH);
                let part = sums::<V>(rows, self.panel.as_ptr().add(column), first..end);
                for row in 0..ROWS {
                    total[row][0] = total[row][0].add(part[row][0]);
                    total[row][1] = total[row][1].add(part[row][1]);
                }
                first = end;
            }
            for (sums, total) in self.sums.iter_mut().zip(total) {
                total[0].store(sums.as_mut_ptr().add(column));
                total[1].store(sums.as_mut_ptr().add(column + V::N));
            }
        }
    }
}

/// The squares of some coordinates of a tile, added up. Sums are named one by one, so that they stay in registers.
///
/// # Safety
/// The machine has the instructions; rows and panel have these coordinates.
#[inline(always)]
unsafe fn sums<V: Lanes<Elem = f32>>(
    rows: [*const f32; ROWS],
    panel: *const f32,
    part: Range<usize>,
) -> [[V; 2]; ROWS] {
    let zero = V::splat(0.0);
    let [mut a0, mut a1, mut b0, mut b1, mut c0, mut c1, mut d0, mut d1] = [zero; 2 * ROWS];
    let [a, b, c, d] = rows;
    let add = |sum: V, x: V, y: V| {
        let gap = x.sub(y);
        gap.mul_add(gap, sum)
    };
    for i in part {
        let line = panel.add(i * WIDTH);
        let (y0, y1) = (V::load(line), V::load(line.add(V::N)));
        let x = V::splat(*a.add(i));
        (a0, a1) = (add(a0, x, y0), add(a1, x, y1));
        let x = V::splat(*b.add(i));
        (b0, b1) = (add(b0, x, y0), add(b1, x, y1));
        let x = V::splat(*c.add(i));
        (c0, c1) = (add(c0, x, y0), add(c1, x, y1));
        let x = V::splat(*d.add(i));
        (d0, d1) = (add(d0, x, y0), add(d1, x, y1));
    }
    [[a0, a1], [b0, b1], [c0, c1], [d0, d1]]
}
