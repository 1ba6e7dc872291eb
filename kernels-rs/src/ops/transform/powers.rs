//! Lines of complex numbers in two parts, whose length is a power of 2 from 128 to 4096, for registers of eight and sixteen lanes.
//! The first passes take eight numbers at a time, which registers hold with all that is computed from them, and the compiler knows
//! all sizes. Behind the first pass eight results are together: a register of sixteen lanes has those of two parts.

use super::butterfly::{Butterfly, Forward, Pair, turned_by};
use super::columns::{Rows, turn};
use super::passes::Numbers;
use crate::dtype::Element;
use crate::machine::lanes::{Kernel, Lanes, Real, lane_count, launch};
use crate::memory::scratch::{Aligned, collected};

/// The factor of the first two passes.
const EIGHT: usize = 8;
/// Results that are together behind them.
const SQUARE: usize = EIGHT * EIGHT;

/// How lines of one length are transformed.
pub struct Powers<T> {
    /// By what the results of the first two passes are turned, but for the first ones: a register of cosines and one of sines for
    /// each.
    turns: [Aligned<T>; 2],
    /// Those of the third where a fourth follows: a cosine and a sine for each.
    third: Vec<[T; 2]>,
    /// Elements of a line.
    pub length: usize,
}

impl<T: Real> Powers<T> {
    /// None for other lengths, and where registers have fewer lanes.
    pub fn new(length: usize) -> Option<Self> {
        let lanes = lane_count::<T>();
        if !length.is_power_of_two() || !(128..=4096).contains(&length) || !(8..=16).contains(&lanes) {
            return None;
        }
        // Registers beside each other hold parts from `part` on, each as often as results are together.
        let table = |rest: usize, together: usize| {
            let mut list = Aligned::zeros(rest * together * (EIGHT - 1) * 2);
            for (place, slot) in list.iter_mut().enumerate() {
                let (register, lane) = (place / lanes, place % lanes);
                let (group, k, side) = (register / 14, register % 14 / 2 + 1, register % 2);
                let part = (group * lanes + lane) / together;
                *slot = <T as Element>::from_f64(turn(k * part, EIGHT * rest)[side]);
            }
            list
        };
        let turns = [table(length / EIGHT, 1), table(length / SQUARE, EIGHT)];
        let factor = length / SQUARE / EIGHT;
        let rest = if length > 1024 { EIGHT } else { 0 };
        let places = (0..rest).flat_map(|part| (1..factor).map(move |k| part * k));
        let third = collected(places.map(|place| turn(place, rest * factor).map(<T as Element>::from_f64)));
        Some(Self { turns, third, length })
    }

    /// Transforms a line. What is between passes is in the room and in the results, which are so fetched in time.
    ///
    /// # Safety
    /// Operands and results have `length` elements of each part, the room as many of both; nothing else uses those that are
    /// written, and the operands are none of them.
    pub unsafe fn run(&self, from: Numbers<T>, to: Rows<T>, room: *mut T) {
        // SAFETY: the room has two parts.
        let between = Rows { re: room, im: room.add(self.length), pitch: 1 };
        launch(Whole { plan: self, from, to, between });
    }
}

struct Whole<'a, T> {
    plan: &'a Powers<T>,
    from: Numbers<T>,
    to: Rows<T>,
    between: Rows<T>,
}

impl<T: Real> Kernel<T> for Whole<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        if V::N < EIGHT {
            unreachable!("there is no such plan");
        }
        match self.plan.length / SQUARE {
            2 => self.by::<V, 2>(),
            4 => self.by::<V, 4>(),
            8 => self.by::<V, 8>(),
            16 => self.by::<V, 16>(),
            32 => self.by::<V, 32>(),
            64 => self.by::<V, 64>(),
            _ => unreachable!("there is no such plan"),
        }
    }
}

impl<T: Real> Whole<'_, T> {
    /// # Safety
    /// As for the kernel; the line has `BEHIND` times 64 elements.
    #[inline(always)]
    unsafe fn by<V: Lanes<Elem = T>, const BEHIND: usize>(&self) {
        let Self { plan, from, to, between } = self;
        let [first, second] = [&plan.turns[0], &plan.turns[1]].map(|list| list.as_ptr());
        // SAFETY: all have so many elements, and the last pass writes what it has read alone.
        match from {
            Numbers::Parts(..) => first_pass::<V, BEHIND, false>(*from, *to, first),
            Numbers::Pairs(_) => first_pass::<V, BEHIND, true>(*from, *to, first),
        }
        second_pass::<V, BEHIND>(*to, *between, second);
        match BEHIND {
            2 => last_pass::<V, 2>(*between, *to, SQUARE),
            4 => last_pass::<V, 4>(*between, *to, SQUARE),
            8 => last_pass::<V, 8>(*between, *to, SQUARE),
            16 => last_pass::<V, 16>(*between, *to, SQUARE),
            32 => {
                third_pass::<V, 4>(*between, *to, 8, &plan.third);
                last_pass::<V, 8>(*to, *to, 4 * SQUARE);
            }
            _ => {
                third_pass::<V, 8>(*between, *to, 8, &plan.third);
                last_pass::<V, 8>(*to, *to, 8 * SQUARE);
            }
        }
    }
}

