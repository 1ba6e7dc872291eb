//! Memory with one holder.

use crate::error::Result;
use crate::memory::alloc::{Block, acquire, release};
use std::ptr::NonNull;

/// Memory with one holder, given back when it is dropped.
pub struct Memory(NonNull<Block>);

// SAFETY: one holder, who reaches the data by raw pointers only.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// At least `bytes` bytes with arbitrary contents, 64-byte aligned.
    pub fn new(bytes: usize) -> Result<Self> {
        acquire(bytes).map(Self)
    }

    /// Its start.
    pub fn data(&self) -> *mut u8 {
        // SAFETY: held since `new`.
        unsafe { self.0.as_ref() }.data.as_ptr()
    }

    /// Bytes that fit.
    pub fn capacity(&self) -> usize {
        // SAFETY: held since `new`.
        unsafe { self.0.as_ref() }.capacity
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the only holder, and nothing was put beside the data.
        unsafe { release(self.0) };
    }
}
