//! Cotangents of attention, from scores computed again: for each block of queries all its scores at once, then five
//! products. A task sums the cotangents of key and value over its blocks in a buffer of its own.

use super::heads::Heads;
use super::hidden::Part;
use super::scores::{self, Pull, Score, State, Weights};
use super::tile::{Left, Onto, Panels, Product, Turn};
use super::{Job, Place, pack, rows_per_group};
use crate::array::Array;
use crate::array::float::{RowElement, Wide};
use crate::dtype::Element;
use crate::machine::lanes::{Block, lane_count};
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::Arena;
use std::ops::Range;

/// Heads of keys below which the queries of a head are shared out over tasks.
const TASKS: usize = 8;

/// Elements that are added up at a time.
const RUN: usize = 1 << 10;

/// Where the cotangents go: row-major, of the shapes of query, key and value.
pub struct Cotangents<'a> {
    /// Of the query.
    pub query: &'a mut Array,
    /// Of the key.
    pub key: &'a mut Array,
    /// Of the value.
    pub value: &'a mut Array,
    /// Of the scores before the cap, in the type that sums are computed in, where somebody wants them.
    pub scores: Option<&'a mut Array>,
}

/// Where tasks write.
pub struct Targets<T: RowElement> {
    /// The cotangents of queries.
    pub query: SharedMut<T>,
    key: SharedMut<T>,
    value: SharedMut<T>,
    /// Those of scores.
    pub scores: Option<SharedMut<T::Wide>>,
    /// For each task: sums for key and value, where heads are shared out.
    parts: Option<[SharedMut<T::Wide>; 2]>,
    keys: usize,
}

/// A task: blocks of queries of the heads that share keys.
pub struct Share {
    /// Of all tasks.
    index: usize,
    /// Which head of keys.
    pub head: usize,
    /// Which blocks, counted through the heads of queries.
    pub blocks: Range<usize>,
}

/// Which cotangent a row is of.
#[derive(Clone, Copy)]
pub enum Of {
    /// The keys.
    Key,
    /// The values.
    Value,
}

impl<T: RowElement<Wide: Score>> Targets<T> {
    /// Writes what a task summed for the keys from `first` on, rows of so many columns.
    pub fn put(&self, share: &Share, of: Of, first: usize, cols: usize, rows: &[T::Wide]) {
        let at = |head| {
            let at = (head * self.keys + first) * cols;
            at..at + rows.len()
        };
        let (whole, part) = match of {
            Of::Key => (self.key, self.parts.map(|parts| parts[0])),
            Of::Value => (self.value, self.parts.map(|parts| parts[1])),
        };
        // SAFETY: each task has its own rows, of the result or of its part.
        unsafe {
            match part {
                None => T::save(rows, whole.slice(at(share.head))),
                Some(part) => part.slice(at(share.index)).copy_from_slice(rows),
            }
        }
    }
}

/// Fills the cotangents from that of the result.
pub fn run<T: RowElement<Wide: Score>>(job: &Job<T>, g: &Heads<T>, out: Cotangents<'_>) -> crate::error::Result<()> {
    let width = 4 * lane_count::<T::Wide>();
    in_tasks(job, width, out, |targets, share| {
        let group = rows_per_group::<T::Wide>();
        let shared = Shared { job, g: *g, targets, width, group };
        let bytes = shared.scratch() * size_of::<T::Wide>();
        Arena::with([bytes], |parts| shared.task(&share, parts));
    })
}

/// Cuts the work, of blocks of `width` queries, by shape alone, and adds up what tasks sum for the same keys.
pub fn in_tasks<T: RowElement<Wide: Score>>(
    job: &Job<T>,
    width: usize,
    out: Cotangents<'_>,
    task: impl Fn(&Targets<T>, Share) + Sync,
) -> crate::error::Result<()> {
    let count = job.queries.div_ceil(width) * (job.heads / job.shared);
    let heads = job.batch * job.shared;
    let per = count.div_ceil(TASKS.div_ceil(heads).min(count));
    let chunks = count.div_ceil(per);
    let (key_len, value_len) = (job.keys * job.size, job.keys * job.values);
    let wide = <T::Wide as Element>::DTYPE;
    let mut parts = match chunks {
        1 => None,
        _ => {
            Some((Array::uninit(wide, &[heads * chunks, key_len])?, Array::uninit(wide, &[heads * chunks, value_len])?))
        }
    };
    let targets = Targets {
        query: SharedMut::new(out.query.mut_ptr::<T>()),
        key: SharedMut::new(out.key.mut_ptr::<T>()),
        value: SharedMut::new(out.value.mut_ptr::<T>()),
        scores: out.scores.map(|scores| SharedMut::new(scores.mut_ptr::<T::Wide>())),
        parts: parts.as_mut().map(|(key, value)| [SharedMut::new(key.mut_ptr()), SharedMut::new(value.mut_ptr())]),
        keys: job.keys,
    };
    let work = |index: usize| {
        let (head, chunk) = (index / chunks, index % chunks);
        task(&targets, Share { index, head, blocks: chunk * per..((chunk + 1) * per).min(count) });
    };
    job.spread(heads * chunks, &work);
    if let Some((key, value)) = parts {
        let merge = |head: usize| {
            let rows = head * chunks..(head + 1) * chunks;
            // SAFETY: the results have a row per head, and each head one task.
            let (to_key, to_value) = unsafe {
                let row = |len| head * len..(head + 1) * len;
                (targets.key.slice(row(key_len)), targets.value.slice(row(value_len)))
            };
            merge::<T>(&key, rows.clone(), to_key);
            merge::<T>(&value, rows, to_value);
        };
        threads::parallel(heads, &merge);
    }
    Ok(())
}

