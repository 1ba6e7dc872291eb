//! Random arrays of every layout, and slow ways to look at them, for the tests of several modules.

use crate::array::Array;
use crate::array::source::Source;
use crate::array::view;
use crate::dispatch;
use crate::dtype::{DType, Element, Kind};
use std::ops::Range;

/// A small generator (xorshift), the same numbers on every run.
pub struct Rng(u64);

impl Rng {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// In `0..count`.
    pub fn below(&mut self, count: usize) -> usize {
        ((self.bits() >> 32) as usize) % count
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// Floats that lie nowhere: each part is computed where it is asked for, as by a program.
pub struct Computed;

impl Computed {
    /// The element of that number.
    pub fn at(number: usize) -> f32 {
        (number * 37 % 101) as f32 / 8.0 - 6.0
    }
}

impl Source for Computed {
    fn size(&self) -> usize {
        size_of::<f32>()
    }
    fn room(&self, len: usize) -> usize {
        len
    }
    unsafe fn part(&self, range: Range<usize>, to: *mut [u8]) -> *const u8 {
        assert!(range.len() * self.size() <= to.len());
        let to = to.cast::<[u8; 4]>();
        for (at, number) in range.enumerate() {
            to.add(at).write(Self::at(number).to_ne_bytes());
        }
        to.cast_const().cast()
    }
}

/// Fills a dense array: floats in [-4, 4) with some NaN and infinities when `special`, any integers, any bools.
pub fn dense(rng: &mut Rng, dtype: DType, shape: &[usize], special: bool) -> Array {
    let mut out = Array::uninit(dtype, shape).unwrap();
    dispatch!(all dtype, T => {
        for slot in out.as_mut_slice::<T>() {
            *slot = match dtype.kind() {
                Kind::Float if special && rng.below(30) == 0 => {
                    T::from_f64(rng.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0]))
                }
                Kind::Float if special => T::from_f64(rng.below(17) as f64 - 8.0),
                Kind::Float => T::from_f64(rng.below(1 << 20) as f64 / (1 << 17) as f64 - 4.0),
                Kind::Int if special && dtype.name().starts_with('u') => T::from_i64(rng.below(9) as i64),
                Kind::Int if special => T::from_i64(rng.below(9) as i64 - 4),
                Kind::Int => T::from_i64(rng.bits() as i64),
                Kind::Bool => T::from_i64(rng.below(2) as i64),
            };
        }
    });
    out
}

/// A random view of a random array: of these lengths up to order, with steps, flips, permuted or stretched axes.
pub fn view_of(rng: &mut Rng, dtype: DType, shape: &[usize], special: bool) -> Array {
    let rank = shape.len();
    // The axes of the base, in another order than those of the result.
    let mut order: Vec<usize> = (0..rank).collect();
    for i in (1..rank).rev() {
        if rng.below(2) == 0 {
            order.swap(i, rng.below(i + 1));
        }
    }
    let steps: Vec<isize> = (0..rank).map(|_| rng.pick(&[1, 1, 1, 1, -1, 2, -3])).collect();
    let stretched: Vec<bool> = (0..rank).map(|_| rng.below(12) == 0).collect();
    let mut base = Vec::new();
    let (mut start, mut size) = (Vec::new(), Vec::new());
    for &axis in &order {
        let len = if stretched[axis] { 1 } else { shape[axis] };
        let reach = len.saturating_sub(1) * steps[axis].unsigned_abs() + usize::from(len > 0);
        let (before, after) = (rng.below(3), rng.below(3));
        base.push(reach + before + after);
        size.push(len);
        start.push(if steps[axis] < 0 { before + reach.saturating_sub(1) } else { before });
    }
    let array = dense(rng, dtype, &base, special);
    let base_steps: Vec<isize> = order.iter().map(|&axis| steps[axis]).collect();
    let array = view::slice(&array, &start, &size, &base_steps).unwrap();
    let back: Vec<usize> = (0..rank).map(|axis| order.iter().position(|&o| o == axis).unwrap()).collect();
    view::broadcast_to(&view::permute_dims(&array, &back).unwrap(), shape).unwrap()
}

/// A random shape of at most `rank` axes.
pub fn shape(rng: &mut Rng, rank: usize, lengths: &[usize]) -> Vec<usize> {
    (0..rng.below(rank + 1)).map(|_| rng.pick(lengths)).collect()
}

/// Where the elements lie, in row-major order, from element (0, 0, ...) on.
pub fn offsets(x: &Array) -> Vec<isize> {
    let mut out = vec![0];
    for (&len, &step) in x.shape().iter().zip(x.strides().iter()) {
        out = out.iter().flat_map(|&at| (0..len as isize).map(move |i| at + i * step)).collect();
    }
    out
}

/// The elements in row-major order, found one by one.
pub fn elements<T: Element>(x: &Array) -> Vec<T> {
    // SAFETY: the offsets are those of elements.
    offsets(x).into_iter().map(|at| unsafe { *x.ptr::<T>().offset(at) }).collect()
}

/// As `f64`.
pub fn floats(x: &Array) -> Vec<f64> {
    dispatch!(all x.dtype(), T => elements::<T>(x).into_iter().map(Element::to_f64).collect())
}

/// Every index into a shape, in row-major order.
pub fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut out = vec![vec![]];
    for &len in shape {
        out = out.iter().flat_map(|index| (0..len).map(move |i| [&index[..], &[i]].concat())).collect();
    }
    out
}

/// The same four axes in another layout: as they are, channels last, columns with gaps, or both last axes turned.
pub fn placed(x: &Array, layout: usize) -> Array {
    let turned = |order: [usize; 4]| {
        let there = view::permute_dims(x, &order).unwrap().contiguous().unwrap();
        let back: Vec<usize> = (0..4).map(|axis| order.iter().position(|&o| o == axis).unwrap()).collect();
        view::permute_dims(&there, &back).unwrap()
    };
    match layout % 4 {
        0 => x.clone(),
        1 => turned([0, 2, 3, 1]),
        2 => {
            let doubled = crate::ops::movement::concat(&[x, x], 3).unwrap();
            let start = [0, 0, 0, x.shape()[3]];
            view::slice(&doubled, &start, x.shape(), &[1; 4]).unwrap()
        }
        _ => turned([0, 1, 3, 2]),
    }
}
