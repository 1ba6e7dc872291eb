//! From scores to weights. A block of scores has a row per key and a column (a lane) per query, so that maxima and sums
//! run down the lanes. Scores are in units of `ln 2`: exponentials are powers of two.

use crate::array::float::Wide;
use crate::array::fold;
use crate::machine::lanes::{Kernel, Lanes, launch};
use crate::math::{self, Fma, poly, poly64};
use crate::vectorize;

/// A float with the functions that weights need.
pub trait Score: Wide {
    /// `2^x` for `x <= 0`; 0 below the normal range. NaN stays NaN.
    #[must_use]
    fn power<M: Fma>(self) -> Self;
    /// Hyperbolic tangent.
    #[must_use]
    fn tanh<M: Fma>(self) -> Self;
}

impl Score for f32 {
    #[inline(always)]
    fn power<M: Fma>(self) -> Self {
        const ROUND: f32 = 12582912.0; // 1.5 * 2^23
        let x = if self < -127.0 { -127.0 } else { self };
        let shifted = x + ROUND;
        let r = x - (shifted - ROUND);
        // Minimax on [-1/2, 1/2], 2e-9.
        let p = poly::<M, 7>(
            r,
            [
                1.0,
                0.6931471824645996,
                0.24022647738456726,
                0.055503323674201965,
                0.00961843691766262,
                0.0013398875016719103,
                0.00015353361959569156,
            ],
        );
        p * f32::from_bits(shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23)
    }
    #[inline(always)]
    fn tanh<M: Fma>(self) -> Self {
        math::exponential::tanh::<M>(self)
    }
}

impl Score for f64 {
    #[inline(always)]
    fn power<M: Fma>(self) -> Self {
        const ROUND: f64 = 6755399441055744.0; // 1.5 * 2^52
        // ln(2)^k / k!: the first term left out is 4e-18 at most.
        const TERMS: [f64; 14] = {
            let (mut terms, mut k) = ([1.0; 14], 1);
            while k < 14 {
                terms[k] = terms[k - 1] * std::f64::consts::LN_2 / k as f64;
                k += 1;
            }
            terms
        };
        let x = if self < -1023.0 { -1023.0 } else { self };
        let shifted = x + ROUND;
        let p = poly64::<M, 14>(x - (shifted - ROUND), TERMS);
        p * f64::from_bits(shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(1023) << 52)
    }
    #[inline(always)]
    fn tanh<M: Fma>(self) -> Self {
        f64::tanh(self)
    }
}

/// What is known of the queries of a block after some of the keys: one value per lane each.
pub struct State<'a, W> {
    /// The largest score.
    pub top: &'a mut [W],
    /// The sum of the weights.
    pub total: &'a mut [W],
    /// What sums over the keys before have to be multiplied with.
    pub fade: &'a mut [W],
}

/// Turns scores into weights `2^(s - top)`, and brings the state up to date.
pub struct Weights<'a, W, const REGS: usize> {
    /// A row of `REGS` registers per key.
    pub scores: &'a mut [W],
    /// One value per lane.
    pub state: State<'a, W>,
}

impl<W: Score, const REGS: usize> Weights<'_, W, REGS> {
    /// Does it.
    pub fn run(self) {
        launch(self);
    }
}

/// Independent maxima and sums, against the latency of an addition.
const WAYS: usize = 4;

/// Folds the lanes of all rows, starting from `start`.
///
/// # Safety
/// The machine has the instructions of `V`; `pitch` covers a register at `at`.
#[expect(clippy::needless_range_loop, reason = "plain loops are sure to be unrolled into registers")]
#[inline(always)]
pub unsafe fn down<V: Lanes<Elem: Wide>>(
    at: *const V::Elem,
    (rows, pitch): (usize, usize),
    start: V::Elem,
    step: impl Fn(V, V) -> V,
) -> V {
    // SAFETY: inside the rows.
    let mut ways = [V::splat(start); WAYS];
    let mut row = 0;
    while row + WAYS <= rows {
        for i in 0..WAYS {
            ways[i] = step(ways[i], V::load(at.add((row + i) * pitch)));
        }
        row += WAYS;
    }
    while row < rows {
        ways[0] = step(ways[0], V::load(at.add(row * pitch)));
        row += 1;
    }
    step(step(ways[0], ways[1]), step(ways[2], ways[3]))
}

impl<W: Score, const REGS: usize> Kernel<W> for Weights<'_, W, REGS> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = W>>(self) {
        let width = REGS * V::N;
        let (rows, scores) = (self.scores.len() / width, self.scores);
        let State { top, total, fade } = self.state;
        let (top, total, fade) = (&mut top[..width], &mut total[..width], &mut fade[..width]);
        for lane in (0..width).step_by(V::N) {
            // SAFETY: inside the block.
            let largest = down::<V>(scores.as_ptr().add(lane), (rows, width), W::LOWEST, |a, b| a.max(b));
            largest.store(fade.as_mut_ptr().add(lane));
        }
        let mut shifts = [W::ZERO; 64];
        let shifts = &mut shifts[..width];
        for lane in 0..width {
            let new = if fade[lane] > top[lane] { fade[lane] } else { top[lane] };
            // A query that has seen nothing has no top to shift by.
            shifts[lane] = if new == W::LOWEST { W::ZERO } else { new };
            fade[lane] = (top[lane] - shifts[lane]).power::<V::Math>();
            total[lane] = total[lane] * fade[lane];
            top[lane] = new;
        }
        let shifts = &shifts[..width];
        for row in 0..rows {
            let row = &mut scores[row * width..][..width];
            for lane in 0..width {
                row[lane] = (row[lane] - shifts[lane]).power::<V::Math>();
            }
        }
        for lane in (0..width).step_by(V::N) {
            // SAFETY: inside the block.
            let sum = down::<V>(scores.as_ptr().add(lane), (rows, width), W::ZERO, |a, b| a.add(b));
            let at = total.as_mut_ptr().add(lane);
            V::load(at).add(sum).store(at);
        }
    }
}

