//! Kernels of 1 x 1 that read every position once: for each image, a plain product of the weights with its planes, both
//! read where they lie. Forward, the bias is what the sums begin with; the input gradient takes the weights transposed.

use super::cut::Given;
use super::window::Window;
use crate::array::Array;
use crate::array::view;
use crate::dtype::{BF16, DType, F16};
use crate::error::Result;
use crate::machine::lanes::lane_count;
use crate::machine::threads;
use crate::ops::contraction::{self, Call, Epilogue, Gemm, Matrix};
use crate::ops::parts::{self, PART};

/// Rows of a task: so few that the engine reads the planes in place.
const ROWS: usize = 64;
/// Tasks to aim for, where they have [`WORK`].
const TASKS: usize = 32;
/// Multiply-adds that a task is worth.
const WORK: usize = 1 << 18;

/// True when products are the best way: few lanes of the last register of a plane are wasted, where a batch could fill
/// them, and the sums are no mere scale factors.
pub fn applies(window: &Window, dtype: DType) -> bool {
    let lanes = if dtype == DType::F64 { lane_count::<f64>() } else { lane_count::<f32>() };
    let (channels, outputs, positions) =
        (window.inputs / window.groups, window.outputs / window.groups, window.col.output);
    window.is_product()
        && positions > 0
        && channels >= 4
        && outputs >= 4
        && (window.batch == 1 || positions.next_multiple_of(lanes) * 8 <= positions * 9)
}

/// The forward pass.
pub fn forward(given: &Given<'_>) -> Result<Array> {
    let (window, sizes) = (given.window, Sizes::new(given.window, (given.window.outputs, given.window.inputs)));
    let weights = view::reshape(given.weight, &[window.groups, sizes.m, sizes.k])?;
    let steps = (weights.strides()[0], weights.strides()[1], weights.strides()[2]);
    sizes.compute(given.source, (&weights, steps), given.bias, given.shape)
}

/// The gradient with respect to the input, and what is added to each channel of it.
pub fn input_grad(given: &Given<'_>) -> Result<Array> {
    let (window, sizes) = (given.window, Sizes::new(given.window, (given.window.inputs, given.window.outputs)));
    let weights = view::reshape(given.weight, &[window.groups, sizes.k, sizes.m])?;
    let steps = (weights.strides()[0], weights.strides()[2], weights.strides()[1]);
    sizes.compute(given.source, (&weights, steps), given.bias, given.shape)
}

/// Of `batch * groups` products `[m, k] @ [k, n]`.
#[derive(Clone, Copy)]
struct Sizes {
    batch: usize,
    groups: usize,
    m: usize,
    k: usize,
    n: usize,
}

/// Weights, and their steps from group to group, row to row, and along the sums.
type Weights<'a> = (&'a Array, (isize, isize, isize));

impl Sizes {
    fn new(window: &Window, (results, sources): (usize, usize)) -> Self {
        let (batch, groups) = (window.batch, window.groups);
        Self { batch, groups, m: results / groups, k: sources / groups, n: window.row.output * window.col.output }
    }

    fn compute(&self, source: &Array, weights: Weights<'_>, bias: Option<&Array>, shape: &[usize]) -> Result<Array> {
        let mut out = Array::uninit(source.dtype(), shape)?;
        let &[rows, cols] = &source.shape()[2..] else { unreachable!("checked") };
        let in_place = rows == 1 || cols == 1 || source.strides()[2] == cols as isize * source.strides()[3];
        let made = if in_place { 0 } else { source.numel() * source.dtype().itemsize() };
        for images in parts::ranges(self.batch, made, PART) {
            let sizes = Self { batch: images.len(), ..*self };
            let planes = parts::narrowed(source, 0, &images)?;
            let planes = view::reshape(&planes, &[sizes.batch, self.groups * self.k, self.n])?;
            let to = images.start * self.groups * self.m;
            match source.dtype() {
                DType::F16 => sizes.run::<F16>(&planes, weights, bias, (&mut out, to))?,
                DType::BF16 => sizes.run::<BF16>(&planes, weights, bias, (&mut out, to))?,
                DType::F64 => sizes.run::<f64>(&planes, weights, bias, (&mut out, to))?,
                _ => sizes.run::<f32>(&planes, weights, bias, (&mut out, to))?,
            }
        }
        Ok(out)
    }

    /// Rows and columns of a task, and how many of such parts it computes: by shape alone.
    fn cut<T: Gemm>(&self) -> (usize, usize, usize) {
        let narrow = size_of::<T>() < size_of::<T::Wide>();
        let rows = if narrow { self.m } else { self.m.div_ceil(self.m.div_ceil(ROWS)) };
        let products = self.batch * self.groups * self.m.div_ceil(rows);
        let work = rows.saturating_mul(self.k).saturating_mul(self.n);
        let pieces = TASKS.div_ceil(products).min(work / WORK).max(1);
        let cols = self.n.div_ceil(pieces).next_multiple_of(2 * lane_count::<T::Wide>());
        let part = (rows * self.k * cols.min(self.n)).max(1);
        (rows, cols, (WORK / part).clamp(1, products.div_ceil(TASKS)))
    }

    /// The products, whose results are the planes of `out` from the plane `to` on.
    fn run<T: Gemm>(
        &self,
        source: &Array,
        (weights, steps): Weights<'_>,
        bias: Option<&Array>,
        (out, to): (&mut Array, usize),
    ) -> Result<()> {
        if self.batch * self.groups * self.m * self.n == 0 {
            return Ok(()); // nothing to compute, which cannot be cut into parts
        }
        let (rows, cols, bundle) = self.cut::<T>();
        let (down, across) = (self.m.div_ceil(rows), self.n.div_ceil(cols));
        let parts = self.batch * self.groups * down * across;
        let (far, channel, position) = (source.strides()[0], source.strides()[1], source.strides()[2]);
        let b = Matrix::new(source.ptr::<T>().cast_mut(), (channel, position));
        let c = Matrix::new(out.mut_ptr::<T>(), (self.n as isize, 1)).at(to, 0);
        let a = Matrix::new(weights.ptr::<T>().cast_mut(), (steps.1, steps.2));
        let bias = bias.map(|bias| Matrix::new(bias.ptr::<T>().cast_mut(), (bias.strides()[0], 0)));
        let part = |index: usize| {
            let (index, col) = (index / across, index % across * cols);
            let (index, row) = (index / down, index % down * rows);
            let (image, group) = (index / self.groups, index % self.groups);
            let first = group * self.m + row;
            let call = Call {
                size: (rows.min(self.m - row), self.k, cols.min(self.n - col)),
                a: a.moved(group as isize * steps.0).at(row, 0),
                b: b.moved(image as isize * far).at(group * self.k, col),
                c: c.at(image * self.groups * self.m + first, col),
                end: Epilogue { bias: bias.map(|bias| bias.at(first, 0)), ..Epilogue::default() },
            };
            // SAFETY: inside the operands; each part has its own place in the result.
            unsafe { contraction::multiply(&call, false, None) }
        };
        threads::try_parallel(parts.div_ceil(bundle), &|index| {
            (index * bundle..((index + 1) * bundle).min(parts)).try_for_each(part)
        })
    }
}
