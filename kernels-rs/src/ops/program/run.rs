//! Runs code over operands of any layout: in blocks, on several threads.

use super::code::{Code, Place};
use super::handler::{Cell, Jump};
use crate::array::Array;
use crate::array::scalar::Scalar;
use crate::array::shape::{self, Strides};
use crate::array::source::{Held, Operand, Source, Strided};
use crate::error::{Error, Result};
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::{collected, with_scratch};
use crate::ops::elementwise::engine::{common_layout, foreign_order};
use crate::ops::elementwise::walk::{View, merge_axes};
use crate::ops::elementwise::{Input, scalar_word, stream};
use std::arch::x86_64::{__m256, __m512, _mm256_setzero_ps, _mm512_setzero_ps};
use std::ops::Range;

/// Elements of work of weight 1 that are worth a task of their own: as for the row kernels, a light op has 16K.
const GRAIN: usize = 64 << 10;

/// Runs a program on operands of its element types whose shapes broadcast, and numbers that fit the types they take.
pub fn run(code: &Code, operands: &[&Array], numbers: &[Scalar]) -> Result<Vec<Array>> {
    let fits = operands.len() == code.inputs.len() && numbers.len() == code.numbers.len();
    if !fits || operands.iter().zip(&code.inputs).any(|(x, dtype)| x.dtype() != *dtype) {
        return Err(Error::Rejected("operands of other types than the program takes"));
    }
    let words = numbers.iter().zip(&code.numbers).map(|(&value, &dtype)| scalar_word(value, dtype));
    let words = words.collect::<Result<Vec<u64>>>()?;
    let first = operands[0];
    if operands.iter().all(|x| x.is_contiguous() && x.same_shape(first)) {
        let outputs =
            code.outputs.iter().map(|&dtype| Array::uninit(dtype, first.shape())).collect::<Result<Vec<_>>>()?;
        let views = collected(operands.iter().map(|x| View::stored(x, Strides::filled(1, 1))));
        fill(code, &words, &views, &[first.numel()], &outputs);
        return Ok(outputs);
    }
    let mut to = *first.shape();
    for x in &operands[1..] {
        to = shape::broadcast(&to, x.shape())?;
    }
    let sources = collected(operands.iter().map(|x| Input::Array(x)));
    if let Some(strides) = common_layout(&sources, &to) {
        let outputs = code.outputs.iter().map(|&dtype| Array::uninit(dtype, &to)).collect::<Result<Vec<_>>>()?;
        let views = collected(operands.iter().map(|x| View::stored(x, Strides::filled(1, 1))));
        fill(code, &words, &views, &[shape::numel(&to)], &outputs);
        return outputs.iter().map(|out| out.with_geometry(&to, &strides, 0)).collect();
    }
    let spread = |x: &Array| View::stored(x, shape::broadcast_strides(x.shape(), x.strides(), &to));
    let mut views = collected(operands.iter().map(|x| spread(x)));
    let order = foreign_order(&sources, &to);
    let mut dims = to;
    if let Some(order) = &order {
        order.iter().zip(dims.iter_mut()).for_each(|(&axis, len)| *len = to[axis]);
        for view in &mut views {
            *view = view.permuted(order);
        }
    }
    let outputs = code.outputs.iter().map(|&dtype| Array::uninit(dtype, &dims)).collect::<Result<Vec<_>>>()?;
    let merged = merge_axes(&mut views, &dims);
    fill(code, &words, &views, &merged, &outputs);
    let Some(order) = order else { return Ok(outputs) };
    let back = |out: &Array| {
        let mut strides = Strides::filled(0, to.len());
        order.iter().zip(out.strides().iter()).for_each(|(&axis, &step)| strides[axis] = step);
        out.with_geometry(&to, &strides, 0)
    };
    outputs.iter().map(back).collect()
}

/// Fills the dense outputs, whose elements in memory order are the walk over `dims`.
fn fill(code: &Code, words: &[u64], views: &[View], dims: &[usize], outputs: &[Array]) {
    let len = shape::numel(dims);
    let operands = collected(views.iter().map(|view| view.lying(dims)));
    let targets = collected(outputs.iter().map(|out| SharedMut::new(out.data().cast_mut())));
    let bytes: usize = outputs.iter().map(|out| len * out.dtype().itemsize()).sum();
    let walk = Walk { code, words, operands: &operands, targets: &targets, streamed: stream::pays(bytes) };
    let grain = (GRAIN / (3 + code.weight)).next_multiple_of(1 << 10);
    threads::for_ranges(len, grain, &|range| walk.range(range));
}

struct Walk<'a> {
    code: &'a Code,
    words: &'a [u64],
    operands: &'a [Strided],
    targets: &'a [SharedMut<u8>],
    streamed: bool,
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
struct Task<'a> {
    blocks: Blocks,
    cells: Vec<Cell>,
    inputs: Vec<Operand<'a>>,
    /// Where the block of each input lies.
    places: Vec<*const u8>,
}

