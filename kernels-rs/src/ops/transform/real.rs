//! Real lines of even length as half as many complex numbers, `x[2 j] + i x[2 j + 1]`, and back. Of their transform Z, E =
//! `(Z[k] + conj Z[-k]) / 2` is that of the even elements and O = `(Z[k] - conj Z[-k]) / 2i` that of the odd ones; that of the
//! line is `E + exp(-2 pi i k / n) O`. Both ends of a line come from the same numbers.

use super::butterfly::turned_by;
use super::columns::turn;
use crate::dtype::Element;
use crate::machine::lanes::{Kernel, Lanes, Real, lane_count, launch};
use crate::memory::scratch::collected;

/// Halves of cosines and sines of `-2 pi k / n`, for k up to n / 2.
pub struct Halves<T>(pub [Vec<T>; 2]);

impl<T: Real> Halves<T> {
    /// Of lines of `n` elements.
    pub fn new(n: usize) -> Self {
        let part = |at: usize| collected((0..=n / 2).map(|k| <T as Element>::from_f64(0.5 * turn(k, n)[at])));
        Self([part(0), part(1)])
    }

    /// Half of the cosine and of the sine at k.
    pub fn at(&self, k: usize) -> [T; 2] {
        [self.0[0][k], self.0[1][k]]
    }
}

/// `E + turn O` of a number and its opposite, `(a + i b, c + i d)`, by half the turn.
fn joined<T: Real>([a, b]: [T; 2], [c, d]: [T; 2], [cos, sin]: [T; 2], sign: T) -> [T; 2] {
    let half = <T as Element>::from_f64(0.5);
    let (real, imag) = (b + d, c - a);
    [(a + c) * half + (cos * real - sin * imag), ((b - d) * half + (cos * imag + sin * real)) * sign]
}

/// Two parts of the same length.
fn alike<T>(parts: [&[T]; 2], len: usize) -> bool {
    parts.iter().all(|part| part.len() == len)
}

/// The transform of a line from that of its halves, whose first number is there once more behind the last: all of it, or the
/// first half and the number behind that. Imaginary parts are multiplied by the sign.
pub fn untangle<T: Real>(from: [&[T]; 2], halves: &Halves<T>, sign: T, to: [&mut [T]; 2]) {
    let ([re, im], [cos, sin], [real, imag]) = (from, [&halves.0[0][..], &halves.0[1][..]], to);
    let (half, out) = (re.len() - 1, real.len());
    assert!(alike([re, im], half + 1) && alike([cos, sin], half + 1) && alike([real, imag], out));
    assert!(half > 0 && (out == half + 1 || out == 2 * half));
    if half >= 2 * lane_count::<T>() {
        let (turns, to) = ((cos.as_ptr(), sin.as_ptr()), (real.as_mut_ptr(), imag.as_mut_ptr()));
        launch(Untangle { from: (re.as_ptr(), im.as_ptr()), turns, sign, to, half, whole: out == 2 * half });
    } else {
        for k in 0..=half {
            [real[k], imag[k]] = joined([re[k], im[k]], [re[half - k], im[half - k]], [cos[k], sin[k]], sign);
        }
        for k in half + 1..out {
            (real[k], imag[k]) = (real[2 * half - k], T::default() - imag[2 * half - k]);
        }
    }
    // Sums of real numbers, which have no imaginary part.
    (imag[0], imag[half]) = (T::default(), T::default());
}

struct Untangle<T> {
    from: (*const T, *const T),
    turns: (*const T, *const T),
    sign: T,
    to: (*mut T, *mut T),
    half: usize,
    whole: bool,
}

impl<T: Real> Kernel<T> for Untangle<T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let Self { from, turns, to, half, .. } = self;
        // SAFETY: operands and turns have `half + 1` elements, which are two registers and one more, at least: those from
        // `near` and from `far` on are inside. Results have as many, or `2 half`: behind `last` is their end.
        let (one_half, sign) = (V::splat(Element::from_f64(0.5)), V::splat(self.sign));
        let minus = V::splat(Element::from_f64(-1.0));
        for near in (0..=half / 2).step_by(V::N) {
            let far = half - near + 1 - V::N;
            let (a, b) = (V::load(from.0.add(near)), V::load(from.1.add(near)));
            let (c, d) = (V::load(from.0.add(far)).reverse(), V::load(from.1.add(far)).reverse());
            let turn = [V::load(turns.0.add(near)), V::load(turns.1.add(near))];
            let (re, im) = turned_by((b.add(d), c.sub(a)), turn);
            let (sum, gap) = (a.add(c), b.sub(d));
            let (near_re, near_im) = (sum.mul_add(one_half, re), gap.mul_add(one_half, im).mul(sign));
            let (far_re, far_im) = (sum.mul_sub(one_half, re), gap.mul_sub(one_half, im).mul(sign));
            near_re.store(to.0.add(near));
            near_im.store(to.1.add(near));
            // Each conjugate is that of the number as far from the other end.
            far_re.reverse().store(to.0.add(far));
            far_im.mul(minus).reverse().store(to.1.add(far));
            if self.whole {
                far_re.store(to.0.add(half + near));
                far_im.store(to.1.add(half + near));
                // The first number has no other.
                let count = if near == 0 { V::N - 1 } else { V::N };
                let last = 2 * half - near + 1 - V::N;
                near_re.reverse().store_some(to.0.add(last), count);
                near_im.mul(minus).reverse().store_some(to.1.add(last), count);
            }
        }
    }
}

