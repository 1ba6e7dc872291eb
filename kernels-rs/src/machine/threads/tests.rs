use super::*;
#[cfg(unix)]
use crate::machine::child::{forked, joined};

#[test]
fn every_task_runs_once_for_any_thread_count() {
    for threads in [1, 2, 3, 8] {
        set_num_threads(threads);
        for tasks in [0, 1, 2, 7, 100] {
            for _ in 0..50 {
                let hits: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
                parallel(tasks, &|i| {
                    hits[i].fetch_add(1, Relaxed);
                });
                assert!(hits.iter().all(|hit| hit.load(Relaxed) == 1), "{threads} threads, {tasks} tasks");
            }
        }
    }
}

#[test]
fn jobs_of_changing_threads_and_lengths_miss_no_task_and_repeat_none() {
    for round in 0..2000 {
        set_num_threads([4, 2, 7, 3][round % 4]);
        let hits: Vec<AtomicUsize> = (0..=round % 23).map(|_| AtomicUsize::new(0)).collect();
        parallel(hits.len(), &|i| {
            hits[i].fetch_add(1, Relaxed);
        });
        assert!(hits.iter().all(|hit| hit.load(Relaxed) == 1), "round {round}: {hits:?}");
    }
}

#[test]
fn a_thread_alone_gets_a_range_as_a_whole() {
    set_num_threads(1);
    let seen = Mutex::new(Vec::new());
    for_ranges(10_000, 100, &|range| seen.lock().unwrap().push(range.len()));
    assert_eq!(*seen.lock().unwrap(), [10_000]);
}

#[test]
fn an_errand_reaches_every_worker_once() {
    static RUNS: Mutex<Vec<std::thread::ThreadId>> = Mutex::new(Vec::new());
    set_num_threads(4);
    parallel(8, &|_| ());
    for wait in [0, 5] {
        std::thread::sleep(Duration::from_millis(wait));
        RUNS.lock().unwrap().clear();
        on_workers(|| RUNS.lock().unwrap().push(std::thread::current().id()));
        let ran = RUNS.lock().unwrap();
        assert!(ran.len() >= 3 && (1..ran.len()).all(|k| !ran[k..].contains(&ran[k - 1])), "{ran:?}");
    }
}

#[test]
fn nested_calls_and_panics() {
    set_num_threads(3);
    let count = AtomicUsize::new(0);
    parallel(4, &|_| {
        parallel(5, &|_| {
            count.fetch_add(1, Relaxed);
        });
    });
    assert_eq!(count.load(Relaxed), 20);
    let caught = catch_unwind(|| parallel(8, &|i| assert!(i != 5, "boom")));
    assert!(caught.is_err());
    parallel(3, &|_| {
        count.fetch_add(1, Relaxed);
    });
    assert_eq!(count.load(Relaxed), 23);
}

#[cfg(unix)]
#[test]
fn a_child_starts_a_pool_though_its_parent_was_starting_one() {
    // What another thread holds while it starts workers.
    while STARTING.swap(true, Acquire) {
        std::thread::yield_now();
    }
    install_fork_handlers();
    let child = forked(|| {
        set_num_threads(2);
        let count = AtomicUsize::new(0);
        parallel(4, &|_| {
            count.fetch_add(1, Relaxed);
        });
        count.load(Relaxed) == 4
    });
    STARTING.store(false, Release);
    joined(child, "the child hangs");
}

#[test]
fn ranges_cover_everything() {
    let total = AtomicUsize::new(0);
    for_ranges(100_003, 1000, &|range| {
        total.fetch_add(range.len(), Relaxed);
    });
    assert_eq!(total.load(Relaxed), 100_003);
}
