//! The thread pool: N-1 workers and the caller. Workers stay awake for a bounded time after a job, since to be woken takes as
//! long as a small job: first they spin, then they let others have the core that want it; in the end they park. Tasks are
//! numbered; each thread has a share of them that follow each other, and claims one by one, first of its own share, then of
//! others. So a thread works on the part of an array that it worked on before, which its caches hold. What a task computes
//! must depend on its number alone, so that results do not depend on the number of threads. Nested calls, and calls while
//! another thread uses the pool, run serially.
//!
//! Environment: `PHLOX_NUM_THREADS` (default: the CPUs this process may use), `PHLOX_SPIN_US` (how long workers stay awake; 300
//! by default, since between two maps of a language model Python takes up to 200).

#[cfg(test)]
mod tests;

use super::fork::on_fork;
use crate::error::Result;
use std::any::Any;
use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

type Task<'a> = &'a (dyn Fn(usize) + Sync);

/// High half: number of the job. Low half: tasks of the share that nobody has claimed. Lines of the caches come in pairs.
#[repr(align(128))]
struct Share(AtomicU64);

struct Worker {
    parked: AtomicBool,
    /// Number of the last errand that it ran.
    ran: AtomicUsize,
    thread: OnceLock<Thread>,
}

struct Pool {
    /// Number of the last job, told when all of it can be claimed.
    job: AtomicU32,
    /// One for each thread, of which the job uses so many.
    shares: Vec<Share>,
    used: AtomicUsize,
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
/// WebAssembly in a browser has one thread.
const MOST: usize = if cfg!(target_family = "wasm") { 1 } else { 256 };
static LIMIT: AtomicUsize = AtomicUsize::new(0);

/// How long a worker waits without asking whether others want its core.
const SPIN: Duration = Duration::from_micros(50);

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
                asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).clamp(1, MOST);
            LIMIT.store(count, Relaxed);
            count
        }
        count => count,
    }
}

/// Changes the number of threads from now on.
pub fn set_num_threads(count: usize) {
    let count = count.clamp(1, MOST);
    #[cfg(test)]
    OF_TEST.set(count);
    #[cfg(not(test))]
    LIMIT.store(count, Relaxed);
}

