//! A correlation of few channels per group, straight from the band.

use super::band::{Layout, Plane};
use super::{Correlation, rows};
use crate::machine::lanes::{Kernel, Lanes, Real, launch};
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::{Aligned, with_scratch};

/// Bytes of source that a task copies at a time: well inside a second-level cache, beside the weights.
const BAND_BYTES: usize = 256 << 10;
/// Tasks to aim for, at least: each computes whole results.
const TASKS: usize = 32;
/// Output channels that share a register of the source.
const BLOCK: usize = 8;

/// What all tasks share.
struct Job<'a, T> {
    call: &'a Correlation<'a, T>,
    layout: Layout,
    offsets: Vec<usize>,
    packed: Aligned<T>,
    out: SharedMut<T>,
    row_tiles: usize,
    col_tiles: usize,
    /// Output channels per task, a multiple of the block.
    output_chunk: usize,
}

/// Runs the correlation.
///
/// # Safety
/// As for [`super::correlation`].
pub unsafe fn run<T: Real>(call: &Correlation<'_, T>, out: SharedMut<T>) {
    let (row_axis, col_axis) = (call.row_axis, call.col_axis);
    let planes = call.batch * call.groups;
    let budget = BAND_BYTES / size_of::<T>();
    let wanted = threads::tasks(TASKS);
    let tiles = wanted.div_ceil(planes).min(row_axis.count.div_ceil(4));
    let layout = Layout::fit(row_axis, col_axis, call.channels, budget, tiles);
    let (row_tiles, col_tiles) = (row_axis.count.div_ceil(layout.rows), col_axis.count.div_ceil(layout.cols));
    let offsets = layout.offsets(row_axis, col_axis, call.channels);
    let chunks = wanted.div_ceil(planes * row_tiles * col_tiles).min(call.outputs.div_ceil(BLOCK));
    let output_chunk = call.outputs.div_ceil(BLOCK).div_ceil(chunks) * BLOCK;
    let packed = pack(call, offsets.len());
    let job = Job { call, layout, offsets, packed, out, row_tiles, col_tiles, output_chunk };
    let chunks = call.outputs.div_ceil(output_chunk);
    let len = job.layout.len(call.channels);
    threads::parallel(planes * row_tiles * col_tiles * chunks, &|index| {
        with_scratch(len, |band| launch(Tile { job: &job, band, index }));
    });
}

/// Weights in the order in which the inner loop reads them: blocks of output channels as [`block_of`] cuts them, inside
/// a block tap by tap.
fn pack<T: Real>(call: &Correlation<'_, T>, taps: usize) -> Aligned<T> {
    let group = call.outputs * taps;
    let mut packed = Aligned::zeros(group * call.groups);
    for (g, part) in packed.chunks_exact_mut(group.max(1)).enumerate() {
        let mut rest = part;
        let mut o = 0;
        while o < call.outputs {
            let size = block_of(call.outputs - o);
            let (head, tail) = rest.split_at_mut(size * taps);
            pack_block(call, g, o, size, head);
            rest = tail;
            o += size;
        }
    }
    packed
}

fn pack_block<T: Real>(call: &Correlation<'_, T>, g: usize, first: usize, size: usize, block: &mut [T]) {
    let weight = &call.weight;
    let mut lines = block.chunks_exact_mut(size);
    for c in 0..call.channels {
        for row in &call.row_axis.taps {
            for col in &call.col_axis.taps {
                let tap = row.index * weight.kernel_cols + col.index;
                let at = g * weight.group + first * weight.output + c * weight.channel + tap;
                let values = weight.data[at..].iter().step_by(weight.output);
                let line = lines.next().expect("one line per tap");
                line.iter_mut().zip(values).for_each(|(slot, &value)| *slot = value);
            }
        }
    }
}

/// Output channels in the next block when so many are left.
fn block_of(left: usize) -> usize {
    match left {
        BLOCK.. => BLOCK,
        4.. => 4,
        2.. => 2,
        _ => 1,
    }
}

/// One task.
struct Tile<'a, T> {
    job: &'a Job<'a, T>,
    band: &'a mut [T],
    index: usize,
}

/// Where a tile lies.
struct Place {
    image: usize,
    group: usize,
    outputs: (usize, usize),
    first: (usize, usize),
    rows: usize,
    cols: usize,
}

impl<T: Real> Kernel<T> for Tile<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let Tile { job, band, index } = self;
        let place = job.place(index);
        // SAFETY: the band has room for the slack; the tile belongs to this task.
        job.fill::<V>(&place, band);
        job.by_positions::<V>(&place, band);
    }
}

