//! Discrete Fourier transforms of lines, through `rustfft`: a line is copied into a buffer of complex numbers, transformed
//! there, and copied out into real and imaginary parts. A real line of even length is one of half as many complex numbers,
//! taken apart on its way out; that `realfft` does in scalars, which took longer than the transform (4096 in `f32` on
//! AMD EPYC, Zen 3, one thread: 3.0 us of 5.3).

use crate::array::Array;
use crate::array::reader::Reader;
use crate::array::view;
use crate::dtype::{DType, Element, Plain};
use crate::error::{Error, Result};
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::{collected, filled};
use crate::ops::elementwise::convert::cast;
use crate::ops::parts;
use crate::vectorize;
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftDirection, FftNum, FftPlanner};
use std::f64::consts::TAU;
use std::sync::{Arc, Mutex};

/// Elements per task.
const TASK: usize = 1 << 13;
/// Plans that are kept for later calls.
const KEPT: usize = 64;

/// A float with transforms.
pub trait Transformed: Element + Plain + FftNum {
    /// The plans of this type, which are kept.
    fn plans() -> &'static Mutex<Plans<Self>>;
}

/// Plans and what they are for.
type Known<K, P> = Vec<(K, Arc<P>)>;

/// Plans by length: of complex lines with the direction, and of real ones of even length.
pub struct Plans<T: FftNum> {
    complex: Known<(usize, bool), dyn Fft<T>>,
    real: Known<usize, Halved<T>>,
}

/// How real lines of even length are transformed.
pub struct Halved<T: FftNum> {
    /// Of their elements in pairs.
    plan: Arc<dyn Fft<T>>,
    /// Real and imaginary parts of `exp(-2 pi i k / n)`, for k up to n / 2.
    turns: [Vec<T>; 2],
}

impl<T: Transformed> Halved<T> {
    fn new(n: usize) -> Self {
        let turn = |part: fn(f64) -> f64| {
            collected((0..=n / 2).map(|k| <T as Element>::from_f64(part(TAU * k as f64 / n as f64))))
        };
        let mut turns = [turn(f64::cos), turn(|angle| -angle.sin())];
        // Half a turn exactly, so that what has no imaginary part shows none.
        turns[1][n / 2] = T::zero();
        Self { plan: FftPlanner::new().plan_fft_forward(n / 2), turns }
    }
}

impl<T: FftNum> Plans<T> {
    const fn new() -> Self {
        Self { complex: Vec::new(), real: Vec::new() }
    }
}

/// The plan for a key: one of the last that were made, or a new one.
fn plan<K: PartialEq, P: ?Sized>(plans: &mut Known<K, P>, key: K, make: impl FnOnce(&K) -> Arc<P>) -> Arc<P> {
    if let Some((_, plan)) = plans.iter().find(|(other, _)| *other == key) {
        return plan.clone();
    }
    if plans.len() >= KEPT {
        plans.remove(0);
    }
    let made = make(&key);
    plans.push((key, made.clone()));
    made
}

macro_rules! transformed {
    ($($ty:ident)*) => {$(
        impl Transformed for $ty {
            fn plans() -> &'static Mutex<Plans<Self>> {
                static PLANS: Mutex<Plans<$ty>> = Mutex::new(Plans::new());
                &PLANS
            }
        }
    )*};
}
transformed!(f32 f64);

/// Which transform.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Along which axis.
    pub axis: usize,
    /// With `exp(+...)`; nothing is divided by the length.
    pub inverse: bool,
    /// The first n // 2 + 1 alone.
    pub half: bool,
}

/// Real and imaginary parts of the transform of `re + i * im`. Narrow floats are computed in `f32`.
pub fn dft(re: &Array, im: Option<&Array>, settings: Settings) -> Result<(Array, Array)> {
    let fits = im.is_none_or(|im| im.shape() == re.shape() && im.dtype() == re.dtype());
    if settings.axis >= re.rank() || !re.dtype().is_float() || !fits || (settings.half && im.is_some()) {
        return Err(Error::Rejected("dft wants parts of one float dtype and shape, and an axis of theirs"));
    }
    let (real, imag) =
        if re.dtype() == DType::F64 { along::<f64>(re, im, settings)? } else { along::<f32>(re, im, settings)? };
    Ok((cast(&real, re.dtype())?, cast(&imag, re.dtype())?))
}

