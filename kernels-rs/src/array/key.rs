//! Elements as integers of the same order: what is sorted, and what the largest of a row is found by.

use crate::dtype::{BF16, Element, F16, Plain};

/// An element with a key; NaN has the largest key in both directions.
pub trait Keyed: Element + Plain {
    /// `i32`, or `i64` for 8-byte elements: vector units compare signed integers.
    type Key: Plain + Ord + Default + Into<i64>;
    /// Keys as unsigned integers whose bytes a radix sort looks at: `u32` or `u64`.
    type Rank: Plain + Ord + Into<u64>;
    /// Not above any key.
    const LOWEST: Self::Key;
    /// Whether there are two zeros, which are equal though their bits differ.
    const SIGNED_ZERO: bool;
    /// What [`Keyed::key`] flips to reverse the order.
    fn flip(reversed: bool) -> Self::Key;
    /// The key; in it, `-0.0` is just below `0.0`.
    fn key(self, flip: Self::Key) -> Self::Key;
    /// The key in which both zeros are equal.
    fn equal_key(self, flip: Self::Key) -> Self::Key;
    /// The rank of a key. Of narrow elements only NaN has one above 16 bits.
    fn rank(key: Self::Key) -> Self::Rank;
    /// The element of the rank of [`Keyed::key`].
    fn of(rank: Self::Rank, flip: Self::Key) -> Self;
    /// True for zeros of either sign.
    #[inline(always)]
    fn is_zero(self) -> bool {
        self.equal_key(Self::flip(false)) == Self::from_i64(0).equal_key(Self::flip(false))
    }
}

macro_rules! keyed {
    // The least key of the type, bits as a key and back, whether an element is NaN, and that of a key.
    ($($rust:ident $key:ident $rank:ident $least:expr, $zeros:literal,
        |$x:ident| $body:expr, $equal:expr, $nan:expr, |$k:ident| $of:expr, $nan_of:expr;)*) => {$(
        impl Keyed for $rust {
            type Key = $key;
            type Rank = $rank;
            const LOWEST: $key = $key::MIN;
            const SIGNED_ZERO: bool = $zeros;
            #[inline(always)]
            fn flip(reversed: bool) -> $key { -(reversed as $key) }
            #[inline(always)]
            fn key(self, flip: $key) -> $key {
                let $x = self;
                if $nan { $key::MAX } else { $body ^ flip }
            }
            #[inline(always)]
            fn equal_key(self, flip: $key) -> $key {
                let $x = self;
                if $nan { $key::MAX } else { $equal ^ flip }
            }
            #[inline(always)]
            fn rank(key: $key) -> $rank { (key as $rank).wrapping_sub($least as $rank) }
            #[inline(always)]
            fn of(rank: $rank, flip: $key) -> Self {
                let key = rank.wrapping_add($least as $rank) as $key;
                if $nan_of && key == $key::MAX {
                    return Self::from_f64(f64::NAN);
                }
                let $k = key ^ flip;
                $of
            }
        }
    )*};
}
keyed! {
    BF16 i32 u32 i16::MIN, true, |x| in16(x.0), in16(one_zero(x.0)), x.0 & 0x7fff > 0x7f80, |k| BF16(out16(k)), true;
    F16 i32 u32 i16::MIN, true, |x| in16(x.0), in16(one_zero(x.0)), x.0 & 0x7fff > 0x7c00, |k| F16(out16(k)), true;
    f32 i32 u32 i32::MIN, true, |x| in32(x.to_bits()), in32((x + 0.0).to_bits()), x.is_nan(), |k| f32::from_bits(out32(k)), true;
    f64 i64 u64 i64::MIN, true, |x| in64(x.to_bits()), in64((x + 0.0).to_bits()), x.is_nan(), |k| f64::from_bits(out64(k)), true;
    i16 i32 u32 i16::MIN, false, |x| x as i32, x as i32, false, |k| k as i16, false;
    i32 i32 u32 i32::MIN, false, |x| x, x, false, |k| k, false;
    i64 i64 u64 i64::MIN, false, |x| x, x, false, |k| k, false;
    i8 i32 u32 i8::MIN, false, |x| x as i32, x as i32, false, |k| k as i8, false;
    u16 i32 u32 i16::MIN, false, |x| (x ^ 1 << 15) as i16 as i32, (x ^ 1 << 15) as i16 as i32, false, |k| k as u16 ^ 1 << 15, false;
    u32 i32 u32 i32::MIN, false, |x| (x ^ 1 << 31) as i32, (x ^ 1 << 31) as i32, false, |k| k as u32 ^ 1 << 31, false;
    u64 i64 u64 i64::MIN, false, |x| (x ^ 1 << 63) as i64, (x ^ 1 << 63) as i64, false, |k| k as u64 ^ 1 << 63, false;
    u8 i32 u32 i8::MIN, false, |x| (x ^ 1 << 7) as i8 as i32, (x ^ 1 << 7) as i8 as i32, false, |k| k as u8 ^ 1 << 7, false;
}

