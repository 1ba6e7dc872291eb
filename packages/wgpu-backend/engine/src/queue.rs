//! The thread that hands work to the driver, in the order in which it was sent.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crate::ticket::State;

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
    /// The numbers of all passes, for the ring.
    pub numbers: Vec<u8>,
    pub copies: Vec<Copy>,
    pub clock: Option<Clock>,
    /// What to map when all is done, and whom to tell.
    pub map: Option<(wgpu::Buffer, u64, Arc<State>)>,
}

pub enum Job {
    Batch(Batch),
    Write(wgpu::Buffer, Vec<u8>),
    /// Told when all before it is with the driver.
    Reached(Sender<()>),
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

    /// A loss, each time; another fault once.
    pub fn take(&self) -> Option<String> {
        let lost = self.lost.lock().unwrap().clone();
        lost.or_else(|| self.first.lock().unwrap().take())
    }
}

pub struct Worker {
    jobs: Mutex<Option<Sender<Job>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Worker {
    pub fn start(device: wgpu::Device, queue: wgpu::Queue, ring: wgpu::Buffer, faults: Arc<Faults>) -> Self {
        let (jobs, received) = channel();
        let run = move || {
            let all = AssertUnwindSafe(|| work(&device, &queue, &ring, &received));
            if catch_unwind(all).is_err() {
                faults.lose("the driver failed on what was submitted");
                received.into_iter().for_each(refuse);
            }
        };
        let thread = std::thread::Builder::new().name("phlox-wgpu".into()).spawn(run).ok();
        Self { jobs: Mutex::new(Some(jobs)), thread: Mutex::new(thread) }
    }

    pub fn send(&self, job: Job) {
        match self.jobs.lock().unwrap().as_ref() {
            Some(jobs) => {
                if let Err(unsent) = jobs.send(job) {
                    refuse(unsent.0);
                }
            }
            None => refuse(job),
        }
    }

    /// Block until all that was sent is with the driver.
    pub fn reach(&self) {
        let (told, waits) = channel();
        self.send(Job::Reached(told));
        let _ = waits.recv();
    }

    /// Hand over what was sent and end.
    pub fn stop(&self) {
        drop(self.jobs.lock().unwrap().take());
        if let Some(thread) = self.thread.lock().unwrap().take() {
            let _ = thread.join();
        }
    }
}

/// Tell who waits for a job that it is never done.
fn refuse(job: Job) {
    if let Job::Batch(Batch { map: Some((_, _, state)), .. }) = job {
        state.tell(false);
    }
}

fn work(device: &wgpu::Device, queue: &wgpu::Queue, ring: &wgpu::Buffer, jobs: &Receiver<Job>) {
    for job in jobs {
        match job {
            Job::Batch(batch) => submit(device, queue, ring, batch),
            Job::Write(buffer, data) => queue.write_buffer(&buffer, 0, &data),
            Job::Reached(told) => {
                let _ = told.send(());
            }
        }
    }
}

fn submit(device: &wgpu::Device, queue: &wgpu::Queue, ring: &wgpu::Buffer, batch: Batch) {
    if !batch.numbers.is_empty() {
        // Ordered after the submits before and before this one: one ring serves all.
        queue.write_buffer(ring, 0, &batch.numbers);
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
        buffer.slice(..nbytes).map_async(wgpu::MapMode::Read, move |done| state.tell(done.is_ok()));
    }
}
