//! Data in a kernel's own layout, kept beside the data it was made from: packed weights.
//!
//! An array never changes while anyone shares it, so what was computed from its bytes stays true as long as its block
//! lives, or until its only holder asks for write access (`Array::mut_ptr`); both ends clear the list. Nodes are only ever
//! added in between, each by one atomic exchange: readers need no lock, and a fork cannot leave one locked.

use crate::memory::notes::BlockNotes;
use crate::memory::owned::Memory;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed},
};

/// Layouts that are remembered, and those that are kept at most because they came again: more than layers that lie stacked
/// in one block have, fewer than the pieces of data that is read once from one end to the other.
const MOST_LAYOUTS: usize = 64;

/// Which part of a storage, in which form.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Element that the matrix starts at.
    pub offset: usize,
    /// Rows and columns.
    pub size: (usize, usize),
    /// Steps along them, in elements.
    pub steps: (isize, isize),
    /// What the kernel made of it.
    pub form: usize,
}

impl Layout {
    /// The first column, where this is some columns of another matrix in the same form.
    fn columns_of(&self, whole: &Self) -> Option<usize> {
        if (self.form, self.steps, self.size.0) != (whole.form, whole.steps, whole.size.0) {
            return None;
        }
        let (by, step) = (self.offset.checked_sub(whole.offset)?, usize::try_from(whole.steps.1).ok()?);
        let first = if by == 0 { 0 } else { by.is_multiple_of(step.max(1)).then(|| by / step.max(1))? };
        (first.checked_add(self.size.1)? <= whole.size.1).then_some(first)
    }

    /// Never 0.
    fn hash(&self) -> u32 {
        let words = [self.offset, self.size.0, self.size.1, self.steps.0 as usize, self.steps.1 as usize, self.form];
        let mix = |hash: u64, word: usize| (hash ^ word as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        (words.into_iter().fold(0, mix).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32 | 1
    }
}

/// Columns of a matrix that was kept as a whole.
#[derive(Clone, Copy)]
pub struct Columns {
    /// The first of them.
    pub first: usize,
    /// All that the matrix has.
    pub count: usize,
}

/// What was asked of one block; made by the first question.
struct Asked {
    /// Hashes of the last layouts, the next in place of the oldest; 0 for none.
    recent: [AtomicU32; MOST_LAYOUTS],
    /// How many layouts were put there.
    count: AtomicUsize,
    /// How many are kept.
    kept: AtomicUsize,
    /// Every layout is wanted from its first use on.
    all: AtomicBool,
}

impl Asked {
    fn new() -> Self {
        let (count, kept, all) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
        Self { recent: [const { AtomicU32::new(0) }; MOST_LAYOUTS], count, kept, all }
    }

    /// Whether this layout is among the last ones; it is from now on.
    fn again(&self, layout: &Layout) -> bool {
        let hash = layout.hash();
        let again = self.recent.iter().any(|recent| recent.load(Relaxed) == hash);
        if !again {
            self.recent[self.count.fetch_add(1, Relaxed) % MOST_LAYOUTS].store(hash, Relaxed);
        }
        again
    }
}

struct Node {
    layout: Layout,
    data: Memory,
    next: *mut Node,
}

/// What is kept beside the data of one block.
#[derive(Clone, Copy)]
pub struct PackedCache<'a>(&'a BlockNotes);

static BYTES: AtomicUsize = AtomicUsize::new(0);

/// Bytes of everything kept; [`crate::memory::alloc::current_bytes`] counts them too.
pub fn kept_bytes() -> usize {
    BYTES.load(Relaxed)
}

/// Most bytes that are kept: `PHLOX_PACKED_BYTES`, else 1 GiB.
fn most_bytes() -> usize {
    static MOST: OnceLock<usize> = OnceLock::new();
    *MOST.get_or_init(|| std::env::var("PHLOX_PACKED_BYTES").ok().and_then(|text| text.parse().ok()).unwrap_or(1 << 30))
}

/// Reads what the environment sets, so that no fork falls into a first reading.
pub(crate) fn init() {
    most_bytes();
}

impl<'a> PackedCache<'a> {
    /// That of this block.
    #[inline]
    pub fn of(notes: &'a BlockNotes) -> Self {
        Self(notes)
    }

    fn first(self) -> *mut Node {
        self.0.first.load(Acquire).cast()
    }

    /// False from the first question on.
    #[inline]
    pub fn is_untouched(self) -> bool {
        self.0.asked.load(Relaxed).is_null()
    }

