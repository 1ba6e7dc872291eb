//! Visits the inputs in chunks on all threads, compares, keeps the worst.

use crate::Array;
use crate::Element;
use crate::machine::simd::level;
use crate::machine::threads;
use crate::vectorize;
use std::io::Write;
use std::sync::Mutex;

pub const LIMIT: f64 = 2.0;
/// Small enough that buffers stay in cache.
const CHUNK: u64 = 1 << 12;
/// References of many numbers err by at most 4 units of `f64`: what they call worse than this below the worst is not.
const DOUBT: f64 = 1e-6;

/// The two references of a function: the platform's, and one for many numbers at once that only decides which
/// inputs the first has to judge.
#[derive(Clone, Copy)]
pub struct Row {
    pub scalar: fn(f64) -> f64,
    pub many: fn(&[f64], &mut [f64]),
}

/// Distance of neighbouring samples: odd, so that all exponents and low bits are met.
pub fn step() -> u64 {
    std::env::var("PHLOX_ULP_STEP").ok().and_then(|text| text.parse().ok()).unwrap_or(1009)
}

/// Units in the last place of `f32` at the exact value.
fn ulp(exact: f64) -> f64 {
    let magnitude = exact.abs().max(f32::MIN_POSITIVE as f64);
    let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).min(127);
    2f64.powi(exponent - 23)
}

/// Error in ulp; infinite where a special value is wrong.
pub fn error(got: f32, exact: f64) -> f64 {
    let rounded = exact as f32;
    if got.to_bits() == rounded.to_bits() || (got.is_nan() && exact.is_nan()) || (got == rounded && got != 0.0) {
        return 0.0;
    }
    if got.is_nan() || exact.is_nan() {
        return f64::INFINITY;
    }
    if got == 0.0 && rounded == 0.0 {
        // The sign of an exact 0 counts; that of an underflow does not.
        return if exact == 0.0 { f64::INFINITY } else { 0.0 };
    }
    let got = if got.is_infinite() { 2f64.powi(128).copysign(got as f64) } else { got as f64 };
    let exact = exact.clamp(-(2f64.powi(128)), 2f64.powi(128));
    (got - exact).abs() / ulp(exact)
}

#[derive(Clone, Copy, Default)]
struct Worst {
    off: f64,
    input: f32,
    got: f32,
    rounded: u64,
}

/// Inputs of one chunk; empty after the last.
fn inputs(chunk: u64, step: u64) -> Vec<f32> {
    let first = chunk * CHUNK * step;
    let count = (1u64 << 32).saturating_sub(first).div_ceil(step).min(CHUNK);
    (0..count).map(|i| f32::from_bits((first + i * step) as u32)).collect()
}

fn for_chunks(work: &(dyn Fn(u64, Vec<f32>) + Sync)) -> u64 {
    let step = step();
    let chunks = (1u64 << 32).div_ceil(CHUNK * step);
    threads::parallel(chunks as usize, &|chunk| work(chunk as u64, inputs(chunk as u64, step)));
    (1u64 << 32).div_ceil(step)
}

/// What a chunk needs besides its inputs.
struct Buffers {
    wide: Vec<f64>,
    exact: Vec<f64>,
    doubtful: Vec<u8>,
}

/// Checks a function of `f32` to [`LIMIT`] and tells its largest error.
pub fn near(name: &str, function: &(dyn Fn(&Array) -> Array + Sync), row: Row) {
    let worst = Mutex::new(Worst::default());
    let visited = for_chunks(&|_, inputs| {
        let before = worst.lock().unwrap().off;
        let local = near_chunk(&inputs, function, row, before);
        let mut worst = worst.lock().unwrap();
        let rounded = worst.rounded + local.rounded;
        if local.off > worst.off {
            *worst = local;
        }
        worst.rounded = rounded;
    });
    let Worst { off, input, got, rounded } = *worst.lock().unwrap();
    let exact = (row.scalar)(input as f64);
    println!("{name:14} {off:.3} ulp at {input:e} (got {got:e}, exact {exact:e})");
    assert!(off <= LIMIT, "{name}: {off} ulp at {input:e}: got {got:e}, exact {exact:e}");
    tell(&format!("{name}\t{off}\t{input:e}\t{visited}\t{rounded}"));
}

