//! What is recorded and not yet sent, and dispatches that are recorded again.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Weak};

use pyo3::prelude::*;

use crate::engine::Engine;
use crate::kernel::{Buffer, Layout, Pipeline, each};
use crate::queue::{Batch, Job, Pass};
use crate::recent::Recent;
use crate::ticket::State;

pub const RING_BYTES: usize = 1 << 20;
pub const FIRST_FLUSH: usize = 2; // starts the GPU early after a wait; each batch is twice the one before
const AHEAD_FLUSH: usize = 32; // while the GPU is at work on what was asked for before
pub const LATER_FLUSH: usize = 128;
const KEPT_GROUPS: usize = 8192;

/// What is recorded and not yet sent.
pub struct Record {
    pub batch: u64,
    pub passes: Vec<Pass>,
    /// Numbers that go to the ring with the next batch, and where they begin there.
    pub numbers: Vec<u8>,
    pub numbers_first: usize,
    /// Where numbers that were sent once lie in the ring: most launches repeat some.
    pub known: HashMap<Vec<u8>, u32>,
    pub slot: Vec<u8>,
    pub key: Vec<u64>,
    pub groups: Recent<wgpu::BindGroup>,
    pub held: Vec<Py<PyAny>>,
    pub armed: bool,
    pub flush_at: usize,
    /// The read that was asked for last; gone where nobody waits for it any more.
    pub asked: Weak<State>,
    pub layouts: Vec<((usize, usize, u64, bool), Layout)>,
    pub staging: Vec<wgpu::Buffer>,
    /// What uploads are written to, and whether the GPU is done with the last one.
    pub uploads: Vec<(wgpu::Buffer, Arc<State>)>,
}

impl Record {
    pub fn new() -> Self {
        Self {
            batch: 0,
            passes: vec![],
            numbers: vec![],
            numbers_first: 0,
            known: HashMap::new(),
            slot: vec![],
            key: vec![],
            groups: Recent::new(KEPT_GROUPS / 2),
            held: vec![],
            armed: false,
            flush_at: FIRST_FLUSH,
            asked: Weak::new(),
            layouts: vec![],
            staging: vec![],
            uploads: vec![],
        }
    }
}

/// A dispatch of a script: what it binds is a buffer, or a place in a table.
struct Step {
    pipeline: Py<Pipeline>,
    places: Vec<Result<Py<Buffer>, usize>>,
    ready: Option<wgpu::BindGroup>,
    offset: Option<u32>,
    grid: [u32; 3],
}

/// Dispatches that are recorded again and again.
#[pyclass(frozen)]
pub struct Script {
    serial: u64,
    steps: Vec<Step>,
    uniform: wgpu::Buffer,
    reports: bool,
}

pub type Noted = (Py<Pipeline>, Vec<Place>, Vec<u8>, (u32, u32, u32));

#[derive(FromPyObject)]
pub enum Place {
    #[pyo3(transparent)]
    Fixed(Py<Buffer>),
    #[pyo3(transparent)]
    Varying(usize),
}

impl Place {
    fn sorted(self) -> Result<Py<Buffer>, usize> {
        match self {
            Self::Fixed(buffer) => Ok(buffer),
            Self::Varying(place) => Err(place),
        }
    }
}

/// The buffers of arrays, in order.
fn buffers_of(py: Python<'_>, arrays: [&Bound<'_, PyAny>; 2], mut act: impl FnMut(&Buffer)) -> PyResult<()> {
    for sequence in arrays {
        each(sequence, |array| {
            let storage = array.getattr(pyo3::intern!(py, "storage"))?;
            let buffer = storage.getattr(pyo3::intern!(py, "buffer"))?;
            act(buffer.cast::<Buffer>()?.get());
            Ok(())
        })?;
    }
    Ok(())
}

impl Engine {
    /// Send what is recorded to the driver's thread.
    pub fn send(&self, record: &mut Record, rest: Batch) {
        if record.passes.is_empty() && rest.copies.is_empty() && rest.done.is_none() {
            return;
        }
        record.batch += 1;
        let passes = std::mem::take(&mut record.passes);
        let numbers = std::mem::take(&mut record.numbers);
        let numbers_first = record.numbers_first;
        record.numbers_first += numbers.len();
        let read = |to: &wgpu::Buffer| to.usage().contains(wgpu::BufferUsages::MAP_READ);
        let asked = rest.map.as_ref().filter(|(to, ..)| read(to)).map(|(.., state)| Arc::downgrade(state));
        // Who asks for bytes waits for them next, and hands this over then; but who has not yet
        // taken those before waits for these only.
        let mut left = false;
        if let Some(asked) = asked {
            let before = std::mem::replace(&mut record.asked, asked).upgrade();
            left = before.is_none();
            let busy = before.is_some_and(|state| state.arrived().is_none());
            record.flush_at = if busy { AHEAD_FLUSH } else { FIRST_FLUSH };
        }
        let job = Job::Batch(Batch { passes, numbers, numbers_first, ..rest });
        if left {
            self.worker.leave(job);
        } else {
            self.worker.send(job);
        }
        // What scripts hold may go back to the pool: whatever writes it now is sent behind.
        record.held.clear();
    }