/// Twice the transform of the halves of a line from the first half of its own, and the number behind that, which is lost:
/// [`untangle`] undone.
pub fn tangle<T: Real>(from: [&[T]; 2], halves: &Halves<T>, to: [&mut [T]; 2]) {
    let ([re, im], [cos, sin], [real, imag]) = (from, [&halves.0[0][..], &halves.0[1][..]], to);
    let half = re.len() - 1;
    assert!(half > 0 && alike([re, im], half + 1) && alike([cos, sin], half + 1) && alike([real, imag], half + 1));
    if half >= 2 * lane_count::<T>() {
        let (turns, to) = ((cos.as_ptr(), sin.as_ptr()), (real.as_mut_ptr(), imag.as_mut_ptr()));
        launch(Tangle { from: (re.as_ptr(), im.as_ptr()), turns, to, half });
    } else {
        for k in 0..half {
            let ([a, b], [c, d]) = ([re[k], im[k]], [re[half - k], im[half - k]]);
            let (first, second) = (a - c, b + d);
            let (odd, other) = (cos[k] * first + sin[k] * second, cos[k] * second - sin[k] * first);
            (real[k], imag[k]) = (a + c - (other + other), b - d + (odd + odd));
        }
    }
    // The imaginary parts of the ends stand for nothing.
    (real[0], imag[0]) = (re[0] + re[half], re[0] - re[half]);
}

struct Tangle<T> {
    from: (*const T, *const T),
    turns: (*const T, *const T),
    to: (*mut T, *mut T),
    half: usize,
}

impl<T: Real> Kernel<T> for Tangle<T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let Self { from, turns, to, half } = self;
        // SAFETY: all have `half + 1` elements, which are two registers and one more, at least: those from `near` and from
        // `far` on are inside.
        for near in (0..=half / 2).step_by(V::N) {
            let far = half - near + 1 - V::N;
            let (a, b) = (V::load(from.0.add(near)), V::load(from.1.add(near)));
            let (c, d) = (V::load(from.0.add(far)).reverse(), V::load(from.1.add(far)).reverse());
            let (cos, sin) = (V::load(turns.0.add(near)), V::load(turns.1.add(near)));
            let (cos, sin) = (cos.add(cos), sin.add(sin));
            let (first, second) = (a.sub(c), b.add(d));
            let odd = (first.mul_add(cos, second.mul(sin)), second.mul_sub(cos, first.mul(sin)));
            let (sum, gap) = (a.add(c), b.sub(d));
            sum.sub(odd.1).store(to.0.add(near));
            gap.add(odd.0).store(to.1.add(near));
            sum.add(odd.1).reverse().store(to.0.add(far));
            odd.0.sub(gap).reverse().store(to.1.add(far));
        }
    }
}

/// Real and imaginary parts in turns.
pub fn weave<T: Real>(re: &[T], im: &[T], to: &mut [T]) {
    assert!(re.len() == im.len() && to.len() == 2 * re.len());
    launch(Weave { re: re.as_ptr(), im: im.as_ptr(), to: to.as_mut_ptr(), len: re.len() });
}

struct Weave<T> {
    re: *const T,
    im: *const T,
    to: *mut T,
    len: usize,
}

impl<T: Real> Kernel<T> for Weave<T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let Self { re, im, to, len } = self;
        let whole = len / V::N * V::N;
        // SAFETY: both parts have `len` elements, and the result twice as many.
        for at in (0..whole).step_by(V::N) {
            let (first, second) = V::interleave(V::load(re.add(at)), V::load(im.add(at)));
            first.store(to.add(2 * at));
            second.store(to.add(2 * at + V::N));
        }
        for at in whole..len {
            (*to.add(2 * at), *to.add(2 * at + 1)) = (*re.add(at), *im.add(at));
        }
    }
}
