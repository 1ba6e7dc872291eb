//! What runs when the process forks, where the system has forks.

use std::sync::Once;

/// Called without arguments, on the thread that forks.
pub type Handler = extern "C" fn();

/// Registers once what runs before a fork, and after it in the parent and in the child.
///
/// # Safety
/// The handlers only touch atomics and thread-local flags: in the child every other thread is gone, with the locks it held.
#[cfg_attr(any(not(unix), target_os = "emscripten"), allow(unused_variables))]
pub unsafe fn on_fork(once: &Once, before: Option<Handler>, parent: Option<Handler>, child: Handler) {
    #[cfg(all(unix, not(target_os = "emscripten")))]
    once.call_once(|| {
        let as_unsafe = |handler: Handler| handler as unsafe extern "C" fn();
        libc::pthread_atfork(before.map(as_unsafe), parent.map(as_unsafe), Some(child));
    });
}
