//! Products of matrices of bytes, as quantized networks have them, by the unit that multiplies tiles ([`amx`]) or the
//! instruction that multiplies four bytes and adds them to an int32. The right side is moved to -128..=127 and the left one
//! to 0..=255, or to -128..=127 too where the instruction wants that; what that changes is a multiple of the sums of rows and
//! columns. Exact, and as all products of integers they wrap.

#[cfg(target_arch = "x86_64")]
mod amx;
mod panels;

use super::side::{self, KEEPS};
use super::tile::{Cut, Multiply, Start, Strip, tile_rows};
use super::{Product, SERIAL};
use crate::array::Array;
use crate::dtype::Element;
use crate::error::Result;
#[cfg(target_arch = "x86_64")]
use crate::machine::amx as unit;
use crate::machine::lanes::Lanes;
#[cfg(target_arch = "x86_64")]
use crate::machine::lanes::{Kernel, Real};
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
/// Values that a thread packs.
const GRAIN: usize = 1 << 16;
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
    type Real = f32;
    type Left = u32;
    type Right = u32;
    #[inline(always)]
    unsafe fn splat<V: Lanes<Elem = f32>>(cell: *const u32) -> V {
        V::splat(*cell.cast::<f32>())
    }
    #[inline(always)]
    unsafe fn load<V: Lanes<Elem = f32>>(cells: *const u32, _: isize) -> V {
        V::load(cells.cast())
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
    use super::super::tests::Random;
    use super::super::{matmul, matmul_integer};
    use super::*;
    use crate::array::view;
    use crate::dtype::DType;
    use crate::machine::threads::set_num_threads;
    use crate::ops::elementwise::convert::cast;

    /// Bytes of any value.
    pub fn values(random: &mut Random, shape: &[usize], dtype: DType) -> Array {
        let bytes: Vec<i32> = (0..shape.iter().product()).map(|_| random.next(256) as i32).collect();
        cast(&Array::from_slice(&bytes, shape).unwrap(), dtype).unwrap()
    }

    pub fn wide(x: &Array) -> Vec<i32> {
        cast(x, DType::I32).unwrap().to_vec().unwrap()
    }

    fn product(a: &Array, b: &Array) -> Vec<i32> {
        matmul_integer(a, b, DType::I32).unwrap().to_vec().unwrap()
    }

    /// Of products: rows, depth, columns.
    pub const SIZES: [(usize, usize, usize); 7] =
        [(8, 8, 8), (9, 33, 40), (14, 64, 32), (15, 65, 31), (200, 130, 70), (40, 1030, 33), (7, 9, 90)];
    /// Both kinds.
    pub const BYTES: [DType; 2] = [DType::I8, DType::U8];

    /// The definition, for one product.
    pub fn want(a: &[i32], b: &[i32], (m, k, n): (usize, usize, usize)) -> Vec<i32> {
        let sum =
            |i: usize, j: usize| (0..k).fold(0i32, |sum, l| sum.wrapping_add(a[i * k + l].wrapping_mul(b[l * n + j])));
        (0..m * n).map(|at| sum(at / n, at % n)).collect()
    }

    #[test]
    fn bytes_multiply_as_int32_does() {
        let mut random = Random(36);
        for (round, (m, k, n)) in SIZES.into_iter().chain([(64, 300, 33)]).enumerate() {
            set_num_threads(1 + round % 3);
            for (left, right) in BYTES.into_iter().flat_map(|left| BYTES.map(|right| (left, right))) {
                let (a, b) = (values(&mut random, &[2, m, k], left), values(&mut random, &[k, n], right));
                let wanted = want(&wide(&a), &wide(&b), (2 * m, k, n));
                let turned = view::permute_dims(&b, &[1, 0]).unwrap().contiguous().unwrap();
                let turned = view::permute_dims(&turned, &[1, 0]).unwrap();
                for b in [&b, &b, &b, &turned] {
                    assert!(product(&a, b) == wanted, "{m} {k} {n} {left:?} {right:?}");
                }
                let whole = matmul(&cast(&a, DType::I32).unwrap(), &cast(&b, DType::I32).unwrap()).unwrap();
                assert!(whole.to_vec::<i32>().unwrap() == wanted, "{m} {k} {n} {left:?} {right:?}");
                let narrow = matmul_integer(&a, &b, DType::I16).unwrap();
                assert!(narrow.to_vec::<i16>().unwrap().iter().zip(&wanted).all(|(&got, &want)| got == want as i16));
            }
        }
        let (floats, row) = (Array::zeros(DType::F32, &[2, 2]).unwrap(), Array::zeros(DType::I8, &[2, 2]).unwrap());
        assert!(matmul_integer(&row, &floats, DType::I32).is_err());
        assert!(matmul_integer(&row, &row, DType::F32).is_err());
    }

    #[test]
    fn a_right_side_is_kept_from_its_second_use_on() {
        let mut random = Random(33);
        let (m, k, n) = (9, 40, 70);
        let (a, b) = (values(&mut random, &[m, k], DType::U8), values(&mut random, &[k, n], DType::I8));
        let wanted = want(&wide(&a), &wide(&b), (m, k, n));
        let there_are =
            |count: usize| assert_eq!(b.storage().packed().count(), if simd::has_byte_products() { count } else { 0 });
        for uses in 0..4 {
            there_are(usize::from(uses > 1));
            assert!(product(&a, &b) == wanted, "use {uses}");
        }
        // Another left side, and columns of the right one, which are a layout of their own.
        let more = values(&mut random, &[3, m, k], DType::I8);
        assert!(product(&more, &b) == want(&wide(&more), &wide(&b), (3 * m, k, n)));
        let columns = view::slice(&b, &[0, 10], &[k, 40], &[1, 1]).unwrap();
        let wanted = want(&wide(&a), &wide(&columns), (m, k, 40));
        for _ in 0..3 {
            assert!(product(&a, &columns) == wanted);
        }
        there_are(2);
    }

    #[test]
    fn batches_of_any_layout_are_those_of_dense_operands() {
        let mut random = Random(33);
        let a = values(&mut random, &[4, 16, 8, 32], DType::I8);
        let (one, two) = (values(&mut random, &[32, 24], DType::I8), values(&mut random, &[4, 1, 32, 24], DType::U8));
        let turned = view::permute_dims(&a, &[0, 2, 1, 3]).unwrap();
        let spread = view::broadcast_to(&one, &[4, 16, 32, 24]).unwrap();
        for (a, b) in [(&a, &spread), (&turned, &two), (&turned, &one)] {
            let (got, m, x, y) = (product(a, b), a.shape()[2], wide(a), wide(b));
            let (across, size) = (a.shape()[1], (m, 32, 24));
            for (item, got) in got.chunks_exact(m * 24).enumerate() {
                let right = match b.rank() {
                    2 => 0,
                    _ if b.shape()[1] == 1 => item / across,
                    _ => item,
                };
                assert!(
                    got == want(&x[item * m * 32..], &y[right * 32 * 24..], size),
                    "product {item} of {a:?} and {b:?}"
                );
            }
        }
    }

    #[test]
    fn batches_share_what_is_repeated() {
        let mut random = Random(32);
        let (m, k, n) = (10, 20, 40);
        let (a, b) = (values(&mut random, &[3, m, k], DType::U8), values(&mut random, &[2, 1, k, n], DType::U8));
        let (got, a, b) = (product(&a, &b), wide(&a), wide(&b));
        for (item, got) in got.chunks_exact(m * n).enumerate() {
            let wanted = want(&a[item % 3 * m * k..], &b[item / 3 * k * n..], (m, k, n));
            assert!(got == wanted, "product {item}");
        }
    }
}