/// Turns the scores of one query into weights; `end` is its top and total so far. Returns the fade.
pub fn powers<W: Score>(scores: &mut [W], end: &mut [W]) -> W {
    let mut fade = W::ONE;
    launch(Line { scores, end, fade: &mut fade });
    fade
}

struct Line<'a, W> {
    scores: &'a mut [W],
    end: &'a mut [W],
    fade: &'a mut W,
}

impl<W: Score> Kernel<W> for Line<'_, W> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = W>>(self) {
        let tile = fold::largest::<V>(self.scores);
        let top = if tile > self.end[0] { tile } else { self.end[0] };
        let shift = if top == W::LOWEST { W::ZERO } else { top };
        for slot in self.scores.iter_mut() {
            *slot = (*slot - shift).power::<V::Math>();
        }
        *self.fade = (self.end[0] - shift).power::<V::Math>();
        let sum = fold::sum::<V>(self.scores);
        self.end[1] = self.end[1] * *self.fade + sum;
        self.end[0] = top;
    }
}

/// Divides weights by their sum, and turns their cotangents into those of the scores: `w * (p - sum of w * p)`.
pub struct Pull<'a, W> {
    /// A row per key, a lane per query.
    pub weights: &'a mut [W],
    /// Cotangents of the weights.
    pub pulls: &'a mut [W],
    /// Sums of the weights, one per lane.
    pub total: &'a [W],
}

impl<W: Score> Pull<'_, W> {
    /// Does it.
    pub fn run(self) {
        launch(self);
    }
}

impl<W: Score> Kernel<W> for Pull<'_, W> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = W>>(self) {
        let width = self.total.len();
        let rows = self.pulls.len() / width;
        for lane in (0..width).step_by(V::N) {
            let mut scale = [W::ONE; 16];
            for (slot, &total) in scale[..V::N].iter_mut().zip(&self.total[lane..]) {
                *slot = if total == W::ZERO { W::ONE } else { W::ONE / total };
            }
            let (weights, pulls) = (self.weights[lane..].as_mut_ptr(), self.pulls[lane..].as_mut_ptr());
            // SAFETY: inside the blocks.
            let scale = V::load(scale.as_ptr());
            let mut inner = [V::splat(W::ZERO); 2];
            for row in 0..rows {
                let at = weights.add(row * width);
                let weight = V::load(at).mul(scale);
                weight.store(at);
                inner[row % 2] = weight.mul_add(V::load(pulls.add(row * width)), inner[row % 2]);
            }
            let inner = inner[0].add(inner[1]);
            for row in 0..rows {
                let at = pulls.add(row * width);
                V::load(at).sub(inner).mul(V::load(weights.add(row * width))).store(at);
            }
        }
    }
}

vectorize!(
    /// Multiplies by `1 - t * t`, the derivative of the cap where it gave `t`.
    pub uncap[W: Score](pulls: &mut [W], caps: &[W]) => uncap_body::<W>, wide W::WIDE
);

#[inline(always)]
fn uncap_body<W: Score>(pulls: &mut [W], caps: &[W]) {
    for (slot, &cap) in pulls.iter_mut().zip(caps) {
        *slot = *slot * (W::ONE - cap * cap);
    }
}

vectorize!(
    /// `by * tanh(x)`, elementwise.
    pub cap[W: Score](scores: &mut [W], by: W) => cap_body::<W>, wide W::WIDE
);

#[inline(always)]
fn cap_body<W: Score>(scores: &mut [W], by: W) {
    for slot in scores {
        *slot = slot.tanh::<crate::math::Baseline>() * by;
    }
}

vectorize!(
    /// Adds, where minus infinity stands for a hidden score.
    pub shift[W: Score](scores: &mut [W], by: &[W]) => shift_body::<W>, wide W::WIDE
);

#[inline(always)]
fn shift_body<W: Score>(scores: &mut [W], by: &[W]) {
    for (slot, &by) in scores.iter_mut().zip(by) {
        *slot = if by == W::LOWEST { by } else { *slot + by };
    }
}

vectorize!(
    /// Minus infinity where a run of a mask is true.
    pub hide[W: Score](mask: &[bool], to: &mut [W]) => hide_body::<W>, wide W::WIDE
);

#[inline(always)]
fn hide_body<W: Score>(mask: &[bool], to: &mut [W]) {
    for (slot, &hidden) in to.iter_mut().zip(mask) {
        *slot = if hidden { W::LOWEST } else { *slot };
    }
}
