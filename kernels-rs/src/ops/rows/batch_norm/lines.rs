//! Channels whose runs are short, as columns of a matrix: every image is a row of `channels * len` elements, and what is
//! known of a channel is repeated for each of its columns. Narrow rows stand side by side in one line.

use super::{Fold, Form, Map, Operands, Rule};
use crate::array::float::{RowElement, Wide};
use crate::dtype::Element;
use crate::machine::lanes::{Kernel, Lanes, launch};
use crate::machine::threads::SharedMut;
use crate::math::Fma;
use crate::memory::scratch::{collected, filled, with_buffers};
use crate::ops::rows::columns::add_moments;
use crate::ops::rows::for_rows;
use std::ops::Range;

/// Columns side by side: their sums and coefficients stay in the first-level cache.
const WIDE: usize = 1024;
/// Lines whose sums are added up before they join the others: errors grow slowly.
const BLOCK: usize = 32;
/// Parts of the sums, at most.
const CHUNKS: usize = 32;

impl Form {
    /// Elements of an image.
    fn width(&self) -> usize {
        self.channels * self.len
    }

    /// Elements of a line: whole images.
    fn line(&self) -> usize {
        let width = self.width();
        width * (WIDE / width.max(1)).clamp(1, self.images.max(1))
    }

    /// Lines, the last of which may be shorter, and strips of a line.
    fn cuts_of_lines(&self) -> (usize, usize) {
        ((self.images * self.width()).div_ceil(self.line().max(1)), self.line().div_ceil(WIDE))
    }

    /// Places of a strip in its line, and its elements in line `line`.
    fn strip(&self, line: usize, strip: usize) -> (Range<usize>, Range<usize>) {
        let start = line * self.line();
        let end = (start + self.line()).min(self.images * self.width());
        let columns = strip * WIDE..self.line().min((strip + 1) * WIDE);
        (columns.clone(), (start + columns.start).min(end)..(start + columns.end).min(end))
    }

    /// A value per channel, as one per place of a line.
    fn repeated<W: Copy>(&self, values: &[W]) -> Vec<W> {
        collected((0..self.line()).map(|at| values[at % self.width() / self.len]))
    }

    /// Two sums per channel, chunk by chunk: how many chunks depends on the shape alone. Columns and chunks are added in
    /// float64: beside one large element the others would be lost.
    pub fn fold_lines<T: RowElement>(&self, operands: &Operands<'_, T>, fold: Fold<'_, T::Wide>) -> Vec<[T::Wide; 2]> {
        let (lines, strips) = self.cuts_of_lines();
        let size = lines.div_ceil(CHUNKS).max(BLOCK / 2);
        let chunks = lines.div_ceil(size);
        let means = fold.means().map(|means| self.repeated(means));
        let fold = fold.with(|_| means.as_deref().unwrap_or_default());
        let mut parts = filled([0.0; 2], chunks * self.width());
        let to = SharedMut::new(parts.as_mut_ptr());
        for_rows(chunks * strips, size * self.line().min(WIDE), &|first, end| {
            for index in first..end {
                let (chunk, strip) = (index / strips, index % strips);
                let start = self.strip(0, strip).0.start;
                // SAFETY: strips of one chunk share no column: a line of several strips is one image.
                let columns = unsafe { to.slice(chunk * self.width() + start..(chunk + 1) * self.width()) };
                self.fold_strip(operands, fold, (chunk * size..lines.min((chunk + 1) * size), strip), columns);
            }
        });
        let mut sums = filled([0.0; 2], self.channels);
        for image in parts.chunks_exact(self.width().max(1)) {
            for (sum, columns) in sums.iter_mut().zip(image.chunks_exact(self.len)) {
                *sum = columns.iter().fold(*sum, |sum: [f64; 2], part| [sum[0] + part[0], sum[1] + part[1]]);
            }
        }
        collected(sums.into_iter().map(|sums| sums.map(T::Wide::from_f64)))
    }

