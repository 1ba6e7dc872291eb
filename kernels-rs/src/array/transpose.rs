//! Copies of lines and transposing copies of matrices.

use super::axes;

/// One axis of a copy; steps in elements, of either sign, 0 allowed on the source side.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Axis {
    /// Length.
    pub len: usize,
    /// Step of the destination.
    pub to: isize,
    /// Step of the source.
    pub from: isize,
}

impl axes::Axis for Axis {
    #[inline(always)]
    fn len(&self) -> usize {
        self.len
    }
    #[inline(always)]
    fn with_len(self, len: usize) -> Self {
        Self { len, ..self }
    }
    #[inline(always)]
    fn spans(&self, inner: &Self) -> bool {
        let len = inner.len as isize;
        self.to == inner.to * len && self.from == inner.from * len
    }
}

impl axes::Path for Axis {
    /// Of the destination and of the source.
    type At = (isize, isize);
    #[inline(always)]
    fn moved(&self, (to, from): (isize, isize), by: isize) -> (isize, isize) {
        (to + by * self.to, from + by * self.from)
    }
}

/// An element type with a way to transpose squares.
pub trait Tile: Copy {
    /// Transposes as many whole squares as fit in `rows` (of the result) by `columns` and returns how many rows and
    /// columns those are. The source is a run along the rows of the result. With `stream` the result is written past
    /// the caches where its alignment allows it.
    ///
    /// # Safety
    /// Both matrices lie in bounds and do not overlap.
    unsafe fn squares(to: To<Self>, from: From<Self>, rows: usize, columns: usize, stream: bool) -> (usize, usize);
}

/// A matrix that is written: its first element and the step between rows.
pub type To<T> = (*mut T, isize);
/// A matrix that is read: its first element and the step between columns of the result.
pub type From<T> = (*const T, isize);

/// Copies along one axis.
///
/// # Safety
/// That of [`super::strided::copy_serial`].
#[inline(always)]
pub unsafe fn copy_line<T: Copy>(to: *mut T, from: *const T, line: Axis) {
    match (line.to, line.from) {
        (1, 0) => std::slice::from_raw_parts_mut(to, line.len).fill(*from),
        (1, step) => (0..line.len as isize).for_each(|i| to.offset(i).write(*from.offset(i * step))),
        (step, 1) => (0..line.len as isize).for_each(|i| to.offset(i * step).write(*from.offset(i))),
        (a, b) => (0..line.len as isize).for_each(|i| to.offset(i * a).write(*from.offset(i * b))),
    }
}

/// Copies a block of a matrix whose source is nearly dense along `across` and whose destination is dense along `line`.
///
/// # Safety
/// Both matrices lie in bounds and do not overlap.
pub unsafe fn transpose<T: Tile>(to: *mut T, from: *const T, across: Axis, line: Axis, stream: bool) {
    // SAFETY: whole squares, then what is left on the right and below, as the caller promises.
    if across.from == 1 && across.to == line.len as isize && weave(to, from, across.len, line) {
        return;
    }
    let whole = if across.from == 1 {
        T::squares((to, across.to), (from, line.from), across.len, line.len, stream)
    } else {
        (0, 0)
    };
    let right = Axis { len: line.len - whole.1, to: 1, from: line.from };
    for row in 0..whole.0 as isize * isize::from(right.len > 0) {
        let (to, from) = (to.offset(row * across.to), from.offset(row * across.from));
        copy_line(to.add(whole.1), from.offset(whole.1 as isize * line.from), right);
    }
    for row in whole.0 as isize..across.len as isize {
        copy_line(to.offset(row * across.to), from.offset(row * across.from), line);
    }
}

/// Weaves 2, 3 or 4 runs into one. False for another number.
#[inline]
unsafe fn weave<T: Copy>(to: *mut T, from: *const T, count: usize, line: Axis) -> bool {
    #[inline(always)]
    unsafe fn runs<T: Copy, const N: usize>(to: *mut T, from: *const T, count: usize, step: isize) {
        let from: [*const T; N] = std::array::from_fn(|i| from.offset(i as isize * step));
        for k in 0..count {
            to.cast::<[T; N]>().add(k).write_unaligned(std::array::from_fn(|i| *from[i].add(k)));
        }
    }
    match line.len {
        2 => runs::<T, 2>(to, from, count, line.from),
        3 => runs::<T, 3>(to, from, count, line.from),
        4 => runs::<T, 4>(to, from, count, line.from),
        _ => return false,
    }
    true
}

/// Walks over squares of `EDGE`, along the lines of the result first. A macro, since closures do not inherit the
/// instruction set.
macro_rules! each_square {
    ($edge:literal, $to:expr, $from:expr, $rows:expr, $columns:expr, $tile:path) => {{
        let whole = ($rows / $edge * $edge, $columns / $edge * $edge);
        for row in (0..whole.0 as isize).step_by($edge) {
            for column in (0..whole.1 as isize).step_by($edge) {
                let to = ($to.0.offset(row * $to.1 + column), $to.1);
                $tile(to, ($from.0.offset(row + column * $from.1), $from.1));
            }
        }
        whole
    }};
}

/// Squares of 8 x 8, in whatever registers the compiler chooses.
#[inline(always)]
unsafe fn any<T: Copy>(to: To<T>, from: From<T>, rows: usize, columns: usize) -> (usize, usize) {
    each_square!(8, to, from, rows, columns, any_square)
}

