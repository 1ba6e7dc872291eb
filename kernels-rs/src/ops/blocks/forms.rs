//! The forms of blocks: how a part of 64 numbers is unpacked, and the factors of its numbers.
//!
//! Source: github.com/ggml-org/ggml, src/ggml-common.h and ggml-quants.c.

#[cfg(target_arch = "x86_64")]
pub mod avx2;

#[cfg(target_arch = "x86_64")]
use avx2::Unpack;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Numbers of a part.
pub const PART: usize = 64;
/// Numbers that share a factor at least.
pub const SHARE: usize = 16;
/// What each [`SHARE`] of a part is multiplied by, and what is added.
pub type Factors = ([f32; 4], [f32; 4]);

/// Rows that a part of the blocks is multiplied by while it is in registers.
pub const TOGETHER: usize = 4;
/// Sums of a register.
pub const LANES: usize = 16;

/// 64 numbers of a row.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Part {
    /// None is -128.
    pub whole: [i8; PART],
    /// For each four numbers.
    pub scale: [f32; LANES],
    /// What each four numbers add up to: times minus the offset of the form, or as floats times their scale.
    pub sums: [i32; LANES],
}

/// What a processor's own instructions ask of a form.
#[cfg(not(target_arch = "x86_64"))]
pub trait Unpack {}
#[cfg(not(target_arch = "x86_64"))]
impl<T> Unpack for T {}

/// A form of blocks: a number is `factor * (whole - OFFSET)`, or `factor * whole + least`.
///
/// # Safety
/// Blocks are those of a part: a block of 256 numbers, or two of 32; for `factors512` those of [`Form::AT_ONCE`] parts. These can be
/// read, and no byte behind them is. Names that end in `512` need AVX-512 F, BW, DQ and VL, and F16C.
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "registers of AVX-512 alone ask for some"))]
pub trait Form: Unpack {
    /// Numbers of a block.
    const SIZE: usize;
    /// Bytes of a block.
    const BYTES: usize;
    /// Whether a block is two numbers a byte, and nothing else.
    const HALVES: bool = false;
    /// What is taken from each whole number.
    const OFFSET: i32 = 0;
    /// Whether something is added instead.
    const HAS_LEAST: bool = false;
    /// Factors of a part.
    const SHARES: usize = 2;
    /// Parts whose factors are made together: no more than fill a register, whole blocks of them.
    const AT_ONCE: usize = 8;

    /// The factors of a part.
    fn factors(blocks: &[u8], part: usize) -> Factors;
    /// The whole numbers of a part, from 0 on.
    fn whole(blocks: &[u8], part: usize, to: &mut [u8; PART]);
    /// The first 16 numbers of four small blocks, and the others: where [`Form::HALVES`].
    #[cfg(target_arch = "x86_64")]
    unsafe fn halves_of_four512(_: *const u8) -> [__m512i; 2] {
        [_mm512_setzero_si512(); 2]
    }
    /// The same in a register.
    #[cfg(target_arch = "x86_64")]
    unsafe fn whole512(blocks: *const u8, part: usize) -> __m512i;
    /// What `factors` returns for two small blocks, each once; of large ones no row has a rest that asks for it.
    #[cfg(target_arch = "x86_64")]
    unsafe fn factors128(_: *const u8) -> (__m128, __m128) {
        (_mm_setzero_ps(), _mm_setzero_ps())
    }
    /// What `factors` returns for [`Form::AT_ONCE`] parts, each of their [`Form::SHARES`] once.
    #[cfg(target_arch = "x86_64")]
    unsafe fn factors512(blocks: *const u8) -> (__m512, __m512);
}

/// A float16 of two bytes. No number on the way is subnormal, which would take a processor a hundred times longer, also in a
/// lane of a register that nobody reads.
#[inline(always)]
fn half(bytes: &[u8], at: usize) -> f32 {
    let bits = u32::from(bytes[at]) | u32::from(bytes[at + 1]) << 8;
    let rest = bits & 0x7fff;
    let normal = (rest << 13) + (112 << 23);
    let small = rest as i32 as f32 * f32::from_bits((127 - 24) << 23);
    let found = if rest < 0x400 { small.to_bits() } else { normal };
    let found = if rest < 0x7c00 { found } else { rest << 13 | 0x7f80_0000 };
    f32::from_bits(found | (bits & 0x8000) << 16)
}

