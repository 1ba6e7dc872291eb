//! Code at work in one task: over ranges of a walk, block by block.

use super::code::{Code, Place};
use super::handler::{Cell, Jump};
use crate::array::source::{Held, Operand, Source, Strided};
use crate::memory::scratch::collected;
use crate::ops::random::Stream;
use std::arch::x86_64::{__m256, __m512, _mm256_setzero_ps, _mm512_setzero_ps};
use std::ops::Range;

/// Where an operand of the code comes from.
#[derive(Clone, Copy)]
pub enum Feed<'a> {
    /// From an array, by the place in the walk.
    Lying(&'a Strided),
    /// From dense memory of elements of so many bytes that holds a part of the walk.
    Near(*const u8, usize),
    /// From dense memory that holds one element of so many bytes for each row.
    Row(*const u8, usize),
    /// From nowhere: random numbers, by the place in the walk.
    Drawn(&'a Stream),
}

/// Where a result of the code goes.
#[derive(Clone, Copy)]
pub enum To {
    /// To an array, by the place in the walk.
    Far(*mut u8),
    /// To dense memory that holds a part of the walk.
    Near(*mut u8),
}

/// What near memory holds.
#[derive(Clone, Copy)]
pub struct Frame {
    /// The place in the walk of the first near element.
    pub near: usize,
    /// The row of the first element that stands for a row.
    pub row: usize,
    /// Elements of a row.
    pub len: usize,
}

impl Frame {
    /// A walk without near memory.
    pub const NONE: Frame = Frame { near: 0, row: 0, len: usize::MAX };
}

struct Reader<'a> {
    feed: Feed<'a>,
    held: Held,
    /// The row that fills its block.
    row: usize,
}

/// The places of a task: a block for each slot, then for each input and for each output.
struct Blocks {
    start: *mut u8,
    bytes: usize,
    slots: usize,
    inputs: usize,
}

impl Blocks {
    fn slot(&self, at: usize) -> *mut u8 {
        self.start.wrapping_add(at * self.bytes)
    }

    fn input(&self, at: usize) -> *mut u8 {
        self.slot(self.slots + at)
    }

    fn output(&self, at: usize) -> *mut u8 {
        self.slot(self.slots + self.inputs + at)
    }
}

/// What a task changes from block to block.
pub struct Task<'a> {
    code: &'a Code,
    blocks: Blocks,
    cells: Vec<Cell>,
    readers: Vec<Reader<'a>>,
    targets: Vec<To>,
    /// Where the block of each input lies.
    places: Vec<*const u8>,
}

impl<'a> Task<'a> {
    /// Fills the slots of numbers, and the blocks of operands of one element. `streamed`: results in arrays go past the
    /// caches; the ranges begin on cache lines.
    ///
    /// # Safety
    /// The room is [`Code::room`] bytes for this task alone; feeds and targets are of the types of the code, and good for
    /// the ranges that are asked for as long as the task lives.
    pub unsafe fn new(
        code: &'a Code,
        words: &[u64],
        room: *mut u8,
        feeds: impl Iterator<Item = Feed<'a>>,
        targets: impl Iterator<Item = To>,
        streamed: bool,
    ) -> Self {
        let blocks = Blocks { start: room, bytes: code.bytes(), slots: code.slots, inputs: code.inputs.len() };
        fill_slots(code, words, &blocks);
        let targets = collected(targets);
        let readers = collected(feeds.enumerate().map(|(at, feed)| {
            let held = match feed {
                // SAFETY: a block holds as many of any type of the program, and lives as long as the task.
                Feed::Lying(lying) if lying.is_constant() => lying.hold_block(code.block(), blocks.input(at)),
                _ => Held::No,
            };
            Reader { feed, held, row: usize::MAX }
        }));
        let mut cells = collected(code.steps.iter().map(|step| {
            let far = matches!(step.at, Place::Output(at) if matches!(targets[at], To::Far(_)));
            let handler = step.streamed.filter(|_| streamed && far).unwrap_or(step.handler);
            let fixed = |place| match place {
                Place::Slot(at) => blocks.slot(at).cast_const(),
                Place::Kernel(kernel) => kernel as *const u8,
                _ => std::ptr::null(),
            };
            Cell { handler, at: [fixed(step.at), fixed(step.other)], by: [0; 2] }
        }));
        let places = collected(readers.iter().map(|_| std::ptr::null()));
        let first = cells.as_ptr();
        if let Some(end) = cells.last_mut() {
            end.at[0] = first.cast();
        }
        Task { code, blocks, cells, readers, targets, places }
    }

