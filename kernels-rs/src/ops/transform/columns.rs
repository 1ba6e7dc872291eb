//! Transforms of columns that lie beside each other, whose length has no prime factor above 7: a register holds one element
//! of several columns. By factors, one pass each, with results in order (Stockham, after Swarztrauber, "FFT algorithms for
//! vector computers", 1984).

use super::butterfly::{Butterfly, Forward, Pair, turned_by};
use crate::dtype::Element;
use crate::machine::lanes::{Kernel, Lanes, Real, is_baseline, launch};
use crate::memory::scratch::collected;
use std::f64::consts::FRAC_PI_2;

/// Rows of complex numbers, an element of each column in one: their parts, and the elements from one row to the next.
#[derive(Clone, Copy)]
pub struct Rows<T> {
    pub re: *mut T,
    pub im: *mut T,
    pub pitch: usize,
}

impl<T> Rows<T> {
    /// In these slices; of operands, which nobody writes.
    pub fn new(re: &[T], im: &[T], pitch: usize) -> Self {
        Self { re: re.as_ptr().cast_mut(), im: im.as_ptr().cast_mut(), pitch }
    }

    /// In these slices, to be written.
    pub fn over(re: &mut [T], im: &mut [T], pitch: usize) -> Self {
        Self { re: re.as_mut_ptr(), im: im.as_mut_ptr(), pitch }
    }

    /// The conjugates times i: forwards, their transform is that of the inverse, turned in the same way.
    pub fn turned(self) -> Self {
        Self { re: self.im, im: self.re, pitch: self.pitch }
    }
}

/// One factor.
struct Stage<T> {
    factor: usize,
    /// Results that are together already: the product of the factors before.
    together: usize,
    /// The product of the factors behind.
    rest: usize,
    /// By what the results of the factor are turned, but for the first: of each of `rest`.
    turns: Vec<[T; 2]>,
}

/// How columns of one length are transformed.
pub struct Columns<T> {
    stages: Vec<Stage<T>>,
    /// Elements of a column.
    pub length: usize,
}

/// `exp(-2 pi i k / n)`, exactly where it is a quarter of a turn.
pub fn turn(k: usize, n: usize) -> [f64; 2] {
    let (quarter, part) = (4 * (k % n) / n, 4 * (k % n) % n);
    let angle = |part: usize| FRAC_PI_2 * part as f64 / n as f64;
    let (cos, sin) = if 2 * part > n {
        (angle(n - part).sin(), angle(n - part).cos())
    } else {
        (angle(part).cos(), angle(part).sin())
    };
    match quarter {
        0 => [cos, -sin],
        1 => [-sin, -cos],
        2 => [-cos, sin],
        _ => [sin, cos],
    }
}

/// The factors of a length, if there are such.
pub fn factors(mut n: usize) -> Option<Vec<usize>> {
    let mut found = Vec::new();
    for factor in [8, 4, 2, 3, 5, 7] {
        // 16 is 4 x 4: that takes less than 8 x 2.
        while n > 0 && n.is_multiple_of(factor) && !(factor == 8 && (n / 8 % 4 == 2 || is_baseline())) {
            found.push(factor);
            n /= factor;
        }
    }
    (n == 1 && !found.is_empty()).then_some(found)
}

impl<T: Real> Columns<T> {
    /// None for a length with another factor, or of 1.
    pub fn new(length: usize) -> Option<Self> {
        Self::behind(1, length)
    }

    /// The passes behind others, which have brought so many results together, of columns `rest` times as long.
    pub fn behind(together: usize, rest: usize) -> Option<Self> {
        let (length, factors) = (together * rest, factors(rest)?);
        let (mut together, mut rest) = (together, rest);
        let stage = |factor| {
            rest /= factor;
            let places = (0..rest).flat_map(|part| (1..factor).map(move |k| part * k));
            let turns = collected(places.map(|place| turn(place, rest * factor).map(<T as Element>::from_f64)));
            let stage = Stage { factor, together, rest, turns };
            together *= factor;
            stage
        };
        Some(Self { stages: factors.into_iter().map(stage).collect(), length })
    }

    /// How many there are.
    pub fn passes(&self) -> usize {
        self.stages.len()
    }

    /// Transforms `width` columns. What is between the passes goes to two places whose rows lie together; the first of them,
    /// which may be `to`, is read by the last pass but one, or else by none.
    ///
    /// # Safety
    /// All have `length` rows of `width` elements, and none of the others overlap; nothing else uses those that are written.
    pub unsafe fn run(&self, from: Rows<T>, to: Rows<T>, width: usize, between: [Rows<T>; 2]) {
        let mut from = from;
        for (at, stage) in self.stages.iter().enumerate() {
            let to = if at + 1 == self.stages.len() { to } else { between[(self.stages.len() - 1 - at) % 2] };
            launch(Pass { stage, from, to, width });
            from = to;
        }
    }
}