/// The scales of two blocks.
#[inline(always)]
fn pair(blocks: &[u8], bytes: usize, at: usize) -> [f32; 4] {
    let (a, b) = (half(blocks, at), half(blocks, bytes + at));
    [a, a, b, b]
}

/// The float16 numbers of eight blocks, as they are stored.
///
/// # Safety
/// What lies from the first to the last can be read, 16 bytes a block and more; SSE4.1 is there.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn eight_stored(at: *const u8, bytes: usize) -> __m128i {
    // Each load begins two bytes further in front of its number than the one before, which puts the number into its own lane.
    let from = |i: usize| _mm_loadu_si128(at.add(i * bytes - 2 * i).cast());
    let pairs = [
        _mm_blend_epi16::<0x02>(from(0), from(1)),
        _mm_blend_epi16::<0x08>(from(2), from(3)),
        _mm_blend_epi16::<0x20>(from(4), from(5)),
        _mm_blend_epi16::<0x80>(from(6), from(7)),
    ];
    let fours = [_mm_blend_epi16::<0x0c>(pairs[0], pairs[1]), _mm_blend_epi16::<0xc0>(pairs[2], pairs[3])];
    _mm_blend_epi16::<0xf0>(fours[0], fours[1])
}

/// The float16 numbers of 16 blocks.
///
/// # Safety
/// As for [`eight_stored`], of 16 blocks; AVX-512 F is there.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn sixteen(at: *const u8, bytes: usize) -> __m512 {
    _mm512_cvtph_ps(_mm256_set_m128i(eight_stored(at.add(8 * bytes), bytes), eight_stored(at, bytes)))
}

/// Two float16, a block apart, and zeros.
///
/// # Safety
/// They can be read; F16C is there.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn two(at: *const u8, bytes: usize) -> __m128 {
    let bits = |i: usize| at.add(i * bytes).cast::<i16>().read_unaligned();
    _mm_cvtph_ps(_mm_setr_epi16(bits(0), bits(1), 0, 0, 0, 0, 0, 0))
}

/// Two blocks of 16 bytes, whose low halves come first.
#[inline(always)]
fn halves(blocks: &[u8], bytes: usize, at: usize, to: &mut [u8; PART]) {
    for block in 0..2 {
        let from: &[u8; 16] = blocks[block * bytes + at..][..16].try_into().expect("16 of them");
        for i in 0..16 {
            to[block * 32 + i] = from[i] & 15;
            to[block * 32 + 16 + i] = from[i] >> 4;
        }
    }
}

/// Adds the fifth bits of two blocks, 4 bytes each.
#[inline(always)]
fn fifth(blocks: &[u8], bytes: usize, at: usize, to: &mut [u8; PART]) {
    for block in 0..2 {
        let bits = u32::from_le_bytes(blocks[block * bytes + at..][..4].try_into().expect("4 of them"));
        for i in 0..32 {
            to[block * 32 + i] |= ((bits >> i & 1) << 4) as u8;
        }
    }
}

/// # Safety
/// 16 bytes can be read from each; AVX-512 F is there.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn halves512(a: *const u8, b: *const u8) -> __m512i {
    let a = _mm256_broadcastsi128_si256(_mm_loadu_si128(a.cast()));
    let b = _mm256_broadcastsi128_si256(_mm_loadu_si128(b.cast()));
    let both = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(a), b);
    let moved = _mm512_srlv_epi64(both, _mm512_setr_epi64(0, 0, 4, 4, 0, 0, 4, 4));
    _mm512_and_si512(moved, _mm512_set1_epi8(15))
}

/// # Safety
/// 4 bytes can be read from each; AVX-512 F and BW are there.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn fifth512(whole: __m512i, a: *const u8, b: *const u8) -> __m512i {
    let (a, b) = (a.cast::<u32>().read_unaligned(), b.cast::<u32>().read_unaligned());
    let bits = (b as u64) << 32 | a as u64;
    _mm512_or_si512(whole, _mm512_maskz_set1_epi8(bits, 16))
}

/// 32 bytes twice.
///
/// # Safety
/// They can be read; AVX-512 DQ is there.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn twice(from: *const u8) -> __m512i {
    _mm512_broadcast_i64x4(_mm256_loadu_si256(from.cast()))
}

