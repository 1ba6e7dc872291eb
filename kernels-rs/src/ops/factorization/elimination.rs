//! Elimination with the largest element of a column as its pivot, panel after panel.

use super::panel::{Corner, LANES, Panel, WIDTH, add_product, part, subtract};
use super::{Each, Number, copied, each, fresh, unbounded};
use crate::array::Array;
use crate::error::Result;
use crate::memory::scratch::collected;
use crate::vectorize;

/// Columns of the rows behind a panel that are solved for at once: they stay in the first-level cache.
const SOLVED: usize = 128;

/// The permutations, the lower and the upper triangles.
pub fn factors<T: Number>(x: &Array, batch: usize, [m, n]: [usize; 2]) -> Result<(Array, Array, Array)> {
    let k = m.min(n);
    let mut work = copied::<T>(x)?;
    let mut permutation = fresh::<T>(x, [m, m], true)?;
    // What is worked in becomes the larger triangle.
    let mut other = fresh::<T>(x, [k, k], true)?;
    let [works, permutations, others] =
        [(&mut work, m * n), (&mut permutation, m * m), (&mut other, k * k)].map(|(x, len)| Each::<T>::of(x, len));
    each(batch, m * n * k / 3, &|mut range, split| {
        let mut panel = Panel::<T>::new(m);
        range.try_for_each(|index| {
            // SAFETY: each is visited once.
            let (a, moved, other) = unsafe { (works.at(index), permutations.at(index), others.at(index)) };
            if let Some(nan) = unbounded(a) {
                for part in [a, moved, other] {
                    part.fill(nan);
                }
                return Ok(());
            }
            let order = eliminate(a, [m, n], &mut panel, split)?;
            order.iter().enumerate().for_each(|(row, &from)| moved[from * m + row] = T::ONE);
            triangles(a, [m, n], other);
            Ok(())
        })
    })?;
    Ok(if m > n { (permutation, work, other) } else { (permutation, other, work) })
}

/// Takes the smaller triangle out of what was worked in.
fn triangles<T: Number>(a: &mut [T], [m, n]: [usize; 2], other: &mut [T]) {
    let k = m.min(n);
    for row in 0..k {
        let (below, above) = a[row * n..][..k].split_at_mut(row);
        let to = &mut other[row * k..][..k];
        if m > n {
            to[row..].copy_from_slice(above);
            above.fill(T::default());
            above[0] = T::ONE;
        } else {
            to[..row].copy_from_slice(below);
            to[row] = T::ONE;
            below.fill(T::default());
        }
    }
}

/// Both triangles in the place of the matrix; returns which row stands where.
fn eliminate<T: Number>(a: &mut [T], [m, n]: [usize; 2], panel: &mut Panel<T>, split: bool) -> Result<Vec<usize>> {
    let mut order = collected(0..m);
    for start in (0..m.min(n)).step_by(WIDTH) {
        let cols = WIDTH.min(m.min(n) - start);
        let end = start + cols;
        let corner = Corner { row: start, col: start, pitch: n };
        panel.read(a, corner, [m - start, cols]);
        let mut pivots = [0; WIDTH];
        let (cells, pitch) = panel.columns();
        steps(cells, pitch, m - start, &mut pivots[..cols]);
        for (row, &pivot) in pivots[..cols].iter().enumerate().filter(|&(row, &pivot)| row != pivot) {
            order.swap(start + row, start + pivot);
            let (head, rest) = a.split_at_mut((start + pivot) * n);
            let (one, other) = (&mut head[(start + row) * n..][..n], &mut rest[..n]);
            one[..start].swap_with_slice(&mut other[..start]);
            one[end..].swap_with_slice(&mut other[end..]);
        }
        panel.write(a, corner);
        let behind = Corner { col: end, ..corner };
        solve(a, behind, panel, n - end);
        panel.negate();
        let size = (m - end, cols, n - end);
        let whole = a.as_mut_ptr();
        let (right, to) = (part(whole, behind), part(whole, Corner { row: end, ..behind }));
        // SAFETY: the copy of the panel from the first row behind it on, the rows of the panel right of it, and what is
        // below these.
        unsafe { add_product(size, [panel.left(cols), right, to], split)? };
    }
    Ok(order)
}

vectorize!(steps[T: Number](cells: &mut [T], pitch: usize, rows: usize, pivots: &mut [usize]) => steps_body::<T>);

/// The columns of a panel.
#[inline(always)]
fn steps_body<T: Number>(cells: &mut [T], pitch: usize, rows: usize, pivots: &mut [usize]) {
    for j in 0..pivots.len() {
        let pivot = j + largest(&cells[j * pitch + j..j * pitch + rows]);
        pivots[j] = pivot;
        if pivot != j {
            cells.chunks_exact_mut(pitch).for_each(|column| column.swap(j, pivot));
        }
        let (head, rest) = cells.split_at_mut((j + 1) * pitch);
        let (top, column) = head[j * pitch..].split_at_mut(j + 1);
        let divisor = if top[j] == T::default() { T::ONE } else { top[j] };
        for value in &mut *column {
            *value = *value / divisor;
        }
        for other in rest.chunks_exact_mut(pitch) {
            let (top, below) = other.split_at_mut(j + 1);
            subtract(below, column, top[j]);
        }
    }
}

/// Where the first of the largest sizes is; NaN is larger than any.
#[inline(always)]
fn largest<T: Number>(values: &[T]) -> usize {
    // Sixteen at once, so that none waits for the comparison of its neighbor.
    let (runs, rest) = values.as_chunks::<LANES>();
    let (mut most, mut unknown) = ([T::default(); LANES], [false; LANES]);
    let mut look = |lane: usize, value: T| {
        most[lane] = if value.size() > most[lane] { value.size() } else { most[lane] };
        unknown[lane] |= value.partial_cmp(&value).is_none();
    };
    for run in runs {
        run.iter().enumerate().for_each(|(lane, &value)| look(lane, value));
    }
    rest.iter().enumerate().for_each(|(lane, &value)| look(lane, value));
    let top = most.iter().fold(T::default(), |top, &value| if value > top { value } else { top });
    let nan = unknown.contains(&true);
    let found = |value: &T| if nan { value.partial_cmp(value).is_none() } else { value.size() == top };
    let run =
        runs.iter().position(|run| run.iter().fold(false, |here, value| here | found(value))).unwrap_or(runs.len());
    values[run * LANES..].iter().position(found).map_or(0, |place| run * LANES + place)
}

/// The rows of the panel right of it: what its unit triangle takes to them.
fn solve<T: Number>(a: &mut [T], corner: Corner, panel: &mut Panel<T>, columns: usize) {
    let cols = panel.cols;
    let (cells, pitch) = panel.columns();
    for first in (0..columns).step_by(SOLVED) {
        let corner = Corner { col: corner.col + first, ..corner };
        rows(a, corner, [cols, SOLVED.min(columns - first)], cells, pitch);
    }
}

vectorize!(
    rows[T: Number](a: &mut [T], corner: Corner, size: [usize; 2], cells: &[T], pitch: usize) => rows_body::<T>
);

#[inline(always)]
fn rows_body<T: Number>(a: &mut [T], corner: Corner, [rows, wide]: [usize; 2], cells: &[T], pitch: usize) {
    for row in 1..rows {
        let (above, rest) = a.split_at_mut(corner.at(row, 0));
        for before in 0..row {
            subtract(&mut rest[..wide], &above[corner.run(before, wide)], cells[before * pitch + row]);
        }
    }
}
