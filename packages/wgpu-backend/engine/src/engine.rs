//! One open device, as Python calls it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::DriverError;
use crate::adapter::{Adapter, FEATURES, limits_of, names_of};
use crate::imported;
use crate::kernel::{Buffer, Layout, Pipeline};
use crate::queue::{Batch, Faults, Worker};
use crate::recorder::{LATER_FLUSH, Noted, RING_BYTES, Record, Script};
use crate::ticket::{Mark, Ticket};

pub const ERROR_BYTES: u64 = 16;

#[pyclass(frozen)]
pub struct Engine {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    pub worker: Worker,
    pub ring: wgpu::Buffer,
    pub errors: wgpu::Buffer,
    pub record: Mutex<Record>,
    pub polling: Arc<Mutex<()>>,
    pub faults: Arc<Faults>,
    pub serials: AtomicU64,
    pub shapes: Vec<wgpu::CooperativeMatrixProperties>,
    pub lanes: u32,
    pub software: bool,
    pub debug: bool,
}

fn usage_of(kind: &str) -> wgpu::BufferUsages {
    let both = wgpu::BufferUsages::COPY_DST;
    match kind {
        "uniform" => wgpu::BufferUsages::UNIFORM | both,
        "staging" => wgpu::BufferUsages::MAP_READ | both,
        "upload" => wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC,
        _ => wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | both,
    }
}

impl Engine {
    pub fn recorded(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap()
    }

    /// Raise what went wrong before.
    pub fn check(&self) -> PyResult<()> {
        match self.faults.take() {
            Some(message) => Err(DriverError::new_err(message)),
            None => Ok(()),
        }
    }

    /// Run calls of the driver whose errors are raised here.
    pub fn told<T>(&self, act: impl FnOnce() -> T) -> PyResult<T> {
        let filters = [wgpu::ErrorFilter::Validation, wgpu::ErrorFilter::OutOfMemory, wgpu::ErrorFilter::Internal];
        let mut scopes: Vec<_> = filters.iter().map(|filter| self.device.push_error_scope(*filter)).collect();
        // The compiler of shaders panics on some that it does not take.
        let made = catch_unwind(AssertUnwindSafe(act));
        let mut message = made.is_err().then(|| "the driver's crate failed on this call".to_owned());
        while let Some(scope) = scopes.pop() {
            if let Some(error) = pollster::block_on(scope.pop()) {
                message = Some(match error {
                    wgpu::Error::OutOfMemory { .. } => "Not enough memory left".to_owned(),
                    other => other.to_string(),
                });
            }
        }
        self.check()?;
        match (made, message) {
            (Ok(made), None) => Ok(made),
            (_, message) => Err(DriverError::new_err(message.unwrap_or_default())),
        }
    }

    pub fn make(&self, nbytes: u64, kind: &str) -> PyResult<wgpu::Buffer> {
        let (usage, mapped_at_creation) = (usage_of(kind), kind == "upload");
        let descriptor = wgpu::BufferDescriptor { label: None, size: nbytes, usage, mapped_at_creation };
        self.told(|| self.device.create_buffer(&descriptor))
    }

    pub fn serial(&self) -> u64 {
        self.serials.fetch_add(1, Ordering::Relaxed)
    }

