//! What there is to open, told as wgpu-py tells it.

use std::sync::OnceLock;

use pyo3::prelude::*;
use pyo3::types::PyDict;

static INSTANCE: OnceLock<wgpu::Instance> = OnceLock::new();

/// One adapter: `info` and `limits` are dicts, `features` a list of names.
#[pyclass(frozen)]
pub struct Adapter(pub wgpu::Adapter);

/// Features that kernels ask for, under the names of `WebGPU`.
pub const FEATURES: [(&str, wgpu::Features); 5] = [
    ("shader-f16", wgpu::Features::SHADER_F16),
    ("subgroup", wgpu::Features::SUBGROUP),
    ("subgroup-barrier", wgpu::Features::SUBGROUP_BARRIER),
    ("timestamp-query", wgpu::Features::TIMESTAMP_QUERY),
    ("cooperative-matrix", wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX),
];

/// All adapters of Vulkan, Metal and DX12.
#[pyfunction]
pub fn adapters(py: Python<'_>) -> Vec<Adapter> {
    py.detach(|| {
        let instance = INSTANCE.get_or_init(|| {
            let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
            descriptor.backends = wgpu::Backends::PRIMARY;
            descriptor.flags = wgpu::InstanceFlags::empty();
            wgpu::Instance::new(descriptor)
        });
        let found = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::PRIMARY));
        found.into_iter().map(Adapter).collect()
    })
}

pub fn limits_of<'py>(py: Python<'py>, limits: &wgpu::Limits) -> PyResult<Bound<'py, PyDict>> {
    let told = PyDict::new(py);
    let pairs = [
        ("max-buffer-size", limits.max_buffer_size),
        ("max-compute-invocations-per-workgroup", limits.max_compute_invocations_per_workgroup.into()),
        ("max-compute-workgroup-storage-size", limits.max_compute_workgroup_storage_size.into()),
        ("max-compute-workgroups-per-dimension", limits.max_compute_workgroups_per_dimension.into()),
        ("max-storage-buffer-binding-size", limits.max_storage_buffer_binding_size),
        ("max-storage-buffers-per-shader-stage", limits.max_storage_buffers_per_shader_stage.into()),
        ("min-uniform-buffer-offset-alignment", limits.min_uniform_buffer_offset_alignment.into()),
    ];
    for (name, value) in pairs {
        told.set_item(name, value)?;
    }
    Ok(told)
}

pub fn names_of(features: wgpu::Features) -> Vec<&'static str> {
    FEATURES.iter().filter(|(_, flag)| features.contains(*flag)).map(|(name, _)| *name).collect()
}

#[pymethods]
impl Adapter {
    #[getter]
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let info = self.0.get_info();
        let kind = match info.device_type {
            wgpu::DeviceType::DiscreteGpu => "DiscreteGPU",
            wgpu::DeviceType::IntegratedGpu => "IntegratedGPU",
            wgpu::DeviceType::Cpu => "CPU",
            _ => "Unknown",
        };
        let api = match info.backend {
            wgpu::Backend::Dx12 => "D3D12".to_owned(),
            other => format!("{other:?}"),
        };
        let told = PyDict::new(py);
        told.set_item("device", info.name)?;
        told.set_item("description", info.driver_info)?;
        told.set_item("adapter_type", kind)?;
        told.set_item("backend_type", api)?;
        told.set_item("vendor_id", info.vendor)?;
        told.set_item("device_id", info.device)?;
        Ok(told)
    }

    #[getter]
    fn limits<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        limits_of(py, &self.0.limits())
    }

    #[getter]
    fn features(&self) -> Vec<&'static str> {
        names_of(self.0.features())
    }
}
