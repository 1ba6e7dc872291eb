//! Runs stages over rows: a few of them at a time, pass after pass, so that what passes keep stays in the caches; or, where
//! rows are too long for that, each pass over all of them.

use super::code::GRAIN;
use super::run::words_of;
use super::stages::{Fold, Goal, Origin, Part, Pass, Stages};
use super::task::{Feed, Frame, Task, To};
use crate::array::Array;
use crate::array::scalar::Scalar;
use crate::array::shape::{self, Shape, broadcast_strides};
use crate::array::source::{Source, Strided};
use crate::error::{Error, Result};
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::{collected, filled, with_scratch};
use crate::ops::elementwise::stream;
use crate::ops::reduction::{BLOCK, RowFold};
use std::ops::Range;

/// Elements of the rows that a task works on at a time: what is kept of them stays in the second-level cache.
const GROUP: usize = 8 << 10;
/// Elements of the longest row of which passes keep something.
const LONGEST: usize = 32 << 10;
/// Elements that are made and folded at once where nobody else reads them: they stay in the first-level cache. Whole blocks.
const NEAR: usize = 2 * BLOCK;
/// Elements of a long row that are one task: whole blocks.
const PIECE: usize = 8 * BLOCK;

/// Runs a program with folds on operands of its element types whose shapes broadcast, and numbers that fit theirs.
pub fn run(stages: &Stages, operands: &[&Array], numbers: &[Scalar]) -> Result<Vec<Array>> {
    let fits = operands.len() == stages.inputs.len() && numbers.len() == stages.numbers.len();
    if !fits || operands.iter().zip(&stages.inputs).any(|(x, dtype)| x.dtype() != *dtype) {
        return Err(Error::Rejected("operands of other types than the program takes"));
    }
    let words = words_of(numbers, &stages.numbers)?;
    let mut to = *operands[0].shape();
    for x in &operands[1..] {
        to = shape::broadcast(&to, x.shape())?;
    }
    if stages.inner > to.len() || shape::numel(&to) == 0 {
        return Err(Error::Rejected("no axes to fold, or nothing to fold"));
    }
    let outer = Shape::from_slice(&to[..to.len() - stages.inner])?;
    let mut kept = outer;
    if stages.keepdims {
        (0..stages.inner).for_each(|_| kept.push(1));
    }
    let is_row = |input: usize| stages.rows.iter().any(|(_, from)| *from == Some(input));
    let lying = operands.iter().enumerate().map(|(input, x)| {
        let strides = broadcast_strides(x.shape(), x.strides(), &to);
        if !is_row(input) {
            return Ok(Strided::new(x.data(), x.dtype().itemsize(), to.iter().copied().zip(strides.iter().copied())));
        }
        let inner = x.shape().iter().rev().take(stages.inner);
        if inner.copied().any(|len| len != 1) {
            return Err(Error::Rejected("a row of an operand has more than one element"));
        }
        Ok(Strided::new(x.data(), x.dtype().itemsize(), outer.iter().copied().zip(strides.iter().copied())))
    });
    let lying = lying.collect::<Result<Vec<_>>>()?;
    let outputs =
        stages.outputs.iter().map(|(dtype, row)| Array::uninit(*dtype, if row.is_some() { &kept } else { &to }));
    let outputs = outputs.collect::<Result<Vec<_>>>()?;
    let targets = collected(outputs.iter().map(|out| SharedMut::new(out.data().cast_mut())));
    let (rows, len) = (shape::numel(&outer), shape::numel(&to[outer.len()..]));
    let bytes = stages.outputs.iter().filter(|(_, row)| row.is_none()).map(|(dtype, _)| rows * len * dtype.itemsize());
    let streamed = stream::pays(bytes.sum()) && len.is_multiple_of(32);
    let walk = Walk { stages, words: &words, lying: &lying, targets: &targets, rows, len, streamed };
    if len > LONGEST {
        walk.long();
    } else {
        walk.short();
    }
    Ok(outputs)
}

struct Walk<'a> {
    stages: &'a Stages,
    words: &'a [u64],
    lying: &'a [Strided],
    targets: &'a [SharedMut<u8>],
    rows: usize,
    len: usize,
    streamed: bool,
}

