//! What a handler is, and how expressions over elements become handlers.

use crate::ops::elementwise::kernel::{Kernel, Run};

/// A step of a program as it runs: the handler and where its operands lie.
///
/// # Safety
/// Whoever runs an array of cells has seen the instruction set of all its handlers, and ends it with `moves::end`. The
/// places of each block hold elements of the type that the handler reads or writes; registers hold what the steps before left.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Cell {
    /// The code.
    pub handler: Handler,
    /// The memory operand of block 0, and a second one, for `where`. Of the last cell, the first cell.
    pub at: [*const u8; 2],
    /// Bytes from block to block. Of the last cell, the block at which to stop.
    pub by: [usize; 2],
}

/// Where the operands of a cell lie in a block.
pub struct Places {
    /// The memory operand.
    pub at: *const u8,
    /// A second one.
    pub other: *const u8,
}

impl Cell {
    /// Where its operands lie in this block.
    #[inline(always)]
    pub fn places(&self, block: usize) -> Places {
        let [at, other] = [0, 1].map(|k| self.at[k].wrapping_add(block * self.by[k]));
        Places { at, other }
    }
}

/// The address of a [`Jump`], whose registers depend on the instruction set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handler(pub *const ());

// SAFETY: the address of code, which never changes.
unsafe impl Send for Handler {}
// SAFETY: as above.
unsafe impl Sync for Handler {}

/// A handler, with its cell and the number of the block. Rust's own convention passes vectors through memory; this one keeps
/// eight of them in registers.
pub type Jump<V> = unsafe extern "sysv64" fn(*const Cell, usize, V, V, V, V, V, V, V, V);

/// Compiles a body over the eight registers for one instruction set. It gives the cell and the block to go on with, and what the
/// registers hold then, or returns to whoever began the program.
macro_rules! code {
    ($features:literal, $V:ty, |$cell:ident, $block:ident, $registers:ident| $body:expr) => {{
        #[target_feature(enable = $features)]
        #[allow(improper_ctypes_definitions)] // Nothing foreign calls it.
        #[allow(clippy::too_many_arguments)]
        unsafe extern "sysv64" fn code(
            $cell: *const Cell,
            $block: usize,
            a: $V,
            b: $V,
            c: $V,
            d: $V,
            e: $V,
            f: $V,
            g: $V,
            h: $V,
        ) {
            let $registers = [a, b, c, d, e, f, g, h];
            // SAFETY: the cell says what its operands are, and which cell comes next: see `Cell`.
            let (next, block, [a, b, c, d, e, f, g, h]): (*const Cell, usize, [$V; 8]) = $body;
            let jump: Jump<$V> = std::mem::transmute((*next).handler.0);
            jump(next, block, a, b, c, d, e, f, g, h);
        }
        Handler(code as Jump<$V> as *const ())
    }};
}

/// [`code!`] that ends where the next handler begins.
macro_rules! handler {
    ($features:literal, $V:ty, $ty:ty, |$places:ident, $registers:ident| $body:expr) => {
        code!($features, $V, |cell, block, $registers| {
            #[allow(dead_code)]
            type M = $crate::math::Fused;
            #[allow(dead_code)]
            type T = $ty;
            #[allow(unused_variables)]
            let $places = (*cell).places(block);
            (cell.add(1), block, $body)
        })
    };
}

/// The handler of a level for lanes of 4 or 8 bytes. Wider vectors pay for lanes of 4 bytes alone, as in the row kernels.
macro_rules! made {
    (4 $ty:ty, $level:expr, |$places:ident, $registers:ident| $body:expr) => {
        match $level {
            Level::Avx512 => Some(handler!(
                "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2",
                __m512,
                $ty,
                |$places, $registers| $body
            )),
            Level::Avx2 => Some(handler!("avx2,fma,f16c,bmi1,bmi2", __m256, $ty, |$places, $registers| $body)),
            Level::Baseline => None,
        }
    };
    (8 $ty:ty, $level:expr, |$places:ident, $registers:ident| $body:expr) => {
        match $level {
            Level::Baseline => None,
            _ => Some(handler!("avx2,fma,f16c,bmi1,bmi2", __m256, $ty, |$places, $registers| $body)),
        }
    };
}
pub(super) use {code, handler, made};

/// A type as lanes of `W` bytes.
pub trait Held<const W: usize>: Copy {
    /// The lane.
    type Word: Copy;
    /// From a lane.
    fn take(word: Self::Word) -> Self;
    /// To a lane.
    fn give(self) -> Self::Word;
}

