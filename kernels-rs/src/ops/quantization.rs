//! Numbers as integers times scales.

use crate::array::Array;
use crate::array::shape::{Shape, contiguous_strides};
use crate::array::view;
use crate::dtype::{DType, Element, Kind};
use crate::error::{Error, Result};
use crate::machine::lanes::Real;
use crate::machine::threads::{self, SharedMut};
use crate::ops::elementwise::convert::cast;
use crate::vectorize;

/// Elements that are worth a task of their own.
const GRAIN: usize = 1 << 15;

/// `(x - zero_point) * scale` in one pass. There is one scale, one for each place along `axis`, or one for each block: the
/// sizes of `scale` divide those of `x`. Narrow scales are multiplied in `f32`.
pub fn dequantize(x: &Array, scale: &Array, zero_point: Option<&Array>, axis: Option<usize>) -> Result<Array> {
    let refused = || Error::Rejected("scales that do not fit");
    if zero_point.is_some_and(|zero| zero.shape()[..] != scale.shape()[..]) {
        return Err(refused());
    }
    let mut blocks = Shape::filled(1, x.rank());
    match (scale.rank(), axis) {
        (0, _) => {}
        (1, Some(axis)) if axis < x.rank() => blocks[axis] = scale.shape()[0],
        (rank, None) if rank == x.rank() => blocks = *scale.shape(),
        _ => return Err(refused()),
    }
    if x.shape().iter().zip(&blocks[..]).any(|(&n, &m)| if m == 0 { n != 0 } else { n % m != 0 }) {
        return Err(refused());
    }
    let dtype = scale.dtype();
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    if !dtype.is_float() {
        return Err(Error::Rejected("scales are floats"));
    }
    let ready = |x: &Array| cast(&view::reshape(x, &blocks)?, wide)?.contiguous();
    let (scale, zero) = (ready(scale)?, zero_point.map(ready).transpose()?);
    if x.dtype().kind() != Kind::Int {
        return Err(Error::Rejected("integers stand for numbers"));
    }
    // Bytes are read as they are, for `f32`.
    let bytes = wide == DType::F32 && x.dtype().itemsize() == 1;
    let x = if bytes { x.clone() } else { cast(x, wide)? }.contiguous()?;
    let mut out = Array::uninit(wide, x.shape())?;
    match x.dtype() {
        _ if out.numel() == 0 => {}
        DType::I8 => Job::<i8, f32>::new(&x, &scale, zero.as_ref(), &blocks).run(&mut out),
        DType::U8 => Job::<u8, f32>::new(&x, &scale, zero.as_ref(), &blocks).run(&mut out),
        DType::F32 => Job::<f32, f32>::new(&x, &scale, zero.as_ref(), &blocks).run(&mut out),
        _ => Job::<f64, f64>::new(&x, &scale, zero.as_ref(), &blocks).run(&mut out),
    }
    cast(&out, dtype)
}

/// An integer, which may be held in a float already, that becomes a float.
trait Whole<W>: Element {
    fn wide(self) -> W;
}

impl<T: Element + Into<W>, W> Whole<W> for T {
    #[inline(always)]
    fn wide(self) -> W {
        self.into()
    }
}

struct Job<'a, T, W> {
    x: &'a [T],
    scale: &'a [W],
    zero: Option<&'a [W]>,
    /// Length of a row of `x`, and of those before it: sizes, elements of a block, steps between scales.
    row: usize,
    front: Vec<(usize, usize, usize)>,
    /// Elements of a row that share a scale.
    together: usize,
}

impl<'a, T: Whole<W>, W: Real> Job<'a, T, W> {
    fn new(x: &'a Array, scale: &'a Array, zero: Option<&'a Array>, blocks: &Shape) -> Self {
        let steps = contiguous_strides(blocks);
        let front = x.rank().saturating_sub(1);
        let row = x.shape().last().copied().unwrap_or(1);
        Self {
            x: x.as_slice().expect("dense"),
            scale: scale.as_slice().expect("dense"),
            zero: zero.map(|zero| zero.as_slice().expect("dense")),
            row,
            front: (0..front).map(|at| (x.shape()[at], x.shape()[at] / blocks[at], steps[at] as usize)).collect(),
            together: row / blocks.last().copied().unwrap_or(1),
        }
    }

    fn run(&self, out: &mut Array) {
        let to = SharedMut::new(out.mut_ptr::<W>());
        let rows = self.x.len() / self.row;
        let many = (GRAIN / self.row).max(1);
        threads::parallel(rows.div_ceil(many), &|task| {
            for row in task * many..rows.min((task + 1) * many) {
                let part = row * self.row..(row + 1) * self.row;
                // SAFETY: each task has its own rows of the result.
                let line = unsafe { to.slice(part.clone()) };
                let first = self.first_scale(row);
                let scales = first..first + self.row / self.together;
                let zeros = self.zero.map(|zero| &zero[scales.clone()]);
                times(&self.x[part], &self.scale[scales], zeros, self.together, line);
            }
        });
    }

    /// The first of the scales of a row.
    fn first_scale(&self, row: usize) -> usize {
        let (mut left, mut place) = (row, 0);
        for &(size, block, step) in self.front.iter().rev() {
            place += left % size / block * step;
            left /= size;
        }
        place
    }
}

vectorize!(
    times[T: Whole<W>, W: Real](x: &[T], scale: &[W], zero: Option<&[W]>, together: usize, out: &mut [W]) => times_body::<T, W>, wide W::WIDE
);

/// A row; each scale is for so many neighbors.
#[inline(always)]
fn times_body<T: Whole<W>, W: Real>(x: &[T], scale: &[W], zero: Option<&[W]>, together: usize, out: &mut [W]) {
    match (together, zero) {
        (1, None) => {
            for ((out, &x), &scale) in out.iter_mut().zip(x).zip(scale) {
                *out = x.wide() * scale;
            }
        }
        (1, Some(zero)) => {
            for (((out, &x), &scale), &zero) in out.iter_mut().zip(x).zip(scale).zip(zero) {
                *out = (x.wide() - zero) * scale;
            }
        }
        _ => {
            for (at, (out, x)) in out.chunks_exact_mut(together).zip(x.chunks_exact(together)).enumerate() {
                let scale = scale[at];
                match zero.map(|zero| zero[at]) {
                    None => out.iter_mut().zip(x).for_each(|(out, &x)| *out = x.wide() * scale),
                    Some(zero) => out.iter_mut().zip(x).for_each(|(out, &x)| *out = (x.wide() - zero) * scale),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
