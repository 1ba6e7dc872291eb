//! Interpolation.

use super::arg::*;
use crate::ops::interpolation;

type Pair = (usize, usize);

super::ops! {
    interpolate(x: Tensor, size: Ints, mode: Text, align_corners: bool, antialias: bool) => {
        let filter = interpolation::Filter::from_name(mode)?;
        interpolation::interpolate(x, size, interpolation::How { filter, align_corners, antialias })
    };
    interpolate2d(x: Tensor, size: Pair, mode: Text, align_corners: bool)
        => interpolation::interpolate2d(x, size, interpolation::Mode::from_name(mode)?, align_corners);
    interpolate2d_backward(g: Tensor, input_shape: Ints, mode: Text, align_corners: bool)
        => interpolation::interpolate2d_backward(g, input_shape, interpolation::Mode::from_name(mode)?, align_corners);
}
