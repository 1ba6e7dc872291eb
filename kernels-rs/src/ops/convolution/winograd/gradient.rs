//! The gradient with respect to kernels of 3 x 3 by the same tiles: `G' ((A g A') * (B' d B)) G`, summed over tiles.
//!
//! Lanes are channels: both operands are turned to `[row][column][channel]` first, some rows at a time. A task owns a
//! row of the points and some output channels over all tiles, so there are no partial sums to add up, and the order of
//! the sums is that of the tiles.

#![expect(clippy::needless_range_loop, reason = "counted loops over a tile are unrolled into registers")]

use super::super::Window;
use super::super::axis::WindowAxis;
use super::points::{gradient_points, source_points, taps};
use super::{LINE, POINTS};
use crate::array::Array;
use crate::error::Result;
use crate::machine::lanes::{Block, Kernel, Lanes, Real, lane_count, launch};
use crate::machine::threads::{self, SharedMut};
use crate::machine::tile::{self, Even};
use crate::memory::scratch::with_scratch;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Elements of the turned operands.
const TURNED: usize = 384 << 10;
/// Elements of the transformed panels of a task.
const PANELS: usize = 96 << 10;
/// Most tiles that a task transforms together: their panels of a few channels stay in the first-level cache.
const TILES: usize = 64;
/// Output channels of a task to aim for: with fewer, transforming the source takes too much of its time.
const OUTPUTS: usize = 64;
/// Bytes of sums to stay below.
const SUMS: usize = 64 << 20;

/// An operand and its turned copy `[image][row][column][channel]`, zero where the operand is not.
#[derive(Clone, Copy)]
struct Side<T> {
    from: *const T,
    /// Of the group, and of all groups.
    channels: (usize, usize),
    /// Rows and columns of the operand.
    size: (usize, usize),
    /// Zeros before the first row and column.
    pad: (usize, usize),
    /// Rows of the copy beyond two per row of tiles.
    extra: usize,
    /// Columns of the copy.
    cols: usize,
    /// Channels of the copy: whole registers.
    pitch: usize,
    to: SharedMut<T>,
}

// SAFETY: the operand is only read, and each task writes its own part of the copy.
unsafe impl<T> Sync for Side<T> {}

struct Plan<T> {
    source: Side<T>,
    gradient: Side<T>,
    /// Tiles in a row, rows of tiles.
    tiles: (usize, usize),
    /// Rows of tiles and images that are turned together.
    rows: usize,
    images: usize,
    /// Output channels of a task.
    outputs: usize,
    /// `[point][output][input]`.
    sums: SharedMut<T>,
    point: usize,
    out: SharedMut<T>,
    infinite: AtomicBool,
}

/// Some rows of tiles of some images, whose operands have been turned.
#[derive(Clone, Copy)]
struct Step {
    group: usize,
    images: (usize, usize),
    rows: (usize, usize),
    first: bool,
}

/// Computes all of `out` of a kernel of 3 x 3 with stride 1. False where a result is not finite, which the definition
/// may find to be a number.
pub fn run<T: Real>(window: &Window, g: &[T], x: &[T], out: &mut [T]) -> Result<bool> {
    let lanes = lane_count::<T>();
    let (inputs, outputs) = (window.inputs / window.groups, window.outputs / window.groups);
    let tiles = (window.col.output.div_ceil(2), window.row.output.div_ceil(2));
    let pitch = (inputs.next_multiple_of(lanes), outputs.next_multiple_of(lanes));
    // Elements of a row of tiles, and of the rows that its neighbors share.
    let (line, shared) = (2 * (2 * tiles.0 + 2) * pitch.0 + 4 * tiles.0 * pitch.1, 2 * (2 * tiles.0 + 2) * pitch.0);
    let rows = (TURNED.saturating_sub(shared) / line).clamp(1, tiles.1);
    let rows = tiles.1.div_ceil(tiles.1.div_ceil(rows));
    let images = (TURNED / (rows * line + shared)).clamp(1, window.batch);
    let point = pitch.0 * pitch.1 + 48;
    let source_len = images * (2 * rows + 2) * (2 * tiles.0 + 2) * pitch.0;
    let mut turned = Array::uninit(T::DTYPE, &[source_len + images * 4 * rows * tiles.0 * pitch.1])?;
    let mut sums = Array::uninit(T::DTYPE, &[POINTS * point])?;
    let to = turned.mut_ptr::<T>();
    let plan = Plan {
        source: Side {
            from: x.as_ptr(),
            channels: (inputs, window.inputs),
            size: (window.row.input, window.col.input),
            pad: (window.row.pad, window.col.pad),
            extra: 2,
            cols: 2 * tiles.0 + 2,
            pitch: pitch.0,
            to: SharedMut::new(to),
        },
        gradient: Side {
            from: g.as_ptr(),
            channels: (outputs, window.outputs),
            size: (window.row.output, window.col.output),
            pad: (0, 0),
            extra: 0,
            cols: 2 * tiles.0,
            pitch: pitch.1,
            to: SharedMut::new(to.wrapping_add(source_len)),
        },
        tiles,
        rows,
        images,
        outputs: pitch.1.div_ceil((pitch.1 / OUTPUTS).clamp(1, 8)).next_multiple_of(lanes),
        sums: SharedMut::new(sums.mut_ptr::<T>()),
        point,
        out: SharedMut::new(out.as_mut_ptr()),
        infinite: AtomicBool::new(false),
    };
    for group in 0..window.groups {
        plan.group(group, window.batch, lanes);
    }
    Ok(!plan.infinite.into_inner())
}

