//! Transforms of 2, 3, 4, 5 and 8 complex numbers, one from each register.

use crate::dtype::Element;
use crate::machine::lanes::Lanes;
use std::f64::consts::FRAC_1_SQRT_2;

/// Real and imaginary parts.
pub type Pair<V> = (V, V);

/// Transforms of `R` numbers.
pub trait Butterfly<const R: usize> {
    /// `sum over j of x[j] exp(-2 pi i j k / R)`, for each k.
    ///
    /// # Safety
    /// The machine has the instructions of the registers.
    unsafe fn of<V: Lanes>(x: [Pair<V>; R]) -> [Pair<V>; R];
}

/// With `exp(-...)`.
pub struct Forward;

#[inline(always)]
unsafe fn plus<V: Lanes>(a: Pair<V>, b: Pair<V>) -> Pair<V> {
    // SAFETY: the caller has the instructions.
    unsafe { (a.0.add(b.0), a.1.add(b.1)) }
}

#[inline(always)]
unsafe fn minus<V: Lanes>(a: Pair<V>, b: Pair<V>) -> Pair<V> {
    // SAFETY: the caller has the instructions.
    unsafe { (a.0.sub(b.0), a.1.sub(b.1)) }
}

/// `a - i b` and `a + i b`.
#[inline(always)]
unsafe fn turned<V: Lanes>(a: Pair<V>, b: Pair<V>) -> [Pair<V>; 2] {
    // SAFETY: the caller has the instructions.
    unsafe { [(a.0.add(b.1), a.1.sub(b.0)), (a.0.sub(b.1), a.1.add(b.0))] }
}

/// `a + factor b`.
#[inline(always)]
unsafe fn added<V: Lanes>(a: Pair<V>, b: Pair<V>, factor: f64) -> Pair<V> {
    // SAFETY: the caller has the instructions.
    unsafe {
        let factor = V::splat(Element::from_f64(factor));
        (b.0.mul_add(factor, a.0), b.1.mul_add(factor, a.1))
    }
}

/// `factor a`.
#[inline(always)]
unsafe fn scaled<V: Lanes>(a: Pair<V>, factor: f64) -> Pair<V> {
    // SAFETY: the caller has the instructions.
    unsafe {
        let factor = V::splat(Element::from_f64(factor));
        (a.0.mul(factor), a.1.mul(factor))
    }
}

impl Butterfly<2> for Forward {
    #[inline(always)]
    unsafe fn of<V: Lanes>([a, b]: [Pair<V>; 2]) -> [Pair<V>; 2] {
        // SAFETY: the caller has the instructions.
        unsafe { [plus(a, b), minus(a, b)] }
    }
}

impl Butterfly<3> for Forward {
    #[inline(always)]
    unsafe fn of<V: Lanes>([a, b, c]: [Pair<V>; 3]) -> [Pair<V>; 3] {
        // SAFETY: the caller has the instructions.
        unsafe {
            let (sum, gap) = (plus(b, c), scaled(minus(b, c), 0.75_f64.sqrt()));
            let [first, second] = turned(added(a, sum, -0.5), gap);
            [plus(a, sum), first, second]
        }
    }
}

impl Butterfly<4> for Forward {
    #[inline(always)]
    unsafe fn of<V: Lanes>([a, b, c, d]: [Pair<V>; 4]) -> [Pair<V>; 4] {
        // SAFETY: the caller has the instructions.
        unsafe {
            let (even, odd) = (plus(a, c), plus(b, d));
            let [first, third] = turned(minus(a, c), minus(b, d));
            [plus(even, odd), first, minus(even, odd), third]
        }
    }
}

/// Cosines and sines of a fifth of a turn and of two.
const FIFTHS: [[f64; 2]; 2] =
    [[0.309_016_994_374_947_45, 0.951_056_516_295_153_5], [-0.809_016_994_374_947_5, 0.587_785_252_292_473_1]];

impl Butterfly<5> for Forward {
    #[inline(always)]
    unsafe fn of<V: Lanes>([a, b, c, d, e]: [Pair<V>; 5]) -> [Pair<V>; 5] {
        // SAFETY: the caller has the instructions.
        unsafe {
            let [[cos, sin], [cos2, sin2]] = FIFTHS;
            let (outer, inner) = (plus(b, e), plus(c, d));
            let (outer_gap, inner_gap) = (minus(b, e), minus(c, d));
            let [first, fourth] =
                turned(added(added(a, outer, cos), inner, cos2), added(scaled(outer_gap, sin), inner_gap, sin2));
            let [second, third] =
                turned(added(added(a, outer, cos2), inner, cos), added(scaled(outer_gap, sin2), inner_gap, -sin));
            [plus(plus(a, outer), inner), first, second, third, fourth]
        }
    }
}

impl Butterfly<8> for Forward {
    #[inline(always)]
    unsafe fn of<V: Lanes>([a, b, c, d, e, f, g, h]: [Pair<V>; 8]) -> [Pair<V>; 8] {
        // SAFETY: the caller has the instructions.
        unsafe {
            let [e0, e1, e2, e3] = <Self as Butterfly<4>>::of([a, c, e, g]);
            let [o0, o1, o2, o3] = <Self as Butterfly<4>>::of([b, d, f, h]);
            // (1 - i) x and (-1 - i) x, not yet divided by the root of 2.
            let once = (o1.0.add(o1.1), o1.1.sub(o1.0));
            let twice = (o3.1.sub(o3.0), o3.0.add(o3.1));
            let (root, other) =
                (V::splat(Element::from_f64(FRAC_1_SQRT_2)), V::splat(Element::from_f64(-FRAC_1_SQRT_2)));
            let [second, sixth] = turned(e2, o2);
            [
                plus(e0, o0),
                added(e1, once, FRAC_1_SQRT_2),
                second,
                (twice.0.mul_add(root, e3.0), twice.1.mul_add(other, e3.1)),
                minus(e0, o0),
                added(e1, once, -FRAC_1_SQRT_2),
                sixth,
                (twice.0.mul_add(other, e3.0), twice.1.mul_add(root, e3.1)),
            ]
        }
    }
}
