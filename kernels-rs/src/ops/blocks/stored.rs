//! What a weight is stored as: blocks, or floats of 16 bits.

#![allow(clippy::needless_range_loop, reason = "closures and iterator chains do not inherit the instruction set")]

use super::dots;
use super::forms::{AHEAD, Form, MOST, PART, SHARE, TOGETHER, blocks_of};
use super::{FEW, MANY};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512, avx512_tiles};
use crate::array::narrow::{widen_bf16, widen_f16};
use crate::dtype::{BF16, F16, Float};
use crate::machine::lanes::launch;
use crate::machine::simd::prefetch;
use crate::machine::threads::SharedMut;
use crate::ops::contraction::{Dot, Dots, Matrix};
use crate::vectorize;
use std::marker::PhantomData;
use std::ops::Range;

/// Rows of the weight that some rows meet before the next ones do: they stay in the second-level cache.
const COLUMNS: usize = 32;

/// A kind of weight, its rows in bytes.
pub trait Stored {
    /// Numbers of a block.
    const SIZE: usize;
    /// Bytes of a block.
    const BYTES: usize;
    /// Whether rows that it is multiplied by may become integers of 8 bits.
    const ROUNDS: bool;
    /// Rows made ready to be multiplied by it.
    type Rows<'a>: Sync;

    /// Rows up to which it is multiplied as it is stored.
    fn most() -> usize;
    /// Writes the product of dense rows, of so many of length `k` with `n`, where these are more than [`Stored::times`] is for, and
    /// where that is faster by tiles. Whether it did.
    fn tiles(
        _rows: &[f32],
        _from: &[u8],
        _bias: Option<&[f32]>,
        _size: (usize, usize, usize),
        _to: SharedMut<f32>,
    ) -> bool {
        false
    }
    /// The numbers of whole blocks.
    fn widen(from: &[u8], to: &mut [f32]);
    /// Makes dense rows of `k` numbers ready.
    fn rows(from: &[f32], size: (usize, usize)) -> Self::Rows<'_>;
    /// Writes some columns of the product of so many rows of length `k` with `n`, those of the weight.
    fn times(
        rows: &Self::Rows<'_>,
        from: &[u8],
        columns: Range<usize>,
        bias: Option<&[f32]>,
        size: (usize, usize, usize),
        to: SharedMut<f32>,
    );
}

/// Rows made ready for a form.
pub enum Rows {
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Rows<1>),
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Rows),
    Parts(dots::Rows),
}

impl<F: Form> Stored for F {
    const SIZE: usize = <F as Form>::SIZE;
    const BYTES: usize = <F as Form>::BYTES;
    const ROUNDS: bool = true;
    type Rows<'a> = Rows;

    fn widen(from: &[u8], to: &mut [f32]) {
        widen(PhantomData::<F>, from, to);
    }
    #[cfg(not(target_arch = "x86_64"))]
    fn most() -> usize {
        FEW
    }
    #[cfg(target_arch = "x86_64")]
    fn most() -> usize {
        match (avx512::applies(), avx2::applies()) {
            (true, _) => usize::MAX,
            (false, true) => F::MOST,
            (false, false) => FEW,
        }
    }
    #[cfg(target_arch = "x86_64")]
    fn tiles(rows: &[f32], from: &[u8], bias: Option<&[f32]>, size: (usize, usize, usize), to: SharedMut<f32>) -> bool {
        let chosen = size.0 > TOGETHER && avx512::applies();
        if chosen {
            // SAFETY: just asked.
            unsafe { avx512_tiles::product::<F>(rows, from, bias, size, to) };
        }
        chosen
    }
    fn rows(from: &[f32], size: (usize, usize)) -> Rows {
        #[cfg(target_arch = "x86_64")]
        if avx512::applies() {
            // SAFETY: just asked.
            return Rows::Avx512(unsafe { avx512::Rows::new(&avx512::For::of::<F>(), from, size) });
        }
        #[cfg(target_arch = "x86_64")]
        if avx2::applies() {
            // SAFETY: just asked.
            return Rows::Avx2(unsafe { avx2::Rows::new::<F>(from, size) });
        }
        Rows::Parts(dots::Rows::new::<F>(from, size))
    }
    fn times(
        rows: &Rows,
        from: &[u8],
        columns: Range<usize>,
        bias: Option<&[f32]>,
        (count, _, n): (usize, usize, usize),
        to: SharedMut<f32>,
    ) {
        let bytes = from.len() / n.max(1);
        for start in columns.clone().step_by(COLUMNS) {
            for first in (0..count).step_by(TOGETHER) {
                let some = first..count.min(first + TOGETHER);
                for column in start..columns.end.min(start + COLUMNS) {
                    let (row, mut sums) = (&from[column * bytes..(column + 1) * bytes], [0.0; TOGETHER]);
                    match rows {
                        #[cfg(target_arch = "x86_64")]
                        Rows::Avx512(rows) => rows.dots::<F>(row, &mut sums),
                        #[cfg(target_arch = "x86_64")]
                        Rows::Avx2(rows) => rows.dots::<F>(row, some.clone(), &mut sums),
                        Rows::Parts(rows) => rows.dots::<F>(row, some.clone(), &mut sums),
                    }
                    for (row, sum) in some.clone().zip(sums) {
                        // SAFETY: `to` has `n` columns and these rows; the column is one of this task alone.
                        unsafe { *to.ptr().add(row * n + column) = sum + bias.map_or(0.0, |bias| bias[column]) };
                    }
                }
            }
        }
    }
}

