//! Caching allocator for array storage.
//!
//! A [`Block`] is a 64-byte header (reference count, size class, data pointer) with its data: right behind it for
//! small classes, in its own mapping from [`MAPPED`] on. Freed blocks keep their header and wait in a cache: per thread
//! for small classes, global for the rest. From 2 MiB on blocks are so aligned and ask for huge pages, since page faults
//! cost more than the arithmetic of a fresh large output. Nothing goes back to the system while the cache holds less
//! than the watermark.

use crate::error::{Error, Result};
use crate::machine::fork::on_fork;
use crate::memory::notes::BlockNotes;
use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Once, OnceLock};

/// Alignment of every block's data.
pub const ALIGN: usize = 64;
const HUGE: usize = 2 << 20;
/// Bytes from which on a block is a mapping: what nobody writes of it is no memory, and all of it goes back to the system.
const MAPPED: usize = 256 << 10;
const SMALL_LIMIT: usize = 64 << 10;
/// Every array is an allocation of its own and of just its size, freed at once: what a sanitizer can watch.
const EXACT: bool = cfg!(feature = "exact-allocations");
/// Blocks kept per small class and thread.
const PER_THREAD: usize = 16;
/// More bytes than any machine can address: the largest request, and what the last class holds.
const LARGEST: usize = 1 << LARGEST_POWER;
const LARGEST_POWER: usize = if usize::BITS == 64 { 57 } else { 30 };
/// Four classes per power of two, from 64 bytes up to [`LARGEST`].
const CLASSES: usize = 4 * (LARGEST_POWER - 6) + 1;

/// Header of a piece of memory.
#[repr(C, align(64))]
pub struct Block {
    /// Number of handles.
    pub refs: AtomicUsize,
    /// Where the data starts. Its bytes are arbitrary, but never uninitialized: fresh memory is zeros.
    pub data: NonNull<u8>,
    /// Usable bytes.
    pub capacity: usize,
    class: usize,
    /// What its holders keep beside the data; nothing when the block is handed out and when it is taken back.
    pub notes: BlockNotes,
}

static CURRENT: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Bytes that live arrays hold now (rounded up to size classes).
pub fn current_bytes() -> usize {
    CURRENT.load(Relaxed)
}

/// The largest value of [`current_bytes`] so far.
pub fn peak_bytes() -> usize {
    PEAK.load(Relaxed)
}

/// Makes [`peak_bytes`] count from now on.
pub fn reset_peak() {
    PEAK.store(CURRENT.load(Relaxed), Relaxed);
}

/// Bytes that wait in the global cache.
pub fn cached_bytes() -> usize {
    GLOBAL.with(|bins| bins.bytes)
}

/// Index of the smallest class that holds `bytes`, at most [`LARGEST`], and its capacity.
#[inline]
fn class_of(bytes: usize) -> (usize, usize) {
    if bytes <= ALIGN {
        return (0, ALIGN);
    }
    let bytes = bytes.next_multiple_of(ALIGN);
    let top = (usize::BITS - 1 - (bytes - 1).leading_zeros()) as usize;
    let step = 1usize << (top - 2);
    let quarter = ((bytes - 1) >> (top - 2)) & 3;
    let capacity = (1usize << top) + (quarter + 1) * step;
    ((top - 6) * 4 + quarter + 1, capacity)
}

/// A block of at least `bytes` bytes with a reference count of 1. The contents are whatever was there.
#[inline]
pub fn acquire(bytes: usize) -> Result<NonNull<Block>> {
    if bytes > LARGEST {
        return Err(Error::OutOfMemory(bytes));
    }
    let (class, capacity) = if EXACT { (0, bytes) } else { class_of(bytes) };
    let cached =
        if !EXACT && capacity <= SMALL_LIMIT { LOCAL.try_with(|bins| bins.pop(class)).unwrap_or(None) } else { None };
    let block = match cached {
        Some(block) => block,
        None => acquire_slow(class, capacity)?,
    };
    // SAFETY: the block came from a cache or was just made; nobody else holds it.
    let header = unsafe { block.as_ref() };
    header.refs.store(1, Relaxed);
    header.notes.close_space();
    let now = CURRENT.fetch_add(capacity, Relaxed) + capacity;
    if now > PEAK.load(Relaxed) {
        PEAK.fetch_max(now, Relaxed);
    }
    Ok(block)
}

