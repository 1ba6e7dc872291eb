use super::super::concat;
use super::*;
use crate::array::view;
use crate::dtype::{DType, F16};

fn counted(shape: &[usize], from: i32) -> Array {
    let values: Vec<i32> = (from..).take(shape.iter().product()).collect();
    Array::from_slice(&values, shape).unwrap()
}

fn values(x: &Array) -> Vec<i32> {
    x.to_vec().unwrap()
}

#[test]
fn growing_is_joining_and_old_views_stay() {
    for axis in 0..3 {
        let shape = |n: usize| (0..3).map(|at| if at == axis { n } else { at + 2 }).collect::<Vec<_>>();
        let (mut all, mut grown) = (vec![counted(&shape(5), 0)], counted(&shape(5), 0));
        let mut seen = vec![(grown.clone(), values(&grown))];
        let mut copies = 0;
        for step in 0..40 {
            let more = counted(&shape(step % 3), 1000 * step as i32);
            let before = grown.clone();
            grown = append(&before, &more, axis).unwrap();
            copies += usize::from(!grown.storage().same(before.storage()));
            all.push(more);
            let want = concat(&all.iter().collect::<Vec<_>>(), axis).unwrap();
            assert_eq!((grown.shape()[..].to_vec(), values(&grown)), (want.shape()[..].to_vec(), values(&want)));
            seen.push((grown.clone(), values(&grown)));
        }
        assert!((1..=6).contains(&copies), "{copies} copies along axis {axis}");
        for (array, want) in seen {
            assert_eq!(values(&array), want);
        }
    }
}

#[test]
fn the_second_to_append_copies() {
    let first = append(&counted(&[2, 3, 4], 0), &counted(&[2, 1, 4], 50), 1).unwrap();
    let (one, other) = (counted(&[2, 1, 4], 100), counted(&[2, 1, 4], 200));
    let (left, right) = (append(&first, &one, 1).unwrap(), append(&first, &other, 1).unwrap());
    assert!(left.storage().same(first.storage()) && !right.storage().same(first.storage()));
    assert_eq!(values(&left), values(&concat(&[&first, &one], 1).unwrap()));
    assert_eq!(values(&right), values(&concat(&[&first, &other], 1).unwrap()));
    // And so does what grows along another axis, is turned, begins elsewhere or was cut.
    let part = |start: [usize; 3], size: [usize; 3]| view::slice(&left, &start, &size, &[1; 3]).unwrap();
    for (x, axis) in [
        (left.clone(), 0),
        (left.clone(), 2),
        (view::permute_dims(&left, &[1, 0, 2]).unwrap(), 0),
        (part([1, 0, 0], [1, 5, 4]), 1),
        (part([0, 0, 0], [2, 4, 4]), 1),
        (part([0, 0, 0], [2, 5, 2]), 1),
        (view::reshape(&part([0, 0, 0], [1, 5, 4]), &[20]).unwrap(), 0),
    ] {
        let more = view::slice(&x, &vec![0; x.rank()], x.shape(), &vec![1; x.rank()]).unwrap();
        let got = append(&x, &more, axis).unwrap();
        assert_eq!(values(&got), values(&concat(&[&x, &more], axis).unwrap()), "{x:?} along {axis}");
    }
    assert_eq!(values(&append(&left, &one, 1).unwrap()), values(&concat(&[&left, &one], 1).unwrap()));
}

#[test]
fn a_vector_of_the_first_places_takes_no_room_of_later_ones() {
    let rows = append(&counted(&[1, 4], 0), &counted(&[7, 4], 10), 0).unwrap();
    let first = view::slice(&rows, &[0, 0], &[2, 4], &[1, 1]).unwrap();
    let vector = view::reshape(&first, &[8]).unwrap();
    let before = values(&rows);
    assert!(!append(&vector, &counted(&[4], 500), 0).unwrap().storage().same(rows.storage()));
    assert_eq!(values(&rows), before);
}

