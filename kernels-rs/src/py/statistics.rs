//! Counts.

use super::arg::*;
use crate::ops::statistics;

super::ops! {
    bincount(x: Tensor, minlength: usize) => statistics::bincount(x, minlength);
}
