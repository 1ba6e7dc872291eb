//! The weight gradient of kernels of 1 x 1: dot products of planes, `dw[o, c] = sum over images of g[n, o] . x[n, c]`.
//! Lanes are positions, so nothing is packed; a tile of sums stays in registers over a run of positions, and between runs
//! in the second-level cache.
//!
//! Runs are cut into chunks by shape alone; each chunk has its own sums, which are added in order, so the result does not
//! depend on the number of threads.

#![expect(clippy::needless_range_loop, reason = "counted loops over a tile are unrolled into registers")]

use super::Window;
use crate::array::Array;
use crate::error::Result;
use crate::machine::lanes::{Block, Kernel, Lanes, Real, lane_count, launch};
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::with_scratch;

/// Rows and columns of a tile of sums; half as many columns where there are sixteen registers.
const TILE: usize = 4;
/// Most positions of a run: those of a tile are half of the first-level cache.
const RUN: usize = 640;
/// Channels of a unit on either side: its sums are a quarter of a second-level cache.
const SIDE: usize = 64;
/// Tasks to aim for: by shape, not by threads, since the parts of a sum are added up.
const TASKS: usize = 32;
/// Positions of a chunk below which adding up its lanes costs too much.
const LEAST: usize = 1024;

/// True when dot products are the best way.
pub fn applies(window: &Window) -> bool {
    let (channels, outputs) = (window.inputs / window.groups, window.outputs / window.groups);
    window.is_product() && window.col.output >= 128 && window.batch > 0 && channels >= 4 && outputs >= 4
}

struct Job<T> {
    batch: usize,
    groups: usize,
    /// Of a group.
    outputs: usize,
    /// Of a group.
    channels: usize,
    positions: usize,
    /// Positions of a run, and runs of an image.
    run: usize,
    runs: usize,
    /// Output and input channels of a unit.
    side: (usize, usize),
    /// Tasks for the same unit, each with its own sums.
    chunks: usize,
    g: SharedMut<T>,
    x: SharedMut<T>,
    partial: SharedMut<T>,
}

/// Computes all of `out`, `[outputs, inputs / groups]`.
pub fn run<T: Real>(window: &Window, g: &[T], x: &[T], out: &mut [T]) -> Result<()> {
    let mut job = Job::new(window, g, x);
    let copy = job.side.0 * job.side.1;
    let mut partial = Array::uninit(T::DTYPE, &[job.chunks * job.units() * copy])?;
    job.partial = SharedMut::new(partial.mut_ptr::<T>());
    let tiles = job.side.0.div_ceil(TILE) * job.side.1.div_ceil(TILE / 2);
    let len = tiles * TILE * TILE * lane_count::<T>();
    threads::parallel(job.chunks * job.units(), &|index| {
        with_scratch(len, |sums| launch(Chunk { job: &job, index, sums }));
    });
    job.add_up(out);
    Ok(())
}

impl<T: Real> Job<T> {
    fn new(window: &Window, g: &[T], x: &[T]) -> Self {
        let (batch, groups) = (window.batch, window.groups);
        let (outputs, channels) = (window.outputs / groups, window.inputs / groups);
        let positions = window.row.output * window.col.output;
        let run = positions.div_ceil(positions.div_ceil(RUN)).next_multiple_of(lane_count::<T>());
        let runs = positions.div_ceil(run);
        let most = (batch * positions / LEAST).clamp(1, batch * runs);
        let units = |side: usize| outputs.div_ceil(side) * channels.div_ceil(side) * groups;
        let side = if units(SIDE) * most < TASKS / 2 { SIDE / 2 } else { SIDE };
        let equal = |count: usize| count.div_ceil(count.div_ceil(side)).next_multiple_of(TILE);
        let shared = |data: &[T]| SharedMut::new(data.as_ptr().cast_mut());
        let side = (equal(outputs), equal(channels));
        let partial = SharedMut::new(std::ptr::null_mut());
        let (g, x) = (shared(g), shared(x));
        let mut job = Self { batch, groups, outputs, channels, positions, run, runs, side, chunks: 1, g, x, partial };
        job.chunks = TASKS.div_ceil(job.units()).min(most);
        job
    }