/// Takes back a block whose reference count fell to 0.
///
/// # Safety
/// The block came from [`acquire`], nobody uses it any more, and nothing is kept beside its data.
#[inline]
pub unsafe fn release(block: NonNull<Block>) {
    let (class, capacity) = (block.as_ref().class, block.as_ref().capacity);
    CURRENT.fetch_sub(capacity, Relaxed);
    if EXACT {
        return destroy(block);
    }
    if capacity <= SMALL_LIMIT && LOCAL.try_with(|bins| bins.push(class, block)).unwrap_or(false) {
        return;
    }
    release_slow(class, capacity, block);
}

#[cold]
fn acquire_slow(class: usize, capacity: usize) -> Result<NonNull<Block>> {
    install_fork_handlers();
    if !EXACT && let Some(block) = GLOBAL.with(|bins| bins.pop(class, capacity)) {
        return Ok(block);
    }
    let block = create(class, capacity).or_else(|| {
        trim(0);
        create(class, capacity)
    });
    block.ok_or(Error::OutOfMemory(capacity))
}

#[cold]
fn release_slow(class: usize, capacity: usize, block: NonNull<Block>) {
    let (kept, over) = GLOBAL.with(|bins| (bins.push(class, capacity, block), bins.bytes > watermark()));
    if !kept {
        // SAFETY: the caller's only use of the block came here, and no cache holds it.
        unsafe { destroy(block) };
    }
    if over {
        trim(watermark() / 2);
    }
}

/// Gives cached blocks back to the system, largest first, until the global cache holds at most `keep` bytes.
pub fn trim(keep: usize) {
    // One at a time: a list of them would need memory just when there is none.
    while let Some(block) = GLOBAL.with(|bins| if bins.bytes > keep { bins.pop_largest() } else { None }) {
        // SAFETY: it was in the cache and is no more, so nobody else knows it.
        unsafe { destroy(block) };
    }
}

/// Gives the free blocks that this thread keeps back to the system, and says how many they were.
pub fn empty_thread() -> usize {
    // A thread that ends has given its blocks to the global cache already.
    let blocks = LOCAL.try_with(Local::take).unwrap_or_default();
    blocks.into_iter().flatten().fold(0, |count, block| {
        // SAFETY: it was in this thread's cache and is no more, so nobody else knows it.
        unsafe { destroy(block) };
        count + 1
    })
}

/// Reads what the environment sets, so that no fork falls into a first reading.
pub(crate) fn init() {
    watermark();
}

/// Cached bytes above which memory goes back: `PHLOX_CACHE_BYTES`, else 2 GiB.
fn watermark() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| std::env::var("PHLOX_CACHE_BYTES").ok().and_then(|text| text.parse().ok()).unwrap_or(2 << 30))
}

fn small_layout(capacity: usize) -> Layout {
    Layout::from_size_align(size_of::<Block>() + capacity, ALIGN).expect("at most LARGEST bytes are a valid layout")
}

/// Whether the data lies right behind its header.
fn is_small(capacity: usize) -> bool {
    EXACT || capacity < MAPPED
}