pub struct Q8_0;
impl Form for Q8_0 {
    const SIZE: usize = 32;
    const BYTES: usize = 34;
    const OFFSET: i32 = 128;

    #[inline(always)]
    fn factors(blocks: &[u8], _: usize) -> Factors {
        (pair(blocks, Self::BYTES, 0), [0.0; 4])
    }
    #[inline(always)]
    fn whole(blocks: &[u8], _: usize, to: &mut [u8; PART]) {
        for block in 0..2 {
            for i in 0..32 {
                to[block * 32 + i] = blocks[block * Self::BYTES + 2 + i] ^ 128;
            }
        }
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn whole512(blocks: *const u8, _: usize) -> __m512i {
        let (a, b) = (_mm256_loadu_si256(blocks.add(2).cast()), _mm256_loadu_si256(blocks.add(36).cast()));
        let both = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(a), b);
        _mm512_xor_si512(both, _mm512_set1_epi8(-128))
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn factors128(blocks: *const u8) -> (__m128, __m128) {
        (two(blocks, Self::BYTES), _mm_setzero_ps())
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn factors512(blocks: *const u8) -> (__m512, __m512) {
        (sixteen(blocks, Self::BYTES), _mm512_setzero_ps())
    }
}

/// Blocks of 32 numbers of 4 or 5 bits: a scale, a least number or none, fifth bits or none, then the low halves.
macro_rules! small {
    ($($name:ident: $bytes:literal, offset $offset:literal, least $least:literal, fifth $fifth:expr, halves $halves:literal;)*) => {$(
        pub struct $name;
        impl Form for $name {
            const SIZE: usize = 32;
            const BYTES: usize = $bytes;
            const OFFSET: i32 = $offset;
            const HAS_LEAST: bool = $least;
            const HALVES: bool = {
                let at: Option<usize> = $fifth;
                at.is_none()
            };

            #[inline(always)]
            fn factors(blocks: &[u8], _: usize) -> Factors {
                let least = if $least { pair(blocks, $bytes, 2) } else { [0.0; 4] };
                (pair(blocks, $bytes, 0), least)
            }
            #[inline(always)]
            fn whole(blocks: &[u8], _: usize, to: &mut [u8; PART]) {
                halves(blocks, $bytes, $halves, to);
                let at: Option<usize> = $fifth;
                if let Some(at) = at {
                    fifth(blocks, $bytes, at, to);
                }
            }
            #[cfg(target_arch = "x86_64")]
            #[inline(always)]
            unsafe fn whole512(blocks: *const u8, _: usize) -> __m512i {
                let found = halves512(blocks.add($halves), blocks.add($bytes + $halves));
                let at: Option<usize> = $fifth;
                match at {
                    Some(at) => fifth512(found, blocks.add(at), blocks.add($bytes + at)),
                    None => found,
                }
            }
            #[cfg(target_arch = "x86_64")]
            #[inline(always)]
            unsafe fn halves_of_four512(blocks: *const u8) -> [__m512i; 2] {
                let block = |i: usize| _mm_loadu_si128(blocks.add(i * $bytes + $halves).cast());
                let found = _mm512_inserti32x4::<1>(_mm512_castsi128_si512(block(0)), block(1));
                let found = _mm512_inserti32x4::<3>(_mm512_inserti32x4::<2>(found, block(2)), block(3));
                let low = _mm512_set1_epi8(15);
                [_mm512_and_si512(found, low), _mm512_and_si512(_mm512_srli_epi64::<4>(found), low)]
            }
            #[cfg(target_arch = "x86_64")]
            #[inline(always)]
            unsafe fn factors128(blocks: *const u8) -> (__m128, __m128) {
                let least = if $least { two(blocks.add(2), $bytes) } else { _mm_setzero_ps() };
                (two(blocks, $bytes), least)
            }
            #[cfg(target_arch = "x86_64")]
            #[inline(always)]
            unsafe fn factors512(blocks: *const u8) -> (__m512, __m512) {
                let least = if $least { sixteen(blocks.add(2), $bytes) } else { _mm512_setzero_ps() };
                (sixteen(blocks, $bytes), least)
            }
        }
    )*};
}

small! {
    Q4_0: 18, offset 8, least false, fifth None, halves 2;
    Q4_1: 20, offset 0, least true, fifth None, halves 4;
    Q5_0: 22, offset 16, least false, fifth Some(2), halves 6;
    Q5_1: 24, offset 0, least true, fifth Some(4), halves 8;
}

/// Factors of two of the eight groups of 32 numbers, of 6 bits each in 12 bytes from the fifth on.
#[inline(always)]
fn sixes(block: &[u8], part: usize) -> Factors {
    let (scale, least) = (half(block, 0), -half(block, 2));
    let bytes = &block[4..16];
    let both = |group: usize| {
        let (factor, less) = if group < 4 {
            (bytes[group] & 63, bytes[group + 4] & 63)
        } else {
            let (low, first, second) = (bytes[group + 4], bytes[group - 4], bytes[group]);
            (low & 15 | first >> 2 & 0x30, low >> 4 | second >> 2 & 0x30)
        };
        (scale * factor as f32, least * less as f32)
    };
    let (a, b) = (both(2 * part), both(2 * part + 1));
    ([a.0, a.0, b.0, b.0], [a.1, a.1, b.1, b.1])
}

/// The same of all parts of a block, in the lower half of registers.
///
/// # Safety
/// 16 bytes can be read; AVX-512 F is there.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn sixes512(block: *const u8) -> (__m512, __m512) {
    let word = |at: usize| u64::from(block.add(at).cast::<u32>().read_unaligned());
    let (first, second, last) = (word(4), word(8), word(12));
    let upper = |low: u64, bits: u64| low & 0x0f0f_0f0f | (bits >> 2 & 0x3030_3030);
    let factors = first & 0x3f3f_3f3f | upper(last, first) << 32;
    let least = second & 0x3f3f_3f3f | upper(last >> 4, second) << 32;
    let floats = |bytes: u64| _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_cvtsi64_si128(bytes as i64)));
    let halves = _mm_cvtph_ps(_mm_loadu_si32(block.cast()));
    let scale = _mm512_broadcastss_ps(halves);
    let by = _mm512_broadcastss_ps(_mm_movehdup_ps(halves));
    let by = _mm512_sub_ps(_mm512_setzero_ps(), by);
    (_mm512_mul_ps(scale, floats(factors)), _mm512_mul_ps(by, floats(least)))
}

