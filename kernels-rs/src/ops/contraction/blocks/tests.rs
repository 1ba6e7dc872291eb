use super::super::Matrix;
use super::super::call::Call;
use super::super::epilogue::Epilogue;
use super::super::format::Single;
use super::*;
use crate::dtype::F16;
use crate::machine::threads::set_num_threads;
use std::sync::Mutex;

/// What the busiest thread has to do, in even shares of all, where tasks of so many elements go to whoever is free.
fn busiest(mut tasks: Vec<usize>, threads: usize) -> f64 {
    tasks.sort_unstable();
    let mut busy = vec![0; threads];
    for task in tasks.iter().rev() {
        *busy.iter_mut().min().expect("a thread") += task;
    }
    *busy.iter().max().expect("a thread") as f64 * threads as f64 / tasks.iter().sum::<usize>() as f64
}

#[test]
fn large_products_keep_many_threads_busy() {
    for threads in [2, 3, 16, 64] {
        set_num_threads(threads);
        for (m, k, n) in [(2048, 2048, 2048), (1024, 1024, 1024), (4000, 512, 1000)] {
            for (rows, cols) in [
                Blocks::new::<Single<f32>>((m, k, n)).grid::<Single<f32>>((m, k, n), true),
                Blocks::new::<Single<F16>>((m, k, n)).grid::<Single<F16>>((m, k, n), true),
            ] {
                let cuts = |len: usize, step: usize| {
                    (0..len).step_by(step).map(move |at| step.min(len - at)).collect::<Vec<_>>()
                };
                let tasks =
                    cuts(m, rows).into_iter().flat_map(|high| cuts(n, cols).into_iter().map(move |wide| high * wide));
                let share = busiest(tasks.collect(), threads);
                assert!(share < 1.45, "{m}x{k}x{n} on {threads} threads, tasks of {rows}x{cols}: {share:.2}");
            }
        }
        let none = Matrix::new(std::ptr::null_mut::<f32>(), (1, 1));
        let call = Call { size: (64, 1024, 8192), a: none, b: none, c: none, end: Epilogue::default() };
        let tasks = Mutex::new(Vec::new());
        call.by_columns(true, 64, &|range| tasks.lock().unwrap().push(range.len()));
        let share = busiest(tasks.into_inner().unwrap(), threads);
        assert!(share < 1.45, "columns on {threads} threads: {share:.2}");
    }
}

#[test]
fn one_row_reads_the_right_side_by_all_threads() {
    let blocks = Blocks { width: WIDE, panel: 64, high: 6, depth: 512, step: 512, rows: 512 };
    for (threads, size, tasks) in
        [(1, 1024, 1), (4, 1024, 4), (8, 1024, 8), (64, 1024, 16), (8, 256, 1), (64, 4096, 64)]
    {
        set_num_threads(threads);
        let (rows, cols) = blocks.wide_grid((1, size, size), true);
        assert_eq!((rows, size.div_ceil(cols)), (1, tasks), "{size} on {threads} threads");
    }
}

#[test]
fn tasks_cover_a_product_in_whole_panels() {
    for n in [1, 16, 17, 63, 64, 65, 400, 1024, 5000] {
        let blocks = Blocks::new::<Single<f32>>((1, 512, n));
        assert!(blocks.panel == blocks.width * lane_count::<f32>() && blocks.high > 0 && blocks.depth > 0);
        for (m, split) in [(1, true), (7, false), (200, true), (3000, true), (3000, false)] {
            let (rows, cols) = blocks.grid::<Single<f32>>((m, 512, n), split);
            assert!((1..=blocks.rows.max(1)).contains(&rows), "{m} rows in tasks of {rows}");
            assert!(cols >= n || cols.is_multiple_of(blocks.panel), "{n} columns in tasks of {cols}");
        }
    }
}
