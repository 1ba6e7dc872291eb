//! Records and submits the work of `phlox_wgpu` without Python: `Engine` does what its module `_native` does.

mod adapter;
mod engine;
mod imported;
mod kernel;
mod queue;
mod recent;
mod recorder;
mod ticket;
mod transfer;

use pyo3::prelude::*;

pyo3::create_exception!(phlox_wgpu_engine, DriverError, pyo3::exceptions::PyRuntimeError);

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(adapter::adapters, module)?)?;
    module.add_class::<adapter::Adapter>()?;
    module.add_class::<engine::Engine>()?;
    module.add_class::<kernel::Buffer>()?;
    module.add_class::<kernel::Pipeline>()?;
    module.add("DriverError", module.py().get_type::<DriverError>())
}