fn create(class: usize, capacity: usize) -> Option<NonNull<Block>> {
    let (raw, data) = if is_small(capacity) {
        // SAFETY: the layout is not empty.
        let raw = unsafe { std::alloc::alloc_zeroed(small_layout(capacity)) };
        let raw = NonNull::new(raw)?;
        // SAFETY: the data follows the header inside the same allocation.
        (raw, unsafe { raw.add(size_of::<Block>()) })
    } else {
        let data = system::map(capacity)?;
        // SAFETY: the layout is not empty.
        let Some(raw) = NonNull::new(unsafe { std::alloc::alloc(Layout::new::<Block>()) }) else {
            // SAFETY: mapped just now with this size, and unused.
            unsafe { system::unmap(data, capacity) };
            return None;
        };
        (raw, data)
    };
    let block = raw.cast::<Block>();
    // SAFETY: fresh memory of the right size and alignment.
    unsafe { block.write(Block { refs: AtomicUsize::new(0), data, capacity, class, notes: BlockNotes::default() }) };
    Some(block)
}

/// # Safety
/// Nobody uses the block.
unsafe fn destroy(block: NonNull<Block>) {
    // Layouts are those of `create`.
    let capacity = block.as_ref().capacity;
    if is_small(capacity) {
        std::alloc::dealloc(block.as_ptr().cast(), small_layout(capacity));
    } else {
        system::unmap(block.as_ref().data, capacity);
        std::alloc::dealloc(block.as_ptr().cast(), Layout::new::<Block>());
    }
}

#[cfg(all(unix, not(target_os = "emscripten")))]
mod system {
    use super::HUGE;
    use std::ptr::{NonNull, null_mut};

    fn anonymous(bytes: usize) -> Option<NonNull<libc::c_void>> {
        // SAFETY: an anonymous private mapping at an address of the system's choice touches nothing of ours.
        let base = unsafe {
            libc::mmap(null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON, -1, 0)
        };
        NonNull::new(base).filter(|base| base.as_ptr() != libc::MAP_FAILED)
    }

    /// An anonymous mapping; from 2 MiB on it is so aligned and asks for huge pages.
    pub fn map(bytes: usize) -> Option<NonNull<u8>> {
        if bytes < HUGE {
            return anonymous(bytes).map(NonNull::cast);
        }
        let base = anonymous(bytes.checked_add(HUGE)?)?.as_ptr();
        let start = (base as usize).next_multiple_of(HUGE);
        let head = start - base as usize;
        let tail = HUGE - head;
        // SAFETY: head and tail are page-aligned parts of the mapping just made, and unused.
        unsafe {
            if head > 0 {
                libc::munmap(base, head);
            }
            if tail > 0 {
                libc::munmap((start + bytes) as *mut libc::c_void, tail);
            }
            #[cfg(target_os = "linux")]
            libc::madvise(start as *mut libc::c_void, bytes, libc::MADV_HUGEPAGE);
        }
        NonNull::new(start as *mut u8)
    }

    /// # Safety
    /// `data` came from [`map`] with the same size and is unused.
    pub unsafe fn unmap(data: NonNull<u8>, bytes: usize) {
        libc::munmap(data.as_ptr().cast(), bytes);
    }
}

#[cfg(any(not(unix), target_os = "emscripten"))]
mod system {
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::ptr::NonNull;

    pub fn map(bytes: usize) -> Option<NonNull<u8>> {
        // SAFETY: the layout is not empty.
        NonNull::new(unsafe { alloc_zeroed(Layout::from_size_align(bytes, 4096).ok()?) })
    }

    /// # Safety
    /// `data` came from [`map`] with the same size and is unused.
    pub unsafe fn unmap(data: NonNull<u8>, bytes: usize) {
        let layout = Layout::from_size_align(bytes, 4096).expect("the layout of map");
        dealloc(data.as_ptr(), layout);
    }
}

/// Small free blocks of one thread.
struct Local(UnsafeCell<Vec<Vec<NonNull<Block>>>>);

impl Local {
    #[inline]
    fn pop(&self, class: usize) -> Option<NonNull<Block>> {
        // SAFETY: a thread-local without re-entrance: nothing below calls back.
        unsafe { &mut *self.0.get() }.get_mut(class)?.pop()
    }