struct Pass<'a, T> {
    stage: &'a Stage<T>,
    from: Rows<T>,
    to: Rows<T>,
    width: usize,
}

impl<T: Real> Kernel<T> for Pass<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        match self.stage.factor {
            2 => self.by::<V, 2>(),
            3 => self.by::<V, 3>(),
            4 => self.by::<V, 4>(),
            5 => self.by::<V, 5>(),
            7 => self.by::<V, 7>(),
            8 if const { V::ROWS > 2 } => self.by::<V, 8>(),
            _ => unreachable!("a factor of `factors`"),
        }
    }
}

impl<T: Real> Pass<'_, T> {
    /// # Safety
    /// As for the kernel; the factor is `R`.
    #[inline(always)]
    unsafe fn by<V: Lanes<Elem = T>, const R: usize>(&self)
    where
        Forward: Butterfly<R>,
    {
        let (from, to, together, rest) = (self.from, self.to, self.stage.together, self.stage.rest);
        // Rows without gaps are as one long row.
        let whole = from.pitch == self.width && to.pitch == self.width;
        let (runs, len) = if whole { (1, together * self.width) } else { (together, self.width) };
        let steps = (together * rest * from.pitch, together * to.pitch);
        for part in 0..rest {
            let turns = &self.stage.turns[part * (R - 1)..(part + 1) * (R - 1)];
            for run in 0..runs {
                let (from_at, to_at) = ((run + together * part) * from.pitch, (run + together * R * part) * to.pitch);
                // SAFETY: `len` elements behind each of `R` steps are in the rows that the caller promises.
                let from = (from.re.add(from_at).cast_const(), from.im.add(from_at).cast_const());
                let to = (to.re.add(to_at), to.im.add(to_at));
                // Whose registers are small is an old processor, for which there is one loop of the two.
                if part == 0 && const { V::ROWS > 2 } {
                    strip::<V, R, false>(from, to, steps, len, turns);
                } else {
                    strip::<V, R, true>(from, to, steps, len, turns);
                }
            }
        }
    }
}

/// `R` rows at steps from each other, transformed and turned.
///
/// # Safety
/// `len` elements lie behind each step, the machine has the instructions, and there are turns of all rows but the first.
#[inline(always)]
unsafe fn strip<V: Lanes, const R: usize, const TURNED: bool>(
    from: (*const V::Elem, *const V::Elem),
    to: (*mut V::Elem, *mut V::Elem),
    steps: (usize, usize),
    len: usize,
    turns: &[[V::Elem; 2]],
) where
    Forward: Butterfly<R>,
{
    let whole = len / V::N * V::N;
    // No lane beyond the length is touched.
    let moved = |at: usize| ((from.0.add(at), from.1.add(at)), (to.0.add(at), to.1.add(at)));
    for at in (0..whole).step_by(V::N) {
        let (from, to) = moved(at);
        registers::<V, R, TURNED, true>(from, to, steps, V::N, turns);
    }
    if whole < len {
        let (from, to) = moved(whole);
        registers::<V, R, TURNED, false>(from, to, steps, len - whole, turns);
    }
}

/// One register of each row.
///
/// # Safety
/// `count` elements lie behind each step, a register if it is `WHOLE`, and the machine has the instructions; there are turns of
/// all rows but the first.
#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "iterators over registers are not unrolled")]
unsafe fn registers<V: Lanes, const R: usize, const TURNED: bool, const WHOLE: bool>(
    from: (*const V::Elem, *const V::Elem),
    to: (*mut V::Elem, *mut V::Elem),
    (from_step, to_step): (usize, usize),
    count: usize,
    turns: &[[V::Elem; 2]],
) where
    Forward: Butterfly<R>,
{
    let zero = V::splat(V::Elem::default());
    let mut x: [Pair<V>; R] = [(zero, zero); R];
    for j in 0..R {
        let (re, im) = (from.0.add(j * from_step), from.1.add(j * from_step));
        x[j] =
            if WHOLE { (V::load(re), V::load(im)) } else { (V::load_partial(re, count), V::load_partial(im, count)) };
    }
    let x = Forward::of(x);
    for k in 0..R {
        let (re, im) = if TURNED && k > 0 {
            let [cos, sin] = *turns.get_unchecked(k - 1);
            turned_by(x[k], [V::splat(cos), V::splat(sin)])
        } else {
            x[k]
        };
        let (to_re, to_im) = (to.0.add(k * to_step), to.1.add(k * to_step));
        if WHOLE {
            re.store(to_re);
            im.store(to_im);
        } else {
            re.store_partial(to_re, count);
            im.store_partial(to_im, count);
        }
    }
}
