//! Kernels read row-major operands of one dtype. Where an operand has another layout or dtype, a part of it at a time, such
//! as some images, is converted and computed with while it is in the caches. So no op copies a large operand whole.
//!
//! Where the parts begin follows from shapes, dtypes and strides alone, never from the number of threads.

use crate::array::Array;
use crate::array::copy::put as put_over;
use crate::array::narrow;
use crate::array::shape::{MAX_RANK, Shape};
use crate::array::view;
use crate::dtype::{BF16, DType, Element, F16};
use crate::error::Result;
use crate::machine::lanes::Real;
use crate::machine::threads::{self, SharedMut};
use crate::ops::elementwise::convert::cast;
use std::ops::Range;

/// Bytes of converted operands at a time.
pub const PART: usize = if cfg!(test) { 1 << 10 } else { 2 << 20 };
/// Elements that a task copies or rounds into the result.
const GRAIN: usize = 1 << 15;
/// Bytes of a cache line.
const LINE: usize = 64;

/// The operand in this dtype and row-major, itself where it is both. It is cast first; a cast keeps the order of axes in
/// memory where that is dense, so a second copy may follow.
pub fn ready(x: &Array, dtype: DType) -> Result<Array> {
    cast(x, dtype)?.contiguous()
}

/// An estimate of the bytes that [`ready`] copies these operands into: one copy where dtype or layout differ. Where both
/// do there may be a second, which counts as one in the operand's own dtype.
pub fn made(operands: &[&Array], dtype: DType) -> usize {
    let of_element = |x: &Array| match (x.dtype() == dtype, x.is_contiguous()) {
        (true, true) => 0,
        (true, false) | (false, true) => dtype.itemsize(),
        (false, false) => dtype.itemsize() + x.dtype().itemsize(),
    };
    operands.iter().map(|x| x.numel() * of_element(x)).sum()
}

/// `0..count` cut into ranges of one length, of which the last may be shorter. All `count` items take `bytes` together. A
/// range takes at most `part` bytes, or is a single item that takes more. Of no items there is one empty range.
pub fn ranges(count: usize, bytes: usize, part: usize) -> impl Iterator<Item = Range<usize>> {
    let most = part.saturating_mul(count).checked_div(bytes).unwrap_or(count).max(1);
    let len = if bytes <= part { count } else { count.div_ceil(count.div_ceil(most).max(1)) };
    let parts = if len == 0 { 1 } else { count.div_ceil(len) };
    (0..parts).map(move |at| at * len..count.min((at + 1) * len))
}

/// A view of the elements `range` of an axis.
pub fn narrowed(x: &Array, axis: usize, range: &Range<usize>) -> Result<Array> {
    if range.len() == x.shape()[axis] {
        return Ok(x.clone());
    }
    let (mut start, mut size) = (Shape::filled(0, x.rank()), *x.shape());
    (start[axis], size[axis]) = (range.start, range.len());
    view::slice(x, &start, &size, &[1; MAX_RANK][..x.rank()])
}

/// Computes an op along `axis` of float16 or bfloat16 in `float32`, and rounds its results. The longest of the other axes
/// is cut into ranges, one at a time. Operands may differ in size along `axis` only; those that are no floats are not cast.
pub fn widened<const N: usize>(
    operands: [&Array; N],
    axis: usize,
    work: impl Fn(&[Array; N]) -> Result<Array>,
) -> Result<Array> {
    let x = operands[0];
    let Some(other) = (0..x.rank()).filter(|&at| at != axis).max_by_key(|&at| x.shape()[at]) else {
        return cast(&work(&wide(&operands.map(Array::clone))?)?, x.dtype());
    };
    let out = Array::uninit(x.dtype(), x.shape())?;
    // Each range calls the whole op again, so it is larger than one part; no measurement of the factor is kept.
    for range in ranges(x.shape()[other], made(&operands, DType::F32), 4 * PART) {
        let mut part = operands.map(Array::clone);
        for part in &mut part {
            *part = narrowed(part, other, &range)?;
        }
        let result = cast(&work(&wide(&part)?)?, x.dtype())?;
        // SAFETY: nobody else has seen the result.
        unsafe { put_over(&result, &narrowed(&out, other, &range)?) };
    }
    Ok(out)
}

fn wide<const N: usize>(operands: &[Array; N]) -> Result<[Array; N]> {
    let mut out = operands.clone();
    for x in out.iter_mut().filter(|x| x.dtype().is_float()) {
        *x = cast(x, DType::F32)?;
    }
    Ok(out)
}

/// Some whole images of an `(N, C, H, W)` operand, or some channels of one image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planes {
    /// Images.
    pub images: Range<usize>,
    /// Channels.
    pub channels: Range<usize>,
}