impl Walk<'_> {
    fn range(&self, range: Range<usize>) {
        let (code, bytes) = (self.code, self.code.bytes());
        let count = code.slots + self.operands.len() + self.targets.len();
        with_scratch(count * bytes / 8, |room: &mut [u64]| {
            let start = room.as_mut_ptr().cast();
            let mut task = self.task(Blocks { start, bytes, slots: code.slots, inputs: self.operands.len() });
            let mut at = range.start;
            while at < range.end {
                let len = code.block().min(range.end - at);
                self.block(&mut task, at, len);
                at += len;
            }
        });
        if self.streamed {
            stream::fence();
        }
    }

    fn task(&self, blocks: Blocks) -> Task<'_> {
        let inputs = self.prepare(&blocks);
        let steps = &self.code.steps;
        let cells = collected(steps.iter().map(|step| {
            let handler = step.streamed.filter(|_| self.streamed).unwrap_or(step.handler);
            let fixed = |place| match place {
                Place::Slot(at) => blocks.slot(at).cast_const(),
                Place::Kernel(kernel) => kernel as *const u8,
                _ => std::ptr::null(),
            };
            Cell { handler, at: fixed(step.at), other: fixed(step.other) }
        }));
        let places = collected(self.operands.iter().map(|_| std::ptr::null()));
        Task { blocks, cells, inputs, places }
    }

    /// Fills the slots of numbers, and the blocks of operands of one element.
    fn prepare(&self, blocks: &Blocks) -> Vec<Operand<'_>> {
        let count = self.code.block();
        for (at, &word) in self.words.iter().enumerate() {
            let slot = blocks.slot(at);
            for i in 0..count {
                // SAFETY: lane `i` of a slot; the word begins with the bytes of the lane.
                unsafe {
                    if self.code.width == 4 {
                        slot.cast::<[u8; 4]>().add(i).write((word as u32).to_ne_bytes());
                    } else {
                        slot.cast::<[u8; 8]>().add(i).write(word.to_ne_bytes());
                    }
                }
            }
        }
        collected(self.operands.iter().enumerate().map(|(at, lying)| {
            if !lying.is_constant() {
                return Operand { lying, held: Held::No };
            }
            // SAFETY: a block holds `count` of any type of the program, and lives as long as the task.
            Operand { lying, held: unsafe { lying.hold_block(count, blocks.input(at)) } }
        }))
    }

    /// The `len` elements from `at` on.
    fn block(&self, task: &mut Task, at: usize, len: usize) {
        let whole = len == self.code.block();
        for (operand, place) in task.places.iter_mut().enumerate() {
            *place = self.operand(&task.inputs[operand], at..at + len, task.blocks.input(operand));
        }
        let result = |result: usize| {
            let size = self.code.outputs[result].itemsize();
            if whole { self.targets[result].ptr().wrapping_add(at * size) } else { task.blocks.output(result) }
        };
        for &(cell, other, place) in &self.code.moving {
            let place = match place {
                Place::Input(operand) => task.places[operand],
                Place::Output(at) => result(at).cast_const(),
                _ => continue,
            };
            let cell = &mut task.cells[cell];
            *(if other { &mut cell.other } else { &mut cell.at }) = place;
        }
        // SAFETY: every place holds a block: of an operand, of the part of a result that belongs to this task, or of the
        // scratch; `compile` chose handlers for the types behind them and ended with `end`; `level` has seen the features.
        unsafe { if self.code.bytes() == 512 { begin_wide(task.cells.as_ptr()) } else { begin(task.cells.as_ptr()) } }
        if !whole {
            for (result, target) in self.targets.iter().enumerate() {
                let size = self.code.outputs[result].itemsize();
                // SAFETY: this task's last elements of the result, of which the block has as many.
                unsafe {
                    let to = target.ptr().add(at * size);
                    std::ptr::copy_nonoverlapping(task.blocks.output(result), to, len * size);
                }
            }
        }
    }

    /// Where a block of an operand is: where it lies, or in `block`; with zeros behind it where it is not a whole one.
    fn operand(&self, operand: &Operand<'_>, range: Range<usize>, block: *mut u8) -> *const u8 {
        let (len, size, count) = (range.len(), operand.size(), self.code.block());
        // SAFETY: a part of the operand; a block holds `count` of any type of the program.
        let at = unsafe { operand.part(range, std::ptr::slice_from_raw_parts_mut(block, count * size)) };
        if len == count || operand.held != Held::No {
            return at;
        }
        // SAFETY: the part has `len` elements, and a block has room for `count`.
        unsafe {
            std::ptr::copy(at, block, len * size);
            block.add(len * size).write_bytes(0, (count - len) * size);
        }
        block
    }
}

/// # Safety
/// As for [`Cell`]; the machine has AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2")]
unsafe fn begin_wide(cells: *const Cell) {
    let zero = _mm512_setzero_ps();
    // SAFETY: the first of the cells, whose handler has this type at this level.
    unsafe {
        let jump: Jump<__m512> = std::mem::transmute((*cells).handler.0);
        jump(cells, zero, zero, zero, zero, zero, zero, zero, zero);
    }
}

/// # Safety
/// As for [`Cell`]; the machine has AVX2.
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2")]
unsafe fn begin(cells: *const Cell) {
    let zero = _mm256_setzero_ps();
    // SAFETY: the first of the cells, whose handler has this type at this level.
    unsafe {
        let jump: Jump<__m256> = std::mem::transmute((*cells).handler.0);
        jump(cells, zero, zero, zero, zero, zero, zero, zero, zero);
    }
}