    /// Units across, down and in all groups.
    fn units(&self) -> usize {
        self.groups * self.outputs.div_ceil(self.side.0) * self.channels.div_ceil(self.side.1)
    }

    /// Group, and first channels in it.
    fn unit(&self, index: usize) -> (usize, usize, usize) {
        let across = self.channels.div_ceil(self.side.1);
        let (index, channel) = (index / across, index % across * self.side.1);
        let down = self.outputs.div_ceil(self.side.0);
        (index / down, index % down * self.side.0, channel)
    }

    /// Adds the sums of the chunks in order.
    fn add_up(&self, out: &mut [T]) {
        let copy = self.side.0 * self.side.1;
        let out = SharedMut::new(out.as_mut_ptr());
        threads::for_ranges(self.units(), ((1 << 16) / (copy * self.chunks)).max(1), &|range| {
            for unit in range {
                let (group, output, channel) = self.unit(unit);
                let (rows, cols) = (self.side.0.min(self.outputs - output), self.side.1.min(self.channels - channel));
                for row in 0..rows {
                    let at = ((group * self.outputs + output + row) * self.channels) + channel;
                    // SAFETY: each unit has its own part of the result.
                    let line = unsafe { out.slice(at..at + cols) };
                    for chunk in 0..self.chunks {
                        let from = (chunk * self.units() + unit) * copy + row * self.side.1;
                        // SAFETY: all tasks of the first stage have ended.
                        let sums = unsafe { self.partial.slice(from..from + cols) };
                        let pairs = line.iter_mut().zip(sums);
                        pairs.for_each(|(to, &mut sum)| *to = if chunk == 0 { sum } else { *to + sum });
                    }
                }
            }
        });
    }
}

struct Chunk<'a, T> {
    job: &'a Job<T>,
    index: usize,
    sums: &'a mut [T],
}

/// What a unit reads in one run.
struct Run<T> {
    g: *const T,
    x: *const T,
    /// From one plane to the next.
    plane: usize,
    /// Positions.
    len: usize,
    rows: usize,
    cols: usize,
    first: bool,
}

impl<T: Real> Kernel<T> for Chunk<'_, T> {
    const BASELINE: bool = false;
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let Chunk { job, index, sums } = self;
        let (chunk, unit) = (index / job.units(), index % job.units());
        let (group, output, channel) = job.unit(unit);
        let (rows, cols) = (job.side.0.min(job.outputs - output), job.side.1.min(job.channels - channel));
        let turns = job.batch * job.runs;
        let first = chunk * turns / job.chunks;
        for turn in first..(chunk + 1) * turns / job.chunks {
            let (image, start) = (turn / job.runs, turn % job.runs * job.run);
            let (of_g, of_x) = (image * job.groups + group, image * job.groups + group);
            let g = (of_g * job.outputs + output) * job.positions + start;
            let x = (of_x * job.channels + channel) * job.positions + start;
            let (g, x) = (job.g.ptr().wrapping_add(g), job.x.ptr().wrapping_add(x));
            let len = job.run.min(job.positions - start);
            let run = Run { g, x, plane: job.positions, len, rows, cols, first: turn == first };
            // SAFETY: the planes were checked; the sums have room for all tiles.
            if V::ROWS > 6 {
                run.all::<V, TILE>(sums.as_mut_ptr());
            } else {
                run.all::<V, { TILE / 2 }>(sums.as_mut_ptr());
            }
        }
        let to = job.partial.ptr().wrapping_add(index * job.side.0 * job.side.1);
        // SAFETY: each task has its own sums.
        let size = (rows, cols, job.side.1);
        if V::ROWS > 6 {
            put::<V, TILE>(sums.as_ptr(), size, to);
        } else {
            put::<V, { TILE / 2 }>(sums.as_ptr(), size, to);
        }
    }
}

