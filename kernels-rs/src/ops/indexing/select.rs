//! Reading where a mask is true: `nonzero`, `masked_select`.

use crate::array::Array;
use crate::array::reader::Reader;
use crate::array::view;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::filled;
use std::ops::Range;

/// Elements that are worth a task of their own.
const GRAIN: usize = 1 << 16;
/// Elements that are read at a time.
const PART: usize = 1 << 12;
/// Elements that are looked at together.
const TOGETHER: usize = 64;

/// Positions of `true` in a 1-d mask, rising, as `int64`.
pub fn nonzero(mask: &Array) -> Result<Array> {
    if mask.dtype() != DType::Bool {
        return Err(Error::Rejected("nonzero takes bool"));
    }
    if mask.rank() != 1 {
        return Err(Error::value("nonzero", format!("wrong rank: got {}, expected 1", mask.rank())));
    }
    let found = Found::new(mask);
    let mut out = Array::uninit(DType::I64, &[found.count()])?;
    let to = SharedMut::new(out.mut_ptr::<i64>());
    found.each(&|part, flags, places| {
        // SAFETY: each task has its own run of the result.
        keep(flags, unsafe { to.slice(places) }, |at| (part.start + at) as i64)
    });
    Ok(out)
}

/// The elements at which the mask, broadcast to `x`, is true, in row-major order, 1-d.
pub fn masked_select(x: &Array, mask: &Array) -> Result<Array> {
    if mask.dtype() != DType::Bool {
        return Err(Error::Rejected("masked_select takes a mask of bool"));
    }
    let found = Found::new(&view::broadcast_to(mask, x.shape())?);
    let out = Array::uninit(x.dtype(), &[found.count()])?;
    match x.dtype().itemsize() {
        1 => select::<u8>(x, &found, &out),
        2 => select::<u16>(x, &found, &out),
        4 => select::<u32>(x, &found, &out),
        _ => select::<u64>(x, &found, &out),
    }
    Ok(out)
}

fn select<T: Element>(x: &Array, found: &Found, out: &Array) {
    let (x, to) = (Reader::<T>::bits(x), SharedMut::new(out.storage().data().cast::<T>()));
    found.each(&|part, flags, places| {
        let mut aside = filled(0.0, x.room(part.len()));
        let x = x.part(part, &mut aside);
        // SAFETY: each task has its own run of the fresh result.
        keep(flags, unsafe { to.slice(places) }, |at| x[at])
    });
}

/// Writes what belongs to the flags that are true, and returns how many those are.
fn keep<T: Element>(flags: &[bool], out: &mut [T], value: impl Fn(usize) -> T) -> usize {
    let mut found = 0;
    for (group, flags) in flags.chunks(TOGETHER).enumerate() {
        // Written whether true or not, the next one over it: no branch to guess.
        let (mut here, mut count) = ([T::from_i64(0); TOGETHER], 0);
        for (at, &flag) in flags.iter().enumerate() {
            here[count] = value(group * TOGETHER + at);
            count += flag as usize;
        }
        out[found..found + count].copy_from_slice(&here[..count]);
        found += count;
    }
    found
}

/// A mask in row-major order, and how many are true before each task.
struct Found {
    mask: Array,
    starts: Vec<usize>,
}

impl Found {
    fn new(mask: &Array) -> Self {
        let tasks = mask.numel().div_ceil(GRAIN);
        let mut found = Self { mask: mask.clone(), starts: filled(0, tasks + 1) };
        let counts = SharedMut::new(found.starts.as_mut_ptr());
        let flags = Reader::<bool>::new(mask);
        threads::parallel(tasks, &|task| {
            let (mut aside, mut count) = (filled(0.0, flags.room(PART)), 0);
            for part in parts(task, mask.numel()) {
                count += flags.part(part, &mut aside).iter().map(|&flag| flag as usize).sum::<usize>();
            }
            // SAFETY: one slot for each task.
            unsafe { counts.ptr().add(task + 1).write(count) };
        });
        for task in 0..tasks {
            found.starts[task + 1] += found.starts[task];
        }
        found
    }

    /// How many are true.
    fn count(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    /// Calls `work` with parts of the mask: which, its flags, and where the results of this part begin and those of the
    /// task end. It returns how many flags are true.
    fn each(&self, work: &Work<'_>) {
        let flags = Reader::<bool>::new(&self.mask);
        threads::parallel(self.starts.len() - 1, &|task| {
            let (mut aside, mut start) = (filled(0.0, flags.room(PART)), self.starts[task]);
            for part in parts(task, self.mask.numel()) {
                let flags = flags.part(part.clone(), &mut aside);
                start += work(part, flags, start..self.starts[task + 1]);
            }
        });
    }
}

/// What is done with a part of a mask.
type Work<'a> = dyn Fn(Range<usize>, &[bool], Range<usize>) -> usize + Sync + 'a;

/// The parts of a task.
fn parts(task: usize, count: usize) -> impl Iterator<Item = Range<usize>> {
    let end = count.min((task + 1) * GRAIN);
    (task * GRAIN..end).step_by(PART).map(move |first| first..end.min(first + PART))
}