/// Halves of bytes: first the low ones of all.
#[inline(always)]
fn low_then_high(from: &[u8], to: &mut [u8; PART]) {
    let from: &[u8; 32] = from[..32].try_into().expect("32 of them");
    for i in 0..32 {
        to[i] = from[i] & 15;
        to[32 + i] = from[i] >> 4;
    }
}

/// # Safety
/// 32 bytes can be read; AVX-512 F and DQ are there.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn low_then_high512(from: *const u8) -> __m512i {
    let moved = _mm512_srlv_epi64(twice(from), _mm512_setr_epi64(0, 0, 0, 0, 4, 4, 4, 4));
    _mm512_and_si512(moved, _mm512_set1_epi8(15))
}

pub struct Q4K;
impl Form for Q4K {
    const SIZE: usize = 256;
    const BYTES: usize = 144;
    const HAS_LEAST: bool = true;
    const AT_ONCE: usize = 4;

    #[inline(always)]
    fn factors(blocks: &[u8], part: usize) -> Factors {
        sixes(blocks, part)
    }
    #[inline(always)]
    fn whole(blocks: &[u8], part: usize, to: &mut [u8; PART]) {
        low_then_high(&blocks[16 + 32 * part..], to);
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn whole512(blocks: *const u8, part: usize) -> __m512i {
        low_then_high512(blocks.add(16 + 32 * part))
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn factors512(blocks: *const u8) -> (__m512, __m512) {
        sixes512(blocks)
    }
}

pub struct Q5K;
impl Form for Q5K {
    const SIZE: usize = 256;
    const BYTES: usize = 176;
    const HAS_LEAST: bool = true;
    const AT_ONCE: usize = 4;

    #[inline(always)]
    fn factors(blocks: &[u8], part: usize) -> Factors {
        sixes(blocks, part)
    }
    #[inline(always)]
    fn whole(blocks: &[u8], part: usize, to: &mut [u8; PART]) {
        low_then_high(&blocks[48 + 32 * part..], to);
        for i in 0..32 {
            let bits = blocks[16 + i] >> (2 * part);
            to[i] |= (bits & 1) << 4;
            to[32 + i] |= (bits >> 1 & 1) << 4;
        }
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn whole512(blocks: *const u8, part: usize) -> __m512i {
        let bit = 1u8 << (2 * part);
        let asked = _mm512_inserti64x4::<1>(_mm512_set1_epi8(bit as i8), _mm256_set1_epi8((bit << 1) as i8));
        let bits = _mm512_test_epi8_mask(twice(blocks.add(16)), asked);
        _mm512_or_si512(low_then_high512(blocks.add(48 + 32 * part)), _mm512_maskz_set1_epi8(bits, 16))
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn factors512(blocks: *const u8) -> (__m512, __m512) {
        sixes512(blocks)
    }
}

pub struct Q6K;
impl Form for Q6K {
    const SIZE: usize = 256;
    const BYTES: usize = 210;
    const OFFSET: i32 = 32;
    const SHARES: usize = 4;
    const AT_ONCE: usize = 4;

    #[inline(always)]
    fn factors(blocks: &[u8], part: usize) -> Factors {
        let scale = half(blocks, 208);
        let factor = |i: usize| scale * (blocks[192 + 4 * part + i] as i8) as f32;
        ([factor(0), factor(1), factor(2), factor(3)], [0.0; 4])
    }
    #[inline(always)]
    fn whole(blocks: &[u8], part: usize, to: &mut [u8; PART]) {
        let (low, high) = (&blocks[64 * (part / 2)..][..64], &blocks[128 + 32 * (part / 2)..][..32]);
        let odd = 4 * (part % 2);
        for i in 0..32 {
            let bits = high[i] >> odd;
            to[i] = low[i] >> odd & 15 | (bits & 3) << 4;
            to[32 + i] = low[32 + i] >> odd & 15 | (bits >> 2 & 3) << 4;
        }
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn whole512(blocks: *const u8, part: usize) -> __m512i {
        let (low, high) = (blocks.add(64 * (part / 2)), blocks.add(128 + 32 * (part / 2)));
        let odd = 4 * (part % 2) as i64;
        let low = _mm512_srlv_epi64(_mm512_loadu_si512(low.cast()), _mm512_set1_epi64(odd));
        let moves = _mm512_add_epi64(_mm512_set1_epi64(odd), _mm512_setr_epi64(0, 0, 0, 0, 2, 2, 2, 2));
        let high = _mm512_and_si512(_mm512_srlv_epi64(twice(high), moves), _mm512_set1_epi8(3));
        // What stays below bits of its byte leaves none behind: two bits, moved by four.
        _mm512_or_si512(_mm512_and_si512(low, _mm512_set1_epi8(15)), _mm512_slli_epi16::<4>(high))
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn factors512(blocks: *const u8) -> (__m512, __m512) {
        let whole = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(blocks.add(192).cast())));
        let scale = _mm_cvtph_ps(_mm_set1_epi16(blocks.add(208).cast::<i16>().read_unaligned()));
        (_mm512_mul_ps(_mm512_broadcastss_ps(scale), whole), _mm512_setzero_ps())
    }
}

/// Bytes behind those that are multiplied, which are fetched meanwhile: a page, where the processor's own guess ends. With it a
/// core reads 143 MB of blocks at 12 GB/s instead of 8 (Sapphire Rapids).
pub const AHEAD: usize = 4096;

/// Bytes of two small blocks at most.
pub const MOST: usize = 2 * Q8_0::BYTES;

/// The blocks of a part of a row, and which part of them it is. A row of an odd number of small blocks goes on with zeros.
#[inline(always)]
pub fn blocks_of<'a, F: Form>(row: &'a [u8], part: usize, room: &'a mut [u8; MOST]) -> (&'a [u8], usize) {
    if F::SIZE > PART {
        let parts = F::SIZE / PART;
        return (&row[part / parts * F::BYTES..][..F::BYTES], part % parts);
    }
    let left = &row[part * 2 * F::BYTES..];
    if left.len() >= 2 * F::BYTES {
        return (&left[..2 * F::BYTES], 0);
    }
    room[..F::BYTES].copy_from_slice(left);
    (&room[..2 * F::BYTES], 0)
}
