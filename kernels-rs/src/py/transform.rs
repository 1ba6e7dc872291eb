//! Transforms.

use super::arg::*;
use crate::ops::transform::{self, Settings};

super::ops! {
    dft(re: Tensor, im: OptTensor, axis: usize, inverse: bool, half: bool)
        => transform::dft(re, im, Settings { axis, inverse, half });
    irdft(re: Tensor, im: Tensor, axis: usize, n: usize) => transform::irdft(re, im, axis, n);
}
