//! Many rows times a weight in blocks, as integers of 8 bits: some columns are unpacked side by side, and meet all rows while they
//! are in the caches. Sums of a tile of the result stay in registers, where the factors of each block are put to them.

use super::SERIAL;
use super::avx512::{For, Rows};
use super::forms::{Form, MOST, PART, SHARE, blocks_of};
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::Arena;
use std::arch::x86_64::*;
use std::ops::Range;

/// Rows of a tile: with two registers across, 12 sums of integers and 12 of floats.
const HIGH: usize = 6;
/// Columns of a tile: two registers.
const COLS: usize = 32;
/// Lines of four numbers in a part.
const LINES: usize = PART / 4;

/// Numbers that share a factor.
const fn share<F: Form>() -> usize {
    PART / F::SHARES
}

/// Columns of the weight side by side.
struct Panel<'a> {
    cells: &'a mut [u32],
    factors: &'a mut [f32],
    least: &'a mut [f32],
}

/// Unpacks some rows of blocks; where there are fewer than [`COLS`], the last one stands for those that are missing.
///
/// # Safety
/// The processor has these instructions.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2")]
unsafe fn unpack<F: Form>(rows: &[u8], bytes: usize, to: &mut Panel<'_>) {
    let last = rows.len() / bytes - 1;
    let parts = to.cells.chunks_exact_mut(LINES * COLS).zip(to.factors.chunks_exact_mut(F::SHARES * COLS));
    let least = to.least.chunks_exact_mut(F::SHARES * COLS);
    for (at, ((cells, factors), least)) in parts.zip(least).enumerate() {
        for col in 0..COLS {
            let row = &rows[col.min(last) * bytes..][..bytes];
            let mut room = [0; MOST];
            let (blocks, part) = blocks_of::<F>(row, at, &mut room);
            let mut whole = [0u32; LINES];
            _mm512_storeu_si512(whole.as_mut_ptr().cast(), F::whole512(blocks.as_ptr(), part));
            for (line, cell) in whole.iter().enumerate() {
                cells[line * COLS + col] = *cell;
            }
            let by = F::factors(blocks, part);
            for i in 0..F::SHARES {
                let of = i * share::<F>() / SHARE;
                (factors[i * COLS + col], least[i * COLS + col]) = (by.0[of], by.1[of]);
            }
        }
    }
}

/// A tile of sums.
type Tile = [[f32; COLS]; HIGH];

/// # Safety
/// The processor has these instructions; both sides have so many shares, of `S` lines each.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma")]
unsafe fn multiply<const S: usize>(
    (rows, tile): (&Rows<HIGH>, usize),
    columns: &Panel<'_>,
    (shares, has_least): (usize, bool),
    to: &mut Tile,
) {
    let [cell, share] = rows.each.map(|each| tile * each);
    let (left, scale, sums) = (&rows.cells[cell..], &rows.scale[share..], &rows.sums[share..]);
    let (left, scale, sums) = (left.as_ptr(), scale.as_ptr(), sums.as_ptr());
    let (right, factors, least) = (columns.cells.as_ptr(), columns.factors.as_ptr(), columns.least.as_ptr());
    let mut totals = [[_mm512_setzero_ps(); 2]; HIGH];
    let two = |from: *const f32, at: usize| [0, 16].map(|half| _mm512_loadu_ps(from.add(at * COLS + half)));
    for share in 0..shares {
        let mut found = [[_mm512_setzero_si512(); 2]; HIGH];
        if !has_least {
            for (r, found) in found.iter_mut().enumerate() {
                *found = [_mm512_set1_epi32(*sums.add(share * HIGH + r)); 2];
            }
        }
        for line in share * S..(share + 1) * S {
            let cells = two(right.cast(), line).map(|v| _mm512_castps_si512(v));
            for (r, found) in found.iter_mut().enumerate() {
                let values = _mm512_set1_epi32(*left.add(line * HIGH + r) as i32);
                for (found, cells) in found.iter_mut().zip(cells) {
                    *found = _mm512_dpbusd_epi32(*found, cells, values);
                }
            }
        }
        let by = two(factors, share);
        for (r, (total, found)) in totals.iter_mut().zip(found).enumerate() {
            let scale = _mm512_set1_ps(*scale.add(share * HIGH + r));
            for ((total, found), by) in total.iter_mut().zip(found).zip(by) {
                *total = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(found), scale), by, *total);
            }
        }
    }
    for share in 0..if has_least { shares } else { 0 } {
        let by = two(least, share);
        for (r, total) in totals.iter_mut().enumerate() {
            let sum = _mm512_set1_ps(*sums.cast::<f32>().add(share * HIGH + r));
            for (total, by) in total.iter_mut().zip(by) {
                *total = _mm512_fmadd_ps(sum, by, *total);
            }
        }
    }
    for (to, total) in to.iter_mut().zip(totals) {
        _mm512_storeu_ps(to.as_mut_ptr(), total[0]);
        _mm512_storeu_ps(to.as_mut_ptr().add(16), total[1]);
    }
}