/// The axis last, the transform, and the axis back in its place.
fn along<T: Transformed>(re: &Array, im: Option<&Array>, settings: Settings) -> Result<(Array, Array)> {
    let (rank, axis) = (re.rank(), settings.axis);
    let order: Vec<usize> = (0..rank).filter(|&at| at != axis).chain([axis]).collect();
    let back: Vec<usize> =
        (0..rank).map(|at| if at == axis { rank - 1 } else { at - usize::from(at > axis) }).collect();
    let moved = |x: &Array| {
        let x = view::permute_dims(x, &order)?;
        // Lines whose elements lie side by side are read where they lie; those of one element have gaps between them.
        let lies = x.dtype() == T::DTYPE && x.strides()[rank - 1] == 1 && x.shape()[rank - 1] > 1;
        if lies { Ok(x) } else { parts::ready(&x, T::DTYPE) }
    };
    let (re, im) = (moved(re)?, im.map(moved).transpose()?);
    let mut shape = *re.shape();
    let n = shape[rank - 1];
    if settings.half {
        shape[rank - 1] = n / 2 + 1;
    }
    let fresh = || if n == 0 { Array::zeros(T::DTYPE, &shape) } else { Array::uninit(T::DTYPE, &shape) };
    let (mut real, mut imag) = (fresh()?, fresh()?);
    if re.numel() > 0 {
        let to = [SharedMut::new(real.mut_ptr::<T>()), SharedMut::new(imag.mut_ptr::<T>())];
        let job = Job { n, out: shape[rank - 1], inverse: settings.inverse, lines: re.numel() / n };
        match &im {
            None if n % 2 == 0 => job.halved(&Reader::new(&re), to),
            None => job.odd(&Reader::new(&re), to),
            Some(im) => job.complex(&Reader::new(&re), &Reader::new(im), to),
        }
    }
    Ok((view::permute_dims(&real, &back)?, view::permute_dims(&imag, &back)?))
}

struct Job {
    n: usize,
    /// Elements of a line of results.
    out: usize,
    inverse: bool,
    lines: usize,
}

impl Job {
    /// Runs `work(first line, end)` over the lines, in parallel.
    fn run(&self, work: &(dyn Fn(usize, usize) + Sync)) {
        let together = (TASK / self.n).max(1);
        let tasks = self.lines.div_ceil(together);
        threads::parallel(tasks, &|task| work(task * together, self.lines.min((task + 1) * together)));
    }

    fn plan<T: Transformed>(&self, inverse: bool) -> Arc<dyn Fft<T>> {
        plan(&mut T::plans().lock().expect("never poisoned").complex, (self.n, inverse), |&(n, inverse)| {
            FftPlanner::new().plan_fft(n, if inverse { FftDirection::Inverse } else { FftDirection::Forward })
        })
    }

    fn complex<T: Transformed>(&self, re: &Reader<'_, T>, im: &Reader<'_, T>, to: [SharedMut<T>; 2]) {
        let (n, plan) = (self.n, self.plan(self.inverse));
        self.run(&|first, end| {
            let zero = Complex::new(T::zero(), T::zero());
            let (mut line, mut scratch) = (filled(zero, n), filled(zero, plan.get_inplace_scratch_len()));
            for at in first..end {
                let parts = re.part::<T>(at * n..(at + 1) * n, &mut []).iter();
                let parts = parts.zip(im.part::<T>(at * n..(at + 1) * n, &mut []));
                line.iter_mut().zip(parts).for_each(|(slot, (&re, &im))| *slot = Complex::new(re, im));
                plan.process_with_scratch(&mut line, &mut scratch);
                // SAFETY: each task has its own lines.
                let (real, imag) = unsafe { (to[0].slice(at * n..(at + 1) * n), to[1].slice(at * n..(at + 1) * n)) };
                apart(&line, T::one(), real, imag);
            }
        });
    }

