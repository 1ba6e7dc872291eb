//! Distances between the rows of two matrices.

use super::arg::*;
use crate::ops::distance;

super::ops! {
    cdist(x1: Tensor, x2: Tensor, p: f64) => distance::cdist(x1, x2, p);
}
