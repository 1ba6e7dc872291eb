//! The thread pool: N-1 workers and the caller. Workers spin for a bounded time after a job, then park. Tasks are
//! numbered and claimed one by one; what a task computes must depend on its number alone, so that results do not
//! depend on the number of threads. Nested calls, and calls while another thread uses the pool, run serially.
//!
//! Environment: `PHLOX_NUM_THREADS` (default: the CPUs this process may use), `PHLOX_SPIN_US` (default 50).

use std::any::Any;
use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

type Task<'a> = &'a (dyn Fn(usize) + Sync);

/// The low half of [`Pool::state`] while a job is being written down.
const CLOSED: u32 = u32::MAX;

struct Worker {
    parked: AtomicBool,
    /// Number of the last errand that it ran.
    ran: AtomicUsize,
    thread: OnceLock<Thread>,
}

struct Pool {
    /// High half: number of the job. Low half: next unclaimed task.
    state: AtomicU64,
    task_data: AtomicPtr<()>,
    task_vtable: AtomicPtr<()>,
    tasks: AtomicUsize,
    unfinished: AtomicUsize,
    /// What the first task unwound with.
    payload: Mutex<Option<Box<dyn Any + Send>>>,
    busy: AtomicBool,
    /// Number and function of the last errand for every worker.
    errand: Mutex<(usize, fn())>,
    errands: AtomicUsize,
    workers: Vec<Worker>,
}

static POOL: AtomicPtr<Pool> = AtomicPtr::new(std::ptr::null_mut());
/// Held while a pool is being started.
static STARTING: AtomicBool = AtomicBool::new(false);
static LIMIT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// What a test asked for; tests run side by side. 0 for nothing.
    #[cfg(test)]
    static OF_TEST: Cell<usize> = const { Cell::new(0) };
}

/// Threads that a parallel call uses, the caller included.
pub fn num_threads() -> usize {
    #[cfg(test)]
    if OF_TEST.get() > 0 {
        return OF_TEST.get();
    }
    match LIMIT.load(Relaxed) {
        0 => {
            let asked = std::env::var("PHLOX_NUM_THREADS").ok().and_then(|text| text.parse().ok());
            let count =
                asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).clamp(1, 256);
            LIMIT.store(count, Relaxed);
            count
        }
        count => count,
    }
}

/// Changes the number of threads from now on.
pub fn set_num_threads(count: usize) {
    let count = count.clamp(1, 256);
    #[cfg(test)]
    OF_TEST.set(count);
    #[cfg(not(test))]
    LIMIT.store(count, Relaxed);
}

/// Runs `task(0)`, ..., `task(tasks - 1)`, in any order and on any thread, and waits for all of them. A panic in a
/// task is raised here again after the others have ended; of several, the first.
pub fn parallel(tasks: usize, task: Task<'_>) {
    let threads = num_threads();
    if tasks <= 1 || threads == 1 || tasks >= CLOSED as usize || INSIDE.get() {
        return (0..tasks).for_each(task);
    }
    let pool = pool(threads);
    if pool.busy.swap(true, Acquire) {
        return (0..tasks).for_each(task);
    }
    INSIDE.set(true);
    let outcome = pool.run(tasks, task, threads - 1);
    INSIDE.set(false);
    pool.busy.store(false, Release);
    if let Err(payload) = outcome {
        resume_unwind(payload);
    }
}

/// Runs a function once on every worker and waits for those that have nothing else to do; the others run it after their job.
pub fn on_workers(work: fn()) {
    const PATIENCE: Duration = Duration::from_millis(100);
    // SAFETY: a published pool is never freed.
    let Some(pool) = (unsafe { POOL.load(Acquire).as_ref() }) else { return };
    let number = {
        let mut errand = pool.errand.lock().unwrap_or_else(PoisonError::into_inner);
        *errand = (errand.0 + 1, work);
        pool.errands.store(errand.0, SeqCst);
        errand.0
    };
    let start = Instant::now();
    for worker in &pool.workers {
        let Some(thread) = worker.thread.get() else { continue };
        thread.unpark();
        while worker.ran.load(SeqCst) < number && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_micros(20));
        }
    }
}

/// Tasks to aim for where no result depends on how many there are: these, or four for each of more threads.
pub fn tasks(least: usize) -> usize {
    least.max(4 * num_threads())
}