/// As [`parallel`], of tasks that can fail: all of them run, and one of their errors is returned.
pub fn try_parallel(tasks: usize, task: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> {
    let failed = Mutex::new(Ok(()));
    parallel(tasks, &|index| {
        let done = task(index);
        if done.is_err() {
            *failed.lock().expect("never poisoned") = done;
        }
    });
    failed.into_inner().expect("never poisoned")
}

/// Runs `task(0)`, ..., `task(tasks - 1)`, in any order and on any thread, and waits for all of them. A panic in a
/// task is raised here again after the others have ended; of several, the first.
pub fn parallel(tasks: usize, task: Task<'_>) {
    let threads = num_threads();
    if tasks <= 1 || threads == 1 || tasks > u32::MAX as usize || INSIDE.get() {
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
    let threads = num_threads();
    let pieces = (len / grain.max(1)).min(threads * 4);
    if pieces <= 1 || threads == 1 {
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
        std::slice::from_raw_parts_mut(self.0.add(range.start), range.len())
    }
}

fn awake_time() -> Duration {
    static TIME: OnceLock<Duration> = OnceLock::new();
    *TIME.get_or_init(|| {
        let text = std::env::var("PHLOX_SPIN_US").ok();
        Duration::from_micros(text.and_then(|text| text.parse().ok()).unwrap_or(300))
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
            job: AtomicU32::new(0),
            shares: (0..=workers).map(|_| Share(AtomicU64::new(0))).collect(),
            used: AtomicUsize::new(0),
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
        let (job, used) = (self.job.load(SeqCst).wrapping_add(1), tasks.min(helpers + 1));
        // No task of the job before is unclaimed, so nobody claims one with fields of two jobs mixed.
        self.task_data.store(data, SeqCst);
        self.task_vtable.store(vtable, SeqCst);
        self.tasks.store(tasks, SeqCst);
        self.used.store(used, SeqCst);
        self.unfinished.store(tasks, SeqCst);
        for (place, share) in self.shares[..used].iter().enumerate() {
            let unclaimed = end_of(place, tasks, used) - place * tasks / used;
            share.0.store(u64::from(job) << 32 | unclaimed as u64, SeqCst);
        }
        self.job.store(job, SeqCst);
        for worker in self.workers.iter().take(helpers.min(tasks - 1)) {
            if worker.parked.swap(false, SeqCst)
                && let Some(thread) = worker.thread.get()
            {
                thread.unpark();
            }
        }
        self.work(0);
        self.wait();
        self.payload().take().map_or(Ok(()), Err)
    }

    fn payload(&self) -> MutexGuard<'_, Option<Box<dyn Any + Send>>> {
        self.payload.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims and runs tasks until none is left, from the share of this thread on.
    fn work(&self, thread: usize) {
        let used = self.used.load(SeqCst);
        for place in 0..used {
            let place = (thread + place) % used;
            while let Some((task, index)) = self.claim(place) {
                if let Err(payload) = catch_unwind(AssertUnwindSafe(|| task(index))) {
                    self.payload().get_or_insert(payload);
                }
                self.unfinished.fetch_sub(1, SeqCst);
            }
        }
    }

    /// The next task of a share, with its number.
    fn claim(&self, place: usize) -> Option<(Task<'_>, usize)> {
        loop {
            let share = self.shares[place].0.load(SeqCst);
            let unclaimed = share as u32 as usize;
            if unclaimed == 0 {
                return None;
            }
            let (tasks, used) = (self.tasks.load(SeqCst), self.used.load(SeqCst));
            let data = self.task_data.load(SeqCst);
            let vtable = self.task_vtable.load(SeqCst);
            if self.shares[place].0.compare_exchange(share, share - 1, SeqCst, SeqCst).is_ok() {
                // SAFETY: the claim succeeded, so this task was unclaimed all along and the fields belong to its job,
                // whose caller waits for us.
                let task: Task<'_> = unsafe { std::mem::transmute([data, vtable]) };
                return Some((task, end_of(place, tasks, used) - unclaimed));
            }
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
        let mut seen = 0;
        loop {
            let start = Instant::now();
            self.errand(me);
            while self.job.load(SeqCst) == seen {
                for _ in 0..64 {
                    std::hint::spin_loop();
                }
                let waited = start.elapsed();
                if waited <= awake_time() {
                    if waited > SPIN {
                        std::thread::yield_now();
                    }
                } else {
                    me.parked.store(true, SeqCst);
                    while me.parked.load(SeqCst) && self.job.load(SeqCst) == seen {
                        std::thread::park();
                        self.errand(me);
                    }
                    me.parked.store(false, SeqCst);
                    break;
                }
            }
            seen = self.job.load(SeqCst);
            self.work(index + 1);
        }
    }
}

/// The task behind the last one of a share; shares differ by one task at most.
fn end_of(place: usize, tasks: usize, shares: usize) -> usize {
    (place + 1) * tasks / shares
}

pub(crate) fn install_fork_handlers() {
    /// The workers are gone, and so may be the thread that was starting them: the next parallel call starts a new pool.
    extern "C" fn child() {
        POOL.store(std::ptr::null_mut(), SeqCst);
        STARTING.store(false, SeqCst);
        INSIDE.set(false);
    }
    static ONCE: Once = Once::new();
    // SAFETY: it touches atomics and a thread-local flag.
    unsafe { on_fork(&ONCE, None, None, child) };
}

/// Reads what the environment sets, so that no fork falls into a first reading.
pub(crate) fn init() {
    num_threads();
    awake_time();
}
