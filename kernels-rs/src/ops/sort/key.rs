//! Elements as unsigned integers in the order of a sort.

use crate::dtype::{BF16, Element, F16, Plain};

/// An element with a key; NaN has the largest key in both directions.
pub trait SortKey: Element + Plain {
    /// `u32`, or `u64` for 8-byte elements.
    type Key: Plain + Ord + Into<u64>;
    /// Whether there are two zeros, which are equal though their bits differ.
    const SIGNED_ZERO: bool;
    /// The key; in it, `-0.0` is just below `0.0`.
    fn key(self, descending: bool) -> Self::Key;
    /// The element of a key.
    fn of(key: Self::Key, descending: bool) -> Self;
    /// True for zeros of either sign.
    fn is_zero(self) -> bool;
    /// The key in which both zeros are equal.
    #[inline(always)]
    fn equal_key(self, descending: bool) -> Self::Key {
        if Self::SIGNED_ZERO && self.is_zero() { Self::from_i64(0).key(descending) } else { self.key(descending) }
    }
}

macro_rules! float_keys {
    ($($rust:ident $key:ident $bits:ident |$x:ident| $to:expr, |$b:ident| $of:expr, $nan:expr;)*) => {$(
        impl SortKey for $rust {
            type Key = $key;
            const SIGNED_ZERO: bool = true;
            #[inline(always)]
            fn key(self, descending: bool) -> $key {
                const TOP: u32 = $bits::BITS - 1;
                let $x = self;
                let bits: $bits = $to;
                // Negative: all bits flip; positive: the sign bit does.
                let key = bits ^ ((bits >> TOP).wrapping_neg() | 1 << TOP);
                let key = if descending { !key } else { key };
                if $nan { $key::MAX } else { key as $key }
            }
            #[inline(always)]
            fn of(key: $key, descending: bool) -> Self {
                const TOP: u32 = $bits::BITS - 1;
                if key == $key::MAX {
                    return Self::from_f64(f64::NAN);
                }
                let key = if descending { !(key as $bits) } else { key as $bits };
                let $b: $bits = key ^ (((!key) >> TOP).wrapping_neg() | 1 << TOP);
                $of
            }
            #[inline(always)]
            fn is_zero(self) -> bool { self == Self::from_i64(0) }
        }
    )*};
}
float_keys! {
    BF16 u32 u16 |x| x.0, |b| BF16(b), x.0 & 0x7fff > 0x7f80;
    F16 u32 u16 |x| x.0, |b| F16(b), x.0 & 0x7fff > 0x7c00;
    f32 u32 u32 |x| x.to_bits(), |b| f32::from_bits(b), x.is_nan();
    f64 u64 u64 |x| x.to_bits(), |b| f64::from_bits(b), x.is_nan();
}

macro_rules! int_keys {
    ($($rust:ident $key:ident $bits:ident $flip:expr;)*) => {$(
        impl SortKey for $rust {
            type Key = $key;
            const SIGNED_ZERO: bool = false;
            #[inline(always)]
            fn key(self, descending: bool) -> $key {
                let key = self as $bits ^ $flip;
                (if descending { !key } else { key }) as $key
            }
            #[inline(always)]
            fn of(key: $key, descending: bool) -> Self {
                let key = key as $bits;
                ((if descending { !key } else { key }) ^ $flip) as $rust
            }
            #[inline(always)]
            fn is_zero(self) -> bool { self == 0 }
        }
    )*};
}
int_keys! {
    i16 u32 u16 1 << 15;
    i32 u32 u32 1 << 31;
    i64 u64 u64 1 << 63;
    i8 u32 u8 1 << 7;
    u16 u32 u16 0;
    u32 u32 u32 0;
    u64 u64 u64 0;
    u8 u32 u8 0;
}
