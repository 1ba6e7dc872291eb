//! The weight gradient of bfloat16 by tiles: for each tap `x @ g^T`, 32 channels of the source times 32 of the result.
//!
//! The depth is positions. Rows on the left are channels of a band, where each tap begins at an element of its own; on the right
//! positions of the result lie as far apart as in the band, with zeros for what lies between its rows. So a product may read
//! what is no neighbor of anything, and if that is not finite, the sums are not: then another way has to be taken.

use super::super::Window;
use super::super::axis::Axis;
use super::super::band::{Layout, Plane};
use super::super::cut::{Part, Side, cut};
use super::super::slice;
use crate::array::Array;
use crate::dtype::{BF16, DType, Float};
use crate::error::Result;
use crate::machine::amx::{LINES, STEP, Sides, Unit};
use crate::machine::threads::{self, SharedMut};
use crate::memory::owned::Memory;
use crate::memory::scratch::with_scratch;
use crate::ops::contraction::Matrix;
use crate::ops::contraction::amx::{DEEP, SIDE, pack};
use crate::ops::parts::PART;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Steps that meet all taps, so that both sides stay in the second-level cache.
const CHUNK: usize = 64;
/// Bytes of both sides that are made ready at a time.
const MOST: usize = 2 * PART;
/// Elements of 32 x 32 sums.
const SUMS: usize = SIDE * SIDE;

/// The gradient with respect to the kernel; none if a sum is not finite.
#[expect(clippy::cast_ptr_alignment, reason = "memory begins at a cache line")]
pub fn run<U: Unit>(window: &Window, g: &Array, x: &Array, shape: &[usize]) -> Result<Option<Array>> {
    let (channels, outputs) = (window.inputs / window.groups, window.outputs / window.groups);
    let blocks = (channels.div_ceil(SIDE), outputs.div_ceil(SIDE));
    let taps = window.row.kernel * window.col.kernel;
    let tiles = window.groups * blocks.0 * blocks.1 * taps;
    let memory = Memory::new(tiles * SUMS * size_of::<f32>())?;
    let sums = SharedMut::new(memory.data().cast::<f32>());
    let geometry = Geometry::new(window);
    let bytes = window.batch * geometry.bytes(window);
    for (index, part) in cut(window, Side::Output, bytes, MOST).iter().enumerate() {
        let (gradient, source) = (part.output::<BF16>(g)?, part.input::<BF16>(x)?);
        add::<U>(part, slice(&gradient), slice(&source), (sums, blocks), index > 0)?;
    }
    let mut out = Array::uninit(DType::BF16, shape)?;
    let (to, finite) = (SharedMut::new(out.mut_ptr::<BF16>()), AtomicBool::new(true));
    threads::parallel(window.outputs, &|output| {
        let (group, o) = (output / outputs, output % outputs);
        // SAFETY: each task has its own channel of the result.
        let to = unsafe { to.slice(output * channels * taps..(output + 1) * channels * taps) };
        for (c, to) in to.chunks_exact_mut(taps).enumerate() {
            let tile = ((group * blocks.0 + c / SIDE) * blocks.1 + o / SIDE) * taps;
            let at = sums.ptr().wrapping_add(tile * SUMS + c % SIDE * SIDE + o % SIDE);
            for (tap, to) in to.iter_mut().enumerate() {
                // SAFETY: one of the sums of this group.
                let sum = unsafe { *at.add(tap * SUMS) };
                if !sum.is_finite() {
                    finite.store(false, Relaxed);
                }
                *to = BF16::narrow(sum);
            }
        }
    });
    Ok(finite.into_inner().then_some(out))
}

/// How the positions of an image lie on both sides.
struct Geometry {
    axes: (Axis, Axis),
    layout: Layout,
    /// Elements from one image to the next, of a channel of the band.
    image: usize,
    /// Steps of an image on the right.
    steps: usize,
    /// Whether they are all there are, so that the steps of the next image follow those of one.
    whole: bool,
}

impl Geometry {
    fn new(window: &Window) -> Self {
        let axes = (Axis::forward(window.row), Axis::forward(window.col));
        let layout = Layout::apart(&axes.0, &axes.1, axes.0.count, axes.1.count);
        let phases = axes.0.slots() * axes.1.slots();
        let image = (phases * layout.row_extent * layout.pitch).next_multiple_of(DEEP);
        let whole = phases == 1;
        let steps = if whole { image / DEEP } else { (axes.0.count * layout.pitch).div_ceil(DEEP) };
        Self { axes, layout, image, steps, whole }
    }

    /// Of both sides, for an image.
    fn bytes(&self, window: &Window) -> usize {
        let right = window.groups * (window.outputs / window.groups).next_multiple_of(SIDE) * self.steps * DEEP;
        (window.inputs * self.image + right) * size_of::<BF16>()
    }
}

/// A part of the images, both sides made ready.
struct Sums<'a> {
    part: &'a Part,
    geometry: Geometry,
    /// Of a group.
    channels: usize,
    outputs: usize,
    /// Of 32 channels, on both sides.
    blocks: (usize, usize),
    /// The band, and elements from one channel of it to the next.
    left: SharedMut<BF16>,
    pitch: usize,
    right: SharedMut<u8>,
    /// Where each tap begins in the band.
    taps: Vec<usize>,
}

