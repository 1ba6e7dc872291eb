//! Bytes to and from the GPU, and the waits for them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::DriverError;
use crate::engine::{ERROR_BYTES, Engine};
use crate::kernel::Buffer;
use crate::queue::{Batch, Clock, Copy, Job, Meeting, PAUSE, poll};
use crate::recorder::{FIRST_FLUSH, LATER_FLUSH};
use crate::ticket::{Mark, State, Ticket};

const KEPT_STAGING: u64 = 1 << 26;
const COPIED: usize = 1 << 20; // bytes of an upload that are copied, so that it need not wait
// A sleep takes 50 us more than is asked for. A software driver needs the processor that a long
// spin would take.
const SPIN: Duration = Duration::from_micros(250);
const LONG_SPIN: Duration = Duration::from_millis(10);
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

impl Engine {
    pub fn poll(&self, how: wgpu::PollType) {
        poll(&self.device, &self.polling, &self.faults, how);
    }

    /// Block until the bytes of a ticket are here.
    pub fn arrive(&self, state: &State) -> PyResult<()> {
        // Who waits for the last read hands over all that was sent. Behind an earlier one may lie a
        // whole step, which is left to the thread.
        if std::ptr::eq(self.recorded().asked.as_ptr(), state) {
            self.worker.reach();
        }
        let start = Instant::now();
        let arrived = loop {
            if state.arrived().is_none() {
                self.worker.help();
            }
            self.poll(wgpu::PollType::Poll);
            if let Some(arrived) = state.arrived() {
                break arrived;
            }
            let waited = start.elapsed();
            if waited < SPIN {
                std::hint::spin_loop();
                continue;
            }
            if waited < LONG_SPIN && !self.software {
                std::thread::yield_now();
                continue;
            }
            self.check()?;
            std::thread::sleep((waited / 64).min(LONGEST_SLEEP));
        };
        self.check()?;
        if arrived { Ok(()) } else { Err(DriverError::new_err("[read] mapping the staging buffer failed")) }
    }

    pub fn staging(&self, nbytes: u64) -> PyResult<wgpu::Buffer> {
        let size = nbytes.next_power_of_two().max(256);
        let size = if size > 1 << 20 { nbytes.next_multiple_of(1 << 18) } else { size };
        let mut record = self.recorded();
        if let Some(at) = record.staging.iter().position(|buffer| buffer.size() == size) {
            return Ok(record.staging.remove(at));
        }
        drop(record);
        self.make(size, "staging")
    }

    /// Keep a staging buffer for the next read; the oldest go where too much is kept.
    pub fn give(&self, staging: wgpu::Buffer) {
        let mut record = self.recorded();
        record.staging.push(staging);
        while record.staging.iter().map(wgpu::Buffer::size).sum::<u64>() > KEPT_STAGING {
            record.staging.remove(0);
        }
    }

    /// Copy bytes to the start of a buffer, behind all that was recorded.
    pub fn upload(&self, py: Python<'_>, buffer: &Buffer, data: &PyBuffer<u8>) -> PyResult<()> {
        let mut record = self.recorded();
        if buffer.batch.load(Ordering::Relaxed) == record.batch {
            self.send(&mut record, Batch::default());
        }
        drop(record);
        let nbytes = data.len_bytes();
        if nbytes <= COPIED {
            self.worker.send(Job::Write(buffer.gpu.clone(), data.to_vec(py)?));
            return self.check();
        }
        let staging = self.upload_staging(nbytes as u64)?;
        let mapped = staging.slice(..nbytes as u64).get_mapped_range_mut();
        let mut mapped = mapped.map_err(|error| DriverError::new_err(error.to_string()))?;
        // SAFETY: the exporter keeps the bytes while `data` lives; the caller does not write them.
        let bytes = unsafe { std::slice::from_raw_parts(data.buf_ptr().cast::<u8>(), nbytes) };
        py.detach(|| mapped.copy_from_slice(bytes));
        drop(mapped);
        staging.unmap();
        let (to, state) = (buffer.gpu.clone(), Arc::new(State::default()));
        let copy = Copy { from: staging.clone(), first: 0, to, at: 0, nbytes: nbytes as u64 };
        let map = Some((staging.clone(), staging.size(), state.clone()));
        let mut record = self.recorded();
        self.send(&mut record, Batch { copies: vec![copy], map, ..Batch::default() });
        record.uploads.push((staging, state));
        while record.uploads.iter().map(|(kept, _)| kept.size()).sum::<u64>() > KEPT_STAGING {
            record.uploads.remove(0);
        }
        drop(record);
        self.check()
    }

    /// A mapped buffer of so many bytes: one that the GPU is done with, or a new one.
    fn upload_staging(&self, nbytes: u64) -> PyResult<wgpu::Buffer> {
        let size = nbytes.next_multiple_of(1 << 20);
        let mut record = self.recorded();
        let ready = |(kept, state): &(wgpu::Buffer, Arc<State>)| kept.size() == size && state.arrived() == Some(true);
        if let Some(at) = record.uploads.iter().position(ready) {
            return Ok(record.uploads.remove(at).0);
        }
        drop(record);
        self.make(size, "upload")
    }

