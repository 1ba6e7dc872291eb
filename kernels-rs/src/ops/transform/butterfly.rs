//! Transforms of 2, 3, 4, 5, 7, 8 and 16 complex numbers, one from each register.

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
    (a.0.add(b.0), a.1.add(b.1))
}

#[inline(always)]
unsafe fn minus<V: Lanes>(a: Pair<V>, b: Pair<V>) -> Pair<V> {
    (a.0.sub(b.0), a.1.sub(b.1))
}

/// A number times `cos + i sin`.
///
/// # Safety
/// The machine has the instructions of the registers.
#[inline(always)]
pub unsafe fn turned_by<V: Lanes>((re, im): Pair<V>, [cos, sin]: [V; 2]) -> Pair<V> {
    (re.mul_sub(cos, im.mul(sin)), im.mul_add(cos, re.mul(sin)))
}

/// `a - i b` and `a + i b`.
#[inline(always)]
unsafe fn turned<V: Lanes>(a: Pair<V>, b: Pair<V>) -> [Pair<V>; 2] {
    [(a.0.add(b.1), a.1.sub(b.0)), (a.0.sub(b.1), a.1.add(b.0))]
}

/// `a + factor b`.
#[inline(always)]
unsafe fn added<V: Lanes>(a: Pair<V>, b: Pair<V>, factor: f64) -> Pair<V> {
    let factor = V::splat(Element::from_f64(factor));
    (b.0.mul_add(factor, a.0), b.1.mul_add(factor, a.1))
}

/// `factor a`.
#[inline(always)]
unsafe fn scaled<V: Lanes>(a: Pair<V>, factor: f64) -> Pair<V> {
    let factor = V::splat(Element::from_f64(factor));
    (a.0.mul(factor), a.1.mul(factor))
}

impl Butterfly<2> for Forward {
    #[inline(always)]
    unsafe fn of<V: Lanes>([a, b]: [Pair<V>; 2]) -> [Pair<V>; 2] {
        [plus(a, b), minus(a, b)]
    }
}

impl Butterfly<3> for Forward {
    #[inline(always)]
    unsafe fn of<V: Lanes>([a, b, c]: [Pair<V>; 3]) -> [Pair<V>; 3] {
        let (sum, gap) = (plus(b, c), scaled(minus(b, c), 0.75_f64.sqrt()));
        let [first, second] = turned(added(a, sum, -0.5), gap);
        [plus(a, sum), first, second]
    }
}

impl Butterfly<4> for Forward {
    #[inline(always)]
    unsafe fn of<V: Lanes>([a, b, c, d]: [Pair<V>; 4]) -> [Pair<V>; 4] {
        let (even, odd) = (plus(a, c), plus(b, d));
        let [first, third] = turned(minus(a, c), minus(b, d));
        [plus(even, odd), first, minus(even, odd), third]
    }
}

/// Cosines and sines of a fifth of a turn and of two.
const FIFTHS: [[f64; 2]; 2] =
    [[0.309_016_994_374_947_45, 0.951_056_516_295_153_5], [-0.809_016_994_374_947_5, 0.587_785_252_292_473_1]];

