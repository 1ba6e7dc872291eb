//! Handlers that are no rows of the op tables: loads, stores, casts, `where`, rounding, the end.

use super::handler::{Cell, Handler, Held, Jump, called, called_with, code, handler, made, unary};
use super::table::Lane;
use crate::array::narrow;
use crate::dtype::DType;
use crate::machine::simd::Level;
use crate::ops::elementwise::choice::Word;
use crate::ops::elementwise::convert::{Odd, To};
use crate::ops::elementwise::kernel::Kernel;
use std::arch::x86_64::{__m256, __m512, _mm256_stream_ps, _mm256_zeroupper, _mm512_stream_ps};

/// A handler for lanes of 4 and one for lanes of 8 bytes.
macro_rules! by_width {
    ($level:expr, $width:expr, |$places:ident, $registers:ident| $body:expr) => {
        if $width == 4 {
            made!(4 u32, $level, |$places, $registers| $body)
        } else {
            made!(8 u64, $level, |$places, $registers| $body)
        }
    };
}

/// Reads a block of stored elements of `dtype` into lanes of these bytes.
pub fn load(level: Level, width: usize, dtype: DType) -> Option<Handler> {
    match dtype {
        DType::Bool if width == 4 => made!(4 u32, level, |places, registers| widened::<4, _>(registers, places.at)),
        DType::Bool => made!(8 u64, level, |places, registers| widened::<8, _>(registers, places.at)),
        DType::F16 => made!(4 f32, level, |places, registers| float_of(registers, places.at, DType::F16)),
        DType::BF16 => made!(4 f32, level, |places, registers| float_of(registers, places.at, DType::BF16)),
        _ => by_width!(level, width, |places, registers| whole(registers, places.at)),
    }
}

/// Writes lanes as a block of stored elements of `dtype`.
pub fn store(level: Level, width: usize, dtype: DType) -> Option<Handler> {
    match dtype {
        DType::Bool if width == 4 => {
            made!(4 u32, level, |places, registers| narrowed::<4, _>(registers, places.at.cast_mut()))
        }
        DType::Bool => made!(8 u64, level, |places, registers| narrowed::<8, _>(registers, places.at.cast_mut())),
        DType::F16 => made!(4 f32, level, |places, registers| half(registers, places.at.cast_mut(), DType::F16)),
        DType::BF16 => made!(4 f32, level, |places, registers| half(registers, places.at.cast_mut(), DType::BF16)),
        _ => save(level, width),
    }
}

/// Writes lanes as they are.
pub fn save(level: Level, width: usize) -> Option<Handler> {
    by_width!(level, width, |places, registers| put(registers, places.at.cast_mut()))
}

/// [`save`] past the caches; the place begins on a cache line.
pub fn stream(level: Level, width: usize) -> Option<Handler> {
    match level {
        Level::Avx512 if width == 4 => Some(handler!(
            "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2",
            __m512,
            f32,
            |places, registers| {
                for (i, lanes) in registers.into_iter().enumerate() {
                    _mm512_stream_ps(places.at.cast_mut().add(i * 64).cast(), lanes);
                }
                registers
            }
        )),
        Level::Baseline => None,
        _ => Some(handler!("avx2,fma,f16c,bmi1,bmi2", __m256, f32, |places, registers| {
            for (i, lanes) in registers.into_iter().enumerate() {
                _mm256_stream_ps(places.at.cast_mut().add(i * 32).cast(), lanes);
            }
            registers
        })),
    }
}

/// Calls the row kernel of one operand that stands in the place of the second memory operand.
pub fn call(level: Level, width: usize) -> Option<Handler> {
    if width == 4 {
        made!(4 u32, level, |places, registers| called::<4, _>(registers, kernel(places.other)))
    } else {
        made!(8 u64, level, |places, registers| called::<8, _>(registers, kernel(places.other)))
    }
}

/// [`call`] of two operands; `swapped`: the one in registers is the second.
pub fn call_with(level: Level, width: usize, swapped: bool) -> Option<Handler> {
    macro_rules! with {
        ($width:tt $word:ident $swapped:literal) => {
            made!($width $word, level, |places, registers| {
                called_with::<$width, _>(registers, places.at, $swapped, kernel(places.other))
            })
        };
    }
    match (width, swapped) {
        (4, false) => with!(4 u32 false),
        (4, true) => with!(4 u32 true),
        (_, false) => with!(8 u64 false),
        (_, true) => with!(8 u64 true),
    }
}

/// The kernel of which a cell holds the address.
///
/// # Safety
/// It is one.
#[inline(always)]
unsafe fn kernel(address: *const u8) -> Kernel {
    std::mem::transmute::<*const u8, Kernel>(address)
}

/// `where`: the condition in registers, both choices in memory.
pub fn choose(level: Level, width: usize) -> Option<Handler> {
    if width == 4 {
        made!(4 u32, level, |places, registers| chosen::<T, _>(registers, places.at, places.other))
    } else {
        made!(8 u64, level, |places, registers| chosen::<T, _>(registers, places.at, places.other))
    }
}

/// Lanes of `f32` rounded to a narrow float.
pub fn round(level: Level, dtype: DType) -> Option<Handler> {
    match dtype {
        DType::F16 => made!(4 f32, level, |places, registers| rounded(registers, DType::F16)),
        _ => made!(4 f32, level, |places, registers| rounded(registers, DType::BF16)),
    }
}