/// Adds up the rows `parts` in order, as a row of the result.
fn merge<T: RowElement<Wide: Score>>(from: &Array, parts: Range<usize>, out: &mut [T]) {
    let len = out.len();
    let rows = &from.as_slice::<T::Wide>().expect("row-major")[parts.start * len..parts.end * len];
    let mut sums = [T::Wide::ZERO; RUN];
    for first in (0..len).step_by(RUN) {
        let sums = &mut sums[..RUN.min(len - first)];
        sums.fill(T::Wide::ZERO);
        for row in rows.chunks_exact(len) {
            for (sum, &x) in sums.iter_mut().zip(&row[first..]) {
                *sum = *sum + x;
            }
        }
        T::save(sums, &mut out[first..][..sums.len()]);
    }
}

/// What all tasks share.
struct Shared<'a, T: RowElement> {
    job: &'a Job<T>,
    g: Heads<T>,
    targets: &'a Targets<T>,
    /// Lanes of a block: two panels of two registers.
    width: usize,
    /// Rows per group of the left side of a product.
    group: usize,
}

/// Buffers of a task, and where its keys lie.
struct Buffers<'a, W> {
    keys: &'a mut [W],
    values: &'a mut [W],
    dense_keys: (*const W, isize),
    dkey: &'a mut [W],
    dvalue: &'a mut [W],
    /// Turned over: `[size][width]`.
    queries: &'a mut [W],
    cotangents: &'a mut [W],
    /// As they are, `[width]` rows of whole panels.
    query_rows: &'a mut [W],
    cotangent_rows: &'a mut [W],
    weights: &'a mut [W],
    pulls: &'a mut [W],
    caps: &'a mut [W],
    dquery: &'a mut [W],
    state: &'a mut [W],
    stage: &'a mut [W],
    changes: &'a mut [W],
}

