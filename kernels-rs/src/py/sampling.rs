//! Images read between their pixels, and boxes on them.

use super::arg::*;
use crate::ops::sampling::{self, Margin, Mode, Settings};

super::ops! {
    grid_sample(x: Tensor, grid: Tensor, mode: Text, padding_mode: Text, align_corners: bool) => {
        let (mode, margin) = (Mode::from_name(mode)?, Margin::from_name(padding_mode)?);
        sampling::grid_sample(x, grid, Settings { mode, margin, align_corners })
    };
    nms(boxes: Tensor, scores: Tensor, iou_threshold: f64) => sampling::nms(boxes, scores, iou_threshold);
}
