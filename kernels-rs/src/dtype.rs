//! Element types: the run-time tag [`DType`], the trait [`Element`] that Rust code is generic over,
//! and the narrow floats [`F16`] and [`BF16`].

use crate::error::{Error, Result};

/// An IEEE half. Arithmetic goes through `f32`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct F16(pub u16);

/// A bfloat16: the upper half of an `f32`. Arithmetic goes through `f32`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct BF16(pub u16);

impl F16 {
    /// Rounds to nearest, ties to even. Branch-free, so that loops over it vectorise.
    #[inline(always)]
    pub fn from_f32(value: f32) -> Self {
        // Source of the method: Fabian Giesen, "float->half variants" (public domain).
        const HALF_OVERFLOW: u32 = (127 + 16) << 23;
        const SUBNORMAL_LIMIT: u32 = 113 << 23;
        const MAGIC: u32 = ((127 - 15) + (23 - 10) + 1) << 23;
        let bits = value.to_bits();
        let sign = (bits >> 16) & 0x8000;
        let magnitude = bits & 0x7fff_ffff;
        let special = if magnitude > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
        let subnormal = (f32::from_bits(magnitude) + f32::from_bits(MAGIC)).to_bits().wrapping_sub(MAGIC);
        let odd = (magnitude >> 13) & 1;
        let normal = magnitude.wrapping_add(odd).wrapping_add(0xc800_0fff) >> 13;
        let mut out = if magnitude < SUBNORMAL_LIMIT { subnormal } else { normal };
        out = if magnitude >= HALF_OVERFLOW { special } else { out };
        Self((out | sign) as u16)
    }

    /// Exact.
    #[inline(always)]
    pub fn to_f32(self) -> f32 {
        let shifted = ((self.0 & 0x7fff) as u32) << 13;
        let scaled = (f32::from_bits(shifted) * f32::from_bits((254 - 15) << 23)).to_bits();
        let special = if shifted >= 0x0f80_0000 { 0x7f80_0000 } else { 0 };
        f32::from_bits(scaled | special | (((self.0 & 0x8000) as u32) << 16))
    }
}

impl BF16 {
    /// Rounds to nearest, ties to even; NaN stays NaN.
    #[inline(always)]
    pub fn from_f32(value: f32) -> Self {
        let bits = value.to_bits();
        let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
        let quiet = (bits >> 16) | 0x0040;
        Self(if bits & 0x7fff_ffff > 0x7f80_0000 { quiet } else { rounded } as u16)
    }

    /// Exact.
    #[inline(always)]
    pub fn to_f32(self) -> f32 {
        f32::from_bits((self.0 as u32) << 16)
    }
}

/// What an element type is, as numerics care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Floating point.
    Float,
    /// Signed or unsigned integer.
    Int,
    /// Truth value, one byte, 0 or 1.
    Bool,
}

macro_rules! dtypes {
    ($($variant:ident $rust:ident $name:literal $kind:ident;)*) => {
        /// The element type of an array, at run time.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(usize)] // A word: copies of structures with odd padding stall.
        pub enum DType { $(#[doc = $name] $variant),* }

        impl DType {
            /// All of them, in declaration order.
            pub const ALL: &'static [DType] = &[$(DType::$variant),*];

            /// The name used in Python, such as `"float32"`.
            #[inline]
            pub const fn name(self) -> &'static str {
                match self { $(DType::$variant => $name),* }
            }

            /// The dtype of that name.
            pub fn from_name(name: &str) -> Result<Self> {
                match name {
                    $($name => Ok(DType::$variant),)*
                    _ => Err(Error::value("dtype", format!("unknown name: got {name:?}"))),
                }
            }

            /// Float, Int or Bool.
            #[inline]
            pub const fn kind(self) -> Kind {
                match self { $(DType::$variant => Kind::$kind),* }
            }

            /// Bytes per element.
            #[inline]
            pub const fn itemsize(self) -> usize {
                match self { $(DType::$variant => size_of::<$rust>()),* }
            }
        }
    };
}

dtypes! {
    F16 F16 "float16" Float;
    BF16 BF16 "bfloat16" Float;
    F32 f32 "float32" Float;
    F64 f64 "float64" Float;
    I8 i8 "int8" Int;
    I16 i16 "int16" Int;
    I32 i32 "int32" Int;
    I64 i64 "int64" Int;
    U8 u8 "uint8" Int;
    U16 u16 "uint16" Int;
    U32 u32 "uint32" Int;
    U64 u64 "uint64" Int;
    Bool bool "bool" Bool;
}

impl DType {
    /// True for the floating types.
    #[inline]
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), Kind::Float)
    }

    /// The type, itself or a wider one, in whose loops order and sums are exact: rarely used types have no loops of their own.
    #[inline]
    pub const fn common(self) -> DType {
        match self {
            DType::F16 | DType::BF16 => DType::F32,
            DType::I8 | DType::I16 | DType::U8 | DType::U16 => DType::I32,
            DType::U32 => DType::I64,
            other => other,
        }
    }

    /// What integers of a rarely used type are cast to before all else, where the others have loops of their own.
    #[inline]
    pub fn rare(self) -> Option<DType> {
        matches!(self, DType::I8 | DType::I16 | DType::U16 | DType::U32).then(|| self.common())
    }
}

