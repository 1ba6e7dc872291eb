//! All memory that waits for reuse, back to the system.

use super::{alloc, scratch};
use crate::machine::threads;

/// Frees the cached blocks and scratch buffers of this thread, of the pool's workers and of the global cache. What other
/// threads that call kernels keep (at most 16 blocks of each small size) stays theirs until they call this or end.
pub fn trim() {
    empty_thread();
    threads::on_workers(empty_thread);
    alloc::trim(0);
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it only gives free pages of the C library's heaps back; what is in use stays.
    unsafe {
        libc::malloc_trim(0);
    }
}

fn empty_thread() {
    alloc::empty_thread();
    scratch::empty_thread();
}

#[cfg(test)]
mod tests;
