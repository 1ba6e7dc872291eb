//! Index values, read a part at a time, checked and counted from the front where they are used.

use crate::array::Array;
use crate::array::reader::Reader;
use crate::dispatch;
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::memory::scratch::grow;
use crate::ops::elementwise::convert::cast;
use crate::vectorize;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Indices, and values beside them, that are read at a time: what they are converted into stays in the first-level cache.
const PART: usize = 1 << 11;
/// Those that are gathered at a time: several lines of transposed ones, which share cache lines.
const GATHERED: usize = 1 << 15;
/// So few are made dense at once.
const FEW: usize = 1 << 14;

/// Which op asks, for which axis of which length.
#[derive(Clone, Copy)]
pub struct Target {
    /// Name of the op.
    pub op: &'static str,
    /// The indexed axis.
    pub axis: usize,
    /// Its length.
    pub size: usize,
}

/// Index values in row-major order, read a part at a time.
pub struct Indices {
    raw: Array,
    target: Target,
    /// Whether an index was out of range.
    bad: AtomicBool,
    /// Beyond `i64` an unsigned value wraps; it is more than the error can carry.
    unsigned: bool,
}

/// How many elements of an operand to read at a time.
pub fn part_len(x: &Array) -> usize {
    if x.is_contiguous() { PART } else { GATHERED }
}

/// What a task gathers indices into.
#[derive(Default)]
pub struct Converted {
    raw: Vec<f64>,
    values: Vec<i64>,
}

impl Indices {
    /// Values of any integer type.
    pub fn new(indices: &Array, target: Target) -> Result<Self> {
        if indices.dtype().kind() != Kind::Int {
            return Err(Error::Rejected("indices are integers"));
        }
        let unsigned = indices.dtype() == DType::U64;
        let indices = if indices.numel() <= FEW { cast(indices, DType::I64)?.contiguous()? } else { indices.clone() };
        Ok(Self { raw: indices, target, bad: AtomicBool::new(false), unsigned })
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.raw.numel()
    }

    /// How many to read at a time.
    pub fn part_len(&self) -> usize {
        part_len(&self.raw)
    }

    /// These values as they came.
    pub fn part<'a>(&'a self, range: Range<usize>, room: &'a mut Converted) -> &'a [i64] {
        if self.raw.is_contiguous() && self.raw.dtype() == DType::I64 {
            return &self.raw.as_slice::<i64>().expect("dense")[range];
        }
        let Converted { raw, values } = room;
        if self.raw.dtype() == DType::I64 {
            grow(raw, range.len(), 0.0);
            return Reader::new(&self.raw).part(range, raw);
        }
        dispatch!(int self.raw.dtype(), T => {
            let reader = Reader::<T>::new(&self.raw);
            grow(raw, reader.room(range.len()), 0.0);
            values.clear();
            #[allow(clippy::unnecessary_cast, reason = "T is i64 in one of the arms")]
            values.extend(reader.part(range, raw).iter().map(|&value| value as i64));
        }, else unreachable!("indices are integers"));
        values
    }

    /// How to check one value; a copy, so that it stays in registers.
    pub fn check(&self) -> Check {
        self.check_of(self.target.size)
    }

    /// The same for an axis of another length.
    pub fn check_of(&self, size: usize) -> Check {
        Check { size, back: if self.unsigned { 0 } else { size } }
    }

    /// Notes that an index was out of range.
    pub fn note(&self, bad: bool) {
        if bad {
            self.bad.store(true, Ordering::Relaxed);
        }
    }

    /// Checks all of them: for kernels that use none.
    pub fn check_all(&self) {
        let mut room = Converted::default();
        for first in (0..self.len()).step_by(PART) {
            let part = self.part(first..self.len().min(first + PART), &mut room);
            self.note(part.iter().any(|&value| self.check().place(value).is_none()));
        }
    }

    /// The error for the first index that is out of range, where one was.
    pub fn finish(self) -> Result<()> {
        if !self.bad.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (Target { axis, size, .. }, check, mut room) = (self.target, self.check(), Converted::default());
        let outside = |&value: &i64| check.place(value).is_none();
        let mut parts = (0..self.len()).step_by(PART).map(|first| first..self.len().min(first + PART));
        let bad = parts.find_map(|part| self.part(part, &mut room).iter().copied().find(outside));
        Err(self.error(bad.expect("one was seen"), axis, size))
    }

    /// The error for an index that is out of range on this axis.
    pub fn error(&self, index: i64, axis: usize, size: usize) -> Error {
        Error::index(self.target.op, if self.unsigned && index < 0 { i64::MAX } else { index }, size, axis)
    }
}

/// Counts index values from the front.
#[derive(Clone, Copy)]
pub struct Check {
    size: usize,
    /// What a negative value lacks.
    back: usize,
}

impl Check {
    /// The place of an index value, unless it is out of range.
    #[inline(always)]
    pub fn place(self, value: i64) -> Option<usize> {
        let place = (value as usize).wrapping_add(if value < 0 { self.back } else { 0 });
        (place < self.size).then_some(place)
    }

    /// Whether all values are places as they are: neither negative nor too large.
    #[inline(always)]
    pub fn all_places(self, values: &[i64]) -> bool {
        all_below(values, self.size)
    }
}

vectorize!(all_below(values: &[i64], size: usize) -> bool => all_below_loop);

#[inline(always)]
fn all_below_loop(values: &[i64], size: usize) -> bool {
    let mut outside = false;
    for &value in values {
        outside |= value as u64 >= size as u64;
    }
    !outside
}
