//! The loops of one reduction over one element type, behind function pointers: the code that plans a reduction is
//! compiled once.

use super::block::{ColumnJob, RowJob, fold_columns, fold_rows};
use super::fold::{Fold, Max, Min, Prod, Squares, Sum};
use crate::dtype::{DType, Element};

/// The loops of one [`Fold`].
pub struct Kernel {
    /// Bytes of an element.
    pub size: usize,
    /// Type of the results.
    pub acc: DType,
    /// Folds rows, as [`fold_rows`].
    pub rows: unsafe fn(&RowJob),
    /// Folds columns, as [`fold_columns`].
    pub columns: unsafe fn(&ColumnJob<'_>),
    /// The narrow float that is stored, for loops over `f32`.
    pub narrow: Option<DType>,
    /// The kernel that goes on with the results of blocks.
    pub again: fn() -> &'static Kernel,
}

/// What a reduction computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// The sum.
    Sum,
    /// The product.
    Prod,
    /// The largest.
    Max,
    /// The smallest.
    Min,
    /// The sum of squares of floats.
    Squares,
}

const fn plain<F: Fold>() -> Kernel {
    Kernel {
        size: size_of::<F::In>(),
        acc: <F::Acc as Element>::DTYPE,
        rows: fold_rows::<F>,
        columns: fold_columns::<F>,
        narrow: None,
        again: kernel::<F::Again>,
    }
}

fn kernel<F: Fold>() -> &'static Kernel {
    const { &plain::<F>() }
}

/// The loops over `f32`, for an array of a narrow float.
fn narrow<F: Fold<In = f32>>(dtype: DType) -> &'static Kernel {
    match dtype {
        DType::BF16 => const { &Kernel { size: 2, narrow: Some(DType::BF16), ..plain::<F>() } },
        _ => const { &Kernel { size: 2, narrow: Some(DType::F16), ..plain::<F>() } },
    }
}

impl Reduction {
    /// The loops for a dtype that is not [`DType::rare`]; bool goes as `u8`.
    pub fn kernel(self, dtype: DType) -> &'static Kernel {
        match self {
            Reduction::Sum => sum(dtype),
            Reduction::Prod => prod(dtype),
            Reduction::Max => max(dtype),
            Reduction::Min => min(dtype),
            Reduction::Squares => squares(dtype),
        }
    }

    /// What goes on with the results over some of the axes.
    pub fn again(self) -> Self {
        if self == Reduction::Squares { Reduction::Sum } else { self }
    }

    /// The result over no elements, where there is one.
    pub fn of_nothing(self) -> f64 {
        match self {
            Reduction::Sum | Reduction::Squares => 0.0,
            Reduction::Prod => 1.0,
            Reduction::Max => f64::NEG_INFINITY,
            Reduction::Min => f64::INFINITY,
        }
    }
}

fn sum(dtype: DType) -> &'static Kernel {
    match dtype {
        DType::BF16 | DType::F16 => narrow::<Sum<f32, f32>>(dtype),
        DType::F32 => kernel::<Sum<f32, f32>>(),
        DType::F64 => kernel::<Sum<f64, f64>>(),
        DType::I32 => kernel::<Sum<i32, i64>>(),
        DType::U8 | DType::Bool => kernel::<Sum<u8, i32>>(),
        DType::I64 | DType::U64 => kernel::<Sum<i64, i64>>(),
        DType::I8 | DType::I16 | DType::U16 | DType::U32 => unreachable!("cast before"),
    }
}

fn squares(dtype: DType) -> &'static Kernel {
    match dtype {
        DType::BF16 | DType::F16 => narrow::<Squares<f32>>(dtype),
        DType::F64 => kernel::<Squares<f64>>(),
        _ => kernel::<Squares<f32>>(),
    }
}

fn prod(dtype: DType) -> &'static Kernel {
    match dtype {
        DType::F32 => kernel::<Prod<f32, f32>>(),
        DType::F64 => kernel::<Prod<f64, f64>>(),
        _ => kernel::<Prod<i64, i64>>(),
    }
}

macro_rules! extreme_kernels {
    ($($name:ident $fold:ident;)*) => {$(
        fn $name(dtype: DType) -> &'static Kernel {
            match dtype {
                DType::BF16 | DType::F16 => narrow::<$fold<f32>>(dtype),
                DType::Bool | DType::U8 => kernel::<$fold<u8>>(),
                _ => crate::dispatch!(common dtype, T => kernel::<$fold<T>>(), else unreachable!("cast before")),
            }
        }
    )*};
}
extreme_kernels! {
    max Max;
    min Min;
}