    /// Send what is recorded; what comes behind waits until all processes are as far.
    pub fn met(&self, words: Vec<usize>, own: usize, turn: u32, most: Duration) -> Mark {
        let done = Arc::new(State::default());
        let mut record = self.recorded();
        self.send(&mut record, Batch { done: Some(done.clone()), ..Batch::default() });
        self.worker.send(Job::Meet(Meeting { done: done.clone(), words, own, turn, most }));
        record.flush_at = FIRST_FLUSH;
        Mark(done)
    }

    /// Block until the thread that hands over has seen a mark of `met`.
    pub fn passed(&self, state: &State) -> PyResult<()> {
        let arrived = loop {
            if let Some(arrived) = state.arrived() {
                break arrived;
            }
            self.check()?;
            std::thread::sleep(PAUSE);
        };
        self.check()?;
        if arrived { Ok(()) } else { Err(DriverError::new_err("[step] what was sent to the GPU was never done")) }
    }

    /// Ask for bytes of a buffer, as they are when all that is recorded is done.
    pub fn asked(&self, buffer: Option<&Buffer>, first: u64, nbytes: u64) -> PyResult<Ticket> {
        let staging = self.staging(nbytes + ERROR_BYTES)?;
        let state = Arc::new(State::default());
        let mut record = self.recorded();
        let from = buffer.map_or(&self.errors, |buffer| &buffer.gpu).clone();
        let mut copies = vec![Copy { from, first, to: staging.clone(), at: 0, nbytes }];
        let mut total = nbytes;
        if std::mem::take(&mut record.armed) {
            let (from, to) = (self.errors.clone(), staging.clone());
            copies.push(Copy { from, first: 0, to, at: nbytes, nbytes: ERROR_BYTES });
            total += ERROR_BYTES;
        }
        let map = Some((staging.clone(), total, state.clone()));
        self.send(&mut record, Batch { copies, map, ..Batch::default() });
        Ok(Ticket { state, staging, nbytes, total })
    }

    /// Copy the bytes to where they go; returns the words in which kernels report, if any ran.
    pub fn taken<'py>(&self, py: Python<'py>, ticket: &Ticket, data: &PyBuffer<u8>) -> PyResult<Bound<'py, PyBytes>> {
        let mapped = ticket.staging.slice(..ticket.total).get_mapped_range();
        let mapped = mapped.map_err(|error| DriverError::new_err(error.to_string()))?;
        data.copy_from_slice(py, &mapped[..ticket.nbytes as usize])?;
        let words = PyBytes::new(py, &mapped[ticket.nbytes as usize..]);
        drop(mapped);
        ticket.staging.unmap();
        if words.as_bytes().iter().take(4).any(|byte| *byte != 0) {
            self.worker.send(Job::Write(self.errors.clone(), vec![0; ERROR_BYTES as usize]));
        }
        self.give(ticket.staging.clone());
        Ok(words)
    }

    /// Seconds of the GPU's clock for what a function records, which is one pass.
    pub fn timed(&self, py: Python<'_>, call: &Bound<'_, PyAny>) -> PyResult<f64> {
        let mut record = self.recorded();
        self.send(&mut record, Batch::default());
        record.flush_at = usize::MAX;
        let batch = record.batch;
        drop(record);
        if let Err(error) = call.call0() {
            self.recorded().flush_at = LATER_FLUSH;
            return Err(error);
        }
        let queries = self.device.create_query_set(&wgpu::QuerySetDescriptor {
            label: None,
            ty: wgpu::QueryType::Timestamp,
            count: 2,
        });
        let usage = wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC;
        let descriptor = wgpu::BufferDescriptor { label: None, size: 16, usage, mapped_at_creation: false };
        let ticks = self.device.create_buffer(&descriptor);
        let staging = self.staging(16)?;
        let state = Arc::new(State::default());
        let copies = vec![Copy { from: ticks.clone(), first: 0, to: staging.clone(), at: 0, nbytes: 16 }];
        let map = Some((staging.clone(), 16, state.clone()));
        let clock = Some(Clock { queries, ticks });
        let mut record = self.recorded();
        // The clock of no pass is never told, and that of the last of several tells a part.
        if record.passes.is_empty() || record.batch != batch {
            record.flush_at = LATER_FLUSH;
            return Ok(0.0);
        }
        self.send(&mut record, Batch { copies, clock, map, ..Batch::default() });
        record.flush_at = LATER_FLUSH;
        drop(record);
        py.detach(|| self.arrive(&state))?;
        let mapped = staging.slice(..16).get_mapped_range();
        let mapped = mapped.map_err(|error| DriverError::new_err(error.to_string()))?;
        let at = |i: usize| u64::from_le_bytes(mapped[8 * i..8 * i + 8].try_into().unwrap());
        Ok(at(1).saturating_sub(at(0)) as f64 * f64::from(self.queue.get_timestamp_period()) * 1e-9)
    }
}
