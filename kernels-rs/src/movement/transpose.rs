//! Transposing copies of matrices.

use super::strided::{Axis, copy_line};

/// Edge of the blocks in which a matrix is walked, so that few pages and cache lines are in use at a time.
const BLOCK: usize = 64;
/// Edge of the square that is held in registers at once.
const TILE: usize = 8;

/// An element type with a way to transpose a square of 8 x 8.
pub trait Tile: Copy {
    /// Transposes one square. Rows are 8 dense elements, `step` elements apart.
    ///
    /// # Safety
    /// Both squares lie in bounds and do not overlap.
    unsafe fn tile(to: *mut Self, to_step: isize, from: *const Self, from_step: isize);
}

/// Copies a matrix whose source is nearly dense along `across` and whose destination is dense along `line`.
///
/// # Safety
/// Both matrices lie in bounds and do not overlap.
pub unsafe fn transpose<T: Tile>(to: *mut T, from: *const T, across: Axis, line: Axis) {
    for row in (0..across.len).step_by(BLOCK) {
        for column in (0..line.len).step_by(BLOCK) {
            let across = Axis { len: BLOCK.min(across.len - row), ..across };
            let line = Axis { len: BLOCK.min(line.len - column), ..line };
            let (row, column) = (row as isize, column as isize);
            // SAFETY: a block of the matrix.
            unsafe {
                let to = to.offset(row * across.to + column);
                let from = from.offset(row * across.from + column * line.from);
                transpose_block(to, from, across, line);
            }
        }
    }
}

unsafe fn transpose_block<T: Tile>(to: *mut T, from: *const T, across: Axis, line: Axis) {
    let whole = if across.from == 1 { (across.len / TILE * TILE, line.len / TILE * TILE) } else { (0, 0) };
    // SAFETY: whole tiles, then what is left on the right and below, as the caller promises.
    unsafe {
        for column in (0..whole.1 as isize).step_by(TILE) {
            for row in (0..whole.0 as isize).step_by(TILE) {
                let to = to.offset(row * across.to + column);
                T::tile(to, across.to, from.offset(row + column * line.from), line.from);
            }
        }
        for row in 0..across.len {
            let done = if row < whole.0 { whole.1 } else { 0 };
            let (to_at, from_at) = (row as isize * across.to, row as isize * across.from);
            let rest = Axis { len: line.len - done, to: 1, from: line.from };
            copy_line(to.offset(to_at + done as isize), from.offset(from_at + done as isize * line.from), rest);
        }
    }
}

#[inline(always)]
unsafe fn any_tile<T: Copy>(to: *mut T, to_step: isize, from: *const T, from_step: isize) {
    // SAFETY: the caller says that the squares are whole.
    unsafe {
        let tile: [[T; TILE]; TILE] =
            std::array::from_fn(|row| from.offset(row as isize * from_step).cast::<[T; TILE]>().read_unaligned());
        for i in 0..TILE {
            let column = tile.map(|row| row[i]);
            to.offset(i as isize * to_step).cast::<[T; TILE]>().write_unaligned(column);
        }
    }
}

macro_rules! plain_tiles {
    ($($ty:ty),*) => {$(
        impl Tile for $ty {
            #[inline(always)]
            unsafe fn tile(to: *mut Self, to_step: isize, from: *const Self, from_step: isize) {
                // SAFETY: as the caller promises.
                unsafe { any_tile(to, to_step, from, from_step) }
            }
        }
    )*};
}
plain_tiles!(u8, u16, u64);

impl Tile for u32 {
    #[inline(always)]
    unsafe fn tile(to: *mut Self, to_step: isize, from: *const Self, from_step: isize) {
        // SAFETY: as the caller promises; the level says that the CPU has AVX2.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            if crate::simd::level() >= crate::simd::Level::Avx2 {
                return x86::tile(to.cast(), to_step, from.cast(), from_step);
            }
            any_tile(to, to_step, from, from_step);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// Rows are paired, then pairs of pairs, then the 128-bit halves are exchanged.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub unsafe fn tile(to: *mut f32, to_step: isize, from: *const f32, from_step: isize) {
        // SAFETY: the caller says that eight rows of eight exist on both sides.
        let r: [__m256; 8] = std::array::from_fn(|i| unsafe { _mm256_loadu_ps(from.offset(i as isize * from_step)) });
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
                _mm256_storeu_ps(to.offset(i as isize * to_step), low);
                _mm256_storeu_ps(to.offset((i as isize + 4) * to_step), high);
            }
        }
    }
}