    fn asked(self) -> &'a Asked {
        let at = self.0.asked.load(Acquire).cast::<Asked>();
        // SAFETY: what is published there lives until `clear`, which needs the block for itself.
        if let Some(asked) = unsafe { at.as_ref() } {
            return asked;
        }
        let fresh = Box::into_raw(Box::new(Asked::new()));
        match self.0.asked.compare_exchange(null_mut(), fresh.cast(), AcqRel, Acquire) {
            // SAFETY: as above; it was published just now.
            Ok(_) => unsafe { &*fresh },
            Err(faster) => {
                // SAFETY: made above by `Box`, and never shared.
                drop(unsafe { Box::from_raw(fresh) });
                // SAFETY: another thread published it, so it is not null and lives as above.
                unsafe { &*faster.cast() }
            }
        }
    }

    /// What was kept in this layout.
    pub fn find(self, layout: &Layout) -> Option<&'a Memory> {
        self.find_by(|node| (node.layout == *layout).then_some(&node.data))
    }

    /// What was kept of a matrix that has these columns among its own, with the place of the first, a multiple of `panel`.
    pub fn find_columns(self, layout: &Layout, panel: usize) -> Option<(&'a Memory, Columns)> {
        self.find_by(|node| {
            let first = layout.columns_of(&node.layout)?;
            let count = node.layout.size.1;
            first.is_multiple_of(panel).then_some((&node.data, Columns { first, count }))
        })
    }

    fn find_by<T>(self, choose: impl Fn(&'a Node) -> Option<T>) -> Option<T> {
        let mut at = self.first();
        // SAFETY: nodes live until `clear`, which needs the block for itself.
        while let Some(node) = unsafe { at.as_ref() } {
            let found = choose(node);
            if found.is_some() {
                return found;
            }
            at = node.next;
        }
        None
    }

    /// Has every layout wanted from its first use on.
    pub fn want_all(self) {
        self.asked().all.store(true, Relaxed);
    }

    /// True when this layout was asked for not long ago, and there is room: then it is worth keeping. Data that grows has
    /// another layout at each use.
    pub fn is_wanted(self, layout: &Layout, bytes: usize) -> bool {
        if self.0.line() != 0 {
            return false;
        }
        let asked = self.asked();
        (asked.all.load(Relaxed) || asked.again(layout))
            && asked.kept.load(Relaxed) < MOST_LAYOUTS
            && BYTES.load(Relaxed).saturating_add(bytes) <= most_bytes()
    }

    /// Keeps data, unless another thread was faster: returns what is kept.
    pub fn keep(self, layout: Layout, data: Memory) -> &'a Memory {
        let bytes = data.capacity();
        let asked = self.asked();
        let node = Box::into_raw(Box::new(Node { layout, data, next: null_mut() }));
        loop {
            let first = self.first();
            if let Some(faster) = self.find(&layout) {
                // SAFETY: never shared.
                drop(unsafe { Box::from_raw(node) });
                return faster;
            }
            // SAFETY: not shared yet. A node added since `first` was read makes the exchange fail.
            unsafe { (*node).next = first };
            if self.0.first.compare_exchange(first.cast(), node.cast(), AcqRel, Acquire).is_ok() {
                BYTES.fetch_add(bytes, Relaxed);
                asked.kept.fetch_add(1, Relaxed);
                // SAFETY: nodes live until `clear`.
                return unsafe { &(*node).data };
            }
        }
    }

    /// How many layouts are kept.
    #[cfg(test)]
    pub fn count(self) -> usize {
        let (mut count, mut at) = (0, self.first());
        // SAFETY: as in `find`.
        while let Some(node) = unsafe { at.as_ref() } {
            (count, at) = (count + 1, node.next);
        }
        count
    }

    /// Forgets everything.
    ///
    /// # Safety
    /// Nobody else uses the block, and nothing that [`PackedCache::find`] or [`PackedCache::keep`] returned is in use.
    #[cold]
    pub unsafe fn clear(self) {
        let asked = self.0.asked.swap(null_mut(), Acquire).cast::<Asked>();
        if !asked.is_null() {
            // SAFETY: `asked` made it by `Box`, and only this list held it.
            drop(Box::from_raw(asked));
        }
        let mut at = self.0.first.swap(null_mut(), Acquire).cast::<Node>();
        while !at.is_null() {
            // SAFETY: only this list held the node.
            let node = Box::from_raw(at);
            BYTES.fetch_sub(node.data.capacity(), Relaxed);
            at = node.next;
        }
    }
}

#[cfg(test)]
mod tests;