    /// All of them, by class.
    fn take(&self) -> Vec<Vec<NonNull<Block>>> {
        // SAFETY: as in `pop`.
        std::mem::take(unsafe { &mut *self.0.get() })
    }

    /// False when the list is full, or there is no memory for one.
    #[inline]
    fn push(&self, class: usize, block: NonNull<Block>) -> bool {
        // SAFETY: as in `pop`.
        let lists = unsafe { &mut *self.0.get() };
        if lists.len() <= class {
            if lists.try_reserve(class + 1 - lists.len()).is_err() {
                return false;
            }
            lists.resize_with(class + 1, Vec::new);
        }
        let list = &mut lists[class];
        let room =
            if list.capacity() == 0 { list.try_reserve_exact(PER_THREAD).is_ok() } else { list.len() < PER_THREAD };
        if room {
            list.push(block);
        }
        room
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        for (class, list) in self.0.get_mut().drain(..).enumerate() {
            for block in list {
                // SAFETY: cached blocks are alive.
                release_slow(class, unsafe { block.as_ref().capacity }, block);
            }
        }
    }
}

thread_local! {
    static LOCAL: Local = const { Local(UnsafeCell::new(Vec::new())) };
}

/// Free blocks of all threads.
struct Bins {
    lists: [Vec<NonNull<Block>>; CLASSES],
    bytes: usize,
}

impl Bins {
    fn pop(&mut self, class: usize, capacity: usize) -> Option<NonNull<Block>> {
        let block = self.lists[class].pop()?;
        self.bytes -= capacity;
        Some(block)
    }

    /// False when there is no memory to note it: the block is still the caller's.
    fn push(&mut self, class: usize, capacity: usize, block: NonNull<Block>) -> bool {
        let room = self.lists[class].try_reserve(1).is_ok();
        if room {
            self.lists[class].push(block);
            self.bytes += capacity;
        }
        room
    }

    fn pop_largest(&mut self) -> Option<NonNull<Block>> {
        let block = self.lists.iter_mut().rev().find_map(Vec::pop)?;
        // SAFETY: a cached block is alive, and only the cache knows it.
        self.bytes -= unsafe { block.as_ref().capacity };
        Some(block)
    }
}

/// A spin lock around [`Bins`]: held for a few instructions, and a fork handler can take it.
struct Global {
    locked: AtomicBool,
    bins: UnsafeCell<Bins>,
}

// SAFETY: every access to `bins` is made while `locked` is held.
unsafe impl Sync for Global {}

static GLOBAL: Global = Global {
    locked: AtomicBool::new(false),
    bins: UnsafeCell::new(Bins { lists: [const { Vec::new() }; CLASSES], bytes: 0 }),
};

impl Global {
    fn lock(&self) {
        while self.locked.compare_exchange_weak(false, true, Acquire, Relaxed).is_err() {
            std::thread::yield_now();
        }
    }

    fn with<R>(&self, work: impl FnOnce(&mut Bins) -> R) -> R {
        /// Gives the lock back, also where `work` panics.
        struct Held<'a>(&'a AtomicBool);
        impl Drop for Held<'_> {
            fn drop(&mut self) {
                self.0.store(false, Release);
            }
        }
        self.lock();
        let _held = Held(&self.locked);
        // SAFETY: the lock is held until `_held` goes, after `work`, so this is the only reference.
        work(unsafe { &mut *self.bins.get() })
    }
}

/// Keeps the cache whole in a forked child: the lock is held over the fork, and free in parent and child.
pub(crate) fn install_fork_handlers() {
    extern "C" fn prepare() {
        GLOBAL.lock();
    }
    extern "C" fn after() {
        GLOBAL.locked.store(false, Release);
    }
    static ONCE: Once = Once::new();
    // SAFETY: they touch one atomic.
    unsafe { on_fork(&ONCE, Some(prepare), Some(after), after) };
}

#[cfg(test)]
mod tests;
