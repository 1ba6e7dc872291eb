//! Scaled dot-product attention and its gradient. No matrix of all scores is ever in memory.
//!
//! Operands may have any strides: heads that are views of `[batch, sequence, heads, size]` are read where they lie.
//! Work is cut by shape alone, so nothing depends on the number of threads.

#[cfg(target_arch = "x86_64")]
mod amx;
mod backward;
mod decode;
mod forward;
mod gradient;
mod heads;
mod hidden;
mod scores;
#[cfg(test)]
mod tests;
mod tile;

use crate::array::Array;
use crate::array::float::{RowElement, Wide};
use crate::array::shape;
use crate::dtype::{BF16, DType, F16};
use crate::error::{Error, Result};
#[cfg(target_arch = "x86_64")]
use crate::machine::amx::Processor;
use crate::machine::lanes::{Block, Lanes, Real, is_baseline, lane_count};
use crate::machine::threads;
use heads::Heads;
use hidden::Changes;
use scores::Score;
use std::ops::Range;
use tile::Turn;

pub use gradient::attention_backward;

/// Multiply-adds below which a call is not worth a second thread (about 5 us).
const SERIAL: usize = 1 << 19;

/// The attributes of an op.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// What products of queries and keys are multiplied with.
    pub scale: f64,
    /// Scores become `softcap * tanh(score / softcap)`.
    pub softcap: Option<f64>,
    /// Whether queries see no later keys; the last query sees all.
    pub is_causal: bool,
}

/// The operands of attention.
#[derive(Clone, Copy)]
pub struct Operands<'a> {
    /// `[.., heads, queries, size]`.
    pub query: &'a Array,
    /// `[.., shared heads, keys, size]`.
    pub key: &'a Array,
    /// `[.., shared heads, keys, values]`.
    pub value: &'a Array,
    /// Bool, broadcasts to `[.., heads, queries, keys]`: true where a query may not look.
    pub mask: Option<&'a Array>,
    /// Broadcasts likewise: added to the scores.
    pub bias: Option<&'a Array>,
}

/// Attention: `softmax(scale * query @ key^T) @ value`, `[.., heads, queries, values]`.
pub fn attention(operands: Operands<'_>, settings: Settings) -> Result<Array> {
    check(&operands)?;
    let query = operands.query;
    let mut shape = *query.shape();
    let rank = shape.len();
    shape[rank - 1] = operands.value.shape()[rank - 1];
    if shape::numel(&shape) == 0 || operands.key.shape()[rank - 2] == 0 {
        return Array::zeros(query.dtype(), &shape);
    }
    let mut out = Array::uninit(query.dtype(), &shape)?;
    match query.dtype() {
        DType::F16 => Job::<F16>::new(operands, settings).run(&mut out)?,
        DType::BF16 => bfloat16(&Job::new(operands, settings), &mut out)?,
        DType::F64 => Job::<f64>::new(operands, settings).run(&mut out)?,
        _ => Job::<f32>::new(operands, settings).run(&mut out)?,
    }
    Ok(out)
}

/// By tiles, where there is a unit for them and many queries.
fn bfloat16(job: &Job<BF16>, out: &mut Array) -> Result<()> {
    #[cfg(target_arch = "x86_64")]
    if amx::applies(job) {
        amx::run::<Processor>(job, out);
        return Ok(());
    }
    job.run(out)
}

fn check(operands: &Operands<'_>) -> Result<()> {
    let Operands { query, key, value, mask, bias } = *operands;
    let dtype = query.dtype();
    if !dtype.is_float() || [key, value].into_iter().chain(bias).any(|x| x.dtype() != dtype) {
        return Err(Error::Rejected("attention wants operands of one float dtype"));
    }
    if mask.is_some_and(|mask| mask.dtype() != DType::Bool) {
        return Err(Error::Rejected("attention wants a mask of bool"));
    }
    let rank = query.rank();
    if rank < 3 || key.rank() != rank || value.rank() != rank {
        return Err(Error::Rejected("attention wants operands of one rank of at least 3"));
    }
    let (q, k, v) = (query.shape(), key.shape(), value.shape());
    let lead = rank - 3;
    let groups = if k[lead] == 0 { q[lead] == 0 } else { q[lead].is_multiple_of(k[lead]) };
    let fits = q[..lead] == k[..lead]
        && k[..=lead + 1] == v[..=lead + 1]
        && q[..lead] == v[..lead]
        && q[rank - 1] == k[rank - 1]
        && groups;
    let mut scores = *q;
    scores[rank - 1] = k[rank - 2];
    let broadcasts = |x: &Array| shape::broadcast(x.shape(), &scores).is_ok_and(|to| to[..] == scores[..]);
    if !fits || !mask.is_none_or(broadcasts) || !bias.is_none_or(broadcasts) {
        return Err(Error::Rejected("attention wants other shapes"));
    }
    Ok(())
}

/// A call: sizes and operands.
struct Job<T> {
    batch: usize,
    heads: usize,
    /// Heads of key and value.
    shared: usize,
    queries: usize,
    keys: usize,
    size: usize,
    values: usize,
    query: Heads<T>,
    key: Heads<T>,
    value: Heads<T>,
    changes: Changes<T>,
    settings: Settings,
}

