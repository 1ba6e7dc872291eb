//! The register tile: sums that stay in registers while they walk over the depth of a product. There is one; what multiplies
//! matrices, planes or taps says where its two sides lie.

#![expect(clippy::needless_range_loop, reason = "iterators over registers take addresses, and are not unrolled")]

use super::lanes::Lanes;
use std::marker::PhantomData;

/// The side of a tile whose cells are all lanes of a register, one for each row of sums.
pub trait Left<V> {
    /// The register of row `m`, at this depth.
    ///
    /// # Safety
    /// The cell is there, and the machine has the instructions of `V`.
    unsafe fn factor(&self, m: usize) -> V;
    /// Goes to the next depth.
    fn step(&mut self);
}

/// The side of a tile that is read a register at a time, `Q` of them for the columns of sums.
pub trait Right<V: Lanes, const Q: usize> {
    /// The registers at this depth.
    ///
    /// # Safety
    /// They are there, and the machine has the instructions of `V`.
    unsafe fn values(&self) -> [V; Q];
    /// Goes to the next depth.
    fn step(&mut self);
}

/// `sums[m][q] += left[m] * right[q]`, over `depth` cells of both.
///
/// # Safety
/// Both sides are there for as many cells; the machine has the instructions of `V`.
#[inline(always)]
pub unsafe fn multiply<V: Lanes, L: Left<V>, R: Right<V, Q>, const M: usize, const Q: usize>(
    depth: usize,
    mut left: L,
    mut right: R,
    sums: &mut [[V; Q]; M],
) {
    // A copy of which no address is taken.
    let mut kept = *sums;
    for _ in 0..depth {
        let values = right.values();
        for m in 0..M {
            let factor = left.factor(m);
            for q in 0..Q {
                kept[m][q] = values[q].mul_add(factor, kept[m][q]);
            }
        }
        left.step();
        right.step();
    }
    *sums = kept;
}

/// Cells or registers at equal distances.
#[derive(Clone, Copy)]
pub struct Even<T> {
    /// The first one.
    pub at: *const T,
    /// From one to the next.
    pub near: usize,
    /// From one depth to the next.
    pub far: isize,
}

impl<V: Lanes> Left<V> for Even<V::Elem> {
    #[inline(always)]
    unsafe fn factor(&self, m: usize) -> V {
        V::splat(*self.at.add(m * self.near))
    }
    #[inline(always)]
    fn step(&mut self) {
        self.at = self.at.wrapping_offset(self.far);
    }
}

impl<V: Lanes, const Q: usize> Right<V, Q> for Even<V::Elem> {
    #[inline(always)]
    unsafe fn values(&self) -> [V; Q] {
        let mut values = [V::splat(V::Elem::default()); Q];
        for q in 0..Q {
            values[q] = V::load(self.at.add(q * self.near));
        }
        values
    }
    #[inline(always)]
    fn step(&mut self) {
        self.at = self.at.wrapping_offset(self.far);
    }
}

/// Cells or registers of several lines, all at the same places of theirs.
#[derive(Clone, Copy)]
pub struct Lines<'a, T, const N: usize> {
    at: [*const T; N],
    place: *const usize,
    places: PhantomData<&'a [usize]>,
}

impl<'a, T, const N: usize> Lines<'a, T, N> {
    /// A place for each depth.
    #[inline(always)]
    pub fn new(lines: [*const T; N], places: &'a [usize]) -> Self {
        Self { at: lines, place: places.as_ptr(), places: PhantomData }
    }

    #[inline(always)]
    unsafe fn at(&self, i: usize) -> *const T {
        // SAFETY: the caller says that there is a place for this depth, and what lies there.
        self.at[i].add(*self.place)
    }
}

impl<V: Lanes, const M: usize> Left<V> for Lines<'_, V::Elem, M> {
    #[inline(always)]
    unsafe fn factor(&self, m: usize) -> V {
        V::splat(*self.at(m))
    }
    #[inline(always)]
    fn step(&mut self) {
        self.place = self.place.wrapping_add(1);
    }
}

impl<V: Lanes, const Q: usize> Right<V, Q> for Lines<'_, V::Elem, Q> {
    #[inline(always)]
    unsafe fn values(&self) -> [V; Q] {
        let mut values = [V::splat(V::Elem::default()); Q];
        for q in 0..Q {
            values[q] = V::load(self.at(q));
        }
        values
    }
    #[inline(always)]
    fn step(&mut self) {
        self.place = self.place.wrapping_add(1);
    }
}
