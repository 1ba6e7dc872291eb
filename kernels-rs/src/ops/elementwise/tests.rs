//! Elementwise kernels over random shapes and layouts, against a naive walk.

use crate::array::Array;
use crate::array::scalar::Scalar;
use crate::array::shape;
use crate::array::view;
use crate::dispatch;
use crate::dtype::{BF16, DType, Element, F16};
use crate::machine::threads;
use crate::ops::elementwise::kernel::{binary, unary};
use crate::ops::elementwise::{self, Operand, choice, convert};

/// A small deterministic generator (Knuth's MMIX constants).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as u32
    }

    fn below(&mut self, n: usize) -> usize {
        self.next() as usize % n
    }

    /// An array of that shape with an arbitrary layout.
    fn array(&mut self, dtype: DType, to: &[usize]) -> Array {
        let mut axes: Vec<usize> = (0..to.len()).collect();
        for i in (1..axes.len()).rev() {
            axes.swap(i, self.below(i + 1));
        }
        let plain = self.below(3) == 0;
        let step: Vec<usize> = to.iter().map(|_| if plain { 1 } else { 1 + self.below(2) }).collect();
        // Axis k of the base is axis axes[k] of the result.
        let base: Vec<usize> = axes.iter().map(|&a| (to[a] * step[a]).max(1)).collect();
        let x = self.dense(dtype, &base);
        let mut order = vec![0; axes.len()];
        for (k, &a) in axes.iter().enumerate() {
            order[a] = k;
        }
        let x = if plain { self.dense(dtype, to) } else { view::permute_dims(&x, &order).unwrap() };
        let size: Vec<usize> = to.to_vec();
        let steps: Vec<isize> = step.iter().map(|&s| s as isize).collect();
        let x = view::slice(&x, &vec![0; to.len()], &size, &steps).unwrap();
        let flips: Vec<usize> = (0..to.len()).filter(|_| !plain && self.next().is_multiple_of(3)).collect();
        view::flip(&x, &flips).unwrap()
    }

    fn dense(&mut self, dtype: DType, shape: &[usize]) -> Array {
        let count = shape::numel(shape);
        dispatch!(all dtype, T => {
            let values: Vec<T> = (0..count).map(|_| T::from_f64(self.below(200) as f64 - 100.0)).collect();
            Array::from_slice(&values, shape).unwrap()
        })
    }

    /// A shape that broadcasts to `to`.
    fn narrower(&mut self, to: &[usize]) -> Vec<usize> {
        let skip = self.below(to.len() + 1) * self.below(2);
        to[skip..].iter().map(|&n| if self.next().is_multiple_of(3) { 1 } else { n }).collect()
    }
}

/// The elements of `x` stretched to a shape, in row-major order, one address at a time.
fn elements(x: &Array, to: &[usize]) -> Vec<f64> {
    let strides = shape::broadcast_strides(x.shape(), x.strides(), to);
    (0..shape::numel(to))
        .map(|at| {
            let (mut offset, mut rest) = (0, at);
            for (&len, &step) in to.iter().zip(strides.iter()).rev() {
                offset += (rest % len) as isize * step;
                rest /= len;
            }
            // SAFETY: the index lies inside the stretched shape.
            dispatch!(all x.dtype(), T => unsafe { (*x.ptr::<T>().offset(offset)).to_f64() })
        })
        .collect()
}

/// A value in a dtype and back.
fn through(dtype: DType, value: f64) -> f64 {
    match dtype {
        DType::F16 => F16::from_f64(value).to_f32() as f64,
        DType::BF16 => BF16::from_f64(value).to_f32() as f64,
        DType::F32 => value as f32 as f64,
        DType::F64 => value,
        _ => dispatch!(all dtype, T => T::from_i64(value as i64).to_f64()),
    }
}

