//! Runs code over operands of any layout: in blocks, on several threads.

use super::code::Code;
use super::sources::{chosen, streams};
use super::task::{Feed, Frame, Task, To};
use crate::array::Array;
use crate::array::scalar::Scalar;
use crate::array::shape::{self, Strides};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::{collected, with_scratch};
use crate::ops::elementwise::engine::{common_layout, foreign_order};
use crate::ops::elementwise::walk::{View, merge_axes};
use crate::ops::elementwise::{Input, scalar_word, stream};
use crate::ops::random::Stream;

/// Runs a program on operands of its element types whose shapes broadcast, and numbers that fit the types they take.
pub fn run(code: &Code, operands: &[&Array], numbers: &[Scalar]) -> Result<Vec<Array>> {
    let fits = operands.len() + code.sources.len() == code.inputs.len() && numbers.len() == code.given;
    if !fits || operands.iter().zip(&code.inputs).any(|(x, dtype)| x.dtype() != *dtype) {
        return Err(Error::Rejected("operands of other types than the program takes"));
    }
    let words = words_of(&chosen(numbers, &code.taken), &code.numbers)?;
    let draws = streams(&code.sources, numbers)?;
    let first = operands[0];
    if operands.iter().all(|x| x.is_contiguous() && x.same_shape(first)) {
        let outputs =
            code.outputs.iter().map(|&dtype| Array::uninit(dtype, first.shape())).collect::<Result<Vec<_>>>()?;
        let views = collected(operands.iter().map(|x| View::stored(x, Strides::filled(1, 1))));
        fill(code, &words, &views, &draws, &[first.numel()], &outputs);
        return Ok(outputs);
    }
    let mut to = *first.shape();
    for x in &operands[1..] {
        to = shape::broadcast(&to, x.shape())?;
    }
    let sources = collected(operands.iter().map(|x| Input::Array(x)));
    // What is drawn is told by its place in row-major order.
    let free = draws.is_empty();
    if let Some(strides) = common_layout(&sources, &to).filter(|_| free) {
        let outputs = code.outputs.iter().map(|&dtype| Array::uninit(dtype, &to)).collect::<Result<Vec<_>>>()?;
        let views = collected(operands.iter().map(|x| View::stored(x, Strides::filled(1, 1))));
        fill(code, &words, &views, &draws, &[shape::numel(&to)], &outputs);
        return outputs.iter().map(|out| out.with_geometry(&to, &strides, 0)).collect();
    }
    let spread = |x: &Array| View::stored(x, shape::broadcast_strides(x.shape(), x.strides(), &to));
    let mut views = collected(operands.iter().map(|x| spread(x)));
    let order = foreign_order(&sources, &to).filter(|_| free);
    let mut dims = to;
    if let Some(order) = &order {
        order.iter().zip(dims.iter_mut()).for_each(|(&axis, len)| *len = to[axis]);
        for view in &mut views {
            *view = view.permuted(order);
        }
    }
    let outputs = code.outputs.iter().map(|&dtype| Array::uninit(dtype, &dims)).collect::<Result<Vec<_>>>()?;
    let merged = merge_axes(&mut views, &dims);
    fill(code, &words, &views, &draws, &merged, &outputs);
    let Some(order) = order else { return Ok(outputs) };
    let back = |out: &Array| {
        let mut strides = Strides::filled(0, to.len());
        order.iter().zip(out.strides().iter()).for_each(|(&axis, &step)| strides[axis] = step);
        out.with_geometry(&to, &strides, 0)
    };
    outputs.iter().map(back).collect()
}

/// Numbers as the bytes of the types that they take.
pub fn words_of(numbers: &[Scalar], dtypes: &[DType]) -> Result<Vec<u64>> {
    numbers.iter().zip(dtypes).map(|(&value, &dtype)| scalar_word(value, dtype)).collect()
}

/// Fills the dense outputs, whose elements in memory order are the walk over `dims`.
fn fill(code: &Code, words: &[u64], views: &[View], draws: &[Stream], dims: &[usize], outputs: &[Array]) {
    let len = shape::numel(dims);
    let operands = collected(views.iter().map(|view| view.lying(dims)));
    let targets = collected(outputs.iter().map(|out| SharedMut::new(out.data().cast_mut())));
    let bytes: usize = outputs.iter().map(|out| len * out.dtype().itemsize()).sum();
    let streamed = stream::pays(bytes);
    threads::for_ranges(len, code.grain(), &|range| {
        with_scratch(code.room() / 8, |room: &mut [u64]| {
            let feeds = operands.iter().map(Feed::Lying).chain(draws.iter().map(Feed::Drawn));
            let to = targets.iter().map(|target| To::Far(target.ptr()));
            // SAFETY: the room is this task's; operands and results have the types of the code, and the walk's elements.
            unsafe {
                Task::new(code, words, room.as_mut_ptr().cast(), feeds, to, streamed).range(range, Frame::NONE);
            }
        });
        if streamed {
            stream::fence();
        }
    });
}
