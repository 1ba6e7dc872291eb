//! Kernels made from the rows of the table: loops over contiguous runs, compiled per dtype and instruction set.

#[cfg(target_arch = "x86_64")]
use super::avx512;
use super::loops::{in_blocks, loop1, map1, map2};
use super::num::{Int, Num};
use super::power::map2_power;
pub use super::run::{Kernel, Run};
pub(super) use super::run::{operand, result};
use super::table::{binary_table, unary_table};
use crate::array::number::Ring;
use crate::dtype::DType;
use crate::math::{Baseline, Fused, division, double, exponential, libm, special, trigonometric};

/// What the class of a row implies beyond its kernels.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// See the head of the table.
    num,
    /// See the head of the table.
    float,
    /// See the head of the table.
    float_far,
    /// See the head of the table.
    float_avx512,
    /// See the head of the table.
    num_far,
    /// See the head of the table.
    test,
    /// See the head of the table.
    compare,
    /// See the head of the table.
    turned,
    /// See the head of the table.
    same,
    /// See the head of the table.
    int,
    /// See the head of the table.
    bits,
    /// See the head of the table.
    bool,
    /// See the head of the table.
    power,
    /// See the head of the table.
    quotient,
}

impl Class {
    /// The result dtype for operands of `dtype`.
    #[inline]
    pub fn result(self, dtype: DType) -> DType {
        match self {
            Class::test | Class::compare | Class::turned | Class::same => DType::Bool,
            _ => dtype,
        }
    }

    /// True where an element costs much more than its memory traffic.
    #[inline]
    pub fn heavy(self) -> bool {
        matches!(self, Class::float | Class::float_far | Class::float_avx512 | Class::power)
    }
}

/// A row of the table. `N` is the number of operands.
pub struct Op<const N: usize> {
    /// Name of the op.
    pub name: &'static str,
    /// Class of the row.
    pub class: Class,
    /// The kernel for a compute dtype (float16 and bfloat16 have none: they run as float32).
    pub select: fn(DType) -> Option<Kernel>,
}

/// [`map1`] for functions whose fast form is wrong beyond a limit.
///
/// # Safety
/// As for [`Kernel`].
#[inline(always)]
pub(super) unsafe fn map1_far(run: &Run, fast: impl Fn(f32) -> f32, slow: impl Fn(f64) -> f64) {
    // SAFETY: the run is valid for these types and this length.
    let (x, out) = (operand::<f32>(run, 0), result::<f32>(run));
    far1(x, out, fast, |x| slow(x as f64) as f32, |x| x.abs() > trigonometric::LIMIT);
}

/// [`map1_far`] of `f64`.
///
/// # Safety
/// As for [`Kernel`].
#[inline(always)]
pub(super) unsafe fn map1_far64(run: &Run, fast: impl Fn(f64) -> f64, slow: impl Fn(f64) -> f64) {
    // SAFETY: the run is valid for these types and this length.
    let (x, out) = (operand::<f64>(run, 0), result::<f64>(run));
    far1(x, out, fast, slow, |x| x.abs() > double::LIMIT);
}

#[inline(always)]
fn far1<T: Copy>(x: &[T], out: &mut [T], fast: impl Fn(T) -> T, slow: impl Fn(T) -> T, is_far: impl Fn(T) -> bool) {
    const BLOCK: usize = 256;
    for (x, out) in x.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
        loop1(x, out, &fast);
        if x.iter().fold(false, |far, &x| far | is_far(x)) {
            for (slot, &x) in out.iter_mut().zip(x) {
                if is_far(x) {
                    *slot = slow(x);
                }
            }
        }
    }
}

/// [`map2`] for quotients and remainders, whose fast form is wrong where the quotient reaches a bound.
///
/// # Safety
/// As for [`Kernel`].
#[inline(always)]
pub(super) unsafe fn map2_far(run: &Run, fast: impl Fn(f32, f32) -> f32, slow: impl Fn(f32, f32) -> f32, bound: f32) {
    in_blocks::<f32>(run, |part| {
        // SAFETY: a part of the run.
        map2::<Fused, f32, f32>(part, &fast);
        // SAFETY: the same part, whose slices are gone; it is of `f32`.
        let (a, b, out) = (operand::<f32>(part, 0), operand::<f32>(part, 1), result::<f32>(part));
        let far = match (part.unit[0], part.unit[1]) {
            (true, true) => a.iter().zip(b).fold(false, |far, (&a, &b)| far | division::is_far(a, b, bound)),
            (true, false) => a.iter().fold(false, |far, &a| far | division::is_far(a, b[0], bound)),
            _ => b.iter().fold(false, |far, &b| far | division::is_far(a[0], b, bound)),
        };
        if far {
            for (slot, (&a, &b)) in out.iter_mut().zip(a.iter().cycle().zip(b.iter().cycle())) {
                if division::is_far(a, b, bound) {
                    *slot = slow(a, b);
                }
            }
        }
    });
}

