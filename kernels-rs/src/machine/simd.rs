//! Run-time choice of the instruction set.

use super::amx;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// What this machine can run, in rising order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// What the target guarantees: SSE2 on x86-64, NEON on aarch64.
    Baseline = 1,
    /// AVX2 with BMI1, BMI2, F16C and FMA.
    Avx2 = 2,
    /// AVX-512 F, BW, DQ, VL.
    Avx512 = 3,
}

static LEVEL: AtomicU8 = AtomicU8::new(0);
/// Set before the level.
static PAIRS: AtomicBool = AtomicBool::new(false);
/// Set before the level.
static BYTES: AtomicBool = AtomicBool::new(false);
/// Set before the level.
static AMX: AtomicBool = AtomicBool::new(false);

/// The best level here; `PHLOX_SIMD=baseline|avx2|avx512` lowers it, `avx512_bf16` is `avx512` with its bfloat16 products.
/// Tiles are used where nothing is lowered. On aarch64 there is one level, and `baseline` does without the products of pairs
/// and of bytes.
#[inline]
pub fn level() -> Level {
    match LEVEL.load(Acquire) {
        1 => Level::Baseline,
        2 => Level::Avx2,
        3 => Level::Avx512,
        _ => detect(),
    }
}

#[cold]
fn detect() -> Level {
    let asked = std::env::var("PHLOX_SIMD");
    let used = choose(asked.as_deref().ok(), &Has::here());
    PAIRS.store(used.pairs, Relaxed);
    BYTES.store(used.bytes, Relaxed);
    AMX.store(used.tiles && amx::ask(), Relaxed);
    // Whoever sees the level sees what was set before it.
    LEVEL.store(used.level as u8, Release);
    used.level
}

/// What the processor has.
struct Has {
    level: Level,
    pairs: bool,
    /// Whether multiplying pairs is faster than widening them.
    pairs_pay: bool,
    bytes: bool,
}

impl Has {
    fn here() -> Self {
        Self { level: available(), pairs: multiplies_pairs(), pairs_pay: pairs_pay(), bytes: multiplies_bytes() }
    }
}

/// What is used of it; tiles only if they are there too.
#[derive(Debug, PartialEq)]
struct Used {
    level: Level,
    pairs: bool,
    bytes: bool,
    tiles: bool,
}

fn choose(asked: Option<&str>, has: &Has) -> Used {
    let wanted = match asked {
        Some("baseline") => Level::Baseline,
        Some("avx2") => Level::Avx2,
        _ => Level::Avx512,
    };
    let level = wanted.min(has.level);
    let pairs = match asked {
        Some("avx512") => false,
        Some("avx512_bf16") => true,
        _ => has.pairs_pay,
    };
    let whole = if cfg!(target_arch = "x86_64") { level == Level::Avx512 } else { wanted != Level::Baseline };
    let narrow = whole && has.pairs;
    let lowered = matches!(asked, Some("baseline" | "avx2" | "avx512" | "avx512_bf16"));
    Used { level, pairs: narrow && pairs, bytes: whole && has.bytes, tiles: narrow && !lowered }
}

