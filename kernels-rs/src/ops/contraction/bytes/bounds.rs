//! The least and the largest of some values, which several tasks find.

use super::{GRAIN, Value};
use crate::machine::threads;
use crate::vectorize;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// What the tasks have found so far.
pub struct Bounds {
    least: AtomicI32,
    most: AtomicI32,
}

impl Bounds {
    /// Those of no values.
    pub fn none() -> Self {
        Self { least: AtomicI32::new(i32::MAX), most: AtomicI32::new(i32::MIN) }
    }

    /// Takes in the least and the largest that a task has found.
    pub fn take(&self, (least, most): (i32, i32)) {
        self.least.fetch_min(least, Relaxed);
        self.most.fetch_max(most, Relaxed);
    }

    /// The least and the largest, where they span no more than a byte.
    pub fn of_a_byte(self) -> Option<(i32, i32)> {
        let (least, most) = (self.least.into_inner(), self.most.into_inner());
        (most.wrapping_sub(least) as u32 <= 255).then_some((least, most))
    }
}

/// The least value, where all others are at most 255 above it.
pub fn lowest<T: Value>(values: &[T]) -> Option<i32> {
    if let Some(least) = T::LEAST {
        return Some(least);
    }
    let bounds = Bounds::none();
    threads::for_ranges(values.len(), GRAIN, &|range| bounds.take(both(&values[range])));
    bounds.of_a_byte().map(|(least, _)| least)
}

vectorize!(both[T: Value](values: &[T]) -> (i32, i32) => both_body::<T>);

#[inline(always)]
fn both_body<T: Value>(values: &[T]) -> (i32, i32) {
    let (mut least, mut most) = (i32::MAX, i32::MIN);
    for value in values {
        least = least.min(value.wide());
        most = most.max(value.wide());
    }
    (least, most)
}
