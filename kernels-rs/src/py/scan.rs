//! Scans.

use super::arg::*;
use crate::ops::scan;

super::ops! {
    cumsum(x: Tensor, axis: usize) => scan::cumsum(x, axis);
}