vectorize!(widen[F: Form](form: PhantomData<F>, from: &[u8], to: &mut [f32]) => widen_body);

#[inline(always)]
fn widen_body<F: Form>(_: PhantomData<F>, from: &[u8], to: &mut [f32]) {
    for (at, to) in to.chunks_mut(PART).enumerate() {
        let mut room = [0; MOST];
        let (blocks, part) = blocks_of::<F>(from, at, &mut room);
        let mut whole = [0; PART];
        F::whole(blocks, part, &mut whole);
        let (factors, least) = F::factors(blocks, part);
        let mut found = [0.0; PART];
        for i in 0..PART {
            found[i] = (whole[i] as i32 - F::OFFSET) as f32 * factors[i / SHARE] + least[i / SHARE];
        }
        to.copy_from_slice(&found[..to.len()]);
    }
}

/// Bytes as the narrow floats that they are. Panics where they begin between two: see [`super::dense`].
fn narrow<T: Float>(bytes: &[u8]) -> &[T] {
    // SAFETY: a narrow float may have any bits.
    let (before, found, _) = unsafe { bytes.align_to() };
    assert!(before.is_empty() && size_of::<T>() == 2, "floats of 16 bits");
    found
}

/// Dot products with rows of narrow floats, which are widened as they are read.
fn products<T: Float<Wide = f32>>(
    rows: &[f32],
    from: &[T],
    columns: Range<usize>,
    bias: Option<&[f32]>,
    (count, k, n): (usize, usize, usize),
    to: SharedMut<f32>,
) {
    assert!(rows.len() == count * k && from.len() == n * k && columns.end <= n, "sizes that fit");
    if count == 1 {
        // One row of the weight after the other: with eight at a time a core read them at 22 GB/s instead of 33 (Zen 5).
        for column in columns.clone() {
            let right = from[column * k..].as_ptr();
            for line in (0..k * size_of::<T>()).step_by(64) {
                prefetch(right.wrapping_byte_add(AHEAD + line));
            }
            launch(Dot::<T> { k, left: rows.as_ptr(), right, to: to.ptr().wrapping_add(column) });
        }
    } else {
        launch(Dots::<T> {
            k,
            rows: count,
            cols: columns.len(),
            left: rows.as_ptr(),
            left_row: k as isize,
            right: Matrix::new(from.as_ptr().cast_mut(), (1, k as isize)).at(0, columns.start),
            to: to.ptr().wrapping_add(columns.start),
            pitch: n as isize,
        });
    }
    for row in (0..count).filter(|_| bias.is_some()) {
        // SAFETY: `to` has `n` columns and these rows; the columns are those of this task alone.
        let sums = unsafe { to.slice(row * n + columns.start..row * n + columns.end) };
        for (sum, bias) in sums.iter_mut().zip(&bias.unwrap_or(&[])[columns.clone()]) {
            *sum += bias;
        }
    }
}

macro_rules! narrow {
    ($($elem:ident: $widen:path),*) => {$(
        impl Stored for $elem {
            const SIZE: usize = 1;
            const BYTES: usize = 2;
            const ROUNDS: bool = false;

            fn most() -> usize {
                MANY
            }
            type Rows<'a> = &'a [f32];

            fn widen(from: &[u8], to: &mut [f32]) {
                $widen(narrow(from), to);
            }
            fn rows(from: &[f32], _: (usize, usize)) -> &[f32] {
                from
            }
            fn times(
                rows: &Self::Rows<'_>,
                from: &[u8],
                columns: Range<usize>,
                bias: Option<&[f32]>,
                size: (usize, usize, usize),
                to: SharedMut<f32>,
            ) {
                products::<Self>(rows, narrow(from), columns, bias, size, to);
            }
        }
    )*};
}

narrow! { BF16: widen_bf16, F16: widen_f16 }