/// Whether tiles beat the definition.
pub fn applies<T: Real>(window: &Window) -> bool {
    let lanes = lane_count::<T>();
    let plain = |axis: WindowAxis| axis.kernel == 3 && axis.stride == 1 && axis.dilation == 1;
    let (inputs, outputs) = (window.inputs / window.groups, window.outputs / window.groups);
    if !plain(window.row) || !plain(window.col) || inputs < 16 || outputs < 16 {
        return false;
    }
    let (pitch, pairs) = ((inputs.next_multiple_of(lanes), outputs.next_multiple_of(lanes)), inputs * outputs);
    if POINTS * pitch.0 * pitch.1 * size_of::<f32>() > SUMS {
        return false;
    }
    let tiles = window.batch * window.row.output.div_ceil(2) * window.col.output.div_ceil(2);
    let positions = window.batch * window.row.output * window.col.output;
    // Cycles: 18 for the products of 16 points, 90 for the transforms of a register and their parts of the turning, 24
    // for the way of a sum to its place.
    let here = tiles * (18 * pitch.0 * pitch.1 + 90 * (pitch.0 + pitch.1)) / lanes + 24 * pairs;
    here < positions * 11 * pairs / lanes
}

impl<T: Real> Plan<T> {
    /// The gradient of one group.
    fn group(&self, group: usize, batch: usize, lanes: usize) {
        let parts = self.gradient.pitch.div_ceil(self.outputs);
        let most = (PANELS / (LINE * (self.source.pitch + self.outputs))).clamp(16, TILES);
        let len = LINE * most * (self.source.pitch + self.outputs);
        for image in (0..batch).step_by(self.images) {
            for row in (0..self.tiles.1).step_by(self.rows) {
                let step = Step {
                    group,
                    images: (image, batch.min(image + self.images)),
                    rows: (row, self.tiles.1.min(row + self.rows)),
                    first: image == 0 && row == 0,
                };
                let sides = (self.source.pitch / lanes, self.gradient.pitch / lanes);
                let planes = (step.images.1 - image) * (sides.0 + sides.1);
                threads::parallel(planes, &|index| launch(Turn { plan: self, step, index }));
                threads::parallel(POINTS / LINE * parts, &|index| {
                    let (line, first) = (index / parts, index % parts * self.outputs);
                    let outputs = (first, self.gradient.pitch.min(first + self.outputs));
                    with_scratch(len, |scratch| {
                        launch(Task { plan: self, step, line, outputs, most, scratch });
                    });
                });
            }
        }
        threads::parallel(self.gradient.channels.0, &|output| launch(Finish { plan: self, group, output }));
    }
}

/// One register of channels of one image, to be turned.
struct Turn<'a, T> {
    plan: &'a Plan<T>,
    step: Step,
    index: usize,
}

