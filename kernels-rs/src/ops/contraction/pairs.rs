//! Pairs of bfloat16, for machines that multiply and add them by one instruction.

use super::call::{CACHED, Call};
use super::direct::Way;
use super::format::Format;
use super::lies::Lies;
use super::tile::{Multiply, by_one_instruction};
use crate::dtype::BF16;
use crate::machine::lanes::{Block, Kernel, Lanes};
use crate::machine::simd::prefetch;

/// Cells are pairs of bfloat16, multiplied and added by one instruction.
pub struct Pairs;

impl Pairs {
    /// True when this machine has the instruction.
    #[inline]
    pub fn supported() -> bool {
        crate::machine::simd::has_bf16_pairs()
    }
}

impl Multiply for Pairs {
    const TILES: (Lies, [usize; 2]) = (Lies::Packed, [1, 2]);
    by_one_instruction!(target_feature(enable = "avx512bf16"), _mm512_dpbf16_ps __m512bh, add_pairs, Self::supported);
}

macro_rules! as_pairs {
    () => {
        const TILES: (Lies, [usize; 2]) = (Lies::InPlace, [1, 4]);
        type Real = f32;
        #[inline(always)]
        unsafe fn accumulate<V: Lanes<Elem = f32>>(left: V, right: V, sum: V) -> V {
            Pairs::accumulate(left, right, sum)
        }
        fn launch<K: Kernel<f32>>(kernel: K) {
            <Pairs as Multiply>::launch(kernel);
        }
        type Left = BF16;
        #[inline(always)]
        unsafe fn splat<V: Lanes<Elem = f32>>(cell: *const BF16) -> V {
            V::splat(cell.cast::<f32>().read_unaligned())
        }
    };
}

/// Rows up to which weaving beats packing.
const FEW_WOVEN: usize = 32;

/// Pairs of the left side where they lie, and of two rows of the right side, woven as they are read.
pub struct Woven;

impl Multiply for Woven {
    as_pairs!();
    type Right = BF16;
    #[inline(always)]
    unsafe fn load<V: Lanes<Elem = f32>>(cells: *const BF16, step: isize) -> V {
        let (low, high) = (cells.cast::<u16>(), cells.wrapping_offset(step / 2).cast::<u16>());
        let mut cells = [0u32; 16];
        for (i, cell) in cells[..V::N].iter_mut().enumerate() {
            *cell = u32::from(*low.add(i)) | u32::from(*high.add(i)) << 16;
        }
        V::load(cells.as_ptr().cast())
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn load_all<V: Lanes<Elem = f32>, const W: usize>(cells: *const BF16, step: isize) -> [V; W] {
        use std::arch::x86_64::{_mm512_loadu_si512, _mm512_permutex2var_epi16};
        use std::mem::transmute_copy;
        // `Pairs::launch` has the instructions, and registers of `__m512`.
        let mut values = [V::splat(0.0); W];
        if W == 1 || V::N != 16 {
            values[0] = Self::load::<V>(cells, step);
            return values;
        }
        // Element i of the one row, then of the other: 16 of each row are in the first register, 16 in the second.
        let (mut low, mut high) = ([0i32; 16], [0i32; 16]);
        for i in 0..16 {
            low[i] = i as i32 | (i as i32 + 32) << 16;
            high[i] = (i as i32 + 16) | (i as i32 + 48) << 16;
        }
        let (low, high) = (transmute_copy(&low), transmute_copy(&high));
        for w in 0..W / 2 {
            let even = _mm512_loadu_si512(cells.add(32 * w).cast());
            let odd = _mm512_loadu_si512(cells.wrapping_offset(step / 2).add(32 * w).cast());
            values[2 * w] = transmute_copy(&_mm512_permutex2var_epi16(even, low, odd));
            values[2 * w + 1] = transmute_copy(&_mm512_permutex2var_epi16(even, high, odd));
        }
        values
    }
    #[inline(always)]
    fn ask(cells: *const BF16, step: isize) {
        prefetch(cells);
        prefetch(cells.wrapping_offset(step / 2));
    }
}

/// Pairs of the left side where they lie, and packed ones of the right side.
pub struct LeftInPlace;

impl Multiply for LeftInPlace {
    as_pairs!();
    type Right = u32;
    #[inline(always)]
    unsafe fn load<V: Lanes<Elem = f32>>(cells: *const u32, _: isize) -> V {
        V::load(cells.cast())
    }
}

impl Way for Woven {
    type Packed = Pairs;
    type Left = BF16;
    type Whole = Self;
    type Tail = LeftInPlace;
    const PACKS: bool = false;
    /// Whole pairs, which lie together on the left.
    fn applies(call: &Call<BF16>) -> bool {
        let (m, k, n) = call.size;
        let few = m <= FEW_WOVEN || k * n <= CACHED;
        few && Pairs::supported() && call.a.col == 1 && k.is_multiple_of(2)
    }
}

impl Format for Pairs {
    type Elem = BF16;
    type Product = Self;
    type Cell = u32;
    const DEPTH: usize = 2;
    const DIRECT: bool = false;

    #[inline(always)]
    unsafe fn gather(from: *const BF16, deep: isize, left: usize) -> u32 {
        let from = from.cast::<u16>();
        u32::from(*from) | if left > 1 { u32::from(*from.offset(deep)) << 16 } else { 0 }
    }
    #[inline(always)]
    unsafe fn line<V: Lanes<Elem = f32>>(from: *const BF16, deep: isize, left: usize, count: usize, to: *mut u32) {
        if count == V::N && left > 1 {
            let (low, high) = (from.cast::<u16>(), from.cast::<u16>().offset(deep));
            // Through a local, which overlaps nothing: so it becomes vectors.
            let mut cells = [0u32; 16];
            for (i, cell) in cells[..V::N].iter_mut().enumerate() {
                *cell = u32::from(*low.add(i)) | u32::from(*high.add(i)) << 16;
            }
            return V::load(cells.as_ptr().cast()).store(to.cast());
        }
        for i in 0..V::N {
            *to.add(i) = if i < count { Self::gather(from.add(i), deep, left) } else { 0 };
        }
    }
    #[inline(always)]
    #[expect(clippy::cast_ptr_alignment, reason = "registers are read unaligned")]
    unsafe fn turn<V: Lanes<Elem = f32>>(
        from: *const BF16,
        along: isize,
        (rows, left): (usize, usize),
        to: *mut u32,
        (pitch, keep): (usize, usize),
    ) {
        let cells = left.div_ceil(2).min(V::N);
        // Only moved, so any bits will do as `f32`.
        if along >= 0 && along % 2 == 0 && left >= 2 * cells {
            let block = Block { at: from.cast::<f32>(), pitch: along as usize / 2, rows, cols: cells };
            return V::transpose(block, to.cast(), pitch, keep);
        }
        let mut block = [0u32; 256];
        for row in 0..rows {
            let (run, line) = (from.wrapping_offset(row as isize * along), block.as_mut_ptr().add(row * V::N));
            std::ptr::copy_nonoverlapping(run.cast::<u16>(), line.cast::<u16>(), left.min(2 * V::N));
        }
        V::transpose(Block { at: block.as_ptr().cast(), pitch: V::N, rows, cols: cells }, to.cast(), pitch, keep);
    }
}
