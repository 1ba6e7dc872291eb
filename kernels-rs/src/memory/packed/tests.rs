use super::*;
use crate::array::Array;
use crate::dtype::DType;

fn layout(form: usize) -> Layout {
    Layout { offset: 0, size: (2, 3), steps: (3, 1), form }
}

#[test]
fn kept_data_lives_as_long_as_the_data() {
    let array = Array::zeros(DType::F32, &[2, 3]).unwrap();
    let (view, list) = (array.clone(), array.storage().packed());
    assert!(list.is_untouched() && !list.is_wanted(&layout(0), 8));
    assert!(list.is_wanted(&layout(0), 8) && !list.is_wanted(&layout(0), usize::MAX));
    let data = Memory::new(100).unwrap();
    let at = data.data();
    assert!(std::ptr::eq(list.keep(layout(0), data).data(), at));
    // The second to come is dropped, whoever looks sees the first, and other layouts have their own.
    assert!(std::ptr::eq(list.keep(layout(0), Memory::new(100).unwrap()).data(), at));
    assert!(list.find(&layout(1)).is_none());
    assert!(std::ptr::eq(view.storage().packed().find(&layout(0)).unwrap().data(), at));
    drop(array);
    assert!(view.storage().packed().find(&layout(0)).is_some());
}

fn piece(at: usize) -> Layout {
    Layout { offset: 65_536 * at, ..layout(0) }
}

#[test]
fn pieces_that_are_read_once_are_not_wanted() {
    let array = Array::zeros(DType::F32, &[2, 3]).unwrap();
    let list = array.storage().packed();
    for _ in 0..2 {
        assert!((0..1000).all(|at| !list.is_wanted(&piece(at), 8)));
    }
    // Layers of one block that are read by turns are, from their second use on.
    let layers = Array::zeros(DType::F32, &[2, 3]).unwrap();
    let wanted = |at| layers.storage().packed().is_wanted(&piece(at), 8);
    assert!((0..MOST_LAYOUTS).all(|at| !wanted(at)) && (0..MOST_LAYOUTS).all(wanted));
}

#[test]
fn a_block_keeps_so_many_layouts() {
    let array = Array::zeros(DType::F32, &[2, 3]).unwrap();
    let list = array.storage().packed();
    list.want_all();
    for at in (0..1000).filter(|&at| list.is_wanted(&piece(at), 8)) {
        list.keep(piece(at), Memory::new(8).unwrap());
    }
    assert_eq!(list.count(), MOST_LAYOUTS);
}

#[test]
fn write_access_and_new_owners_find_nothing() {
    let mut array = Array::zeros(DType::F32, &[5, 7]).unwrap();
    let fill = |array: &Array| {
        array.storage().packed().is_wanted(&layout(0), 8);
        array.storage().packed().keep(layout(0), Memory::new(8).unwrap());
    };
    fill(&array);
    array.as_mut_slice::<f32>()[0] = 1.0;
    assert!(array.storage().packed().is_untouched() && array.storage().packed().find(&layout(0)).is_none());
    // The allocator hands the same block out again.
    for _ in 0..100 {
        let array = Array::uninit(DType::F32, &[5, 7]).unwrap();
        assert!(array.storage().packed().is_untouched() && array.storage().packed().find(&layout(0)).is_none());
        fill(&array);
    }
}

#[test]
fn threads_agree_on_one() {
    let array = Array::zeros(DType::F32, &[4, 4]).unwrap();
    for form in 0..200 {
        let found: Vec<usize> = std::thread::scope(|scope| {
            let one = || array.storage().packed().keep(layout(form), Memory::new(64).unwrap()).data() as usize;
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(found.iter().all(|&at| at == found[0]));
    }
}