/// Compiles a body (with `T` and `M` bound) for the instruction sets and picks one. `wide` adds AVX-512.
macro_rules! versions {
    (@pick wide) => {
        match $crate::machine::simd::level() {
            $crate::machine::simd::Level::Avx512 => return avx512 as Kernel,
            $crate::machine::simd::Level::Avx2 => return avx2 as Kernel,
            $crate::machine::simd::Level::Baseline => {}
        }
    };
    (@avx512 $ty:ty, |$run:ident| $body:expr) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2")]
        unsafe fn avx512($run: &Run) {
            #[allow(dead_code)]
            type M = $crate::math::Fused;
            #[allow(dead_code)]
            type T = $ty;
            $body
        }
    };
    (@base $ty:ty, |$run:ident| $body:expr) => {
        unsafe fn base($run: &Run) {
            #[allow(dead_code)]
            type M = Baseline;
            #[allow(dead_code)]
            type T = $ty;
            $body
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2")]
        unsafe fn avx2($run: &Run) {
            #[allow(dead_code)]
            type M = $crate::math::Fused;
            #[allow(dead_code)]
            type T = $ty;
            $body
        }
    };
    (wide $ty:ty, |$run:ident| $body:expr) => {{
        versions!(@base $ty, |$run| $body);
        versions!(@avx512 $ty, |$run| $body);
        #[cfg(target_arch = "x86_64")]
        let picked = match $crate::machine::simd::level() {
            $crate::machine::simd::Level::Avx512 => avx512 as Kernel,
            $crate::machine::simd::Level::Avx2 => avx2 as Kernel,
            $crate::machine::simd::Level::Baseline => base as Kernel,
        };
        #[cfg(not(target_arch = "x86_64"))]
        let picked = base as Kernel;
        picked
    }};
    (narrow $ty:ty, |$run:ident| $body:expr) => {{
        versions!(@base $ty, |$run| $body);
        #[cfg(target_arch = "x86_64")]
        let picked = if $crate::machine::simd::level() >= $crate::machine::simd::Level::Avx2 { avx2 as Kernel } else { base as Kernel };
        #[cfg(not(target_arch = "x86_64"))]
        let picked = base as Kernel;
        picked
    }};
}
pub(super) use versions;