/// Writes the product of dense rows with `n` rows of blocks.
///
/// # Safety
/// The processor has the instructions: [`super::avx512::applies`].
pub unsafe fn product<F: Form>(
    x: &[f32],
    blocks: &[u8],
    bias: Option<&[f32]>,
    (rows, k, n): (usize, usize, usize),
    to: SharedMut<f32>,
) {
    let form = For::of::<F>();
    let left = Rows::new(&form, x, (rows, k));
    let right = Weight { blocks, bytes: k / F::SIZE * F::BYTES, unpack: unpack::<F> };
    meet((&left, &right, bias), &form, (rows, k, n), to);
}

/// Rows of blocks, of so many bytes, and what unpacks some.
struct Weight<'a> {
    blocks: &'a [u8],
    bytes: usize,
    unpack: unsafe fn(&[u8], usize, &mut Panel<'_>),
}

/// The product, once for all forms.
///
/// # Safety
/// As for [`product`].
unsafe fn meet(
    (left, right, bias): (&Rows<HIGH>, &Weight<'_>, Option<&[f32]>),
    form: &For,
    (rows, k, n): (usize, usize, usize),
    to: SharedMut<f32>,
) {
    let (tiles, panels) = (rows.div_ceil(HIGH), n.div_ceil(COLS));
    // Each piece of the rows unpacks the weight again: there is one, where columns keep all threads at work.
    let serial = rows * k * n < SERIAL;
    let pieces = if serial { 1 } else { threads::tasks(1).div_ceil(panels.max(1)).min(tiles) };
    let (parts, shares) = (k.div_ceil(PART), k / PART * form.shares + k % PART * form.shares / PART);
    let (cells, all) = (parts * LINES * COLS, parts * form.shares * COLS);
    let multiply = if form.shares == 2 { multiply::<{ LINES / 2 }> } else { multiply::<{ LINES / 4 }> };
    let work = |task: usize| {
        let (panel, piece) = (task / pieces, task % pieces);
        let columns = panel * COLS..n.min((panel + 1) * COLS);
        Arena::with([4 * cells, 4 * all, 4 * all], |mut room| {
            let mut some = Panel { cells: room.take(cells), factors: room.take(all), least: room.take(all) };
            let from = &right.blocks[columns.start * right.bytes..columns.end * right.bytes];
            // SAFETY: the caller asked the processor.
            unsafe { (right.unpack)(from, right.bytes, &mut some) };
            for tile in piece * tiles / pieces..(piece + 1) * tiles / pieces {
                let (first, mut found) = (tile * HIGH, [[0.0; COLS]; HIGH]);
                // SAFETY: as above; both sides have so many shares.
                unsafe { multiply((left, tile), &some, (shares, form.has_least), &mut found) };
                put(&found, (first..rows.min(first + HIGH), columns.clone()), bias, (n, to));
            }
        });
    };
    if serial { (0..panels).for_each(work) } else { threads::parallel(panels * pieces, &work) }
}

/// Writes a tile of the result, of which each task has its own.
fn put(
    found: &Tile,
    (rows, columns): (Range<usize>, Range<usize>),
    bias: Option<&[f32]>,
    (n, to): (usize, SharedMut<f32>),
) {
    for (row, found) in rows.zip(found) {
        // SAFETY: inside the result, and no other task's.
        let to = unsafe { to.slice(row * n + columns.start..row * n + columns.end) };
        to.copy_from_slice(&found[..to.len()]);
        for (to, bias) in to.iter_mut().zip(bias.map_or(&[][..], |bias| &bias[columns.clone()])) {
            *to += bias;
        }
    }
}