#[cfg(target_arch = "x86_64")]
fn available() -> Level {
    // Each feature that code is compiled for: a hypervisor may hide any one of them.
    let avx2 = is_x86_feature_detected!("avx")
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("fma");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    match (avx2, avx512) {
        (true, true) => Level::Avx512,
        (true, false) => Level::Avx2,
        _ => Level::Baseline,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn available() -> Level {
    Level::Baseline
}

#[cfg(target_arch = "x86_64")]
fn multiplies_pairs() -> bool {
    is_x86_feature_detected!("avx512bf16")
}

#[cfg(target_arch = "aarch64")]
fn multiplies_pairs() -> bool {
    std::arch::is_aarch64_feature_detected!("bf16")
}

#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
fn multiplies_pairs() -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
fn multiplies_bytes() -> bool {
    is_x86_feature_detected!("avx512vnni")
}

#[cfg(target_arch = "aarch64")]
fn multiplies_bytes() -> bool {
    std::arch::is_aarch64_feature_detected!("dotprod")
}

#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
fn multiplies_bytes() -> bool {
    false
}

/// Whether multiplying pairs is faster than widening them. On an Intel Xeon (family 6, model 207) the instruction takes 0.72
/// ns where a multiply-add of sixteen floats takes 0.29 ns, which is 0.8 of its rate; on AMD (Zen 4) both take as long. Other
/// kinds were not measured.
#[cfg(target_arch = "x86_64")]
fn pairs_pay() -> bool {
    // Before Rust 1.94 it was an unsafe function.
    #[allow(unused_unsafe)]
    // SAFETY: every x86-64 processor has the instruction.
    let vendor = unsafe { std::arch::x86_64::__cpuid(0) };
    [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).concat() != b"GenuineIntel"
}

#[cfg(not(target_arch = "x86_64"))]
fn pairs_pay() -> bool {
    true
}

/// True when products of bfloat16 go by the instruction that multiplies and adds pairs: where this machine has it and
/// gains by it, or was told to.
#[inline]
pub fn has_bf16_pairs() -> bool {
    level(); // Says what follows, once.
    PAIRS.load(Relaxed)
}

/// True when products of bfloat16 go by the unit that multiplies tiles; what rounds their sums is there too.
#[inline]
pub fn has_amx() -> bool {
    level() == Level::Avx512 && AMX.load(Relaxed)
}

/// True when the instruction that multiplies four bytes and adds them to an int32 is there, of whole registers.
#[inline]
pub fn has_byte_products() -> bool {
    level(); // Says what follows, once.
    BYTES.load(Relaxed)
}

/// Compiles an `#[inline(always)]` function for each level and calls the best one:
/// `vectorize!(name[T: Bound](a: A, b: B) -> R => generic::<T>)` defines `fn name<T: Bound>(a: A, b: B) -> R`, and `unsafe name`
/// an unsafe function. With `, wide T::WIDE` at its end the build for AVX-512 is that of such types alone; with `, fast T::FAST`
/// there are others than what every machine runs for such types alone.
#[macro_export]
macro_rules! vectorize {
    (@build [$($kind:ident)?] [$(#[$meta:meta])* $vis:vis] $name:ident $([$($g:ident : $bound:path),*])?
        ($($arg:ident : $ty:ty),* $(,)?) $(-> $ret:ty)? => $inner:path $(, wide $wide:expr)? $(, fast $fast:expr)?) => {
        $(#[$meta])*
        #[inline]
        $vis $($kind)? fn $name $(<$($g: $bound),*>)? ($($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2")]
                $($kind)? fn avx2 $(<$($g: $bound),*>)? ($($arg: $ty),*) $(-> $ret)? { $inner($($arg),*) }
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2")]
                $($kind)? fn avx512 $(<$($g: $bound),*>)? ($($arg: $ty),*) $(-> $ret)? { $inner($($arg),*) }
                // Once for all callers: what old processors run is no part of each.
                #[inline(never)]
                $($kind)? fn base $(<$($g: $bound),*>)? ($($arg: $ty),*) $(-> $ret)? { $inner($($arg),*) }
                let level = $crate::machine::simd::level();
                if level == $crate::machine::simd::Level::Avx512 $(&& $wide)? $(&& $fast)? {
                    // SAFETY: the level says that the CPU has these features.
                    return unsafe { avx512 $(::<$($g),*>)? ($($arg),*) };
                }
                if level >= $crate::machine::simd::Level::Avx2 $(&& $fast)? {
                    // SAFETY: as above.
                    return unsafe { avx2 $(::<$($g),*>)? ($($arg),*) };
                }
                base $(::<$($g),*>)? ($($arg),*)
            }
            #[cfg(not(target_arch = "x86_64"))]
            $inner($($arg),*)
        }
    };
    ($(#[$meta:meta])* unsafe $vis:vis $name:ident $($rest:tt)*) => {
        $crate::vectorize!(@build [unsafe] [$(#[$meta])* $vis] $name $($rest)*);
    };
    ($(#[$meta:meta])* $vis:vis $name:ident $($rest:tt)*) => {
        $crate::vectorize!(@build [] [$(#[$meta])* $vis] $name $($rest)*);
    };
}

/// Asks for the cache line at an address; never faults.
#[inline(always)]
pub fn prefetch<T>(at: *const T) {
    ask::<FIRST_LEVEL>(at.cast());
}

/// Asks for the cache line at an address, to come to the second-level cache; never faults.
#[inline(always)]
pub fn prefetch_near<T>(at: *const T) {
    ask::<SECOND_LEVEL>(at.cast());
}

/// The hints of `prefetcht0` and `prefetcht1`, by Intel's numbers.
const FIRST_LEVEL: i32 = 3;
const SECOND_LEVEL: i32 = 2;

#[inline(always)]
fn ask<const HINT: i32>(at: *const i8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint that touches nothing.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<HINT>(at);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// The same address, of which the compiler knows nothing: not what lies beside it either. Rust has no stable inline
/// assembly for this machine.
#[cfg(target_arch = "wasm32")]
#[inline(always)]
pub fn opaque<T>(at: *const T) -> *const T {
    std::hint::black_box(at)
}

/// The same address, of which the compiler knows nothing: not what lies beside it either.
#[cfg(not(target_arch = "wasm32"))]
#[inline(always)]
#[expect(clippy::pointers_in_nomem_asm_block, reason = "what lies there is not looked at")]
pub fn opaque<T>(at: *const T) -> *const T {
    let same;
    // SAFETY: no instruction at all.
    unsafe {
        std::arch::asm!("/* {0} */", inlateout(reg) at => same, options(pure, nomem, nostack, preserves_flags));
    }
    same
}

/// Asks for the cache line at an address, which will be written; never faults.
#[inline(always)]
pub fn prefetch_to_write<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint that touches nothing, and nothing at all where a processor does not know it.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

#[cfg(test)]
mod tests;