    pub fn layout(&self, key: (usize, usize, u64, bool)) -> PyResult<Layout> {
        if let Some((_, found)) = self.recorded().layouts.iter().find(|(known, _)| *known == key) {
            return Ok(found.clone());
        }
        let (inputs, outputs, slot, reports) = key;
        let storage = |read_only| wgpu::BufferBindingType::Storage { read_only };
        let mut kinds = vec![];
        if slot > 0 {
            kinds.push((wgpu::BufferBindingType::Uniform, true));
        }
        kinds.extend(std::iter::repeat_n((storage(true), false), inputs));
        kinds.extend(std::iter::repeat_n((storage(false), false), outputs + usize::from(reports)));
        let entries: Vec<_> = kinds
            .into_iter()
            .zip(0..)
            .map(|((ty, has_dynamic_offset), binding)| wgpu::BindGroupLayoutEntry {
                binding,
                visibility: wgpu::ShaderStages::COMPUTE,
                ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset, min_binding_size: None },
                count: None,
            })
            .collect();
        let (gpu, whole) = self.told(|| {
            let descriptor = wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries };
            let gpu = self.device.create_bind_group_layout(&descriptor);
            let whole = self.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: None,
                bind_group_layouts: &[Some(&gpu)],
                immediate_size: 0,
            });
            (gpu, whole)
        })?;
        let made = Layout { serial: self.serial(), gpu, whole, slot, reports };
        self.recorded().layouts.push((key, made.clone()));
        Ok(made)
    }

    pub fn group(&self, layout: &Layout, uniform: &wgpu::Buffer, buffers: &[&wgpu::Buffer]) -> wgpu::BindGroup {
        let mut resources = Vec::with_capacity(buffers.len() + 2);
        if let Some(size) = wgpu::BufferSize::new(layout.slot) {
            let part = wgpu::BufferBinding { buffer: uniform, offset: 0, size: Some(size) };
            resources.push(wgpu::BindingResource::Buffer(part));
        }
        resources.extend(buffers.iter().map(|buffer| buffer.as_entire_binding()));
        if layout.reports {
            resources.push(self.errors.as_entire_binding());
        }
        let entries: Vec<_> = resources
            .into_iter()
            .zip(0..)
            .map(|(resource, binding)| wgpu::BindGroupEntry { binding, resource })
            .collect();
        let descriptor = wgpu::BindGroupDescriptor { label: None, layout: &layout.gpu, entries: &entries };
        self.device.create_bind_group(&descriptor)
    }
}

