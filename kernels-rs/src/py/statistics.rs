//! Counts and quantiles.

use super::arg::*;
use crate::ops::statistics;

super::ops! {
    bincount(x: Tensor, minlength: usize) => statistics::bincount(x, minlength);
    histogram(x: Tensor, bins: usize, min: Option<f64>, max: Option<f64>) => statistics::histogram(x, bins, min, max);
    median(x: Tensor, axis: Ints, keepdims: bool)
        => statistics::quantile(x, 0.5, axis, keepdims, statistics::Between::Linear);
    quantile(x: Tensor, q: f64, axis: Ints, keepdims: bool, interpolation: Text)
        => statistics::quantile(x, q, axis, keepdims, statistics::Between::from_name(interpolation)?);
}
