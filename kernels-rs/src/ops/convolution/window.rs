//! The sizes of a convolution, checked, and its two correlations.

use super::axis::{Axis, WindowAxis};
use super::{Correlation, Weights};
use crate::array::Array;
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::machine::threads::{self, SharedMut};

/// The attributes of a convolution.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Rows, columns.
    pub stride: (usize, usize),
    /// (top, bottom), (left, right).
    pub padding: ((usize, usize), (usize, usize)),
    /// Rows, columns.
    pub dilation: (usize, usize),
    /// Groups of channels that do not see each other.
    pub groups: usize,
}

/// A convolution with all its sizes.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Images.
    pub batch: usize,
    /// Groups of channels.
    pub groups: usize,
    /// Input channels, all groups together.
    pub inputs: usize,
    /// Output channels, all groups together.
    pub outputs: usize,
    /// Rows.
    pub row: WindowAxis,
    /// Columns.
    pub col: WindowAxis,
    /// Rows and columns of the output, also of a product, whose axes are one long row.
    pub size: (usize, usize),
}

impl Window {
    /// Checks the shapes of input and kernel against each other.
    pub fn new(op: &str, input: &[usize], weight: &[usize], settings: &Settings) -> Result<Self> {
        let (&[batch, inputs, rows, cols], &[outputs, per_group, kernel_rows, kernel_cols]) = (input, weight) else {
            return Err(Error::value(op, format!("wrong rank: got shapes {input:?} and {weight:?}, expected rank 4")));
        };
        let groups = settings.groups;
        if groups == 0 || inputs % groups != 0 || outputs % groups != 0 || per_group != inputs / groups {
            let text = format!("channels do not fit: got {input:?}, {weight:?} and {groups} groups");
            return Err(Error::value(op, format!("{text}, expected a weight [o, {inputs} / groups, kh, kw]")));
        }
        let Settings { stride, padding, dilation, .. } = settings;
        let row = axis(op, rows, kernel_rows, stride.0, padding.0, dilation.0)?;
        let col = axis(op, cols, kernel_cols, stride.1, padding.1, dilation.1)?;
        let window = Self { batch, groups, inputs, outputs, row, col, size: (row.output, col.output) };
        Ok(window.flattened())
    }

    /// The convolution whose input gradient is the transposed convolution of `source` with this weight. Its input is
    /// larger by `extra` rows and columns at the end, which may lie beyond all windows. With the shape of that input.
    pub fn transposed(
        op: &str,
        source: &[usize],
        weight: &[usize],
        settings: &Settings,
        extra: (usize, usize),
    ) -> Result<(Self, [usize; 4])> {
        let (&[batch, outputs, rows, cols], &[channels, per_group, kernel_rows, kernel_cols]) = (source, weight) else {
            return Err(Error::value(op, format!("wrong rank: got shapes {source:?} and {weight:?}, expected rank 4")));
        };
        let groups = settings.groups;
        if groups == 0 || outputs % groups != 0 || channels != outputs {
            let text = format!("channels do not fit: got {source:?}, {weight:?} and {groups} groups");
            return Err(Error::value(op, format!("{text}, expected a weight [{outputs}, o / groups, kh, kw]")));
        }
        let inputs = per_group.checked_mul(groups).ok_or(Error::OutOfMemory(usize::MAX))?;
        let Settings { stride, padding, dilation, .. } = settings;
        let row = adjoint_axis(op, [rows, kernel_rows, stride.0, dilation.0], padding.0, extra.0)?;
        let col = adjoint_axis(op, [cols, kernel_cols, stride.1, dilation.1], padding.1, extra.1)?;
        let window = Self { batch, groups, inputs, outputs, row, col, size: (rows, cols) };
        Ok((window.flattened(), [batch, inputs, row.input, col.input]))
    }

    /// A 1 x 1 kernel without stride and padding sees no rows: one long row gives better tiles.
    fn flattened(self) -> Self {
        if !self.is_product() {
            return self;
        }
        let count = self.row.input * self.col.input;
        let row = WindowAxis { input: 1, output: 1, ..self.row };
        let col = WindowAxis { input: count, output: count, ..self.col };
        Self { row, col, ..self }
    }

    /// True when every result reads the one position that it lies at.
    pub fn is_product(&self) -> bool {
        let plain =
            |axis: WindowAxis| axis.kernel == 1 && axis.stride == 1 && axis.pad == 0 && axis.input == axis.output;
        plain(self.row) && plain(self.col)
    }

    /// Rows and columns of the input; of a product they are those of the output.
    pub fn input_size(&self) -> (usize, usize) {
        if self.is_product() { self.size } else { (self.row.input, self.col.input) }
    }

    /// Shape of the result.
    pub fn output_shape(&self) -> [usize; 4] {
        [self.batch, self.outputs, self.size.0, self.size.1]
    }

    /// The gradient must have the shape of the result.
    pub fn check_gradient(&self, op: &str, g: &Array) -> Result<()> {
        if g.shape()[..] == self.output_shape() {
            return Ok(());
        }
        let text = format!("wrong gradient: got shape {:?}, expected {:?}", g.shape(), self.output_shape());
        Err(Error::value(op, text))
    }
}

