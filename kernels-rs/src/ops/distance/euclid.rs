//! Euclidean distances of `f32`: differences are squared and added in registers, a tile of some rows and columns at a time.
//! Of many coordinates `|a|² + |b|² - 2ab`, by products of this crate, takes a third as long, and stands where at most a bit
//! of it cancels: other distances, or blocks with many of these, are found by differences. What leaves the range is found in
//! `f64`.

use super::{GRAIN, WIDTH};
use crate::dtype::Element;
use crate::error::Result;
use crate::machine::lanes::{Kernel, Lanes, launch};
use crate::machine::threads::{self, SharedMut};
use crate::memory::owned::Memory;
use crate::memory::scratch::{collected, filled};
use crate::ops::contraction::{Call, Epilogue, Matrix, multiply};
use crate::vectorize;
use std::ops::Range;
use std::sync::Mutex;

/// Rows of a tile.
const ROWS: usize = 4;
/// Squares that are added before their sum goes to the others, so that errors grow slowly.
const DEPTH: usize = 32;
/// Coordinates from which on products are tried: of fewer, many rows are near each other.
const MANY: usize = 24;
/// Rows and columns of a block of products, which stay in the second-level cache.
const BLOCK: [usize; 2] = [128, 256];
/// Of how many distances of a block one may be found by itself; with more, all are found by tiles.
const FEW: usize = 16;
/// Sums of squares between these have lost nothing that counts.
const SAFE: Range<f32> = 1e-30..1e37;

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
    let failed = Mutex::new(Ok(()));
    threads::parallel(batches * down * across, &|task| {
        let (top, left) = (task / across % down * high, task % across * wide);
        let done = job.by_products(task / (down * across), top..n.min(top + high), left..m.min(left + wide));
        if done.is_err() {
            *failed.lock().expect("never poisoned") = done;
        }
    });
    failed.into_inner().expect("never poisoned")
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

    #[expect(clippy::cast_ptr_alignment, reason = "memory begins on a cache line")]
    fn by_products(&self, batch: usize, rows: Range<usize>, columns: Range<usize>) -> Result<()> {
        let d = self.sizes[2];
        let (high, wide) = (rows.len(), columns.len());
        let held = Memory::new(high * wide * size_of::<f32>())?;
        let others = self.others(batch, &columns);
        let call = Call {
            size: (high, d, wide),
            a: Matrix::new(self.row(batch, rows.start).as_ptr().cast_mut(), (d as isize, 1)),
            b: Matrix::new(others.as_ptr().cast_mut(), (1, d as isize)),
            c: Matrix::new(held.data().cast(), (wide as isize, 1)),
            end: Epilogue::default(),
        };
        // SAFETY: rows of both that are only read, and a block of our own, which the product fills.
        let block = unsafe {
            multiply(&call, false, None)?;
            std::slice::from_raw_parts_mut(held.data().cast::<f32>(), high * wide)
        };
        let sizes = collected(others.chunks_exact(d).map(size));
        let lines = || rows.clone().map(|row| (row, self.row(batch, row)));
        let mut unknown = 0;
        for ((_, own), line) in lines().zip(block.chunks_exact_mut(wide)) {
            unknown += distances(size(own), &sizes, line);
        }
        if unknown > high * wide / FEW {
            for first in columns.clone().step_by(WIDTH) {
                self.by_differences(batch, rows.clone(), first..columns.end.min(first + WIDTH));
            }
            return Ok(());
        }
        for ((row, own), line) in lines().zip(block.chunks_exact_mut(wide)) {
            if unknown > 0 {
                one_by_one(own, others, line);
            }
            self.put(batch, row, &columns, line);
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

/// Finds the distances that are not known.
fn one_by_one(own: &[f32], others: &[f32], distances: &mut [f32]) {
    for (distance, other) in distances.iter_mut().zip(others.chunks_exact(own.len())) {
        if *distance < 0.0 {
            let square = gap(own, other);
            *distance = if SAFE.contains(&square) { square.sqrt() } else { exactly(own, other) };
        }
    }
}

/// Distances of sums of squares.
fn roots(sums: &mut [f32; WIDTH], width: usize, row: &[f32], others: &[f32]) {
    let squares = *sums;
    let safe = all_roots(sums);
    if safe || row.is_empty() {
        return;
    }
    for ((sum, square), other) in sums.iter_mut().zip(&squares).take(width).zip(others.chunks_exact(row.len())) {
        if !SAFE.contains(square) {
            *sum = exactly(row, other);
        }
    }
}

vectorize!(all_roots(sums: &mut [f32; WIDTH]) -> bool => all_roots_body);

/// Takes the roots, and says whether none of the sums has lost anything.
#[inline(always)]
fn all_roots_body(sums: &mut [f32; WIDTH]) -> bool {
    let mut safe = true;
    for sum in sums {
        safe &= (*sum >= SAFE.start) & (*sum < SAFE.end);
        *sum = sum.sqrt();
    }
    safe
}

fn exactly(a: &[f32], b: &[f32]) -> f32 {
    let squares = a.iter().zip(b).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2));
    squares.sum::<f64>().sqrt() as f32
}

vectorize!(size(row: &[f32]) -> f32 => size_body);

/// The sum of the squares of some coordinates.
#[inline(always)]
fn size_body(row: &[f32]) -> f32 {
    let mut sums = [0.0; 16];
    let (runs, rest) = row.as_chunks::<16>();
    for run in runs {
        sums.iter_mut().zip(run).for_each(|(sum, &x)| *sum += x * x);
    }
    sums.iter_mut().zip(rest).for_each(|(sum, &x)| *sum += x * x);
    sums.iter().sum()
}

vectorize!(gap(a: &[f32], b: &[f32]) -> f32 => gap_body);

/// The sum of the squares of the differences of some coordinates.
#[inline(always)]
fn gap_body(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; 16];
    let ((a, x), (b, y)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    for (a, b) in a.iter().zip(b) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += (a - b) * (a - b);
        }
    }
    for (sum, (a, b)) in sums.iter_mut().zip(x.iter().zip(y)) {
        *sum += (a - b) * (a - b);
    }
    sums.iter().sum()
}

vectorize!(distances(own: f32, sizes: &[f32], products: &mut [f32]) -> usize => distances_body);

/// Distances in the place of products; -1 where too much cancelled or left the range. Returns how many of these there are.
#[inline(always)]
fn distances_body(own: f32, sizes: &[f32], products: &mut [f32]) -> usize {
    let mut unknown = 0;
    for (product, &size) in products.iter_mut().zip(sizes) {
        let both = own + size;
        let square = both - 2.0 * *product;
        // Not so for a nan.
        let known = (square >= 0.5 * both) & SAFE.contains(&square);
        unknown += u32::from(!known);
        *product = if known { square.sqrt() } else { -1.0 };
    }
    unknown as usize
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
        // SAFETY: the caller promises the instructions; rows have `depth` elements, registers lie inside a line of the panel,
        // which has as many lines, and inside the sums.
        unsafe {
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
    // SAFETY: as the caller promises.
    unsafe {
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
}
