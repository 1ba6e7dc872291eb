//! Matrix products: `matmul` for every number dtype and batch, `linear` and `fused_linear`.
//!
//! Floats go through [`ways`], integers through [`integer`]. The result is cut into tasks by its shape alone, and a
//! task computes its part over all of `k`, or over a part of `k` that the shape alone decides, so nothing depends on the
//! number of threads.

#[cfg(target_arch = "x86_64")]
pub(crate) mod amx;
mod blocks;
mod bytes;
mod call;
mod deep;
mod direct;
mod dots;
mod engine;
mod epilogue;
mod format;
mod integer;
mod lies;
mod pack;
mod pairs;
mod quantized;
mod side;
#[cfg(test)]
mod tests;
mod tile;
pub mod ways;

use crate::array::Array;
use crate::array::axes::{Axis, offset};
use crate::array::shape::{self, Inline, Shape, Strides};
use crate::array::view;
use crate::dtype::{BF16, DType, Element, F16, Kind};
use crate::error::{Error, Result};
use crate::machine::threads::{self, SharedMut};
use crate::ops::elementwise::convert::cast;
pub(crate) use call::Call;
pub(crate) use dots::{Dot, Dots};
pub(crate) use engine::{Gemm, add};
pub use epilogue::Activation;
pub(crate) use epilogue::Epilogue;
pub use quantized::quantized_linear;
pub(crate) use ways::multiply;

/// Multiply-adds below which a product is not worth a second thread (about 5 us).
const SERIAL: usize = 1 << 19;
/// Multiply-adds of a task made of several small products.
const BUNDLE: usize = 1 << 18;
/// Rows and columns of a product that goes to the kernel at once.
const TINY: usize = 32;
/// Products in a batch from which each is one task, or part of one.
const BATCH: usize = 8;

/// A strided matrix.
pub struct Matrix<T> {
    start: *mut T,
    row: isize,
    col: isize,
}

impl<T> Clone for Matrix<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Matrix<T> {}

// SAFETY: a matrix carries an address; each use of it is unsafe and argues for itself.
unsafe impl<T> Send for Matrix<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Matrix<T> {}

impl<T> Matrix<T> {
    /// With its row and column steps, in elements.
    pub fn new(start: *mut T, (row, col): (isize, isize)) -> Self {
        Self { start, row, col }
    }

    /// The part that starts at a row and a column.
    #[inline(always)]
    pub fn at(self, row: usize, col: usize) -> Self {
        Self { start: self.start.wrapping_offset(row as isize * self.row + col as isize * self.col), ..self }
    }

    /// The same matrix, so many elements away.
    pub fn moved(self, by: isize) -> Self {
        Self { start: self.start.wrapping_offset(by), ..self }
    }

    /// The transposed matrix.
    pub fn turned(self) -> Self {
        Self { start: self.start, row: self.col, col: self.row }
    }
}

/// `NumPy`'s `matmul`: 1-d operands, broadcast batches. Narrow floats accumulate in `f32`, integers wrap.
pub fn matmul(x1: &Array, x2: &Array) -> Result<Array> {
    let dtype = x1.dtype();
    if dtype != x2.dtype() || dtype.kind() == Kind::Bool {
        return Err(Error::Rejected("matmul wants operands of one number dtype"));
    }
    if x1.rank() == 0 || x2.rank() == 0 {
        return Err(Error::Rejected("matmul wants operands of rank 1 or more"));
    }
    if dtype == DType::F32 && x1.rank() == 2 && x2.rank() == 2 && x1.shape()[1] == x2.shape()[0] {
        return matrices(x1, x2, None);
    }
    let product = Product::new(x1, x2)?;
    let mut out = Array::uninit(dtype, &product.shape)?;
    match dtype {
        DType::F16 => product.float::<F16>(x1, x2, &End::default(), &mut out)?,
        DType::BF16 => product.float::<BF16>(x1, x2, &End::default(), &mut out)?,
        DType::F32 => product.float::<f32>(x1, x2, &End::default(), &mut out)?,
        DType::F64 => product.float::<f64>(x1, x2, &End::default(), &mut out)?,
        _ => integer::run(&product, x1, x2, &mut out)?,
    }
    Ok(out)
}

