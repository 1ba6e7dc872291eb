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
        impl $name {
            #[inline(always)]
            fn zip(self, other: Self, function: impl Fn($elem, $elem) -> $elem) -> Self {
                let mut out = self.0;
                for i in 0..$n {
                    out[i] = function(out[i], other.0[i]);
                }
                Self(out)
            }

            // Where few machines run them, and each place that they are used in would have a loop or library calls of its own.
            #[cfg_attr(target_arch = "x86_64", inline(never))]
            #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
            fn each(self, function: fn($elem) -> $elem) -> Self {
                Self(self.0.map(function))
            }

            /// # Safety
            /// As [`Lanes::load_window`].
            #[cfg_attr(target_arch = "x86_64", inline(never))]
            #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
            unsafe fn window(from: *const $elem, start: usize, end: usize) -> Self {
                let mut lanes = [0.0; $n];
                for i in start..end {
                    lanes[i] = *from.wrapping_add(i);
                }
                Self(lanes)
            }

            /// # Safety
            /// As [`Lanes::store_partial`].
            #[cfg_attr(target_arch = "x86_64", inline(never))]
            #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
            unsafe fn store_first(self, to: *mut $elem, count: usize) {
                std::ptr::copy_nonoverlapping(self.0.as_ptr(), to, count);
            }
        }

        impl Lanes for $name {
            type Elem = $elem;
            type Math = Baseline;
            const N: usize = $n;
            // Tiles are code, and few of these machines are x86-64.
            const ROWS: usize = if cfg!(target_arch = "x86_64") { 2 } else { 4 };
            methods! {
                fn splat(value: $elem) -> Self { Self([value; $n]) }
                fn load(from: *const $elem) -> Self { Self(from.cast::<[$elem; $n]>().read_unaligned()) }
                fn load_partial(from: *const $elem, count: usize) -> Self { Self::window(from, 0, count) }
                fn load_window(from: *const $elem, window: (usize, usize)) -> Self {
                    Self::window(from, window.0, window.1)
                }
                fn store(self, to: *mut $elem) -> () { to.cast::<[$elem; $n]>().write_unaligned(self.0) }
                fn store_partial(self, to: *mut $elem, count: usize) -> () { self.store_first(to, count) }
                // Without an FMA instruction `mul_add` of a number is a slow library call.
                fn mul_add(self, by: Self, plus: Self) -> Self { plus.add(self.mul(by)) }
                fn mul_sub(self, by: Self, minus: Self) -> Self { self.mul(by).sub(minus) }
                fn add(self, other: Self) -> Self { self.zip(other, |a, b| a + b) }
                fn sub(self, other: Self) -> Self { self.zip(other, |a, b| a - b) }
                fn mul(self, other: Self) -> Self { self.zip(other, |a, b| a * b) }
                fn div(self, other: Self) -> Self { self.zip(other, |a, b| a / b) }
                fn sqrt(self) -> Self { Self(self.0.map($elem::sqrt)) }
                fn floor(self) -> Self { self.each($elem::floor) }
                fn round(self) -> Self { self.each($elem::round_ties_even) }
                fn max(self, other: Self) -> Self { self.zip(other, |a, b| if b > a { b } else { a }) }
            }
        }
    };
}
array_lanes!(Array4 f32 4);
array_lanes!(Array2 f64 2);
