//! Products of matrices of bytes, as quantized networks have them, by the unit that multiplies tiles ([`amx`]) or the
//! instruction that multiplies four bytes and adds them to an int32. The right side is moved to -128..=127 and the left one
//! to 0..=255, or to -128..=127 too where the instruction wants that; what that changes is a multiple of the sums of rows and
//! columns. Exact, and as all products of integers they wrap.

#[cfg(target_arch = "x86_64")]
mod amx;
mod panels;

use super::lies::Lies;
use super::side::{self, KEEPS};
use super::tile::{Cut, Multiply, Start, Strip, by_one_instruction, tile_rows};
use super::{Product, SERIAL};
use crate::array::Array;
use crate::dtype::Element;
use crate::error::Result;
#[cfg(target_arch = "x86_64")]
use crate::machine::amx as unit;
use crate::machine::lanes::Lanes;
use crate::machine::simd;
use crate::machine::threads::{self, SharedMut};
use crate::memory::owned::Memory;
use crate::memory::scratch::Arena;
use crate::vectorize;
use panels::{Panels, lines_of, packed};
use std::ops::Range;

/// Elements of a cell, along the depth.
const DEEP: usize = 4;
/// Columns of a panel: two registers.
const COLS: usize = if cfg!(target_arch = "x86_64") { 32 } else { 8 };
/// Where the bytes of the left side begin.
const LEAST: i32 = if cfg!(target_arch = "x86_64") { 0 } else { -128 };
/// Lines of a panel that most of the first-level cache holds.
const LINES: usize = 256;
/// Rows of a task at most: with a depth of 1024 they take a sixteenth of a large second-level cache.
const MOST_ROWS: usize = 168;
/// Rows, columns and depth from which packing pays.
const FEWEST: usize = 8;

/// What a side may hold.
pub trait Value: Element {
    /// The least value there can be.
    const LEAST: i32;
    /// The value as int32.
    fn wide(self) -> i32;
}

impl Value for i8 {
    const LEAST: i32 = -128;
    #[inline(always)]
    fn wide(self) -> i32 {
        self.into()
    }
}

impl Value for u8 {
    const LEAST: i32 = 0;
    #[inline(always)]
    fn wide(self) -> i32 {
        self.into()
    }
}

/// A left side, made ready.
enum Left<'a, T> {
    /// As it is.
    Values(&'a [T]),
    /// For the unit that multiplies tiles.
    #[cfg(target_arch = "x86_64")]
    Rows(amx::Rows),
}

impl<'a, T: Value> Left<'a, T> {
    /// Matrices of `m` rows of `k` values.
    #[cfg_attr(not(target_arch = "x86_64"), expect(clippy::unnecessary_wraps, reason = "tiles alone take memory"))]
    fn new(values: &'a [T], (m, k): (usize, usize)) -> Result<Self> {
        #[cfg(target_arch = "x86_64")]
        if amx::applies(m) {
            // SAFETY: just asked.
            return unsafe { amx::Rows::new(values, (m, k)).map(Self::Rows) };
        }
        let _ = (m, k);
        Ok(Self::Values(values))
    }

    /// A product of the matrix of this number.
    fn times(&self, matrix: usize, size: (usize, usize, usize), right: Panels<'_>, to: SharedMut<i32>) {
        match self {
            Self::Values(values) => {
                let left = &values[matrix * size.0 * size.1..];
                Job { left, size, offset: T::LEAST - LEAST, right, to }.run();
            }
            #[cfg(target_arch = "x86_64")]
            // SAFETY: they were packed for a unit that is there; the result is ours.
            Self::Rows(rows) => unsafe {
                let job = Job::<T> { left: &[], size, offset: T::LEAST, right, to };
                amx::run::<unit::Processor, T>(&job, rows, matrix);
            },
        }
    }
}

