use super::*;
use crate::array::scalar::Scalar;
use crate::ops::samples::floats;

#[test]
fn every_length_and_operand_that_does_not_move() {
    let special = [0.0, -1.5, 2.25, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, f32::MIN];
    for len in [1, 2, 255, 256, 257, 700] {
        let values = |step: usize| (0..len).map(|at| special[at * step / 3 % 8]).collect::<Vec<f32>>();
        let weights: Vec<f32> = (0..len).map(|at| at as f32 / len as f32 * 2.0 - 0.5).collect();
        let [a, b] = [values(1), values(5)];
        let [x1, x2, w] = [&a, &b, &weights].map(|x| Array::from_slice(x, &[len]).unwrap());
        let all = |a: Operand<'_>, b: Operand<'_>, w: Operand<'_>| floats(&lerp(a, b, w).unwrap());
        let number = Operand::Scalar(Scalar::Float(0.25));
        let found = [
            all(Operand::Array(&x1), Operand::Array(&x2), Operand::Array(&w)),
            all(Operand::Array(&x1), Operand::Array(&x2), number),
            all(Operand::Array(&x1), number, Operand::Array(&w)),
        ];
        for at in 0..len {
            let ends = [(a[at], b[at], weights[at]), (a[at], b[at], 0.25), (a[at], 0.25, weights[at])];
            for (found, (a, b, w)) in found.iter().zip(ends) {
                let gap = b - a;
                let want = match () {
                    () if gap.is_infinite() => far(a, b, w),
                    () if w < 0.5 => a + w * gap,
                    () => b - gap * (1.0 - w),
                };
                assert!(found[at] == f64::from(want) || (found[at].is_nan() && want.is_nan()), "{a} {b} {w}");
            }
        }
    }
    assert_eq!(far(f32::INFINITY, 3.0, 0.5), f32::INFINITY);
    assert_eq!(far(f32::MIN, f32::MAX, 0.5), 0.0);
}