    pub fn flush_if_full(&self, record: &mut Record) {
        if record.passes.len() >= record.flush_at {
            self.send(record, Batch::default());
            record.flush_at = (2 * record.flush_at).min(LATER_FLUSH);
        }
    }

    /// Where the numbers of a launch, which are in `slot`, lie in the ring.
    fn place(&self, record: &mut Record) -> u32 {
        if let Some(place) = record.known.get(&record.slot) {
            return *place;
        }
        if record.numbers_first + record.numbers.len() + record.slot.len() > RING_BYTES {
            self.send(record, Batch::default());
            record.known.clear();
            record.numbers_first = 0;
        }
        let place = (record.numbers_first + record.numbers.len()) as u32;
        record.numbers.extend_from_slice(&record.slot);
        record.known.insert(record.slot.clone(), place);
        place
    }

    /// Record one dispatch; of its `arrays` the inputs come first.
    pub fn record_one(
        &self,
        py: Python<'_>,
        pipeline: &Bound<'_, Pipeline>,
        arrays: [&Bound<'_, PyAny>; 2],
        params: &Bound<'_, PyAny>,
        grid: [u32; 3],
    ) -> PyResult<()> {
        let kernel = pipeline.get();
        let layout = &kernel.layout;
        let mut record = self.recorded();
        let record = &mut *record;
        let mut offset = None;
        if layout.slot > 0 {
            record.slot.clear();
            kernel.put(params, &mut record.slot)?;
            record.slot.resize(layout.slot as usize, 0);
            offset = Some(self.place(record));
        }
        let batch = record.batch;
        let mut key = std::mem::take(&mut record.key);
        key.clear();
        key.push(layout.serial);
        buffers_of(py, arrays, |buffer| {
            buffer.stamp(batch);
            key.push(buffer.serial);
        })?;
        let group = record.groups.find(&key, || {
            let mut bound = vec![];
            buffers_of(py, arrays, |buffer| bound.push(buffer.gpu.clone()))?;
            Ok::<_, PyErr>(self.group(layout, &self.ring, &bound.iter().collect::<Vec<_>>()))
        });
        record.key = key;
        let group = group?;
        record.armed |= layout.reports;
        record.passes.push(Pass { pipeline: kernel.gpu.clone(), group, offset, grid });
        self.flush_if_full(record);
        Ok(())
    }

    /// Dispatches to record again: kernel, buffers or places in a table, bytes of numbers, grid.
    pub fn new_script(&self, noted: Vec<Noted>) -> PyResult<Script> {
        let mut data: Vec<u8> = vec![];
        let mut steps = vec![];
        for (pipeline, places, numbers, grid) in noted {
            let slot = pipeline.get().layout.slot as usize;
            let offset = (slot > 0).then_some(data.len() as u32);
            let end = data.len() + slot;
            data.extend_from_slice(&numbers);
            data.resize(end, 0);
            let places = places.into_iter().map(Place::sorted).collect();
            steps.push(Step { pipeline, places, ready: None, offset, grid: grid.into() });
        }
        let uniform = self.make((data.len() as u64).max(4), "uniform")?;
        for step in &mut steps {
            let bound: Vec<_> = step.places.iter().filter_map(|place| place.as_ref().ok()).collect();
            if bound.len() == step.places.len() {
                let buffers: Vec<_> = bound.iter().map(|buffer| &buffer.get().gpu).collect();
                step.ready = Some(self.group(&step.pipeline.get().layout, &uniform, &buffers));
            }
        }
        if !data.is_empty() {
            self.worker.send(Job::Write(uniform.clone(), data));
        }
        let reports = steps.iter().any(|step| step.pipeline.get().layout.reports);
        Ok(Script { serial: self.serial(), steps, uniform, reports })
    }

    /// Record a script with the buffers of a table; what else it binds is `held` until then.
    pub fn repeat_script(&self, py: Python<'_>, script: &Script, table: &[Py<Buffer>], held: Py<PyAny>) {
        let mut record = self.recorded();
        let record = &mut *record;
        record.armed |= script.reports;
        for step in &script.steps {
            let kernel = step.pipeline.get();
            let group = if let Some(ready) = &step.ready {
                ready.clone()
            } else {
                let at = |place: &Result<Py<Buffer>, usize>| match place {
                    Ok(buffer) => buffer.clone_ref(py),
                    Err(place) => table[*place].clone_ref(py),
                };
                let bound: Vec<_> = step.places.iter().map(at).collect();
                let mut key = std::mem::take(&mut record.key);
                key.clear();
                key.extend([kernel.layout.serial, if kernel.layout.slot > 0 { script.serial } else { 0 }]);
                key.extend(bound.iter().map(|buffer| buffer.get().serial));
                let Ok(group) = record.groups.find(&key, || {
                    let buffers: Vec<_> = bound.iter().map(|buffer| &buffer.get().gpu).collect();
                    Ok::<_, Infallible>(self.group(&kernel.layout, &script.uniform, &buffers))
                });
                record.key = key;
                group
            };
            record.passes.push(Pass { pipeline: kernel.gpu.clone(), group, offset: step.offset, grid: step.grid });
            self.flush_if_full(record);
        }
        for buffer in table {
            buffer.get().stamp(record.batch);
        }
        if !record.passes.is_empty() {
            record.held.push(held);
        }
    }
}
