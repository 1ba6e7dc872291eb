//! Reading at rows of indices: `gather_nd`.

use super::resolve::{Check, Converted, Indices, Target};
use crate::array::Array;
use crate::array::shape::{Inline, MAX_RANK, Shape};
use crate::array::strided::{Axes, Axis, Plan};
use crate::error::{Error, Result};
use crate::machine::threads::{self, SharedMut};
use std::sync::atomic::{AtomicBool, Ordering};

const OP: &str = "gather_nd";
/// Rows of indices that are worth a task of their own.
const TOGETHER: usize = 1 << 12;

/// Slices of `x` at rows of indices (.., k), which name a place on each of the first k axes.
pub fn gather_nd(x: &Array, indices: &Array) -> Result<Array> {
    let deep = indices.shape().last().copied().unwrap_or(0);
    if deep == 0 || deep > x.rank() {
        let text = format!("rows of indices do not fit: got {:?} for {:?}", indices.shape(), x.shape());
        return Err(Error::value(OP, format!("{text}, expected (.., k) with k from 1 to {}", x.rank())));
    }
    let kept = indices.rank() - 1;
    let rank = kept + x.rank() - deep;
    if rank > MAX_RANK {
        return Err(Error::value(OP, format!("rank too large: got {rank}, expected at most {MAX_RANK}")));
    }
    let mut shape = Shape::empty();
    indices.shape()[..kept].iter().chain(&x.shape()[deep..]).for_each(|&len| shape.push(len));
    let out = Array::uninit(x.dtype(), &shape)?;
    let job = Rows::new(x, indices, deep, &out)?;
    if out.numel() > 0 {
        let rows = job.places.len() / deep;
        let to = SharedMut::new(out.storage().data());
        threads::parallel(rows.div_ceil(TOGETHER), &|task| {
            let (range, from) = (task * TOGETHER..rows.min((task + 1) * TOGETHER), x.data());
            // SAFETY: the result has room for a slice of each row, and each row belongs to one task.
            unsafe {
                match (job.inner, x.dtype().itemsize()) {
                    (1, 1) => job.read(range, |at, place| element::<u8>(to, at, from, place)),
                    (1, 2) => job.read(range, |at, place| element::<u16>(to, at, from, place)),
                    (1, 4) => job.read(range, |at, place| element::<u32>(to, at, from, place)),
                    (1, _) => job.read(range, |at, place| element::<u64>(to, at, from, place)),
                    _ => job.read(range, |at, place| job.slice(to, at, place)),
                }
            }
        });
    } else {
        job.check_all();
    }
    job.finish()?;
    Ok(out)
}

struct Rows<'a> {
    x: &'a Array,
    places: Indices,
    /// How each index of a row is checked, and the step of its axis.
    checks: Inline<(Check, isize)>,
    /// Elements of a slice, and how they are copied.
    inner: usize,
    plan: Option<Plan>,
    bad: AtomicBool,
}

impl<'a> Rows<'a> {
    fn new(x: &'a Array, indices: &Array, deep: usize, out: &Array) -> Result<Self> {
        let places = Indices::new(indices, Target { op: OP, axis: 0, size: x.shape()[0] })?;
        let mut checks = Inline::empty();
        for (&size, &step) in x.shape()[..deep].iter().zip(x.strides().iter()) {
            checks.push((places.check_of(size), step));
        }
        let (mut axes, mut inner) = (Axes::empty(), 1);
        for at in deep..x.rank() {
            axes.push(Axis { len: x.shape()[at], to: 0, from: x.strides()[at] });
        }
        for axis in axes.iter_mut().rev() {
            axis.to = inner as isize;
            inner *= axis.len;
        }
        let plan = if out.numel() > 0 { Plan::new(x.dtype().itemsize(), &axes) } else { None };
        Ok(Self { x, places, checks, inner, plan, bad: AtomicBool::new(false) })
    }

    /// Calls `copy(row, offset of its slice in elements)` for rows whose indices are in range, and notes others.
    #[inline(always)]
    fn read(&self, rows: std::ops::Range<usize>, copy: impl Fn(usize, isize)) {
        let (mut room, mut bad) = (Converted::default(), false);
        let (checks, deep) = (&self.checks[..], self.checks.len());
        let part = (self.places.part_len() / deep).max(1);
        for first in rows.clone().step_by(part) {
            let end = rows.end.min(first + part);
            let values = self.places.part(first * deep..end * deep, &mut room);
            for (at, row) in values.chunks_exact(deep).enumerate() {
                let mut places = row.iter().zip(checks);
                match places.try_fold(0, |sum, (&index, &(check, step))| {
                    check.place(index).map(|place| sum + place as isize * step)
                }) {
                    Some(offset) => copy(first + at, offset),
                    None => bad = true,
                }
            }
        }
        if bad {
            self.bad.store(true, Ordering::Relaxed);
        }
    }

    fn check_all(&self) {
        self.read(0..self.places.len() / self.checks.len(), |_, _| ());
    }

    /// # Safety
    /// As [`element`], for a slice.
    unsafe fn slice(&self, to: SharedMut<u8>, row: usize, from: isize) {
        let (size, plan) = (self.x.dtype().itemsize(), self.plan.as_ref().expect("slices are not empty"));
        let (to, from) = (to.ptr().add(row * self.inner * size), self.x.data().offset(from * size as isize));
        if plan.is_run() {
            from.copy_to_nonoverlapping(to, self.inner * size);
        } else {
            plan.run_all(to, from);
        }
    }

    /// The error for the first index that is out of range, where one was.
    fn finish(&self) -> Result<()> {
        if !self.bad.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (mut room, part) = (Converted::default(), self.checks.len() * self.places.part_len());
        for first in (0..self.places.len()).step_by(part) {
            let values = self.places.part(first..self.places.len().min(first + part), &mut room);
            for row in values.chunks_exact(self.checks.len()) {
                for (axis, (&index, (check, _))) in row.iter().zip(&*self.checks).enumerate() {
                    if check.place(index).is_none() {
                        return Err(self.places.error(index, axis, self.x.shape()[axis]));
                    }
                }
            }
        }
        unreachable!("one was seen")
    }
}

/// # Safety
/// The result has room for this row, which is the caller's; the place lies in the operand.
#[inline(always)]
unsafe fn element<T: Copy>(to: SharedMut<u8>, row: usize, from: *const u8, place: isize) {
    to.ptr().cast::<T>().add(row).write(*from.cast::<T>().offset(place));
}