/// A Rust type that can be the element of an array.
pub trait Element: Copy + Send + Sync + 'static {
    /// Its run-time tag.
    const DTYPE: DType;
    /// Whether loops that wait for memory are built for AVX-512 too: other types have those of AVX2.
    const WIDE: bool = matches!(Self::DTYPE, DType::F32);
    /// Whether such loops are built for AVX2.
    const FAST: bool = !matches!(Self::DTYPE, DType::U64);
    /// Nearest value: floats round, integers truncate and saturate (NaN is 0), bool is `!= 0`.
    fn from_f64(value: f64) -> Self;
    /// Floats round, integers wrap, bool is `!= 0`.
    fn from_i64(value: i64) -> Self;
    /// The value as `f64`: exact for all but large 64-bit integers.
    fn to_f64(self) -> f64;
}

/// A type of which any bits are a value, so that memory may be read as it whatever was there before.
///
/// # Safety
/// That holds, and there is no padding whose bytes a read would leave undefined for other types.
pub unsafe trait Plain: Copy + 'static {}

macro_rules! plain {
    ($($rust:ident)*) => {$(
        // SAFETY: a number: every pattern of its bits is one, and it has no padding.
        unsafe impl Plain for $rust {}
    )*};
}
plain! { BF16 F16 f32 f64 i16 i32 i64 i8 isize u16 u32 u64 u8 }

macro_rules! int_elements {
    ($($rust:ident $variant:ident),*) => {$(
        impl Element for $rust {
            const DTYPE: DType = DType::$variant;
            #[inline(always)]
            fn from_f64(value: f64) -> Self { value as $rust }
            #[inline(always)]
            fn from_i64(value: i64) -> Self { value as $rust }
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
        }
    )*};
}
int_elements!(i8 I8, i16 I16, i32 I32, i64 I64, u8 U8, u16 U16, u32 U32, u64 U64, f32 F32, f64 F64);

impl Element for bool {
    const DTYPE: DType = DType::Bool;
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value != 0.0
    }
    #[inline(always)]
    fn from_i64(value: i64) -> Self {
        value != 0
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self as u8 as f64
    }
}

macro_rules! narrow_elements {
    ($($rust:ident),*) => {$(
        impl Element for $rust {
            const DTYPE: DType = DType::$rust;
            #[inline(always)]
            fn from_f64(value: f64) -> Self { $rust::from_f32(round_to_odd(value)) }
            #[inline(always)]
            fn from_i64(value: i64) -> Self { Self::from_f64(value as f64) }
            #[inline(always)]
            fn to_f64(self) -> f64 { self.to_f32() as f64 }
        }
        impl PartialEq for $rust {
            #[inline(always)]
            fn eq(&self, other: &Self) -> bool { self.to_f32() == other.to_f32() }
        }
        impl PartialOrd for $rust {
            #[inline(always)]
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                self.to_f32().partial_cmp(&other.to_f32())
            }
            #[inline(always)]
            fn lt(&self, other: &Self) -> bool { self.to_f32() < other.to_f32() }
            #[inline(always)]
            fn le(&self, other: &Self) -> bool { self.to_f32() <= other.to_f32() }
            #[inline(always)]
            fn gt(&self, other: &Self) -> bool { self.to_f32() > other.to_f32() }
            #[inline(always)]
            fn ge(&self, other: &Self) -> bool { self.to_f32() >= other.to_f32() }
        }
    )*};
}
narrow_elements!(F16, BF16);

