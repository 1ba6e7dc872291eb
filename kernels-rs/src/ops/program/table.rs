//! The handlers of those rows of the op tables that cost less than a call.

use super::handler::{Cell, Handler, Jump, binary, code, handler, made, number_with, swapped, unary, with_number};
use crate::array::number::Ring;
use crate::machine::simd::Level;
use crate::math::avx512_f32::{self, Vectors};
use crate::ops::elementwise::num::{Int, Num};
use crate::ops::elementwise::table::{binary_table, unary_table};
use std::arch::x86_64::{__m256, __m512};

/// What lanes hold, with their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// 0 or 1 in 4 bytes.
    Bool4,
    /// 0 or 1 in 8 bytes.
    Bool8,
    /// `f32`.
    F32,
    /// `f64`.
    F64,
    /// `i32`.
    I32,
    /// `i64`.
    I64,
}

/// A row of one operand for these lanes.
macro_rules! one {
    (@as $width:tt $ty:ty, $level:ident, $f:expr) => {
        made!($width $ty, $level, |places, registers| unary::<$width, _, $ty, _>(registers, $f))
    };
    (num $level:ident, $lane:ident => $f:expr) => {
        match $lane {
            Lane::F32 => one!(@as 4 f32, $level, $f),
            Lane::F64 => one!(@as 8 f64, $level, $f),
            Lane::I32 => one!(@as 4 i32, $level, $f),
            Lane::I64 => one!(@as 8 i64, $level, $f),
            _ => None,
        }
    };
    (test $level:ident, $lane:ident => $f:expr) => { one!(num $level, $lane => $f) };
    (bits $level:ident, $lane:ident => $f:expr) => {
        match $lane {
            Lane::I32 => one!(@as 4 i32, $level, $f),
            Lane::I64 => one!(@as 8 i64, $level, $f),
            _ => one!(bool $level, $lane => $f),
        }
    };
    (bool $level:ident, $lane:ident => $f:expr) => {
        match $lane {
            Lane::Bool4 => one!(@as 4 bool, $level, $f),
            Lane::Bool8 => one!(@as 8 bool, $level, $f),
            _ => None,
        }
    };
    // What costs much more than a call is called: the row kernel itself, on the registers.
    (float $level:ident, $lane:ident => $($f:expr),*) => { None };
    (float_far $level:ident, $lane:ident => $($f:expr),*) => { None };
    (float_avx512 $level:ident, $lane:ident => $($f:expr),*) => { None };
}

/// A row of two operands for these lanes; `swapped`: the one in registers is the second.
macro_rules! two {
    (@as $width:tt $ty:ty, $level:ident, $swapped:ident, $f:expr) => {
        two!(@to $width $ty, _, $level, $swapped, $f)
    };
    (@to $width:tt $ty:ty, $result:ty, $level:ident, $swapped:ident, $f:expr) => {
        if $swapped {
            made!($width $ty, $level, |places, registers| {
                swapped::<$width, _, $ty, $result>(registers, places.at, $f)
            })
        } else {
            made!($width $ty, $level, |places, registers| {
                binary::<$width, _, $ty, $result>(registers, places.at, $f)
            })
        }
    };
    (num $level:ident, $lane:ident, $swapped:ident => $f:expr) => {
        match $lane {
            Lane::F32 => two!(@as 4 f32, $level, $swapped, $f),
            Lane::F64 => two!(@as 8 f64, $level, $swapped, $f),
            _ => two!(int $level, $lane, $swapped => $f),
        }
    };
    (int $level:ident, $lane:ident, $swapped:ident => $f:expr) => {
        match $lane {
            Lane::I32 => two!(@as 4 i32, $level, $swapped, $f),
            Lane::I64 => two!(@as 8 i64, $level, $swapped, $f),
            _ => None,
        }
    };
    (compare $level:ident, $lane:ident, $swapped:ident => $f:expr) => { two!(num $level, $lane, $swapped => $f) };
    (turned $level:ident, $lane:ident, $swapped:ident => $other:expr) => {
        of_two(stringify!($other), $level, $lane, !$swapped)
    };
    (same $level:ident, $lane:ident, $swapped:ident => $f:expr) => {
        match $lane {
            Lane::Bool4 | Lane::Bool8 => two!(bool $level, $lane, $swapped => $f),
            _ => two!(num $level, $lane, $swapped => $f),
        }
    };
    (bits $level:ident, $lane:ident, $swapped:ident => $f:expr) => {
        match $lane {
            Lane::Bool4 | Lane::Bool8 => two!(bool $level, $lane, $swapped => $f),
            _ => two!(int $level, $lane, $swapped => $f),
        }
    };
    (bool $level:ident, $lane:ident, $swapped:ident => $f:expr) => {
        match $lane {
            Lane::Bool4 => two!(@as 4 bool, $level, $swapped, $f),
            Lane::Bool8 => two!(@as 8 bool, $level, $swapped, $f),
            _ => None,
        }
    };
    (quotient $level:ident, $lane:ident, $swapped:ident => $f:expr, $g:expr) => {
        match $lane {
            Lane::F32 => two!(@to 4 f32, f32, $level, $swapped, $f),
            Lane::F64 => two!(@to 8 f64, f64, $level, $swapped, $g),
            _ => None,
        }
    };
    (num_far $level:ident, $lane:ident, $swapped:ident => $f:expr, $($fast:expr),*) => {
        match $lane {
            Lane::F32 => None,
            _ => two!(num $level, $lane, $swapped => $f),
        }
    };
    (float $level:ident, $lane:ident, $swapped:ident => $($f:expr),*) => { None };
    (float_avx512 $level:ident, $lane:ident, $swapped:ident => $($f:expr),*) => { None };
    (power $level:ident, $lane:ident, $swapped:ident => $($f:expr),*) => { None };
}

