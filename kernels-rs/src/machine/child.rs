//! Forked children, for the tests of what a fork leaves behind.

use std::time::Duration;

/// Forks, whatever the parent holds; the child does some work, which neither panics nor waits for other threads of the parent, and
/// fails where that says false.
pub fn forked(work: impl FnOnce() -> bool) -> i32 {
    // SAFETY: the child has a copy of all memory to itself, does this work alone, and leaves without unwinding.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let done = work();
        // SAFETY: ends the child at once, no handler of the test program runs.
        unsafe { libc::_exit(i32::from(!done)) };
    }
    child
}

/// Waits for a child to end well; one that hangs is ended, and `complaint` is what the test says.
pub fn joined(child: i32, complaint: &str) {
    for _ in 0..1000 {
        let mut status = -1;
        // SAFETY: a child of ours and a place for its status.
        if unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == child {
            return assert_eq!(status, 0);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    // SAFETY: a child of ours, which hangs.
    unsafe { libc::kill(child, libc::SIGKILL) };
    panic!("{complaint}");
}