/// Splits `0..len` into ranges of at least `grain` (but the last) and runs them in parallel; serial below
/// `2 * grain`. Where the cuts lie depends on the number of threads: use it only where a cut cannot change a result.
pub fn for_ranges(len: usize, grain: usize, work: &(dyn Fn(Range<usize>) + Sync)) {
    let pieces = (len / grain.max(1)).min(num_threads() * 4);
    if pieces <= 1 {
        if len > 0 {
            work(0..len);
        }
        return;
    }
    // A multiple of 64 elements, so that neighbours do not share a cache line.
    let step = len.div_ceil(pieces).next_multiple_of(64);
    parallel(len.div_ceil(step), &|index| work(index * step..len.min((index + 1) * step)));
}

/// A raw pointer that tasks share. Each task must write its own part.
pub struct SharedMut<T>(*mut T);

impl<T> Clone for SharedMut<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for SharedMut<T> {}

// SAFETY: the type only carries an address; each use of it is unsafe and argues for itself.
unsafe impl<T> Send for SharedMut<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for SharedMut<T> {}

impl<T> SharedMut<T> {
    /// Wraps the start of a buffer.
    #[inline]
    pub fn new(start: *mut T) -> Self {
        Self(start)
    }

    /// The start of the buffer.
    #[inline]
    pub fn ptr(self) -> *mut T {
        self.0
    }

    /// A part of the buffer, for writing.
    ///
    /// # Safety
    /// In bounds, and no other task touches this part while the slice lives.
    #[inline]
    pub unsafe fn slice<'a>(self, range: Range<usize>) -> &'a mut [T] {
        // SAFETY: the caller promises that the range lies in the buffer and that no other task touches it.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(range.start), range.len()) }
    }
}

fn spin_time() -> Duration {
    static TIME: OnceLock<Duration> = OnceLock::new();
    *TIME.get_or_init(|| {
        let text = std::env::var("PHLOX_SPIN_US").ok();
        Duration::from_micros(text.and_then(|text| text.parse().ok()).unwrap_or(50))
    })
}

/// The pool, started on the first call. It is never freed: workers live as long as the process.
fn pool(threads: usize) -> &'static Pool {
    let current = POOL.load(Acquire);
    // SAFETY: a published pool is never freed.
    if let Some(pool) = unsafe { current.as_ref() }
        && pool.workers.len() + 1 >= threads
    {
        return pool;
    }
    while STARTING.swap(true, Acquire) {
        std::thread::yield_now();
    }
    let current = POOL.load(Acquire);
    // SAFETY: as above.
    let usable = unsafe { current.as_ref() }.filter(|pool| pool.workers.len() + 1 >= threads);
    let pool = usable.unwrap_or_else(|| {
        let pool = Pool::start(threads - 1);
        POOL.store(std::ptr::from_ref(pool).cast_mut(), Release);
        pool
    });
    STARTING.store(false, Release);
    pool
}

