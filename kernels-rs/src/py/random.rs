//! Random numbers.

use super::arg::*;
use crate::array::shape::numel;
use crate::ops::random;

super::ops! {
    random_bits(count: usize, key: u64, counter: u64, dtype: Dtype) [work = count]
        => random::random_bits(count, key, counter, dtype);
    random_normal(shape: Ints, mean: f64, std: f64, dtype: Dtype, key: u64, counter: u64) [work = numel(shape)]
        => random::random_normal(shape, mean, std, dtype, key, counter);
    random_uniform(shape: Ints, low: f64, high: f64, dtype: Dtype, key: u64, counter: u64) [work = numel(shape)]
        => random::random_uniform(shape, low, high, dtype, key, counter);
}
