//! Reductions that pass over a row twice: variance and the logarithm of a sum of exponentials.

use super::columns::Columns;
use super::{RowElement, Rows, Spread, Wide, float_rows, for_gathered_rows, for_rows, numel, reduced, wide};
use crate::array::Array;
use crate::array::fold;
use crate::array::reader::Reader;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::machine::lanes::{Kernel, Lanes, launch};
use crate::machine::threads::SharedMut;
use crate::memory::scratch::{filled, with_buffers, with_scratch};
use crate::ops::elementwise::convert::cast;
use std::ops::Range;

/// Exponentials held at a time: a quarter of the first-level cache.
const WORK: usize = 1 << 11;
/// Elements of a piece of a long row.
const PIECE: usize = 1 << 13;
/// Elements of a run of memory that is read where it lies, among others of a row.
const LONG: usize = 256;

/// The mean of `(x - mean)^2`, with `count - correction` (at least 0) for the count.
pub fn var(x: &Array, axes: &[usize], correction: f64, keepdims: bool) -> Result<Array> {
    spread("var", x, axes, Spread { correction, root: false }, keepdims)
}

/// The root of [`var`], which may be in the range of a type where the variance is not.
pub fn std(x: &Array, axes: &[usize], correction: f64, keepdims: bool) -> Result<Array> {
    spread("std", x, axes, Spread { correction, root: true }, keepdims)
}

fn spread(op: &str, x: &Array, axes: &[usize], rule: Spread, keepdims: bool) -> Result<Array> {
    let mut out = Array::uninit(x.dtype(), &reduced(x, axes, keepdims))?;
    let again = float_rows!(op, x.dtype(), T => {
        let slots = out.as_mut_slice::<T>();
        if let Some(size) = columns(x, axes) {
            Columns { x: Reader::<T>::new(x), y: None, size }.spread(rule, slots);
        } else {
            let rows = Rows::along(op, x, axes)?;
            if rows.len == 0 {
                slots.fill(T::from_f64(f64::NAN));
            } else {
                run::<T>(Mode::Spread(rule), &Reader::new(&rows.view), rows.len, slots);
            }
        }
        Ok(slots.iter().any(|slot| squares_left(x.dtype(), slot.to_f64(), rule)))
    })?;
    if again { cast(&spread(op, &wide(x)?, axes, rule, keepdims)?, x.dtype()) } else { Ok(out) }
}

/// Whether squares may have left the range of the type: upwards, or downwards so far that they lost digits.
fn squares_left(dtype: DType, spread: f64, rule: Spread) -> bool {
    let least = if rule.root { 1e-15 } else { 1e-30 };
    match dtype {
        DType::F64 => false,
        DType::F16 => !spread.is_finite(),
        _ => !spread.is_finite() || spread < least,
    }
}

/// `ln(sum of e^x)`; minus infinity where every element is.
pub fn logsumexp(x: &Array, axes: &[usize], keepdims: bool) -> Result<Array> {
    let mut out = Array::uninit(x.dtype(), &reduced(x, axes, keepdims))?;
    if let Some(size) = columns(x, axes) {
        return float_rows!("logsumexp", x.dtype(), T => {
            Columns { x: Reader::<T>::new(x), y: None, size }.logsumexp(out.as_mut_slice());
            Ok(out)
        });
    }
    let rows = Rows::along("logsumexp", x, axes)?;
    float_rows!("logsumexp", x.dtype(), T => {
        if rows.len == 0 {
            out.as_mut_slice::<T>().fill(T::from_f64(f64::NEG_INFINITY));
        } else {
            run::<T>(Mode::LogSumExp, &Reader::new(&rows.view), rows.len, out.as_mut_slice());
        }
        Ok(out)
    })
}

/// The operand as (outer, len, inner) where the axes are neighbours and others follow them; `None` where a row is a run
/// of elements, or nothing is left to do in columns.
fn columns(x: &Array, axes: &[usize]) -> Option<[usize; 3]> {
    let (&first, &last) = (axes.first()?, axes.last()?);
    if last >= x.rank() || axes.windows(2).any(|pair| pair[0].checked_add(1) != Some(pair[1])) {
        return None;
    }
    let size = [&x.shape()[..first], &x.shape()[first..=last], &x.shape()[last + 1..]].map(numel);
    let dense_rows = x.strides()[last].unsigned_abs() == 1;
    let in_rows = size.contains(&0) || size[2] == 1 || (dense_rows && !x.is_contiguous());
    (!in_rows).then_some(size)
}

#[derive(Clone, Copy)]
enum Mode {
    Spread(Spread),
    LogSumExp,
}

fn run<T: RowElement>(mode: Mode, x: &Reader<'_, T>, len: usize, out: &mut [T]) {
    let rows = out.len();
    let to = SharedMut::new(out.as_mut_ptr());
    // Few long rows: their pieces in parallel. Else the rows.
    let long = rows < 8 && len > 8 * PIECE;
    let work = |first: usize, end: usize| {
        // Short rows with gaps are gathered together.
        let near = if len <= PIECE && x.run() < LONG { (end - first) * len } else { 0 };
        with_buffers([x.room(near), room(x, len)], |[buffer, scratch]: [&mut [T::Wide]; _]| {
            let gathered = Reader::of(x.part(first * len..first * len + near, buffer));
            let (x, start) = if near > 0 { (&gathered, 0) } else { (x, first * len) };
            // SAFETY: each task owns its part of the result.
            for (row, slot) in unsafe { to.slice(first..end) }.iter_mut().enumerate() {
                let row = Row { x, at: start + row * len, len };
                *slot = T::narrow(whole_row(mode, &row, if long { None } else { Some(scratch) }));
            }
        });
    };
    if long { work(0, rows) } else { for_gathered_rows(x.room(1) > 0, rows, len, &work) }
}

