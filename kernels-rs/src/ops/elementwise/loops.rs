//! Loops over runs: a function of each element or pair, and runs in parts.

use super::run::{Run, operand, result};

/// Applies a function to each element.
///
/// # Safety
/// As for [`Kernel`].
#[inline(always)]
pub(super) unsafe fn map1<T: Copy, U>(run: &Run, f: impl Fn(T) -> U) {
    // SAFETY: the run is valid for these types and this length.
    let (x, out) = (operand::<T>(run, 0), result::<U>(run));
    loop1(x, out, f);
}

#[inline(always)]
pub(super) fn loop1<T: Copy, U>(x: &[T], out: &mut [U], f: impl Fn(T) -> U) {
    for (slot, &x) in out.iter_mut().zip(x) {
        *slot = f(x);
    }
}

/// Applies a function to each pair. At least one operand advances.
///
/// # Safety
/// As for [`Kernel`].
#[inline(always)]
pub(super) unsafe fn map2<T: Copy, U>(run: &Run, f: impl Fn(T, T) -> U) {
    // SAFETY: the run is valid for these types and this length.
    let (a, b, out) = (operand::<T>(run, 0), operand::<T>(run, 1), result::<U>(run));
    match (run.unit[0], run.unit[1]) {
        (true, true) => loop2(a, b, out, f),
        (true, false) => {
            let Some(&b) = b.first() else { return };
            loop1(a, out, |a| f(a, b));
        }
        _ => {
            let Some(&a) = a.first() else { return };
            loop1(b, out, |b| f(a, b));
        }
    }
}

#[inline(always)]
fn loop2<T: Copy, U>(a: &[T], b: &[T], out: &mut [U], f: impl Fn(T, T) -> U) {
    for ((slot, &a), &b) in out.iter_mut().zip(a).zip(b) {
        *slot = f(a, b);
    }
}

/// Goes over a run of `T` in parts that stay in the nearest cache.
#[inline(always)]
pub(super) fn in_blocks<T>(run: &Run, each: impl Fn(&Run)) {
    const BLOCK: usize = 256;
    let mut start = 0;
    while start < run.len {
        let at = start * size_of::<T>();
        let mut part = Run { len: BLOCK.min(run.len - start), dst: run.dst.wrapping_add(at), ..*run };
        for (src, unit) in part.src.iter_mut().zip(run.unit) {
            *src = src.wrapping_add(if unit { at } else { 0 });
        }
        each(&part);
        start += part.len;
    }
}