#[inline(always)]
unsafe fn any_square<T: Copy>(to: To<T>, from: From<T>) {
    // SAFETY: eight rows of eight exist on both sides.
    for row in 0..8 {
        for column in 0..8 {
            to.0.offset(row * to.1 + column).write(*from.0.offset(row + column * from.1));
        }
    }
}

macro_rules! plain_tiles {
    ($($ty:ty),*) => {$(
        impl Tile for $ty {
            #[inline]
            unsafe fn squares(to: To<Self>, from: From<Self>, rows: usize, columns: usize, _: bool) -> (usize, usize) {
                any(to, from, rows, columns)
            }
        }
    )*};
}
plain_tiles!(u8, u16);

#[cfg(not(target_arch = "x86_64"))]
plain_tiles!(u32, u64);

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{From, Tile, To, any};
    use crate::machine::lanes::x86::squares::{transpose8, transpose8x64, transpose16};
    use crate::machine::simd::{Level, level};
    use std::arch::x86_64::*;

    /// True when every row of squares starts at a cache line.
    fn aligned<T>(to: To<T>) -> bool {
        (to.0 as usize | (to.1.unsigned_abs() * size_of::<T>())).is_multiple_of(64)
    }

    impl Tile for u32 {
        #[inline]
        unsafe fn squares(to: To<u32>, from: From<u32>, rows: usize, columns: usize, stream: bool) -> (usize, usize) {
            let (to32, from32) = ((to.0.cast(), to.1), (from.0.cast(), from.1));
            // The level says what the CPU has.
            match level() {
                Level::Avx512 if rows.min(columns) < 16 => narrow32(to32, from32, rows, columns),
                Level::Avx512 if stream && aligned(to) => wide32::<true>(to32, from32, rows, columns),
                Level::Avx512 => wide32::<false>(to32, from32, rows, columns),
                Level::Avx2 => narrow32(to32, from32, rows, columns),
                Level::Baseline => any(to, from, rows, columns),
            }
        }
    }

    impl Tile for u64 {
        #[inline]
        unsafe fn squares(to: To<u64>, from: From<u64>, rows: usize, columns: usize, stream: bool) -> (usize, usize) {
            let (to64, from64) = ((to.0.cast(), to.1), (from.0.cast(), from.1));
            // The level says what the CPU has.
            match level() {
                Level::Avx512 if stream && aligned(to) => wide64::<true>(to64, from64, rows, columns),
                Level::Avx512 => wide64::<false>(to64, from64, rows, columns),
                _ => any(to, from, rows, columns),
            }
        }
    }

    /// Squares of 16 x 16: each row is a cache line, read once and written once.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn wide32<const STREAM: bool>(to: To<f32>, from: From<f32>, rows: usize, columns: usize) -> (usize, usize) {
        let whole = each_square!(16, to, from, rows, columns, square32::<STREAM>);
        if STREAM {
            _mm_sfence();
        }
        whole
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn square32<const STREAM: bool>(to: To<f32>, from: From<f32>) {
        let mut r = [_mm512_setzero_ps(); 16];
        for (i, row) in r.iter_mut().enumerate() {
            // SAFETY: sixteen rows of sixteen exist on both sides.
            *row = _mm512_loadu_ps(from.0.offset(i as isize * from.1));
        }
        // SAFETY: streamed rows are aligned.
        transpose16(&mut r);
        for (i, row) in r.iter().enumerate() {
            let to = to.0.offset(i as isize * to.1);
            if STREAM { _mm512_stream_ps(to, *row) } else { _mm512_storeu_ps(to, *row) }
        }
    }

    /// Squares of 8 x 8: each row is a cache line.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn wide64<const STREAM: bool>(to: To<f64>, from: From<f64>, rows: usize, columns: usize) -> (usize, usize) {
        let whole = each_square!(8, to, from, rows, columns, square64::<STREAM>);
        if STREAM {
            _mm_sfence();
        }
        whole
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn square64<const STREAM: bool>(to: To<f64>, from: From<f64>) {
        let mut r = [_mm512_setzero_pd(); 8];
        // SAFETY: eight rows of eight exist on both sides; streamed rows are aligned.
        for (i, row) in r.iter_mut().enumerate() {
            *row = _mm512_loadu_pd(from.0.offset(i as isize * from.1));
        }
        transpose8x64(&mut r);
        for (i, row) in r.iter().enumerate() {
            let to = to.0.offset(i as isize * to.1);
            if STREAM { _mm512_stream_pd(to, *row) } else { _mm512_storeu_pd(to, *row) }
        }
    }

    /// Squares of 8 x 8.
    #[target_feature(enable = "avx2")]
    unsafe fn narrow32(to: To<f32>, from: From<f32>, rows: usize, columns: usize) -> (usize, usize) {
        each_square!(8, to, from, rows, columns, square8)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn square8(to: To<f32>, from: From<f32>) {
        let mut r = [_mm256_setzero_ps(); 8];
        // SAFETY: eight rows of eight exist on both sides.
        for (i, row) in r.iter_mut().enumerate() {
            *row = _mm256_loadu_ps(from.0.offset(i as isize * from.1));
        }
        transpose8(&mut r);
        for (i, row) in r.iter().enumerate() {
            _mm256_storeu_ps(to.0.offset(i as isize * to.1), *row);
        }
    }
}