macro_rules! held {
    ($($ty:ident $width:literal $word:ident |$x:ident| $take:expr, $give:expr;)*) => {$(
        impl Held<$width> for $ty {
            type Word = $word;
            #[inline(always)]
            fn take($x: $word) -> Self { $take }
            #[inline(always)]
            fn give(self) -> $word { let $x = self; $give }
        }
    )*};
}
held! {
    bool 4 u32 |x| x != 0, x as u32;
    bool 8 u64 |x| x != 0, x as u64;
    f32 4 f32 |x| x, x;
    f64 8 f64 |x| x, x;
    i32 4 i32 |x| x, x;
    i64 8 i64 |x| x, x;
}

/// Applies a function to each lane.
///
/// # Safety
/// `R` is plain vector registers.
#[inline(always)]
pub unsafe fn unary<const W: usize, R: Copy, T: Held<W>, U: Held<W>>(registers: R, f: impl Fn(T) -> U) -> R {
    let mut block = registers;
    let lanes = (&raw mut block).cast::<u8>();
    for i in 0..size_of::<R>() / W {
        // SAFETY: lane `i` of the block; both words have `W` bytes.
        let at = lanes.add(i * W);
        at.cast::<U::Word>().write(f(T::take(at.cast::<T::Word>().read())).give());
    }
    block
}

/// Applies a function to each lane and the element of memory at its place.
///
/// # Safety
/// `R` is plain vector registers, and a block of words of `T` lies at `memory`.
#[inline(always)]
pub unsafe fn binary<const W: usize, R: Copy, T: Held<W>, U: Held<W>>(
    registers: R,
    memory: *const u8,
    f: impl Fn(T, T) -> U,
) -> R {
    let mut block = registers;
    let lanes = (&raw mut block).cast::<u8>();
    for i in 0..size_of::<R>() / W {
        // SAFETY: lane `i` of the block, and the word at its place in memory; words have `W` bytes.
        let at = lanes.add(i * W);
        let other = T::take(memory.cast::<T::Word>().add(i).read());
        at.cast::<U::Word>().write(f(T::take(at.cast::<T::Word>().read()), other).give());
    }
    block
}

/// [`binary`] where the element of memory is the first operand.
///
/// # Safety
/// As for [`binary`].
#[inline(always)]
pub unsafe fn swapped<const W: usize, R: Copy, T: Held<W>, U: Held<W>>(
    registers: R,
    memory: *const u8,
    f: impl Fn(T, T) -> U,
) -> R {
    binary::<W, R, T, U>(registers, memory, |own, other| f(other, own))
}

/// [`binary`] with the first element of memory for all lanes.
///
/// # Safety
/// `R` is plain vector registers, and a word of `T` lies at `memory`.
#[inline(always)]
pub unsafe fn with_number<const W: usize, R: Copy, T: Held<W>, U: Held<W>>(
    registers: R,
    memory: *const u8,
    f: impl Fn(T, T) -> U,
) -> R {
    let number = T::take(memory.cast::<T::Word>().read());
    unary::<W, R, T, U>(registers, |own| f(own, number))
}

/// [`with_number`] where the element of memory is the first operand.
///
/// # Safety
/// As for [`with_number`].
#[inline(always)]
pub unsafe fn number_with<const W: usize, R: Copy, T: Held<W>, U: Held<W>>(
    registers: R,
    memory: *const u8,
    f: impl Fn(T, T) -> U,
) -> R {
    with_number::<W, R, T, U>(registers, memory, |own, number| f(number, own))
}

/// Runs a row kernel of one operand on the registers.
///
/// # Safety
/// The kernel takes and gives words of `W` bytes, and the machine runs it.
#[inline(always)]
pub unsafe fn called<const W: usize, R: Copy>(registers: R, kernel: Kernel) -> R {
    let mut out = registers;
    let own = (&raw const registers).cast();
    let (dst, len) = ((&raw mut out).cast(), size_of::<R>() / W);
    // SAFETY: operand and result hold `len` elements, and the result is a copy apart from the operand.
    kernel(&Run { src: [own; 3], unit: [true; 3], dst, len });
    out
}

/// Runs a row kernel of two operands on the registers and a block of memory.
///
/// # Safety
/// The kernel takes and gives words of `W` bytes, the machine runs it, and a block lies at `memory`.
#[inline(always)]
pub unsafe fn called_with<const W: usize, R: Copy>(
    registers: R,
    memory: *const u8,
    swapped: bool,
    kernel: Kernel,
) -> R {
    let mut out = registers;
    let own = (&raw const registers).cast();
    let src = if swapped { [memory, own, own] } else { [own, memory, own] };
    let (dst, len) = ((&raw mut out).cast(), size_of::<R>() / W);
    // SAFETY: operands and result hold `len` elements, and the result is a copy apart from them.
    kernel(&Run { src, unit: [true; 3], dst, len });
    out
}
