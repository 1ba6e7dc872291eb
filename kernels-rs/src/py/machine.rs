//! What Python asks about the machine and its memory.

use super::error::rejected;
use crate::machine::caches;
use crate::machine::peak;
use crate::machine::simd;
use crate::machine::threads;
use crate::memory::alloc;
use crate::memory::trim::trim;
use crate::ops::contraction::ways::MATMUL;
use crate::ops::convolution::ways::TABLES;
use crate::ops::transform::forget_plans;
use crate::ops::ways::Ways;
use pyo3::prelude::*;

/// (current bytes, peak bytes, cached bytes) of the allocator.
#[pyfunction]
fn _memory() -> (usize, usize, usize) {
    (alloc::current_bytes(), alloc::peak_bytes(), alloc::cached_bytes())
}

/// Makes the peak of `_memory` count from now on.
#[pyfunction]
fn _reset_peak() {
    alloc::reset_peak();
}

/// Gives memory that waits for reuse back to the system.
#[pyfunction]
fn _trim(py: Python<'_>) {
    py.detach(|| {
        forget_plans();
        trim();
    });
}

/// Measured f32 multiply-add operations per second on a number of threads.
#[pyfunction]
#[pyo3(signature = (count, /))]
fn _fma_peak(py: Python<'_>, count: usize) -> f64 {
    py.detach(|| peak::fma_peak(count))
}

/// Measured bfloat16 multiply-add operations per second on a number of threads.
#[pyfunction]
#[pyo3(signature = (count, /))]
fn _bf16_peak(py: Python<'_>, count: usize) -> f64 {
    py.detach(|| peak::bf16_peak(count))
}

/// Threads that a parallel kernel uses.
#[pyfunction]
fn _num_threads() -> usize {
    threads::num_threads()
}

/// Bytes of the second-level cache of one core that kernels cut their blocks for.
#[pyfunction]
fn _second_level() -> usize {
    caches::second_level()
}

/// Changes the number of threads from now on.
#[pyfunction]
#[pyo3(signature = (count, /))]
fn _set_num_threads(count: usize) {
    threads::set_num_threads(count);
}

/// The instruction sets that kernels use here, in rising order.
#[pyfunction]
fn _simd() -> Vec<&'static str> {
    let arm = cfg!(target_arch = "aarch64");
    let (pairs, bytes) = (simd::has_bf16_pairs(), simd::has_byte_products());
    let widest = match simd::level() {
        // What the target guarantees.
        simd::Level::Baseline if arm => "asimd",
        simd::Level::Baseline => return vec!["baseline"],
        simd::Level::Avx2 => "avx2",
        simd::Level::Avx512 => "avx512",
    };
    let also = [
        (pairs, if arm { "bf16" } else { "avx512_bf16" }),
        (bytes, if arm { "asimddp" } else { "avx512_vnni" }),
        (simd::has_amx(), "amx_bf16"),
        (simd::has_amx(), "amx_int8"),
    ];
    std::iter::once(widest).chain(also.into_iter().filter_map(|(used, name)| used.then_some(name))).collect()
}

/// Every table of ways: what its ways compute, their names in the order in which they are asked, and those that were taken.
#[pyfunction]
fn _ways() -> Vec<(&'static str, Vec<&'static str>, Vec<&'static str>)> {
    tables().map(|table| (table.op, table.names.to_vec(), table.taken())).collect()
}

/// From now on asks this way of a table alone, wherever it applies, and its last one elsewhere; all of them for `None`.
#[pyfunction]
#[pyo3(signature = (op, way, /))]
fn _force_way(op: &str, way: Option<&str>) -> PyResult<()> {
    let table = tables().find(|table| table.op == op).ok_or_else(|| rejected("no table of ways has this name"))?;
    Ok(table.force(way)?)
}

fn tables() -> impl Iterator<Item = &'static Ways> {
    std::iter::once(&MATMUL).chain(TABLES)
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_bf16_peak, module)?)?;
    module.add_function(wrap_pyfunction!(_fma_peak, module)?)?;
    module.add_function(wrap_pyfunction!(_memory, module)?)?;
    module.add_function(wrap_pyfunction!(_num_threads, module)?)?;
    module.add_function(wrap_pyfunction!(_reset_peak, module)?)?;
    module.add_function(wrap_pyfunction!(_second_level, module)?)?;
    module.add_function(wrap_pyfunction!(_set_num_threads, module)?)?;
    module.add_function(wrap_pyfunction!(_simd, module)?)?;
    module.add_function(wrap_pyfunction!(_trim, module)?)?;
    module.add_function(wrap_pyfunction!(_ways, module)?)?;
    module.add_function(wrap_pyfunction!(_force_way, module)?)?;
    Ok(())
}
