//! Euclidean distances of `f32`: differences are squared and added in registers, a tile of some rows and columns at a time.
//! Of many coordinates `|a|² + |b|² - 2ab` takes half as long, and stands where at most a bit of it cancels: other tiles are
//! done again by differences. What leaves the range is done again in `f64`.

use super::{GRAIN, WIDTH};
use crate::dtype::Element;
use crate::machine::lanes::{Kernel, Lanes, launch};
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::{collected, filled};
use crate::vectorize;

/// Rows of a tile.
const ROWS: usize = 4;
/// Squares that are added before their sum goes to the others, so that errors grow slowly.
const DEPTH: usize = 32;
/// Coordinates from which on products are tried: of fewer, many rows are near each other.
const MANY: usize = 24;
/// Tiles of a panel of which as many may be done again as need not: past that, products are tried no more.
const TRIED: usize = 4;
/// Sums of squares between these have lost nothing that counts.
const SAFE: std::ops::Range<f32> = 1e-30..1e37;

/// Distances of `n` rows from `m` rows of `d` coordinates, for each of a batch.
pub fn batches<T: Element>(a: &[f32], b: &[f32], out: &mut [T], (n, m, d): (usize, usize, usize)) {
    let panels = m.div_ceil(WIDTH);
    let out_at = SharedMut::new(out.as_mut_ptr());
    let jobs = out.len() / (n * m) * panels;
    let together = (GRAIN / (n * d.max(1) * WIDTH)).max(1);
    let sizes = if d < MANY { Vec::new() } else { collected(a.chunks_exact(d).map(size)) };
    threads::parallel(jobs.div_ceil(together), &|task| {
        let mut panel = filled(0.0, d * WIDTH);
        for job in task * together..jobs.min((task + 1) * together) {
            let (batch, first) = (job / panels, job % panels * WIDTH);
            let width = WIDTH.min(m - first);
            let others = &b[(batch * m + first) * d..(batch * m + first + width) * d];
            for column in 0..width {
                (0..d).for_each(|i| panel[i * WIDTH + column] = others[column * d + i]);
            }
            let mut near = Near::new(others, d);
            for top in (0..n).step_by(ROWS) {
                // The last row again where a tile ends behind it.
                let rows = std::array::from_fn(|row| {
                    let start = (batch * n + (top + row).min(n - 1)) * d;
                    &a[start..start + d]
                });
                let mut sums = [[0.0; WIDTH]; ROWS];
                let mut apart = false;
                if near.tries() {
                    launch(Tile::<true> { rows, panel: &panel, sums: &mut sums });
                    let own = std::array::from_fn(|row| sizes[batch * n + (top + row).min(n - 1)]);
                    apart = near.squares(&own, &mut sums);
                }
                if !apart {
                    launch(Tile::<false> { rows, panel: &panel, sums: &mut sums });
                }
                for (row, sums) in sums.iter_mut().enumerate().take(n - top) {
                    roots(sums, width, rows[row], others);
                    let to = (batch * n + top + row) * m + first;
                    // SAFETY: `width` columns of a row of the result; each job has its own columns.
                    let out = unsafe { out_at.slice(to..to + width) };
                    out.iter_mut().zip(&*sums).for_each(|(out, &sum)| *out = T::from_f64(f64::from(sum)));
                }
            }
        }
    });
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

/// Whether products give the distances from the columns of a panel.
struct Near {
    /// Sums of squares of the columns; beyond the last one, of a row that is far.
    sizes: [f32; WIDTH],
    tiles: usize,
    again: usize,
    many: bool,
}

impl Near {
    fn new(others: &[f32], d: usize) -> Self {
        let mut near = Self { sizes: [1e30; WIDTH], tiles: 0, again: 0, many: d >= MANY };
        if near.many {
            near.sizes.iter_mut().zip(others.chunks_exact(d)).for_each(|(to, other)| *to = size(other));
        }
        near
    }

    fn tries(&self) -> bool {
        self.many && 2 * self.again <= self.tiles.max(TRIED)
    }

    /// Sums of squares of differences in the place of products; false where too much of one cancelled.
    fn squares(&mut self, own: &[f32; ROWS], products: &mut [[f32; WIDTH]; ROWS]) -> bool {
        let apart = gaps(own, &self.sizes, products);
        self.tiles += 1;
        self.again += usize::from(!apart);
        apart
    }
}

vectorize!(gaps(own: &[f32; ROWS], sizes: &[f32; WIDTH], sums: &mut [[f32; WIDTH]; ROWS]) -> bool => gaps_body);

#[inline(always)]
fn gaps_body(own: &[f32; ROWS], sizes: &[f32; WIDTH], sums: &mut [[f32; WIDTH]; ROWS]) -> bool {
    let mut apart = true;
    for (sums, &own) in sums.iter_mut().zip(own) {
        for (sum, &size) in sums.iter_mut().zip(sizes) {
            let both = own + size;
            *sum = both - 2.0 * *sum;
            // Not so for a nan.
            apart &= *sum >= 0.5 * both;
        }
    }
    apart
}

/// Sums of products of rows and the columns of a panel, or of squares of their differences.
struct Tile<'a, const PRODUCTS: bool> {
    rows: [&'a [f32]; ROWS],
    panel: &'a [f32],
    sums: &'a mut [[f32; WIDTH]; ROWS],
}

impl<const PRODUCTS: bool> Kernel<f32> for Tile<'_, PRODUCTS> {
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
                    let part = sums::<V, PRODUCTS>(rows, self.panel.as_ptr().add(column), first..end);
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

/// The products or squares of some coordinates of a tile, added up. Sums are named one by one, so that they stay in registers.
///
/// # Safety
/// The machine has the instructions; rows and panel have these coordinates.
#[inline(always)]
unsafe fn sums<V: Lanes<Elem = f32>, const PRODUCTS: bool>(
    rows: [*const f32; ROWS],
    panel: *const f32,
    part: std::ops::Range<usize>,
) -> [[V; 2]; ROWS] {
    // SAFETY: as the caller promises.
    unsafe {
        let zero = V::splat(0.0);
        let [mut a0, mut a1, mut b0, mut b1, mut c0, mut c1, mut d0, mut d1] = [zero; 2 * ROWS];
        let [a, b, c, d] = rows;
        let add = |sum: V, x: V, y: V| {
            if PRODUCTS {
                return x.mul_add(y, sum);
            }
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