impl Planes {
    /// Cuts operands of the same `N` and `C` into parts, where converting all of them takes `bytes`.
    pub fn cut(operands: &[&Array], bytes: usize) -> Vec<Self> {
        let (batch, channels) = (operands[0].shape()[0], operands[0].shape()[1]);
        let image = bytes / batch.max(1);
        if image <= PART {
            return ranges(batch, bytes, PART).map(|images| Self { images, channels: 0..channels }).collect();
        }
        // Neighboring channels in a cache line are read together.
        let together = operands.iter().map(|x| line_of(x)).max().unwrap_or(1);
        let part = PART.max(image / channels * together);
        let of_image = |image: usize| {
            ranges(channels, bytes / batch, part).map(move |channels| Self { images: image..image + 1, channels })
        };
        (0..batch).flat_map(of_image).collect()
    }

    /// The number of planes.
    pub fn count(&self) -> usize {
        self.images.len() * self.channels.len()
    }

    /// Their indices among all planes of a row-major array with this number of channels.
    pub fn of(&self, channels: usize) -> Range<usize> {
        let first = self.images.start * channels + self.channels.start;
        first..first + self.count()
    }

    /// These planes of an array.
    pub fn take(&self, x: &Array) -> Result<Array> {
        narrowed(&narrowed(x, 0, &self.images)?, 1, &self.channels)
    }
}

/// Channels that lie in one cache line.
fn line_of(x: &Array) -> usize {
    match x.strides()[1].unsigned_abs() * x.dtype().itemsize() {
        0 => 1,
        step => LINE.div_ceil(step),
    }
}

/// Computes each plane of `out` from that of `x`, part by part: `work` gets which planes, their elements as `T`, and where
/// to write the results.
pub fn map_planes<T: Real>(x: &Array, out: &mut Array, work: impl Fn(&Planes, &[T], &mut [T])) -> Result<()> {
    let (channels, size) = (out.shape()[1], out.shape()[2] * out.shape()[3]);
    for planes in Planes::cut(&[x], made(&[x, out], T::DTYPE)) {
        let source = ready(&planes.take(x)?, T::DTYPE)?;
        let of = planes.of(channels);
        write(out, of.start * size..of.end * size, |to| {
            work(&planes, source.as_slice().expect("made contiguous"), to);
            Ok(())
        })?;
    }
    Ok(())
}

/// Lets `work` write the elements `range` of a row-major result: in place where the result is of type `T`, else into a
/// buffer that is then rounded into the result.
pub fn write<T: Element>(
    out: &mut Array,
    range: Range<usize>,
    work: impl FnOnce(&mut [T]) -> Result<()>,
) -> Result<()> {
    if out.dtype() == T::DTYPE {
        return work(&mut out.as_mut_slice()[range]);
    }
    write_lines(out, range.start, Lines { count: 1, len: range.len(), pitch: range.len() }, work)
}

/// Equally spaced runs of elements of a result.
#[derive(Clone, Copy, Debug)]
pub struct Lines {
    /// Number of lines.
    pub count: usize,
    /// Elements of a line.
    pub len: usize,
    /// Elements from the start of a line to the start of the next.
    pub pitch: usize,
}

/// Lets `work` write lines into a buffer without gaps. Then each is copied to its place in the result, the first at element
/// `first`, and rounded where the result is of another dtype.
pub fn write_lines<T: Element>(
    out: &mut Array,
    first: usize,
    lines: Lines,
    work: impl FnOnce(&mut [T]) -> Result<()>,
) -> Result<()> {
    let mut made = Array::uninit(T::DTYPE, &[lines.count * lines.len])?;
    work(made.as_mut_slice())?;
    match out.dtype() {
        same if same == T::DTYPE => put(lines, first, &made, out, |from: &[T], to: &mut [T]| to.copy_from_slice(from)),
        DType::F16 => put(lines, first, &made, out, |from: &[f32], to: &mut [F16]| narrow::narrow_f16(from, to)),
        _ => put(lines, first, &made, out, |from: &[f32], to: &mut [BF16]| narrow::narrow_bf16(from, to)),
    }
    Ok(())
}

fn put<T: Element, U: Element>(
    lines: Lines,
    first: usize,
    made: &Array,
    out: &mut Array,
    convert: impl Fn(&[T], &mut [U]) + Sync,
) {
    let Lines { count, len, pitch } = lines;
    if count * len == 0 {
        return;
    }
    assert!(len <= pitch && first + (count - 1) * pitch + len <= out.numel(), "inside the result");
    let from = made.as_slice::<T>().expect("made dense");
    let to = SharedMut::new(out.mut_ptr::<U>());
    // Pieces of a long line, or several short ones.
    let (pieces, together) = (len.div_ceil(GRAIN), (GRAIN / len).max(1));
    let size = len.div_ceil(pieces);
    threads::parallel(count.div_ceil(together) * pieces, &|task| {
        let (group, piece) = (task / pieces, task % pieces);
        let part = (piece * size).min(len)..((piece + 1) * size).min(len);
        for line in group * together..count.min((group + 1) * together) {
            let at = first + line * pitch;
            // SAFETY: each piece of a line has one task, and lies inside the result as checked.
            let to = unsafe { to.slice(at + part.start..at + part.end) };
            convert(&from[line * len + part.start..line * len + part.end], to);
        }
    });
}

#[cfg(test)]
mod tests;