    /// Runs over a range of the walk.
    ///
    /// # Safety
    /// The range lies inside the walk, and its near part inside the memory that the frame tells.
    pub unsafe fn range(&mut self, range: Range<usize>, frame: Frame) {
        for reader in &mut self.readers {
            reader.row = usize::MAX;
        }
        let mut at = range.start;
        while at < range.end {
            let len = self.code.block().min(range.end - at);
            self.block(at, len, frame);
            at += len;
            if len == self.code.block() && range.end - at >= len {
                at = self.evenly(at - len..range.end, frame);
            }
        }
    }

    /// Runs on over the whole blocks of a range behind its first one, as long as all operands lie on evenly, and returns
    /// where that ends.
    unsafe fn evenly(&mut self, range: Range<usize>, frame: Frame) -> usize {
        let (count, at) = (self.code.block(), range.start);
        let left = self.readers.iter().fold(range.len(), |left, reader| left.min(reader.even(at, frame).0));
        let blocks = (left / count).max(1);
        if blocks > 1 {
            for &(cell, operand, place) in &self.code.moving {
                self.cells[cell].by[operand] = count
                    * match place {
                        Place::Input(operand) => self.readers[operand].even(at, frame).1,
                        Place::Output(result) => self.code.outputs[result].itemsize(),
                        _ => 0,
                    };
            }
        }
        for first in (1..blocks).step_by(self.code.together) {
            // SAFETY: every place moves by a block, which operands and results have.
            self.run(first..blocks.min(first + self.code.together));
        }
        at + blocks * count
    }

    /// Runs the code on some blocks, counted from the one that its cells tell.
    unsafe fn run(&mut self, blocks: Range<usize>) {
        if let Some(end) = self.cells.last_mut() {
            end.by[0] = blocks.end;
        }
        let (cells, first) = (self.cells.as_ptr(), blocks.start);
        // SAFETY: every place holds a block: of an operand, of the part of a result that belongs to this task, or of the
        // scratch; `compile` chose handlers for the types behind them and ended with `end`; `level` has seen the features.
        if self.code.bytes() == 512 { begin_wide(cells, first) } else { begin(cells, first) }
    }

    /// The `len` elements from `at` on.
    unsafe fn block(&mut self, at: usize, len: usize, frame: Frame) {
        let whole = len == self.code.block();
        for (operand, (reader, place)) in self.readers.iter_mut().zip(&mut self.places).enumerate() {
            *place = reader.block(at..at + len, frame, self.code, self.blocks.input(operand));
        }
        for &(cell, operand, place) in &self.code.moving {
            self.cells[cell].at[operand] = match place {
                Place::Input(operand) => self.places[operand],
                Place::Output(result) if whole => self.target(result, at, frame).cast_const(),
                Place::Output(result) => self.blocks.output(result).cast_const(),
                _ => continue,
            };
        }
        // SAFETY: the places of this block.
        self.run(0..1);
        if !whole {
            for result in 0..self.targets.len() {
                let (from, size) = (self.blocks.output(result), self.code.outputs[result].itemsize());
                // SAFETY: this task's last elements of the result, of which the block has as many.
                std::ptr::copy_nonoverlapping(from, self.target(result, at, frame), len * size);
            }
        }
    }

    fn target(&self, result: usize, at: usize, frame: Frame) -> *mut u8 {
        let size = self.code.outputs[result].itemsize();
        match self.targets[result] {
            To::Far(start) => start.wrapping_add(at * size),
            To::Near(start) => start.wrapping_add((at - frame.near) * size),
        }
    }
}

