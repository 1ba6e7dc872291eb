//! Loops over runs: a function of each element or pair, and runs in parts.

use super::run::{Run, operand, result};
use crate::dtype::{DType, Element};
use crate::machine::simd::opaque;
use crate::math::Fma;

/// Whether a type goes element by element on processors without AVX2.
const fn is_plain<M: Fma, T: Element>() -> bool {
    M::BASELINE && !matches!(T::DTYPE, DType::F32 | DType::F64 | DType::I32)
}

/// Applies a function to each element.
///
/// # Safety
/// As for [`Kernel`].
#[inline(always)]
pub(super) unsafe fn map1<M: Fma, T: Element, U>(run: &Run, f: impl Fn(T) -> U) {
    if is_plain::<M, T>() {
        return one_by_one::<T, U>(run, |x, _| f(x));
    }
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
pub(super) unsafe fn map2<M: Fma, T: Element, U>(run: &Run, f: impl Fn(T, T) -> U) {
    if is_plain::<M, T>() {
        return one_by_one::<T, U>(run, f);
    }
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

/// One loop for whatever advances, of which the compiler makes no vectors. One operand is taken twice.
///
/// # Safety
/// As for [`Kernel`].
#[inline(always)]
unsafe fn one_by_one<T: Copy, U>(run: &Run, f: impl Fn(T, T) -> U) {
    // SAFETY: the run is valid for these types and this length.
    let second = usize::from(!run.src[1].is_null());
    let [a, b] = [0, second].map(|k| (run.src[k].cast::<T>(), usize::from(run.unit[k])));
    for at in 0..run.len {
        let value = f(*opaque(a.0.wrapping_add(at * a.1)), *b.0.wrapping_add(at * b.1));
        run.dst.cast::<U>().wrapping_add(at).write(value);
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
