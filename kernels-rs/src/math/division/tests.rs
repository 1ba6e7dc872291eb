use super::*;
use crate::math::{Fused, Split};
use crate::ops::elementwise::num::Num;
use crate::ops::samples::Rng;

fn check(a: f32, b: f32) {
    if !is_far(a, b, WHOLE) {
        let exact = a.floor_divided(b);
        for got in [floor_divide::<Fused>(a, b), floor_divide::<Split>(a, b)] {
            assert!(
                got.to_bits() == exact.to_bits() || got.is_nan() && exact.is_nan(),
                "{a:e} // {b:e}: {got} {exact}"
            );
        }
    }
}

#[test]
fn the_quotient_of_f32_lanes_is_that_of_f64() {
    let mut special: Vec<f32> = (-3..=3).flat_map(|n| [n as f32, n as f32 * 0.1]).collect();
    for value in [f32::INFINITY, f32::NAN, f32::MAX, f32::MIN_POSITIVE, 1e-45, 3e-45, 1e-40, WHOLE, WHOLE - 1.0, 1e38] {
        special.extend([value, -value]);
    }
    special.push(-0.0);
    for &a in &special {
        for &b in &special {
            check(a, b);
        }
    }
    let mut rng = Rng::new(7);
    let bits = |rng: &mut Rng| f32::from_bits(rng.below(1 << 32) as u32);
    for _ in 0..2_000_000 {
        let (a, b) = (bits(&mut rng), bits(&mut rng));
        check(a, b);
        // Quotients near whole numbers of every size, and operands of like size.
        let digits = rng.below(25);
        let whole = rng.below(1 << digits) as f32;
        let near = f32::from_bits((b * whole).to_bits().wrapping_add(rng.below(5) as u32).wrapping_sub(2));
        check(near, b);
        check(-near, b);
        check(f32::from_bits(a.to_bits() & 0x807f_ffff | b.to_bits() & 0x7f80_0000), b);
    }
}
