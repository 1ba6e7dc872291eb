//! Reductions of a row: 32 independent lanes, then a tree. Plain loops that vectorise.

use super::Wide;

const LANES: usize = 32;

/// Halves against halves.
#[inline(always)]
fn tree<W: Wide>(mut lanes: [W; LANES], join: impl Fn(W, W) -> W) -> W {
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] = join(lanes[i], lanes[i + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// The sum of `f(x)`.
#[inline(always)]
pub fn sum<A: Copy, W: Wide>(xs: &[A], f: impl Fn(A) -> W) -> W {
    let mut lanes = [W::ZERO; LANES];
    let (blocks, rest) = xs.as_chunks::<LANES>();
    for block in blocks {
        for i in 0..LANES {
            lanes[i] = lanes[i] + f(block[i]);
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(rest) {
        *lane = *lane + f(x);
    }
    tree(lanes, |a, b| a + b)
}

/// The sum of `f(x, y)`.
#[inline(always)]
pub fn sum2<A: Copy, B: Copy, W: Wide>(xs: &[A], ys: &[B], f: impl Fn(A, B) -> W) -> W {
    let mut lanes = [W::ZERO; LANES];
    let (x_blocks, x_rest) = xs.as_chunks::<LANES>();
    let (y_blocks, y_rest) = ys.as_chunks::<LANES>();
    for (x, y) in x_blocks.iter().zip(y_blocks) {
        for i in 0..LANES {
            lanes[i] = lanes[i] + f(x[i], y[i]);
        }
    }
    for ((lane, &x), &y) in lanes.iter_mut().zip(x_rest).zip(y_rest) {
        *lane = *lane + f(x, y);
    }
    tree(lanes, |a, b| a + b)
}

/// Writes `f(x)` for each `x` and returns the sum of what it wrote.
#[inline(always)]
pub fn map_sum<A: Copy, W: Wide>(xs: &[A], out: &mut [W], f: impl Fn(A) -> W) -> W {
    let mut lanes = [W::ZERO; LANES];
    let (blocks, rest) = xs.as_chunks::<LANES>();
    let (out_blocks, out_rest) = out.as_chunks_mut::<LANES>();
    for (block, to) in blocks.iter().zip(out_blocks) {
        for i in 0..LANES {
            to[i] = f(block[i]);
            lanes[i] = lanes[i] + to[i];
        }
    }
    for ((lane, &x), to) in lanes.iter_mut().zip(rest).zip(out_rest) {
        *to = f(x);
        *lane = *lane + *to;
    }
    tree(lanes, |a, b| a + b)
}

/// The sums of `d` and of `d * d` for `d = f(x)`, each handed to `keep` with its place.
///
/// The first corrects the second: with a rounded mean m in `d = x - m`, the mean of `d` is the error of m.
#[inline(always)]
pub fn moments<A: Copy, W: Wide>(xs: &[A], f: impl Fn(A) -> W, mut keep: impl FnMut(usize, W)) -> (W, W) {
    let (mut first, mut second) = ([W::ZERO; LANES], [W::ZERO; LANES]);
    let (blocks, rest) = xs.as_chunks::<LANES>();
    for (at, block) in blocks.iter().enumerate() {
        for i in 0..LANES {
            let d = f(block[i]);
            keep(at * LANES + i, d);
            first[i] = first[i] + d;
            second[i] = second[i] + d * d;
        }
    }
    for (i, &x) in rest.iter().enumerate() {
        let d = f(x);
        keep(blocks.len() * LANES + i, d);
        first[i] = first[i] + d;
        second[i] = second[i] + d * d;
    }
    (tree(first, |a, b| a + b), tree(second, |a, b| a + b))
}

/// The largest `f(x)`; NaN is passed over, an empty row gives minus infinity.
#[inline(always)]
pub fn largest<A: Copy, W: Wide>(xs: &[A], f: impl Fn(A) -> W) -> W {
    let larger = |a: W, b: W| if b > a { b } else { a };
    let mut lanes = [W::LOWEST; LANES];
    let (blocks, rest) = xs.as_chunks::<LANES>();
    for block in blocks {
        for i in 0..LANES {
            lanes[i] = larger(lanes[i], f(block[i]));
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(rest) {
        *lane = larger(*lane, f(x));
    }
    tree(lanes, larger)
}
