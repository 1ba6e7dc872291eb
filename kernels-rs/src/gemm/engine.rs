//! Our name for one serial float product, and the crate behind it.
//!
//! Why gemmkit: measured on AMD EPYC (family 25, Zen 4, AVX-512, 2 cores) against gemm 0.19 with `x86-v4`, serial,
//! GF/s of f32, gemmkit / gemm: 16^3 24/46, 32^3 87/96, 64^3 107/106, 256^3 116/114, 512^3 115/113, 64x784x256 117/108,
//! 8x1024x1024 103/78, 1x1024x1024 39/35, 64x256x784 with a transposed right side 80/68. It also has bias in the
//! epilogue, the bf16 dot product, no thread pool of its own to quarrel with ours, and a tenth of the compile time.
//! The library takes any strides, also negative, so that transposed and broadcast views are never copied.

use crate::dtype::{BF16, Element, F16};
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
    ($($rust:ty => $theirs:ty, $zero:expr, $one:expr;)*) => {$(
        impl Gemm for $rust {
            unsafe fn gemm(
                (m, k, n): (usize, usize, usize),
                a: Matrix<Self>,
                b: Matrix<Self>,
                c: Matrix<Self>,
                bias: Option<*const Self>,
            ) {
                type Theirs = $theirs;
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
            }
        }
    )*};
}
gemm! {
    BF16 => gemmkit::bf16, gemmkit::bf16::ZERO, gemmkit::bf16::ONE;
    F16 => gemmkit::f16, gemmkit::f16::ZERO, gemmkit::f16::ONE;
    f32 => f32, 0.0, 1.0;
    f64 => f64, 0.0, 1.0;
}