impl Pool {
    fn start(workers: usize) -> &'static Self {
        install_fork_handlers();
        let new_worker =
            || Worker { parked: AtomicBool::new(false), ran: AtomicUsize::new(0), thread: OnceLock::new() };
        let pool: &'static Self = Box::leak(Box::new(Self {
            state: AtomicU64::new(CLOSED as u64),
            task_data: AtomicPtr::default(),
            task_vtable: AtomicPtr::default(),
            tasks: AtomicUsize::new(0),
            unfinished: AtomicUsize::new(0),
            payload: Mutex::new(None),
            busy: AtomicBool::new(false),
            errand: Mutex::new((0, || ())),
            errands: AtomicUsize::new(0),
            workers: (0..workers).map(|_| new_worker()).collect(),
        }));
        for index in 0..workers {
            let builder = std::thread::Builder::new().name(format!("phlox-{index}"));
            // A refused thread only means less help: the caller does the work.
            if let Ok(handle) = builder.spawn(move || pool.serve(index)) {
                let _ = pool.workers[index].thread.set(handle.thread().clone());
            }
        }
        pool
    }

    fn run(&self, tasks: usize, task: Task<'_>, helpers: usize) -> std::thread::Result<()> {
        // SAFETY: a fat reference is two pointers; `claim` puts them together again. The borrow outlives every use,
        // since this function returns only when `unfinished` is 0.
        let [data, vtable]: [*mut (); 2] = unsafe { std::mem::transmute(task) };
        let job = (self.state.load(SeqCst) >> 32).wrapping_add(1) << 32;
        // Closing first means that a late worker cannot claim with the fields of two jobs mixed.
        self.state.store(job | CLOSED as u64, SeqCst);
        self.task_data.store(data, SeqCst);
        self.task_vtable.store(vtable, SeqCst);
        self.tasks.store(tasks, SeqCst);
        self.unfinished.store(tasks, SeqCst);
        self.state.store(job, SeqCst);
        for worker in self.workers.iter().take(helpers.min(tasks - 1)) {
            if worker.parked.swap(false, SeqCst)
                && let Some(thread) = worker.thread.get()
            {
                thread.unpark();
            }
        }
        self.work();
        self.wait();
        self.payload().take().map_or(Ok(()), Err)
    }

    fn payload(&self) -> MutexGuard<'_, Option<Box<dyn Any + Send>>> {
        self.payload.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims and runs tasks until none is left.
    fn work(&self) {
        loop {
            let state = self.state.load(SeqCst);
            let tasks = self.tasks.load(SeqCst);
            let data = self.task_data.load(SeqCst);
            let vtable = self.task_vtable.load(SeqCst);
            let index = state as u32;
            if index == CLOSED || index as usize >= tasks {
                return;
            }
            if self.state.compare_exchange(state, state + 1, SeqCst, SeqCst).is_err() {
                continue;
            }
            // SAFETY: the claim succeeded, so the fields belong to this job, and its caller waits for us.
            let task: Task<'_> = unsafe { std::mem::transmute([data, vtable]) };
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| task(index as usize))) {
                self.payload().get_or_insert(payload);
            }
            self.unfinished.fetch_sub(1, SeqCst);
        }
    }

    /// Waits for tasks that others claimed: spins first, then leaves the CPU to them.
    fn wait(&self) {
        let mut rounds = 0u32;
        while self.unfinished.load(SeqCst) > 0 {
            if rounds < 2000 {
                rounds += 1;
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
    }

    fn has_work(&self) -> bool {
        let index = self.state.load(SeqCst) as u32;
        index != CLOSED && (index as usize) < self.tasks.load(SeqCst)
    }

    /// Runs the last errand, where this worker has not run it.
    fn errand(&self, me: &Worker) {
        if me.ran.load(SeqCst) != self.errands.load(SeqCst) {
            let (number, work) = *self.errand.lock().unwrap_or_else(PoisonError::into_inner);
            work();
            me.ran.store(number, SeqCst);
        }
    }

    fn serve(&self, index: usize) {
        INSIDE.set(true);
        let me = &self.workers[index];
        loop {
            let start = Instant::now();
            self.errand(me);
            while !self.has_work() {
                for _ in 0..64 {
                    std::hint::spin_loop();
                }
                if start.elapsed() > spin_time() {
                    me.parked.store(true, SeqCst);
                    while me.parked.load(SeqCst) && !self.has_work() {
                        std::thread::park();
                        self.errand(me);
                    }
                    me.parked.store(false, SeqCst);
                    break;
                }
            }
            self.work();
        }
    }
}

#[cfg(unix)]
pub(crate) fn install_fork_handlers() {
    extern "C" fn child() {
        forget_workers();
    }
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        // SAFETY: the handlers only touch atomics and a thread-local flag.
        unsafe { libc::pthread_atfork(None, None, Some(child)) };
    });
}

#[cfg(not(unix))]
pub(crate) fn install_fork_handlers() {}

/// In a forked child the workers are gone, and so may be the thread that was starting them: the next parallel call starts a
/// new pool.
#[cfg(unix)]
fn forget_workers() {
    POOL.store(std::ptr::null_mut(), SeqCst);
    STARTING.store(false, SeqCst);
    INSIDE.set(false);
}

/// Reads what the environment sets, so that no fork falls into a first reading.
pub(crate) fn init() {
    num_threads();
    spin_time();
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let pid = {
            // What another thread holds while it starts workers.
            while STARTING.swap(true, Acquire) {
                std::thread::yield_now();
            }
            install_fork_handlers();
            // SAFETY: the child computes with atomics and its own threads, and leaves without unwinding.
            let pid = unsafe { libc::fork() };
            if pid == 0 {
                set_num_threads(2);
                let count = AtomicUsize::new(0);
                parallel(4, &|_| {
                    count.fetch_add(1, Relaxed);
                });
                // SAFETY: ends the child at once, no handler of the test program runs.
                unsafe { libc::_exit(i32::from(count.load(Relaxed) != 4)) };
            }
            STARTING.store(false, Release);
            pid
        };
        for _ in 0..1000 {
            let mut status = -1;
            // SAFETY: a child of ours and a place for its status.
            if unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } == pid {
                return assert_eq!(status, 0);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        // SAFETY: our child, which hangs.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        panic!("the child hangs");
    }

    #[test]
    fn ranges_cover_everything() {
        let total = AtomicUsize::new(0);
        for_ranges(100_003, 1000, &|range| {
            total.fetch_add(range.len(), Relaxed);
        });
        assert_eq!(total.load(Relaxed), 100_003);
    }
}
