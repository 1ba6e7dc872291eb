//! Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011). Block `b` of a
//! stream encrypts the counter words (low half of `b`, high half of `b`, 0, 0) under a 64-bit key.

use crate::vectorize;

/// Words in a block.
pub const BLOCK: usize = 4;
/// Blocks that are computed together: their words fit the vector registers.
const LANES: usize = 16;
const ROUNDS: u32 = 10;
const MULTIPLIERS: [u64; 2] = [0xd251_1f53, 0xcd9e_8d57];
const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];

vectorize!(
    /// Fills `out` with the words of the stream of `key` from block `first` on.
    pub words(out: &mut [u32], key: u64, first: u64) => words_any
);

#[inline(always)]
fn words_any(out: &mut [u32], key: u64, first: u64) {
    let key = [key as u32, (key >> 32) as u32];
    for (group, chunk) in out.chunks_mut(BLOCK * LANES).enumerate() {
        let blocks = encrypt(first.wrapping_add((group * LANES) as u64), key);
        if let Ok(whole) = <&mut [u32; BLOCK * LANES]>::try_from(&mut *chunk) {
            for lane in 0..LANES {
                for word in 0..BLOCK {
                    whole[lane * BLOCK + word] = blocks[word][lane] as u32;
                }
            }
        } else {
            for (at, slot) in chunk.iter_mut().enumerate() {
                *slot = blocks[at % BLOCK][at / BLOCK] as u32;
            }
        }
    }
}

/// Blocks of successive counters, a lane each. Words are the low halves: what falls into the high ones is never looked
/// at, so that a lane is one 64-bit product without shuffles.
#[expect(clippy::needless_range_loop, reason = "plain loops are sure to become vectors")]
#[inline(always)]
fn encrypt(first: u64, key: [u32; 2]) -> [[u64; LANES]; BLOCK] {
    let mut c = [[0u64; LANES]; BLOCK];
    for lane in 0..LANES {
        let counter = first.wrapping_add(lane as u64);
        (c[0][lane], c[1][lane]) = (counter, counter >> 32);
    }
    rounds(&mut c, key);
    c
}

#[expect(clippy::needless_range_loop, reason = "plain loops are sure to become vectors")]
#[inline(always)]
fn rounds<const N: usize>(c: &mut [[u64; N]; BLOCK], key: [u32; 2]) {
    let low = u32::MAX as u64;
    let (mut k0, mut k1) = (key[0], key[1]);
    for _ in 0..ROUNDS {
        for lane in 0..N {
            let (a, b) = (MULTIPLIERS[0] * (c[0][lane] & low), MULTIPLIERS[1] * (c[2][lane] & low));
            c[0][lane] = (b >> 32) ^ c[1][lane] ^ k0 as u64;
            c[1][lane] = b;
            c[2][lane] = (a >> 32) ^ c[3][lane] ^ k1 as u64;
            c[3][lane] = a;
        }
        (k0, k1) = (k0.wrapping_add(WEYL[0]), k1.wrapping_add(WEYL[1]));
    }
}

#[cfg(test)]
mod tests;
