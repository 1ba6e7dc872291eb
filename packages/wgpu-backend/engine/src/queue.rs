//! The thread that hands work to the driver, in the order in which it was sent.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::ticket::State;

pub const PAUSE: Duration = Duration::from_micros(20); // between looks: with what a sleep adds, 70

/// One dispatch. `offset` is that of its numbers in the uniform, if it has some.
#[derive(Clone)]
pub struct Pass {
    pub pipeline: wgpu::ComputePipeline,
    pub group: wgpu::BindGroup,
    pub offset: Option<u32>,
    pub grid: [u32; 3],
}

/// Bytes to copy between buffers.
pub struct Copy {
    pub from: wgpu::Buffer,
    pub first: u64,
    pub to: wgpu::Buffer,
    pub at: u64,
    pub nbytes: u64,
}

/// Where the clock of the GPU is read: before and after the passes.
pub struct Clock {
    pub queries: wgpu::QuerySet,
    pub ticks: wgpu::Buffer,
}

#[derive(Default)]
pub struct Batch {
    pub passes: Vec<Pass>,
    /// Numbers that passes read and the ring lacks, and where they go.
    pub numbers: Vec<u8>,
    pub numbers_first: usize,
    pub copies: Vec<Copy>,
    pub clock: Option<Clock>,
    /// What to map when all is done, and whom to tell.
    pub map: Option<(wgpu::Buffer, u64, Arc<State>)>,
    /// Whom to tell when all is done.
    pub done: Option<Arc<State>>,
}

/// Where processes meet: what is sent behind it waits until all are there.
pub struct Meeting {
    /// What was sent before is done.
    pub done: Arc<State>,
    /// Of each process, the address of the word that says where it is; they see one memory.
    pub words: Vec<usize>,
    pub own: usize,
    pub turn: u32,
    /// How long to wait for the others, which a process that is gone would never end.
    pub most: Duration,
}

pub enum Job {
    Batch(Batch),
    Write(wgpu::Buffer, Vec<u8>),
    Meet(Meeting),
}

/// What went wrong in the driver, until somebody asks.
#[derive(Default)]
pub struct Faults {
    first: Mutex<Option<String>>,
    lost: Mutex<Option<String>>,
}

impl Faults {
    pub fn note(&self, message: String) {
        self.first.lock().unwrap().get_or_insert(message);
    }

    pub fn lose(&self, message: &str) {
        self.lost.lock().unwrap().get_or_insert(format!("Parent device is lost: {message}"));
    }

    fn is_lost(&self) -> bool {
        self.lost.lock().unwrap().is_some()
    }

    /// A loss, each time; another fault once.
    pub fn take(&self) -> Option<String> {
        let lost = self.lost.lock().unwrap().clone();
        lost.or_else(|| self.first.lock().unwrap().take())
    }
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    /// Whether the thread sleeps until there are some.
    asleep: bool,
    over: bool,
}

/// What is to be handed over, and to whom.
struct Line {
    waiting: Mutex<Waiting>,
    came: Condvar,
    /// Held by who hands over, so that jobs keep their order.
    turn: Mutex<()>,
    device: wgpu::Device,
    queue: wgpu::Queue,
    ring: wgpu::Buffer,
    faults: Arc<Faults>,
    polling: Arc<Mutex<()>>,
}

pub struct Worker {
    line: Arc<Line>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Worker {
    pub fn start(
        device: wgpu::Device,
        queue: wgpu::Queue,
        ring: wgpu::Buffer,
        faults: Arc<Faults>,
        polling: Arc<Mutex<()>>,
    ) -> Self {
        let (waiting, came, turn) = (Mutex::default(), Condvar::new(), Mutex::new(()));
        let line = Arc::new(Line { waiting, came, turn, device, queue, ring, faults, polling });
        let own = line.clone();
        let thread = std::thread::Builder::new().name("phlox-wgpu".into()).spawn(move || own.serve()).ok();
        Self { line, thread: Mutex::new(thread) }
    }

    pub fn send(&self, job: Job) {
        if self.leave(job) {
            self.line.came.notify_one();
        }
    }

    /// Send a job to which the caller sees by `reach`; whether the thread sleeps on.
    pub fn leave(&self, job: Job) -> bool {
        let mut waiting = self.line.waiting.lock().unwrap();
        if waiting.over {
            drop(waiting);
            refuse(job);
            return false;
        }
        waiting.jobs.push_back(job);
        waiting.asleep
    }

    /// See that all that was sent is with the driver. The caller hands it over, which takes less
    /// time than to wake the thread.
    pub fn reach(&self) {
        self.line.hand_over();
    }

    /// Hand over the next job, if there is one and nobody else does so: for who waits for what was
    /// sent, and not for what was sent behind it.
    pub fn help(&self) {
        if let Ok(_turn) = self.line.turn.try_lock() {
            self.line.hand_over_next();
        }
    }

    /// Hand over what was sent and end.
    pub fn stop(&self) {
        self.line.hand_over();
        self.line.waiting.lock().unwrap().over = true;
        self.line.came.notify_one();
        if let Some(thread) = self.thread.lock().unwrap().take() {
            let _ = thread.join();
        }
    }
}

impl Line {
    fn serve(&self) {
        let mut waiting = self.waiting.lock().unwrap();
        loop {
            while waiting.jobs.is_empty() && !waiting.over {
                waiting.asleep = true;
                waiting = self.came.wait(waiting).unwrap();
            }
            waiting.asleep = false;
            if waiting.jobs.is_empty() {
                return;
            }
            drop(waiting);
            self.hand_over();
            waiting = self.waiting.lock().unwrap();
        }
    }