/// Computes the product; false, and nothing done, where it is small or the processor has no such instruction.
pub fn run<A: Value, B: Value>(product: &Product, x1: &Array, x2: &Array, out: &mut Array) -> Result<bool> {
    let Product { m, k, n, .. } = *product;
    if !simd::has_byte_products() || m.min(k).min(n) < FEWEST || out.numel() == 0 {
        return Ok(false);
    }
    let one = x2.numel() == k * n;
    // Rows of a batch may follow each other before they are made dense or after: what is read says how many there are.
    let (x1, right) = (x1.contiguous()?, if one { x2.clone() } else { x2.contiguous()? });
    let product = Product::new(&x1, &right)?;
    let m = product.m;
    let Some(values) = x1.as_slice::<A>() else { return Ok(false) };
    let left = Left::new(values, (m, k))?;
    let to = SharedMut::new(out.mut_ptr::<i32>());
    let work = |matrix: usize, right: Panels<'_>, item: usize| {
        left.times(matrix, (m, k, n), right, SharedMut::new(to.ptr().wrapping_add(item * m * n)));
    };
    let all = |cells: &Memory| {
        (0..product.count()).for_each(|item| work(item, Panels::of(cells, n), item));
    };
    let list = x2.storage().packed();
    let steps = (x2.strides()[x2.rank() - 2], x2.strides()[x2.rank() - 1]);
    let layout = side::layout(x2, (k, n), steps, (COLS, DEEP));
    if one && let Some(kept) = list.find(&layout) {
        all(kept);
        return Ok(true);
    }
    let right = right.contiguous()?;
    let Some(right) = right.as_slice::<B>() else { return Ok(false) };
    let pack = |right: &[B]| packed(right, (k, n), B::LEAST + 128);
    if one {
        let cells = pack(right)?;
        let wanted = m <= KEEPS && list.is_wanted(&layout, cells.capacity());
        let own;
        let cells = if wanted {
            list.keep(layout, cells)
        } else {
            own = cells;
            &own
        };
        all(cells);
        return Ok(true);
    }
    for item in 0..product.count() {
        let (at_left, at_right) = product.offsets(item);
        let cells = pack(&right[at_right as usize..])?;
        work(at_left as usize / (m * k), Panels::of(&cells, n), item);
    }
    Ok(true)
}

struct Job<'a, T> {
    left: &'a [T],
    size: (usize, usize, usize),
    /// What is taken from each value of the left side.
    offset: i32,
    right: Panels<'a>,
    to: SharedMut<i32>,
}

impl<T: Value> Job<'_, T> {
    fn run(&self) {
        let (m, k, n) = self.size;
        let rows = m.div_ceil(m.div_ceil(MOST_ROWS));
        let (high, all) = (m.div_ceil(rows), n.div_ceil(COLS));
        let wanted = (m.saturating_mul(k).saturating_mul(n) / SERIAL).clamp(1, threads::tasks(1));
        let panels = all.div_ceil(wanted.div_ceil(high));
        let across = all.div_ceil(panels);
        threads::parallel(high * across, &|index| {
            let (i, j) = (index / across * rows, index % across * panels);
            self.part(i..m.min(i + rows), j..all.min(j + panels));
        });
    }

    /// Some rows times some panels.
    fn part(&self, rows: Range<usize>, panels: Range<usize>) {
        let (_, k, n) = self.size;
        let (lines, pitch, high) = (k.div_ceil(DEEP), lines_of(k), tile_rows::<f32>());
        let cut = Cut::new(rows.len(), high);
        Arena::with([4 * rows.len() * lines, 4 * rows.len() * COLS, 4 * rows.len(), 4 * lines], |mut room| {
            let (cells, sums) = (room.take::<u32>(rows.len() * lines), room.take::<i32>(rows.len() * COLS));
            let (totals, line) = (room.take::<i32>(rows.len()), room.take::<u32>(lines));
            for (first, height) in (0..cut.count).map(|panel| (cut.first(panel), cut.height(panel))) {
                for (row, total) in totals.iter_mut().enumerate().skip(first).take(height) {
                    let from = &self.left[(rows.start + row) * k..(rows.start + row + 1) * k];
                    *total = row_of_bytes(from, self.offset, line);
                    for (block, line) in line.chunks(LINES).enumerate() {
                        let start = block * LINES * rows.len() + first * line.len() + row - first;
                        for (to, &cell) in cells[start..].iter_mut().step_by(height).zip(line) {
                            *to = cell;
                        }
                    }
                }
            }
            let start = self.right.cells;
            for panel in panels {
                let cols = COLS.min(n - panel * COLS);
                let of_columns = &self.right.sums[panel * COLS..panel * COLS + cols];
                for line in (0..lines).step_by(LINES) {
                    Fours::launch(Strip::<Fours> {
                        k: LINES.min(lines - line),
                        rows: rows.len(),
                        cols,
                        width: 2,
                        high,
                        strips: 1,
                        left: cells[line * rows.len()..].as_ptr(),
                        left_steps: None,
                        right: start.wrapping_add((panel * pitch + line) * COLS),
                        right_step: COLS as isize,
                        prefetch: 0,
                        next: (start, 0),
                        start: Start::Zero,
                        to: sums.as_mut_ptr().cast(),
                        pitch: COLS as isize,
                    });
                    let to = SharedMut::new(self.to.ptr().wrapping_add(rows.start * n + panel * COLS));
                    let (rows, columns) = ((&*totals, k, self.right.offset), (of_columns, self.offset));
                    // These rows and columns of the result are this task's alone.
                    if line > 0 { add(sums, cols, n, to) } else { put(sums, columns, rows, n, to) }
                }
            }
        });
    }
}