/// A row of two operands, of which one is a number, for lanes of `f32`; `swapped`: the number is the first.
macro_rules! numbered {
    (@to $result:ty, $level:ident, $swapped:ident, $f:expr) => {
        if $swapped {
            made!(4 f32, $level, |places, registers| number_with::<4, _, f32, $result>(registers, places.at, $f))
        } else {
            made!(4 f32, $level, |places, registers| with_number::<4, _, f32, $result>(registers, places.at, $f))
        }
    };
    (num $level:ident, $swapped:ident => $f:expr) => { numbered!(@to f32, $level, $swapped, $f) };
    (compare $level:ident, $swapped:ident => $f:expr) => { numbered!(@to bool, $level, $swapped, $f) };
    (turned $level:ident, $swapped:ident => $other:expr) => { of_number(stringify!($other), $level, !$swapped) };
    (same $level:ident, $swapped:ident => $f:expr) => { numbered!(@to bool, $level, $swapped, $f) };
    (quotient $level:ident, $swapped:ident => $f:expr, $g:expr) => { numbered!(@to f32, $level, $swapped, $f) };
    ($class:ident $level:ident, $swapped:ident => $($f:expr),*) => { None };
}

macro_rules! unary_rows {
    ($($name:ident $class:ident => $($f:expr),*;)*) => {
        /// The handler of a row that is an expression.
        fn of_expression(name: &str, level: Level, lane: Lane) -> Option<Handler> {
            match name {
                $(stringify!($name) => one!($class level, lane => $($f),*),)*
                _ => None,
            }
        }
    };
}

macro_rules! binary_rows {
    ($($name:ident $class:ident => $($f:expr),*;)*) => {
        /// The handler of a row of two operands, `None` where its kernel is called; `swapped`: the one in registers is the second.
        pub fn of_two(name: &str, level: Level, lane: Lane, swapped: bool) -> Option<Handler> {
            match name {
                $(stringify!($name) => two!($class level, lane, swapped => $($f),*),)*
                _ => None,
            }
        }

        /// [`of_two`] that reads one element of memory for all lanes of `f32`; `None` where there is only the other.
        pub fn of_number(name: &str, level: Level, swapped: bool) -> Option<Handler> {
            match name {
                $(stringify!($name) => numbered!($class level, swapped => $($f),*),)*
                _ => None,
            }
        }
    };
}

macro_rules! avx512_rows {
    ($($name:ident)*) => {
        /// The handler of a function in AVX-512: what its row kernel does, on the registers.
        fn of_avx512(name: &str) -> Option<Handler> {
            match name {
                $(stringify!($name) => Some(handler!(
                    "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2",
                    __m512,
                    f32,
                    |places, registers| by_pairs(registers, |x| avx512_f32::$name(x))
                )),)*
                _ => None,
            }
        }
    };
}
avx512_rows!(erf exp gelu log sigmoid silu sqrt tanh);

/// Applies a function of two registers to all eight.
#[inline(always)]
fn by_pairs(registers: [__m512; 8], f: impl Fn(Vectors) -> Vectors) -> [__m512; 8] {
    let [a, b, c, d, e, g, h, i] = registers;
    let [[a, b], [c, d], [e, g], [h, i]] = [[a, b], [c, d], [e, g], [h, i]].map(f);
    [a, b, c, d, e, g, h, i]
}

/// The handler of a row of one operand; `None` where its kernel is called.
pub fn of_one(name: &str, level: Level, lane: Lane) -> Option<Handler> {
    let in_avx512 = level == Level::Avx512 && lane == Lane::F32;
    of_expression(name, level, lane).or_else(|| if in_avx512 { of_avx512(name) } else { None })
}

unary_table!(unary_rows);
binary_table!(binary_rows);