impl Butterfly<5> for Forward {
    #[inline(always)]
    unsafe fn of<V: Lanes>([a, b, c, d, e]: [Pair<V>; 5]) -> [Pair<V>; 5] {
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

/// Cosines and sines of a seventh of a turn, of two and of three.
const SEVENTHS: [[f64; 2]; 3] = [
    [0.623_489_801_858_733_5, 0.781_831_482_468_029_8],
    [-0.222_520_933_956_314_4, 0.974_927_912_181_823_6],
    [-0.900_968_867_902_419_1, 0.433_883_739_117_558_1],
];

/// Two results of seven, by these sevenths and signs of the sines, from sums and gaps of the numbers at both sides.
#[inline(always)]
unsafe fn seventh<V: Lanes>(a: Pair<V>, sums: [Pair<V>; 3], gaps: [Pair<V>; 3], by: [(usize, f64); 3]) -> [Pair<V>; 2] {
    let [[cos, sin], [cos2, sin2], [cos3, sin3]] = by.map(|(k, sign)| [SEVENTHS[k][0], SEVENTHS[k][1] * sign]);
    let near = added(added(added(a, sums[0], cos), sums[1], cos2), sums[2], cos3);
    turned(near, added(added(scaled(gaps[0], sin), gaps[1], sin2), gaps[2], sin3))
}

impl Butterfly<7> for Forward {
    #[inline(always)]
    unsafe fn of<V: Lanes>([a, b, c, d, e, f, g]: [Pair<V>; 7]) -> [Pair<V>; 7] {
        let (sums, gaps) = ([plus(b, g), plus(c, f), plus(d, e)], [minus(b, g), minus(c, f), minus(d, e)]);
        let [first, sixth] = seventh(a, sums, gaps, [(0, 1.0), (1, 1.0), (2, 1.0)]);
        let [second, fifth] = seventh(a, sums, gaps, [(1, 1.0), (2, -1.0), (0, -1.0)]);
        let [third, fourth] = seventh(a, sums, gaps, [(2, 1.0), (0, -1.0), (1, 1.0)]);
        [plus(plus(plus(a, sums[0]), sums[1]), sums[2]), first, second, third, fourth, fifth, sixth]
    }
}

impl Butterfly<8> for Forward {
    #[inline(always)]
    unsafe fn of<V: Lanes>([a, b, c, d, e, f, g, h]: [Pair<V>; 8]) -> [Pair<V>; 8] {
        let [e0, e1, e2, e3] = <Self as Butterfly<4>>::of([a, c, e, g]);
        let [o0, o1, o2, o3] = <Self as Butterfly<4>>::of([b, d, f, h]);
        // (1 - i) x and (-1 - i) x, not yet divided by the root of 2.
        let once = (o1.0.add(o1.1), o1.1.sub(o1.0));
        let twice = (o3.1.sub(o3.0), o3.0.add(o3.1));
        let (root, other) = (V::splat(Element::from_f64(FRAC_1_SQRT_2)), V::splat(Element::from_f64(-FRAC_1_SQRT_2)));
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

/// The cosine and the sine of a sixteenth of a turn.
const SIXTEENTH: [f64; 2] = [0.923_879_532_511_286_8, 0.382_683_432_365_089_8];

/// A number times `exp(-2 pi i k / 16)`, for k of 1, 2, 3, 6 and 9.
#[inline(always)]
unsafe fn sixteenths<V: Lanes>(x: Pair<V>, k: usize) -> Pair<V> {
    let [cos, sin] = SIXTEENTH;
    let [cos, sin] = match k {
        1 => [cos, -sin],
        2 => [FRAC_1_SQRT_2, -FRAC_1_SQRT_2],
        3 => [sin, -cos],
        6 => [-FRAC_1_SQRT_2, -FRAC_1_SQRT_2],
        _ => [-cos, sin],
    };
    turned_by(x, [cos, sin].map(|part| V::splat(Element::from_f64(part))))
}

impl Butterfly<16> for Forward {
    #[inline(always)]
    unsafe fn of<V: Lanes>(x: [Pair<V>; 16]) -> [Pair<V>; 16] {
        let [a0, a1, a2, a3] = <Self as Butterfly<4>>::of([x[0], x[4], x[8], x[12]]);
        let [b0, b1, b2, b3] = <Self as Butterfly<4>>::of([x[1], x[5], x[9], x[13]]);
        let [c0, c1, c2, c3] = <Self as Butterfly<4>>::of([x[2], x[6], x[10], x[14]]);
        let [d0, d1, d2, d3] = <Self as Butterfly<4>>::of([x[3], x[7], x[11], x[15]]);
        let [y0, y4, y8, y12] = <Self as Butterfly<4>>::of([a0, b0, c0, d0]);
        let (b1, c1, d1) = (sixteenths(b1, 1), sixteenths(c1, 2), sixteenths(d1, 3));
        let [y1, y5, y9, y13] = <Self as Butterfly<4>>::of([a1, b1, c1, d1]);
        let (b2, d2) = (sixteenths(b2, 2), sixteenths(d2, 6));
        // A quarter of a turn.
        let ([even, gap], odd) = (turned(a2, c2), plus(b2, d2));
        let [y6, y14] = turned(gap, minus(b2, d2));
        let (b3, c3, d3) = (sixteenths(b3, 3), sixteenths(c3, 6), sixteenths(d3, 9));
        let [y3, y7, y11, y15] = <Self as Butterfly<4>>::of([a3, b3, c3, d3]);
        let (y2, y10) = (plus(even, odd), minus(even, odd));
        [y0, y1, y2, y3, y4, y5, y6, y7, y8, y9, y10, y11, y12, y13, y14, y15]
    }
}
