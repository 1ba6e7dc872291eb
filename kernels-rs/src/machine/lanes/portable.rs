//! Registers as small arrays: 128 bits, which every 64-bit machine has.

use super::Lanes;
use crate::math::Baseline;

/// Four `f32`.
#[derive(Clone, Copy)]
pub struct Array4([f32; 4]);

/// Two `f64`.
#[derive(Clone, Copy)]
pub struct Array2([f64; 2]);

macro_rules! array_lanes {
    ($name:ident $elem:ident $n:literal) => {
        // SAFETY of the block: plain reads and writes of the elements that the trait's contract names.
        impl Lanes for $name {
            type Elem = $elem;
            type Math = Baseline;
            const N: usize = $n;
            const ROWS: usize = 6;
            #[inline(always)]
            unsafe fn splat(value: $elem) -> Self {
                Self([value; $n])
            }
            #[inline(always)]
            unsafe fn load(from: *const $elem) -> Self {
                // SAFETY: the caller promises the elements that the method names; the access needs no alignment.
                Self(unsafe { from.cast::<[$elem; $n]>().read_unaligned() })
            }
            #[inline(always)]
            unsafe fn load_partial(from: *const $elem, count: usize) -> Self {
                let mut lanes = [0.0; $n];
                // SAFETY: the caller promises the elements that the method names; the access needs no alignment; `count
                // <= N`.
                unsafe { std::ptr::copy_nonoverlapping(from, lanes.as_mut_ptr(), count) };
                Self(lanes)
            }
            #[inline(always)]
            unsafe fn load_window(from: *const $elem, window: (usize, usize)) -> Self {
                let mut lanes = [0.0; $n];
                for i in window.0..window.1 {
                    // SAFETY: the caller promises the elements that the method names; the access needs no alignment.
                    lanes[i] = unsafe { *from.wrapping_add(i) };
                }
                Self(lanes)
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $elem) {
                // SAFETY: the caller promises the elements that the method names; the access needs no alignment.
                unsafe { to.cast::<[$elem; $n]>().write_unaligned(self.0) };
            }
            #[inline(always)]
            unsafe fn store_partial(self, to: *mut $elem, count: usize) {
                // SAFETY: the caller promises the elements that the method names; the access needs no alignment; `count
                // <= N`.
                unsafe { std::ptr::copy_nonoverlapping(self.0.as_ptr(), to, count) };
            }
            #[inline(always)]
            unsafe fn mul_add(self, by: Self, plus: Self) -> Self {
                let mut out = plus.0;
                for i in 0..$n {
                    // Without an FMA instruction `mul_add` is a slow library call.
                    out[i] += self.0[i] * by.0[i];
                }
                Self(out)
            }
            #[inline(always)]
            unsafe fn mul_sub(self, by: Self, minus: Self) -> Self {
                let mut out = minus.0;
                for i in 0..$n {
                    out[i] = self.0[i] * by.0[i] - out[i];
                }
                Self(out)
            }
            #[inline(always)]
            unsafe fn sub(self, other: Self) -> Self {
                let mut out = self.0;
                for i in 0..$n {
                    out[i] -= other.0[i];
                }
                Self(out)
            }
            #[inline(always)]
            unsafe fn mul(self, other: Self) -> Self {
                let mut out = self.0;
                for i in 0..$n {
                    out[i] *= other.0[i];
                }
                Self(out)
            }
            #[inline(always)]
            unsafe fn div(self, other: Self) -> Self {
                let mut out = self.0;
                for i in 0..$n {
                    out[i] /= other.0[i];
                }
                Self(out)
            }
            #[inline(always)]
            unsafe fn sqrt(self) -> Self {
                Self(self.0.map($elem::sqrt))
            }
            #[inline(always)]
            unsafe fn floor(self) -> Self {
                Self(self.0.map($elem::floor))
            }
            #[inline(always)]
            unsafe fn round(self) -> Self {
                Self(self.0.map($elem::round_ties_even))
            }
            #[inline(always)]
            unsafe fn max(self, other: Self) -> Self {
                let mut out = self.0;
                for i in 0..$n {
                    out[i] = if other.0[i] > out[i] { other.0[i] } else { out[i] };
                }
                Self(out)
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                let mut out = self.0;
                for i in 0..$n {
                    out[i] += other.0[i];
                }
                Self(out)
            }
        }
    };
}
array_lanes!(Array4 f32 4);
array_lanes!(Array2 f64 2);
