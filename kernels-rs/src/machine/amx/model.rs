//! What the unit does, without it.

use super::{Apart, LINE, LINES, STEP, Sides, Unit};
use crate::dtype::{BF16, Float};
use std::cell::Cell;

/// Does what the manual says of the instructions, on any machine.
pub struct Model;

thread_local! {
    static ROWS: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
}

/// Rows of both tiles on the left: of the sums, and where they lie.
fn rows(sides: Sides) -> impl Iterator<Item = (usize, usize)> {
    let (upper, lower) = ROWS.get().expect("tiles of some shape");
    let above = (0..upper).map(move |i| (i, i * sides.row));
    above.chain((0..lower).map(move |i| (LINES + i, sides.lower + i * sides.row)))
}

impl Unit for Model {
    unsafe fn rows(upper: usize, lower: usize) {
        assert!((1..=LINES).contains(&upper) && (1..=LINES).contains(&lower), "{upper} and {lower} rows");
        ROWS.set(Some((upper, lower)));
    }
    unsafe fn release() {
        ROWS.set(None);
    }
    #[expect(clippy::cast_ptr_alignment, reason = "read as if unaligned")]
    unsafe fn multiply(sides: Sides, sums: *mut f32, adds: bool) {
        for (i, at) in rows(sides) {
            for j in 0..2 * LINES {
                let place = i * 2 * LINES + j;
                let mut sum = if adds { *sums.add(place) } else { 0.0 };
                for (step, l) in (0..sides.steps).flat_map(|step| (0..LINE / 2).map(move |l| (step, l))) {
                    let left = sides.left.add(at + step * sides.deep).cast::<BF16>().add(l);
                    let right = sides.right.add(step * STEP + l / 2 * 2 * LINE).cast::<BF16>().add(2 * j + l % 2);
                    sum += left.read_unaligned().widen() * right.read_unaligned().widen();
                }
                *sums.add(place) = sum;
            }
        }
    }
    unsafe fn multiply_askew(sides: Sides, sums: *mut f32, adds: bool) {
        Self::multiply(sides, sums, adds);
    }
    unsafe fn multiply_left_parts(sides: Sides, sums: *mut f32, adds: bool) {
        for step in 0..sides.steps {
            let (left, right) = (sides.left.wrapping_add(step * sides.deep), sides.right.wrapping_add(step * STEP));
            let first = Sides { left, right, steps: 1, ..sides };
            let second = Sides { left: left.wrapping_add(STEP), ..first };
            Self::multiply(first, sums, adds || step > 0);
            Self::multiply(second, sums, true);
        }
    }
    unsafe fn multiply_right_parts(sides: Sides, sums: *mut f32, adds: bool) {
        for step in 0..sides.steps {
            let (left, right) = (sides.left.wrapping_add(step * sides.deep), sides.right.wrapping_add(2 * step * STEP));
            let first = Sides { left, right, steps: 1, ..sides };
            let second = Sides { right: right.wrapping_add(STEP), ..first };
            Self::multiply(first, sums, adds || step > 0);
            Self::multiply(second, sums, true);
        }
    }
    unsafe fn multiply_bytes(sides: Sides, sums: *mut i32, adds: bool) {
        for (i, at) in rows(sides) {
            for j in 0..2 * LINES {
                let place = i * 2 * LINES + j;
                let mut sum = if adds { *sums.add(place) } else { 0 };
                for (step, l) in (0..sides.steps).flat_map(|step| (0..LINE).map(move |l| (step, l))) {
                    let left = *sides.left.add(at + step * sides.deep + l);
                    let right = *sides.right.add(step * STEP + l / 4 * 2 * LINE + 4 * j + l % 4) as i8;
                    sum = sum.wrapping_add(i32::from(left) * i32::from(right));
                }
                *sums.add(place) = sum;
            }
        }
    }
    #[expect(clippy::cast_ptr_alignment, reason = "read as if unaligned")]
    unsafe fn multiply_apart(sides: Apart, sums: *mut f32) {
        let (upper, lower) = ROWS.get().expect("tiles of some shape");
        for i in (0..upper).chain(LINES..LINES + lower) {
            for j in 0..2 * LINES {
                let beside = if j < LINES { 0 } else { sides.beside };
                let mut sum = 0.0;
                for (step, l) in (0..sides.steps).flat_map(|step| (0..LINE / 2).map(move |l| (step, l))) {
                    let left = sides.left.add(step * STEP + i * LINE).cast::<BF16>().add(l);
                    let tile = sides.right.add(*sides.offsets.add(step)).offset(beside);
                    let right = tile.add(l / 2 * sides.line).cast::<BF16>().add(2 * (j % LINES) + l % 2);
                    sum += left.read_unaligned().widen() * right.read_unaligned().widen();
                }
                *sums.add(i * 2 * LINES + j) = sum;
            }
        }
    }
}
