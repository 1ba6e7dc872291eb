use super::*;

#[test]
fn no_array_is_too_large_or_leaves_its_storage() {
    let x = Array::zeros(DType::F32, &[4]).unwrap();
    let view = |shape: &[usize], strides: &[isize], offset| x.with_geometry(shape, strides, offset);
    let room = x.storage().capacity() / 4;
    assert!(view(&[2, 2], &[2, 1], 0).is_ok() && view(&[4], &[-1], 3).is_ok() && view(&[room], &[1], 0).is_ok());
    assert!(view(&[1 << 50, 4], &[0, 1], 0).is_ok() && view(&[0], &[1], room).is_ok());
    for (shape, strides, offset) in [
        (&[1 << 62, 4][..], &[0, 1][..], 0),
        (&[1 << 40, 1 << 40, 0], &[0, 0, 0], 0),
        (&[usize::MAX], &[0], 0),
        (&[room + 1], &[1], 0),
        (&[4], &[-1], 2),
        (&[2], &[isize::MIN], 1),
        (&[2, 2], &[isize::MAX, isize::MAX], 0),
        (&[1], &[1], usize::MAX),
        (&[0], &[1], room + 1),
    ] {
        assert!(view(shape, strides, offset).is_err(), "{shape:?} {strides:?} {offset}");
    }
    assert!(matches!(Array::uninit(DType::Bool, &[1 << 40, 1 << 40, 0]), Err(Error::OutOfMemory(_))));
}
