//! Which way computes a float product: one row each, in the order in which they are asked.

use super::Matrix;
use super::blocks::caches;
use super::call::{Call, FEW_DOTS};
use super::dots;
use super::engine::{Gemm, reads_in_place};
use super::epilogue::Finish;
use super::format::{Format, Single};
use super::pack::{self, SLACK};
use crate::array::Array;
use crate::error::Result;
use crate::machine::lanes::{lane_count, launch};
use crate::memory::owned::Memory;
use crate::memory::scratch::filled;
use crate::ops::ways::ways;

/// Columns below which a product is computed transposed, where it has more rows.
const FEW_COLUMNS: usize = 8;
/// [`FEW_DOTS`] where sums are long and the right side is not kept.
const DEEP_DOTS: usize = 12;
/// Length of a long sum.
const DEEP: usize = 512;
/// Depth below which dot products do not pay.
const FEW_DEEP: usize = 16;
/// Elements of a right side by columns, as in batches of scores of attention, up to which a copy in rows is read in place:
/// packing both sides took longer.
const TURNED: usize = 1 << 15;

/// Computes a product. `split` allows more than one thread, which changes no bit. `weights`, the array behind the right side,
/// allows keeping it packed: what is kept changes no bit, but few rows, and a right side by columns, go another way where it is
/// allowed, so a product of a batch, which keeps nothing, may differ in the last bits from the same one alone.
///
/// # Safety
/// The matrices and addends are valid for these sizes; `c` has distinct elements and overlaps nothing. The right side is
/// all of `weights`.
pub unsafe fn multiply<T: Gemm>(call: &Call<T>, split: bool, weights: Option<&Array>) -> Result<()> {
    if call.size.1 == 0 {
        empty(call);
        return Ok(());
    }
    if T::in_parts(call, split, in_one_piece)? { Ok(()) } else { in_one_piece(call, split, weights) }
}

ways! {
    MATMUL "matmul"
    /// Computes a product that is not cut along `k`, and not empty.
    ///
    /// # Safety
    /// As [`multiply`].
    [unsafe fn] in_one_piece[T: Gemm](call: &Call<T>, split: bool, weights: Option<&Array>) -> Result<()> {
        let (m, k, n) = call.size;
        let by_columns = call.b.row == 1 && call.b.col != 1;
        let shallow = k < FEW_DEEP && Single::<T>::DIRECT;
        let fewest = if k >= DEEP { DEEP_DOTS + 1 } else { FEW_COLUMNS };
        let in_place = reads_in_place(call);
        "copied" if shallow && n < m && (2..FEW_COLUMNS).contains(&n) && call.b.col != 1 => gathered(call, split);
        // One row and few columns with gaps: packing would fill whole registers with each of them.
        "row" if m == 1 && call.b.col != 1 && call.b.row != 1 && n < FEW_COLUMNS => T::direct(&call.turned(), split), or next;
        "turned" if n < m && n < fewest && !shallow => in_one_piece(&call.turned(), split, None);
        "tiles" if true => T::tiled(call, split, weights), or next;
        // A right side that is kept is packed for all rows to come; one that is not, for these alone.
        "dots" if by_columns && (m <= FEW_DOTS && k >= FEW_DEEP || m <= DEEP_DOTS && k >= DEEP && weights.is_none())
            => dots::multiply(call, split);
        "direct" if in_place && (call.b.col == 1 || n == 1) && !(weights.is_some() && call.b.col == 1 && caches::<Single<T>>(call.size))
            => T::direct(call, split), or next;
        "rows" if in_place && call.b.row == 1 && weights.is_none() && Single::<T>::DIRECT && k * n <= TURNED
            => in_rows(call, split), or next;
        "packed" if true => T::packed(call, split, weights);
    }
}

/// The product with a copy of a right side by columns in rows, read there; false, and nothing done, where that does not go.
///
/// # Safety
/// As [`multiply`], of a type that is its own wide type.
unsafe fn in_rows<T: Gemm>(call: &Call<T>, split: bool) -> Result<bool> {
    let (_, k, n) = call.size;
    let pitch = n.next_multiple_of(lane_count::<T::Wide>());
    let held = Memory::new((k * pitch + SLACK) * size_of::<T>())?;
    // SAFETY: all of the right side as one panel, for which there is room; then a product as the caller promises.
    pack::right::<Single<T>>(call.b, k, n, (pitch, k * pitch), held.data().cast());
    T::direct(&Call { b: Matrix::new(held.data().cast(), (pitch as isize, 1)), ..*call }, split)
}

/// The product with a copy of the right side, of few elements, in rows.
///
/// # Safety
/// As [`multiply`].
unsafe fn gathered<T: Gemm>(call: &Call<T>, split: bool) -> Result<()> {
    let (_, k, n) = call.size;
    let held = Memory::new(k * n * size_of::<T>())?;
    let rows = held.data().cast::<T>();
    for (l, j) in (0..k).flat_map(|l| (0..n).map(move |j| (l, j))) {
        // SAFETY: inside the right side, and inside the copy.
        rows.add(l * n + j).write(*call.b.at(l, j).start);
    }
    in_one_piece(&Call { b: Matrix::new(rows, (n as isize, 1)), ..*call }, split, None)
}

/// The result of empty sums.
unsafe fn empty<T: Gemm>(call: &Call<T>) {
    let (m, _, n) = call.size;
    let mut sums = filled(T::Wide::default(), n);
    for i in 0..m {
        sums.fill(T::Wide::default());
        let (to, epilogue) = (call.c.at(i, 0), call.end.at(i, 0));
        launch(Finish::<T> { from: sums.as_mut_ptr(), pitch: 0, rows: 1, cols: n, to, epilogue });
    }
}
