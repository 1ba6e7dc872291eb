use super::*;

#[test]
fn classes_are_monotone_and_tight() {
    let mut last = (0, 64, 0);
    for bytes in (1..5000).chain((0..40).map(|k| (1usize << k) + 1)).chain((6..40).map(|k| 1usize << k)) {
        let (class, capacity) = class_of(bytes);
        assert!(capacity >= bytes && capacity % ALIGN == 0 && class < CLASSES, "{bytes}");
        assert!(capacity <= bytes.max(64) + bytes / 4 + 64, "{bytes} -> {capacity}");
        assert_eq!(class_of(capacity).1, capacity, "{bytes}");
        if bytes > last.2 {
            assert!(class >= last.0 && capacity >= last.1);
            last = (class, capacity, bytes);
        }
    }
}

#[test]
fn every_size_is_served_or_refused() {
    for power in 0..64 {
        for bytes in [(1usize << power) - 1, 1 << power, (1 << power) + 1] {
            if bytes <= LARGEST {
                let (class, capacity) = class_of(bytes);
                assert!(class < CLASSES && capacity >= bytes, "{bytes}");
            }
            if power > 50 {
                assert!(matches!(acquire(bytes), Err(Error::OutOfMemory(_))), "{bytes}");
            }
        }
    }
    assert!(acquire(usize::MAX).is_err());
}

#[test]
fn a_panic_under_the_lock_gives_it_back() {
    let panicked = std::panic::catch_unwind(|| GLOBAL.with(|_| panic!("inside the lock")));
    assert!(panicked.is_err());
    cached_bytes();
}

#[test]
fn blocks_come_back_aligned_and_counted() {
    for bytes in [0, 1, 64, 1000, 70_000, MAPPED + 1, 3 << 20] {
        let block = acquire(bytes).unwrap();
        // SAFETY: just acquired.
        let data = unsafe { block.as_ref().data.as_ptr() };
        assert_eq!(data as usize % ALIGN, 0);
        // SAFETY: the block holds at least `bytes` bytes and is ours until released.
        unsafe {
            data.write_bytes(7, bytes);
            release(block);
        }
        let again = acquire(bytes).unwrap();
        // SAFETY: nobody uses it.
        unsafe { release(again) };
    }
    assert!(peak_bytes() >= 3 << 20);
}
