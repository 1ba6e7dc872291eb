//! Products of int32 matrices whose values span no more than a byte, as those of quantized networks do, by the unit that multiplies
//! tiles ([`amx`]) or the instruction that multiplies four bytes and adds them to an int32. The right side is moved to -128..=127 and the left one to 0..=255, or to
//! -128..=127 too where the instruction wants that; what that
//! changes is a multiple of the sums of rows and columns. Exact, and as all products of integers they wrap.

#[cfg(target_arch = "x86_64")]
mod amx;

use super::held::{self, KEEPS};
use super::tile::{Cut, Multiply, Start, Strip, tile_rows};
use super::{Product, SERIAL};
use crate::array::Array;
use crate::error::Result;
use crate::machine::amx as unit;
use crate::machine::lanes::Lanes;
#[cfg(target_arch = "x86_64")]
use crate::machine::lanes::{Kernel, Real};
use crate::machine::simd;
use crate::machine::threads::{self, SharedMut};
use crate::memory::owned::Memory;
use crate::memory::scratch::Room;
use crate::vectorize;
use std::ops::Range;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// Elements of a cell, along the depth.
const DEEP: usize = 4;
/// Columns of a panel: two registers.
const COLS: usize = if cfg!(target_arch = "x86_64") { 32 } else { 8 };
/// Where the bytes of the left side begin.
const LEAST: i32 = if cfg!(target_arch = "x86_64") { 0 } else { -128 };
/// Lines of a panel that most of the first-level cache holds. Half as many gained 9 % at 1024x1024x1024 and lost 8 % below (Xeon,
/// family 6, model 207).
const LINES: usize = 256;
/// Rows of a task at most: with a depth of 1024 they take a sixteenth of a large second-level cache.
const MOST_ROWS: usize = 168;
/// Values that a thread looks at.
const GRAIN: usize = 1 << 16;
/// Rows, columns and depth from which looking at all values pays.
const FEWEST: usize = 8;

/// A left side, made ready.
enum Left<'a> {
    /// As it is, and what is to be taken from each value.
    Values(&'a [i32], i32),
    /// For the unit that multiplies tiles.
    #[cfg(target_arch = "x86_64")]
    Rows(amx::Rows),
}

impl<'a> Left<'a> {
    /// Matrices of `m` rows of `k` values; none where their values span more than a byte.
    #[cfg_attr(not(target_arch = "x86_64"), expect(clippy::unnecessary_wraps, reason = "tiles alone take memory"))]
    fn new(values: &'a [i32], (m, k): (usize, usize)) -> Result<Option<Self>> {
        #[cfg(target_arch = "x86_64")]
        if amx::takes(m) {
            // SAFETY: just asked.
            return unsafe { Ok(amx::Rows::new(values, (m, k))?.map(Self::Rows)) };
        }
        let _ = (m, k);
        Ok(lowest(values).map(|lowest| Self::Values(values, lowest.wrapping_sub(LEAST))))
    }

    /// A product of the matrix of this number.
    fn times(&self, matrix: usize, size: (usize, usize, usize), right: Panels<'_>, to: SharedMut<i32>) {
        match self {
            Self::Values(values, offset) => {
                let left = &values[matrix * size.0 * size.1..];
                Job { left, size, offset: *offset, right, to }.run();
            }
            #[cfg(target_arch = "x86_64")]
            // SAFETY: they were packed for a unit that is there; the result is ours.
            Self::Rows(rows) => unsafe {
                let job = Job { left: &[], size, offset: rows.offset, right, to };
                amx::run::<unit::Processor>(&job, rows, matrix);
            },
        }
    }
}

