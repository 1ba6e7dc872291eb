//! Lines along an axis: read where they lie, or gathered some at a time; results go back to where they belong.

use crate::array::Array;
use crate::array::axes::offset;
use crate::array::shape::{Inline, around};
use crate::array::strided::{Axis, copy_serial, gather};
use crate::array::view;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::with_scratch;
use std::ops::Range;

/// Bytes of lines that a task gathers and of their results, unless one line has more: about the second-level cache.
const GATHERED: usize = 1 << 20;
/// Neighbouring lines with gaps share cache lines, which come in pairs. Measured on AMD EPYC (Zen 4), a sort of 4096x1024
/// along axis 0: 14.2 ms by one cache line, 13.3 ms by two.
const SHARED: usize = 128;

/// The lines of an operand, numbered in row-major order of the other axes.
pub struct Lines {
    /// The axis last.
    x: Array,
    dims: Inline<(usize, isize)>,
    /// Elements of a line.
    pub len: usize,
    /// Number of lines.
    pub count: usize,
    /// Product of the lengths after the axis.
    inner: usize,
}

impl Lines {
    /// Those of numbers.
    pub fn new(op: &str, x: &Array, axis: usize) -> Result<Self> {
        if x.dtype() == DType::Bool {
            return Err(Error::Rejected("sorts take numbers"));
        }
        let (outer, len, inner) = around(op, x.shape(), axis)?;
        let mut order: Vec<usize> = (0..x.rank()).filter(|&at| at != axis).collect();
        order.push(axis);
        let x = view::permute_dims(x, &order)?;
        let mut dims = Inline::empty();
        x.shape().iter().zip(x.strides().iter()).for_each(|(&len, &step)| dims.push((len, step)));
        Ok(Self { x, dims, len, count: outer * inner, inner })
    }

    /// From one element of a line to the next.
    fn along(&self) -> isize {
        self.dims[self.dims.len() - 1].1
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
        if self.along() == 1 && self.inner == 1 {
            return enough;
        }
        let size = self.x.dtype().itemsize();
        let most = match GATHERED / (self.len * (size + result)) {
            many if many > 64 / size => many / (64 / size) * (64 / size),
            few => few.max(1),
        };
        let together = enough.max((SHARED / size).min(most).min(self.count.div_ceil(threads::num_threads())));
        if self.inner < together { together.next_multiple_of(self.inner) } else { together }
    }

    /// Address of the first element of a line.
    fn start<T: Element>(&self, line: usize) -> *const T {
        let at = offset(&self.dims[..self.dims.len() - 1], line);
        self.x.ptr::<T>().wrapping_offset(at)
    }

    /// Elements that so many lines take where they have to be gathered.
    pub fn gathered(&self, lines: usize) -> usize {
        if self.along() == 1 { 0 } else { lines * self.len }
    }

    /// Calls `work` with each line, counted from the first one, as a slice. `room` is for [`Lines::gathered`].
    pub fn each<T: Element>(&self, lines: Range<usize>, room: &mut [T], mut work: impl FnMut(usize, &[T])) {
        if self.along() == 1 && !self.x.is_contiguous() {
            for (at, line) in lines.enumerate() {
                // SAFETY: a line of the operand, in a run.
                work(at, unsafe { std::slice::from_raw_parts(self.start::<T>(line), self.len) });
            }
            return;
        }
        let part = lines.start * self.len..lines.end * self.len;
        let all = match self.x.as_slice::<T>() {
            Some(x) => &x[part],
            None => self.gather(part, room),
        };
        all.chunks_exact(self.len).enumerate().for_each(|(at, line)| work(at, line));
    }

    /// A part of a line as a slice.
    pub fn part<'a, T: Element>(&'a self, line: usize, part: Range<usize>, room: &'a mut [T]) -> &'a [T] {
        if self.along() == 1 {
            // SAFETY: inside a line of the operand, in a run.
            return unsafe { std::slice::from_raw_parts(self.start::<T>(line).add(part.start), part.len()) };
        }
        self.gather(line * self.len + part.start..line * self.len + part.end, room)
    }

    /// One element.
    pub fn get<T: Element>(&self, line: usize, at: usize) -> T {
        assert!(line < self.count && at < self.len, "an element of a line");
        // SAFETY: inside the operand.
        unsafe { *self.start::<T>(line).offset(at as isize * self.along()) }
    }

    fn gather<'a, T: Element>(&self, part: Range<usize>, room: &'a mut [T]) -> &'a [T] {
        assert!(part.end <= self.count * self.len, "a part of the operand");
        let (to, from) = (&mut room[..part.len()], self.x.ptr::<T>().cast::<u8>());
        // SAFETY: the range lies inside the operand, and there is room for it.
        unsafe { gather(size_of::<T>(), to.as_mut_ptr().cast(), from, &self.dims, part.start, part.len()) };
        to
    }

    /// A result with lines of so many elements instead.
    pub fn result<T: Element>(&self, out: &mut Array, len: usize) -> Results<T> {
        assert!(out.numel() == self.count * len, "a result has the lines of the operand");
        Results { start: SharedMut::new(out.mut_ptr::<T>()), len, inner: self.inner }
    }
}

/// Memory of a task, handed out part by part.
pub struct Room<'a>(&'a mut [f64]);

impl<'a> Room<'a> {
    /// Calls `work` with room for parts of so many bytes in all.
    pub fn with<const N: usize>(bytes: [usize; N], work: impl FnOnce(Room<'_>)) {
        let words = bytes.iter().map(|&bytes| Self::words(bytes)).sum();
        with_scratch(words, |scratch: &mut [f64]| work(Room(scratch)));
    }

    /// Whole cache lines.
    fn words(bytes: usize) -> usize {
        bytes.div_ceil(64) * 8
    }

    /// The next `len` elements, of arbitrary value.
    ///
    /// # Safety
    /// Any bits are a `T`.
    pub unsafe fn take<T: Copy>(&mut self, len: usize) -> &'a mut [T] {
        let (part, after) = std::mem::take(&mut self.0).split_at_mut(Self::words(len * size_of::<T>()));
        self.0 = after;
        // SAFETY: large enough, at a cache line, and any bits will do.
        unsafe { std::slice::from_raw_parts_mut(part.as_mut_ptr().cast(), len) }
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
            // SAFETY: the caller promises that these lines exist and belong to one task.
            return work(unsafe { self.start.slice(lines.start * self.len..lines.end * self.len) });
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
            // SAFETY: the caller promises that these lines exist and belong to one task; the lines of this part lie
            // `inner` elements apart in steps.
            unsafe {
                let to = self.start.ptr().add(run * self.len * self.inner + place);
                copy_serial(size_of::<T>(), to.cast(), from.cast(), &axes);
                from = from.add(runs * some * self.len);
            }
            line += runs * some;
        }
    }
}
