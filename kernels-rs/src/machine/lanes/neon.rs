//! NEON registers, which each aarch64 processor has.

use super::{Block, Lanes};
use crate::math::Fused;
use std::arch::aarch64::*;
use std::arch::asm;
use std::mem::transmute_copy;

/// Four `f32`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct F32x4(float32x4_t);
/// Two `f64`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct F64x2(float64x2_t);

macro_rules! lanes {
    ($name:ident $elem:ident $n:literal, $splat:ident $load:ident $store:ident $mul_add:ident $add:ident $sub:ident $mul:ident $div:ident
     $sqrt:ident $floor:ident $round:ident $above:ident $choose:ident $negate:ident $even:ident $odd:ident $low:ident $high:ident, $transpose:item) => {
        impl Lanes for $name {
            type Elem = $elem;
            type Math = Fused;
            const N: usize = $n;
            // There are registers for twelve, but kernels take more than six for a sign of sixteen lanes.
            const ROWS: usize = 6;
            #[inline(always)]
            unsafe fn splat(value: $elem) -> Self {
                // SAFETY: each aarch64 processor has the instruction.
                Self(unsafe { $splat(value) })
            }
            #[inline(always)]
            unsafe fn load(from: *const $elem) -> Self {
                // SAFETY: the caller promises the elements; the instruction needs no alignment.
                Self(unsafe { $load(from) })
            }
            #[inline(always)]
            unsafe fn load_partial(from: *const $elem, count: usize) -> Self {
                let mut lanes = [0.0; $n];
                // SAFETY: the caller promises `count <= N` elements.
                unsafe {
                    std::ptr::copy_nonoverlapping(from, lanes.as_mut_ptr(), count);
                    Self::load(lanes.as_ptr())
                }
            }
            #[inline(always)]
            unsafe fn load_window(from: *const $elem, window: (usize, usize)) -> Self {
                let mut lanes = [0.0; $n];
                for i in window.0..window.1 {
                    // SAFETY: the caller promises the elements in the window.
                    lanes[i] = unsafe { *from.wrapping_add(i) };
                }
                // SAFETY: as many as a register has.
                unsafe { Self::load(lanes.as_ptr()) }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $elem) {
                // SAFETY: the caller promises room; the instruction needs no alignment.
                unsafe { $store(to, self.0) }
            }
            #[inline(always)]
            unsafe fn store_partial(self, to: *mut $elem, count: usize) {
                let mut lanes = [0.0; $n];
                // SAFETY: the caller promises room for `count <= N` elements.
                unsafe {
                    self.store(lanes.as_mut_ptr());
                    std::ptr::copy_nonoverlapping(lanes.as_ptr(), to, count);
                }
            }
            #[inline(always)]
            unsafe fn mul_add(self, by: Self, plus: Self) -> Self {
                // SAFETY: each aarch64 processor has the instruction.
                Self(unsafe { $mul_add(plus.0, self.0, by.0) })
            }
            #[inline(always)]
            unsafe fn mul_sub(self, by: Self, minus: Self) -> Self {
                // SAFETY: each aarch64 processor has the instructions.
                Self(unsafe { $mul_add($negate(minus.0), self.0, by.0) })
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                // SAFETY: each aarch64 processor has the instruction.
                Self(unsafe { $add(self.0, other.0) })
            }
            #[inline(always)]
            unsafe fn sub(self, other: Self) -> Self {
                // SAFETY: each aarch64 processor has the instruction.
                Self(unsafe { $sub(self.0, other.0) })
            }
            #[inline(always)]
            unsafe fn mul(self, other: Self) -> Self {
                // SAFETY: each aarch64 processor has the instruction.
                Self(unsafe { $mul(self.0, other.0) })
            }
            #[inline(always)]
            unsafe fn div(self, other: Self) -> Self {
                // SAFETY: each aarch64 processor has the instruction.
                Self(unsafe { $div(self.0, other.0) })
            }
            #[inline(always)]
            unsafe fn sqrt(self) -> Self {
                // SAFETY: each aarch64 processor has the instruction.
                Self(unsafe { $sqrt(self.0) })
            }
            #[inline(always)]
            unsafe fn floor(self) -> Self {
                // SAFETY: each aarch64 processor has the instruction.
                Self(unsafe { $floor(self.0) })
            }
            #[inline(always)]
            unsafe fn round(self) -> Self {
                // SAFETY: each aarch64 processor has the instruction.
                Self(unsafe { $round(self.0) })
            }
            #[inline(always)]
            unsafe fn max(self, other: Self) -> Self {
                // The instruction for it would give NaN where either is.
                // SAFETY: each aarch64 processor has the instruction.
                Self(unsafe { $choose($above(other.0, self.0), other.0, self.0) })
            }
            #[inline(always)]
            unsafe fn deinterleave(a: Self, b: Self) -> (Self, Self) {
                // SAFETY: each aarch64 processor has the instructions.
                unsafe { (Self($even(a.0, b.0)), Self($odd(a.0, b.0))) }
            }
            #[inline(always)]
            unsafe fn interleave(a: Self, b: Self) -> (Self, Self) {
                // SAFETY: each aarch64 processor has the instructions.
                unsafe { (Self($low(a.0, b.0)), Self($high(a.0, b.0))) }
            }
            #[inline(always)]
            $transpose
        }
    };
}