/// Computes the product; false, and nothing done, where the values span more or the processor has no such instruction.
pub fn run(product: &Product, x1: &Array, x2: &Array, out: &mut Array) -> Result<bool> {
    let Product { m, k, n, .. } = *product;
    if !simd::has_byte_products() || m.min(k).min(n) < FEWEST || out.numel() == 0 {
        return Ok(false);
    }
    let x1 = x1.contiguous()?;
    let Some(values) = x1.as_slice::<i32>() else { return Ok(false) };
    let Some(left) = Left::new(values, (m, k))? else { return Ok(false) };
    let to = SharedMut::new(out.mut_ptr::<i32>());
    let work = |matrix: usize, right: Panels<'_>, item: usize| {
        left.times(matrix, (m, k, n), right, SharedMut::new(to.ptr().wrapping_add(item * m * n)));
    };
    let all = |cells: &Memory| {
        (0..product.count()).for_each(|item| work(item, Panels::of(cells, n), item));
    };
    let one = x2.numel() == k * n;
    let list = x2.storage().kept();
    let steps = (x2.strides()[x2.rank() - 2], x2.strides()[x2.rank() - 1]);
    let layout = held::layout(x2, (k, n), steps, (COLS, DEEP));
    if one && let Some(kept) = list.find(&layout) {
        all(kept);
        return Ok(true);
    }
    let x2 = x2.contiguous()?;
    let Some(right) = x2.as_slice::<i32>() else { return Ok(false) };
    let Some(middle) = self::lowest(right) else { return Ok(false) };
    let pack = |right: &[i32]| packed(right, (k, n), middle.wrapping_add(128));
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
    let product = Product::new(&x1, &x2)?;
    for item in 0..product.count() {
        let (at_left, at_right) = product.offsets(item);
        let cells = pack(&right[at_right as usize..])?;
        work(at_left as usize / (m * k), Panels::of(&cells, n), item);
    }
    Ok(true)
}

/// The least value, where all others are at most 255 above it.
fn lowest(values: &[i32]) -> Option<i32> {
    let (least, most) = (AtomicI32::new(i32::MAX), AtomicI32::new(i32::MIN));
    threads::for_ranges(values.len(), GRAIN, &|range| {
        let found = bounds(&values[range]);
        least.fetch_min(found.0, Relaxed);
        most.fetch_max(found.1, Relaxed);
    });
    let (least, most) = (least.into_inner(), most.into_inner());
    (most.wrapping_sub(least) as u32 <= 255).then_some(least)
}

vectorize!(bounds(values: &[i32]) -> (i32, i32) => bounds_body);

#[inline(always)]
fn bounds_body(values: &[i32]) -> (i32, i32) {
    let (mut least, mut most) = (i32::MAX, i32::MIN);
    for &value in values {
        least = least.min(value);
        most = most.max(value);
    }
    (least, most)
}

/// Words in front of the sums: the offset, and what brings the cells to a cache line.
const HEAD: usize = 16;

/// A right side in panels of [`COLS`] columns, four bytes of the depth in a cell.
#[derive(Clone, Copy)]
struct Panels<'a> {
    cells: *const u32,
    /// What was taken from each value.
    offset: i32,
    /// Of what is packed, for each column.
    sums: &'a [i32],
}

// SAFETY: what is packed is only read.
unsafe impl Sync for Panels<'_> {}

impl<'a> Panels<'a> {
    /// Of what [`packed`] gave for so many columns.
    fn of(memory: &'a Memory, n: usize) -> Self {
        let words: *const i32 = memory.data().cast_const().cast();
        let count = n.div_ceil(COLS) * COLS;
        // SAFETY: `packed` wrote the offset and the sums in front of the cells.
        let (offset, sums) = unsafe { (*words, std::slice::from_raw_parts(words.add(HEAD), count)) };
        Self { cells: words.wrapping_add(HEAD + count).cast(), offset, sums }
    }
}

/// Lines of a panel: whole steps of the unit that multiplies tiles.
fn lines_of(k: usize) -> usize {
    k.div_ceil(DEEP).next_multiple_of(unit::LINES)
}