fn axis(
    op: &str,
    input: usize,
    kernel: usize,
    stride: usize,
    padding: (usize, usize),
    dilation: usize,
) -> Result<WindowAxis> {
    // Sizes beyond i32 cannot be those of arrays; the check keeps the sums below from overflowing.
    let all = [input, kernel, stride, padding.0, padding.1, dilation];
    let span = (dilation as u128) * (kernel.saturating_sub(1) as u128) + 1;
    let padded = all.iter().take(1).chain(&all[3..5]).map(|&n| n as u128).sum::<u128>();
    if kernel == 0 || stride == 0 || dilation == 0 || padded < span || all.iter().any(|&n| n > i32::MAX as usize) {
        let text =
            format!("window does not fit: got size {input}, kernel {kernel}, stride {stride}, padding {padding:?}");
        return Err(Error::value(
            op,
            format!("{text}, dilation {dilation}, expected a kernel inside the padded input"),
        ));
    }
    let output = (padded - span) as usize / stride + 1;
    Ok(WindowAxis { input, output, kernel, stride, pad: padding.0, dilation })
}

/// The axis of a convolution with `output` results, by which a transposed one goes back.
fn adjoint_axis(op: &str, axis: [usize; 4], padding: (usize, usize), extra: usize) -> Result<WindowAxis> {
    let [output, kernel, stride, dilation] = axis;
    // Sizes beyond i32 cannot be those of arrays; the check keeps the sums from overflowing.
    let large = axis.iter().chain([&padding.0, &padding.1, &extra]).any(|&n| n > i32::MAX as usize);
    let input = if large || axis.contains(&0) {
        -1
    } else {
        let span = |n: usize, step: usize| (n as i64 - 1) * step as i64;
        span(output, stride) + span(kernel, dilation) + 1 + extra as i64 - padding.0 as i64 - padding.1 as i64
    };
    if !(0..=i32::MAX as i64).contains(&input) {
        let text = format!("window does not fit: got size {output}, kernel {kernel}, stride {stride}");
        let text = format!("{text}, padding {padding:?}, dilation {dilation}");
        return Err(Error::value(op, format!("{text}, expected a result of 0 to 2^31 rows and columns")));
    }
    Ok(WindowAxis { input: input as usize, output, kernel, stride, pad: padding.0, dilation })
}

/// What computes a correlation: see [`super::correlation`].
pub type Way<T> = unsafe fn(&Correlation<'_, T>, SharedMut<T>) -> Result<()>;

/// Writes all of `out`.
pub fn forward<T: Element>(
    window: &Window,
    x: &[T],
    weight: &[T],
    bias: Option<&[T]>,
    out: &mut [T],
    way: Way<T>,
) -> Result<()> {
    let (row_axis, col_axis) = (Axis::forward(window.row), Axis::forward(window.col));
    let call = correlation(window, true, (x, weight, bias), (&row_axis, &col_axis));
    assert_eq!(out.len(), window.batch * window.outputs * window.row.output * window.col.output);
    // SAFETY: `out` has the size of the result and is ours.
    unsafe { way(&call, SharedMut::new(out.as_mut_ptr())) }
}

/// Writes all of `out`: the input gradient, and what is added to each channel of it.
pub fn input_grad<T: Element + Default>(
    window: &Window,
    g: &[T],
    weight: &[T],
    bias: Option<&[T]>,
    out: &mut [T],
    way: Way<T>,
) -> Result<()> {
    assert_eq!(out.len(), window.batch * window.inputs * window.row.input * window.col.input);
    let (row_axes, col_axes) = (Axis::adjoint(window.row), Axis::adjoint(window.col));
    let missed = |axes: &[Axis]| axes.iter().any(|axis| axis.taps.is_empty());
    if missed(&row_axes) || missed(&col_axes) {
        fill(window, bias, out);
    }
    let out = SharedMut::new(out.as_mut_ptr());
    for row_axis in row_axes.iter().filter(|axis| !axis.taps.is_empty()) {
        for col_axis in col_axes.iter().filter(|axis| !axis.taps.is_empty()) {
            let call = correlation(window, false, (g, weight, bias), (row_axis, col_axis));
            // SAFETY: `out` has the size of the input and is ours; each pair of axes writes its own positions.
            unsafe { way(&call, out)? };
        }
    }
    Ok(())
}

/// Source, weight and bias: `ahead` from the input to the output of a convolution, or back.
fn correlation<'a, T>(
    window: &Window,
    ahead: bool,
    (source, data, bias): (&'a [T], &'a [T], Option<&'a [T]>),
    (row_axis, col_axis): (&'a Axis, &'a Axis),
) -> Correlation<'a, T> {
    let taps = window.row.kernel * window.col.kernel;
    let turned = |pair: [usize; 2]| if ahead { (pair[0], pair[1]) } else { (pair[1], pair[0]) };
    let (channels, outputs) = turned([window.inputs / window.groups, window.outputs / window.groups]);
    let (output, channel) = turned([window.inputs / window.groups * taps, taps]);
    let (rows, cols) = (turned([window.row.input, window.row.output]), turned([window.col.input, window.col.output]));
    Correlation {
        batch: window.batch,
        groups: window.groups,
        channels,
        outputs,
        source_size: (rows.0, cols.0),
        out_size: (rows.1, cols.1),
        source,
        weight: Weights { data, group: outputs * channels * taps, output, channel, kernel_cols: window.col.kernel },
        bias,
        row_axis,
        col_axis,
    }
}

/// Fills the planes of an input gradient with what is added to them.
fn fill<T: Element + Default>(window: &Window, bias: Option<&[T]>, out: &mut [T]) {
    let all = SharedMut::new(out.as_mut_ptr());
    let Some(bias) = bias else {
        // SAFETY: the ranges are disjoint.
        return threads::for_ranges(out.len(), 1 << 14, &|range| unsafe { all.slice(range).fill(T::default()) });
    };
    let size = window.row.input * window.col.input;
    threads::parallel(window.batch, &|image| {
        for (channel, &value) in bias.iter().enumerate() {
            let first = (image * window.inputs + channel) * size;
            // SAFETY: each image has one task.
            unsafe { all.slice(first..first + size) }.fill(value);
        }
    });
}