const SHAPES: &[&[usize]] = &[
    &[],
    &[1],
    &[7],
    &[0, 3],
    &[3, 5],
    &[600, 3],
    &[3, 600],
    &[5, 1, 40],
    &[17, 33, 19],
    &[2, 3, 4, 5],
    &[300, 210],
    &[40, 31, 50],
    &[9, 270, 33],
    &[40_000],
];

/// From 16 MiB on, flat results are written past the caches.
#[test]
fn large_results_are_whole() {
    let mut random = Random(6);
    for (threads, dtype, count) in
        [(1, DType::F32, (4 << 20) + 77), (3, DType::F64, (2 << 20) + 1), (4, DType::I16, (8 << 20) + 1031)]
    {
        threads::set_num_threads(threads);
        let (a, b) = (random.dense(dtype, &[count]), random.dense(dtype, &[1]));
        let left = elements(&a, &[count]);
        let by = elements(&b, &[1])[0];
        let out = elementwise::binary(&binary::subtract, Operand::Array(&a), Operand::Array(&a)).unwrap();
        assert!(elements(&out, &[count]).iter().all(|&x| x == 0.0), "{dtype:?}");
        let out = elementwise::binary(&binary::multiply, Operand::Array(&b), Operand::Array(&a)).unwrap();
        assert!(elements(&out, &[count]).iter().zip(&left).all(|(out, x)| *out == by * x), "{dtype:?}");
        let out = elementwise::unary(&unary::negative, &a).unwrap();
        assert!(elements(&out, &[count]).iter().zip(&left).all(|(out, x)| *out == -x), "{dtype:?}");
    }
}

#[test]
fn binary_ops_broadcast_over_any_layout() {
    let mut random = Random(1);
    for round in 0..40 {
        threads::set_num_threads(1 + round % 3);
        for &to in SHAPES {
            let dtype = DType::ALL[random.below(12)];
            let (a, b) = (random.narrower(to), random.narrower(to));
            let common = shape::broadcast(&a, &b).unwrap();
            let (a, b) = (random.array(dtype, &a), random.array(dtype, &b));
            let (left, right) = (elements(&a, &common), elements(&b, &common));
            let out = elementwise::binary(&binary::subtract, Operand::Array(&a), Operand::Array(&b)).unwrap();
            assert_eq!((out.dtype(), out.shape()), (dtype, &common));
            let expected: Vec<f64> = left.iter().zip(&right).map(|(a, b)| through(dtype, a - b)).collect();
            assert_eq!(elements(&out, &common), expected, "{dtype:?} {a:?} - {b:?}");
            let out = elementwise::binary(&binary::less, Operand::Array(&a), Operand::Array(&b)).unwrap();
            let expected: Vec<f64> = left.iter().zip(&right).map(|(a, b)| f64::from(u8::from(a < b))).collect();
            assert_eq!(elements(&out, &common), expected, "{dtype:?} {a:?} < {b:?}");
            let out =
                elementwise::binary(&binary::maximum, Operand::Scalar(Scalar::Int(3)), Operand::Array(&a)).unwrap();
            let expected: Vec<f64> = elements(&a, a.shape()).iter().map(|a| a.max(3.0)).collect();
            assert_eq!(elements(&out, a.shape()), expected, "max(3, {a:?})");
        }
    }
}

#[test]
fn unary_ops_casts_and_clips_take_any_layout() {
    let mut random = Random(2);
    for _ in 0..40 {
        for &to in SHAPES {
            let dtype = DType::ALL[random.below(12)];
            let other = DType::ALL[random.below(13)];
            let narrow = random.narrower(to);
            let x = view::broadcast_to(&random.array(dtype, &narrow), to).unwrap();
            let values = elements(&x, to);
            let out = elementwise::unary(&unary::negative, &x).unwrap();
            let expected: Vec<f64> = values.iter().map(|x| through(dtype, -x)).collect();
            // -0.0 == 0.0 here; signs of zero are tested from Python.
            assert_eq!(elements(&out, to), expected, "-{x:?}");
            let out = convert::cast(&x, other).unwrap();
            let expected: Vec<f64> = match other {
                DType::Bool => values.iter().map(|&x| f64::from(u8::from(x != 0.0))).collect(),
                _ if dtype.is_float() => {
                    values.iter().map(|&x| dispatch!(all other, T => T::from_f64(x).to_f64())).collect()
                }
                _ => values.iter().map(|&x| through(other, x)).collect(),
            };
            assert_eq!(elements(&out, to), expected, "{x:?} to {other:?}");
            let out = choice::clip(&x, Some(Scalar::Int(5)), Some(Scalar::Int(50))).unwrap();
            let expected: Vec<f64> = values.iter().map(|x| x.clamp(5.0, 50.0)).collect();
            assert_eq!(elements(&out, to), expected, "clip {x:?}");
        }
    }
}

