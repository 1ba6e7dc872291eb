//! Vector registers of one instruction set, for kernels whose tile of accumulators must stay in registers. Plain loops
//! belong under `vectorize!` instead.
//!
//! A kernel is a [`Kernel`]: its `run` is generic over the register type, and [`launch`] compiles it once per
//! instruction set and picks at run time. Call [`launch`] inside a task, not around `threads::parallel`: a closure does
//! not inherit the instruction set.

/// Methods of a register type, one row each.
macro_rules! methods {
    ($($(#[$meta:meta])* fn $name:ident $(<const $count:ident: usize>)? ($($given:tt)*) -> $gives:ty { $($body:tt)* })*) => {$(
        $(#[$meta])*
        #[inline(always)]
        unsafe fn $name $(<const $count: usize>)? ($($given)*) -> $gives { $($body)* }
    )*};
}

#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;
#[cfg(not(target_arch = "aarch64"))]
mod portable;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86;

use crate::dtype::{Element, Plain};
use crate::machine::simd::{Level, level};
use crate::math::Fma;
use std::ops::{Add, Div, Mul, Sub};

/// A float type that kernels compute in.
pub trait Real:
    Element
    + Plain
    + Default
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
{
    /// 512-bit registers.
    type Wide512: Lanes<Elem = Self>;
    /// 256-bit registers.
    type Wide256: Lanes<Elem = Self>;
    /// What every machine has.
    type Portable: Lanes<Elem = Self>;
}

/// One register of [`Lanes::N`] elements.
///
/// # Safety
/// Every method needs the instruction set of the type; [`launch`] checks it. Pointers must be valid for the elements
/// that the method names; no alignment is needed.
#[expect(clippy::missing_safety_doc, reason = "said once, above")]
pub trait Lanes: Copy {
    /// The element.
    type Elem: Real;
    /// Elements per register.
    const N: usize;
    /// How plain loops beside it multiply and add.
    type Math: Fma;
    /// Rows of a tile two registers wide that fit the register file beside their operands.
    const ROWS: usize;

    /// All lanes equal.
    unsafe fn splat(value: Self::Elem) -> Self;
    /// Reads `N` elements.
    unsafe fn load(from: *const Self::Elem) -> Self;
    /// Reads the first `count <= N` elements; the other lanes are 0.
    unsafe fn load_partial(from: *const Self::Elem, count: usize) -> Self;
    /// Reads lanes `window.0..window.1`; the other lanes are 0, and their addresses need not be valid.
    unsafe fn load_window(from: *const Self::Elem, window: (usize, usize)) -> Self;
    /// Writes `N` elements.
    unsafe fn store(self, to: *mut Self::Elem);
    /// Writes the first `count <= N` lanes.
    unsafe fn store_partial(self, to: *mut Self::Elem, count: usize);
    /// `self * by + plus`, rounded once where the machine can.
    unsafe fn mul_add(self, by: Self, plus: Self) -> Self;
    /// `self * by - minus`, rounded once where the machine can.
    unsafe fn mul_sub(self, by: Self, minus: Self) -> Self;
    /// Lane by lane.
    unsafe fn add(self, other: Self) -> Self;
    /// Lane by lane.
    unsafe fn sub(self, other: Self) -> Self;
    /// Lane by lane.
    unsafe fn mul(self, other: Self) -> Self;
    /// Lane by lane.
    unsafe fn div(self, other: Self) -> Self;
    /// Square roots, lane by lane.
    unsafe fn sqrt(self) -> Self;
    /// Rounded down, lane by lane.
    unsafe fn floor(self) -> Self;
    /// Rounded to the nearest, half to even, lane by lane.
    unsafe fn round(self) -> Self;
    /// The larger, lane by lane; `self` where either is NaN.
    unsafe fn max(self, other: Self) -> Self;

    methods! {
        /// Square roots of what lies between 1e-36 and 1e38, within 0.6 ulp; NaN of what is below 0, and anything of what
        /// else there is, 0 among it.
        fn near_sqrt(self) -> Self { self.sqrt() }
        /// The larger, lane by lane; NaN where either is NaN.
        fn max_or_nan(self, other: Self) -> Self {
            let mut lanes = array(self);
            for (a, b) in lanes.iter_mut().zip(array(other)) {
                #[expect(clippy::eq_op, reason = "only NaN differs from itself")]
                let taken = b > *a || b != b;
                *a = if taken { b } else { *a };
            }
            Self::load(lanes.as_ptr())
        }
        /// Reads the elements at the first `count <= N` places; lanes behind them, and those of places below 0, are 0.
        fn gather(from: *const Self::Elem, places: *const i32, count: usize) -> Self {
            let mut lanes = [Self::Elem::default(); MOST];
            for (i, lane) in lanes.iter_mut().enumerate().take(count) {
                let place = *places.add(i);
                if place >= 0 {
                    *lane = *from.add(place as usize);
                }
            }
            Self::load(lanes.as_ptr())
        }
        /// Whether all lanes are at least `low` and at most `high`.
        fn all_between(self, low: Self, high: Self) -> bool {
            let (lanes, lows, highs) = (array(self), array(low), array(high));
            (0..Self::N).fold(true, |all, i| all & (lanes[i] >= lows[i]) & (lanes[i] <= highs[i]))
        }
        /// Writes whole numbers, which the lanes are; -1 for those below 0, above `high`, which has 32 bits, and NaN.
        fn store_inside(self, high: Self, to: *mut i32) -> () {
            for (i, (lane, high)) in array(self).into_iter().zip(array(high)).enumerate().take(Self::N) {
                let inside = lane >= Self::Elem::default() && lane <= high;
                *to.add(i) = if inside { lane.to_f64() as i32 } else { -1 };
            }
        }
        /// Reads the elements at `N` places, none of which is below 0, and those behind them.
        fn gather_pairs(from: *const Self::Elem, places: *const i32) -> (Self, Self) {
            let [mut first, mut second] = [[Self::Elem::default(); MOST]; 2];
            for (i, (a, b)) in first.iter_mut().zip(&mut second).enumerate().take(Self::N) {
                let at = from.add(*places.add(i) as usize);
                (*a, *b) = (*at, *at.add(1));
            }
            (Self::load(first.as_ptr()), Self::load(second.as_ptr()))
        }
        /// Reads the first `count <= N` elements, which are most often all.
        fn load_some(from: *const Self::Elem, count: usize) -> Self {
            if count == Self::N { Self::load(from) } else { Self::load_partial(from, count) }
        }
        /// Writes the first `count <= N` lanes, which are most often all.
        fn store_some(self, to: *mut Self::Elem, count: usize) -> () {
            if count == Self::N { self.store(to) } else { self.store_partial(to, count) }
        }
        /// Every second lane: `a0 a2 ... b0 b2 ...`.
        fn even(a: Self, b: Self) -> Self { Self::deinterleave(a, b).0 }
        /// The lanes at even places, and those at odd ones: `a0 a2 ... b0 b2 ...` and `a1 a3 ... b1 b3 ...`.
        fn deinterleave(a: Self, b: Self) -> (Self, Self) {
            let (lanes, mut turned) = (both(a, b), [Self::Elem::default(); 2 * MOST]);
            for i in 0..Self::N {
                (turned[i], turned[i + Self::N]) = (lanes[2 * i], lanes[2 * i + 1]);
            }
            (Self::load(turned.as_ptr()), Self::load(turned.as_ptr().add(Self::N)))
        }
        /// The lanes of both in turns: `a0 b0 a1 b1 ...`, in two registers.
        fn interleave(a: Self, b: Self) -> (Self, Self) {
            let (lanes, mut turned) = (both(a, b), [Self::Elem::default(); 2 * MOST]);
            for i in 0..Self::N {
                (turned[2 * i], turned[2 * i + 1]) = (lanes[i], lanes[i + Self::N]);
            }
            (Self::load(turned.as_ptr()), Self::load(turned.as_ptr().add(Self::N)))
        }
        /// The first halves of both, and the second ones.
        fn halves(a: Self, b: Self) -> (Self, Self) {
            let (half, mut lanes) = (Self::N / 2, both(a, b));
            let far = Self::load(lanes.as_ptr().add(half));
            b.store(lanes.as_mut_ptr().add(half));
            let near = Self::load(lanes.as_ptr());
            far.store(lanes.as_mut_ptr());
            b.store(lanes.as_mut_ptr().add(Self::N));
            lanes.copy_within(Self::N + half..2 * Self::N, half);
            (near, Self::load(lanes.as_ptr()))
        }
        /// The lanes from the last to the first.
        fn reverse(self) -> Self {
            let mut lanes = array(self);
            lanes[..Self::N].reverse();
            Self::load(lanes.as_ptr())
        }
        /// `R` registers as rows of a matrix, turned over: its columns one behind the other. `R` is a power of 2, of no
        /// more than the lanes.
        fn turned_over<const R: usize>(rows: [Self; R]) -> [Self; R] { riffled(rows) }
        /// The sum of the lanes, in halves: the order does not depend on the data.
        fn sum(self) -> Self::Elem {
            // In place: an array that comes from a function is copied once more, which short rows feel.
            let mut lanes = [Self::Elem::default(); MOST];
            self.store(lanes.as_mut_ptr());
            let mut width = Self::N;
            while width > 1 {
                width /= 2;
                for i in 0..width {
                    lanes[i] = lanes[i] + lanes[i + width];
                }
            }
            lanes[0]
        }
        /// The largest lane; which one is not said where one is NaN.
        fn peak(self) -> Self::Elem {
            let mut lanes = [Self::Elem::default(); MOST];
            self.store(lanes.as_mut_ptr());
            lanes[1..Self::N].iter().fold(lanes[0], |most, &lane| if lane > most { lane } else { most })
        }
        /// Turns a `from.rows x from.cols` block (each at most `N`) into `cols` rows of `N` elements, zero-filled, and
        /// writes the first `keep` elements of each.
        fn transpose(from: Block<Self::Elem>, to: *mut Self::Elem, to_pitch: usize, keep: usize) -> () {
            for col in 0..from.cols {
                for row in 0..keep {
                    let inside = row < from.rows;
                    let value = if inside { *from.at.add(row * from.pitch + col) } else { Self::Elem::default() };
                    *to.add(col * to_pitch + row) = value;
                }
            }
        }
    }
}

/// Lanes that no register has more of.
const MOST: usize = 16;

/// The lanes one after the other; what stands behind them is 0.
#[inline(always)]
unsafe fn array<V: Lanes>(lanes: V) -> [V::Elem; MOST] {
    let mut array = [V::Elem::default(); MOST];
    lanes.store(array.as_mut_ptr());
    array
}

/// The lanes of two, one behind the other.
#[inline(always)]
unsafe fn both<V: Lanes>(a: V, b: V) -> [V::Elem; 2 * MOST] {
    let mut lanes = [V::Elem::default(); 2 * MOST];
    a.store(lanes.as_mut_ptr());
    b.store(lanes.as_mut_ptr().add(V::N));
    lanes
}

/// Rows turned over: the elements of the first half of the registers and those of the second in turns, once for each factor
/// of 2.
#[inline(always)]
unsafe fn riffled<V: Lanes, const R: usize>(rows: [V; R]) -> [V; R] {
    let rows = if R > 1 { riffled_once(rows) } else { rows };
    let rows = if R > 2 { riffled_once(rows) } else { rows };
    let rows = if R > 4 { riffled_once(rows) } else { rows };
    if R > 8 { riffled_once(rows) } else { rows }
}

#[inline(always)]
unsafe fn riffled_once<V: Lanes, const R: usize>(rows: [V; R]) -> [V; R] {
    let mut out = rows;
    for i in 0..R / 2 {
        (out[2 * i], out[2 * i + 1]) = V::interleave(rows[i], rows[i + R / 2]);
    }
    out
}

/// A rectangle in memory.
#[derive(Clone, Copy)]
pub struct Block<T> {
    /// Its first element.
    pub at: *const T,
    /// Elements from one row to the next.
    pub pitch: usize,
    /// Rows.
    pub rows: usize,
    /// Elements per row.
    pub cols: usize,
}

/// A kernel that [`launch`] compiles once per instruction set. `run` must be `#[inline(always)]`.
pub trait Kernel<T: Real> {
    /// Whether it is compiled for x86-64 without AVX2 too. Who launches one that is not has another way where [`is_baseline`].
    const BASELINE: bool = true;
    /// The work.
    ///
    /// # Safety
    /// The machine has the instructions of `V`.
    unsafe fn run<V: Lanes<Elem = T>>(self);
}

/// Runs a kernel with the widest registers of this machine.
#[inline]
pub fn launch<T: Real, K: Kernel<T>>(kernel: K) {
    // Once for all callers: what old processors run is no part of each.
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    fn portable<T: Real, K: Kernel<T>>(kernel: K) {
        // SAFETY: portable code.
        unsafe { kernel.run::<T::Portable>() }
    }
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2")]
        fn avx512<T: Real, K: Kernel<T>>(kernel: K) {
            // SAFETY: the features are enabled here.
            unsafe { kernel.run::<T::Wide512>() }
        }
        #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2")]
        fn avx2<T: Real, K: Kernel<T>>(kernel: K) {
            // SAFETY: the features are enabled here.
            unsafe { kernel.run::<T::Wide256>() }
        }
        match level() {
            // SAFETY: the level says that the CPU has these features.
            Level::Avx512 => return unsafe { avx512(kernel) },
            // SAFETY: as above.
            Level::Avx2 => return unsafe { avx2(kernel) },
            Level::Baseline => {}
        }
    }
    if const { K::BASELINE || cfg!(not(target_arch = "x86_64")) } {
        portable(kernel);
    } else {
        unreachable!("old processors have another way");
    }
}

/// Whether this is x86-64 without AVX2, which has loops of its own for what is often used alone.
pub fn is_baseline() -> bool {
    cfg!(target_arch = "x86_64") && level() == Level::Baseline
}

/// Elements per register that [`launch`] will choose.
pub fn lane_count<T: Real>() -> usize {
    match level() {
        Level::Avx512 => T::Wide512::N,
        Level::Avx2 => T::Wide256::N,
        Level::Baseline => T::Portable::N,
    }
}

/// Bytes of a register that [`launch`] will choose.
pub fn register_bytes() -> usize {
    lane_count::<f32>() * size_of::<f32>()
}

#[cfg(not(target_arch = "x86_64"))]
macro_rules! one_kind {
    ($($elem:ident $lanes:path;)*) => {$(
        impl Real for $elem {
            type Wide512 = $lanes;
            type Wide256 = $lanes;
            type Portable = $lanes;
        }
    )*};
}

#[cfg(target_arch = "aarch64")]
one_kind! { f32 neon::F32x4; f64 neon::F64x2; }
#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
one_kind! { f32 portable::Array4; f64 portable::Array2; }

#[cfg(target_arch = "x86_64")]
impl Real for f32 {
    type Wide512 = x86::F32x16;
    type Wide256 = x86::F32x8;
    type Portable = portable::Array4;
}

#[cfg(target_arch = "x86_64")]
impl Real for f64 {
    type Wide512 = x86::F64x8;
    type Wide256 = x86::F64x4;
    type Portable = portable::Array2;
}