impl Reader<'_> {
    /// Elements from `at` on whose blocks lie behind each other, and their bytes; 0 bytes where one block stands for all.
    fn even(&self, at: usize, frame: Frame) -> (usize, usize) {
        match self.feed {
            _ if self.held != Held::No => (usize::MAX, 0),
            Feed::Lying(lying) => (lying.together(at), lying.size()),
            Feed::Near(_, size) => (usize::MAX, size),
            Feed::Row(..) => (frame.len - at % frame.len, 0),
            Feed::Drawn(_) => (0, 0),
        }
    }

    /// Where a block of the operand is: where it lies, or in `block`; with zeros behind it where it is not a whole one.
    unsafe fn block(&mut self, range: Range<usize>, frame: Frame, code: &Code, block: *mut u8) -> *const u8 {
        let (len, count) = (range.len(), code.block());
        let (at, size) = match self.feed {
            Feed::Lying(lying) => {
                let operand = Operand { lying, held: self.held };
                let size = operand.size();
                // SAFETY: a part of the operand; a block holds `count` of any type of the program.
                let at = operand.part(range, std::ptr::slice_from_raw_parts_mut(block, count * size));
                if self.held != Held::No {
                    return at;
                }
                (at, size)
            }
            Feed::Near(start, size) => (start.wrapping_add((range.start - frame.near) * size), size),
            Feed::Drawn(stream) => {
                // SAFETY: a block holds `count` of any type of the program, aligned for it.
                stream.part(range.start, len, block);
                (block.cast_const(), stream.dtype.itemsize())
            }
            Feed::Row(start, size) => {
                let (first, last) = (range.start / frame.len, (range.end - 1) / frame.len);
                let whole = first == last;
                if !(whole && self.row == first) {
                    // SAFETY: the rows of the range lie in the frame; a block holds `count` of any type of the program.
                    spread(start, size, range.start, if whole { count } else { len }, whole, frame, block);
                }
                self.row = if whole { first } else { usize::MAX };
                if whole {
                    return block;
                }
                (block.cast_const(), size)
            }
        };
        if len == count {
            return at;
        }
        // SAFETY: the part has `len` elements, and a block has room for `count`.
        std::ptr::copy(at, block, len * size);
        block.add(len * size).write_bytes(0, (count - len) * size);
        block
    }
}

/// Writes the elements of the rows to which `count` elements of the walk from `at` on belong; `one`: all to the first.
unsafe fn spread(from: *const u8, size: usize, at: usize, count: usize, one: bool, frame: Frame, to: *mut u8) {
    macro_rules! spread {
        ($word:ty) => {{
            let (from, to): (*const $word, *mut $word) = (from.cast(), to.cast());
            let (mut row, mut done) = (at / frame.len, 0);
            while done < count {
                let left = count - done;
                let many = if one { left } else { left.min((row + 1) * frame.len - (at + done)) };
                // SAFETY: the caller promises the rows and the room; copies of words go by their bytes.
                unsafe {
                    let word = from.add(row - frame.row).read();
                    std::slice::from_raw_parts_mut(to.add(done), many).fill(word);
                }
                (row, done) = (row + 1, done + many);
            }
        }};
    }
    match size {
        1 => spread!(u8),
        2 => spread!(u16),
        4 => spread!(u32),
        _ => spread!(u64),
    }
}

fn fill_slots(code: &Code, words: &[u64], blocks: &Blocks) {
    for (at, &word) in words.iter().enumerate() {
        let slot = blocks.slot(at);
        for i in 0..code.block() {
            // SAFETY: lane `i` of a slot; the word begins with the bytes of the lane.
            unsafe {
                if code.width == 4 {
                    slot.cast::<[u8; 4]>().add(i).write((word as u32).to_ne_bytes());
                } else {
                    slot.cast::<[u8; 8]>().add(i).write(word.to_ne_bytes());
                }
            }
        }
    }
}

/// # Safety
/// As for [`Cell`]; the machine has AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2")]
unsafe fn begin_wide(cells: *const Cell, block: usize) {
    let zero = _mm512_setzero_ps();
    // SAFETY: the first of the cells, whose handler has this type at this level.
    let jump: Jump<__m512> = std::mem::transmute((*cells).handler.0);
    jump(cells, block, zero, zero, zero, zero, zero, zero, zero, zero);
}

/// # Safety
/// As for [`Cell`]; the machine has AVX2.
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2")]
unsafe fn begin(cells: *const Cell, block: usize) {
    let zero = _mm256_setzero_ps();
    // SAFETY: the first of the cells, whose handler has this type at this level.
    let jump: Jump<__m256> = std::mem::transmute((*cells).handler.0);
    jump(cells, block, zero, zero, zero, zero, zero, zero, zero, zero);
}
