//! The weights of a convolution by tiles: `G w G'`, a block of [`ROWS`] output channels at a time.

#![expect(clippy::needless_range_loop, reason = "counted loops over a tile are unrolled into registers")]

use super::points::points;
use super::{Plan, ROWS};
use crate::dtype::Element;
use crate::machine::lanes::{Block, Kernel, Lanes, Real};

/// Most lanes that are transformed together: two channels of a block.
const WIDTH: usize = 2 * ROWS;

/// One block of output channels whose weights are to be transformed.
pub struct Weights<'a, 'b, T> {
    /// The plan whose weights these are.
    pub plan: &'a Plan<'b, T>,
    /// Group and block.
    pub index: usize,
}

impl<T: Real> Kernel<T> for Weights<'_, '_, T> {
    const BASELINE: bool = false;
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let plan = self.plan;
        let (call, weight) = (plan.call, &plan.call.weight);
        let blocks = call.outputs.div_ceil(ROWS);
        let (group, block) = (self.index / blocks, self.index % blocks);
        let count = ROWS.min(call.outputs - block * ROWS);
        // Where tap (row, column) of the window lies among the nine of the kernel.
        let mut places = [0; 9];
        for row in &call.row_axis.taps {
            for col in &call.col_axis.taps {
                places[row.shift * 3 + col.shift] = row.index * weight.kernel_cols + col.index;
            }
        }
        let start = group * weight.group + block * ROWS * weight.output;
        let from = weight.data.as_ptr().wrapping_add(start);
        let to = plan.weights.ptr().wrapping_add(plan.weights_at(group, 0, block));
        let step = plan.weights_at(0, 1, 0);
        // Lines of `[kernel place][channel][output]`, as wide as a register or a channel.
        let mut taps = [T::default(); 9 * WIDTH];
        let together = V::N.div_ceil(ROWS);
        let width = together * ROWS;
        for first in (0..call.channels).step_by(together) {
            let some = together.min(call.channels - first);
            // SAFETY: the nine taps of `count` output channels lie inside the weights; each task writes its own block.
            for c in 0..some {
                let at = from.wrapping_add((first + c) * weight.channel);
                turn::<V>(at, (weight.output, count), taps.as_mut_ptr().add(c * ROWS), width);
            }
            for lane in (0..width).step_by(V::N) {
                let to = to.add(first * ROWS + lane);
                transform::<V>(taps.as_ptr().add(lane), &places, width, (to, step, some * ROWS - lane));
            }
        }
    }
}

/// The nine taps of `rows` output channels, `pitch` apart, as nine lines of [`ROWS`].
///
/// # Safety
/// The places are valid; the machine has the instructions of `V`.
#[inline(always)]
unsafe fn turn<V: Lanes>(from: *const V::Elem, (pitch, rows): (usize, usize), to: *mut V::Elem, width: usize) {
    for row in (0..ROWS).step_by(V::N) {
        for tap in (0..9).step_by(V::N) {
            let (rows, cols) = (rows.saturating_sub(row).min(V::N), (9 - tap).min(V::N));
            let at = from.wrapping_add(row * pitch + tap);
            V::transpose(Block { at, pitch, rows, cols }, to.add(tap * width + row), width, V::N.min(ROWS));
        }
    }
}

/// `G w G'` of a register: 16 points, `step` apart, of which `count` lanes are kept.
///
/// # Safety
/// `taps` holds nine lines, `to` the lanes that are kept; the machine has the instructions of `V`.
#[inline(always)]
unsafe fn transform<V: Lanes>(
    taps: *const V::Elem,
    places: &[usize; 9],
    width: usize,
    (to, step, count): (*mut V::Elem, usize, usize),
) {
    let half = V::splat(V::Elem::from_f64(0.5));
    let mut lines = [[half; 3]; 4];
    for col in 0..3 {
        let mut column = [half; 3];
        for row in 0..3 {
            column[row] = V::load(taps.add(places[row * 3 + col] * width));
        }
        let column = points(column, half);
        for row in 0..4 {
            lines[row][col] = column[row];
        }
    }
    for row in 0..4 {
        let line = points(lines[row], half);
        for col in 0..4 {
            line[col].store_some(to.add((row * 4 + col) * step), count.min(V::N));
        }
    }
}