/// Numbers from eight places, and their results beside each other.
///
/// # Safety
/// There are `BEHIND` times 64 elements of each, and turns of them.
#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "iterators over registers are not unrolled")]
unsafe fn first_pass<V: Lanes, const BEHIND: usize, const PAIRS: bool>(
    from: Numbers<V::Elem>,
    to: Rows<V::Elem>,
    turns: *const V::Elem,
) {
    let rest = EIGHT * BEHIND;
    for part in (0..rest).step_by(V::N) {
        let zero = V::splat(V::Elem::default());
        let mut x: [Pair<V>; EIGHT] = [(zero, zero); EIGHT];
        for j in 0..EIGHT {
            let at = part + j * rest;
            x[j] = match from {
                Numbers::Pairs(from) if PAIRS => {
                    V::deinterleave(V::load(from.add(2 * at)), V::load(from.add(2 * at + V::N)))
                }
                Numbers::Parts(re, im) if !PAIRS => (V::load(re.add(at)), V::load(im.add(at))),
                _ => unreachable!("read as what it is"),
            };
        }
        let x = turned_all::<V>(Forward::of(x), turns.add(14 * part));
        let (mut re, mut im) = ([zero; EIGHT], [zero; EIGHT]);
        for k in 0..EIGHT {
            (re[k], im[k]) = x[k];
        }
        let re = V::turned_over(re);
        for row in 0..EIGHT {
            re[row].store(to.re.add(part * EIGHT + row * V::N));
        }
        let im = V::turned_over(im);
        for row in 0..EIGHT {
            im[row].store(to.im.add(part * EIGHT + row * V::N));
        }
    }
}

/// Of each part eight results of eight results.
///
/// # Safety
/// There are `BEHIND` times 64 elements of each, and turns of them.
#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "iterators over registers are not unrolled")]
unsafe fn second_pass<V: Lanes, const BEHIND: usize>(from: Rows<V::Elem>, to: Rows<V::Elem>, turns: *const V::Elem) {
    for part in (0..BEHIND).step_by(V::N / EIGHT) {
        let zero = V::splat(V::Elem::default());
        let mut x: [Pair<V>; EIGHT] = [(zero, zero); EIGHT];
        for j in 0..EIGHT {
            let at = (part + j * BEHIND) * EIGHT;
            x[j] = (V::load(from.re.add(at)), V::load(from.im.add(at)));
        }
        let x = turned_all::<V>(Forward::of(x), turns.add(14 * EIGHT * part));
        let (re, im) = (to.re.add(SQUARE * part), to.im.add(SQUARE * part));
        for k in (0..EIGHT).step_by(V::N / EIGHT) {
            if V::N == EIGHT {
                x[k].0.store(re.add(k * EIGHT));
                x[k].1.store(im.add(k * EIGHT));
                continue;
            }
            let (near_re, far_re) = V::halves(x[k].0, x[k + 1].0);
            let (near_im, far_im) = V::halves(x[k].1, x[k + 1].1);
            near_re.store(re.add(k * EIGHT));
            near_im.store(im.add(k * EIGHT));
            far_re.store(re.add(SQUARE + k * EIGHT));
            far_im.store(im.add(SQUARE + k * EIGHT));
        }
    }
}

/// All but the first turned by registers of cosines and sines.
///
/// # Safety
/// There are seven of each.
#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "iterators over registers are not unrolled")]
unsafe fn turned_all<V: Lanes>(mut x: [Pair<V>; EIGHT], turns: *const V::Elem) -> [Pair<V>; EIGHT] {
    for k in 1..EIGHT {
        let at = turns.add(2 * (k - 1) * V::N);
        x[k] = turned_by(x[k], [V::load(at), V::load(at.add(V::N))]);
    }
    x
}

/// Where 64 results are together.
///
/// # Safety
/// There are `R * rest` times as many elements of each, and turns of them.
#[inline(always)]
unsafe fn third_pass<V: Lanes, const R: usize>(
    from: Rows<V::Elem>,
    to: Rows<V::Elem>,
    rest: usize,
    turns: &[[V::Elem; 2]],
) where
    Forward: Butterfly<R>,
{
    for part in 0..rest {
        for at in (0..SQUARE).step_by(V::N) {
            let x = numbers::<V, R>(from, part * SQUARE + at, rest * SQUARE);
            for k in 0..R {
                let to_at = (part * R + k) * SQUARE + at;
                let mut x = x[k];
                if k > 0 {
                    let [cos, sin] = *turns.get_unchecked(part * (R - 1) + k - 1);
                    x = turned_by(x, [V::splat(cos), V::splat(sin)]);
                }
                x.0.store(to.re.add(to_at));
                x.1.store(to.im.add(to_at));
            }
        }
    }
}

/// Where so many results are together.
///
/// # Safety
/// There are `R` times as many elements of each.
#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "iterators over registers are not unrolled")]
unsafe fn last_pass<V: Lanes, const R: usize>(from: Rows<V::Elem>, to: Rows<V::Elem>, together: usize)
where
    Forward: Butterfly<R>,
{
    for at in (0..together).step_by(V::N) {
        let x = numbers::<V, R>(from, at, together);
        for k in 0..R {
            x[k].0.store(to.re.add(at + k * together));
            x[k].1.store(to.im.add(at + k * together));
        }
    }
}

/// The transforms of numbers at steps from each other.
///
/// # Safety
/// A register of them lies at each of `R` places.
#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "iterators over registers are not unrolled")]
unsafe fn numbers<V: Lanes, const R: usize>(from: Rows<V::Elem>, at: usize, step: usize) -> [Pair<V>; R]
where
    Forward: Butterfly<R>,
{
    let zero = V::splat(V::Elem::default());
    let mut x: [Pair<V>; R] = [(zero, zero); R];
    for j in 0..R {
        x[j] = (V::load(from.re.add(at + j * step)), V::load(from.im.add(at + j * step)));
    }
    Forward::of(x)
}

#[cfg(test)]
mod tests;
