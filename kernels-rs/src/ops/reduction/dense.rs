//! Folds of dense rows for those who make the rows themselves, in the order of all reductions.

use super::block::{BLOCK, RowJob};
use super::kernel::{Kernel, Reduction};
use crate::dispatch;
use crate::dtype::{DType, Element};
use crate::memory::scratch::with_scratch;

/// A reduction of dense rows of a type to elements of the same type.
#[derive(Clone, Copy, Debug)]
pub struct RowFold {
    reduction: Reduction,
    mean: bool,
    dtype: DType,
}

impl RowFold {
    /// That of an op; `None` where the op gives or adds up another type.
    pub fn new(op: &str, dtype: DType) -> Option<Self> {
        let (reduction, mean) = match op {
            "sum" => (Reduction::Sum, false),
            "mean" => (Reduction::Sum, true),
            "prod" => (Reduction::Prod, false),
            "max" => (Reduction::Max, false),
            "min" => (Reduction::Min, false),
            _ => return None,
        };
        let (extreme, narrow) = (matches!(reduction, Reduction::Max | Reduction::Min), dtype.itemsize() == 2);
        let fits = match dtype {
            DType::F32 | DType::F64 => true,
            DType::F16 | DType::BF16 => reduction != Reduction::Prod && narrow,
            DType::I64 => !mean,
            DType::I32 => extreme,
            _ => false,
        };
        fits.then_some(Self { reduction, mean, dtype })
    }

    fn kernel(self) -> &'static Kernel {
        self.reduction.kernel(self.dtype)
    }

    /// Words of scratch that [`RowFold::rows`] needs.
    pub fn words(count: usize, len: usize) -> usize {
        count + if len > BLOCK { len.div_ceil(BLOCK) } else { 0 }
    }

    /// Folds rows that follow each other; the results have the type of the rows.
    ///
    /// # Safety
    /// `count` rows of `len` elements, of which there are some, lie at `x`; `scratch` is [`RowFold::words`] of 8 bytes; `out`
    /// has room for `count` elements.
    pub unsafe fn rows(self, x: *const u8, count: usize, len: usize, scratch: *mut u8, out: *mut u8) {
        let (kernel, blocks) = (self.kernel(), len.div_ceil(BLOCK));
        // The scratch has a word for each result and for each block.
        if blocks == 1 {
            let (stride, narrow) = (len as isize, kernel.narrow);
            (kernel.rows)(&RowJob { x, count, stride, len, out: scratch, narrow });
        } else {
            let parts = scratch.add(8 * count);
            for row in 0..count {
                self.blocks(x.add(row * len * kernel.size), len, parts);
                again((kernel.again)(), parts, blocks, scratch.add(row * kernel.acc.itemsize()));
            }
        }
        self.finish(scratch, count, len, out);
    }

    /// Bytes of the result of a block.
    pub fn result_bytes(self) -> usize {
        self.kernel().acc.itemsize()
    }

    /// Folds the blocks of a part of a row.
    ///
    /// # Safety
    /// `count` elements lie at `x`, from the start of a block on; `out` has room for a word for each block.
    pub unsafe fn blocks(self, x: *const u8, count: usize, out: *mut u8) {
        blocks(self.kernel(), x, count, out);
    }

    /// Ends the fold of one row of `len` elements, whose blocks are folded.
    ///
    /// # Safety
    /// The results of all blocks of the row lie at `parts`; `out` has room for an element.
    pub unsafe fn row_of_blocks(self, parts: *const u8, len: usize, out: *mut u8) {
        let (mut acc, kernel) = (0u64, self.kernel());
        let to: *mut u8 = (&raw mut acc).cast();
        // A word has room for a result.
        again((kernel.again)(), parts, len.div_ceil(BLOCK), to);
        self.finish(to, 1, len, out);
    }

    /// From what was folded to elements: divided for the mean, rounded for narrow floats.
    unsafe fn finish(self, accs: *mut u8, count: usize, len: usize, out: *mut u8) {
        let acc = self.kernel().acc;
        if self.mean {
            let (single, double): (*mut f32, *mut f64) = (accs.cast(), accs.cast());
            for row in 0..count {
                match acc {
                    DType::F32 => *single.add(row) /= len as f32,
                    _ => *double.add(row) /= len as f64,
                }
            }
        }
        if acc == self.dtype {
            std::ptr::copy_nonoverlapping(accs, out, count * acc.itemsize());
        } else {
            let accs: *const f32 = accs.cast_const().cast();
            dispatch!(float self.dtype, T => {
                let out: *mut T = out.cast();
                for row in 0..count {
                    out.add(row).write(T::from_f64(accs.add(row).read() as f64));
                }
            }, else unreachable!("floats alone are rounded"));
        }
    }
}

unsafe fn blocks(kernel: &Kernel, x: *const u8, count: usize, out: *mut u8) {
    let (whole, rest, narrow) = (count / BLOCK, count % BLOCK, kernel.narrow);
    (kernel.rows)(&RowJob { x, count: whole, stride: BLOCK as isize, len: BLOCK, out, narrow });
    if rest > 0 {
        let (x, out) = (x.add(whole * BLOCK * kernel.size), out.add(whole * kernel.acc.itemsize()));
        (kernel.rows)(&RowJob { x, count: 1, stride: 0, len: rest, out, narrow });
    }
}

/// Folds results of blocks until there is one.
unsafe fn again(kernel: &Kernel, x: *const u8, len: usize, out: *mut u8) {
    if len <= BLOCK {
        return (kernel.rows)(&RowJob { x, count: 1, stride: 0, len, out, narrow: None });
    }
    with_scratch(len.div_ceil(BLOCK), |room: &mut [u64]| {
        let parts = room.as_mut_ptr().cast();
        // SAFETY: a word for each block.
        blocks(kernel, x, len, parts);
        again((kernel.again)(), parts, len.div_ceil(BLOCK), out);
    });
}