fn near_chunk(inputs: &[f32], function: &dyn Fn(&Array) -> Array, row: Row, before: f64) -> Worst {
    let x = Array::from_slice(inputs, &[inputs.len()]).unwrap();
    let y = function(&x);
    let got = y.as_slice::<f32>().expect("a float32 result");
    let mut buffers =
        Buffers { wide: vec![0.0; inputs.len()], exact: vec![0.0; inputs.len()], doubtful: vec![0; inputs.len()] };
    widen(inputs, &mut buffers.wide);
    (row.many)(&buffers.wide, &mut buffers.exact);
    let rounded = screen(got, &buffers.exact, before - DOUBT, &mut buffers.doubtful);
    let mut local = Worst { off: before, rounded, ..Worst::default() };
    for (i, &doubtful) in buffers.doubtful.iter().enumerate() {
        if doubtful != 0 {
            let off = error(got[i], (row.scalar)(buffers.wide[i]));
            if off > local.off {
                local = Worst { off, input: inputs[i], got: got[i], rounded };
            }
        }
    }
    local
}

vectorize!(widen(from: &[f32], to: &mut [f64]) => widen_loop);
#[inline(always)]
fn widen_loop(from: &[f32], to: &mut [f64]) {
    for (to, &from) in to.iter_mut().zip(from) {
        *to = from as f64;
    }
}

vectorize!(screen(got: &[f32], exact: &[f64], above: f64, doubtful: &mut [u8]) -> u64 => screen_loop);
/// Marks the results that may be off by more than `above` ulp, and counts those that are the rounded reference.
#[inline(always)]
fn screen_loop(got: &[f32], exact: &[f64], above: f64, doubtful: &mut [u8]) -> u64 {
    let mut rounded = 0;
    for ((&got, &exact), doubtful) in got.iter().zip(exact).zip(doubtful) {
        let same = (got.to_bits() == (exact as f32).to_bits()) | (got.is_nan() & exact.is_nan());
        let magnitude = exact.abs().max(f32::MIN_POSITIVE as f64).min(f32::MAX as f64);
        // 2^(23 - exponent), from the exponent's own bits.
        let per_ulp = f64::from_bits((1023 + 23 + 1023 - (magnitude.to_bits() >> 52)) << 52);
        let off = (got as f64 - exact).abs() * per_ulp;
        *doubtful = u8::from(!(same | (off <= above)));
        rounded += u64::from(same);
    }
    rounded
}

/// Checks a function whose every result is exact.
pub fn exact<T: Element>(
    name: &str,
    function: &(dyn Fn(&Array) -> Array + Sync),
    want: impl Fn(f64) -> T + Sync,
    same: impl Fn(T, T) -> bool + Sync,
) {
    let visited = for_chunks(&|_, inputs| {
        let x = Array::from_slice(&inputs, &[inputs.len()]).unwrap();
        let y = function(&x);
        let got = y.as_slice::<T>().expect("the declared type");
        let wrong = inputs.iter().zip(got).position(|(&x, &y)| !same(y, want(x as f64)));
        assert!(wrong.is_none(), "{name}: wrong at {:e}", inputs[wrong.unwrap_or(0)]);
    });
    println!("{name:14} exact");
    tell(&format!("{name}\t0\t\t{visited}\t{visited}"));
}

/// Adds a line to the file that `PHLOX_ULP_TABLE` names: function, largest error in ulp, where, inputs, how many of them
/// gave the rounded reference, instruction set.
fn tell(line: &str) {
    if let Some(path) = std::env::var_os("PHLOX_ULP_TABLE") {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        writeln!(file, "{line}\t{:?}", level()).unwrap();
    }
}
