//! Softmax and its relatives along an axis that is not the last: the passes of a row, over a strip of columns at once.

use super::softmax::{Op, finite};
use super::{RowElement, Wide};
use crate::lanes::{Kernel, Lanes, launch};
use crate::threads::SharedMut;

/// Columns of `len` elements, `pitch` apart; `width` of them side by side.
pub struct Columns<'a, T> {
    /// From the first element of the strip on.
    pub x: &'a [T],
    /// The second operand, likewise.
    pub y: &'a [T],
    /// The whole result.
    pub out: SharedMut<T>,
    /// Place of the strip's first element in it.
    pub at: usize,
    /// Elements per column.
    pub len: usize,
    /// From one element of a column to the next.
    pub pitch: usize,
    /// Columns.
    pub width: usize,
}

/// One line across the strip, for one pass.
#[derive(Clone, Copy)]
enum Pass {
    Max,
    ExpSum,
    Scale,
    SubtractLog,
    Products,
    Pull,
    Sum,
    PullLog,
}

impl<T: RowElement> Columns<'_, T> {
    /// Elements of scratch that [`Columns::run`] needs for a strip of `len x width`.
    pub fn scratch(len: usize, width: usize) -> usize {
        (5 + len) * width
    }

    /// All passes.
    pub fn run(&self, op: Op, scratch: &mut [T::Wide]) {
        let (tops, rest) = scratch.split_at_mut(self.width);
        let (sums, rest) = rest.split_at_mut(self.width);
        let (buffers, exps) = rest.split_at_mut(3 * self.width);
        tops.fill(T::Wide::LOWEST);
        sums.fill(T::Wide::ZERO);
        let mut pass =
            |pass: Pass, tops: &mut [T::Wide], sums: &mut [T::Wide]| self.pass(pass, [tops, sums], buffers, exps);
        match op {
            Op::Softmax | Op::LogSoftmax => {
                pass(Pass::Max, tops, sums);
                for top in tops.iter_mut() {
                    *top = finite(*top);
                }
                pass(Pass::ExpSum, tops, sums);
                let plain = matches!(op, Op::Softmax);
                for sum in sums.iter_mut() {
                    *sum = match (*sum == T::Wide::ZERO, plain) {
                        (true, true) => T::Wide::ONE,
                        (false, true) => T::Wide::ONE / *sum,
                        (true, false) => T::Wide::ZERO,
                        (false, false) => sum.ln(),
                    };
                }
                pass(if plain { Pass::Scale } else { Pass::SubtractLog }, tops, sums);
            }
            Op::SoftmaxBackward => {
                pass(Pass::Products, tops, sums);
                pass(Pass::Pull, tops, sums);
            }
            Op::LogSoftmaxBackward => {
                pass(Pass::Sum, tops, sums);
                pass(Pass::PullLog, tops, sums);
            }
        }
    }

    fn pass(&self, pass: Pass, [tops, sums]: [&mut [T::Wide]; 2], buffers: &mut [T::Wide], exps: &mut [T::Wide]) {
        let (x_buffer, rest) = buffers.split_at_mut(self.width);
        let (y_buffer, out_buffer) = rest.split_at_mut(self.width);
        for i in 0..self.len {
            let line = i * self.pitch..i * self.pitch + self.width;
            let x = T::read(&self.x[line.clone()], x_buffer);
            let y = T::read(&self.y[line.clone()], y_buffer);
            let exps = &mut exps[i * self.width..(i + 1) * self.width];
            let mut work = |out: &mut [T::Wide]| launch::<T::Wide, _>(Line { pass, x, y, out, tops, sums, exps });
            match pass {
                Pass::Max | Pass::ExpSum | Pass::Products | Pass::Sum => work(&mut []),
                _ => {
                    // SAFETY: the strip belongs to one task.
                    let out = unsafe { self.out.slice(self.at + line.start..self.at + line.end) };
                    T::write(out, &mut out_buffer[..self.width], work);
                }
            }
        }
    }
}

struct Line<'a, W> {
    pass: Pass,
    x: &'a [W],
    y: &'a [W],
    out: &'a mut [W],
    tops: &'a mut [W],
    sums: &'a mut [W],
    exps: &'a mut [W],
}

impl<W: Wide> Kernel<W> for Line<'_, W> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = W>>(self) {
        let Line { pass, x, y, out, tops, sums, exps } = self;
        let columns = x.iter().zip(y).zip(&mut *tops).zip(&mut *sums);
        match pass {
            Pass::Max => {
                for (((&x, _), top), _) in columns {
                    *top = if x > *top { x } else { *top };
                }
            }
            Pass::ExpSum => {
                for ((((&x, _), top), sum), slot) in columns.zip(exps) {
                    *slot = (x - *top).exp::<V::Math>();
                    *sum = *sum + *slot;
                }
            }
            Pass::Scale => {
                for ((slot, &mut e), &mut scale) in out.iter_mut().zip(exps).zip(sums) {
                    *slot = e * scale;
                }
            }
            Pass::SubtractLog => {
                for ((((&x, _), top), log), slot) in columns.zip(out) {
                    *slot = x - *top - *log;
                }
            }
            Pass::Products => {
                for (((&g, &y), _), sum) in columns {
                    *sum = g.times_plus::<V::Math>(y, *sum);
                }
            }
            Pass::Pull => {
                for ((((&g, &y), _), sum), slot) in columns.zip(out) {
                    *slot = y * (g - *sum);
                }
            }
            Pass::Sum => {
                for (((&g, _), _), sum) in columns {
                    *sum = *sum + g;
                }
            }
            Pass::PullLog => {
                for ((((&g, &y), _), sum), slot) in columns.zip(out) {
                    *slot = g - y.exp::<V::Math>() * *sum;
                }
            }
        }
    }
}