/// Lanes in another type of the same width. `odd`: the `f32` is on its way to a narrower float.
pub fn cast(level: Level, from: Lane, to: Lane, odd: bool) -> Option<Handler> {
    macro_rules! to {
        ($width:tt $from:ident $to:ident) => {
            made!($width $from, level, |places, registers| {
                unary::<$width, _, $from, $to>(registers, |x| To::<$to>::to(x))
            })
        };
    }
    match (from, to) {
        (Lane::Bool4, Lane::F32) => to!(4 bool f32),
        (Lane::Bool4, Lane::I32) => to!(4 bool i32),
        (Lane::Bool8, Lane::F64) => to!(8 bool f64),
        (Lane::Bool8, Lane::I64) => to!(8 bool i64),
        (Lane::F32, Lane::Bool4) => to!(4 f32 bool),
        (Lane::F32, Lane::I32) => to!(4 f32 i32),
        (Lane::F64, Lane::Bool8) => to!(8 f64 bool),
        (Lane::F64, Lane::I64) => to!(8 f64 i64),
        (Lane::I32, Lane::Bool4) => to!(4 i32 bool),
        (Lane::I32, Lane::F32) if odd => {
            made!(4 i32, level, |places, registers| unary::<4, _, i32, f32>(registers, |x| To::<Odd>::to(x).0))
        }
        (Lane::I32, Lane::F32) => to!(4 i32 f32),
        (Lane::I64, Lane::Bool8) => to!(8 i64 bool),
        (Lane::I64, Lane::F64) => to!(8 i64 f64),
        _ => None,
    }
}

/// Goes on with the next block, and behind the last one returns to whoever began the program.
pub fn end(level: Level, width: usize) -> Option<Handler> {
    macro_rules! ending {
        ($features:literal, $V:ty) => {
            Some(code!($features, $V, |cell, block, registers| {
                let next = block + 1;
                // The last cell names the first one; places hold all blocks before the one at which it stops.
                if next >= (*cell).by[0] {
                    // Each handler ends in a jump, so nobody else does; code without AVX is slow where upper halves are in use.
                    return _mm256_zeroupper();
                }
                #[expect(clippy::cast_ptr_alignment, reason = "the address is that of a cell")]
                let first = (*cell).at[0].cast::<Cell>();
                (first, next, registers)
            }))
        };
    }
    match level {
        Level::Avx512 if width == 4 => ending!("avx512f,avx2", __m512),
        Level::Baseline => None,
        _ => ending!("avx2", __m256),
    }
}

/// # Safety
/// A block of words lies at `from`.
#[inline(always)]
unsafe fn whole<R: Copy>(_: R, from: *const u8) -> R {
    from.cast::<R>().read_unaligned()
}

/// # Safety
/// There is room for a block of words at `to`.
#[inline(always)]
unsafe fn put<R: Copy>(registers: R, to: *mut u8) -> R {
    to.cast::<R>().write_unaligned(registers);
    registers
}

/// # Safety
/// A block of bools lies at `from`.
#[inline(always)]
unsafe fn widened<const W: usize, R: Copy>(registers: R, from: *const u8) -> R
where
    bool: Held<W>,
{
    let mut block = registers;
    let lanes = (&raw mut block).cast::<<bool as Held<W>>::Word>();
    for i in 0..size_of::<R>() / W {
        // SAFETY: lane `i` of the block is as wide as the word.
        lanes.add(i).write((from.add(i).read() != 0).give());
    }
    block
}

/// # Safety
/// There is room for a block of bools at `to`, and the lanes are 0 or 1.
#[inline(always)]
unsafe fn narrowed<const W: usize, R: Copy>(registers: R, to: *mut u8) -> R
where
    bool: Held<W>,
{
    let lanes = (&raw const registers).cast::<<bool as Held<W>>::Word>();
    for i in 0..size_of::<R>() / W {
        // SAFETY: lane `i` of the block is as wide as the word.
        to.add(i).write(<bool as Held<W>>::take(lanes.add(i).read()) as u8);
    }
    registers
}

/// # Safety
/// A block of elements of the narrow `dtype` lies at `from`.
#[inline(always)]
unsafe fn float_of<R: Copy>(registers: R, from: *const u8, dtype: DType) -> R {
    let mut block = registers;
    narrow::widen(dtype, from.cast(), (&raw mut block).cast(), size_of::<R>() / 4);
    block
}

/// # Safety
/// There is room for a block of elements of the narrow `dtype` at `to`.
#[inline(always)]
unsafe fn half<R: Copy>(registers: R, to: *mut u8, dtype: DType) -> R {
    narrow::narrow(dtype, (&raw const registers).cast(), to.cast(), size_of::<R>() / 4);
    registers
}

/// # Safety
/// The lanes are `f32`, and `R` is plain registers.
#[inline(always)]
unsafe fn rounded<R: Copy>(registers: R, dtype: DType) -> R {
    let mut narrow = std::mem::MaybeUninit::<R>::uninit();
    // SAFETY: half of the room of a block holds its lanes as narrow floats.
    half(registers, narrow.as_mut_ptr().cast(), dtype);
    float_of(registers, narrow.as_ptr().cast(), dtype)
}

/// # Safety
/// The lanes are 0 or 1, and blocks of words lie at both places.
#[inline(always)]
unsafe fn chosen<T: Word, R: Copy>(registers: R, yes: *const u8, no: *const u8) -> R {
    let mut block = registers;
    let lanes = (&raw mut block).cast::<T>();
    for i in 0..size_of::<R>() / size_of::<T>() {
        // SAFETY: lane `i` of the block and the words at its place.
        let condition = lanes.add(i).read();
        lanes.add(i).write(T::pick(condition, yes.cast::<T>().add(i).read(), no.cast::<T>().add(i).read()));
    }
    block
}
