use super::*;
use crate::ops::samples::floats;

#[test]
fn better_boxes_win_and_nan_covers_nothing() {
    let boxes: Vec<f32> = [
        [0.0, 0.0, 10.0, 10.0],
        [1.0, 1.0, 11.0, 11.0],
        [20.0, 0.0, 30.0, 10.0],
        [0.0, 0.0, f32::NAN, 10.0],
        [0.0, 0.0, 0.0, 0.0],
    ]
    .concat();
    let boxes = Array::from_slice(&boxes, &[5, 4]).unwrap();
    let scores = Array::from_slice(&[0.5_f32, 0.9, 0.1, 1.0, 0.05], &[5]).unwrap();
    assert_eq!(floats(&nms(&boxes, &scores, 0.5).unwrap()), [3.0, 1.0, 2.0, 4.0]);
    assert_eq!(floats(&nms(&boxes, &scores, 0.9).unwrap()), [3.0, 1.0, 0.0, 2.0, 4.0]);
    let none = Array::from_slice::<f32>(&[], &[0]).unwrap();
    assert_eq!(nms(&Array::from_slice::<f32>(&[], &[0, 4]).unwrap(), &none, 0.5).unwrap().numel(), 0);
}
