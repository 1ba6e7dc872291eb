//! Transposing copies of matrices.

use super::strided::{Axis, copy_line};

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

/// Copies a block of a matrix whose source is nearly dense along `across` and whose destination is dense along `line`.
///
/// # Safety
/// Both matrices lie in bounds and do not overlap.
pub unsafe fn transpose<T: Tile>(to: *mut T, from: *const T, across: Axis, line: Axis, stream: bool) {
    // SAFETY: whole squares, then what is left on the right and below, as the caller promises.
    unsafe {
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
}

/// Weaves 2, 3 or 4 runs into one. False for another number.
#[inline]
unsafe fn weave<T: Copy>(to: *mut T, from: *const T, count: usize, line: Axis) -> bool {
    #[inline(always)]
    unsafe fn runs<T: Copy, const N: usize>(to: *mut T, from: *const T, count: usize, step: isize) {
        // SAFETY: as the caller promises.
        unsafe {
            let from: [*const T; N] = std::array::from_fn(|i| from.offset(i as isize * step));
            for k in 0..count {
                to.cast::<[T; N]>().add(k).write_unaligned(std::array::from_fn(|i| *from[i].add(k)));
            }
        }
    }
    // SAFETY: as the caller of `transpose` promises.
    unsafe {
        match line.len {
            2 => runs::<T, 2>(to, from, count, line.from),
            3 => runs::<T, 3>(to, from, count, line.from),
            4 => runs::<T, 4>(to, from, count, line.from),
            _ => return false,
        }
    }
    true
}

/// Walks over squares of `EDGE`, along the lines of the result first.
#[inline(always)]
fn each_square<const EDGE: usize>(rows: usize, columns: usize, mut work: impl FnMut(isize, isize)) -> (usize, usize) {
    let whole = (rows / EDGE * EDGE, columns / EDGE * EDGE);
    for row in (0..whole.0 as isize).step_by(EDGE) {
        for column in (0..whole.1 as isize).step_by(EDGE) {
            work(row, column);
        }
    }
    whole
}

/// Squares of 8 x 8, in whatever registers the compiler chooses.
#[inline(always)]
unsafe fn any<T: Copy>(to: To<T>, from: From<T>, rows: usize, columns: usize) -> (usize, usize) {
    each_square::<8>(rows, columns, |row, column| {
        // SAFETY: the caller says that the squares are whole.
        unsafe {
            let (to_at, from_at) = (to.0.offset(row * to.1 + column), from.0.offset(row + column * from.1));
            let tile: [[T; 8]; 8] =
                std::array::from_fn(|i| from_at.offset(i as isize * from.1).cast::<[T; 8]>().read_unaligned());
            for i in 0..8 {
                to_at.offset(i as isize * to.1).cast::<[T; 8]>().write_unaligned(tile.map(|row| row[i]));
            }
        }
    })
}

macro_rules! plain_tiles {
    ($($ty:ty),*) => {$(
        impl Tile for $ty {
            #[inline]
            unsafe fn squares(to: To<Self>, from: From<Self>, rows: usize, columns: usize, _: bool) -> (usize, usize) {
                // SAFETY: as the caller promises.
                unsafe { any(to, from, rows, columns) }
            }
        }
    )*};
}
plain_tiles!(u8, u16);

#[cfg(not(target_arch = "x86_64"))]
plain_tiles!(u32, u64);

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{From, Tile, To, any, each_square};
    use crate::simd::{Level, level};
    use std::arch::x86_64::*;

    /// True when every row of squares starts at a cache line.
    fn aligned<T>(to: To<T>) -> bool {
        (to.0 as usize | (to.1.unsigned_abs() * size_of::<T>())).is_multiple_of(64)
    }

    impl Tile for u32 {
        #[inline]
        unsafe fn squares(to: To<u32>, from: From<u32>, rows: usize, columns: usize, stream: bool) -> (usize, usize) {
            let (to32, from32) = ((to.0.cast(), to.1), (from.0.cast(), from.1));
            // SAFETY: as the caller promises; the level says what the CPU has.
            unsafe {
                match level() {
                    Level::Avx512 if rows.min(columns) < 16 => narrow32(to32, from32, rows, columns),
                    Level::Avx512 if stream && aligned(to) => wide32::<true>(to32, from32, rows, columns),
                    Level::Avx512 => wide32::<false>(to32, from32, rows, columns),
                    Level::Avx2 => narrow32(to32, from32, rows, columns),
                    Level::Baseline => any(to, from, rows, columns),
                }
            }
        }
    }

    impl Tile for u64 {
        #[inline]
        unsafe fn squares(to: To<u64>, from: From<u64>, rows: usize, columns: usize, stream: bool) -> (usize, usize) {
            let (to64, from64) = ((to.0.cast(), to.1), (from.0.cast(), from.1));
            // SAFETY: as the caller promises; the level says what the CPU has.
            unsafe {
                match level() {
                    Level::Avx512 if stream && aligned(to) => wide64::<true>(to64, from64, rows, columns),
                    Level::Avx512 => wide64::<false>(to64, from64, rows, columns),
                    _ => any(to, from, rows, columns),
                }
            }
        }
    }

    /// Squares of 16 x 16: each row is a cache line, read once and written once.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn wide32<const STREAM: bool>(to: To<f32>, from: From<f32>, rows: usize, columns: usize) -> (usize, usize) {
        let whole = each_square::<16>(rows, columns, |row, column| {
            // SAFETY: the caller says that the squares are whole.
            unsafe {
                let to_at = to.0.offset(row * to.1 + column);
                square32::<STREAM>((to_at, to.1), (from.0.offset(row + column * from.1), from.1));
            }
        });
        if STREAM {
            _mm_sfence();
        }
        whole
    }

    /// Pairs of rows, pairs of pairs, then the 128-bit quarters are exchanged twice.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn square32<const STREAM: bool>(to: To<f32>, from: From<f32>) {
        // SAFETY: sixteen rows of sixteen exist on both sides.
        let r: [__m512; 16] = std::array::from_fn(|i| unsafe { _mm512_loadu_ps(from.0.offset(i as isize * from.1)) });
        let mut pairs = [_mm512_setzero_pd(); 16];
        for i in 0..8 {
            pairs[2 * i] = _mm512_castps_pd(_mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]));
            pairs[2 * i + 1] = _mm512_castps_pd(_mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]));
        }
        let mut quads = [_mm512_setzero_ps(); 16];
        for i in 0..4 {
            let p = &pairs[4 * i..4 * i + 4];
            quads[4 * i] = _mm512_castpd_ps(_mm512_unpacklo_pd(p[0], p[2]));
            quads[4 * i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(p[0], p[2]));
            quads[4 * i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(p[1], p[3]));
            quads[4 * i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(p[1], p[3]));
        }
        for k in 0..4 {
            let low = _mm512_shuffle_f32x4::<0x88>(quads[k], quads[k + 4]);
            let high = _mm512_shuffle_f32x4::<0xdd>(quads[k], quads[k + 4]);
            let low2 = _mm512_shuffle_f32x4::<0x88>(quads[k + 8], quads[k + 12]);
            let high2 = _mm512_shuffle_f32x4::<0xdd>(quads[k + 8], quads[k + 12]);
            let out = [
                _mm512_shuffle_f32x4::<0x88>(low, low2),
                _mm512_shuffle_f32x4::<0x88>(high, high2),
                _mm512_shuffle_f32x4::<0xdd>(low, low2),
                _mm512_shuffle_f32x4::<0xdd>(high, high2),
            ];
            for (quarter, row) in out.into_iter().enumerate() {
                // SAFETY: as above; streamed rows are aligned.
                unsafe {
                    let to = to.0.offset((4 * quarter + k) as isize * to.1);
                    if STREAM { _mm512_stream_ps(to, row) } else { _mm512_storeu_ps(to, row) }
                }
            }
        }
    }

    /// Squares of 8 x 8: each row is a cache line.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn wide64<const STREAM: bool>(to: To<f64>, from: From<f64>, rows: usize, columns: usize) -> (usize, usize) {
        let whole = each_square::<8>(rows, columns, |row, column| {
            // SAFETY: the caller says that the squares are whole.
            unsafe {
                let to_at = to.0.offset(row * to.1 + column);
                square64::<STREAM>((to_at, to.1), (from.0.offset(row + column * from.1), from.1));
            }
        });
        if STREAM {
            _mm_sfence();
        }
        whole
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn square64<const STREAM: bool>(to: To<f64>, from: From<f64>) {
        // SAFETY: eight rows of eight exist on both sides.
        let r: [__m512d; 8] = std::array::from_fn(|i| unsafe { _mm512_loadu_pd(from.0.offset(i as isize * from.1)) });
        for k in 0..2 {
            let pair = |i: usize| {
                if k == 0 { _mm512_unpacklo_pd(r[i], r[i + 1]) } else { _mm512_unpackhi_pd(r[i], r[i + 1]) }
            };
            let (a, b, c, d) = (pair(0), pair(2), pair(4), pair(6));
            let (low, high) = (_mm512_shuffle_f64x2::<0x88>(a, b), _mm512_shuffle_f64x2::<0xdd>(a, b));
            let (low2, high2) = (_mm512_shuffle_f64x2::<0x88>(c, d), _mm512_shuffle_f64x2::<0xdd>(c, d));
            let out = [
                _mm512_shuffle_f64x2::<0x88>(low, low2),
                _mm512_shuffle_f64x2::<0x88>(high, high2),
                _mm512_shuffle_f64x2::<0xdd>(low, low2),
                _mm512_shuffle_f64x2::<0xdd>(high, high2),
            ];
            for (quarter, row) in out.into_iter().enumerate() {
                // SAFETY: as above; streamed rows are aligned.
                unsafe {
                    let to = to.0.offset((2 * quarter + k) as isize * to.1);
                    if STREAM { _mm512_stream_pd(to, row) } else { _mm512_storeu_pd(to, row) }
                }
            }
        }
    }

    /// Squares of 8 x 8.
    #[target_feature(enable = "avx2")]
    unsafe fn narrow32(to: To<f32>, from: From<f32>, rows: usize, columns: usize) -> (usize, usize) {
        each_square::<8>(rows, columns, |row, column| {
            // SAFETY: the caller says that the squares are whole.
            unsafe {
                let to_at = to.0.offset(row * to.1 + column);
                tile((to_at, to.1), (from.0.offset(row + column * from.1), from.1));
            }
        })
    }

    /// Rows are paired, then pairs of pairs, then the 128-bit halves are exchanged.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn tile(to: To<f32>, from: From<f32>) {
        // SAFETY: eight rows of eight exist on both sides.
        let r: [__m256; 8] = std::array::from_fn(|i| unsafe { _mm256_loadu_ps(from.0.offset(i as isize * from.1)) });
        let mut pairs = [_mm256_setzero_ps(); 8];
        for i in 0..4 {
            pairs[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
            pairs[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
        }
        let mut quads = [_mm256_setzero_ps(); 8];
        for i in 0..2 {
            let p = &pairs[4 * i..4 * i + 4];
            quads[4 * i] = _mm256_shuffle_ps::<0x44>(p[0], p[2]);
            quads[4 * i + 1] = _mm256_shuffle_ps::<0xee>(p[0], p[2]);
            quads[4 * i + 2] = _mm256_shuffle_ps::<0x44>(p[1], p[3]);
            quads[4 * i + 3] = _mm256_shuffle_ps::<0xee>(p[1], p[3]);
        }
        for i in 0..4 {
            let low = _mm256_permute2f128_ps::<0x20>(quads[i], quads[i + 4]);
            let high = _mm256_permute2f128_ps::<0x31>(quads[i], quads[i + 4]);
            // SAFETY: as above.
            unsafe {
                _mm256_storeu_ps(to.0.offset(i as isize * to.1), low);
                _mm256_storeu_ps(to.0.offset((i as isize + 4) * to.1), high);
            }
        }
    }
}
