use super::*;
use crate::machine::threads::{parallel, set_num_threads};
use std::hint::black_box;

#[test]
fn lists_without_memory_end_the_call_as_an_error() {
    const TOO_MUCH: usize = 1 << 60;
    #[track_caller]
    fn refused(work: &dyn Fn()) {
        let result = guarded(|| {
            work();
            Ok(())
        });
        assert!(matches!(result, Err(Error::OutOfMemory(bytes)) if bytes > TOO_MUCH), "{result:?}");
    }
    // Seen by nobody, a list would not be asked for.
    refused(&|| drop(black_box(filled(0u64, TOO_MUCH))));
    refused(&|| drop(black_box(reserved::<u16>(TOO_MUCH))));
    refused(&|| grow(&mut vec![1u32], TOO_MUCH, 0));
    refused(&|| drop(collected((0..TOO_MUCH).map(|k| k as u64))));
    refused(&|| with_scratch(TOO_MUCH, |_: &mut [f64]| ()));
    refused(&|| with_buffers([1, usize::MAX / 2, usize::MAX / 2], |_: [&mut [f32]; 3]| ()));
    for threads in [1, 3] {
        set_num_threads(threads);
        refused(&|| parallel(5, &|task| drop(black_box(filled(0u8, if task == 3 { 1 << 62 } else { 1 })))));
    }
    refused(&|| Arena::with([1, usize::MAX, 1], |_| ()));
    assert_eq!(guarded(|| Ok(filled(7, 3))), Ok(vec![7, 7, 7]));
    assert!(catch_unwind(|| guarded(|| -> Result<()> { panic!("no matter of memory") })).is_err());
}
#[test]
fn parts_of_a_room_begin_on_lines_and_do_not_meet() {
    Arena::with([3, 0, 65, 8], |mut room| {
        let (a, none, b) = (room.take::<u8>(3), room.take::<f64>(0), room.take::<u8>(65));
        let last = room.take::<f64>(1);
        a.fill(1);
        b.fill(2);
        last.fill(3.0);
        assert!(none.is_empty() && a == [1; 3] && b == [2; 65] && *last == [3.0]);
        assert!([a.as_ptr() as usize, b.as_ptr() as usize, last.as_ptr() as usize].iter().all(|at| at % 64 == 0));
        assert!(catch_unwind(AssertUnwindSafe(|| room.take::<u8>(1).len())).is_err());
    });
}
