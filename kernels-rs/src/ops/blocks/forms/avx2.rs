//! Parts of blocks in registers of 256 bits.

use super::{Form, PART, Q4_0, Q4_1, Q4K, Q5_0, Q5_1, Q5K, Q6K, Q8_0, eight_stored};
use std::arch::x86_64::*;

/// Rows up to which a form that takes long to unpack is faster in registers than by floats (Zen 3).
const SOME: usize = 128;

/// How a form is unpacked by AVX2.
///
/// # Safety
/// Blocks can be read: those of a part, for `factors256` those of four parts. The processor has AVX2, FMA and F16C.
pub trait Unpack {
    /// Rows up to which it is multiplied in registers: it is unpacked anew for every four of them.
    const MOST: usize = usize::MAX;

    /// The whole numbers of a part: from 0 on, or with their sign where the offset is 128.
    unsafe fn whole256(blocks: *const u8, part: usize) -> [__m256i; 2];
    /// The factors of four parts, and what is added. Of shares of 16 numbers, all factors.
    unsafe fn factors256(blocks: *const u8) -> [__m256; 2];
}

/// The first 16 numbers of two blocks of halves, and the others.
///
/// # Safety
/// As for [`Unpack`].
#[inline(always)]
pub unsafe fn halves_of_two<F: Form>(blocks: *const u8) -> [__m256i; 2] {
    let at = F::BYTES - PART / 4;
    let block = |i: usize| _mm_loadu_si128(blocks.add(i * F::BYTES + at).cast());
    let found = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(block(0)), block(1));
    [low(found), low(_mm256_srli_epi16::<4>(found))]
}

/// The low halves of bytes.
#[inline(always)]
unsafe fn low(bytes: __m256i) -> __m256i {
    _mm256_and_si256(bytes, _mm256_set1_epi8(15))
}

/// 16 where a byte has one of these bits.
#[inline(always)]
unsafe fn sixteen_if(bytes: __m256i, bits: __m256i) -> __m256i {
    let found = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bits), bits);
    _mm256_and_si256(found, _mm256_set1_epi8(16))
}

/// The numbers of a small block without their fifth bits.
#[inline(always)]
unsafe fn halves(at: *const u8) -> __m256i {
    let both = _mm256_broadcastsi128_si256(_mm_loadu_si128(at.cast()));
    low(_mm256_srlv_epi64(both, _mm256_setr_epi64x(0, 0, 4, 4)))
}

/// Fifth bits, from 4 bytes.
#[inline(always)]
unsafe fn fifth(at: *const u8) -> __m256i {
    let (first, step) = (0x0101_0101_0101_0101, 0x0202_0202_0202_0202);
    let byte_of = _mm256_setr_epi64x(0, first, step, first + step);
    let bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(at.cast::<i32>().read_unaligned()), byte_of);
    sixteen_if(bytes, _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64))
}

/// Float16 numbers of eight small blocks.
#[inline(always)]
unsafe fn eight(at: *const u8, bytes: usize) -> __m256 {
    _mm256_cvtph_ps(eight_stored(at, bytes))
}

macro_rules! small {
    ($($name:ident: least $least:literal, fifth $fifth:expr;)*) => {$(
        impl Unpack for $name {
            const MOST: usize = {
                let at: Option<usize> = $fifth;
                if at.is_none() { usize::MAX } else { SOME }
            };

            #[inline(always)]
            unsafe fn whole256(blocks: *const u8, _: usize) -> [__m256i; 2] {
                let second = blocks.add(Self::BYTES);
                let (a, b) = (halves(second.sub(PART / 4)), halves(second.add(Self::BYTES - PART / 4)));
                let at: Option<usize> = $fifth;
                match at {
                    Some(at) => [_mm256_or_si256(a, fifth(blocks.add(at))), _mm256_or_si256(b, fifth(second.add(at)))],
                    None => [a, b],
                }
            }
            #[inline(always)]
            unsafe fn factors256(blocks: *const u8) -> [__m256; 2] {
                let least = if $least { eight(blocks.add(2), Self::BYTES) } else { _mm256_setzero_ps() };
                [eight(blocks, Self::BYTES), least]
            }
        }
    )*};
}

small! {
    Q4_0: least false, fifth None;
    Q4_1: least true, fifth None;
    Q5_0: least false, fifth Some(2);
    Q5_1: least true, fifth Some(4);
}