    fn hand_over(&self) {
        let _turn = self.turn.lock().unwrap();
        while self.hand_over_next() {}
    }

    /// Whether there was a job, for who holds the turn.
    fn hand_over_next(&self) -> bool {
        let next = self.waiting.lock().unwrap().jobs.pop_front();
        let Some(job) = next else { return false };
        if catch_unwind(AssertUnwindSafe(|| self.run(job))).is_err() {
            self.faults.lose("the driver failed on what was submitted");
            let mut waiting = self.waiting.lock().unwrap();
            waiting.over = true;
            waiting.jobs.drain(..).for_each(refuse);
        }
        true
    }

    fn run(&self, job: Job) {
        match job {
            Job::Batch(batch) => submit(&self.device, &self.queue, &self.ring, batch),
            Job::Write(buffer, data) => self.queue.write_buffer(&buffer, 0, &data),
            Job::Meet(meeting) => self.meet(&meeting),
        }
    }

    /// Wait until the GPU has done what was sent before, and the others' have too.
    fn meet(&self, meeting: &Meeting) {
        let word = |address: usize| {
            let place = std::ptr::with_exposed_provenance_mut::<u32>(address);
            // SAFETY: the caller of `meet` keeps the words, which nobody uses but as atomic ones.
            unsafe { AtomicU32::from_ptr(place) }
        };
        let gone = || self.faults.is_lost();
        while meeting.done.arrived().is_none() && !gone() {
            poll(&self.device, &self.polling, &self.faults, wgpu::PollType::Poll);
            std::thread::sleep(PAUSE);
        }
        if meeting.done.arrived() != Some(true) || gone() {
            return; // The others would take what was never written.
        }
        word(meeting.words[meeting.own]).store(meeting.turn, Ordering::Release);
        let behind = |address: &usize| word(*address).load(Ordering::Acquire) < meeting.turn;
        let began = Instant::now();
        while meeting.words.iter().any(behind) && !gone() {
            if began.elapsed() > meeting.most {
                self.faults.lose("another process did not come to where they meet");
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// Let the driver tell what is done. No two threads do so at once, which it does not stand.
pub fn poll(device: &wgpu::Device, polling: &Mutex<()>, faults: &Faults, how: wgpu::PollType) {
    let _one = polling.lock().unwrap_or_else(PoisonError::into_inner);
    // The crate panics where the device is lost.
    if catch_unwind(AssertUnwindSafe(|| device.poll(how))).is_err() {
        faults.lose("the driver failed on what it ran");
    }
}

/// Tell who waits for a job that it is never done.
fn refuse(job: Job) {
    if let Job::Batch(batch) = job {
        let told = batch.map.map(|(_, _, state)| state).into_iter().chain(batch.done);
        told.for_each(|state| state.tell(false));
    }
}

fn submit(device: &wgpu::Device, queue: &wgpu::Queue, ring: &wgpu::Buffer, batch: Batch) {
    if !batch.numbers.is_empty() {
        // Ordered after the submits before and before this one: one ring serves all.
        queue.write_buffer(ring, batch.numbers_first as u64, &batch.numbers);
    }
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    if !batch.passes.is_empty() {
        let timestamp_writes = batch.clock.as_ref().map(|clock| wgpu::ComputePassTimestampWrites {
            query_set: &clock.queries,
            beginning_of_pass_write_index: Some(0),
            end_of_pass_write_index: Some(1),
        });
        let descriptor = wgpu::ComputePassDescriptor { label: None, timestamp_writes };
        let mut pass = encoder.begin_compute_pass(&descriptor);
        let mut current: Option<&wgpu::ComputePipeline> = None;
        for each in &batch.passes {
            if current != Some(&each.pipeline) {
                pass.set_pipeline(&each.pipeline);
                current = Some(&each.pipeline);
            }
            match each.offset {
                Some(offset) => pass.set_bind_group(0, &each.group, &[offset]),
                None => pass.set_bind_group(0, &each.group, &[]),
            }
            pass.dispatch_workgroups(each.grid[0], each.grid[1], each.grid[2]);
        }
    }
    if let Some(clock) = &batch.clock {
        encoder.resolve_query_set(&clock.queries, 0..2, &clock.ticks, 0);
    }
    for copy in &batch.copies {
        encoder.copy_buffer_to_buffer(&copy.from, copy.first, &copy.to, copy.at, copy.nbytes);
    }
    queue.submit([encoder.finish()]);
    if let Some((buffer, nbytes, state)) = batch.map {
        let writes = buffer.usage().contains(wgpu::BufferUsages::MAP_WRITE);
        let mode = if writes { wgpu::MapMode::Write } else { wgpu::MapMode::Read };
        buffer.slice(..nbytes).map_async(mode, move |done| state.tell(done.is_ok()));
    }
    if let Some(state) = batch.done {
        queue.on_submitted_work_done(move || state.tell(true));
    }
}
