//! What a block's header knows of its data: what kernels keep beside it, and the room behind lines that grow.
//!
//! A block may be lines of equal length whose first bytes are arrays, and whose rest nobody has seen: views reach what was taken
//! at most. Who takes the next bytes of all lines, by one atomic exchange, writes there what no other array shows.

use std::sync::atomic::{
    AtomicPtr, AtomicUsize,
    Ordering::{AcqRel, Relaxed},
};

/// Room in a block for what its holders know of its data.
#[derive(Default)]
pub struct BlockNotes {
    /// The first of what is kept ([`crate::memory::packed`]).
    pub first: AtomicPtr<()>,
    /// What was asked for, by the same; null until the first question.
    pub asked: AtomicPtr<()>,
    /// Bytes of a line; 0 where nothing grows.
    line: AtomicUsize,
    /// Bytes of each line that were taken.
    taken: AtomicUsize,
}

impl BlockNotes {
    /// Says that the data is lines of so many bytes, of which the first are taken. For a block that nobody shares yet.
    pub fn open_space(&self, line: usize, taken: usize) {
        self.taken.store(taken, Relaxed);
        self.line.store(line, Relaxed);
    }

    /// Says that nothing grows here.
    #[inline]
    pub fn close_space(&self) {
        self.line.store(0, Relaxed);
    }

    /// Bytes of a line; 0 where nothing grows.
    #[inline]
    pub fn line(&self) -> usize {
        self.line.load(Relaxed)
    }

    /// Takes the bytes `from .. to` of every line; false where they are not the next ones, or leave it.
    pub fn take_space(&self, from: usize, to: usize) -> bool {
        to <= self.line() && self.taken.compare_exchange(from, to, AcqRel, Relaxed).is_ok()
    }
}
