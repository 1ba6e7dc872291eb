//! A convolution in parts of a few images, or of some rows of one, for operands that are made ready part by part. Results
//! do not depend on threads: the parts follow from shapes, dtypes and layouts.

use super::axis::WindowAxis;
use super::slice;
use super::window::Window;
use crate::array::Array;
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::ops::parts::{self, PART};
use std::ops::Range;

/// A convolution, or its input gradient, with operands of one float dtype.
pub struct Given<'a> {
    pub window: &'a Window,
    pub source: &'a Array,
    pub weight: &'a Array,
    pub bias: Option<&'a Array>,
    /// Of the result.
    pub shape: &'a [usize],
}

/// What computes images of a convolution, or of its input gradient: from the source, the kernel, and what is added.
pub type Run<T> = fn(&Window, &[T], &[T], Option<&[T]>, &mut [T]) -> Result<()>;

impl Given<'_> {
    /// That of the operands and the result.
    pub fn dtype(&self) -> DType {
        self.source.dtype()
    }

    /// The result, computed in `f64` or, for all other floats, in `f32`.
    #[inline]
    pub fn in_floats(&self, side: Side, single: Run<f32>, double: Run<f64>) -> Result<Array> {
        if self.dtype() == DType::F64 { self.in_parts(side, double) } else { self.in_parts(side, single) }
    }

    /// The result in parts of a few images or rows; `side` is that of the result.
    pub fn in_parts<T: Element>(&self, side: Side, run: Run<T>) -> Result<Array> {
        let ready = |x: &Array| parts::ready(x, T::DTYPE);
        let (kernel, bias) = (ready(self.weight)?, self.bias.map(ready).transpose()?);
        let (kernel, bias) = (slice(&kernel), bias.as_ref().map(slice::<T>));
        let mut out = Array::uninit(self.dtype(), self.shape)?;
        let bytes = parts::made(&[self.source, &out], T::DTYPE);
        for part in cut(self.window, side, bytes, most::<T>(self.weight)) {
            let (source, rows) = match side {
                Side::Output => (part.input::<T>(self.source)?, &part.output),
                Side::Input => (part.output::<T>(self.source)?, &part.input),
            };
            part.write(&mut out, rows, |to| run(&part.window, slice::<T>(&source), kernel, bias, to))?;
        }
        Ok(out)
    }
}

/// Bytes of images that are made ready at a time: no fewer than those of the weights, which are packed, or added up, for
/// each part.
pub fn most<T: Element>(weight: &Array) -> usize {
    PART.max(weight.numel() * size_of::<T>())
}

/// Part of a convolution, forward or backward.
#[derive(Clone, Debug)]
pub struct Part {
    /// The sizes of this part.
    pub window: Window,
    /// Its images.
    pub images: Range<usize>,
    /// Its rows of the operand that windows move over.
    pub input: Range<usize>,
    /// Its rows of what the windows make of it.
    pub output: Range<usize>,
}

impl Part {
    /// The images and rows of the operand that windows move over, row-major and in the type that is computed in.
    pub fn input<T: Element>(&self, x: &Array) -> Result<Array> {
        ready::<T>(x, &self.images, &self.input)
    }

    /// The images and rows of what the windows make of it, likewise.
    pub fn output<T: Element>(&self, g: &Array) -> Result<Array> {
        ready::<T>(g, &self.images, &self.output)
    }

    /// Calls `work` with the place of the images and these rows of a result.
    pub fn write<T: Element>(
        &self,
        out: &mut Array,
        rows: &Range<usize>,
        work: impl FnOnce(&mut [T]) -> Result<()>,
    ) -> Result<()> {
        let &[_, channels, all, cols] = &out.shape()[..] else { unreachable!("images") };
        let planes = self.images.start * channels..self.images.end * channels;
        if rows.len() == all {
            return parts::write(out, planes.start * all * cols..planes.end * all * cols, work);
        }
        let lines = parts::Lines { count: planes.len(), len: rows.len() * cols, pitch: all * cols };
        parts::write_lines(out, (planes.start * all + rows.start) * cols, lines, work)
    }
}

