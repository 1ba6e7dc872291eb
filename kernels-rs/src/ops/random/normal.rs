//! The method of Box and Muller over pairs of words, in `f32`.

use super::unit;
use crate::math::{Baseline, Fma, exponential, trigonometric};
use std::f32::consts::TAU;

/// Pairs that are computed at once.
const LANES: usize = 16;

/// `out[2j] = mean + std * r cos a` and `out[2j + 1] = mean + std * r sin a`, where `r = sqrt(-2 ln(1 - u))` and
/// `a = 2 pi v` for the uniforms `u` and `v` of words `2j` and `2j + 1`. Both runs have one length, which is even.
pub fn normal(words: &[u32], out: &mut [f32], mean: f32, std: f32) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2")]
        fn fused(words: &[u32], out: &mut [f32], mean: f32, std: f32) {
            normal_any::<crate::math::Fused>(words, out, mean, std);
        }
        if crate::machine::simd::level() >= crate::machine::simd::Level::Avx2 {
            // SAFETY: the level says that the CPU has these features.
            return unsafe { fused(words, out, mean, std) };
        }
    }
    normal_any::<Baseline>(words, out, mean, std);
}

#[inline(always)]
fn normal_any<M: Fma>(words: &[u32], out: &mut [f32], mean: f32, std: f32) {
    for (words, out) in words.chunks(2 * LANES).zip(out.chunks_mut(2 * LANES)) {
        let (mut radius, mut angle) = ([0.0f32; LANES], [0.0f32; LANES]);
        for (pair, (radius, angle)) in words.as_chunks::<2>().0.iter().zip(radius.iter_mut().zip(&mut angle)) {
            *radius = 1.0 - unit::<8>(pair[0]);
            *angle = TAU * unit::<8>(pair[1]);
        }
        let (mut cosine, mut sine) = ([0.0f32; LANES], [0.0f32; LANES]);
        for lane in 0..LANES {
            let length = (-2.0 * exponential::log::<M>(radius[lane])).sqrt();
            cosine[lane] = mean + std * (length * trigonometric::cos::<M>(angle[lane]));
            sine[lane] = mean + std * (length * trigonometric::sin::<M>(angle[lane]));
        }
        for (pair, (&cosine, &sine)) in out.as_chunks_mut::<2>().0.iter_mut().zip(cosine.iter().zip(&sine)) {
            *pair = [cosine, sine];
        }
    }
}
