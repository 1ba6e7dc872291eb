//! One pass of a reduction: plans how a strided array meets the two loops of a [`Kernel`].

use super::block::{BLOCK, ColumnJob, RowJob, SCRATCH_ROWS};
use super::kernel::Kernel;
use crate::array::Array;
use crate::array::axes::{self, Path as _, merged, offset};
use crate::array::shape::{Inline, Shape, numel};
use crate::array::source::{Source, Strided};
use crate::dtype::DType;
use crate::error::Result;
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::Arena;

/// Elements that are worth a task of their own.
const GRAIN: usize = 1 << 15;
/// Elements of a tile of columns, in bytes of its 16 rows of results.
const TILE_BYTES: usize = 16 << 10;

/// One axis: length, step of the source, step of the result (both in elements).
#[derive(Clone, Copy, Debug, Default)]
pub struct Axis {
    /// Length.
    pub len: usize,
    /// Step of the source.
    pub step: isize,
    /// Step of the result; unused for reduced axes.
    pub out: isize,
}

impl axes::Axis for Axis {
    fn len(&self) -> usize {
        self.len
    }
    fn with_len(self, len: usize) -> Self {
        Self { len, ..self }
    }
    fn spans(&self, inner: &Self) -> bool {
        let len = inner.len as isize;
        self.step == inner.step * len && self.out == inner.out * len
    }
}

impl axes::Path for Axis {
    /// Of the source and of the result.
    type At = (isize, isize);
    fn moved(&self, (from, to): (isize, isize), by: isize) -> (isize, isize) {
        (from + by * self.step, to + by * self.out)
    }
}

/// Axes of a pass.
pub type Axes = Inline<Axis>;

/// Reduces over `run`, a group of neighbouring axes, and keeps the others.
pub struct Pass<'a> {
    /// The loops.
    pub kernel: &'a Kernel,
    /// The element at index 0.
    pub x: *const u8,
    /// Axes that stay, in order.
    pub kept: Axes,
    /// Axes that go, in order.
    pub run: Axes,
    /// Dtype of the result, where the kernel's results are the same bits; else it is the kernel's.
    pub wanted: DType,
}

// SAFETY: tasks only read through the address; `Pass::run` has the caller's word that it is good.
unsafe impl Sync for Pass<'_> {}

/// Which loop fits the layout.
enum Plan {
    /// The run is dense.
    Rows,
    /// The run is gathered into a dense buffer.
    Gathered,
    /// This kept axis is the innermost one.
    Columns(usize),
}