impl<T: Real> Job<'_, T> {
    fn place(&self, index: usize) -> Place {
        let call = self.call;
        let chunks = call.outputs.div_ceil(self.output_chunk);
        let (index, chunk) = (index / chunks, index % chunks);
        let (index, col_tile) = (index / self.col_tiles, index % self.col_tiles);
        let (plane, row_tile) = (index / self.row_tiles, index % self.row_tiles);
        let first = (row_tile * self.layout.rows, col_tile * self.layout.cols);
        Place {
            image: plane / call.groups,
            group: plane % call.groups,
            outputs: (chunk * self.output_chunk, ((chunk + 1) * self.output_chunk).min(call.outputs)),
            first,
            rows: self.layout.rows.min(call.row_axis.count - first.0),
            cols: self.layout.cols.min(call.col_axis.count - first.1),
        }
    }

    #[inline(always)]
    unsafe fn fill<V: Lanes<Elem = T>>(&self, place: &Place, band: &mut [T]) {
        let call = self.call;
        let (rows, cols) = call.source_size;
        let first_channel = (place.image * call.groups + place.group) * call.channels;
        for c in 0..call.channels {
            // SAFETY: inside the source; the band holds all channels and the slack.
            let at = call.source.as_ptr().add((first_channel + c) * rows * cols);
            let to = band.as_mut_ptr().add(c * self.layout.channel);
            self.layout.fill::<V>((call.row_axis, call.col_axis), place.first, Plane { at, rows, cols }, to);
        }
    }

    /// Address of the result for an output channel of the group, and tile position `(t, u)`.
    #[inline(always)]
    fn target(&self, place: &Place, output: usize, t: usize, u: usize) -> *mut T {
        let call = self.call;
        let plane = (place.image * call.groups + place.group) * call.outputs + output;
        let row = call.row_axis.out_start + (place.first.0 + t) * call.row_axis.out_step;
        let col = call.col_axis.out_start + (place.first.1 + u) * call.col_axis.out_step;
        let at = (plane * call.out_size.0 + row) * call.out_size.1 + col;
        self.out.ptr().wrapping_add(at)
    }

    #[inline(always)]
    unsafe fn by_positions<V: Lanes<Elem = T>>(&self, place: &Place, band: &[T]) {
        let mut first = place.outputs.0;
        while first < place.outputs.1 {
            let count = block_of(place.outputs.1 - first);
            let strip = Strip { job: self, place, band, first };
            // SAFETY: these outputs are some of its.
            match (count, V::ROWS > 6) {
                (8, true) => strip.positions::<V, 8, 3>(),
                (8, false) => strip.positions::<V, 8, 1>(),
                (4, true) => strip.positions::<V, 4, 4>(),
                (4, false) => strip.positions::<V, 4, 2>(),
                (2, _) => strip.positions::<V, 2, 4>(),
                _ => strip.positions::<V, 1, 8>(),
            }
            first += count;
        }
    }
}

/// A block of output channels over one tile.
struct Strip<'a, T> {
    job: &'a Job<'a, T>,
    place: &'a Place,
    band: &'a [T],
    first: usize,
}

impl<T: Real> Strip<'_, T> {
    #[inline(always)]
    fn weights(&self) -> *const T {
        let job = self.job;
        let first = self.place.group * job.call.outputs + self.first;
        job.packed.as_ptr().wrapping_add(first * job.offsets.len())
    }

    #[inline(always)]
    fn bias(&self, output: usize) -> T {
        let at = self.place.group * self.job.call.outputs + output;
        self.job.call.bias.map_or(T::default(), |bias| bias[at])
    }

    /// All registers of neighbouring positions of the tile, `Q` at a time.
    #[inline(always)]
    unsafe fn positions<V: Lanes<Elem = T>, const M: usize, const Q: usize>(&self) {
        let (job, place) = (self.job, self.place);
        let total = place.rows * place.cols.div_ceil(V::N);
        let plane = job.call.out_size.0 * job.call.out_size.1;
        let mut bias = [T::default(); M];
        for (m, slot) in bias.iter_mut().enumerate() {
            *slot = self.bias(self.first + m);
        }
        let (mut t, mut u) = (0, 0);
        let mut first = 0;
        while first < total {
            let mut at = [(t, u); Q];
            let filled = Q.min(total - first);
            for slot in &mut at[..filled] {
                *slot = (t, u);
                u += V::N;
                if u >= place.cols {
                    (t, u) = (t + 1, 0);
                }
            }
            // SAFETY: registers past the end repeat an earlier one; lanes past the row read slack and are not stored.
            let mut x = [self.band.as_ptr(); Q];
            for q in 0..Q {
                x[q] = x[q].add(at[q].0 * job.layout.pitch + at[q].1);
            }
            let mut acc = [[V::splat(T::default()); Q]; M];
            for m in 0..M {
                acc[m] = [V::splat(bias[m]); Q];
            }
            rows::correlate::<V, M, Q>(&job.offsets, self.weights(), x, &mut acc);
            for q in 0..filled {
                let to = job.target(place, self.first, at[q].0, at[q].1);
                for (m, line) in acc.iter().enumerate() {
                    rows::put(line[q], to.add(m * plane), (place.cols - at[q].1).min(V::N), job.call.col_axis.out_step);
                }
            }
            first += Q;
        }
    }
}
