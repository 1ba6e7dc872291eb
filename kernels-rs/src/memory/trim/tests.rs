use super::*;
use crate::memory::owned::Memory;

#[test]
fn what_this_thread_and_the_cache_keep_goes() {
    let sizes = [1, 1000, 60 << 10, 100 << 10, 5 << 20];
    let blocks: Vec<Memory> = sizes.iter().map(|&bytes| Memory::new(bytes).unwrap()).collect();
    drop(blocks);
    trim();
    // Another test may fill the global cache meanwhile, but not this thread's.
    assert_eq!(alloc::empty_thread(), 0);
    drop(Memory::new(1000).unwrap());
    assert_eq!(alloc::empty_thread(), usize::from(!cfg!(feature = "exact-allocations")));
}