#[test]
fn where_takes_any_mixture() {
    let mut random = Random(3);
    for _ in 0..40 {
        for &to in SHAPES {
            let dtype = DType::ALL[random.below(13)];
            let shapes = [random.narrower(to), random.narrower(to), random.narrower(to)];
            let partial = shape::broadcast(&shapes[0], &shapes[1]).unwrap();
            let common = shape::broadcast(&partial, &shapes[2]).unwrap();
            let c = random.array(DType::Bool, &shapes[0]);
            let (a, b) = (random.array(dtype, &shapes[1]), random.array(dtype, &shapes[2]));
            let out = choice::select(Operand::Array(&c), Operand::Array(&a), Operand::Array(&b)).unwrap();
            let (truth, left, right) = (elements(&c, &common), elements(&a, &common), elements(&b, &common));
            let expected: Vec<f64> =
                (0..truth.len()).map(|i| if truth[i] == 0.0 { right[i] } else { left[i] }).collect();
            assert_eq!((out.shape(), elements(&out, &common)), (&common, expected), "where {c:?} {a:?} {b:?}");
            let out =
                choice::select(Operand::Array(&c), Operand::Scalar(Scalar::Bool(true)), Operand::Array(&b)).unwrap();
            let partial = shape::broadcast(c.shape(), b.shape()).unwrap();
            let (truth, right) = (elements(&c, &partial), elements(&b, &partial));
            let expected: Vec<f64> = truth.iter().zip(right).map(|(&t, b)| if t == 0.0 { b } else { 1.0 }).collect();
            assert_eq!(elements(&out, &partial), expected, "where {c:?} true {b:?}");
        }
    }
}

#[test]
fn equal_layouts_keep_their_order() {
    let mut random = Random(4);
    let x = view::permute_dims(&random.dense(DType::F32, &[30, 40]), &[1, 0]).unwrap();
    let out = elementwise::unary(&unary::abs, &x).unwrap();
    assert_eq!(out.strides(), x.strides());
    assert_eq!(elements(&out, &[40, 30]), elements(&x, &[40, 30]).iter().map(|x| x.abs()).collect::<Vec<_>>());
}

#[test]
fn mismatches_are_rejected() {
    let (a, b) = (Array::zeros(DType::F32, &[3]).unwrap(), Array::zeros(DType::I32, &[3]).unwrap());
    let c = Array::zeros(DType::F32, &[4]).unwrap();
    let add = |a, b| elementwise::binary(&binary::add, a, b).is_err();
    assert!(add(Operand::Array(&a), Operand::Array(&b)));
    assert!(add(Operand::Array(&a), Operand::Array(&c)));
    assert!(add(Operand::Array(&b), Operand::Scalar(Scalar::Float(1.5))));
    assert!(add(Operand::Array(&b), Operand::Scalar(Scalar::Int(1 << 40))));
    assert!(elementwise::unary(&unary::exp, &b).is_err());
    assert!(elementwise::unary(&unary::logical_not, &a).is_err());
    let minus = Operand::Scalar(Scalar::Int(-1));
    assert!(elementwise::binary(&binary::pow, Operand::Array(&b), minus).is_err());
}