/// [`matmul`] of integers of any types, with sums of another one.
pub fn matmul_integer(x1: &Array, x2: &Array, dtype: DType) -> Result<Array> {
    if [x1.dtype(), x2.dtype(), dtype].iter().any(|dtype| dtype.kind() != Kind::Int) || x1.rank().min(x2.rank()) == 0 {
        return Err(Error::Rejected("matmul_integer wants integers of rank 1 or more"));
    }
    if dtype == DType::I32 {
        let product = Product::new(x1, x2)?;
        let mut out = Array::uninit(dtype, &product.shape)?;
        if integer::of_bytes(&product, x1, x2, &mut out)? {
            return Ok(out);
        }
    }
    matmul(&cast(x1, dtype)?, &cast(x2, dtype)?)
}

/// The most frequent case, with nothing to work out: a small product takes less than that would.
fn matrices(x1: &Array, x2: &Array, bias: Option<&Array>) -> Result<Array> {
    let (m, k, n) = (x1.shape()[0], x1.shape()[1], x2.shape()[1]);
    // A square right side: the result has the shape of the left one.
    let mut out = if k == n { x1.uninit_like(DType::F32)? } else { Array::uninit(DType::F32, &[m, n])? };
    // SAFETY: the operands were checked; the result is fresh.
    let done = bias.is_none() && m.max(n) <= TINY && unsafe { direct::tiny((m, k, n), x1, x2, out.mut_ptr::<f32>()) };
    if m * n > 0 && !done {
        let call = Call::<f32> {
            size: (m, k, n),
            a: Matrix::new(x1.ptr::<f32>().cast_mut(), (x1.strides()[0], x1.strides()[1])),
            b: Matrix::new(x2.ptr::<f32>().cast_mut(), (x2.strides()[0], x2.strides()[1])),
            c: Matrix::new(out.mut_ptr::<f32>(), (n as isize, 1)),
            end: Epilogue { bias: bias.map(columns), ..Epilogue::default() },
        };
        // SAFETY: the operands were checked; the result is fresh.
        unsafe { multiply(&call, true, Some(x2))? };
    }
    Ok(out)
}

/// A value for each column.
fn columns<T: Element>(bias: &Array) -> Matrix<T> {
    Matrix::new(bias.ptr::<T>().cast_mut(), (0, bias.strides()[0]))
}

/// What happens to a product before it is stored.
pub struct End<'a> {
    /// `[out]`.
    pub bias: Option<&'a Array>,
    /// Of the shape of the result.
    pub residual: Option<&'a Array>,
    /// The last step.
    pub activation: Activation,
    /// Factor of the product.
    pub scale: f64,
}

impl End<'_> {
    /// Nothing but a bias.
    fn is_plain(&self) -> bool {
        self.residual.is_none() && self.activation == Activation::None && self.scale == 1.0
    }
}

impl Default for End<'_> {
    fn default() -> Self {
        Self { bias: None, residual: None, activation: Activation::None, scale: 1.0 }
    }
}

/// A weight itself. What products make of it is made now and kept beside it, and what they make of parts of it from the first
/// use of each on; of some columns from a multiple of a panel on nothing else has to be made.
pub fn prepacked(weight: &Array) -> Result<Array> {
    if !weight.dtype().is_float() || weight.rank() != 2 {
        return Err(Error::Rejected("prepacked wants a matrix of floats"));
    }
    match weight.dtype() {
        DType::F16 => keep::<F16>(weight)?,
        DType::BF16 => keep::<BF16>(weight)?,
        DType::F64 => keep::<f64>(weight)?,
        _ => keep::<f32>(weight)?,
    }
    Ok(weight.clone())
}

