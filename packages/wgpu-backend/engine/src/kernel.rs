//! What the recorder binds and runs: buffers, pipelines, and the numbers of a launch.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

/// A buffer of the GPU. `batch` numbers the last command batch that used it.
#[pyclass(frozen)]
pub struct Buffer {
    pub gpu: wgpu::Buffer,
    #[pyo3(get)]
    pub nbytes: u64,
    #[pyo3(get)]
    pub serial: u64,
    pub batch: AtomicU64,
}

impl Buffer {
    pub fn stamp(&self, batch: u64) {
        self.batch.store(batch, Ordering::Relaxed);
    }
}

/// A bind group layout, shared by all kernels that bind the same number of things.
#[derive(Clone)]
pub struct Layout {
    pub serial: u64,
    pub gpu: wgpu::BindGroupLayout,
    pub whole: wgpu::PipelineLayout,
    pub slot: u64,
    pub reports: bool,
}

/// A compiled kernel.
#[pyclass(frozen)]
pub struct Pipeline {
    pub gpu: wgpu::ComputePipeline,
    pub layout: Layout,
    /// A letter for each number: f, i or I, as of Python's struct.
    pub format: Vec<u8>,
    #[pyo3(get)]
    pub text: String,
}

impl Pipeline {
    /// Put the numbers of a launch behind `data`.
    pub fn put(&self, params: &Bound<'_, PyAny>, data: &mut Vec<u8>) -> PyResult<()> {
        let mut at = 0;
        each(params, |value| {
            let kind = self.format.get(at).copied().unwrap_or(b'?');
            at += 1;
            data.extend_from_slice(&word(kind, value)?);
            Ok(())
        })?;
        if at == self.format.len() { Ok(()) } else { Err(count_of(at, self.format.len())) }
    }
}

fn count_of(got: usize, expected: usize) -> PyErr {
    PyErr::new::<pyo3::exceptions::PyValueError, _>(format!("{got} numbers for a kernel of {expected}"))
}

fn word(kind: u8, value: &Bound<'_, PyAny>) -> PyResult<[u8; 4]> {
    match kind {
        b'f' => {
            let wide: f64 = value.extract()?;
            let narrow = wide as f32;
            if narrow.is_infinite() && wide.is_finite() {
                return Err(PyOverflowError::new_err("float too large"));
            }
            Ok(narrow.to_le_bytes())
        }
        b'i' => Ok(value.extract::<i32>()?.to_le_bytes()),
        _ => Ok(value.extract::<u32>()?.to_le_bytes()),
    }
}

#[pymethods]
impl Pipeline {
    #[getter]
    fn slot(&self) -> u64 {
        self.layout.slot
    }

    /// Whether it may report an index.
    #[getter]
    fn index_errors(&self) -> bool {
        self.layout.reports
    }

    /// The bytes of the numbers of a launch.
    fn pack<'py>(&self, py: Python<'py>, params: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let mut data = Vec::with_capacity(4 * self.format.len());
        self.put(params, &mut data)?;
        Ok(PyBytes::new(py, &data))
    }
}

/// Call `act` with each item of a list, a tuple or another sequence.
pub fn each(sequence: &Bound<'_, PyAny>, mut act: impl FnMut(&Bound<'_, PyAny>) -> PyResult<()>) -> PyResult<()> {
    if let Ok(list) = sequence.cast::<PyList>() {
        list.iter().try_for_each(|item| act(&item))
    } else if let Ok(tuple) = sequence.cast::<PyTuple>() {
        tuple.iter().try_for_each(|item| act(&item))
    } else {
        sequence.try_iter()?.try_for_each(|item| act(&item?))
    }
}
