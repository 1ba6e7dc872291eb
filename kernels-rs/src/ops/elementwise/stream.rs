//! Writing past the caches: for results so large that they would push everything else out and be gone before the next op
//! reads them, a line is not read from memory only to be overwritten.

use super::Plan;
use super::run::Run;
use crate::machine::simd::{Level, level};
use crate::memory::scratch::Stack;

/// Bytes of a result from which on it is written past the caches: more than half of the 32 MiB of third-level cache that
/// both kinds of measured machine have.
const LARGE: usize = (16 << 20) + 1;
/// Bytes that the kernel writes to the first-level cache at a time.
const PIECE: usize = 4096;

/// Whether a flat result of so many bytes is streamed.
#[inline]
pub(crate) fn pays(bytes: usize) -> bool {
    bytes >= LARGE && cfg!(target_arch = "x86_64") && level() >= Level::Avx2
}

/// Runs a kernel over operands that advance by whole elements or not at all.
///
/// # Safety
/// As for [`super::run::Kernel`]; `run.dst` is 64-byte aligned, `sizes` are the bytes per element of the operands.
pub(super) unsafe fn run<const N: usize>(plan: &Plan, mut run: Run, sizes: [usize; N]) {
    let size = plan.dtype.itemsize();
    let (mut piece, mut left) = (Stack::<PIECE>::new(), run.len);
    let (buffer, mut to) = (piece.ptr(), run.dst);
    run.dst = buffer;
    while left > 0 {
        run.len = left.min(PIECE / size);
        // SAFETY: a part of the run; the buffer holds its result, which belongs at `to`.
        (plan.kernel)(&run);
        copy(buffer, to, run.len * size);
        for (k, size) in sizes.into_iter().enumerate() {
            run.src[k] = run.src[k].wrapping_add(if run.unit[k] { run.len * size } else { 0 });
        }
        to = to.wrapping_add(run.len * size);
        left -= run.len;
    }
    fence();
}

#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    #[target_feature(enable = "avx2")]
    unsafe fn lines(from: *const u8, to: *mut u8, bytes: usize) {
        use std::arch::x86_64::{_mm256_load_si256, _mm256_stream_si256};
        for at in (0..bytes).step_by(64) {
            // SAFETY: whole lines of both sides, aligned.
            let (from, to) = (from.add(at), to.add(at));
            let (low, high) = (_mm256_load_si256(from.cast()), _mm256_load_si256(from.add(32).cast()));
            _mm256_stream_si256(to.cast(), low);
            _mm256_stream_si256(to.add(32).cast(), high);
        }
    }
    let whole = bytes / 64 * 64;
    // SAFETY: `pays` has seen AVX2; both sides are as long as the caller says, and aligned.
    lines(from, to, whole);
    std::ptr::copy_nonoverlapping(from.add(whole), to.add(whole), bytes - whole);
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    std::ptr::copy_nonoverlapping(from, to, bytes);
}

/// Streamed stores are not ordered with others; the end of a task must be.
#[inline]
pub(crate) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 CPU has SSE.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}
