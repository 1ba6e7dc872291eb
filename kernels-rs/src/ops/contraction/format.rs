//! The cells that operands are packed into, and how cells are multiplied.

use super::lies::Lies;
use super::tile::Multiply;
#[cfg(target_arch = "x86_64")]
use crate::dtype::DType;
use crate::dtype::Float;
use crate::machine::lanes::{Block, Lanes, Real};
use std::marker::PhantomData;

/// How elements become cells. A cell holds [`Format::DEPTH`] elements that follow each other along `k`.
pub trait Format: 'static {
    /// Of the operands.
    type Elem: Float<Wide = <Self::Product as Multiply>::Real>;
    /// How cells are multiplied.
    type Product: Multiply<Left = Self::Cell, Right = Self::Cell>;
    /// A cell.
    type Cell: Copy;
    /// Elements per cell.
    const DEPTH: usize;
    /// True when an element is a cell, so that operands can be read where they are.
    const DIRECT: bool;

    /// The cell that starts at `from`, of which `left >= 1` elements exist.
    ///
    /// # Safety
    /// These elements are valid.
    unsafe fn gather(from: *const Self::Elem, deep: isize, left: usize) -> Self::Cell;
    /// Neighbouring cells: reads `count <= N` elements per depth, writes `N` cells, zero after `count`.
    ///
    /// # Safety
    /// As above, and the machine has the instructions of `V`.
    unsafe fn line<V: Lanes<Elem = Wide<Self>>>(
        from: *const Self::Elem,
        deep: isize,
        left: usize,
        count: usize,
        to: *mut Self::Cell,
    );
    /// Cells of `rows <= N` runs along `k`, `along` elements apart: at most `N` cells of each (`left` elements), written
    /// as lines of `keep <= N` cells, zero after `rows`.
    ///
    /// # Safety
    /// As above.
    unsafe fn turn<V: Lanes<Elem = Wide<Self>>>(
        from: *const Self::Elem,
        along: isize,
        rows_left: (usize, usize),
        to: *mut Self::Cell,
        pitch_keep: (usize, usize),
    );
}

/// What a format's sums are in.
pub type Wide<F> = <<F as Format>::Product as Multiply>::Real;

/// Reads `N` elements.
///
/// # Safety
/// They are valid, and the machine has the instructions of `V`.
#[inline(always)]
pub unsafe fn load<T: Float, V: Lanes<Elem = T::Wide>>(from: *const T) -> V
where
    T::Wide: Real,
{
    // A wide type is its own `Wide`.
    if size_of::<T>() == size_of::<T::Wide>() {
        return V::load(from.cast());
    }
    #[cfg(target_arch = "x86_64")]
    if T::DTYPE == DType::F16 && V::N >= 8 {
        use std::arch::x86_64::{_mm_loadu_si128, _mm256_cvtph_ps, _mm256_loadu_si256, _mm512_cvtph_ps};
        use std::mem::transmute_copy;
        // The registers of eight and sixteen `f32` are transparent.
        if V::N == 16 {
            return transmute_copy(&_mm512_cvtph_ps(_mm256_loadu_si256(from.cast())));
        }
        return transmute_copy(&_mm256_cvtph_ps(_mm_loadu_si128(from.cast())));
    }
    let mut lanes = [T::Wide::default(); 16];
    for (i, lane) in lanes[..V::N].iter_mut().enumerate() {
        *lane = (*from.add(i)).widen();
    }
    V::load(lanes.as_ptr())
}

/// Reads `count <= N` elements; the other lanes are 0.
///
/// # Safety
/// They are valid, and the machine has the instructions of `V`.
#[inline(always)]
pub unsafe fn load_partial<T: Float, V: Lanes<Elem = T::Wide>>(from: *const T, count: usize) -> V
where
    T::Wide: Real,
{
    // A wide type is its own `Wide`.
    if size_of::<T>() == size_of::<T::Wide>() {
        return V::load_partial(from.cast(), count);
    }
    let mut lanes = [T::Wide::default(); 16];
    for (i, lane) in lanes[..count].iter_mut().enumerate() {
        *lane = (*from.add(i)).widen();
    }
    V::load(lanes.as_ptr())
}

/// Both sides in the type of the sums.
pub struct Same<R>(PhantomData<R>);

impl<R: Real> Multiply for Same<R> {
    type Real = R;
    type Left = R;
    type Right = R;
    #[inline(always)]
    unsafe fn splat<V: Lanes<Elem = R>>(cell: *const R) -> V {
        V::splat(*cell)
    }
    #[inline(always)]
    unsafe fn load<V: Lanes<Elem = R>>(cells: *const R, _: isize) -> V {
        V::load(cells)
    }
    #[inline(always)]
    unsafe fn accumulate<V: Lanes<Elem = R>>(left: V, right: V, sum: V) -> V {
        left.mul_add(right, sum)
    }
}

/// The right side is widened as it is read.
pub struct Streamed<T>(PhantomData<T>);

impl<T: Float<Wide: Real>> Multiply for Streamed<T> {
    const BASELINE: bool = false;
    const LYING: bool = true;
    // A single register across is a whole panel where there are so many columns and no more: packing does it.
    const TILES: (Lies, [usize; 2]) = (Lies::Packed, [2, 4]);
    type Real = T::Wide;
    type Left = T::Wide;
    type Right = T;
    #[inline(always)]
    unsafe fn splat<V: Lanes<Elem = T::Wide>>(cell: *const T::Wide) -> V {
        V::splat(*cell)
    }
    #[inline(always)]
    unsafe fn load<V: Lanes<Elem = T::Wide>>(cells: *const T, _: isize) -> V {
        load::<T, V>(cells)
    }
    #[inline(always)]
    unsafe fn accumulate<V: Lanes<Elem = T::Wide>>(left: V, right: V, sum: V) -> V {
        left.mul_add(right, sum)
    }
}

/// Cells are single elements, widened.
pub struct Single<T>(PhantomData<T>);

impl<T: Float<Wide: Real>> Format for Single<T> {
    type Elem = T;
    type Product = Same<T::Wide>;
    type Cell = T::Wide;
    const DEPTH: usize = 1;
    const DIRECT: bool = size_of::<T>() == size_of::<T::Wide>();

    #[inline(always)]
    unsafe fn gather(from: *const T, _: isize, _: usize) -> T::Wide {
        (*from).widen()
    }
    #[inline(always)]
    unsafe fn line<V: Lanes<Elem = T::Wide>>(from: *const T, _: isize, _: usize, count: usize, to: *mut T::Wide) {
        let value: V = if count == V::N { load::<T, V>(from) } else { load_partial::<T, V>(from, count) };
        value.store(to);
    }
    #[inline(always)]
    unsafe fn turn<V: Lanes<Elem = T::Wide>>(
        from: *const T,
        along: isize,
        (rows, left): (usize, usize),
        to: *mut T::Wide,
        (pitch, keep): (usize, usize),
    ) {
        let cols = left.min(V::N);
        // The block on the stack holds 16 registers.
        if Self::DIRECT && along >= 0 {
            let block = Block { at: from.cast::<T::Wide>(), pitch: along as usize, rows, cols };
            return V::transpose(block, to, pitch, keep);
        }
        let mut block = [T::Wide::default(); 256];
        for row in 0..rows {
            let run = from.wrapping_offset(row as isize * along);
            let value: V = if cols == V::N { load::<T, V>(run) } else { load_partial::<T, V>(run, cols) };
            value.store(block.as_mut_ptr().add(row * V::N));
        }
        V::transpose(Block { at: block.as_ptr(), pitch: V::N, rows, cols }, to, pitch, keep);
    }
}