impl<T: Real> Kernel<T> for Turn<'_, T> {
    const BASELINE: bool = false;
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let Turn { plan, step, index } = self;
        let sides = (plan.source.pitch / V::N, plan.gradient.pitch / V::N);
        let (image, at) = (index / (sides.0 + sides.1), index % (sides.0 + sides.1));
        let (side, register) = if at < sides.0 { (&plan.source, at) } else { (&plan.gradient, at - sides.0) };
        let (rows, cols) = side.size;
        let first = register * V::N;
        let plane = (step.images.0 + image) * side.channels.1 + step.group * side.channels.0 + first;
        let from = side.from.wrapping_add(plane * rows * cols);
        let lines = 2 * (step.rows.1 - step.rows.0) + side.extra;
        let to = side.to.ptr().wrapping_add(image * lines * side.cols * side.pitch + first);
        let left = side.pad.1.min(side.cols);
        let right = (left + cols).min(side.cols);
        for line in 0..lines {
            let to = to.wrapping_add(line * side.cols * side.pitch);
            let row = (2 * step.rows.0 + line).wrapping_sub(side.pad.0);
            let inside = if row < rows { (left, right) } else { (0, 0) };
            // SAFETY: the copy has these rows and columns; the columns inside are those of the operand.
            let zero = V::splat(T::default());
            for col in (0..inside.0).chain(inside.1..side.cols) {
                zero.store(to.add(col * side.pitch));
            }
            for col in (inside.0..inside.1).step_by(V::N) {
                let block = Block {
                    at: from.wrapping_add(row * cols + col - left),
                    pitch: rows * cols,
                    rows: (side.channels.0 - first).min(V::N),
                    cols: (inside.1 - col).min(V::N),
                };
                V::transpose(block, to.add(col * side.pitch), side.pitch, V::N);
            }
        }
    }
}

/// A row of points of some output channels.
struct Task<'a, T> {
    plan: &'a Plan<T>,
    step: Step,
    line: usize,
    outputs: (usize, usize),
    most: usize,
    scratch: &'a mut [T],
}

impl<T: Real> Kernel<T> for Task<'_, T> {
    const BASELINE: bool = false;
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(mut self) {
        let rows = self.step.rows.1 - self.step.rows.0;
        let tiles = (self.step.images.1 - self.step.images.0) * rows * self.plan.tiles.0;
        let chunks = tiles.div_ceil(self.most);
        for chunk in 0..chunks {
            let (first, end) = (chunk * tiles / chunks, (chunk + 1) * tiles / chunks);
            // SAFETY: the tiles are the step's, the scratch holds panels of `most`.
            self.transform::<V>((first, end));
            self.multiply::<V>(end - first, self.step.first && chunk == 0);
        }
    }
}

impl<T: Real> Task<'_, T> {
    /// Fills the panels: of the source `[point][pair of registers][tile][lane]`, of the gradient
    /// `[point][register][tile][lane]`.
    #[inline(always)]
    unsafe fn transform<V: Lanes<Elem = T>>(&mut self, (first, end): (usize, usize)) {
        let plan = self.plan;
        let (source, gradient) = (&plan.source, &plan.gradient);
        let (count, rows) = (end - first, self.step.rows.1 - self.step.rows.0);
        let (width, outputs) = (source.pitch, self.outputs.1 - self.outputs.0);
        let (left, right) = self.scratch.split_at_mut(LINE * count * width);
        for tile in first..end {
            let (line, col) = (tile / plan.tiles.0, tile % plan.tiles.0);
            let (image, row) = (line / rows, line % rows);
            let at = (image * (2 * rows + 2) + 2 * row) * source.cols + 2 * col;
            let from = source.to.ptr().wrapping_add(at * width).cast_const();
            for lane in (0..width).step_by(V::N) {
                // The last register may have no neighbor.
                let pair = lane / (2 * V::N) * 2 * V::N;
                let across = (width - pair).min(2 * V::N);
                let to = pair * count + (tile - first) * across + (lane - pair);
                // SAFETY: a window of 4 x 4 lies inside the copy, the panel holds all tiles.
                let points = source_points::<V>(self.line, from.add(lane), (source.cols * width, width));
                for i in 0..LINE {
                    points[i].store(left.as_mut_ptr().add(i * count * width + to));
                }
            }
            let at = (image * 2 * rows + 2 * row) * gradient.cols + 2 * col;
            let from = gradient.to.ptr().wrapping_add(at * gradient.pitch + self.outputs.0).cast_const();
            for lane in (0..outputs).step_by(V::N) {
                let to = lane * count + (tile - first) * V::N;
                // SAFETY: a window of 2 x 2 lies inside the copy of the gradient; the panel holds all tiles.
                let steps = (gradient.cols * gradient.pitch, gradient.pitch);
                let points = gradient_points::<V>(self.line, from.add(lane), steps);
                for i in 0..LINE {
                    points[i].store(right.as_mut_ptr().add(i * count * outputs + to));
                }
            }
        }
    }

    /// Adds the products of `count` tiles to the sums.
    #[inline(always)]
    unsafe fn multiply<V: Lanes<Elem = T>>(&mut self, count: usize, first: bool) {
        let plan = self.plan;
        let (width, outputs) = (plan.source.pitch, self.outputs.1 - self.outputs.0);
        let (left, right) = self.scratch.split_at(LINE * count * width);
        for i in 0..LINE {
            let sums = plan.sums.ptr().wrapping_add((self.line * LINE + i) * plan.point + self.outputs.0 * width);
            for lane in (0..width).step_by(2 * V::N) {
                let source = left.as_ptr().wrapping_add((i * width + lane) * count);
                for output in (0..outputs).step_by(V::N) {
                    let gradient = right.as_ptr().wrapping_add((i * outputs + output) * count);
                    let to = sums.wrapping_add(output * width + lane);
                    let block = Sums { count, width, first };
                    // SAFETY: the panels were filled for these sizes; the sums belong to this task.
                    match (lane + V::N < width, V::ROWS > 6) {
                        (true, true) => block.add::<V, 8, 2>(gradient, source, to),
                        (true, false) => block.add::<V, 4, 2>(gradient, source, to),
                        (false, true) => block.add::<V, 8, 1>(gradient, source, to),
                        (false, false) => block.add::<V, 4, 1>(gradient, source, to),
                    }
                }
            }
        }
    }
}