impl<T: Real> Run<T> {
    /// All tiles of the unit, `TILE x C`, one after the other in `sums`.
    #[inline(always)]
    unsafe fn all<V: Lanes<Elem = T>, const C: usize>(&self, mut sums: *mut T) {
        for row in (0..self.rows).step_by(TILE) {
            for col in (0..self.cols).step_by(C) {
                let (g, x) = (self.g.wrapping_add(row * self.plane), self.x.wrapping_add(col * self.plane));
                // SAFETY: rows and columns are those of a unit, whole runs of both planes.
                match ((self.rows - row).min(TILE), (self.cols - col).min(C)) {
                    (TILE, high) if high == C => self.tile::<V, TILE, C, C>(g, x, sums),
                    (1, 1) => self.tile::<V, 1, 1, C>(g, x, sums),
                    (2, 1) => self.tile::<V, 2, 1, C>(g, x, sums),
                    (3, 1) => self.tile::<V, 3, 1, C>(g, x, sums),
                    (_, 1) => self.tile::<V, TILE, 1, C>(g, x, sums),
                    (1, 2) => self.tile::<V, 1, 2, C>(g, x, sums),
                    (2, 2) => self.tile::<V, 2, 2, C>(g, x, sums),
                    (3, 2) => self.tile::<V, 3, 2, C>(g, x, sums),
                    (_, 2) => self.tile::<V, TILE, 2, C>(g, x, sums),
                    (1, 3) => self.tile::<V, 1, 3, C>(g, x, sums),
                    (2, 3) => self.tile::<V, 2, 3, C>(g, x, sums),
                    (3, 3) => self.tile::<V, 3, 3, C>(g, x, sums),
                    (_, 3) => self.tile::<V, TILE, 3, C>(g, x, sums),
                    (1, _) => self.tile::<V, 1, C, C>(g, x, sums),
                    (2, _) => self.tile::<V, 2, C, C>(g, x, sums),
                    _ => self.tile::<V, 3, C, C>(g, x, sums),
                }
                sums = sums.wrapping_add(TILE * C * V::N);
            }
        }
    }

    /// Adds the products of `R` planes of one side with `S` of the other to a tile of `TILE x C` registers.
    #[inline(always)]
    unsafe fn tile<V: Lanes<Elem = T>, const R: usize, const S: usize, const C: usize>(
        &self,
        g: *const T,
        x: *const T,
        sums: *mut T,
    ) {
        // Rows and columns are those of a unit, whole runs of both planes; lanes after the run are 0.
        let mut acc = [[V::splat(T::default()); S]; R];
        if !self.first {
            for i in 0..R {
                for j in 0..S {
                    acc[i][j] = V::load(sums.add((i * C + j) * V::N));
                }
            }
        }
        let mut at = 0;
        while at < self.len {
            let count = (self.len - at).min(V::N);
            let mut values = [V::splat(T::default()); S];
            for j in 0..S {
                values[j] = V::load_some(x.add(j * self.plane + at), count);
            }
            for i in 0..R {
                let value = V::load_some(g.add(i * self.plane + at), count);
                for j in 0..S {
                    acc[i][j] = values[j].mul_add(value, acc[i][j]);
                }
            }
            at += V::N;
        }
        for i in 0..R {
            for j in 0..S {
                acc[i][j].store(sums.add((i * C + j) * V::N));
            }
        }
    }
}

/// Adds the lanes of all sums, in order, and writes them as rows of `pitch`. Sums outside the unit hold anything.
#[inline(always)]
unsafe fn put<V: Lanes, const C: usize>(
    mut sums: *const V::Elem,
    (rows, cols, pitch): (usize, usize, usize),
    to: *mut V::Elem,
) {
    for row in (0..rows).step_by(TILE) {
        for col in (0..cols).step_by(C) {
            for first in (0..TILE * C).step_by(V::N) {
                let mut turned = [V::Elem::default(); 256];
                let mut totals = [V::Elem::default(); 16];
                // SAFETY: a tile has a multiple of any lane count of registers.
                let block = Block { at: sums.add(first * V::N), pitch: V::N, rows: V::N, cols: V::N };
                V::transpose(block, turned.as_mut_ptr(), V::N, V::N);
                let mut total = V::load(turned.as_ptr());
                for line in 1..V::N {
                    total = total.add(V::load(turned.as_ptr().add(line * V::N)));
                }
                total.store(totals.as_mut_ptr());
                for (i, &value) in totals[..V::N].iter().enumerate() {
                    let (i, j) = (row + (first + i) / C, col + (first + i) % C);
                    if i < rows && j < cols {
                        *to.add(i * pitch + j) = value;
                    }
                }
            }
            sums = sums.wrapping_add(TILE * C * V::N);
        }
    }
}