lanes!(F32x4 f32 4, vdupq_n_f32 vld1q_f32 vst1q_f32 vfmaq_f32 vaddq_f32 vsubq_f32 vmulq_f32 vdivq_f32 vsqrtq_f32 vrndmq_f32 vrndnq_f32 vcgtq_f32 vbslq_f32
    vnegq_f32 vuzp1q_f32 vuzp2q_f32 vzip1q_f32 vzip2q_f32,
    unsafe fn transpose(from: Block<f32>, to: *mut f32, to_pitch: usize, keep: usize) {
        // SAFETY: rows and columns outside the block are not read; what is written has `keep` elements in each row.
        unsafe {
            let mut rows = [Self::splat(0.0); 4];
            for (i, row) in rows[..from.rows].iter_mut().enumerate() {
                *row = Self::load_some(from.at.add(i * from.pitch), from.cols);
            }
            let (a, c) = Self::interleave(rows[0], rows[2]);
            let (b, d) = Self::interleave(rows[1], rows[3]);
            let ((first, second), (third, fourth)) = (Self::interleave(a, b), Self::interleave(c, d));
            for (col, line) in [first, second, third, fourth][..from.cols].iter().enumerate() {
                line.store_some(to.add(col * to_pitch), keep);
            }
        }
    }
);
lanes!(F64x2 f64 2, vdupq_n_f64 vld1q_f64 vst1q_f64 vfmaq_f64 vaddq_f64 vsubq_f64 vmulq_f64 vdivq_f64 vsqrtq_f64 vrndmq_f64 vrndnq_f64 vcgtq_f64 vbslq_f64
    vnegq_f64 vuzp1q_f64 vuzp2q_f64 vzip1q_f64 vzip2q_f64,
    unsafe fn transpose(from: Block<f64>, to: *mut f64, to_pitch: usize, keep: usize) {
        // SAFETY: as for `f32`.
        unsafe {
            let mut rows = [Self::splat(0.0); 2];
            for (i, row) in rows[..from.rows].iter_mut().enumerate() {
                *row = Self::load_some(from.at.add(i * from.pitch), from.cols);
            }
            let (first, second) = Self::interleave(rows[0], rows[1]);
            for (col, line) in [first, second][..from.cols].iter().enumerate() {
                line.store_some(to.add(col * to_pitch), keep);
            }
        }
    }
);

/// Adds to four int32 the products of four signed bytes each. The compiler has no stable name for it.
///
/// # Safety
/// The machine has `dotprod`; registers are those of [`F32x4`].
#[inline(always)]
pub unsafe fn add_fours<V: Lanes>(left: V, right: V, sum: V) -> V {
    const { assert!(size_of::<V>() == size_of::<F32x4>()) };
    // SAFETY: registers of any bits; the caller promises the instruction.
    unsafe {
        let (left, right): (int32x4_t, int32x4_t) = (transmute_copy(&left), transmute_copy(&right));
        let mut sum: int32x4_t = transmute_copy(&sum);
        asm!(
            ".arch_extension dotprod",
            "sdot {sum:v}.4s, {left:v}.16b, {right:v}.16b",
            sum = inout(vreg) sum,
            left = in(vreg) left,
            right = in(vreg) right,
            options(pure, nomem, nostack, preserves_flags)
        );
        transmute_copy(&sum)
    }
}

/// Adds to four `f32` the products of two bfloat16 each. The compiler has no stable name for it.
///
/// # Safety
/// The machine has `bf16`; registers are those of [`F32x4`].
#[inline(always)]
pub unsafe fn add_pairs<V: Lanes>(left: V, right: V, sum: V) -> V {
    const { assert!(size_of::<V>() == size_of::<F32x4>()) };
    // SAFETY: registers of any bits; the caller promises the instruction.
    unsafe {
        let (left, right): (float32x4_t, float32x4_t) = (transmute_copy(&left), transmute_copy(&right));
        let mut sum: float32x4_t = transmute_copy(&sum);
        asm!(
            ".arch_extension bf16",
            "bfdot {sum:v}.4s, {left:v}.8h, {right:v}.8h",
            sum = inout(vreg) sum,
            left = in(vreg) left,
            right = in(vreg) right,
            options(pure, nomem, nostack, preserves_flags)
        );
        transmute_copy(&sum)
    }
}

/// Rounds of sixteen sums that touch no memory.
///
/// # Safety
/// The machine has `bf16`.
pub unsafe fn pairs(rounds: usize) {
    // SAFETY: as the caller promises.
    unsafe {
        asm!(
            ".arch_extension bf16",
            "2:",
            "bfdot v0.4s, v16.8h, v17.8h",
            "bfdot v1.4s, v16.8h, v17.8h",
            "bfdot v2.4s, v16.8h, v17.8h",
            "bfdot v3.4s, v16.8h, v17.8h",
            "bfdot v4.4s, v16.8h, v17.8h",
            "bfdot v5.4s, v16.8h, v17.8h",
            "bfdot v6.4s, v16.8h, v17.8h",
            "bfdot v7.4s, v16.8h, v17.8h",
            "bfdot v18.4s, v16.8h, v17.8h",
            "bfdot v19.4s, v16.8h, v17.8h",
            "bfdot v20.4s, v16.8h, v17.8h",
            "bfdot v21.4s, v16.8h, v17.8h",
            "bfdot v22.4s, v16.8h, v17.8h",
            "bfdot v23.4s, v16.8h, v17.8h",
            "bfdot v24.4s, v16.8h, v17.8h",
            "bfdot v25.4s, v16.8h, v17.8h",
            "subs {rounds}, {rounds}, #1",
            "b.ne 2b",
            rounds = inout(reg) rounds => _,
            out("v0") _, out("v1") _, out("v2") _, out("v3") _, out("v4") _, out("v5") _, out("v6") _, out("v7") _,
            in("v16") 0.0f64, in("v17") 0.0f64,
            out("v18") _, out("v19") _, out("v20") _, out("v21") _, out("v22") _, out("v23") _, out("v24") _, out("v25") _,
            options(nomem, nostack)
        );
    }
}

/// Multiply-adds of one round of [`pairs`].
pub const ROUND: usize = 16 * 4 * 2;
