//! Interpolation.

use super::arg::*;
use crate::ops::interpolation;

type Pair = (usize, usize);

super::ops! {
    interpolate2d(x: Tensor, size: Pair, mode: Text, align_corners: bool)
        => interpolation::interpolate2d(x, size, interpolation::Mode::from_name(mode)?, align_corners);
    interpolate2d_backward(g: Tensor, input_shape: Ints, mode: Text, align_corners: bool)
        => interpolation::interpolate2d_backward(g, input_shape, interpolation::Mode::from_name(mode)?, align_corners);
}
