//! Sorting integers by some of their bytes, from the lowest to the highest (stable).

use crate::dtype::Plain;
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::filled;

const BUCKETS: usize = 256;
/// Below this, a comparison sort is faster.
const SMALL: usize = 112;
/// Above this, one sequence is sorted by several threads.
const LARGE: usize = 1 << 17;

/// What is sorted: a key, or a key above an index in one integer, so that equal keys stay in order in any sort.
pub trait Item: Plain + Ord + Default + Send + Sync + 'static {
    /// The bytes that hold the key.
    const BYTES: std::ops::Range<usize>;
    /// One of the bytes.
    fn byte(self, at: usize) -> usize;
}

/// A 32-bit key above a 32-bit index.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Packed(pub u64);

/// A 64-bit key and an index.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
pub struct Wide(pub u64, pub u64);

// SAFETY: 64-bit integers, so any bits are one, and nothing lies between them.
unsafe impl Plain for Packed {}
// SAFETY: as for `Packed`.
unsafe impl Plain for Wide {}

impl Item for u32 {
    const BYTES: std::ops::Range<usize> = 0..4;
    #[inline(always)]
    fn byte(self, at: usize) -> usize {
        (self >> (8 * at)) as usize & 255
    }
}

impl Item for u64 {
    const BYTES: std::ops::Range<usize> = 0..8;
    #[inline(always)]
    fn byte(self, at: usize) -> usize {
        (self >> (8 * at)) as usize & 255
    }
}

impl Item for Packed {
    const BYTES: std::ops::Range<usize> = 4..8;
    #[inline(always)]
    fn byte(self, at: usize) -> usize {
        (self.0 >> (8 * at)) as usize & 255
    }
}

impl Item for Wide {
    const BYTES: std::ops::Range<usize> = 0..8;
    #[inline(always)]
    fn byte(self, at: usize) -> usize {
        (self.0 >> (8 * at)) as usize & 255
    }
}

/// Sorts `items`; `spare` is as long.
pub fn sort<I: Item>(items: &mut [I], spare: &mut [I]) {
    if items.is_sorted() {
        return;
    }
    if items.len() < SMALL {
        items.sort_unstable();
    } else if items.len() < LARGE {
        sort_serial(items, spare);
    } else {
        sort_parallel(items, spare);
    }
}

fn sort_serial<I: Item>(items: &mut [I], spare: &mut [I]) {
    let mut counts = [[0u32; BUCKETS]; 8];
    for &item in items.iter() {
        for at in I::BYTES {
            counts[at][item.byte(at)] += 1;
        }
    }
    let (mut from, mut to) = (&mut *items, &mut *spare);
    let mut swapped = false;
    for at in I::BYTES {
        let counts = &mut counts[at];
        // A byte that all items share needs no pass.
        if counts[from[0].byte(at)] as usize == from.len() {
            continue;
        }
        let mut start = 0;
        for count in counts.iter_mut() {
            (start, *count) = (start + *count, start);
        }
        for &item in from.iter() {
            let place = &mut counts[item.byte(at)];
            // SAFETY: the counts add up to the length, so each place lies below it.
            unsafe { *to.get_unchecked_mut(*place as usize) = item };
            *place += 1;
        }
        (from, to) = (to, from);
        swapped = !swapped;
    }
    if swapped {
        items.copy_from_slice(spare);
    }
}

/// The same with the sequence cut into chunks: a chunk counts its bytes, then moves its items behind those of the
/// chunks before. The result does not depend on the cuts.
fn sort_parallel<I: Item>(items: &mut [I], spare: &mut [I]) {
    let len = items.len();
    let step = len.div_ceil((threads::num_threads() * 2).min(len / (LARGE / 4)));
    let chunks = len.div_ceil(step);
    let part = |chunk: usize| chunk * step..len.min((chunk + 1) * step);
    let mut counts = filled([0usize; BUCKETS], chunks);
    let buffers = [SharedMut::new(items.as_mut_ptr()), SharedMut::new(spare.as_mut_ptr())];
    let mut side = 0;
    for at in I::BYTES {
        let (from, to) = (buffers[side], buffers[1 - side]);
        let shared = SharedMut::new(counts.as_mut_ptr());
        threads::parallel(chunks, &|chunk| {
            // SAFETY: each chunk has its own counts; the items are only read.
            let (own, items) = unsafe { (&mut *shared.ptr().add(chunk), from.slice(part(chunk))) };
            own.fill(0);
            for &item in items.iter() {
                own[item.byte(at)] += 1;
            }
        });
        if (0..BUCKETS).any(|bucket| counts.iter().map(|own| own[bucket]).sum::<usize>() == len) {
            continue;
        }
        let mut start = 0;
        for bucket in 0..BUCKETS {
            for own in &mut counts {
                (start, own[bucket]) = (start + own[bucket], start);
            }
        }
        let shared = SharedMut::new(counts.as_mut_ptr());
        threads::parallel(chunks, &|chunk| {
            // SAFETY: each chunk has its own counts, which give it places that no other one gets, all below the length.
            unsafe {
                let own = &mut *shared.ptr().add(chunk);
                for &item in from.slice(part(chunk)).iter() {
                    let place = &mut own[item.byte(at)];
                    to.ptr().add(*place).write(item);
                    *place += 1;
                }
            }
        });
        side = 1 - side;
    }
    if side == 1 {
        items.copy_from_slice(spare);
    }
}