    /// Adds one strip of some lines to the columns of an image, the first of which is that of the strip.
    fn fold_strip<T: RowElement>(
        &self,
        operands: &Operands<'_, T>,
        fold: Fold<'_, T::Wide>,
        (lines, strip): (Range<usize>, usize),
        columns: &mut [[f64; 2]],
    ) {
        let width = self.line().min(WIDE);
        let [a, b, c, d] = operands.rooms(width);
        let lens = [width, width, width, width, a, b, c, d];
        with_buffers(lens, |[first, second, total_first, total_second, a, b, c, d]: [&mut [T::Wide]; _]| {
            let mut buffers = [a, b, c, d];
            let mut totals = [total_first, total_second];
            let mut parts = [first, second];
            totals.iter_mut().chain(&mut parts).for_each(|sums| sums.fill(T::Wide::ZERO));
            for block in lines.clone().step_by(BLOCK) {
                for line in block..lines.end.min(block + BLOCK) {
                    let (places, range) = self.strip(line, strip);
                    let (x, g) = operands.read(range, &mut buffers);
                    let [first, second] = &mut parts;
                    launch(FoldLine { x, g, fold: fold.with(|means| &means[places]), sums: [first, second] });
                }
                for (total, part) in totals.iter_mut().zip(&mut parts) {
                    for (total, part) in total.iter_mut().zip(part.iter_mut()) {
                        *total = *total + *part;
                        *part = T::Wide::ZERO;
                    }
                }
            }
            let used = self.strip(0, strip).0.len();
            let [first, second] = totals.each_ref().map(|sums| sums[..used].chunks(self.width()));
            for (first, second) in first.zip(second) {
                for ((column, &first), &second) in columns.iter_mut().zip(first).zip(second) {
                    *column = [column[0] + first.to_f64(), column[1] + second.to_f64()];
                }
            }
        });
    }

    /// Writes the result, line by line.
    ///
    /// # Safety
    /// There is room for an element of each of the operand, which nothing else touches meanwhile.
    pub unsafe fn map_lines<T: RowElement>(&self, operands: &Operands<'_, T>, map: Map<'_, T::Wide>, to: SharedMut<T>) {
        let (lines, strips) = self.cuts_of_lines();
        let width = self.line().min(WIDE);
        let repeated = map.by.map(|values| self.repeated(values));
        for_rows(lines * strips, width, &|first, end| {
            let [a, b, c, d] = operands.rooms(width);
            with_buffers([T::buffer(width), a, b, c, d], |[out_buffer, a, b, c, d]: [&mut [T::Wide]; _]| {
                let mut buffers = [a, b, c, d];
                for index in first..end {
                    let (places, range) = self.strip(index / strips, index % strips);
                    // SAFETY: the caller gives room for all lines, and each strip of one belongs to one task.
                    let out = to.slice(range.clone());
                    let (x, g) = operands.read(range, &mut buffers);
                    let map = Map { by: repeated.each_ref().map(|values| &values[places.clone()]), ..map };
                    T::write(out, out_buffer, |out| launch(MapLine { x, g, map, out }));
                }
            });
        });
    }
}

struct FoldLine<'a, W> {
    x: &'a [W],
    g: &'a [W],
    fold: Fold<'a, W>,
    sums: [&'a mut [W]; 2],
}

impl<W: Wide> Kernel<W> for FoldLine<'_, W> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = W>>(self) {
        let Self { x, g, fold, sums: [first, second] } = self;
        match fold {
            Fold::Sum => {
                for (sum, &x) in first.iter_mut().zip(x) {
                    *sum = *sum + x;
                }
            }
            Fold::Moments(means) => add_moments::<W, V::Math>(x, means, first, second),
            Fold::Products(means) => add_products::<W, V::Math>([g, x, means], first, second),
        }
    }
}

struct MapLine<'a, W> {
    x: &'a [W],
    g: &'a [W],
    map: Map<'a, W>,
    out: &'a mut [W],
}

impl<W: Wide> Kernel<W> for MapLine<'_, W> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = W>>(self) {
        let Self { x, g, map, out } = self;
        match map.rule {
            Rule::Affine => affine::<W, V::Math>(x, map.by, out),
            Rule::Pull => pull(g, x, map.by, out),
        }
    }
}

// Functions of slices, so that the compiler knows that they do not overlap.

#[inline(always)]
fn add_products<W: Wide, M: Fma>([g, x, means]: [&[W]; 3], first: &mut [W], second: &mut [W]) {
    for ((((first, second), &g), &x), &mean) in first.iter_mut().zip(second).zip(g).zip(x).zip(means) {
        (*first, *second) = (*first + g, g.times_plus::<M>(x - mean, *second));
    }
}

#[inline(always)]
fn affine<W: Wide, M: Fma>(x: &[W], [means, scales, biases, _]: [&[W]; 4], out: &mut [W]) {
    for ((((slot, &x), &mean), &scale), &bias) in out.iter_mut().zip(x).zip(means).zip(scales).zip(biases) {
        *slot = (x - mean).times_plus::<M>(scale, bias);
    }
}

#[inline(always)]
fn pull<W: Wide>(g: &[W], x: &[W], [means, scales, levels, pulls]: [&[W]; 4], out: &mut [W]) {
    let by = means.iter().zip(scales).zip(levels).zip(pulls);
    for (((slot, &g), &x), (((&mean, &scale), &level), &pull)) in out.iter_mut().zip(g).zip(x).zip(by) {
        *slot = scale * (g - level - (x - mean) * pull);
    }
}
