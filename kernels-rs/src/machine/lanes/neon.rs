//! NEON registers, which each aarch64 processor has.

use super::{Block, Lanes, riffled};
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
     $sqrt:ident $floor:ident $round:ident $above:ident $choose:ident $negate:ident $even:ident $odd:ident $low:ident $high:ident) => {
        impl Lanes for $name {
            type Elem = $elem;
            type Math = Fused;
            const N: usize = $n;
            // There are registers for twelve, but kernels take more than six for a sign of sixteen lanes.
            const ROWS: usize = 6;
            methods! {
                fn splat(value: $elem) -> Self { Self($splat(value)) }
                fn load(from: *const $elem) -> Self { Self($load(from)) }
                fn load_partial(from: *const $elem, count: usize) -> Self {
                    let mut lanes = [0.0; $n];
                    std::ptr::copy_nonoverlapping(from, lanes.as_mut_ptr(), count);
                    Self::load(lanes.as_ptr())
                }
                fn load_window(from: *const $elem, window: (usize, usize)) -> Self {
                    let mut lanes = [0.0; $n];
                    for i in window.0..window.1 {
                        lanes[i] = *from.wrapping_add(i);
                    }
                    Self::load(lanes.as_ptr())
                }
                fn store(self, to: *mut $elem) -> () { $store(to, self.0) }
                fn store_partial(self, to: *mut $elem, count: usize) -> () {
                    let mut lanes = [0.0; $n];
                    self.store(lanes.as_mut_ptr());
                    std::ptr::copy_nonoverlapping(lanes.as_ptr(), to, count);
                }
                fn mul_add(self, by: Self, plus: Self) -> Self { Self($mul_add(plus.0, self.0, by.0)) }
                fn mul_sub(self, by: Self, minus: Self) -> Self { Self($mul_add($negate(minus.0), self.0, by.0)) }
                fn add(self, other: Self) -> Self { Self($add(self.0, other.0)) }
                fn sub(self, other: Self) -> Self { Self($sub(self.0, other.0)) }
                fn mul(self, other: Self) -> Self { Self($mul(self.0, other.0)) }
                fn div(self, other: Self) -> Self { Self($div(self.0, other.0)) }
                fn sqrt(self) -> Self { Self($sqrt(self.0)) }
                fn floor(self) -> Self { Self($floor(self.0)) }
                fn round(self) -> Self { Self($round(self.0)) }
                // The instruction for it would give NaN where either is.
                fn max(self, other: Self) -> Self { Self($choose($above(other.0, self.0), other.0, self.0)) }
                fn deinterleave(a: Self, b: Self) -> (Self, Self) { (Self($even(a.0, b.0)), Self($odd(a.0, b.0))) }
                fn interleave(a: Self, b: Self) -> (Self, Self) { (Self($low(a.0, b.0)), Self($high(a.0, b.0))) }
                fn transpose(from: Block<$elem>, to: *mut $elem, to_pitch: usize, keep: usize) -> () {
                    let mut rows = [Self::splat(0.0); $n];
                    for (i, row) in rows[..from.rows].iter_mut().enumerate() {
                        *row = Self::load_some(from.at.add(i * from.pitch), from.cols);
                    }
                    for (col, line) in riffled(rows)[..from.cols].iter().enumerate() {
                        line.store_some(to.add(col * to_pitch), keep);
                    }
                }
            }
        }
    };
}

lanes!(F32x4 f32 4, vdupq_n_f32 vld1q_f32 vst1q_f32 vfmaq_f32 vaddq_f32 vsubq_f32 vmulq_f32 vdivq_f32 vsqrtq_f32 vrndmq_f32 vrndnq_f32 vcgtq_f32 vbslq_f32
    vnegq_f32 vuzp1q_f32 vuzp2q_f32 vzip1q_f32 vzip2q_f32);
lanes!(F64x2 f64 2, vdupq_n_f64 vld1q_f64 vst1q_f64 vfmaq_f64 vaddq_f64 vsubq_f64 vmulq_f64 vdivq_f64 vsqrtq_f64 vrndmq_f64 vrndnq_f64 vcgtq_f64 vbslq_f64
    vnegq_f64 vuzp1q_f64 vuzp2q_f64 vzip1q_f64 vzip2q_f64);

macro_rules! dot {
    ($(#[$meta:meta])* $name:ident $register:ident, $extension:literal $instruction:literal) => {
        $(#[$meta])*
        #[inline(always)]
        pub unsafe fn $name<V: Lanes>(left: V, right: V, sum: V) -> V {
            const { assert!(size_of::<V>() == size_of::<F32x4>()) };
            // Registers of one size hold any bits.
            let (left, right): ($register, $register) = (transmute_copy(&left), transmute_copy(&right));
            let mut sum: $register = transmute_copy(&sum);
            asm!(
                $extension,
                $instruction,
                sum = inout(vreg) sum,
                left = in(vreg) left,
                right = in(vreg) right,
                options(pure, nomem, nostack, preserves_flags)
            );
            transmute_copy(&sum)
        }
    };
}
dot! {
    /// Adds to four int32 the products of four signed bytes each. The compiler has no stable name for it.
    ///
    /// # Safety
    /// The machine has `dotprod`; registers are those of [`F32x4`].
    add_fours int32x4_t, ".arch_extension dotprod" "sdot {sum:v}.4s, {left:v}.16b, {right:v}.16b"
}
dot! {
    /// Adds to four `f32` the products of two bfloat16 each. The compiler has no stable name for it.
    ///
    /// # Safety
    /// The machine has `bf16`; registers are those of [`F32x4`].
    add_pairs float32x4_t, ".arch_extension bf16" "bfdot {sum:v}.4s, {left:v}.8h, {right:v}.8h"
}

/// Rounds of sixteen sums that touch no memory.
///
/// # Safety
/// The machine has `bf16`.
pub unsafe fn pairs(rounds: usize) {
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

/// Multiply-adds of one round of [`pairs`].
pub const ROUND: usize = 16 * 4 * 2;
