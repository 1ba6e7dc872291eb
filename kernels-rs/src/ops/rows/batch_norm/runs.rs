//! Channels as runs of neighbouring elements, one run per image.

use super::{Fold, Form, Map, Operands, Rule};
use crate::array::float::{RowElement, Wide};
use crate::array::fold::{dot_centered, moments, sum};
use crate::dtype::Element;
use crate::machine::lanes::{Kernel, Lanes, launch};
use crate::machine::threads::SharedMut;
use crate::memory::scratch::{collected, filled, with_buffers};
use crate::ops::rows::for_rows;
use std::ops::Range;

/// Elements of a piece of a long run.
const PIECE: usize = 1 << 14;
/// Sums of a channel that are computed apart, at most, when there is one channel.
const CHUNKS: usize = 64;

/// Run `(n, c)` of `len` elements starts at `(n * channels + c) * len`.
impl Form {
    /// Pieces of a run.
    fn cuts(&self) -> usize {
        self.len.div_ceil(PIECE)
    }

    /// Which run a piece belongs to, and which of its pieces it is.
    fn place(&self, index: usize) -> (usize, usize) {
        let cuts = self.cuts();
        if cuts == 1 { (index, 0) } else { (index / cuts, index % cuts) }
    }

    /// Elements of a piece of a run.
    fn piece(&self, run: usize, piece: usize) -> Range<usize> {
        let start = run * self.len;
        start + piece * PIECE..start + self.len.min((piece + 1) * PIECE)
    }

    /// Two sums per channel, chunk by chunk: how many chunks depends on the shape alone. Runs are added in float64.
    pub fn fold_runs<T: RowElement>(&self, operands: &Operands<'_, T>, fold: Fold<'_, T::Wide>) -> Vec<[T::Wide; 2]> {
        let units = self.images * self.cuts();
        let wanted = (CHUNKS / self.channels.max(1)).clamp(1, units.max(1));
        let size = units.div_ceil(wanted).max(1);
        let chunks = units.div_ceil(size).max(1);
        let mut parts = filled([0.0; 2], self.channels * chunks);
        let to = SharedMut::new(parts.as_mut_ptr());
        let work = |first: usize, end: usize| {
            let rooms = operands.rooms(PIECE.min(self.len));
            with_buffers(rooms, |mut buffers: [&mut [T::Wide]; _]| {
                for index in first..end {
                    let (c, chunk) = (index / chunks, index % chunks);
                    let mut total = [0.0; 2];
                    for unit in chunk * size..((chunk + 1) * size).min(units) {
                        let (image, piece) = self.place(unit);
                        let (x, g) = operands.read(self.piece(image * self.channels + c, piece), &mut buffers);
                        let mut result = [T::Wide::ZERO; 2];
                        launch(FoldRun { x, g, fold: fold.with(|means| &means[c..=c]), result: &mut result });
                        total = [total[0] + result[0].to_f64(), total[1] + result[1].to_f64()];
                    }
                    // SAFETY: one task per part.
                    unsafe { to.slice(index..index + 1)[0] = total };
                }
            });
        };
        for_rows(self.channels * chunks, size * self.len.min(PIECE), &work);
        let add = |a: [f64; 2], b: &[f64; 2]| [a[0] + b[0], a[1] + b[1]];
        let sums = parts.chunks_exact(chunks).map(|parts| parts.iter().fold([0.0; 2], add));
        collected(sums.map(|sums| sums.map(T::Wide::from_f64)))
    }

    /// Writes the result, run by run.
    ///
    /// # Safety
    /// There is room for an element of each of the operand, which nothing else touches meanwhile.
    pub unsafe fn map_runs<T: RowElement>(&self, operands: &Operands<'_, T>, map: Map<'_, T::Wide>, to: SharedMut<T>) {
        let len = PIECE.min(self.len);
        let work = |first: usize, end: usize| {
            let [a, b, c, d] = operands.rooms(len);
            with_buffers([T::buffer(len), a, b, c, d], |[out_buffer, a, b, c, d]: [&mut [T::Wide]; _]| {
                let mut buffers = [a, b, c, d];
                for index in first..end {
                    let (run, piece) = self.place(index);
                    let (channel, piece) = (run % self.channels, self.piece(run, piece));
                    // SAFETY: the caller gives room for all pieces, and each belongs to one task.
                    let out = to.slice(piece.clone());
                    let (x, g) = operands.read(piece, &mut buffers);
                    T::write(out, out_buffer, |out| launch(MapRun { x, g, map, channel, out }));
                }
            });
        };
        for_rows(self.images * self.channels * self.cuts(), len, &work);
    }
}

struct FoldRun<'a, W> {
    x: &'a [W],
    g: &'a [W],
    fold: Fold<'a, W>,
    result: &'a mut [W; 2],
}

impl<W: Wide> Kernel<W> for FoldRun<'_, W> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = W>>(self) {
        // SAFETY: the runs have one length.
        *self.result = match self.fold {
            Fold::Sum => [sum::<V>(self.x), W::ZERO],
            Fold::Moments(mean) => moments::<V>(self.x, mean[0]),
            Fold::Products(mean) => dot_centered::<V>(self.g, self.x, mean[0]),
        };
    }
}

struct MapRun<'a, W> {
    x: &'a [W],
    g: &'a [W],
    map: Map<'a, W>,
    channel: usize,
    out: &'a mut [W],
}

impl<W: Wide> Kernel<W> for MapRun<'_, W> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = W>>(self) {
        let Self { x, g, map, channel, out } = self;
        let [mean, scale, third, fourth] = map.by.map(|values| values[channel]);
        match map.rule {
            Rule::Affine => {
                for (slot, &x) in out.iter_mut().zip(x) {
                    *slot = (x - mean).times_plus::<V::Math>(scale, third);
                }
            }
            Rule::Pull => {
                for ((slot, &g), &x) in out.iter_mut().zip(g).zip(x) {
                    *slot = scale * (g - third - (x - mean) * fourth);
                }
            }
        }
    }
}