/// The `select` of a row: class, number of operands, result type where it differs, expressions.
macro_rules! select {
    (num $map:ident => $f:expr) => {
        select!(@num $map, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64 => $f)
    };
    (test $map:ident => $f:expr) => { select!(num $map => $f) };
    (compare $map:ident => $f:expr) => { select!(num $map => $f) };
    (turned $map:ident => $other:expr) => { |dtype: DType| ($other.select)(dtype) };
    (same $map:ident => $f:expr) => {
        |dtype: DType| match dtype {
            DType::Bool => Some(versions!(narrow bool, |run| $map::<M, T, _>(run, $f))),
            _ => (select!(num $map => $f))(dtype),
        }
    };
    (@num $map:ident, $f32:ident, $f64:ident, $($int:ident),* => $f:expr) => {
        |dtype: DType| match dtype {
            DType::F32 => Some(versions!(wide f32, |run| $map::<M, T, _>(run, $f))),
            DType::F64 => Some(versions!(narrow f64, |run| $map::<M, T, _>(run, $f))),
            _ => (select!(int $map => $f))(dtype),
        }
    };
    (int $map:ident => $f:expr) => {
        |dtype: DType| {
            $crate::dispatch!(int dtype, I => Some(versions!(narrow I, |run| $map::<M, T, _>(run, $f))), else None)
        }
    };
    (num_far $map:ident => $f:expr, $fast:expr, $bound:expr) => {
        |dtype: DType| match dtype {
            DType::F32 => Some(versions!(wide f32, |run| map2_far(run, $fast, $f, $bound))),
            DType::F64 => Some(versions!(narrow f64, |run| $map::<M, T, f64>(run, $f))),
            _ => (select!(one_by_one $map => $f))(dtype),
        }
    };
    // Of integers, which no vector unit divides.
    (one_by_one $map:ident => $f:expr) => {
        |dtype: DType| $crate::dispatch!(int dtype, T => {
            // Each step is long: a loop without checks in it pays for `i64`, which is used often.
            unsafe fn base(run: &Run) {
                match <T as $crate::dtype::Element>::DTYPE {
                    DType::I64 => $map::<Fused, T, T>(run, $f),
                    _ => $map::<Baseline, T, T>(run, $f),
                }
            }
            Some(base as Kernel)
        }, else None)
    };
    // The sign does not matter to these, so one kernel serves both integers of a width.
    (bits $map:ident => $f:expr) => {
        |dtype: DType| Some(match dtype {
            DType::I8 | DType::U8 => versions!(narrow u8, |run| $map::<M, T, _>(run, $f)),
            DType::I16 | DType::U16 => versions!(narrow u16, |run| $map::<M, T, _>(run, $f)),
            DType::I32 | DType::U32 => versions!(narrow u32, |run| $map::<M, T, _>(run, $f)),
            DType::I64 | DType::U64 => versions!(narrow u64, |run| $map::<M, T, _>(run, $f)),
            DType::Bool => versions!(narrow bool, |run| $map::<M, T, _>(run, $f)),
            _ => return None,
        })
    };
    (bool $map:ident => $f:expr) => {
        |dtype: DType| match dtype {
            DType::Bool => Some(versions!(narrow bool, |run| $map::<M, T, _>(run, $f))),
            _ => None,
        }
    };
    (float $map:ident => $f:expr, $g:expr) => {
        |dtype: DType| match dtype {
            DType::F32 => Some(versions!(wide f32, |run| $map::<M, T, f32>(run, $f))),
            DType::F64 => Some(versions!(wide f64, |run| $map::<M, T, f64>(run, $g))),
            _ => None,
        }
    };
    (float_avx512 $map:ident => $narrow:expr, $f:expr, $g:expr) => {
        |dtype: DType| {
            #[cfg(target_arch = "x86_64")]
            if dtype == DType::F32 && crate::machine::simd::level() == crate::machine::simd::Level::Avx512 {
                return Some($narrow as Kernel);
            }
            (select!(float $map => $f, $g))(dtype)
        }
    };
    (float_avx512 $map:ident => $narrow:expr, $wide:expr, $f:expr, $g:expr) => {
        |dtype: DType| {
            #[cfg(target_arch = "x86_64")]
            if dtype == DType::F64 && crate::machine::simd::level() == crate::machine::simd::Level::Avx512 {
                return Some($wide as Kernel);
            }
            (select!(float_avx512 $map => $narrow, $f, $g))(dtype)
        }
    };
    (quotient $map:ident => $f:expr, $g:expr) => { select!(float $map => $f, $g) };
    (float_far $map:ident => $f:expr, $g:expr) => {
        |dtype: DType| match dtype {
            DType::F32 => Some(versions!(wide f32, |run| map1_far(run, $f, $g))),
            DType::F64 => Some(versions!(narrow f64, |run| $map::<M, T, f64>(run, $g))),
            _ => None,
        }
    };
    (float_far $map:ident => $wide:expr, $f:expr, $fast:expr, $g:expr) => {
        |dtype: DType| {
            #[cfg(target_arch = "x86_64")]
            if dtype == DType::F64 && crate::machine::simd::level() == crate::machine::simd::Level::Avx512 {
                return Some($wide as Kernel);
            }
            (select!(float_far $map => $f, $fast, $g))(dtype)
        }
    };
    (float_far $map:ident => $f:expr, $fast:expr, $g:expr) => {
        |dtype: DType| match dtype {
            DType::F32 => Some(versions!(wide f32, |run| map1_far(run, $f, $g))),
            DType::F64 => Some(versions!(wide f64, |run| map1_far64(run, $fast, $g))),
            _ => None,
        }
    };
    (power $map:ident => $wide:expr, $f:expr, $g:expr, $h:expr) => {
        |dtype: DType| match dtype {
            #[cfg(target_arch = "x86_64")]
            DType::F64 if crate::machine::simd::level() == crate::machine::simd::Level::Avx512 => Some($wide as Kernel),
            DType::F32 => Some(versions!(wide f32, |run| map2_power::<T>(run, |part| $map::<M, T, f32>(part, $f)))),
            DType::F64 => Some(versions!(wide f64, |run| map2_power::<T>(run, |part| $map::<M, T, f64>(part, $g)))),
            _ => (select!(one_by_one $map => $h))(dtype),
        }
    };
}

macro_rules! unary_ops {
    ($($name:ident $class:ident => $($f:expr),*;)*) => {
        /// The ops of one operand.
        pub mod unary {
            use super::*;
            $(
                #[doc = concat!("The op `", stringify!($name), "`.")]
                #[allow(non_upper_case_globals)]
                pub static $name: Op<1> =
                    Op { name: stringify!($name), class: Class::$class, select: select!($class map1 => $($f),*) };
            )*
            /// All of them, sorted by name.
            pub static ALL: &[&Op<1>] = &[$(&$name),*];
        }
    };
}

macro_rules! binary_ops {
    ($($name:ident $class:ident => $($f:expr),*;)*) => {
        /// The ops of two operands.
        pub mod binary {
            use super::*;
            $(
                #[doc = concat!("The op `", stringify!($name), "`.")]
                #[allow(non_upper_case_globals)]
                pub static $name: Op<2> =
                    Op { name: stringify!($name), class: Class::$class, select: select!($class map2 => $($f),*) };
            )*
            /// All of them, sorted by name.
            pub static ALL: &[&Op<2>] = &[$(&$name),*];
        }
    };
}

unary_table!(unary_ops);
binary_table!(binary_ops);
