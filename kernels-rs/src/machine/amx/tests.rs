//! The processor's tiles beside the model that stands in for them.

use crate::dtype::{BF16, Float};
use crate::machine::amx::model::Model;
use crate::machine::amx::{LINE, LINES, Processor, STEP, Sides, Unit};
use crate::machine::needs;
use crate::memory::scratch::Arena;

type Way = unsafe fn(Sides, *mut f32, bool);

/// Sums by each way of multiplying bfloat16 whose sides are packed, written and then added to.
fn sums<U: Unit>(left: &[u8], right: &[u8]) -> Vec<f32> {
    let mut all = Vec::new();
    let ways: [(Way, usize); 4] = [
        (U::multiply, STEP),
        (U::multiply_askew, STEP),
        (U::multiply_left_parts, 2 * STEP),
        (U::multiply_right_parts, STEP),
    ];
    Arena::with([4 * STEP], |mut room| {
        let sums = room.take::<f32>(4 * LINES * LINES);
        for (way, deep) in ways {
            let (left, right) = (left.as_ptr(), right.as_ptr());
            let sides = Sides { left, row: LINE, lower: STEP / 2, deep, right, steps: 3 };
            // SAFETY: both sides have six steps; the caller has the unit.
            unsafe {
                U::rows(LINES, LINES);
                way(sides, sums.as_mut_ptr(), false);
                way(Sides { steps: 2, ..sides }, sums.as_mut_ptr(), true);
                U::release();
            }
            all.extend_from_slice(sums);
        }
    });
    all
}

/// Small whole numbers, whose sums are exact in any order.
#[test]
fn the_unit_does_what_the_model_does() {
    if !needs::tiles() {
        return;
    }
    let mut seed = 7u64;
    let mut number = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        BF16::narrow((seed >> 40) as f32 % 9.0 - 4.0).0.to_le_bytes()
    };
    Arena::with([6 * STEP, 6 * STEP], |mut room| {
        let sides = [room.take::<u8>(6 * STEP), room.take::<u8>(6 * STEP)].map(|side| {
            side.chunks_exact_mut(2).for_each(|slot| slot.copy_from_slice(&number()));
            &*side
        });
        let (found, want) = (sums::<Processor>(sides[0], sides[1]), sums::<Model>(sides[0], sides[1]));
        assert_eq!(found.len(), want.len());
        let wrong = found.iter().zip(&want).position(|(a, b)| a.to_bits() != b.to_bits());
        assert_eq!(wrong, None, "of four ways, 1024 sums each");
    });
}