/// Packs a right side for [`Panels`].
fn packed(from: &[i32], (k, n): (usize, usize), offset: i32) -> Result<Memory> {
    let (lines, panels) = (lines_of(k), n.div_ceil(COLS));
    let head = HEAD + panels * COLS;
    let memory = Memory::new((head + lines * panels * COLS) * size_of::<u32>())?;
    let words: *mut i32 = memory.data().cast();
    // SAFETY: the memory has room for the head; nobody else has it yet.
    unsafe {
        words.write_bytes(0, head);
        words.write(offset);
    }
    let (to, all) = (SharedMut::new(words.wrapping_add(head).cast::<u32>()), SharedMut::new(words.wrapping_add(HEAD)));
    threads::for_ranges(panels, (1 << 16) / (k * COLS) + 1, &|range| {
        for panel in range {
            let cols = panel * COLS..n.min((panel + 1) * COLS);
            // SAFETY: each panel has its own cells and sums.
            let (to, sums) = unsafe {
                (
                    to.slice(panel * lines * COLS..(panel + 1) * lines * COLS),
                    all.slice(panel * COLS..(panel + 1) * COLS),
                )
            };
            for (line, to) in to.chunks_exact_mut(COLS).enumerate() {
                to.fill(0);
                for at in 0..DEEP.min(k.saturating_sub(line * DEEP)) {
                    let row = (line * DEEP + at) * n;
                    add_bytes(&from[row + cols.start..row + cols.end], offset, 8 * at as u32, to, sums);
                }
            }
        }
    });
    Ok(memory)
}

vectorize!(add_bytes(from: &[i32], offset: i32, shift: u32, to: &mut [u32], sums: &mut [i32]) => add_bytes_body);

/// One line of bytes, into cells and sums.
#[inline(always)]
fn add_bytes_body(from: &[i32], offset: i32, shift: u32, to: &mut [u32], sums: &mut [i32]) {
    for ((&value, to), sum) in from.iter().zip(to).zip(sums) {
        let byte = value.wrapping_sub(offset);
        *to |= (byte as u32 & 255) << shift;
        *sum = sum.wrapping_add(byte);
    }
}

struct Job<'a> {
    left: &'a [i32],
    size: (usize, usize, usize),
    /// What is taken from each value of the left side.
    offset: i32,
    right: Panels<'a>,
    to: SharedMut<i32>,
}

impl Job<'_> {
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
        Room::with([4 * rows.len() * lines, 4 * rows.len() * COLS, 4 * rows.len(), 4 * lines], |mut room| {
            let (cells, sums) = (room.take::<u32>(rows.len() * lines), room.take::<i32>(rows.len() * COLS));
            let (totals, line) = (room.take::<i32>(rows.len()), room.take::<u32>(lines));
            for (first, height) in (0..cut.count).map(|panel| (cut.first(panel), cut.height(panel))) {
                for (row, total) in totals.iter_mut().enumerate().skip(first).take(height) {
                    let from = &self.left[(rows.start + row) * k..(rows.start + row + 1) * k];
                    *total = row_of_bytes(from, self.offset, line);
                    for (block, line) in line.chunks(LINES).enumerate() {
                        let start = block * LINES * rows.len() + first * line.len() + row - first;
                        for (at, &cell) in line.iter().enumerate() {
                            cells[start + at * height] = cell;
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
                        start: Start::Zero,
                        to: sums.as_mut_ptr().cast(),
                        pitch: COLS as isize,
                    });
                    for (row, &total) in totals.iter().enumerate() {
                        let first = (rows.start + row) * n + panel * COLS;
                        // SAFETY: each task has its own part of the result.
                        let to = unsafe { self.to.slice(first..first + cols) };
                        let sums = &sums[row * COLS..row * COLS + cols];
                        if line > 0 {
                            add(sums, to);
                            continue;
                        }
                        let taken = total.wrapping_add((k as i32).wrapping_mul(self.offset));
                        put(sums, of_columns, self.offset, taken.wrapping_mul(self.right.offset), to);
                    }
                }
            }
        });
    }
}

vectorize!(row_of_bytes(from: &[i32], offset: i32, to: &mut [u32]) -> i32 => row_of_bytes_body);

/// A row as cells; returns the sum of its bytes.
#[inline(always)]
fn row_of_bytes_body(from: &[i32], offset: i32, to: &mut [u32]) -> i32 {
    let mut sum = 0i32;
    let (whole, rest) = from.as_chunks::<DEEP>();
    for (four, to) in whole.iter().zip(&mut *to) {
        let value = |at: usize| four[at].wrapping_sub(offset);
        let byte = |at: usize| (value(at) as u32 & 255) << (8 * at);
        *to = byte(0) | byte(1) | byte(2) | byte(3);
        sum = sum.wrapping_add(value(0) + value(1) + value(2) + value(3));
    }
    if let Some(last) = to.get_mut(whole.len()) {
        *last = 0;
        for (at, value) in rest.iter().enumerate() {
            let value = value.wrapping_sub(offset);
            *last |= (value as u32 & 255) << (8 * at);
            sum = sum.wrapping_add(value);
        }
    }
    sum
}