#[test]
fn new_owners_and_writers_find_no_room() {
    for _ in 0..20 {
        let mut x = append(&counted(&[3], 0), &counted(&[1], 9), 0).unwrap();
        assert!(x.storage().notes().line() > 0 && !x.storage().packed().is_wanted(&layout(), 8));
        x.as_mut_slice::<i32>()[0] = 7;
        assert_eq!(x.storage().notes().line(), 0);
        drop(append(&counted(&[3], 0), &counted(&[1], 9), 0).unwrap());
        assert_eq!(Array::uninit(DType::I32, &[12]).unwrap().storage().notes().line(), 0);
    }
}

fn layout() -> crate::memory::packed::Layout {
    crate::memory::packed::Layout { offset: 0, size: (1, 1), steps: (1, 1), form: 0 }
}

#[test]
fn threads_take_room_once() {
    let base = append(&counted(&[4, 2], 0), &counted(&[1, 2], 100), 0).unwrap();
    let grown = |by: i32| append(&base, &counted(&[1, 2], 1000 * by), 0).unwrap();
    let found: Vec<Array> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|by| scope.spawn(move || grown(by))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(found.iter().filter(|x| x.storage().same(base.storage())).count(), 1);
    for (by, x) in (0..).zip(&found) {
        assert_eq!(values(x), [values(&base), vec![1000 * by, 1000 * by + 1]].concat());
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let x = counted(&[2, 3], 0);
    assert!(append(&x, &counted(&[3, 2], 0), 0).is_err() && append(&x, &x, 2).is_err());
    assert!(append(&x, &counted(&[3], 0), 0).is_err());
    assert!(append(&x, &Array::from_slice(&[F16::default(); 6], &[2, 3]).unwrap(), 0).is_err());
    for shape in [[0, 3], [2, 0]] {
        let empty = Array::zeros(DType::I32, &shape).unwrap();
        assert_eq!(append(&empty, &empty, 0).unwrap().numel(), 0);
    }
}

#[test]
fn a_room_is_filled_in_place_and_forks_copy() {
    let at = |place: i32| Array::from_slice(&[place], &[]).unwrap();
    let row = |by: i32| counted(&[2, 1, 3], 100 * by);
    let first = append_at(&counted(&[2, 8, 3], 1), &row(1), &at(2), 1).unwrap();
    let zeros = Array::zeros(DType::I32, &[2, 5, 3]).unwrap();
    let two = view::slice(&counted(&[2, 8, 3], 1), &[0; 3], &[2, 2, 3], &[1; 3]).unwrap();
    let want = values(&concat(&[&two, &row(1), &zeros], 1).unwrap());
    assert_eq!(values(&first), want);
    // The next place lies in the same memory; a second call for it, or one for another place, copies what is known.
    let next = append_at(&first, &row(2), &at(3), 1).unwrap();
    let fork = append_at(&first, &row(3), &at(3), 1).unwrap();
    let back = append_at(&next, &row(4), &at(1), 1).unwrap();
    assert!(next.storage().same(first.storage()) && !fork.storage().same(first.storage()));
    let row_of = |x: &Array, place| values(&view::slice(x, &[0, place, 0], &[2, 1, 3], &[1; 3]).unwrap());
    assert_eq!((row_of(&next, 2), row_of(&next, 3), row_of(&next, 4)), (values(&row(1)), values(&row(2)), vec![0; 6]));
    assert_eq!((row_of(&fork, 2), row_of(&fork, 3)), (values(&row(1)), values(&row(3))));
    assert_eq!((row_of(&back, 1), row_of(&back, 2)), (values(&row(4)), vec![0; 6]));
    // Places that are none write nothing.
    assert_eq!(values(&append_at(&first, &row(5), &at(-1), 1).unwrap()), vec![0; 48]);
    assert_eq!(values(&append_at(&fork, &row(5), &at(8), 1).unwrap()), values(&fork));
    assert!(append_at(&first, &counted(&[2, 2, 3], 0), &at(4), 1).is_err());
}