#[pymethods]
impl Engine {
    /// Open an adapter, with its own limits and what kernels ask for.
    #[new]
    fn new(py: Python<'_>, adapter: &Adapter, debug: bool) -> PyResult<Self> {
        let (offered, info) = (adapter.0.features(), adapter.0.get_info());
        let wanted = FEATURES.iter().fold(wgpu::Features::empty(), |all, (_, flag)| all | (*flag & offered));
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("phlox"),
            required_features: wanted,
            required_limits: adapter.0.limits(),
            // SAFETY: kernels use the experimental feature as the driver says that it may be used.
            experimental_features: unsafe { wgpu::ExperimentalFeatures::enabled() },
            memory_hints: wgpu::MemoryHints::Performance,
            trace: wgpu::Trace::Off,
        };
        let opened = py.detach(|| imported::open(&adapter.0, &descriptor));
        let (device, queue) = opened.map_err(|error| DriverError::new_err(error.to_string()))?;
        let faults = Arc::new(Faults::default());
        let (noted, losing) = (faults.clone(), faults.clone());
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| noted.note(error.to_string())));
        device.set_device_lost_callback(move |_, message| losing.lose(&message));
        let make = |size, kind| {
            let usage = usage_of(kind);
            device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
        };
        let ring = make(RING_BYTES as u64, "uniform");
        let polling = Arc::new(Mutex::new(()));
        Ok(Self {
            errors: make(ERROR_BYTES, "storage"),
            worker: Worker::start(device.clone(), queue.clone(), ring.clone(), faults.clone(), polling.clone()),
            ring,
            record: Mutex::new(Record::new()),
            polling,
            faults,
            serials: AtomicU64::new(1),
            shapes: adapter.0.cooperative_matrix_properties(),
            lanes: if info.subgroup_min_size == info.subgroup_max_size { info.subgroup_min_size } else { 0 },
            software: info.device_type == wgpu::DeviceType::Cpu,
            debug,
            device,
            queue,
        })
    }

    #[getter]
    fn limits<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        limits_of(py, &self.device.limits())
    }

    #[getter]
    fn features(&self) -> Vec<&'static str> {
        names_of(self.device.features())
    }

    /// Products that tensor cores take: rows, columns, depth, type of the factors, type of the sums.
    #[getter]
    fn products(&self) -> Vec<(u32, u32, u32, String, String)> {
        let told = |each: &wgpu::CooperativeMatrixProperties| {
            let types = [each.ab_type, each.cr_type].map(|kind| format!("{kind:?}").to_lowercase());
            let [factors, sums] = types;
            (each.m_size, each.n_size, each.k_size, factors, sums)
        };
        self.shapes.iter().map(told).collect()
    }

    /// Threads of every subgroup; 0 where that is open.
    #[getter]
    fn lanes(&self) -> u32 {
        self.lanes
    }

    /// How many dispatches wait to be sent, and how many bind groups are kept.
    #[getter]
    fn counts(&self) -> (usize, usize) {
        let record = self.recorded();
        (record.passes.len(), record.groups.len())
    }

    fn buffer(&self, nbytes: u64) -> PyResult<Buffer> {
        let gpu = self.make(nbytes, "storage")?;
        Ok(Buffer { gpu, nbytes, serial: self.serial(), batch: AtomicU64::new(u64::MAX) })
    }

    /// Memory of the host as a buffer; None where the driver does not take it.
    ///
    /// It lies at an address, in whole pages, and is there until the process ends.
    fn imported(&self, address: usize, nbytes: u64) -> PyResult<Option<Buffer>> {
        let made = self.told(|| imported::buffer(&self.device, address, nbytes, usage_of("storage")))?;
        let whole = |gpu| Buffer { gpu, nbytes, serial: self.serial(), batch: AtomicU64::new(u64::MAX) };
        Ok(made.map(whole))
    }

    /// Let a buffer go; what was sent before may still use it.
    #[allow(clippy::unused_self)]
    fn destroy(&self, _buffer: &Buffer) {}

    /// Compile a shader, which checks no bounds unless asked to: ours have their own.
    #[allow(clippy::too_many_arguments)]
    fn pipeline(
        &self,
        label: &str,
        text: String,
        inputs: usize,
        outputs: usize,
        format: &str,
        reports: bool,
        checks: bool,
    ) -> PyResult<Pipeline> {
        let align = u64::from(self.device.limits().min_uniform_buffer_offset_alignment);
        let slot = (4 * format.len() as u64).next_multiple_of(align);
        let layout = self.layout((inputs, outputs, slot, reports))?;
        let gpu = self.told(|| {
            let source = wgpu::ShaderSource::Wgsl(text.as_str().into());
            let descriptor = wgpu::ShaderModuleDescriptor { label: Some(label), source };
            let module = if checks {
                self.device.create_shader_module(descriptor)
            } else {
                let without = wgpu::ShaderRuntimeChecks::unchecked();
                // SAFETY: the shaders of phlox_wgpu stay within their buffers, and their loops end.
                unsafe { self.device.create_shader_module_trusted(descriptor, without) }
            };
            self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(label),
                layout: Some(&layout.whole),
                module: &module,
                entry_point: Some("main"),
                compilation_options: wgpu::PipelineCompilationOptions {
                    // Shaders of ours write workgroup memory before they read it.
                    zero_initialize_workgroup_memory: checks,
                    ..wgpu::PipelineCompilationOptions::default()
                },
                cache: None,
            })
        })?;
        Ok(Pipeline { gpu, layout, format: format.as_bytes().to_vec(), text })
    }

    /// Whether the compiler takes a shader.
    fn compiles(&self, text: &str) -> PyResult<bool> {
        let source = wgpu::ShaderSource::Wgsl(text.into());
        let descriptor = wgpu::ShaderModuleDescriptor { label: None, source };
        let made = self.told(|| self.device.create_shader_module(descriptor));
        self.check()?;
        Ok(made.is_ok())
    }

    /// Record one dispatch.
    #[allow(clippy::too_many_arguments)]
    fn record(
        &self,
        py: Python<'_>,
        pipeline: &Bound<'_, Pipeline>,
        inputs: &Bound<'_, PyAny>,
        outputs: &Bound<'_, PyAny>,
        params: &Bound<'_, PyAny>,
        x: u32,
        y: u32,
        z: u32,
    ) -> PyResult<()> {
        self.record_one(py, pipeline, [inputs, outputs], params, [x, y, z])?;
        if self.debug {
            self.flush()?;
            py.detach(|| self.worker.reach());
            self.check()?;
        }
        Ok(())
    }

    /// Dispatches to record again: kernel, buffers or places in a table, bytes of numbers, grid.
    fn script(&self, noted: Vec<Noted>) -> PyResult<Script> {
        self.new_script(noted)
    }

    /// Record a script with the buffers of a table; what else it binds is `held` until then.
    fn repeat(&self, py: Python<'_>, script: &Script, table: Vec<Py<Buffer>>, held: Py<PyAny>) -> PyResult<()> {
        self.repeat_script(py, script, &table, held);
        self.check()
    }

    /// Send what is recorded; does not wait.
    fn flush(&self) -> PyResult<()> {
        let mut record = self.recorded();
        self.send(&mut record, Batch::default());
        record.flush_at = LATER_FLUSH;
        drop(record);
        self.check()
    }

    /// Send what is recorded, and drop what holds buffers without need.
    fn forget(&self) -> PyResult<()> {
        self.flush()?;
        let mut record = self.recorded();
        record.groups.clear();
        record.staging.clear();
        record.uploads.clear();
        Ok(())
    }

    /// Copy bytes, a multiple of 4, to the start of a buffer.
    fn write(&self, py: Python<'_>, buffer: &Buffer, data: PyBuffer<u8>) -> PyResult<()> {
        self.upload(py, buffer, &data)
    }

    /// Ask for bytes of a buffer, or with None for the words of errors.
    fn ask(&self, buffer: Option<&Buffer>, first: u64, nbytes: u64) -> PyResult<Ticket> {
        self.asked(buffer, first, nbytes)
    }

    /// Send what is recorded; what comes behind waits until all processes are as far.
    ///
    /// The words of all lie at these addresses, in memory that all see, and stay there. The device
    /// is lost where one of them does not come in so many seconds.
    fn meet(&self, words: Vec<usize>, own: usize, turn: u32, seconds: f64) -> Mark {
        self.met(words, own, turn, Duration::from_secs_f64(seconds))
    }

    /// Block until the GPU has done what was sent before a mark; other threads go on.
    fn reached(&self, py: Python<'_>, mark: &Mark) -> PyResult<()> {
        py.detach(|| self.passed(&mark.0))
    }

    /// Block until the bytes are here; other threads go on.
    fn wait(&self, py: Python<'_>, ticket: &Ticket) -> PyResult<()> {
        py.detach(|| self.arrive(&ticket.state))
    }

    /// Copy the bytes to where they go; returns the words in which kernels report, if any ran.
    fn take<'py>(&self, py: Python<'py>, ticket: &Ticket, data: PyBuffer<u8>) -> PyResult<Bound<'py, PyBytes>> {
        self.taken(py, ticket, &data)
    }

    /// Seconds of the GPU's clock for what a function records, which is one pass.
    fn seconds(&self, py: Python<'_>, call: &Bound<'_, PyAny>) -> PyResult<f64> {
        self.timed(py, call)
    }

    /// Block until all is done and the driver has let go of buffers that are gone.
    fn drain(&self, py: Python<'_>) -> PyResult<()> {
        self.flush()?;
        py.detach(|| {
            self.worker.reach();
            self.poll(wgpu::PollType::wait_indefinitely());
        });
        self.check()
    }

    /// Give the device up, as a driver does that is reset.
    fn lose(&self, py: Python<'_>) {
        py.detach(|| {
            self.worker.reach();
            self.device.destroy();
            self.poll(wgpu::PollType::Poll);
        });
        self.faults.lose("it was given up");
    }

    /// Hand over what is recorded and end the thread; before the process does.
    fn close(&self, py: Python<'_>) {
        let mut record = self.recorded();
        self.send(&mut record, Batch::default());
        drop(record);
        py.detach(|| {
            self.worker.stop();
            self.poll(wgpu::PollType::wait_indefinitely());
        });
    }
}
