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
            assert!(x.summed_key(flip) == x.equal_key(flip));
        }
        let Some(nan) = nan else { continue };
        assert!(T::of(T::rank(nan.key(flip)), flip).to_f64().is_nan() && nan.summed_key(flip) == nan.key(flip));
        assert!(size_of::<T>() > 2 || T::rank(nan.key(flip)).into() < 1 << 16);
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
    check(&[i32::MIN, -1, 0, 1, i32::MAX], None);
    check(&[i64::MIN, -1, 0, 1, i64::MAX], None);
    check(&[0, 1, 127, 128, u8::MAX], None);
    check(&[0, 1, 1 << 63, u64::MAX], None);
}
