//! Our name for one serial float product, and the crate behind it.
//!
//! Why gemmkit: measured on AMD EPYC (family 25, Zen 4, AVX-512, 2 cores) against gemm 0.19 with `x86-v4`, serial,
//! GF/s of f32, gemmkit / gemm: 16^3 24/46, 32^3 87/96, 64^3 107/106, 256^3 116/114, 512^3 115/113, 64x784x256 117/108,
//! 8x1024x1024 103/78, 1x1024x1024 39/35, 64x256x784 with a transposed right side 80/68. It also has bias in the
//! epilogue, the bf16 dot product, no thread pool of its own to quarrel with ours, and a tenth of the compile time.
//! The library takes any strides, also negative, so that transposed and broadcast views are never copied.

use crate::dtype::{BF16, Element, F16};
use crate::lanes::{Block, Kernel, Lanes, launch};
use crate::scratch::with_scratch;
use gemmkit::{BiasDim, Parallelism};

/// A strided matrix.
#[derive(Clone, Copy)]
pub struct Matrix<T> {
    start: *mut T,
    row: isize,
    col: isize,
}

impl<T> Matrix<T> {
    /// With its row and column steps, in elements.
    pub fn new(start: *mut T, (row, col): (isize, isize)) -> Self {
        Self { start, row, col }
    }
}

/// A float type with a serial matrix product.
pub trait Gemm: Element {
    /// `c = a @ b`, plus `bias[j]` in column `j`, for sizes `(m, k, n)` of at least 1. Narrow floats accumulate in `f32`
    /// and are rounded once. Where the CPU has a bf16 dot product, bfloat16 operands below the normal range count as 0.
    ///
    /// # Safety
    /// The matrices and the bias are valid for these sizes; `c` has distinct elements and overlaps nothing.
    unsafe fn gemm(
        size: (usize, usize, usize),
        a: Matrix<Self>,
        b: Matrix<Self>,
        c: Matrix<Self>,
        bias: Option<*const Self>,
    );
}

macro_rules! gemm {
    ($($rust:ty => $theirs:ty, $zero:expr, $one:expr, $turn:expr;)*) => {$(
        impl Gemm for $rust {
            unsafe fn gemm(
                size: Size,
                a: Matrix<Self>,
                b: Matrix<Self>,
                c: Matrix<Self>,
                bias: Option<*const Self>,
            ) {
                type Theirs = $theirs;
                let call = |(m, k, n): Size, b: Matrix<Self>, c: Matrix<Self>, bias: Option<*const Self>| {
                    let (pa, pb, pc) = (a.start.cast::<Theirs>(), b.start.cast::<Theirs>(), c.start.cast::<Theirs>());
                    // SAFETY: the caller's; both narrow types are transparent over `u16`.
                    unsafe {
                        match bias {
                            None => gemmkit::gemm_unchecked(
                                m, k, n, $one, pa, a.row, a.col, pb, b.row, b.col, $zero, pc, c.row, c.col,
                                Parallelism::Serial,
                            ),
                            Some(bias) => gemmkit::gemm_fused_unchecked(
                                m, k, n, $one, pa, a.row, a.col, pb, b.row, b.col, $zero, pc, c.row, c.col,
                                bias.cast::<Theirs>(), BiasDim::PerCol, true, None, Parallelism::Serial,
                            ),
                        }
                    }
                };
                $turn(size, b, c, bias, &call);
            }
        }
    )*};
}
gemm! {
    BF16 => gemmkit::bf16, gemmkit::bf16::ZERO, gemmkit::bf16::ONE, as_it_is;
    F16 => gemmkit::f16, gemmkit::f16::ZERO, gemmkit::f16::ONE, as_it_is;
    f32 => f32, 0.0, 1.0, turned;
    f64 => f64, 0.0, 1.0, as_it_is;
}

type Size = (usize, usize, usize);
type Call<'a, T> = &'a dyn Fn(Size, Matrix<T>, Matrix<T>, Option<*const T>);

fn as_it_is<T>(size: Size, b: Matrix<T>, c: Matrix<T>, bias: Option<*const T>, call: Call<'_, T>) {
    call(size, b, c, bias);
}

/// Elements of a right side that are turned at a time: they stay in the second-level cache.
const TURNED: usize = 1 << 17;

/// A right side that is stored by columns is turned first, block by block: the library packs it element by element,
/// which costs as much as the product for 64 rows. For one row it needs no packing.
fn turned(size: Size, b: Matrix<f32>, c: Matrix<f32>, bias: Option<*const f32>, call: Call<'_, f32>) {
    let (m, k, n) = size;
    if b.row != 1 || b.col < k as isize || m == 1 || k < 8 || n < 8 {
        return call(size, b, c, bias);
    }
    let width = (TURNED / k).max(1).next_multiple_of(32).min(n);
    with_scratch(k * width, |block: &mut [f32]| {
        for first in (0..n).step_by(width) {
            let cols = width.min(n - first);
            let from = Block {
                at: b.start.cast_const().wrapping_add(first * b.col as usize),
                pitch: b.col as usize,
                rows: cols,
                cols: k,
            };
            launch(Turn { from, to: &mut *block });
            let part = Matrix::new(block.as_mut_ptr(), (cols as isize, 1));
            let to = Matrix::new(c.start.wrapping_offset(first as isize * c.col), (c.row, c.col));
            call((m, k, cols), part, to, bias.map(|bias| bias.wrapping_add(first)));
        }
    });
}

/// Transposes a block into a dense one.
struct Turn<'a> {
    from: Block<f32>,
    to: &'a mut [f32],
}

impl Kernel<f32> for Turn<'_> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = f32>>(self) {
        let Block { at, pitch, rows, cols } = self.from;
        for row in (0..rows).step_by(V::N) {
            for col in (0..cols).step_by(V::N) {
                let (high, wide) = (V::N.min(rows - row), V::N.min(cols - col));
                // SAFETY: the blocks lie inside the matrices; the caller has the instructions.
                unsafe {
                    let part = Block { at: at.add(row * pitch + col), pitch, rows: high, cols: wide };
                    V::transpose(part, self.to.as_mut_ptr().add(col * rows + row), rows, high);
                }
            }
        }
    }
}
