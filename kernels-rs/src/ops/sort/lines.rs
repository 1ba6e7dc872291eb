//! Lines along an axis: read where they lie, or gathered some at a time; results go back to where they belong.

use crate::array::Array;
use crate::array::reader::Reader;
use crate::array::shape::around;
use crate::array::strided::{Axis, copy_serial};
use crate::dtype::{DType, Element, Plain};
use crate::error::{Error, Result};
use crate::machine::threads::{self, SharedMut};
use std::ops::Range;

/// Bytes of lines that a task gathers and of their results, unless one line has more: about the second-level cache.
const GATHERED: usize = 1 << 20;
/// Neighbouring lines with gaps share cache lines, which come in pairs. Measured on AMD EPYC (Zen 4), a sort of 4096x1024
/// along axis 0: 14.2 ms by one cache line, 13.3 ms by two.
const SHARED: usize = 128;

/// Checks an operand of a sort: numbers, and the axis is there. Gives the lengths before, along and after it.
pub fn checked(op: &str, x: &Array, axis: usize) -> Result<(usize, usize, usize)> {
    if x.dtype() == DType::Bool {
        return Err(Error::Rejected("sorts take numbers"));
    }
    around(op, x.shape(), axis)
}

/// The lines of an operand, numbered in row-major order of the other axes.
pub struct Lines<'a, T> {
    /// Line by line.
    elements: Reader<'a, T>,
    /// Elements of a line.
    pub len: usize,
    /// Number of lines.
    pub count: usize,
    /// Product of the lengths after the axis.
    inner: usize,
}

impl<'a, T: Element + Plain> Lines<'a, T> {
    /// Those of an operand of elements `T` along an axis, with the lengths around it.
    pub fn new(x: &'a Array, axis: usize, (outer, len, inner): (usize, usize, usize)) -> Self {
        Self { elements: Reader::along(x, axis), len, count: outer * inner, inner }
    }

    /// Whether each line lies together in memory.
    fn in_runs(&self) -> bool {
        self.elements.run() >= self.len && (self.len > 1 || self.elements.room(1) == 0)
    }

    /// Calls `work` with groups of lines of at least `grain` elements, in parallel; serially where few long lines share
    /// the threads inside each of them.
    /// `result`: bytes of results for each element.
    pub fn each_group(&self, grain: usize, result: usize, work: &(dyn Fn(Range<usize>) + Sync)) {
        if self.count * self.len == 0 {
            return;
        }
        let together = self.together(grain, result);
        let group = |task: usize| work(task * together..self.count.min((task + 1) * together));
        if self.count < threads::num_threads() && self.len > grain {
            (0..self.count.div_ceil(together)).for_each(group);
        } else {
            threads::parallel(self.count.div_ceil(together), &group);
        }
    }

    /// Lines of a group: with gaps, as many as share cache lines, as far as they may be gathered at once.
    fn together(&self, grain: usize, result: usize) -> usize {
        let enough = (grain / self.len).max(1);
        if self.in_runs() && self.inner == 1 {
            return enough;
        }
        let size = size_of::<T>();
        let most = match GATHERED / (self.len * (size + result)) {
            many if many > 64 / size => many / (64 / size) * (64 / size),
            few => few.max(1),
        };
        let together = enough.max((SHARED / size).min(most).min(self.count.div_ceil(threads::num_threads())));
        if self.inner < together { together.next_multiple_of(self.inner) } else { together }
    }

    /// Elements that so many lines take where they have to be gathered.
    pub fn gathered(&self, lines: usize) -> usize {
        if self.in_runs() { 0 } else { lines * self.len }
    }

    /// Calls `work` with each line, counted from the first one, as a slice. `room` is for [`Lines::gathered`].
    pub fn each(&self, lines: Range<usize>, room: &mut [T], mut work: impl FnMut(usize, &[T])) {
        if self.in_runs() {
            lines.enumerate().for_each(|(at, line)| work(at, self.part(line, 0..self.len, room)));
        } else {
            let all = self.elements.part(lines.start * self.len..lines.end * self.len, room);
            all.chunks_exact(self.len).enumerate().for_each(|(at, line)| work(at, line));
        }
    }

    /// A part of a line as a slice. `room` is for as many elements, where lines are gathered.
    pub fn part<'b>(&'b self, line: usize, part: Range<usize>, room: &'b mut [T]) -> &'b [T] {
        self.elements.part(line * self.len + part.start..line * self.len + part.end, room)
    }

    /// One element.
    pub fn get(&self, line: usize, at: usize) -> T {
        self.part(line, at..at + 1, &mut [T::from_i64(0)])[0]
    }

    /// A result with lines of so many elements instead.
    pub fn result<R: Element>(&self, out: &mut Array, len: usize) -> Results<R> {
        assert!(out.numel() == self.count * len, "a result has the lines of the operand");
        Results { start: SharedMut::new(out.mut_ptr::<R>()), len, inner: self.inner }
    }
}

/// The lines of a fresh result.
pub struct Results<T> {
    start: SharedMut<T>,
    len: usize,
    inner: usize,
}

impl<T: Element> Results<T> {
    /// Elements that so many lines take before they are put in their place.
    pub fn aside(&self, lines: usize) -> usize {
        if self.inner == 1 { 0 } else { lines * self.len }
    }

    /// Has `work` write lines, one after the other, and puts them in their place. `room` is for [`Results::aside`].
    ///
    /// # Safety
    /// The lines exist, and no other task fills them.
    pub unsafe fn fill(&self, lines: Range<usize>, room: &mut [T], work: impl FnOnce(&mut [T])) {
        if self.inner == 1 {
            return work(self.start.slice(lines.start * self.len..lines.end * self.len));
        }
        let dense = &mut room[..lines.len() * self.len];
        work(dense);
        let (mut line, mut from) = (lines.start, dense.as_ptr());
        while line < lines.end {
            // As many whole runs of neighbouring lines as there are, or a part of one.
            let (run, place) = (line / self.inner, line % self.inner);
            let left = lines.end - line;
            let (runs, some) = match left / self.inner {
                whole if place == 0 && whole > 0 => (whole, self.inner),
                _ => (1, left.min(self.inner - place)),
            };
            let (len, inner) = (self.len as isize, self.inner as isize);
            let axes = [
                Axis { len: runs, to: len * inner, from: len * inner },
                Axis { len: self.len, to: inner, from: 1 },
                Axis { len: some, to: 1, from: len },
            ];
            // SAFETY: the lines of this part lie `inner` elements apart in steps.
            let to = self.start.ptr().add(run * self.len * self.inner + place);
            copy_serial(size_of::<T>(), to.cast(), from.cast(), &axes);
            from = from.add(runs * some * self.len);
            line += runs * some;
        }
    }
}