    /// Half of the results tells the other: they are conjugates.
    fn odd<T: Transformed>(&self, re: &Reader<'_, T>, to: [SharedMut<T>; 2]) {
        let (n, out, plan) = (self.n, self.out, self.plan(false));
        self.run(&|first, end| {
            let zero = Complex::new(T::zero(), T::zero());
            let (mut line, mut scratch) = (filled(zero, n), filled(zero, plan.get_inplace_scratch_len()));
            for at in first..end {
                let from = re.part::<T>(at * n..(at + 1) * n, &mut []);
                line.iter_mut().zip(from).for_each(|(slot, &re)| *slot = Complex::new(re, T::zero()));
                plan.process_with_scratch(&mut line, &mut scratch);
                // SAFETY: each task has its own lines.
                let (real, imag) =
                    unsafe { (to[0].slice(at * out..(at + 1) * out), to[1].slice(at * out..(at + 1) * out)) };
                let sign = if self.inverse { -T::one() } else { T::one() };
                apart(&line[..=n / 2], sign, real, imag);
                // The sum of real numbers has no imaginary part.
                imag[0] = T::zero();
                mirror(n / 2 + 1, real, imag);
            }
        });
    }

    /// Real lines as half as many complex numbers.
    fn halved<T: Transformed>(&self, re: &Reader<'_, T>, to: [SharedMut<T>; 2]) {
        let (n, out, half) = (self.n, self.out, self.n / 2);
        let halved = plan(&mut T::plans().lock().expect("never poisoned").real, n, |&n| Arc::new(Halved::<T>::new(n)));
        self.run(&|first, end| {
            let zero = Complex::new(T::zero(), T::zero());
            let (mut line, mut scratch) = (filled(zero, half), filled(zero, halved.plan.get_inplace_scratch_len()));
            let mut parts = [filled(T::zero(), half + 1), filled(T::zero(), half + 1)];
            for at in first..end {
                let pairs = re.part::<T>(at * n..(at + 1) * n, &mut []).as_chunks::<2>().0;
                line.iter_mut().zip(pairs).for_each(|(slot, &[re, im])| *slot = Complex::new(re, im));
                halved.plan.process_with_scratch(&mut line, &mut scratch);
                let [real, imag] = &mut parts;
                apart(&line, T::one(), real, imag);
                (real[half], imag[half]) = (real[0], imag[0]);
                // SAFETY: each task has its own lines.
                let results = unsafe { [to[0].slice(at * out..(at + 1) * out), to[1].slice(at * out..(at + 1) * out)] };
                let sign = if self.inverse { -T::one() } else { T::one() };
                untangle([real, imag], [&halved.turns[0], &halved.turns[1]], sign, results);
            }
        });
    }
}

vectorize!(
    untangle[T: Transformed](parts: [&[T]; 2], turns: [&[T]; 2], sign: T, to: [&mut [T]; 2]) => untangle_body::<T>
);

/// The transform of a line x of n elements from that of `x[2 j] + i x[2 j + 1]`, Z: `E + exp(-2 pi i k / n) O`, where E and O
/// are the transforms of the even and the odd elements, `(Z[k] + conj Z[-k]) / 2` and `(Z[k] - conj Z[-k]) / 2i`.
#[inline(always)]
fn untangle_body<T: Transformed>([re, im]: [&[T]; 2], [cos, sin]: [&[T]; 2], sign: T, [real, imag]: [&mut [T]; 2]) {
    let count = re.len();
    let half = T::one() / (T::one() + T::one());
    let forwards = re.iter().zip(im).zip(re.iter().rev().zip(im.iter().rev()));
    let slots = real[..count].iter_mut().zip(&mut imag[..count]);
    for ((((&a, &b), (&c, &d)), (&cos, &sin)), (real, imag)) in forwards.zip(cos.iter().zip(sin)).zip(slots) {
        let (even, odd) = (((a + c) * half, (b - d) * half), ((b + d) * half, (c - a) * half));
        *real = even.0 + (cos * odd.0 - sin * odd.1);
        *imag = (even.1 + (cos * odd.1 + sin * odd.0)) * sign;
    }
    mirror_body(count, real, imag);
}

vectorize!(apart[T: Transformed](from: &[Complex<T>], sign: T, real: &mut [T], imag: &mut [T]) => apart_body::<T>);