vectorize!(put(from: &[i32], of_columns: &[i32], offset: i32, fixed: i32, to: &mut [i32]) => put_body);

/// Adds to sums of bytes what was taken from both sides.
#[inline(always)]
fn put_body(from: &[i32], of_columns: &[i32], offset: i32, fixed: i32, to: &mut [i32]) {
    for ((to, &sum), &column) in to.iter_mut().zip(from).zip(of_columns) {
        *to = sum.wrapping_add(column.wrapping_mul(offset)).wrapping_add(fixed);
    }
}

vectorize!(add(from: &[i32], to: &mut [i32]) => add_body);

#[inline(always)]
fn add_body(from: &[i32], to: &mut [i32]) {
    for (to, &sum) in to.iter_mut().zip(from) {
        *to = to.wrapping_add(sum);
    }
}

/// Cells are four bytes, unsigned on the left of x86-64; sums are int32 in registers that are said to hold `f32`.
struct Fours;

impl Multiply for Fours {
    type Real = f32;
    type Left = u32;
    type Right = u32;
    #[inline(always)]
    unsafe fn splat<V: Lanes<Elem = f32>>(cell: *const u32) -> V {
        // SAFETY: the caller promises the instructions of `V` and the cell.
        unsafe { V::splat(*cell.cast::<f32>()) }
    }
    #[inline(always)]
    unsafe fn load<V: Lanes<Elem = f32>>(cells: *const u32, _: isize) -> V {
        // SAFETY: the caller promises the instructions of `V` and the cells.
        unsafe { V::load(cells.cast()) }
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn accumulate<V: Lanes<Elem = f32>>(left: V, right: V, sum: V) -> V {
        use std::arch::x86_64::{__m512i, _mm512_dpbusd_epi32};
        use std::mem::transmute_copy;
        const { assert!(size_of::<V>() == size_of::<__m512i>() || V::N != 16) };
        // SAFETY: `launch` below runs with the instruction and the 512-bit register, a transparent `__m512`.
        unsafe {
            let (left, right) = (transmute_copy::<V, __m512i>(&left), transmute_copy::<V, __m512i>(&right));
            transmute_copy(&_mm512_dpbusd_epi32(transmute_copy(&sum), left, right))
        }
    }
    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    unsafe fn accumulate<V: Lanes<Elem = f32>>(left: V, right: V, sum: V) -> V {
        // SAFETY: `launch` below runs where the instruction is.
        unsafe { crate::machine::lanes::neon::add_fours(left, right, sum) }
    }
    #[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
    unsafe fn accumulate<V: Lanes<Elem = f32>>(_: V, _: V, sum: V) -> V {
        sum // Never called: there are no such products here.
    }
    #[cfg(target_arch = "x86_64")]
    fn launch<K: Kernel<f32>>(kernel: K) {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c,bmi1,bmi2")]
        fn run<K: Kernel<f32>>(kernel: K) {
            // SAFETY: the features are enabled here.
            unsafe { kernel.run::<<f32 as Real>::Wide512>() }
        }
        assert!(simd::has_byte_products(), "no such instruction here");
        // SAFETY: just checked.
        unsafe { run(kernel) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::matmul;
    use super::super::tests::Random;
    use super::*;
    use crate::array::view;
    use crate::machine::threads::set_num_threads;

    pub fn values(random: &mut Random, shape: &[usize], (least, span): (i32, usize)) -> Array {
        let count = shape.iter().product();
        let values: Vec<i32> = (0..count).map(|_| least.wrapping_add(random.next(span) as i32)).collect();
        Array::from_slice(&values, shape).unwrap()
    }

    /// Of products: rows, depth, columns.
    pub const SIZES: [(usize, usize, usize); 7] =
        [(8, 8, 8), (9, 33, 40), (14, 64, 32), (15, 65, 31), (200, 130, 70), (40, 1030, 33), (7, 9, 90)];
    /// Of values: the least one, and how many follow it.
    pub const SPANS: [(i32, usize); 7] =
        [(-128, 256), (0, 256), (-255, 256), (i32::MIN, 256), (i32::MAX - 255, 256), (-200, 400), (7, 1)];

    /// The definition, for one product.
    pub fn want(a: &[i32], b: &[i32], (m, k, n): (usize, usize, usize)) -> Vec<i32> {
        let sum =
            |i: usize, j: usize| (0..k).fold(0i32, |sum, l| sum.wrapping_add(a[i * k + l].wrapping_mul(b[l * n + j])));
        (0..m * n).map(|at| sum(at / n, at % n)).collect()
    }

    #[test]
    fn values_of_any_span_multiply_exactly() {
        let mut random = Random(31);
        for (round, (m, k, n)) in SIZES.into_iter().enumerate() {
            set_num_threads(1 + round % 4);
            for (left, right) in SPANS.into_iter().flat_map(|left| SPANS.map(|right| (left, right))) {
                let (a, b) = (values(&mut random, &[m, k], left), values(&mut random, &[k, n], right));
                let wanted = want(a.as_slice().unwrap(), b.as_slice().unwrap(), (m, k, n));
                assert!(matmul(&a, &b).unwrap().to_vec::<i32>().unwrap() == wanted, "{m} {k} {n} {left:?} {right:?}");
                let turned = view::permute_dims(&b, &[1, 0]).unwrap().contiguous().unwrap();
                let turned = view::permute_dims(&turned, &[1, 0]).unwrap();
                assert!(matmul(&a, &turned).unwrap().to_vec::<i32>().unwrap() == wanted, "{m} {k} {n}, turned");
            }
        }
    }

    #[test]
    fn a_right_side_is_kept_from_its_second_use_on() {
        let mut random = Random(33);
        let (m, k, n) = (9, 40, 70);
        let (a, b) = (values(&mut random, &[m, k], (-128, 256)), values(&mut random, &[k, n], (-100, 200)));
        let wanted = want(a.as_slice().unwrap(), b.as_slice().unwrap(), (m, k, n));
        let there_are =
            |count: usize| assert_eq!(b.storage().kept().count(), if simd::has_byte_products() { count } else { 0 });
        for uses in 0..4 {
            there_are(usize::from(uses > 1));
            assert!(matmul(&a, &b).unwrap().to_vec::<i32>().unwrap() == wanted, "use {uses}");
        }
        // Another left side, whose values lie elsewhere, and columns of the right one, which are a layout of their own.
        let high = values(&mut random, &[3, m, k], (1000, 256));
        let rows = want(high.as_slice().unwrap(), b.as_slice().unwrap(), (3 * m, k, n));
        assert!(matmul(&high, &b).unwrap().to_vec::<i32>().unwrap() == rows);
        let columns = view::slice(&b, &[0, 10], &[k, 40], &[1, 1]).unwrap();
        let dense = columns.contiguous().unwrap();
        let wanted = want(a.as_slice().unwrap(), dense.as_slice().unwrap(), (m, k, 40));
        for _ in 0..3 {
            assert!(matmul(&a, &columns).unwrap().to_vec::<i32>().unwrap() == wanted);
        }
        there_are(2);
    }

    #[test]
    fn batches_share_what_is_repeated() {
        let mut random = Random(32);
        let (m, k, n) = (10, 20, 40);
        let (a, b) = (values(&mut random, &[3, m, k], (-3, 200)), values(&mut random, &[2, 1, k, n], (0, 100)));
        let got = matmul(&a, &b).unwrap().to_vec::<i32>().unwrap();
        let (a, b) = (a.as_slice::<i32>().unwrap(), b.as_slice::<i32>().unwrap());
        for (item, got) in got.chunks_exact(m * n).enumerate() {
            let wanted = want(&a[item % 3 * m * k..], &b[item / 3 * k * n..], (m, k, n));
            assert!(got == wanted, "product {item}");
        }
    }
}