/// Adds up the sums of a part, to what is there already or not.
fn add<U: Unit>(
    part: &Part,
    g: &[BF16],
    x: &[BF16],
    (sums, blocks): (SharedMut<f32>, (usize, usize)),
    adds: bool,
) -> Result<()> {
    let (window, geometry) = (&part.window, Geometry::new(&part.window));
    let taps = geometry.layout.offsets(&geometry.axes.0, &geometry.axes.1, 1);
    // An odd number of cache lines, so that channels do not fall into the same cache sets.
    let pitch = ((window.batch * geometry.image / DEEP) | 1) * DEEP;
    let beyond = taps.iter().max().map_or(0, |tap| tap + DEEP).next_multiple_of(DEEP);
    let left = Memory::new((window.inputs * pitch + beyond) * size_of::<BF16>())?;
    let right = Memory::new(window.groups * blocks.1 * window.batch * geometry.steps * STEP)?;
    let job = Sums {
        part,
        channels: window.inputs / window.groups,
        outputs: window.outputs / window.groups,
        blocks,
        left: SharedMut::new(left.data().cast()),
        pitch,
        right: SharedMut::new(right.data()),
        geometry,
        taps,
    };
    // SAFETY: room for the band, for what is read beyond its last channel, and for the packed right side; each task has its own
    // part. Both operands are those of the window; whoever chose the unit says that it is there.
    unsafe {
        std::slice::from_raw_parts_mut(job.left.ptr().add(window.inputs * pitch), beyond).fill(BF16(0));
        threads::parallel(window.inputs, &|channel| job.fill(x, channel));
        threads::parallel(window.groups * blocks.1 * window.batch, &|index| job.pack(g, index));
    }
    let tiles = window.groups * blocks.0 * blocks.1;
    // Taps of a task: all, as they read the same, unless threads had nothing to do.
    let count = job.taps.len();
    let some = count.div_ceil((2 * threads::num_threads()).div_ceil(tiles)).max(1);
    let pieces = count.div_ceil(some);
    threads::parallel(tiles * pieces, &|index| {
        let (tile, first) = (index / pieces, index % pieces * some);
        // SAFETY: both sides are ready, each task has its own sums, and the unit is there.
        unsafe { job.products::<U>(tile, first..count.min(first + some), sums, adds) };
    });
    Ok(())
}

impl Sums<'_> {
    /// Copies a channel of all images into the band.
    unsafe fn fill(&self, x: &[BF16], channel: usize) {
        let (window, geometry) = (&self.part.window, &self.geometry);
        let (rows, cols) = (window.row.input, window.col.input);
        let axes = (&geometry.axes.0, &geometry.axes.1);
        // Planes of the operand.
        let to = self.left.slice(channel * self.pitch..(channel + 1) * self.pitch);
        to.fill(BF16(0));
        for image in 0..window.batch {
            let at = x[(image * window.inputs + channel) * rows * cols..].as_ptr();
            geometry.layout.copy(axes, Plane { at, rows, cols }, to[image * geometry.image..].as_mut_ptr());
        }
    }

    /// Packs 32 channels of the gradient of an image.
    unsafe fn pack(&self, g: &[BF16], index: usize) {
        let (window, geometry) = (&self.part.window, &self.geometry);
        let (image, block) = (index % window.batch, index / window.batch);
        let (group, first) = (block / self.blocks.1, block % self.blocks.1 * SIDE);
        let (count, pitch) = (SIDE.min(self.outputs - first), geometry.layout.pitch);
        let (rows, cols) = (window.row.output, window.col.output);
        let long = geometry.steps * DEEP;
        with_scratch(count * long, |stage: &mut [BF16]| {
            stage.fill(BF16(0));
            let channel = image * window.outputs + group * self.outputs + first;
            for (i, line) in stage.chunks_exact_mut(long).enumerate() {
                let plane = &g[(channel + i) * rows * cols..][..rows * cols];
                for (row, from) in plane.chunks_exact(cols).enumerate() {
                    line[row * pitch..][..cols].copy_from_slice(from);
                }
            }
            for step in 0..geometry.steps {
                let from = Matrix::new(stage[step * DEEP..].as_mut_ptr(), (1, long as isize));
                let to = self.right.ptr().wrapping_add((index * geometry.steps + step) * STEP);
                // SAFETY: 32 elements of each line.
                pack::right(from, (count, DEEP), to);
            }
        });
    }

    /// The sums of some taps, for 32 channels on both sides.
    unsafe fn products<U: Unit>(&self, tile: usize, taps: std::ops::Range<usize>, sums: SharedMut<f32>, adds: bool) {
        let (window, geometry) = (&self.part.window, &self.geometry);
        let (block, of_right) = (tile / self.blocks.1, tile % self.blocks.1);
        let (group, first) = (block / self.blocks.0, block % self.blocks.0 * SIDE);
        let count = SIDE.min(self.channels - first);
        let left = self.left.ptr().wrapping_add((group * self.channels + first) * self.pitch).cast_const();
        let right = (group * self.blocks.1 + of_right) * window.batch * geometry.steps;
        let right = self.right.ptr().wrapping_add(right * STEP).cast_const();
        let row = self.pitch * size_of::<BF16>();
        let lower = if count > LINES { LINES * row } else { 0 };
        // Runs of steps that follow each other, and their length.
        let (runs, long) =
            if geometry.whole { (1, window.batch * geometry.steps) } else { (window.batch, geometry.steps) };
        // What is read beyond a channel meets zeros on the right.
        U::rows(count.min(LINES), count.saturating_sub(LINES).max(1));
        for run in 0..runs {
            for step in (0..long).step_by(CHUNK) {
                for tap in taps.clone() {
                    let at = run * geometry.image + step * DEEP + self.taps[tap];
                    let sides = Sides {
                        left: left.wrapping_add(at).cast(),
                        row,
                        lower,
                        deep: DEEP * size_of::<BF16>(),
                        right: right.wrapping_add((run * long + step) * STEP),
                        steps: CHUNK.min(long - step),
                    };
                    let to = sums.ptr().add((tile * self.taps.len() + tap) * SUMS);
                    U::multiply_askew(sides, to, adds || run + step > 0);
                }
            }
        }
        U::release();
    }
}
