//! Reductions of a row in explicit registers: four accumulators, then a tree. The order depends on the length alone.

use super::float::Wide;
use crate::machine::lanes::Lanes;

/// Accumulators, against the latency of an addition.
const WAYS: usize = 4;

/// Runs `step(way, first element)` for every full register of a row of `len`, and returns how many elements those are.
macro_rules! registers {
    ($V:ident, $len:expr, |$way:ident, $at:ident| $step:expr) => {{
        let full = $len / $V::N * $V::N;
        let mut base = 0;
        while base + WAYS * $V::N <= full {
            for $way in 0..WAYS {
                let $at = base + $way * $V::N;
                $step;
            }
            base += WAYS * $V::N;
        }
        while base < full {
            let ($way, $at) = (0, base);
            $step;
            base += $V::N;
        }
        full
    }};
}

#[inline(always)]
unsafe fn joined<V: Lanes>(ways: [V; WAYS]) -> V::Elem {
    ways[0].add(ways[1]).add(ways[2].add(ways[3])).sum()
}

/// The sum of a row.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub unsafe fn sum<V: Lanes<Elem: Wide>>(x: &[V::Elem]) -> V::Elem {
    // SAFETY: registers lie inside the row.
    let mut ways = [V::splat(V::Elem::ZERO); WAYS];
    let done = registers!(V, x.len(), |way, at| ways[way] = ways[way].add(V::load(x.as_ptr().add(at))));
    x[done..].iter().fold(joined(ways), |sum, &x| sum + x)
}

/// The sum of `x * y`.
///
/// # Safety
/// Equal lengths; the machine has the instructions of `V`.
#[inline(always)]
pub unsafe fn dot<V: Lanes<Elem: Wide>>(x: &[V::Elem], y: &[V::Elem]) -> V::Elem {
    // SAFETY: registers lie inside the rows.
    let mut ways = [V::splat(V::Elem::ZERO); WAYS];
    let done = registers!(V, x.len(), |way, at| {
        ways[way] = V::load(x.as_ptr().add(at)).mul_add(V::load(y.as_ptr().add(at)), ways[way]);
    });
    x[done..].iter().zip(&y[done..]).fold(joined(ways), |sum, (&x, &y)| sum + x * y)
}

/// The sums of `g` and of `g * (x - mean)`.
///
/// # Safety
/// Equal lengths; the machine has the instructions of `V`.
#[inline(always)]
pub unsafe fn dot_centered<V: Lanes<Elem: Wide>>(g: &[V::Elem], x: &[V::Elem], mean: V::Elem) -> [V::Elem; 2] {
    // SAFETY: registers lie inside the rows.
    let middle = V::splat(mean);
    let (mut plain, mut ways) = ([V::splat(V::Elem::ZERO); WAYS], [V::splat(V::Elem::ZERO); WAYS]);
    let done = registers!(V, x.len(), |way, at| {
        let g = V::load(g.as_ptr().add(at));
        plain[way] = plain[way].add(g);
        ways[way] = V::load(x.as_ptr().add(at)).sub(middle).mul_add(g, ways[way]);
    });
    let start = [joined(plain), joined(ways)];
    g[done..].iter().zip(&x[done..]).fold(start, |[a, b], (&g, &x)| [a + g, b + g * (x - mean)])
}

/// The sums of `g * w` and of `g * w * (x - mean)`.
///
/// # Safety
/// Equal lengths; the machine has the instructions of `V`.
#[inline(always)]
pub unsafe fn dot_weighted<V: Lanes<Elem: Wide>>(
    g: &[V::Elem],
    w: &[V::Elem],
    x: &[V::Elem],
    mean: V::Elem,
) -> [V::Elem; 2] {
    // SAFETY: registers lie inside the rows.
    let middle = V::splat(mean);
    let (mut plain, mut ways) = ([V::splat(V::Elem::ZERO); WAYS], [V::splat(V::Elem::ZERO); WAYS]);
    let done = registers!(V, x.len(), |way, at| {
        let g = V::load(g.as_ptr().add(at)).mul(V::load(w.as_ptr().add(at)));
        plain[way] = plain[way].add(g);
        ways[way] = V::load(x.as_ptr().add(at)).sub(middle).mul_add(g, ways[way]);
    });
    let mut sums = [joined(plain), joined(ways)];
    for i in done..x.len() {
        sums = [sums[0] + g[i] * w[i], sums[1] + g[i] * w[i] * (x[i] - mean)];
    }
    sums
}

/// The sums of `d` and of `d * d` for `d = x - mean`.
///
/// The first corrects the second: the mean of `d` is the error of a rounded mean.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub unsafe fn moments<V: Lanes<Elem: Wide>>(x: &[V::Elem], mean: V::Elem) -> [V::Elem; 2] {
    // SAFETY: registers lie inside the row.
    let middle = V::splat(mean);
    let (mut first, mut second) = ([V::splat(V::Elem::ZERO); WAYS], [V::splat(V::Elem::ZERO); WAYS]);
    let done = registers!(V, x.len(), |way, at| {
        let d = V::load(x.as_ptr().add(at)).sub(middle);
        first[way] = first[way].add(d);
        second[way] = d.mul_add(d, second[way]);
    });
    let start = [joined(first), joined(second)];
    x[done..].iter().map(|&x| x - mean).fold(start, |[a, b], d| [a + d, b + d * d])
}

/// The largest element; NaN is passed over, an empty row gives minus infinity.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub unsafe fn largest<V: Lanes<Elem: Wide>>(x: &[V::Elem]) -> V::Elem {
    let larger = |a: V::Elem, b: V::Elem| if b > a { b } else { a };
    // SAFETY: registers lie inside the row.
    let mut ways = [V::splat(V::Elem::LOWEST); WAYS];
    let done = registers!(V, x.len(), |way, at| ways[way] = ways[way].max(V::load(x.as_ptr().add(at))));
    let mut lanes = [V::Elem::LOWEST; 16];
    ways[0].max(ways[1]).max(ways[2].max(ways[3])).store(lanes.as_mut_ptr());
    lanes.iter().chain(&x[done..]).copied().fold(V::Elem::LOWEST, larger)
}
