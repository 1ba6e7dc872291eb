//! One line of complex numbers in two parts, whose length is a power of 2 times factors of 2, 3, 5 and 7. The first pass takes a
//! number from each of as many places as that power, or as a register has lanes, for all lanes at once, and turns what it gets
//! over as it writes it. From there on results that are together fill registers: the passes are those of columns, of which a
//! line is one.

use super::butterfly::{Butterfly, Forward, Pair, turned_by};
use super::columns::{Columns, Rows, turn};
use crate::dtype::Element;
use crate::machine::lanes::{Kernel, Lanes, Real, is_baseline, lane_count, launch};
use crate::memory::scratch::Aligned;

/// The shortest lines: others are columns, of which several lie beside each other.
const SHORTEST: usize = 160;
/// The smallest first factor: behind it so few lanes of a register are used.
const LEAST: usize = 4;

/// How lines of one length are transformed.
pub struct Passes<T> {
    /// By what the results of the first pass are turned, but for the first ones: cosines and sines, `rest` of each.
    turns: [Aligned<T>; 2],
    /// The passes behind the first.
    behind: Columns<T>,
    /// Elements of a line.
    pub length: usize,
    /// The first factor.
    first: usize,
    /// The product of those behind it.
    rest: usize,
}

/// Where the numbers of a line are read.
#[derive(Clone, Copy)]
pub enum Numbers<T> {
    /// Real parts here, imaginary parts there.
    Parts(*const T, *const T),
    /// Real and imaginary parts in turns.
    Pairs(*const T),
}

impl<T: Real> Passes<T> {
    /// None for a length with another factor, and for one that is better done as a column.
    pub fn new(length: usize) -> Option<Self> {
        let lanes = lane_count::<T>();
        let first = 1usize << length.trailing_zeros().min(lanes.trailing_zeros());
        let rest = length / first;
        if length < SHORTEST || first < LEAST.min(lanes).max(2) || is_baseline() {
            return None;
        }
        let behind = Columns::behind(first, rest)?;
        let part = |at: usize| {
            let mut list = Aligned::zeros((first - 1) * rest);
            for (place, slot) in list.iter_mut().enumerate() {
                *slot = <T as Element>::from_f64(turn((place / rest + 1) * (place % rest), length)[at]);
            }
            list
        };
        Some(Self { turns: [part(0), part(1)], behind, length, first, rest })
    }

    /// Transforms a line. What is between passes is in two places, of which the first may be `to`.
    ///
    /// # Safety
    /// Operands, results and places have `length` elements of each part; nothing else uses those that are written, and the
    /// operands are none of them.
    pub unsafe fn run(&self, from: Numbers<T>, to: Rows<T>, between: [Rows<T>; 2]) {
        let first = between[self.behind.passes() % 2];
        launch(First { plan: self, from, to: first });
        // SAFETY: the line is one column.
        self.behind.run(first, to, 1, between);
    }
}

struct First<'a, T> {
    plan: &'a Passes<T>,
    from: Numbers<T>,
    to: Rows<T>,
}

impl<T: Real> Kernel<T> for First<'_, T> {
    const BASELINE: bool = false;
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        match self.plan.first {
            2 if V::N == 2 => self.by::<V, 2>(),
            4 if V::N >= 4 => self.by::<V, 4>(),
            8 if V::N >= 8 => self.by::<V, 8>(),
            16 if V::N >= 16 => self.by::<V, 16>(),
            _ => unreachable!("a factor of the lanes"),
        }
    }
}

impl<T: Real> First<'_, T> {
    /// # Safety
    /// As for the kernel; the first factor is `R`, and no more than the lanes.
    #[inline(always)]
    unsafe fn by<V: Lanes<Elem = T>, const R: usize>(&self)
    where
        Forward: Butterfly<R>,
    {
        for part in (0..self.plan.rest).step_by(V::N) {
            let count = V::N.min(self.plan.rest - part);
            // SAFETY: `count` numbers of each of `R` places are in the line.
            match (self.from, count == V::N) {
                (Numbers::Parts(..), true) => self.square::<V, R, false, true>(part, V::N),
                (Numbers::Parts(..), false) => self.square::<V, R, false, false>(part, count),
                (Numbers::Pairs(_), true) => self.square::<V, R, true, true>(part, V::N),
                (Numbers::Pairs(_), false) => self.square::<V, R, true, false>(part, count),
            }
        }
    }

    /// `count` results of each of `R` kinds, from `part` on.
    ///
    /// # Safety
    /// As for `by`; a register has `count` lanes if it is `WHOLE`, and the line has so many behind `part`.
    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "iterators over registers are not unrolled")]
    unsafe fn square<V: Lanes<Elem = T>, const R: usize, const PAIRS: bool, const WHOLE: bool>(
        &self,
        part: usize,
        count: usize,
    ) where
        Forward: Butterfly<R>,
    {
        let rest = self.plan.rest;
        // There are `rest` turns of each kind but the first.
        let zero = V::splat(T::default());
        let mut x: [Pair<V>; R] = [(zero, zero); R];
        for j in 0..R {
            x[j] = self.numbers::<V, PAIRS, WHOLE>(part + j * rest, count);
        }
        let x = Forward::of(x);
        let (mut re, mut im) = ([zero; R], [zero; R]);
        (re[0], im[0]) = x[0];
        for k in 1..R {
            let at = (k - 1) * rest + part;
            let turn =
                [&self.plan.turns[0], &self.plan.turns[1]].map(|list| some::<V, WHOLE>(list.as_ptr().add(at), count));
            (re[k], im[k]) = turned_by(x[k], turn);
        }
        let (re, im) = (V::turned_over(re), V::turned_over(im));
        for row in 0..R {
            // Of the last square, rows may begin behind the line: nothing is written there.
            let at = part * R + row * V::N;
            let (to_re, to_im) = (self.to.re.wrapping_add(at), self.to.im.wrapping_add(at));
            if WHOLE {
                re[row].store(to_re);
                im[row].store(to_im);
            } else if row * V::N < count * R {
                let left = V::N.min(count * R - row * V::N);
                re[row].store_some(to_re, left);
                im[row].store_some(to_im, left);
            }
        }
    }

    /// `count` numbers of the line.
    ///
    /// # Safety
    /// They are there; a register has `count` lanes if it is `WHOLE`.
    #[inline(always)]
    unsafe fn numbers<V: Lanes<Elem = T>, const PAIRS: bool, const WHOLE: bool>(
        &self,
        at: usize,
        count: usize,
    ) -> Pair<V> {
        match self.from {
            Numbers::Pairs(from) if PAIRS => {
                let from = from.add(2 * at);
                let second = (2 * count).saturating_sub(V::N);
                // Where the first register holds all, nothing is read behind it.
                let behind = from.wrapping_add(V::N);
                V::deinterleave(some::<V, WHOLE>(from, V::N.min(2 * count)), some::<V, WHOLE>(behind, second))
            }
            Numbers::Parts(re, im) if !PAIRS => {
                (some::<V, WHOLE>(re.add(at), count), some::<V, WHOLE>(im.add(at), count))
            }
            _ => unreachable!("read as what it is"),
        }
    }
}

/// `count` elements.
///
/// # Safety
/// They are there, as many as a register has if it is `WHOLE`, and the machine has the instructions.
#[inline(always)]
unsafe fn some<V: Lanes, const WHOLE: bool>(from: *const V::Elem, count: usize) -> V {
    if WHOLE { V::load(from) } else { V::load_partial(from, count) }
}