fn keep<T: Gemm>(weight: &Array) -> Result<()> {
    let (size, steps) = ((weight.shape()[0], weight.shape()[1]), (weight.strides()[0], weight.strides()[1]));
    if size.0 * size.1 <= call::CACHED {
        return Ok(()); // Read from the first-level cache wherever it lies.
    }
    // SAFETY: all of the weight.
    unsafe { T::keep(Matrix::new(weight.ptr::<T>().cast_mut(), steps), size, weight) }
}

/// `x[.., in] @ weight[in, out] + bias[out]`.
pub fn linear(x: &Array, weight: &Array, bias: Option<&Array>) -> Result<Array> {
    fused_linear(x, weight, &End { bias, ..End::default() })
}

/// `activation(scale * (x @ weight) + bias + residual)`, all of it while a tile of the product is in cache.
pub fn fused_linear(x: &Array, weight: &Array, end: &End<'_>) -> Result<Array> {
    let dtype = x.dtype();
    let others = [Some(weight), end.bias, end.residual];
    if !dtype.is_float() || others.into_iter().flatten().any(|other| other.dtype() != dtype) {
        return Err(Error::Rejected("linear wants operands of one float dtype"));
    }
    if x.rank() == 0 || weight.rank() != 2 || end.bias.is_some_and(|bias| bias.shape()[..] != weight.shape()[1..]) {
        return Err(Error::Rejected("linear wants x [.., in], weight [in, out], bias [out]"));
    }
    if end.is_plain() && dtype == DType::F32 && x.rank() == 2 && x.shape()[1] == weight.shape()[0] {
        return matrices(x, weight, end.bias);
    }
    let product = Product::new(x, weight)?;
    if end.residual.is_some_and(|residual| residual.shape()[..] != product.shape[..]) {
        return Err(Error::Rejected("linear wants a residual of the shape of its result"));
    }
    let mut out = Array::uninit(dtype, &product.shape)?;
    match dtype {
        DType::F16 => product.float::<F16>(x, weight, end, &mut out)?,
        DType::BF16 => product.float::<BF16>(x, weight, end, &mut out)?,
        DType::F64 => product.float::<f64>(x, weight, end, &mut out)?,
        _ => product.float::<f32>(x, weight, end, &mut out)?,
    }
    Ok(out)
}

/// The sizes and steps of a batch of products.
struct Product {
    /// Of the result.
    shape: Shape,
    m: usize,
    k: usize,
    n: usize,
    /// Leading axes with the steps of each operand.
    batch: [Inline<(usize, isize)>; 2],
    /// Row and column steps.
    a: (isize, isize),
    b: (isize, isize),
}

/// Shape and strides with an axis added for a vector operand.
fn as_matrix(x: &Array, vector_axis: usize) -> Result<(Shape, Strides)> {
    let (mut shape, mut strides) = (*x.shape(), *x.strides());
    if x.rank() == 1 {
        shape.insert(vector_axis, 1);
        strides.insert(vector_axis, 0);
    }
    if shape.len() > shape::MAX_RANK {
        return Err(Error::Rejected("rank too large"));
    }
    Ok((shape, strides))
}

impl Product {
    fn new(x1: &Array, x2: &Array) -> Result<Self> {
        let ((a_shape, a_strides), (b_shape, b_strides)) = (as_matrix(x1, 0)?, as_matrix(x2, 1)?);
        let (a_rank, b_rank) = (a_shape.len(), b_shape.len());
        let (m, k, n) = (a_shape[a_rank - 2], a_shape[a_rank - 1], b_shape[b_rank - 1]);
        if b_shape[b_rank - 2] != k {
            return Err(Error::Rejected("inner sizes of matmul differ"));
        }
        let batch = shape::broadcast(&a_shape[..a_rank - 2], &b_shape[..b_rank - 2])?;
        let mut shape = batch;
        if x1.rank() > 1 {
            shape.push(m);
        }
        if x2.rank() > 1 {
            shape.push(n);
        }
        let batch_a = shape::broadcast_strides(&a_shape[..a_rank - 2], &a_strides[..a_rank - 2], &batch);
        let batch_b = shape::broadcast_strides(&b_shape[..b_rank - 2], &b_strides[..b_rank - 2], &batch);
        let batch = [batch_a, batch_b].map(|steps| {
            let mut axes = Inline::empty();
            batch.iter().zip(steps.iter()).for_each(|(&len, &step)| axes.push((len, step)));
            axes
        });
        let a = (a_strides[a_rank - 2], a_strides[a_rank - 1]);
        let b = (b_strides[b_rank - 2], b_strides[b_rank - 1]);
        Ok(Self { shape, m, k, n, batch, a, b }.collapsed())
    }

