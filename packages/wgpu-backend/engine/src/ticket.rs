//! Reads on their way to the host.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use pyo3::prelude::*;

/// Whether the bytes are here: 0 not yet, 1 yes, 2 never.
#[derive(Default)]
pub struct State(AtomicU8);

impl State {
    pub fn tell(&self, arrived: bool) {
        self.0.store(if arrived { 1 } else { 2 }, Ordering::Release);
    }

    pub fn arrived(&self) -> Option<bool> {
        match self.0.load(Ordering::Acquire) {
            0 => None,
            told => Some(told == 1),
        }
    }
}

/// A place in what was sent, and whether the GPU is there.
#[pyclass(frozen)]
pub struct Mark(pub Arc<State>);

/// A staging buffer that the GPU fills.
#[pyclass(frozen)]
pub struct Ticket {
    pub state: Arc<State>,
    pub staging: wgpu::Buffer,
    pub nbytes: u64,
    /// With the words in which kernels report errors behind.
    pub total: u64,
}