impl Unpack for Q8_0 {
    #[inline(always)]
    unsafe fn whole256(blocks: *const u8, _: usize) -> [__m256i; 2] {
        let second = blocks.add(Self::BYTES + 2);
        [_mm256_loadu_si256(blocks.add(2).cast()), _mm256_loadu_si256(second.cast())]
    }
    #[inline(always)]
    unsafe fn factors256(blocks: *const u8) -> [__m256; 2] {
        [eight(blocks, Self::BYTES), _mm256_setzero_ps()]
    }
}

/// Factors of the eight groups of 32 numbers, of 6 bits each in 12 bytes from the fifth on, and what is added.
#[inline(always)]
unsafe fn sixes(block: *const u8) -> [__m256; 2] {
    let word = |at: usize| u64::from(block.add(at).cast::<u32>().read_unaligned());
    let (first, second, last) = (word(4), word(8), word(12));
    let upper = |low: u64, bits: u64| low & 0x0f0f_0f0f | (bits >> 2 & 0x3030_3030);
    let factors = first & 0x3f3f_3f3f | upper(last, first) << 32;
    let least = second & 0x3f3f_3f3f | upper(last >> 4, second) << 32;
    let floats = |bytes: u64| _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(bytes as i64)));
    let halves = _mm_cvtph_ps(_mm_loadu_si32(block.cast()));
    let by = _mm256_broadcastss_ps(_mm_movehdup_ps(halves));
    let by = _mm256_sub_ps(_mm256_setzero_ps(), by);
    [_mm256_mul_ps(_mm256_broadcastss_ps(halves), floats(factors)), _mm256_mul_ps(by, floats(least))]
}

impl Unpack for Q4K {
    #[inline(always)]
    unsafe fn whole256(blocks: *const u8, part: usize) -> [__m256i; 2] {
        let both = _mm256_loadu_si256(blocks.add(16 + 32 * part).cast());
        [low(both), low(_mm256_srli_epi16::<4>(both))]
    }
    #[inline(always)]
    unsafe fn factors256(blocks: *const u8) -> [__m256; 2] {
        sixes(blocks)
    }
}

impl Unpack for Q5K {
    #[inline(always)]
    unsafe fn whole256(blocks: *const u8, part: usize) -> [__m256i; 2] {
        let both = _mm256_loadu_si256(blocks.add(48 + 32 * part).cast());
        let (bits, bit) = (_mm256_loadu_si256(blocks.add(16).cast()), 1u8 << (2 * part));
        let fifth = |bit: u8| sixteen_if(bits, _mm256_set1_epi8(bit as i8));
        [_mm256_or_si256(low(both), fifth(bit)), _mm256_or_si256(low(_mm256_srli_epi16::<4>(both)), fifth(bit << 1))]
    }
    #[inline(always)]
    unsafe fn factors256(blocks: *const u8) -> [__m256; 2] {
        sixes(blocks)
    }
}

impl Unpack for Q6K {
    const MOST: usize = SOME;

    #[inline(always)]
    unsafe fn whole256(blocks: *const u8, part: usize) -> [__m256i; 2] {
        let load = |at: usize| _mm256_loadu_si256(blocks.add(at).cast());
        let odd = _mm_cvtsi32_si128(4 * (part % 2) as i32);
        let bits = _mm256_srl_epi16(load(128 + 32 * (part / 2)), odd);
        let upper = |bits: __m256i| _mm256_and_si256(bits, _mm256_set1_epi8(0x30));
        let lower = |at: usize| low(_mm256_srl_epi16(load(64 * (part / 2) + at), odd));
        [
            _mm256_or_si256(lower(0), upper(_mm256_slli_epi16::<4>(bits))),
            _mm256_or_si256(lower(32), upper(_mm256_slli_epi16::<2>(bits))),
        ]
    }
    #[inline(always)]
    unsafe fn factors256(blocks: *const u8) -> [__m256; 2] {
        let scale = _mm256_cvtph_ps(_mm_set1_epi16(blocks.add(208).cast::<i16>().read_unaligned()));
        let whole = _mm_loadu_si128(blocks.add(192).cast());
        let [a, b] = [_mm256_cvtepi8_epi32(whole), _mm256_cvtepi8_epi32(_mm_srli_si128::<8>(whole))];
        [_mm256_mul_ps(scale, _mm256_cvtepi32_ps(a)), _mm256_mul_ps(scale, _mm256_cvtepi32_ps(b))]
    }
}