    /// One right side for the whole batch, and a left side whose rows follow each other through the batch: one product.
    fn collapsed(mut self) -> Self {
        while let [Some(&(len, step)), Some(&(_, fixed))] = self.batch.each_ref().map(|axes| axes.last()) {
            let follows = self.m == 1 || (len, step).spans(&(self.m, self.a.0));
            if len != 1 && (fixed != 0 || !follows) {
                break;
            }
            if len != 1 {
                self.a.0 = if self.m == 1 { step } else { self.a.0 };
                self.m *= len;
            }
            for axes in &mut self.batch {
                axes.pop();
            }
        }
        self
    }

    /// The number of products.
    fn count(&self) -> usize {
        self.batch[0].iter().map(|axis| axis.0).product()
    }

    /// Offsets of the operands of one product.
    fn offsets(&self, index: usize) -> (isize, isize) {
        (offset(&self.batch[0], index), offset(&self.batch[1], index))
    }

    fn float<T: Gemm>(&self, x1: &Array, x2: &Array, end: &End<'_>, out: &mut Array) -> Result<()> {
        let count = self.count();
        if out.numel() == 0 {
            return Ok(());
        }
        // Rows at equal distances: a copy only where there are none.
        let as_rows = |x: &Array| view::reshape(x, &[x.numel() / self.n, self.n]);
        let residual = end.residual.map(as_rows).transpose()?;
        let epilogue = Epilogue {
            scale: end.scale,
            bias: end.bias.map(columns),
            residual: residual.as_ref().map(|x| Matrix::new(x.ptr::<T>().cast_mut(), (x.strides()[0], x.strides()[1]))),
            activation: end.activation,
            adds: false,
        };
        let (a, b) = (SharedMut::new(x1.ptr::<T>().cast_mut()), SharedMut::new(x2.ptr::<T>().cast_mut()));
        let c = SharedMut::new(out.mut_ptr::<T>());
        let call = Call {
            size: (self.m, self.k, self.n),
            a: Matrix::new(a.ptr(), self.a),
            b: Matrix::new(b.ptr(), self.b),
            c: Matrix::new(c.ptr(), (self.n as isize, 1)),
            end: epilogue,
        };
        if self.batch[0].is_empty() {
            // SAFETY: the operands were checked; the result is fresh.
            return unsafe { multiply(&call, true, Some(x2)) };
        }
        let item = |index: usize, split: bool| {
            let (at_a, at_b) = self.offsets(index);
            let call = Call {
                a: Matrix::new(a.ptr().wrapping_offset(at_a), self.a),
                b: Matrix::new(b.ptr().wrapping_offset(at_b), self.b),
                c: call.c.at(index * self.m, 0),
                end: call.end.at(index * self.m, 0),
                ..call
            };
            // SAFETY: the offsets stay inside the operands, and each item has its own part of the result.
            unsafe { multiply(&call, split, None) }
        };
        let work = self.m.saturating_mul(self.k).saturating_mul(self.n).max(1);
        if work.saturating_mul(count) < SERIAL {
            return (0..count).try_for_each(|index| item(index, false));
        }
        if count < BATCH && work >= SERIAL {
            return (0..count).try_for_each(|index| item(index, true));
        }
        let bundle = (BUNDLE / work).clamp(1, count);
        threads::try_parallel(count.div_ceil(bundle), &|index| {
            (index * bundle..((index + 1) * bundle).min(count)).try_for_each(|index| item(index, false))
        })
    }
}