/// Bits of a float as an integer of the same order: of negative ones all but the sign flip.
#[inline(always)]
fn in32(bits: u32) -> i32 {
    let bits = bits as i32;
    bits ^ ((bits >> 31) as u32 >> 1) as i32
}

/// The way back.
#[inline(always)]
fn out32(key: i32) -> u32 {
    in32(key as u32) as u32
}

#[inline(always)]
fn in64(bits: u64) -> i64 {
    let bits = bits as i64;
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

#[inline(always)]
fn out64(key: i64) -> u64 {
    in64(key as u64) as u64
}

#[inline(always)]
fn in16(bits: u16) -> i32 {
    let bits = bits as i16;
    (bits ^ ((bits >> 15) as u16 >> 1) as i16) as i32
}

#[inline(always)]
fn out16(key: i32) -> u16 {
    in16(key as u16) as u16
}

#[inline(always)]
fn one_zero(bits: u16) -> u16 {
    if bits == 0x8000 { 0 } else { bits }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Elements in order, NaN apart.
    fn check<T: Keyed + PartialEq + std::fmt::Debug>(rising: &[T], nan: Option<T>) {
        for reversed in [false, true] {
            let flip = T::flip(reversed);
            for pair in rising.windows(2) {
                let keys = [pair[0].key(flip), pair[1].key(flip)];
                assert_eq!(keys[0] < keys[1], !reversed, "{pair:?}");
                assert_eq!(T::rank(keys[0]) < T::rank(keys[1]), !reversed, "{pair:?}");
            }
            for &x in rising {
                let rank = T::rank(x.key(flip));
                assert_eq!(T::of(rank, flip), x);
                assert!(size_of::<T>() > 2 || rank.into() < 1 << 16, "{x:?}");
                assert!(x.key(flip) >= T::LOWEST && nan.is_none_or(|nan| x.key(flip) < nan.key(flip)));
                assert_eq!(x.is_zero(), x.to_f64() == 0.0);
                assert!(x.is_zero() || x.equal_key(flip) == x.key(flip));
            }
            assert!(nan.is_none_or(|nan| T::of(T::rank(nan.key(flip)), flip).to_f64().is_nan()));
        }
    }

    #[test]
    fn keys_are_in_the_order_of_the_elements() {
        let inf = f32::INFINITY;
        check(&[-inf, f32::MIN, -1.5, -1e-45, -0.0, 0.0, 1e-45, 2.0, f32::MAX, inf], Some(f32::NAN));
        let inf = f64::INFINITY;
        check(&[-inf, f64::MIN, -1.5, -5e-324, -0.0, 0.0, 5e-324, 2.0, f64::MAX, inf], Some(-f64::NAN));
        check(&[0xfc00, 0xbc00, 0x8001, 0x8000, 0, 1, 0x3c00, 0x7c00].map(F16), Some(F16(0x7e00)));
        check(&[0xff80, 0xbf80, 0x8001, 0x8000, 0, 1, 0x3f80, 0x7f80].map(BF16), Some(BF16(0xffc0)));
        check(&[i8::MIN, -1, 0, 1, i8::MAX], None);
        check(&[i16::MIN, -1, 0, 1, i16::MAX], None);
        check(&[i32::MIN, -1, 0, 1, i32::MAX], None);
        check(&[i64::MIN, -1, 0, 1, i64::MAX], None);
        check(&[0, 1, 127, 128, u8::MAX], None);
        check(&[0, 1, 1 << 15, u16::MAX], None);
        check(&[0, 1, 1 << 31, u32::MAX], None);
        check(&[0, 1, 1 << 63, u64::MAX], None);
    }
}
