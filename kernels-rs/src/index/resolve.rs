//! Index values, counted from the front and checked.

use crate::array::Array;
use crate::dtype::{DType, Kind};
use crate::elementwise::convert::cast;
use crate::error::{Error, Result};
use crate::movement::dense;
use crate::threads;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// Index values between two looks at what other tasks found.
const GRAIN: usize = 1 << 15;

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

/// Index values in row-major order, each in `0..size`.
pub struct Places(Array);

impl Places {
    /// The values.
    pub fn values(&self) -> &[i64] {
        self.0.as_slice::<i64>().expect("dense")
    }
}

/// Checks the values and counts negative ones from the end. Values that need no change are not copied.
pub fn resolve(indices: &Array, target: Target) -> Result<Places> {
    if indices.dtype().kind() != Kind::Int {
        return Err(Error::Rejected("indices are integers"));
    }
    let wide = dense(&cast(indices, DType::I64)?)?;
    let values = wide.as_slice::<i64>().expect("dense");
    let size = target.size as i64;
    let (low, high) = bounds(values);
    // Beyond `i64` an unsigned value has wrapped, and is more than the error can carry.
    let wrapped = indices.dtype() == DType::U64 && low < 0;
    if wrapped || low < -size || high >= size {
        let bad = values.iter().copied().find(|&value| value < -size || value >= size);
        let index = if wrapped { i64::MAX } else { bad.unwrap_or(low) };
        return Err(Error::index(target.op, index, target.size, target.axis));
    }
    if low >= 0 {
        return Ok(Places(wide));
    }
    let mut out = Array::uninit(DType::I64, wide.shape())?;
    for (out, &value) in out.as_mut_slice::<i64>().iter_mut().zip(values) {
        *out = if value < 0 { value + size } else { value };
    }
    Ok(Places(out))
}

/// Index values in row-major order as they came, for kernels that check each where they use it.
pub struct Unchecked {
    values: Array,
    target: Target,
    /// Whether an index was out of range.
    bad: AtomicBool,
    /// Beyond `i64` an unsigned value wraps; it is more than the error can carry.
    unsigned: bool,
}

impl Unchecked {
    /// Values of any integer type.
    pub fn new(indices: &Array, target: Target) -> Result<Self> {
        if indices.dtype().kind() != Kind::Int {
            return Err(Error::Rejected("indices are integers"));
        }
        let values = dense(&cast(indices, DType::I64)?)?;
        Ok(Self { values, target, bad: AtomicBool::new(false), unsigned: indices.dtype() == DType::U64 })
    }

    /// The values.
    pub fn values(&self) -> &[i64] {
        self.values.as_slice::<i64>().expect("dense")
    }

    /// How to check one value; a copy, so that it stays in registers.
    pub fn check(&self) -> Check {
        let size = self.target.size;
        Check { size, back: if self.unsigned { 0 } else { size } }
    }

    /// Notes that an index was out of range.
    pub fn note(&self, bad: bool) {
        if bad {
            self.bad.store(true, Ordering::Relaxed);
        }
    }

    /// The error for the first index that is out of range.
    pub fn finish(self) -> Result<()> {
        if !self.bad.load(Ordering::Relaxed) {
            return Ok(());
        }
        let Target { op, axis, size } = self.target;
        let bad = self.values().iter().copied().find(|&value| self.check().place(value).is_none());
        let index = bad.expect("one was seen");
        Err(Error::index(op, if self.unsigned && index < 0 { i64::MAX } else { index }, size, axis))
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
}

/// The smallest and the largest value; (0, -1) of none.
fn bounds(values: &[i64]) -> (i64, i64) {
    let (low, high) = (AtomicI64::new(0), AtomicI64::new(-1));
    threads::for_ranges(values.len(), GRAIN, &|range| {
        let (mut least, mut most) = (0, -1);
        for &value in &values[range] {
            least = value.min(least);
            most = value.max(most);
        }
        low.fetch_min(least, Ordering::Relaxed);
        high.fetch_max(most, Ordering::Relaxed);
    });
    (low.into_inner(), high.into_inner())
}