/// Products of a register of output channels.
struct Sums {
    /// Tiles.
    count: usize,
    /// From one output channel to the next.
    width: usize,
    /// Whether there is nothing to add to.
    first: bool,
}

impl Sums {
    /// `M` output channels at a time.
    ///
    /// # Safety
    /// The panels hold `count` lines; the machine has the instructions of `V`.
    #[inline(always)]
    unsafe fn add<V: Lanes, const M: usize, const Q: usize>(
        &self,
        gradient: *const V::Elem,
        source: *const V::Elem,
        to: *mut V::Elem,
    ) {
        // Panels are padded to whole registers; registers have 2 to 16 lanes.
        if V::N < M {
            self.rows::<V, 2, Q>(gradient, source, to);
            return;
        }
        for first in (0..V::N).step_by(M) {
            self.rows::<V, M, Q>(gradient.add(first), source, to.add(first * self.width));
        }
    }

    #[inline(always)]
    unsafe fn rows<V: Lanes, const M: usize, const Q: usize>(
        &self,
        gradient: *const V::Elem,
        source: *const V::Elem,
        to: *mut V::Elem,
    ) {
        // Panels are padded to whole registers.
        let mut acc = [[V::splat(V::Elem::default()); Q]; M];
        let gradient = Even { at: gradient, near: 1, far: V::N as isize };
        let source = Even { at: source, near: V::N, far: (Q * V::N) as isize };
        tile::multiply(self.count, gradient, source, &mut acc);
        for m in 0..M {
            for q in 0..Q {
                let at = to.add(m * self.width + q * V::N);
                let sum = if self.first { acc[m][q] } else { acc[m][q].add(V::load(at)) };
                sum.store(at);
            }
        }
    }
}

/// One output channel, whose sums go to their places.
struct Finish<'a, T> {
    plan: &'a Plan<T>,
    group: usize,
    output: usize,
}

impl<T: Real> Kernel<T> for Finish<'_, T> {
    const BASELINE: bool = false;
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let Finish { plan, group, output } = self;
        let (channels, width) = (plan.source.channels.0, plan.source.pitch);
        let row = (group * plan.gradient.channels.0 + output) * channels;
        let mut tile = [T::default(); 9 * 16];
        // SAFETY: all sums are there; each task writes the row of its output channel.
        let half = V::splat(T::from_f64(0.5));
        let zero = V::splat(T::default());
        let mut finite = zero;
        for c in (0..channels).step_by(V::N) {
            let from = plan.sums.ptr().cast_const().add(output * width + c);
            let mut lines = [[zero; 4]; 3];
            for col in 0..4 {
                let mut column = [zero; 4];
                for row in 0..4 {
                    column[row] = V::load(from.add((row * 4 + col) * plan.point));
                }
                let column = taps(column, half);
                for row in 0..3 {
                    lines[row][col] = column[row];
                }
            }
            for row in 0..3 {
                let line = taps(lines[row], half);
                for col in 0..3 {
                    // 0 times what is not finite is NaN.
                    finite = line[col].mul_add(zero, finite);
                    line[col].store(tile.as_mut_ptr().add((row * 3 + col) * V::N));
                }
            }
            let cols = (channels - c).min(V::N);
            let to = plan.out.ptr().add((row + c) * 9);
            for tap in (0..9).step_by(V::N) {
                let rows = (9 - tap).min(V::N);
                let at = tile.as_ptr().add(tap * V::N);
                V::transpose(Block { at, pitch: V::N, rows, cols }, to.add(tap), 9, rows);
            }
        }
        if finite.sum() != T::default() {
            plan.infinite.store(true, Relaxed);
        }
    }
}