impl<T: RowElement<Wide: Score>> Shared<'_, T> {
    /// Columns of rows, filled up to whole panels.
    fn padded(&self, cols: usize) -> usize {
        cols.next_multiple_of(self.width / 2)
    }

    fn scratch(&self) -> usize {
        let (job, width) = (self.job, self.width);
        let packed = job.keys.next_multiple_of(self.group);
        let (size, values) = (self.padded(job.size), self.padded(job.values));
        let keys = packed * (job.size + job.values) + job.keys * (job.size + size + values);
        let rows = width * (2 * job.size + job.values + size + values + 3 + job.size.max(job.values));
        let blocks = job.keys * width * if job.settings.softcap.is_some() { 3 } else { 2 };
        keys + rows + blocks + job.changes.buffer(job.keys, width) + 16 * 17
    }

    fn buffers<'a>(&self, head: usize, mut parts: Arena<'a>) -> Buffers<'a, T::Wide> {
        let (job, width) = (self.job, self.width);
        let packed = job.keys.next_multiple_of(self.group);
        let (size, values) = (self.padded(job.size), self.padded(job.values));
        let (key, value) = (job.key.get(head), job.value.get(head));
        let copy = parts.take(job.keys * job.size);
        // SAFETY: the keys of a head, and room for them.
        let dense_keys = unsafe { key.dense((job.keys, job.size), copy.as_mut_ptr()) };
        let buffers = Buffers {
            keys: parts.take(packed * job.size),
            values: parts.take(packed * job.values),
            dense_keys,
            dkey: parts.take(job.keys * size),
            dvalue: parts.take(job.keys * values),
            queries: parts.take(width * job.size),
            cotangents: parts.take(width * job.values),
            query_rows: parts.take(width * size),
            cotangent_rows: parts.take(width * values),
            weights: parts.take(job.keys * width),
            pulls: parts.take(job.keys * width),
            caps: parts.take(if job.settings.softcap.is_some() { job.keys * width } else { 0 }),
            dquery: parts.take(width * job.size),
            state: parts.take(width * 3),
            stage: parts.take(width * job.size.max(job.values)),
            changes: parts.take(job.changes.buffer(job.keys, width)),
        };
        // SAFETY: keys and values of a head; the stage holds a group of rows, the others all of them in whole groups.
        unsafe {
            pack(key, (job.keys, job.size), self.group, buffers.stage, buffers.keys);
            pack(value, (job.keys, job.values), self.group, buffers.stage, buffers.values);
        }
        buffers.dkey.fill(T::Wide::ZERO);
        buffers.dvalue.fill(T::Wide::ZERO);
        buffers.query_rows.fill(T::Wide::ZERO);
        buffers.cotangent_rows.fill(T::Wide::ZERO);
        buffers
    }

    fn task(&self, share: &Share, parts: Arena<'_>) {
        let job = self.job;
        let mut buffers = self.buffers(share.head, parts);
        for block in share.blocks.clone() {
            let place = job.place(self.width, share.head, block);
            if place.seen == 0 {
                self.clear(place);
                continue;
            }
            self.load(place, &mut buffers);
            self.weigh(place, &mut buffers);
            self.pull(place, &mut buffers);
            self.spread(place, &mut buffers);
        }
        for (sums, cols, of) in [(&*buffers.dkey, job.size, Of::Key), (&*buffers.dvalue, job.values, Of::Value)] {
            let pitch = self.padded(cols);
            for key in 0..job.keys {
                self.targets.put(share, of, key, cols, &sums[key * pitch..][..cols]);
            }
        }
    }

    /// The cotangents of queries that see nothing.
    fn clear(&self, place: Place) {
        let (job, row) = (self.job, place.head * self.job.queries + place.first);
        // SAFETY: the rows of this block.
        unsafe {
            let zero = T::narrow(T::Wide::ZERO);
            self.targets.query.slice(row * job.size..(row + place.count) * job.size).fill(zero);
            if let Some(scores) = self.targets.scores {
                scores.slice(row * job.keys..(row + place.count) * job.keys).fill(T::Wide::ZERO);
            }
        }
    }

    /// Reads queries and cotangents of a block, as rows and turned over.
    fn load(&self, place: Place, buffers: &mut Buffers<'_, T::Wide>) {
        let (job, width) = (self.job, self.width);
        let (query, g) = (job.query.get(place.head).from(place.first, 0), self.g.get(place.head).from(place.first, 0));
        let (size, values) = (self.padded(job.size), self.padded(job.values));
        let unit = |by| T::Wide::from_f64(by);
        // SAFETY: the block lies inside the operands, the buffers are as large as planned.
        unsafe {
            query.read_all((place.count, job.size), buffers.stage.as_mut_ptr(), job.size, unit(job.query_unit()));
            let from = Block { at: buffers.stage.as_ptr(), pitch: job.size, rows: place.count, cols: job.size };
            Turn { from, to: buffers.queries.as_mut_ptr(), width }.run();
            query.read_all((place.count, job.size), buffers.query_rows.as_mut_ptr(), size, unit(job.settings.scale));
            g.read_all((place.count, job.values), buffers.cotangent_rows.as_mut_ptr(), values, T::Wide::ONE);
            let rows = &*buffers.cotangent_rows;
            let from = Block { at: rows.as_ptr(), pitch: values, rows: place.count, cols: job.values };
            Turn { from, to: buffers.cotangents.as_mut_ptr(), width }.run();
        }
    }

    /// Panels of a block in use.
    fn panels(&self, place: Place) -> usize {
        place.count.div_ceil(self.width / 2)
    }

    /// A buffer with a row per key or column, as the side of a product.
    fn side<P>(&self, at: P) -> Panels<P> {
        Panels { at, panel: self.width / 2, row: self.width }
    }

    /// The weights of a block, up to the division by their sum.
    fn weigh(&self, place: Place, buffers: &mut Buffers<'_, T::Wide>) {
        let (job, width) = (self.job, self.width);
        let block = &mut buffers.weights[..place.seen * width];
        // SAFETY: the buffers are as large as planned; the part lies inside the operands.
        unsafe {
            Product::<_, 0, 2> {
                rows: place.seen,
                depth: job.size,
                panels: self.panels(place),
                a: Left { at: buffers.keys.as_ptr(), group: self.group * job.size, step: self.group as isize },
                b: self.side(buffers.queries.as_ptr()),
                c: self.side(block.as_mut_ptr()),
                onto: Onto::Nothing,
            }
            .run();
            if let Some(cap) = job.cap_unit() {
                let caps = &mut buffers.caps[..block.len()];
                scores::cap(block, T::Wide::ONE);
                caps.copy_from_slice(block);
                for slot in block.iter_mut() {
                    *slot = *slot * T::Wide::from_f64(cap);
                }
            }
            let part = Part { head: place.head, queries: (place.first, place.count), keys: (0, place.seen) };
            job.changes.apply(part, width, block, buffers.changes);
        }
        buffers.state[..width].fill(T::Wide::LOWEST);
        buffers.state[width..].fill(T::Wide::ZERO);
        let (top, rest) = buffers.state.split_at_mut(width);
        let (total, fade) = rest.split_at_mut(width);
        Weights::<_, 4> { scores: block, state: State { top, total, fade } }.run();
    }

    /// The cotangents of the scores of a block.
    fn pull(&self, place: Place, buffers: &mut Buffers<'_, T::Wide>) {
        let (job, width) = (self.job, self.width);
        let pulls = &mut buffers.pulls[..place.seen * width];
        // SAFETY: the buffers are as large as planned.
        unsafe {
            Product::<_, 0, 2> {
                rows: place.seen,
                depth: job.values,
                panels: self.panels(place),
                a: Left { at: buffers.values.as_ptr(), group: self.group * job.values, step: self.group as isize },
                b: self.side(buffers.cotangents.as_ptr()),
                c: self.side(pulls.as_mut_ptr()),
                onto: Onto::Nothing,
            }
            .run();
        }
        let weights = &mut buffers.weights[..place.seen * width];
        Pull { weights, pulls, total: &buffers.state[width..2 * width] }.run();
        if let Some(scores) = self.targets.scores {
            let at = (place.head * job.queries + place.first) * job.keys;
            let pulls = &buffers.pulls[..place.seen * width];
            let from = Block { at: pulls.as_ptr(), pitch: width, rows: place.seen, cols: place.count };
            // SAFETY: the rows of this block.
            unsafe {
                Turn { from, to: scores.ptr().add(at), width: job.keys }.run();
            }
        }
        if job.settings.softcap.is_some() {
            scores::uncap(&mut buffers.pulls[..place.seen * width], &buffers.caps[..place.seen * width]);
        }
    }

    /// Adds to the cotangents of key and value, and writes those of the queries.
    fn spread(&self, place: Place, buffers: &mut Buffers<'_, T::Wide>) {
        let (job, width) = (self.job, self.width);
        let Buffers { weights, pulls, .. } = buffers;
        let cotangents = [
            (&**weights, &*buffers.cotangent_rows, &mut *buffers.dvalue, job.values),
            (&**pulls, &*buffers.query_rows, &mut *buffers.dkey, job.size),
        ];
        for (left, right, sums, cols) in cotangents {
            let (pitch, panel) = (self.padded(cols), width / 2);
            // SAFETY: the buffers are as large as planned.
            unsafe {
                Product::<_, 4, 2> {
                    rows: place.seen,
                    depth: place.count,
                    panels: pitch / panel,
                    a: Left { at: left.as_ptr(), group: self.group * width, step: 1 },
                    b: Panels { at: right.as_ptr(), panel, row: pitch },
                    c: Panels { at: sums.as_mut_ptr(), panel, row: pitch },
                    onto: Onto::Sum,
                }
                .run();
            }
        }
        if job.size == 0 {
            return;
        }
        // SAFETY: the buffers are as large as planned.
        unsafe {
            Product::<_, 0, 2> {
                rows: job.size,
                depth: place.seen,
                panels: self.panels(place),
                a: Left { at: buffers.dense_keys.0, group: self.group, step: buffers.dense_keys.1 },
                b: self.side(buffers.pulls.as_ptr()),
                c: self.side(buffers.dquery.as_mut_ptr()),
                onto: Onto::Nothing,
            }
            .run();
            let from = Block { at: buffers.dquery.as_ptr(), pitch: width, rows: job.size, cols: place.count };
            Turn { from, to: buffers.stage.as_mut_ptr(), width: job.size }.run();
        }
        let by = T::Wide::from_f64(job.settings.scale);
        let rows = &mut buffers.stage[..place.count * job.size];
        for slot in rows.iter_mut() {
            *slot = *slot * by;
        }
        let start = (place.head * job.queries + place.first) * job.size;
        // SAFETY: the rows of this block.
        T::save(rows, unsafe { self.targets.query.slice(start..start + rows.len()) });
    }
}