impl<T: RowElement<Wide: Score>> Job<T> {
    fn new(operands: Operands<'_>, settings: Settings) -> Self {
        let Operands { query, key, value, mask, bias } = operands;
        let rank = query.rank();
        let (q, k) = (query.shape(), key.shape());
        let mut scores = *q;
        scores[rank - 1] = k[rank - 2];
        let (queries, keys) = (q[rank - 2], k[rank - 2]);
        Self {
            batch: shape::numel(&q[..rank - 3]),
            heads: q[rank - 3],
            shared: k[rank - 3],
            queries,
            keys,
            size: q[rank - 1],
            values: value.shape()[rank - 1],
            query: Heads::new(query, q),
            key: Heads::new(key, k),
            value: Heads::new(value, value.shape()),
            changes: Changes {
                mask: mask.map(|mask| Heads::new(mask, &scores)),
                bias: bias.map(|bias| Heads::new(bias, &scores)),
                behind: settings.is_causal.then_some(keys as isize - queries as isize),
                unit: std::f64::consts::LOG2_E,
            },
            settings,
        }
    }

    fn run(&self, out: &mut Array) -> Result<()> {
        if self.heads / self.shared * self.queries <= decode::MOST && !is_baseline() {
            return decode::run(self, out);
        }
        forward::run(self, out);
        Ok(())
    }

    /// What queries are multiplied with, so that scores come out in units of `ln 2`, or ready for the cap.
    fn query_unit(&self) -> f64 {
        self.settings.scale * self.settings.softcap.map_or(std::f64::consts::LOG2_E, f64::recip)
    }

    /// The cap in units of `ln 2`.
    fn cap_unit(&self) -> Option<f64> {
        self.settings.softcap.map(|cap| cap * std::f64::consts::LOG2_E)
    }

    /// Runs tasks of some blocks of `width` queries each, at most `most`, of heads that share a head of keys; `tasks` to aim for.
    fn in_blocks(&self, width: usize, (most, tasks): (usize, usize), task: &(dyn Fn(usize, Range<usize>) + Sync)) {
        let count = self.queries.div_ceil(width) * (self.heads / self.shared);
        let heads = self.batch * self.shared;
        let per = (heads * count / tasks).clamp(1, most.min(count));
        let chunks = count.div_ceil(per);
        let work = |index: usize| {
            // Later queries see more keys where attention is causal: they go first.
            let (shared, chunk) = (index / chunks, chunks - 1 - index % chunks);
            task(shared, chunk * per..((chunk + 1) * per).min(count));
        };
        self.spread(heads * chunks, &work);
    }

    /// Runs tasks, on one thread where there is little to do.
    fn spread(&self, tasks: usize, work: &(dyn Fn(usize) + Sync)) {
        if self.work() < SERIAL { (0..tasks).for_each(work) } else { threads::parallel(tasks, work) }
    }

    /// The block of this number, of the heads that share a head of keys.
    fn place(&self, width: usize, shared: usize, block: usize) -> Place {
        let blocks = self.queries.div_ceil(width);
        let first = block % blocks * width;
        let head = shared * (self.heads / self.shared) + block / blocks;
        let count = width.min(self.queries - first);
        Place { head, first, count, seen: self.changes.seen(first + count - 1, self.keys) }
    }

    /// Multiply-adds.
    fn work(&self) -> usize {
        (self.batch * self.heads * self.queries).saturating_mul(self.keys * (self.size + self.values))
    }
}

/// One block of queries of a head.
#[derive(Clone, Copy)]
struct Place {
    head: usize,
    first: usize,
    count: usize,
    /// Keys that some of the queries see.
    seen: usize,
}

/// Rows of a group of the left side of a product.
fn rows_per_group<W: Real>() -> usize {
    match lane_count::<W>() {
        n if n == W::Wide512::N => W::Wide512::ROWS,
        n if n == W::Wide256::N => W::Wide256::ROWS,
        _ => W::Portable::ROWS,
    }
}

/// Packs rows in groups, each `[cols][group]`.
///
/// # Safety
/// The rows exist; the stage has room for a group of them, the packed ones for whole groups.
unsafe fn pack<T: RowElement>(
    rows: heads::Rows<T>,
    (count, cols): (usize, usize),
    group: usize,
    stage: &mut [T::Wide],
    to: &mut [T::Wide],
) {
    if let Some(at) = T::wide_at(rows.at).filter(|_| rows.col == 1 && rows.row >= 0) {
        let from = Block { at, pitch: rows.row as usize, rows: count, cols };
        return Turn { from, to: to.as_mut_ptr(), width: group }.run();
    }
    for first in (0..count).step_by(group) {
        let some = group.min(count - first);
        rows.from(first, 0).read_all((some, cols), stage.as_mut_ptr(), cols, T::Wide::ONE);
        let from = Block { at: stage.as_ptr(), pitch: cols, rows: some, cols };
        Turn { from, to: to[first * cols..].as_mut_ptr(), width: group }.run();
    }
}