fn ready<T: Element>(x: &Array, images: &Range<usize>, rows: &Range<usize>) -> Result<Array> {
    parts::ready(&parts::narrowed(&parts::narrowed(x, 0, images)?, 2, rows)?, T::DTYPE)
}

/// Which side is cut into equal parts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// What windows move over: each part needs all windows that reach it.
    Input,
    /// What they make of it: each part needs all that its windows read.
    Output,
}

/// The parts of a convolution for which `bytes` are made, of about `most` bytes each. One at least.
pub fn cut(window: &Window, side: Side, bytes: usize, most: usize) -> Vec<Part> {
    let image = bytes / window.batch.max(1);
    let (inputs, outputs) = (window.input_size().0, window.size.0);
    let whole = |images: Range<usize>| {
        let window = Window { batch: images.len(), ..*window };
        Part { window, images, input: 0..inputs, output: 0..outputs }
    };
    let rows = if side == Side::Input { inputs } else { outputs };
    if image <= most || !splits(window) || rows < 2 {
        return parts::ranges(window.batch, bytes, most).map(whole).collect();
    }
    // Neighboring parts share the rows that a window spans: a quarter at most.
    let least = 4 * window.row.dilation * (window.row.kernel - 1) * image / rows;
    let bands: Vec<_> = parts::ranges(rows, image, most.max(least)).collect();
    let of_image = |at: usize| {
        bands.iter().map(move |rows| match side {
            Side::Input => by_input(window, at, rows.clone()),
            Side::Output => by_output(window, at, rows.clone()),
        })
    };
    (0..window.batch).flat_map(of_image).collect()
}

/// True when every window begins before the end of the image, so that every part reads some of it.
fn splits(window: &Window) -> bool {
    let row = &window.row;
    row.input > 0 && row.output > 0 && (row.output - 1) * row.stride < row.input + row.pad
}

/// The part of an image that makes these rows of the output.
fn by_output(window: &Window, image: usize, output: Range<usize>) -> Part {
    let row = window.row;
    let mut part = Part { window: *window, images: image..image + 1, input: output.clone(), output };
    if !window.is_product() {
        let first = part.output.start * row.stride;
        let end = (part.output.end - 1) * row.stride + row.dilation * (row.kernel - 1) + 1;
        let start = first.saturating_sub(row.pad);
        part.input = start..end.saturating_sub(row.pad).clamp(start + 1, row.input);
        part.window.row = WindowAxis {
            input: part.input.len(),
            output: part.output.len(),
            pad: row.pad.saturating_sub(first),
            ..row
        };
    }
    part.sized(window)
}

/// The part of an image that makes these rows of the gradient with respect to the input.
fn by_input(window: &Window, image: usize, input: Range<usize>) -> Part {
    let row = window.row;
    let mut part = Part { window: *window, images: image..image + 1, output: input.clone(), input };
    if !window.is_product() {
        let reach = row.dilation * (row.kernel - 1);
        let first = (part.input.start + row.pad).saturating_sub(reach).div_ceil(row.stride);
        let start = first.min((part.input.start + row.pad) / row.stride).min(row.output - 1);
        let end = (part.input.end - 1 + row.pad) / row.stride + 1;
        part.output = start..end.clamp(start + 1, row.output);
        part.window.row = WindowAxis {
            input: part.input.len(),
            output: part.output.len(),
            pad: part.input.start + row.pad - start * row.stride,
            ..row
        };
    }
    part.sized(window)
}

impl Part {
    /// With the batch of one image, and the columns of a product, which are all its positions.
    fn sized(mut self, whole: &Window) -> Self {
        self.window.batch = 1;
        if whole.is_product() {
            let count = self.output.len() * whole.size.1;
            self.window.col = WindowAxis { input: count, output: count, ..whole.col };
        }
        self
    }
}
