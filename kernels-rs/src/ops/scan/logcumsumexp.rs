//! Logarithms of running sums of exponentials. Some lines at a time are computed in `f64`, block by block: the exponentials of
//! elements minus the largest so far, then their running sum, then its logarithms. In the first and the last step no element
//! waits for another. Blocks with infinities or NaN, or whose maximum lies too far above the sum before, go element by element.

use crate::array::Array;
use crate::array::axes::{Steps, merged};
use crate::array::shape::around;
use crate::dtype::{BF16, DType, Element, F16, Float};
use crate::error::{Error, Result};
use crate::machine::lanes::{Kernel, Lanes, launch};
use crate::machine::threads::{self, SharedMut};
use crate::math::special::double;
use crate::math::wide;

/// Elements of a line that are computed together.
const BLOCK: usize = 64;
/// Lines that are computed together: unless the axis is the last one, neighbors share cache lines.
const LINES: usize = 16;
/// Elements that are worth a task of their own.
const GRAIN: usize = 1 << 13;
/// How far the maximum of a block may lie above its first sum, which is `e^-600` or more then: [`wide::exp`] gives `e^-700` for
/// all that is smaller, and so little changes no sum.
const REACH: f64 = 600.0;

/// `ln(Σ exp(x))` of the elements up to each along an axis, in `f64`.
pub fn logcumsumexp(x: &Array, axis: usize) -> Result<Array> {
    match x.dtype() {
        DType::F16 => lines::<F16>(x, axis),
        DType::BF16 => lines::<BF16>(x, axis),
        DType::F32 => lines::<f32>(x, axis),
        DType::F64 => lines::<f64>(x, axis),
        _ => Err(Error::Rejected("logcumsumexp takes floats")),
    }
}

/// A float that is read and written as `f64`.
trait Line: Float {
    /// Whether the 40 good bits of [`wide`] are enough, as results are rounded to fewer.
    const SHORT: bool = size_of::<Self>() < size_of::<f64>();
}
impl<T: Float> Line for T {}

fn lines<T: Line + Element>(x: &Array, axis: usize) -> Result<Array> {
    let mut out = Array::uninit(x.dtype(), x.shape())?;
    let (outer, len, inner) = around("logcumsumexp", x.shape(), axis)?;
    if x.numel() == 0 {
        return Ok(out);
    }
    let others = merged((0..x.rank()).filter(|&at| at != axis).map(|at| (x.shape()[at], x.strides()[at])));
    let (from, to) = (SharedMut::new(x.ptr::<T>().cast_mut()), SharedMut::new(out.mut_ptr::<T>()));
    let count = outer * inner;
    let together = (GRAIN / len).max(1).next_multiple_of(LINES);
    threads::parallel(count.div_ceil(together), &|task| {
        for first in (task * together..count.min((task + 1) * together)).step_by(LINES) {
            let mut steps = Steps::new(&others, first);
            let starts: [isize; LINES] = std::array::from_fn(|_| {
                let at = steps.at();
                steps.step();
                at
            });
            let mut sums = [Sum::default(); LINES];
            let lines = LINES.min(count - first);
            for start in (0..len).step_by(BLOCK) {
                let mut values = [[0.0; BLOCK]; LINES];
                let size = BLOCK.min(len - start);
                for i in 0..size {
                    for (line, values) in values[..lines].iter_mut().enumerate() {
                        let at = starts[line] + (start + i) as isize * x.strides()[axis];
                        // SAFETY: an element of the operand.
                        values[i] = widened(unsafe { *from.ptr().offset(at) });
                    }
                }
                for (values, sum) in values[..lines].iter_mut().zip(&mut sums) {
                    sum.block(&mut values[..size], T::SHORT, start == 0);
                }
                for i in 0..size {
                    for (line, values) in values[..lines].iter().enumerate() {
                        let number = first + line;
                        let at = (number / inner * len + start + i) * inner + number % inner;
                        // SAFETY: an element of the result; each line belongs to one task.
                        unsafe { to.ptr().add(at).write(narrowed::<T>(values[i])) };
                    }
                }
            }
        }
    });
    Ok(out)
}

#[inline(always)]
fn widened<T: Element>(value: T) -> f64 {
    value.to_f64()
}

#[inline(always)]
fn narrowed<T: Element>(value: f64) -> T {
    T::from_f64(value)
}

/// `top + ln(rest)` is the logarithm of the sum so far.
#[derive(Clone, Copy)]
struct Sum {
    top: f64,
    rest: f64,
}

impl Default for Sum {
    fn default() -> Self {
        Self { top: f64::NEG_INFINITY, rest: 0.0 }
    }
}

impl Sum {
    /// Replaces the next elements of a line by the sums up to each.
    fn block(&mut self, values: &mut [f64], short: bool, starts: bool) {
        let first = values[0];
        let (mut most, mut unknown) = (self.top, false);
        for &value in &*values {
            most = if value > most { value } else { most };
            unknown |= value.is_nan();
        }
        let least = if first > self.top { first } else { self.top };
        if short && !unknown && most.is_finite() && most - least <= REACH {
            launch(Block { values: &mut *values, sum: self, most });
        } else {
            self.one_by_one(values);
        }
        if starts {
            values[0] = first;
        }
    }

    fn one_by_one(&mut self, values: &mut [f64]) {
        let mut sum = if self.rest > 0.0 { self.top + self.rest.ln() } else { self.top };
        for value in values {
            sum = double::logaddexp(sum, *value);
            *value = sum;
        }
        *self = Self { top: sum, rest: if sum == f64::NEG_INFINITY { 0.0 } else { 1.0 } };
    }
}

/// A block whose maximum `most` is finite and at most [`REACH`] above its first sum.
struct Block<'a> {
    values: &'a mut [f64],
    sum: &'a mut Sum,
    most: f64,
}

impl Kernel<f64> for Block<'_> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = f64>>(self) {
        let Self { values, sum, most } = self;
        for value in &mut *values {
            *value = wide::exp::<V::Math>(*value - most);
        }
        let mut rest = if sum.rest > 0.0 { sum.rest * (sum.top - most).exp() } else { 0.0 };
        for value in &mut *values {
            rest += *value;
            *value = rest;
        }
        for value in &mut *values {
            *value = most + wide::ln::<V::Math>(*value);
        }
        *sum = Sum { top: most, rest };
    }
}

#[cfg(test)]
mod tests;