/// `f64` to `f32` rounding to odd, so that a second rounding to a narrower type is not a double rounding.
#[inline(always)]
pub(crate) fn round_to_odd(value: f64) -> f32 {
    let near = value as f32;
    let back = near as f64;
    if back == value || near.is_nan() || near.is_infinite() {
        return near;
    }
    let bits = near.to_bits();
    // Truncate toward zero, then set the sticky bit.
    let truncated = if back.abs() > value.abs() { bits - 1 } else { bits };
    f32::from_bits(truncated | 1)
}

/// A floating element with the type that it is computed in.
pub trait Float: Element {
    /// `f64` for `f64`, else `f32`.
    type Wide: Float + std::ops::Add<Output = Self::Wide> + std::ops::Mul<Output = Self::Wide>;
    /// Exact.
    fn widen(self) -> Self::Wide;
    /// Rounds to nearest even.
    fn narrow(wide: Self::Wide) -> Self;
}

macro_rules! float_elements {
    ($($rust:ident $wide:ident |$x:ident| $widen:expr, |$w:ident| $narrow:expr;)*) => {$(
        impl Float for $rust {
            type Wide = $wide;
            #[inline(always)]
            fn widen(self) -> $wide { let $x = self; $widen }
            #[inline(always)]
            fn narrow($w: $wide) -> Self { $narrow }
        }
    )*};
}
float_elements! {
    F16 f32 |x| x.to_f32(), |w| F16::from_f32(w);
    BF16 f32 |x| x.to_f32(), |w| BF16::from_f32(w);
    f32 f32 |x| x, |w| w;
    f64 f64 |x| x, |w| w;
}

/// Runs an expression with `$T` bound to the Rust type of a dtype. `dispatch!(all dtype, T => expr)`; the sets are
/// `all`, `num` (no bool), `common` ([`DType::common`], no bool), `float` and `int`. A dtype outside the set runs the `else` arm.
#[macro_export]
macro_rules! dispatch {
    (@arms $dtype:expr, $T:ident => $body:expr, $other:expr; $($variant:ident $rust:ty),*) => {
        match $dtype {
            $($crate::dtype::DType::$variant => { type $T = $rust; $body })*
            #[allow(unreachable_patterns)]
            _ => $other,
        }
    };
    (all $dtype:expr, $T:ident => $body:expr) => {
        $crate::dispatch!(@arms $dtype, $T => $body, unreachable!(); F16 $crate::dtype::F16, BF16 $crate::dtype::BF16,
            F32 f32, F64 f64, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, Bool bool)
    };
    (num $dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        $crate::dispatch!(@arms $dtype, $T => $body, $other; F16 $crate::dtype::F16, BF16 $crate::dtype::BF16,
            F32 f32, F64 f64, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64)
    };
    (common $dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        $crate::dispatch!(@arms $dtype, $T => $body, $other; F32 f32, F64 f64, I32 i32, I64 i64, U64 u64)
    };
    // Those of `common`, and the narrow floats.
    (usual $dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        $crate::dispatch!(@arms $dtype, $T => $body, $other; F16 $crate::dtype::F16, BF16 $crate::dtype::BF16,
            F32 f32, F64 f64, I32 i32, I64 i64, U64 u64)
    };
    // Those that are computed in as they are.
    (computed $dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        $crate::dispatch!(@arms $dtype, $T => $body, $other; F32 f32, F64 f64, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8,
            U16 u16, U32 u32, U64 u64, Bool bool)
    };
    (float $dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        $crate::dispatch!(@arms $dtype, $T => $body, $other; F16 $crate::dtype::F16, BF16 $crate::dtype::BF16,
            F32 f32, F64 f64)
    };
    (int $dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        $crate::dispatch!(@arms $dtype, $T => $body, $other; I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16,
            U32 u32, U64 u64)
    };
}