vectorize!(row_of_bytes[T: Value](from: &[T], offset: i32, to: &mut [u32]) -> i32 => row_of_bytes_body::<T>);

/// A row as cells; returns the sum of its bytes.
#[inline(always)]
fn row_of_bytes_body<T: Value>(from: &[T], offset: i32, to: &mut [u32]) -> i32 {
    let mut sum = 0i32;
    let (whole, rest) = from.as_chunks::<DEEP>();
    for (four, to) in whole.iter().zip(&mut *to) {
        let value = |at: usize| four[at].wide().wrapping_sub(offset);
        let byte = |at: usize| (value(at) as u32 & 255) << (8 * at);
        *to = byte(0) | byte(1) | byte(2) | byte(3);
        sum = sum.wrapping_add(value(0) + value(1) + value(2) + value(3));
    }
    if let Some(last) = to.get_mut(whole.len()) {
        *last = 0;
        for (at, value) in rest.iter().enumerate() {
            let value = value.wide().wrapping_sub(offset);
            *last |= (value as u32 & 255) << (8 * at);
            sum = sum.wrapping_add(value);
        }
    }
    sum
}

vectorize!(put(from: &[i32], columns: (&[i32], i32), rows: (&[i32], usize, i32), pitch: usize, to: SharedMut<i32>) => put_body);

/// Writes sums of bytes and what was taken from both sides: the offset of the left side for each value of a column, that of the
/// right side for each of the `k` values of a row. The caller has these places of the result to itself.
#[inline(always)]
fn put_body(
    from: &[i32],
    (of_columns, left): (&[i32], i32),
    (totals, k, right): (&[i32], usize, i32),
    pitch: usize,
    to: SharedMut<i32>,
) {
    for (row, (from, &total)) in from.chunks_exact(COLS).zip(totals).enumerate() {
        let taken = total.wrapping_add((k as i32).wrapping_mul(left)).wrapping_mul(right);
        // SAFETY: as the caller promises.
        let to = unsafe { to.slice(row * pitch..row * pitch + of_columns.len()) };
        for ((to, &sum), &column) in to.iter_mut().zip(from).zip(of_columns) {
            *to = sum.wrapping_add(column.wrapping_mul(left)).wrapping_add(taken);
        }
    }
}

vectorize!(add(from: &[i32], cols: usize, pitch: usize, to: SharedMut<i32>) => add_body);

/// Adds sums of bytes to the result. The caller has these places of it to itself.
#[inline(always)]
fn add_body(from: &[i32], cols: usize, pitch: usize, to: SharedMut<i32>) {
    for (row, from) in from.chunks_exact(COLS).enumerate() {
        // SAFETY: as the caller promises.
        let to = unsafe { to.slice(row * pitch..row * pitch + cols) };
        for (to, &sum) in to.iter_mut().zip(from) {
            *to = to.wrapping_add(sum);
        }
    }
}

/// Cells are four bytes, unsigned on the left of x86-64; sums are int32 in registers that are said to hold `f32`.
struct Fours;

impl Multiply for Fours {
    const TILES: (Lies, [usize; 2]) = (Lies::Packed, [2, 2]);
    by_one_instruction!(target_feature(enable = "avx512vnni"), _mm512_dpbusd_epi32 __m512i, add_fours, simd::has_byte_products);
}

#[cfg(test)]
mod tests;