/// Elements of the scratch memory for a piece of a row.
fn room<T: RowElement>(x: &Reader<'_, T>, len: usize) -> usize {
    let piece = len.min(PIECE);
    x.room(piece) + T::buffer(piece) + WORK.min(piece)
}

struct Row<'a, T> {
    x: &'a Reader<'a, T>,
    at: usize,
    len: usize,
}

impl<T: RowElement> Row<'_, T> {
    /// Elements after which a piece ends in any case: those of a run of memory, if it is worth it.
    fn unit(&self) -> usize {
        let run = self.x.run();
        if run < self.len && run >= LONG { run } else { self.len }
    }

    /// Number of pieces.
    fn pieces(&self) -> usize {
        self.len / self.unit() * self.unit().div_ceil(PIECE)
    }

    /// The elements of a piece.
    fn piece(&self, index: usize) -> Range<usize> {
        let (unit, cuts) = (self.unit(), self.unit().div_ceil(PIECE));
        let (start, at) = (self.at + index / cuts * unit, index % cuts * PIECE);
        start + at..start + unit.min(at + PIECE)
    }
}

/// Both passes over a row, in pieces whose results are put together in order; in parallel without scratch memory.
fn whole_row<T: RowElement>(mode: Mode, row: &Row<'_, T>, mut scratch: Option<&mut [T::Wide]>) -> T::Wide {
    let join = |a: T::Wide, b: T::Wide| match mode {
        Mode::Spread(_) => a + b,
        Mode::LogSumExp => {
            if b > a {
                b
            } else {
                a
            }
        }
    };
    let start = if let Mode::Spread(_) = mode { T::Wide::ZERO } else { T::Wide::LOWEST };
    let total = pass(mode, row, None, start, |a, b| join(a, b[0]), scratch.as_deref_mut());
    let middle = match mode {
        Mode::Spread(_) => total / T::Wide::count(row.len),
        // An infinite maximum does not shift.
        Mode::LogSumExp if total.to_f64().is_finite() => total,
        Mode::LogSumExp => T::Wide::ZERO,
    };
    let zeros = [T::Wide::ZERO; 2];
    let [first, second] = pass(mode, row, Some(middle), zeros, |a, b| [a[0] + b[0], a[1] + b[1]], scratch);
    match mode {
        Mode::Spread(rule) => rule.of([first, second], row.len),
        Mode::LogSumExp => first.ln() + middle,
    }
}

/// One pass over all pieces.
fn pass<T: RowElement, A>(
    mode: Mode,
    row: &Row<'_, T>,
    middle: Option<T::Wide>,
    start: A,
    join: impl Fn(A, [T::Wide; 2]) -> A,
    scratch: Option<&mut [T::Wide]>,
) -> A {
    let pieces = row.pieces();
    let one = |piece: usize, scratch: &mut [T::Wide]| {
        let range = row.piece(piece);
        let (buffer, rest) = scratch.split_at_mut(T::buffer(range.len()));
        let (work, gathered) = rest.split_at_mut(WORK.min(range.len()));
        let mut result = [T::Wide::ZERO; 2];
        let x = T::read(row.x.part(range, gathered), buffer);
        launch::<T::Wide, _>(Piece { mode, x, work, middle, result: &mut result });
        result
    };
    if let Some(scratch) = scratch {
        return (0..pieces).map(|piece| one(piece, scratch)).fold(start, join);
    }
    let mut results = filled([T::Wide::ZERO; 2], pieces);
    let to = SharedMut::new(results.as_mut_ptr());
    for_rows(pieces, PIECE, &|first, end| {
        with_scratch(room(row.x, row.len), |scratch: &mut [T::Wide]| {
            for piece in first..end {
                // SAFETY: one task per piece.
                unsafe { to.slice(piece..piece + 1)[0] = one(piece, scratch) };
            }
        });
    });
    results.into_iter().fold(start, join)
}

/// One pass over one piece: the first where no middle is known yet.
struct Piece<'a, W> {
    mode: Mode,
    x: &'a [W],
    work: &'a mut [W],
    middle: Option<W>,
    result: &'a mut [W; 2],
}

impl<W: Wide> Kernel<W> for Piece<'_, W> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = W>>(self) {
        *self.result = match (self.mode, self.middle) {
            (Mode::Spread(_), None) => [fold::sum::<V>(self.x), W::ZERO],
            (Mode::LogSumExp, None) => [fold::largest::<V>(self.x), W::ZERO],
            (Mode::Spread(_), Some(middle)) => fold::moments::<V>(self.x, middle),
            (Mode::LogSumExp, Some(middle)) => {
                let mut total = W::ZERO;
                for part in self.x.chunks(WORK) {
                    let work = &mut self.work[..part.len()];
                    for (slot, &x) in work.iter_mut().zip(part) {
                        *slot = (x - middle).exp::<V::Math>();
                    }
                    total = total + fold::sum::<V>(work);
                }
                [total, W::ZERO]
            }
        };
    }
}
