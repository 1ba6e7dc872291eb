//! Parts added into one array: the gradient of many slices.

use crate::array::Array;
use crate::array::copy::put;
use crate::array::view;
use crate::error::{Error, Result};
use crate::memory::scratch::filled;
use crate::ops::elementwise::kernel::binary;
use crate::ops::elementwise::{self, Operand};
use crate::ops::parts;

/// Zeros of `shape` to which each part is added at a slice of its own shape; `start` and `step` name the axes of the
/// first part, then those of the next.
pub fn add_slices(given: &[&Array], shape: &[usize], start: &[usize], step: &[isize]) -> Result<Array> {
    let rank = shape.len();
    let Some(&first) = given.first() else {
        return Err(Error::value("add_slices", "no parts: got (), expected one or more"));
    };
    if start.len() != given.len() * rank || step.len() != start.len() {
        let text = format!("wrong count of starts: got {}, expected {}", start.len(), given.len() * rank);
        return Err(Error::value("add_slices", text));
    }
    let out = Array::zeros(first.dtype(), shape)?;
    if out.numel() == 0 {
        return Ok(out);
    }
    let mut reached = Reached::new(given, shape);
    for (at, part) in given.iter().enumerate() {
        if part.dtype() != first.dtype() {
            return Err(Error::Rejected("operands of different dtypes"));
        }
        let (start, step) = (&start[at * rank..][..rank], &step[at * rank..][..rank]);
        let place = view::slice(&out, start, part.shape(), step)?;
        if part.shape().iter().zip(step).any(|(&len, &step)| len > 1 && step == 0) {
            return Err(Error::value("add_slices", format!("step of 0: got {step:?}, expected others")));
        }
        if reached.mark(start, part.shape(), step) {
            // SAFETY: nobody else has seen the result; the slice lies inside it and no step is 0 (checked).
            unsafe { add_to(part, &place)? };
        } else {
            // SAFETY: nobody else has seen the result, and the slice lies inside it (checked by `slice`).
            unsafe { put(part, &place) };
        }
    }
    Ok(out)
}

/// Adds `x` to a view of its shape, some of it at a time.
///
/// # Safety
/// The storage of the view is the caller's alone, and no element of it is reached twice.
unsafe fn add_to(x: &Array, to: &Array) -> Result<()> {
    let Some(axis) = (0..x.rank()).max_by_key(|&axis| x.shape()[axis]) else {
        let sum = elementwise::binary(&binary::add, Operand::Array(to), Operand::Array(x))?;
        put(&sum, to);
        return Ok(());
    };
    for range in parts::ranges(x.shape()[axis], x.numel() * x.dtype().itemsize(), parts::PART) {
        let (x, to) = (parts::narrowed(x, axis, &range)?, parts::narrowed(to, axis, &range)?);
        let sum = elementwise::binary(&binary::add, Operand::Array(&to), Operand::Array(&x))?;
        // SAFETY: the sum is of the same shape.
        put(&sum, &to);
    }
    Ok(())
}

/// Which places of one axis earlier parts have reached: where a part is the first, a copy is its sum.
struct Reached {
    axis: usize,
    places: Vec<bool>,
}

impl Reached {
    /// Watches the axis of which the first part takes the smallest share.
    fn new(parts: &[&Array], shape: &[usize]) -> Self {
        let cover = |&axis: &usize| parts[0].shape().get(axis).map_or(0, |&len| len * 1024 / shape[axis].max(1));
        match (0..shape.len()).min_by_key(cover) {
            Some(axis) => Self { axis, places: filled(false, shape[axis]) },
            None => Self { axis: 0, places: vec![false] },
        }
    }

    /// Marks the places of a part that was checked; whether one was marked already.
    fn mark(&mut self, start: &[usize], size: &[usize], step: &[isize]) -> bool {
        let Some(&first) = start.get(self.axis) else {
            return std::mem::replace(&mut self.places[0], true);
        };
        let mut again = false;
        for k in 0..size[self.axis] {
            let at = (first as isize + k as isize * step[self.axis]) as usize;
            again |= std::mem::replace(&mut self.places[at], true);
        }
        again
    }
}