/// The memory of a task.
struct Near {
    /// A part of the walk for each kept value.
    kept: Vec<*mut u8>,
    /// An element for each row, of each value of rows.
    rows: Vec<*mut u8>,
    /// Room for elements of an input that do not lie together.
    gathered: *mut u8,
    /// Room for folds.
    scratch: *mut u8,
    /// Room for each part of each pass.
    parts: Vec<[*mut u8; 2]>,
}

/// Bytes of so many words of the widest element, in whole blocks.
fn padded(count: usize) -> usize {
    (8 * count).next_multiple_of(512)
}

impl Walk<'_> {
    /// Bytes of each part of [`Near`]: of what is kept, of rows, of the gathered elements, of folds, of the code.
    fn sizes(&self, elements: usize, rows: usize, alone: bool) -> [usize; 5] {
        let stages = self.stages;
        let code = |pass: &Pass| [pass.ahead.as_ref(), pass.each(alone)].map(|part| part.map_or(0, |p| p.code.room()));
        let code = stages.passes.iter().map(|pass| code(pass).iter().sum::<usize>()).sum();
        let folds = stages.passes.iter().map(|pass| pass.folds.len()).max().unwrap_or(0);
        [
            stages.kept.len() * padded(elements),
            stages.rows.len() * padded(rows),
            padded(elements),
            padded(folds.max(1) * RowFold::words(rows, elements)),
            code,
        ]
    }

    /// Cuts memory of these sizes.
    fn cut(&self, start: *mut u8, elements: usize, rows: usize, alone: bool) -> Near {
        let stages = self.stages;
        let sizes = self.sizes(elements, rows, alone);
        let kept = (0..stages.kept.len()).map(|at| start.wrapping_add(at * padded(elements)));
        let start_rows = start.wrapping_add(sizes[0]);
        let own = (0..stages.rows.len()).map(|at| start_rows.wrapping_add(at * padded(rows)));
        let gathered = start_rows.wrapping_add(sizes[1]);
        let scratch = gathered.wrapping_add(sizes[2]);
        let mut next = scratch.wrapping_add(sizes[3]);
        let parts = stages.passes.iter().map(|pass| {
            [pass.ahead.as_ref(), pass.each(alone)].map(|part| {
                let at = next;
                next = next.wrapping_add(part.map_or(0, |part| part.code.room()));
                at
            })
        });
        Near { parts: collected(parts), kept: collected(kept), rows: collected(own), gathered, scratch }
    }

    /// Rows that fit in the caches: some of them at a time.
    fn short(&self) {
        let (stages, len) = (self.stages, self.len);
        let group = (GROUP / len).clamp(1, self.rows);
        let weight: usize = stages.passes.iter().filter_map(|pass| pass.each.as_ref()).map(|p| p.code.weight).sum();
        let grain = (GRAIN / (3 + weight)).div_ceil(group * len);
        let groups = self.rows.div_ceil(group);
        let room: usize = self.sizes(group * len, group, false).iter().sum();
        let per = groups.div_ceil(groups.div_ceil(grain).clamp(1, threads::num_threads() * 4));
        threads::parallel(groups.div_ceil(per), &|task| {
            with_scratch(room / 8, |room: &mut [u64]| {
                let near = self.cut(room.as_mut_ptr().cast(), group * len, group, false);
                let mut tasks = self.tasks(&near);
                for at in task * per..groups.min((task + 1) * per) {
                    self.group(&near, &mut tasks, at * group..self.rows.min((at + 1) * group));
                }
            });
            if self.streamed {
                stream::fence();
            }
        });
    }

    /// What runs the code of each pass.
    fn tasks<'a>(&'a self, near: &Near) -> Vec<[Option<Task<'a>>; 2]> {
        collected(self.stages.passes.iter().zip(&near.parts).map(|(pass, rooms)| {
            [self.task(pass.ahead.as_ref(), rooms[0], near), self.task(pass.each.as_ref(), rooms[1], near)]
        }))
    }

    fn task<'a>(&'a self, part: Option<&'a Part>, room: *mut u8, near: &Near) -> Option<Task<'a>> {
        let part = part?;
        let stages = self.stages;
        let rows = matches!(part.into[0], Goal::Row(_));
        let feeds = part.from.iter().map(|from| match *from {
            Origin::Input(at) => Feed::Lying(&self.lying[at]),
            Origin::Kept(at) => Feed::Near(near.kept[at], stages.kept[at].itemsize()),
            // Code on elements of rows walks over them.
            Origin::Row(at) if rows => Feed::Near(near.rows[at], stages.rows[at].0.itemsize()),
            Origin::Row(at) => Feed::Row(near.rows[at], stages.rows[at].0.itemsize()),
        });
        let targets = part.into.iter().map(|into| match *into {
            Goal::Output(at) => To::Far(self.targets[at].ptr()),
            Goal::Kept(at) => To::Near(near.kept[at]),
            Goal::Row(at) => To::Near(near.rows[at]),
        });
        let words = collected(part.numbers.iter().map(|&at| self.words[at]));
        // SAFETY: the room is that of this part; memory and arrays have the types that the stages tell.
        Some(unsafe { Task::new(&part.code, &words, room, feeds, targets, self.streamed) })
    }

    /// All passes over some rows.
    fn group(&self, near: &Near, tasks: &mut [[Option<Task<'_>>; 2]], rows: Range<usize>) {
        let (len, count) = (self.len, rows.len());
        let walk = rows.start * len..rows.end * len;
        self.rows_of_inputs(near, rows.clone());
        for (pass, [ahead, each]) in self.stages.passes.iter().zip(tasks) {
            // SAFETY: near memory holds these rows.
            unsafe {
                if let Some(ahead) = ahead {
                    ahead.range(0..count, Frame::NONE);
                }
                if let Some(each) = each.as_mut().filter(|_| pass.passing && len > NEAR) {
                    rows.clone().for_each(|row| self.piecewise(pass, each, near, row, rows.start));
                    continue;
                }
                if let Some(each) = each {
                    each.range(walk.clone(), Frame { near: walk.start, row: rows.start, len });
                }
                for fold in &pass.folds {
                    let x = self.folded(fold, near, walk.clone());
                    fold.by.rows(x, count, len, near.scratch, near.rows[fold.into]);
                }
            }
        }
        self.rows_to_outputs(near, rows);
    }

    /// One pass over a row, of which nothing is kept, piece by piece; `first` is the first row of the near memory.
    unsafe fn piecewise(&self, pass: &Pass, each: &mut Task<'_>, near: &Near, row: usize, first: usize) {
        let len = self.len;
        let blocks = len.div_ceil(BLOCK);
        let parts = |which: usize| near.scratch.wrapping_add(8 * which * blocks);
        // SAFETY: near memory holds a piece, a word for each block of each fold, and the rows.
        for start in (0..len).step_by(NEAR) {
            let piece = row * len + start..row * len + len.min(start + NEAR);
            each.range(piece.clone(), Frame { near: piece.start, row: first, len });
            for (which, fold) in pass.folds.iter().enumerate() {
                let to = parts(which).wrapping_add(start / BLOCK * fold.by.result_bytes());
                fold.by.blocks(self.folded(fold, near, piece.clone()), piece.len(), to);
            }
        }
        for (which, fold) in pass.folds.iter().enumerate() {
            let to = near.rows[fold.into].wrapping_add((row - first) * fold.dtype.itemsize());
            fold.by.row_of_blocks(parts(which), len, to);
        }
    }

    /// Where the elements that a fold takes lie together.
    unsafe fn folded(&self, fold: &Fold, near: &Near, range: Range<usize>) -> *const u8 {
        match fold.from {
            Origin::Kept(at) => near.kept[at],
            Origin::Input(at) => {
                let room = std::ptr::slice_from_raw_parts_mut(near.gathered, range.len() * fold.dtype.itemsize());
                self.lying[at].part(range, room)
            }
            Origin::Row(at) => near.rows[at],
        }
    }

    fn rows_of_inputs(&self, near: &Near, rows: Range<usize>) {
        for (slot, (dtype, from)) in self.stages.rows.iter().enumerate() {
            let Some(input) = *from else { continue };
            let (size, to) = (dtype.itemsize(), near.rows[slot]);
            let room = std::ptr::slice_from_raw_parts_mut(to, rows.len() * size);
            // SAFETY: rows of the operand, for which there is room.
            unsafe { std::ptr::copy(self.lying[input].part(rows.clone(), room), to, rows.len() * size) };
        }
    }

    fn rows_to_outputs(&self, near: &Near, rows: Range<usize>) {
        for ((dtype, row), target) in self.stages.outputs.iter().zip(self.targets) {
            let Some(slot) = *row else { continue };
            let size = dtype.itemsize();
            // SAFETY: these rows of the result are this task's.
            unsafe {
                let to = target.ptr().add(rows.start * size);
                std::ptr::copy_nonoverlapping(near.rows[slot], to, rows.len() * size);
            }
        }
    }

    /// One pass over a part of a long row; `blocks`: where the results of a fold over the blocks of the row lie.
    unsafe fn piece(
        &self,
        pass: &Pass,
        room: *mut u8,
        near: &Near,
        walk: Range<usize>,
        blocks: impl Fn(usize) -> *mut u64,
    ) {
        if let Some(mut task) = self.task(pass.alone.as_ref(), room, near) {
            task.range(walk.clone(), Frame { near: walk.start, row: 0, len: self.len });
        }
        for (which, fold) in pass.folds.iter().enumerate() {
            let x = self.folded(fold, near, walk.clone());
            let first = walk.start % self.len / BLOCK * fold.by.result_bytes();
            fold.by.blocks(x, walk.len(), blocks(which).cast::<u8>().add(first));
        }
    }

    /// Rows that do not: pass after pass, each in pieces, of which nothing is kept.
    fn long(&self) {
        let (len, count) = (self.len, self.rows);
        let pieces = len.div_ceil(PIECE);
        let shared = self.sizes(PIECE, count, true)[1];
        let mut values = filled(0u64, shared / 8);
        let start = SharedMut::new(values.as_mut_ptr().cast::<u8>());
        let row = |slot: usize| start.ptr().wrapping_add(slot * padded(count));
        let rows = || collected((0..self.stages.rows.len()).map(row));
        let room: usize = self.sizes(PIECE, 0, true).iter().sum();
        let blocks = len.div_ceil(BLOCK);
        let near_of = |room: *mut u8| Near { rows: rows(), ..self.cut(room, PIECE, 0, true) };
        with_scratch(room / 8, |room: &mut [u64]| {
            self.rows_of_inputs(&near_of(room.as_mut_ptr().cast()), 0..count);
        });
        for (at, pass) in self.stages.passes.iter().enumerate() {
            if let Some(ahead) = &pass.ahead {
                with_scratch(room / 8, |room: &mut [u64]| {
                    let near = near_of(room.as_mut_ptr().cast());
                    // SAFETY: there is room for all rows.
                    self.task(Some(ahead), near.parts[at][0], &near)
                        .iter_mut()
                        .for_each(|task| unsafe { task.range(0..count, Frame::NONE) });
                });
            }
            if pass.alone.is_none() && pass.folds.is_empty() {
                continue;
            }
            let mut parts = filled(0u64, pass.folds.len() * count * blocks);
            let parts = SharedMut::new(parts.as_mut_ptr());
            // Where the results of the blocks of a row lie.
            let of_row = |fold: usize, row: usize| parts.ptr().wrapping_add((fold * count + row) * blocks);
            threads::parallel(count * pieces, &|task| {
                with_scratch(room / 8, |room: &mut [u64]| {
                    let near = near_of(room.as_mut_ptr().cast());
                    let (row, first) = (task / pieces, task % pieces * PIECE);
                    let walk = row * len + first..row * len + len.min(first + PIECE);
                    // SAFETY: a part of a row, which near memory holds; each block has its own result.
                    unsafe { self.piece(pass, near.parts[at][1], &near, walk, |fold| of_row(fold, row)) };
                });
                if self.streamed {
                    stream::fence();
                }
            });
            for (which, fold) in pass.folds.iter().enumerate() {
                for at in 0..count {
                    let to = row(fold.into).wrapping_add(at * fold.dtype.itemsize());
                    // SAFETY: all blocks of the row are folded.
                    unsafe { fold.by.row_of_blocks(of_row(which, at).cast(), len, to) };
                }
            }
        }
        with_scratch(room / 8, |room: &mut [u64]| {
            self.rows_to_outputs(&near_of(room.as_mut_ptr().cast()), 0..count);
        });
    }
}

#[cfg(test)]
mod tests;
