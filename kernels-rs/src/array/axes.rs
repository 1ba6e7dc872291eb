//! Axes that operands step along together: neighbours made one, elements found by their number, and the walk from one to the
//! next.

use super::shape::{Inline, MAX_RANK};

/// An axis with the steps of one operand or of several.
#[expect(clippy::len_without_is_empty, reason = "no axis is a collection")]
pub trait Axis: Copy {
    /// Its length.
    fn len(&self) -> usize;
    /// The same steps over another length.
    #[must_use]
    fn with_len(self, len: usize) -> Self;
    /// Whether one step here is as far as all of `inner`, for every operand.
    fn spans(&self, inner: &Self) -> bool;
}

/// An axis that a walk goes along.
pub trait Path: Axis {
    /// Offsets of the operands at an element.
    type At: Copy + Default;
    /// So many steps on from there.
    fn moved(&self, at: Self::At, by: isize) -> Self::At;
}

/// Length and step.
impl Axis for (usize, isize) {
    #[inline(always)]
    fn len(&self) -> usize {
        self.0
    }
    #[inline(always)]
    fn with_len(self, len: usize) -> Self {
        (len, self.1)
    }
    #[inline(always)]
    fn spans(&self, inner: &Self) -> bool {
        self.1 == inner.1 * inner.0 as isize
    }
}

impl Path for (usize, isize) {
    type At = isize;
    #[inline(always)]
    fn moved(&self, at: isize, by: isize) -> isize {
        at + by * self.1
    }
}

/// Length, and a step of each of three operands.
impl Axis for (usize, [isize; 3]) {
    #[inline(always)]
    fn len(&self) -> usize {
        self.0
    }
    #[inline(always)]
    fn with_len(self, len: usize) -> Self {
        (len, self.1)
    }
    #[inline(always)]
    fn spans(&self, inner: &Self) -> bool {
        (0..3).all(|k| self.1[k] == inner.1[k] * inner.0 as isize)
    }
}

impl Path for (usize, [isize; 3]) {
    type At = [isize; 3];
    #[inline(always)]
    fn moved(&self, mut at: [isize; 3], by: isize) -> [isize; 3] {
        for (at, step) in at.iter_mut().zip(self.1) {
            *at += by * step;
        }
        at
    }
}

/// Drops axes of length 1 and makes one of neighbours that every operand steps through as one run.
#[inline]
pub fn merged<A: Axis>(axes: impl IntoIterator<Item = A>) -> Inline<A> {
    let mut out = Inline::empty();
    for axis in axes {
        match out.last_mut() {
            _ if axis.len() == 1 => {}
            Some(last) if A::spans(last, &axis) => *last = axis.with_len(last.len() * axis.len()),
            _ => out.push(axis),
        }
    }
    out
}

/// Calls `each` with every axis, its place and the coordinate along it of the element of that number, in row-major order.
/// The last axis comes first.
#[inline(always)]
fn locate<A: Axis>(axes: &[A], mut number: usize, mut each: impl FnMut(usize, &A, usize)) {
    for (at, axis) in axes.iter().enumerate().rev() {
        let (rest, coordinate) = if at == 0 { (0, number) } else { (number / axis.len(), number % axis.len()) };
        each(at, axis, coordinate);
        number = rest;
    }
}

/// Offsets of the element of that number.
#[inline]
pub fn offset<A: Path>(axes: &[A], number: usize) -> A::At {
    let mut sum = A::At::default();
    locate(axes, number, |_, axis, i| sum = axis.moved(sum, i as isize));
    sum
}

/// The walk from an element to the next, in row-major order.
pub struct Steps<'a, A: Path> {
    axes: &'a [A],
    index: [usize; MAX_RANK],
    at: A::At,
}

impl<'a, A: Path> Steps<'a, A> {
    /// From the element of that number on.
    #[inline(always)]
    pub fn new(axes: &'a [A], number: usize) -> Self {
        let mut steps = Self { axes, index: [0; MAX_RANK], at: A::At::default() };
        locate(axes, number, |at, axis, i| {
            steps.index[at] = i;
            steps.at = axis.moved(steps.at, i as isize);
        });
        steps
    }

    /// Offsets of the element.
    #[inline(always)]
    pub fn at(&self) -> A::At {
        self.at
    }

    /// Goes to the next element; from the last one to the first.
    #[inline(always)]
    pub fn step(&mut self) {
        for (at, axis) in self.axes.iter().enumerate().rev() {
            self.index[at] += 1;
            self.at = axis.moved(self.at, 1);
            if self.index[at] < axis.len() {
                return;
            }
            self.at = axis.moved(self.at, -(axis.len() as isize));
            self.index[at] = 0;
        }
    }
}

#[cfg(test)]
mod tests;
