//! Inner loops whose lanes are neighbouring positions, for few channels per group.

#![expect(clippy::needless_range_loop, reason = "counted loops over a tile are unrolled into registers")]

use crate::machine::lanes::Lanes;
use crate::machine::tile::{self, Even, Lines};

/// `acc[m][q] += sum over l of w[l][m] * x[q][offsets[l]..]`.
///
/// # Safety
/// `w` holds `offsets.len()` rows of `M` elements, each `x[q]` every register read; the machine has the instructions
/// of `V`.
#[inline(always)]
pub unsafe fn correlate<V: Lanes, const M: usize, const Q: usize>(
    offsets: &[usize],
    w: *const V::Elem,
    x: [*const V::Elem; Q],
    acc: &mut [[V; Q]; M],
) {
    let weights = Even { at: w, near: 1, far: M as isize };
    tile::multiply(offsets.len(), weights, Lines::new(x, offsets), acc);
}

/// `acc[j] += g * x[taps[j]..]`, lane by lane, the first `count` lanes only: what lies beyond may be infinite.
///
/// # Safety
/// `x` holds every element read; the machine has the instructions of `V`.
#[inline(always)]
pub unsafe fn gradient<V: Lanes, const J: usize>(
    g: V,
    x: *const V::Elem,
    taps: &[usize; J],
    count: usize,
    acc: &mut [V; J],
) {
    for j in 0..J {
        let at = x.add(taps[j]);
        let values = if count == V::N { V::load(at) } else { V::load_partial(at, count) };
        acc[j] = g.mul_add(values, acc[j]);
    }
}

/// Writes the first `count` lanes, `step` apart.
///
/// # Safety
/// The places are the caller's to write; the machine has the instructions of `V`.
#[inline(always)]
pub unsafe fn put<V: Lanes>(value: V, to: *mut V::Elem, count: usize, step: usize) {
    if step == 1 {
        return value.store_some(to, count);
    }
    let mut lanes = [V::Elem::default(); 16];
    value.store(lanes.as_mut_ptr());
    for i in 0..count {
        *to.add(i * step) = lanes[i];
    }
}