/// Real parts, and imaginary parts times a sign.
#[inline(always)]
fn apart_body<T: Transformed>(from: &[Complex<T>], sign: T, real: &mut [T], imag: &mut [T]) {
    for ((real, imag), value) in real.iter_mut().zip(imag).zip(from) {
        (*real, *imag) = (value.re, value.im * sign);
    }
}

vectorize!(mirror[T: Transformed](first: usize, real: &mut [T], imag: &mut [T]) => mirror_body::<T>);

/// The conjugates of the numbers before `first`, behind them from back to front; the number at 0 has none.
#[inline(always)]
fn mirror_body<T: Transformed>(first: usize, real: &mut [T], imag: &mut [T]) {
    let (known, rest) = real.split_at_mut(first);
    let count = rest.len();
    rest.iter_mut().zip(known[1.min(first)..][..count].iter().rev()).for_each(|(slot, &x)| *slot = x);
    let (known, rest) = imag.split_at_mut(first);
    rest.iter_mut().zip(known[1.min(first)..][..count].iter().rev()).for_each(|(slot, &x)| *slot = -x);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::samples::{Rng, floats, view_of};

    /// By the formula.
    fn plain(re: &[f64], im: &[f64], inverse: bool) -> (Vec<f64>, Vec<f64>) {
        let n = re.len();
        let at = |k: usize| {
            let parts = (0..n).map(|j| {
                let angle = TAU * (j * k % n) as f64 / n as f64 * if inverse { 1.0 } else { -1.0 };
                (re[j] * angle.cos() - im[j] * angle.sin(), re[j] * angle.sin() + im[j] * angle.cos())
            });
            parts.fold((0.0, 0.0), |sum, x| (sum.0 + x.0, sum.1 + x.1))
        };
        (0..n).map(at).unzip()
    }

    #[test]
    fn lines_of_any_length_and_layout_are_transformed_as_the_formula_says() {
        let mut rng = Rng::new(3);
        for round in 0..150 {
            let dtype = if round % 2 == 0 { DType::F32 } else { DType::F64 };
            let n = 1 + rng.below(40);
            let lines = rng.below(4);
            let axis = rng.below(2);
            let shape = if axis == 1 { [lines, n] } else { [n, lines] };
            let (re, im) = (view_of(&mut rng, dtype, &shape, false), view_of(&mut rng, dtype, &shape, false));
            let (inverse, kind) = (rng.below(2) == 0, rng.below(3));
            let settings = Settings { axis, inverse, half: kind == 2 };
            let found = dft(&re, (kind == 0).then_some(&im), settings).unwrap();
            let out = if kind == 2 { n / 2 + 1 } else { n };
            assert_eq!(found.0.shape()[axis], out);
            let line = |x: &Array, at: usize, n: usize| -> Vec<f64> {
                let x = floats(x);
                (0..n).map(|j| if axis == 1 { x[at * n + j] } else { x[j * lines + at] }).collect()
            };
            for at in 0..lines {
                let imag = if kind == 0 { line(&im, at, n) } else { vec![0.0; n] };
                let wanted = plain(&line(&re, at, n), &imag, inverse);
                for (found, wanted) in [(&found.0, wanted.0), (&found.1, wanted.1)] {
                    let scale: f64 = wanted.iter().map(|x| x.abs()).sum::<f64>() + 1.0;
                    let tolerance = scale * if dtype == DType::F64 { 1e-14 } else { 1e-6 };
                    for (a, b) in line(found, at, out).iter().zip(wanted) {
                        assert!((a - b).abs() <= tolerance, "{a} for {b}: n {n}, kind {kind}, inverse {inverse}");
                    }
                }
            }
        }
    }

    #[test]
    fn nothing_gives_nothing_and_wrong_parts_are_refused() {
        let zeros = |shape: &[usize]| Array::zeros(DType::F32, shape).unwrap();
        let settings = Settings { axis: 1, inverse: false, half: false };
        assert_eq!(dft(&zeros(&[0, 3]), None, settings).unwrap().0.shape()[..], [0, 3]);
        assert_eq!(dft(&zeros(&[3, 0]), None, settings).unwrap().1.shape()[..], [3, 0]);
        assert!(dft(&zeros(&[2, 3]), Some(&zeros(&[3, 3])), settings).is_err());
        assert!(dft(&zeros(&[2]), None, settings).is_err());
    }
}
