//! The machine's ceilings, measured: multiply-adds of `f32`, and of bfloat16 pairs into `f32`, that touch no memory.

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Instant;

use crate::machine::amx;
use crate::machine::simd;
#[cfg(target_arch = "x86_64")]
use crate::machine::simd::Level;
use crate::machine::threads;
use crate::math::{Fma, Fused, Split};

const ROUNDS: usize = 1 << 22;

/// Multiply-adds on `LANES` independent sums, enough of them to hide the latency of one.
#[inline(always)]
fn chains<M: Fma, const LANES: usize>(rounds: usize) -> f32 {
    let mut sums = [1.0_f32; LANES];
    let (factor, addend) = (black_box(0.999_f32), black_box(0.001_f32));
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = M::fma(*sum, factor, addend);
        }
    }
    sums.iter().sum()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
fn chains_avx512(rounds: usize) -> f32 {
    chains::<Fused, 192>(rounds)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn chains_avx2(rounds: usize) -> f32 {
    chains::<Fused, 80>(rounds)
}

/// Runs one thread's share and returns the number of sums it kept.
fn share() -> u32 {
    match simd::level() {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => {
            // SAFETY: the level says that the CPU has these features.
            black_box(unsafe { chains_avx512(ROUNDS) });
            192
        }
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => {
            // SAFETY: as above.
            black_box(unsafe { chains_avx2(ROUNDS) });
            80
        }
        _ if cfg!(target_arch = "aarch64") => {
            black_box(chains::<Fused, 96>(ROUNDS));
            96
        }
        _ => {
            black_box(chains::<Split, 40>(ROUNDS));
            40
        }
    }
}

/// Measures `f32` multiply-add operations per second on `count` threads at once.
#[allow(clippy::cast_precision_loss, reason = "a count of operations is only reported")]
#[must_use]
pub fn fma_peak(count: usize) -> f64 {
    let kept = AtomicU32::new(0);
    let start = Instant::now();
    threads::parallel(count, &|_| kept.store(share(), Relaxed));
    let seconds = start.elapsed().as_secs_f64();
    2.0 * f64::from(kept.load(Relaxed)) * ROUNDS as f64 * count as f64 / seconds
}

/// Twenty-four registers of sums: enough to hide the latency of one.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bf16")]
fn pairs(rounds: usize) -> f32 {
    use std::arch::x86_64::*;
    let (a, b) = (black_box(_mm512_setzero_ps()), black_box(_mm512_setzero_ps()));
    let (a, b) = (_mm512_cvtne2ps_pbh(a, a), _mm512_cvtne2ps_pbh(b, b));
    let mut sums = [_mm512_setzero_ps(); 24];
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = _mm512_dpbf16_ps(*sum, a, b);
        }
    }
    sums.iter().fold(0.0, |total, &sum| total + _mm512_reduce_add_ps(sum))
}

/// Measures bfloat16 multiply-add operations per second on `count` threads at once: those of tiles where they are used,
/// else of the bf16 dot product, else those of `f32`.
#[must_use]
pub fn bf16_peak(count: usize) -> f64 {
    if simd::has_amx() {
        const ROUNDS: usize = 1 << 20;
        let start = Instant::now();
        // SAFETY: tiles are used.
        threads::parallel(count, &|_| unsafe { amx::products(ROUNDS) });
        return 2.0 * amx::ROUND as f64 * ROUNDS as f64 * count as f64 / start.elapsed().as_secs_f64();
    }
    #[cfg(target_arch = "aarch64")]
    if simd::has_bf16_pairs() {
        use crate::machine::lanes::neon;
        let start = Instant::now();
        // SAFETY: just asked for.
        threads::parallel(count, &|_| unsafe { neon::pairs(ROUNDS) });
        return 2.0 * neon::ROUND as f64 * ROUNDS as f64 * count as f64 / start.elapsed().as_secs_f64();
    }
    #[cfg(target_arch = "x86_64")]
    if simd::has_bf16_pairs() {
        let start = Instant::now();
        threads::parallel(count, &|_| {
            // SAFETY: just asked for.
            black_box(unsafe { pairs(ROUNDS) });
        });
        let seconds = start.elapsed().as_secs_f64();
        return 2.0 * (24 * 16 * 2) as f64 * ROUNDS as f64 * count as f64 / seconds;
    }
    fma_peak(count)
}
