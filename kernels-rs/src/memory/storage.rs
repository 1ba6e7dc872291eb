//! Shared, reference-counted storage of an array: one pointer wide.

use crate::error::Result;
use crate::memory::alloc::{self, Block};
use crate::memory::notes::BlockNotes;
use crate::memory::packed::PackedCache;
use std::ptr::NonNull;
use std::sync::atomic::{
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

/// A handle on a [`Block`]. Cloning shares the memory; the last handle gives it back to the cache.
pub struct Storage(NonNull<Block>);

// SAFETY: the count is atomic; the data is written only while one handle exists (see `is_unique`).
unsafe impl Send for Storage {}
// SAFETY: as above.
unsafe impl Sync for Storage {}

impl Storage {
    /// At least `bytes` bytes of memory with arbitrary contents, 64-byte aligned.
    #[inline]
    pub fn uninit(bytes: usize) -> Result<Self> {
        Ok(Self(alloc::acquire(bytes)?))
    }

    #[inline]
    fn block(&self) -> &Block {
        // SAFETY: a handle keeps its block alive.
        unsafe { self.0.as_ref() }
    }

    /// Start of the data. Writing through it is sound only after [`Storage::claim`], or while the storage is new.
    #[inline]
    pub fn data(&self) -> *mut u8 {
        self.block().data.as_ptr()
    }

    /// Bytes that fit.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.block().capacity
    }

    /// True when this is the only handle.
    #[inline]
    pub fn is_unique(&self) -> bool {
        self.block().refs.load(Acquire) == 1
    }

    /// What the block knows of its data.
    #[inline]
    pub fn notes(&self) -> &BlockNotes {
        &self.block().notes
    }

    /// What kernels made of the data and keep beside it.
    #[inline]
    pub fn packed(&self) -> PackedCache<'_> {
        PackedCache::of(&self.block().notes)
    }

    /// Asks to write: true when this is the only handle. What was made of the data is forgotten, and it no longer grows.
    #[inline]
    pub fn claim(&mut self) -> bool {
        let unique = self.is_unique();
        if unique {
            self.notes().close_space();
        }
        if unique && !self.packed().is_untouched() {
            // SAFETY: the only handle, borrowed for writing: nobody reads the block or what is kept beside it.
            unsafe { self.packed().clear() };
        }
        unique
    }

    /// True when both handles hold the same memory.
    #[inline]
    pub fn same(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Clone for Storage {
    #[inline]
    fn clone(&self) -> Self {
        self.block().refs.fetch_add(1, Relaxed);
        Self(self.0)
    }
}

impl Drop for Storage {
    #[inline]
    fn drop(&mut self) {
        if self.block().refs.fetch_sub(1, Release) == 1 {
            fence(Acquire);
            if !self.packed().is_untouched() {
                // SAFETY: that was the last handle, so nobody reads what is kept.
                unsafe { self.packed().clear() };
            }
            // SAFETY: that was the last handle.
            unsafe { alloc::release(self.0) };
        }
    }
}