impl Pass<'_> {
    /// A dense array of the kept axes, in the kernel's result type or the wanted one. No axis is empty.
    ///
    /// # Safety
    /// The axes lie inside the memory behind `x`.
    pub unsafe fn run(mut self) -> Result<Array> {
        self.run.iter_mut().for_each(|axis| axis.out = 0);
        self.run = merged(self.run.iter().copied());
        let rank = self.kept.len();
        self.keep_outer_run();
        let mut shape = Shape::empty();
        self.kept.iter().for_each(|axis| shape.push(axis.len));
        let outputs = numel(&shape);
        let len: usize = self.run.iter().map(|axis| axis.len).product();
        let blocks = len.div_ceil(BLOCK);
        let plan = self.plan();
        // The results of blocks lie behind each output for rows, before all of them for columns.
        let (out_step, block_step) = if matches!(plan, Plan::Columns(_)) { (1, outputs) } else { (blocks, 1) };
        let mut step = out_step as isize;
        for axis in self.kept.iter_mut().rev() {
            axis.out = step;
            step *= axis.len as isize;
        }
        let done = blocks == 1 && self.kept.len() == rank;
        let out = if done {
            Array::uninit(same_bits(self.kernel.acc, self.wanted).unwrap_or(self.kernel.acc), &shape)?
        } else {
            Array::uninit(self.kernel.acc, &[outputs, blocks])?
        };
        let to = SharedMut::new(out.storage().data());
        // SAFETY: `to` has room for each block of each output.
        match plan {
            Plan::Columns(inner) => self.columns(inner, len, block_step, to),
            Plan::Rows => self.rows(len, false, to),
            Plan::Gathered => self.rows(len, true, to),
        }
        if done {
            return Ok(out);
        }
        let mut kept = self.kept;
        kept.iter_mut().for_each(|axis| axis.step = axis.out);
        let mut run = Axes::from_slice(&kept[rank..])?;
        run.push(Axis { len: blocks, step: block_step as isize, out: 0 });
        let kept = Axes::from_slice(&kept[..rank])?;
        // SAFETY: the axes describe the array just written.
        Pass { kernel: (self.kernel.again)(), x: out.data(), kept, run, wanted: self.wanted }.run()
    }

    /// When the last axis of the run holds whole blocks and another one lies closer in memory, the blocks along the
    /// last axis are folded as columns first. Blocks and their order stay the same.
    fn keep_outer_run(&mut self) {
        let Some((last, outer)) = self.run.split_last() else { return };
        let closer = |axis: &Axis| axis.step != 0 && axis.step.abs() < last.step.abs();
        if last.len.is_multiple_of(BLOCK) && outer.iter().any(closer) {
            for &axis in outer {
                self.kept.push(axis);
            }
            self.run = Axes::filled(*last, 1);
        }
    }

    fn plan(&self) -> Plan {
        if let [only] = self.run[..]
            && only.step == 1
        {
            return Plan::Rows;
        }
        let steps = |axes: &Axes| axes.iter().map(|axis| axis.step.unsigned_abs()).filter(|&step| step > 0).min();
        let run = steps(&self.run).unwrap_or(usize::MAX);
        let inner = (0..self.kept.len()).filter(|&i| self.kept[i].step != 0 && self.kept[i].len > 1);
        match inner.min_by_key(|&i| self.kept[i].step.unsigned_abs()) {
            Some(i) if self.kept[i].step.unsigned_abs() < run => Plan::Columns(i),
            _ if self.run.is_empty() => Plan::Rows,
            _ => Plan::Gathered,
        }
    }

    /// Rows of `len` elements: one task takes several rows, or a part of a long one.
    unsafe fn rows(&self, len: usize, gather: bool, out: SharedMut<u8>) {
        let kept = merged(self.kept.iter().copied());
        let outputs: usize = kept.iter().map(|axis| axis.len).product();
        let mut dims: Inline<(usize, isize)> = Inline::empty();
        kept.iter().chain(self.run.iter()).for_each(|axis| dims.push((axis.len, axis.step)));
        let source = Strided::new(self.x, self.kernel.size, dims.iter().copied());
        // Sixteen rows of a transposed matrix at a time use whole cache lines.
        let grain = match dims[..] {
            [.., (_, near), (inner, far)] if gather && near.abs() < far.abs() && inner <= 1 << 14 => {
                GRAIN.max((16 * inner).next_multiple_of(BLOCK))
            }
            _ => GRAIN,
        };
        if len > 2 * grain {
            let pieces = len.div_ceil(grain);
            threads::parallel(outputs * pieces, &|task| {
                let (row, start) = (task / pieces, task % pieces * grain);
                // SAFETY: a part of one row.
                self.row_part(&source, row * len + start, grain.min(len - start), len, out);
            });
        } else {
            let rows = (grain / len).max(1);
            threads::parallel(outputs.div_ceil(rows), &|task| {
                let (first, count) = (task * rows, rows.min(outputs - task * rows));
                // SAFETY: whole rows.
                if gather {
                    self.row_part(&source, first * len, count * len, len, out);
                } else {
                    self.row_group(&kept, first, count, len, out);
                }
            });
        }
    }

    /// Elements `start .. start + count` of the row-major order of all: whole rows, or whole blocks of one row.
    unsafe fn row_part<S: Source>(&self, source: &S, start: usize, count: usize, len: usize, out: SharedMut<u8>) {
        let (size, narrow) = (self.kernel.size, self.kernel.narrow);
        let bytes = source.room(count) * size;
        Arena::with([bytes], |mut room| {
            // SAFETY: the range lies inside the array; elements of the room are aligned.
            let x = source.part(start..start + count, room.take::<u8>(bytes));
            let rows = count.div_ceil(len);
            if len <= BLOCK {
                // SAFETY: the rows lie one after another; each has its own result.
                return unsafe {
                    let out = out.ptr().add(start / len * self.kernel.acc.itemsize());
                    (self.kernel.rows)(&RowJob { x, count: rows, stride: len as isize, len, out, narrow });
                };
            }
            for row in 0..rows {
                let first = (start / len) + row;
                // SAFETY: the row lies inside the part.
                self.one_row(x.add(row * len * size), first, start % len, len.min(count), len, out);
            }
        });
    }

    /// Dense rows, fetched where they lie.
    unsafe fn row_group(&self, kept: &Axes, first: usize, count: usize, len: usize, out: SharedMut<u8>) {
        let dims: Inline<(usize, isize)> = {
            let mut dims = Inline::empty();
            kept.iter().for_each(|axis| dims.push((axis.len, axis.step)));
            dims
        };
        let (last_len, last_step) = dims.last().copied().unwrap_or((1, 0));
        let (size, narrow) = (self.kernel.size as isize, self.kernel.narrow);
        let mut row = first;
        while row < first + count {
            let together = (last_len - row % last_len).min(first + count - row);
            // SAFETY: the rows lie inside the array; each has its own results.
            let x = self.x.offset(offset(&dims, row) * size);
            if len <= BLOCK {
                let out = out.ptr().add(row * self.kernel.acc.itemsize());
                (self.kernel.rows)(&RowJob { x, count: together, stride: last_step, len, out, narrow });
            } else {
                for k in 0..together {
                    let x = x.offset(k as isize * last_step * size);
                    self.one_row(x, row + k, 0, len, len, out);
                }
            }
            row += together;
        }
    }

    /// Elements `start .. start + count` of row `row`, dense at `x`; `start` is a multiple of a block.
    unsafe fn one_row(&self, x: *const u8, row: usize, start: usize, count: usize, len: usize, out: SharedMut<u8>) {
        let (whole, rest, narrow) = (count / BLOCK, count % BLOCK, self.kernel.narrow);
        let at = row * len.div_ceil(BLOCK) + start / BLOCK;
        // SAFETY: the blocks lie inside the row; each has its own result.
        let out = out.ptr().add(at * self.kernel.acc.itemsize());
        (self.kernel.rows)(&RowJob { x, count: whole, stride: BLOCK as isize, len: BLOCK, out, narrow });
        if rest > 0 {
            let x = x.add(whole * BLOCK * self.kernel.size);
            let out = out.add(whole * self.kernel.acc.itemsize());
            (self.kernel.rows)(&RowJob { x, count: 1, stride: 0, len: rest, out, narrow });
        }
    }

    /// Columns: a job is one block of rows and one tile of columns.
    unsafe fn columns(&self, inner: usize, len: usize, block_step: usize, out: SharedMut<u8>) {
        let line = self.kept[inner];
        let mut outer = self.kept;
        outer.remove(inner);
        let outers: usize = outer.iter().map(|axis| axis.len).product();
        let tile = (TILE_BYTES / 16 / self.kernel.acc.itemsize()).min(line.len);
        let (tiles, blocks) = (line.len.div_ceil(tile), len.div_ceil(BLOCK));
        let jobs = outers * blocks * tiles;
        let together = (GRAIN / (len.min(BLOCK) * tile)).max(1);
        threads::parallel(jobs.div_ceil(together), &|task| {
            // Of eight bytes, which hold one result, or two widened elements; and where the rows begin.
            let (rooms, most) = ([SCRATCH_ROWS * tile, 8 * tile], BLOCK.min(len));
            Arena::with([8 * rooms[0], 8 * rooms[1], size_of::<isize>() * most], |mut room| {
                let [scratch, line_room] = rooms.map(|words| room.take::<u64>(words).as_mut_ptr());
                let starts = room.take::<isize>(most);
                for job in task * together..jobs.min((task + 1) * together) {
                    let (first, block, which) = (job % tiles * tile, job / tiles % blocks, job / tiles / blocks);
                    let width = tile.min(line.len - first);
                    let rows = &mut starts[..BLOCK.min(len - block * BLOCK)];
                    self.row_offsets(block * BLOCK, rows);
                    let (from, to) = line.moved(offset(&outer, which), first as isize);
                    let to = to + (block * block_step) as isize;
                    // SAFETY: the job lies inside the array; each of its columns has its own result.
                    (self.kernel.columns)(&ColumnJob {
                        x: self.x.offset(from * self.kernel.size as isize),
                        rows,
                        dense: self.run.len() == 1 && line.step == 1 && self.run[0].step == width as isize,
                        width,
                        step: line.step,
                        out: out.ptr().offset(to * self.kernel.acc.itemsize() as isize),
                        out_step: line.out,
                        scratch: scratch.cast(),
                        row: line_room.cast(),
                        narrow: self.kernel.narrow,
                    });
                }
            });
        });
    }

    /// Offsets of the elements of the run from `start` on.
    fn row_offsets(&self, start: usize, rows: &mut [isize]) {
        if let [only] = self.run[..] {
            for (row, k) in rows.iter_mut().zip(start..) {
                *row = k as isize * only.step;
            }
            return;
        }
        let mut dims: Inline<(usize, isize)> = Inline::empty();
        self.run.iter().for_each(|axis| dims.push((axis.len, axis.step)));
        let (last_len, last_step) = dims.last().copied().unwrap_or((1, 0));
        let mut done = 0;
        while done < rows.len() {
            let k = start + done;
            let together = (last_len - k % last_len).min(rows.len() - done);
            let first = offset(&dims, k);
            for (row, i) in rows[done..done + together].iter_mut().zip(0..) {
                *row = first + i * last_step;
            }
            done += together;
        }
    }
}

/// The wanted dtype, where values of `have` are stored with the same bits.
pub fn same_bits(have: DType, wanted: DType) -> Option<DType> {
    let plain = |dtype| match dtype {
        DType::Bool => DType::U8,
        DType::U32 => DType::I32,
        DType::U64 => DType::I64,
        other => other,
    };
    (plain(have) == plain(wanted)).then_some(wanted)
}

#[cfg(test)]
mod tests;
