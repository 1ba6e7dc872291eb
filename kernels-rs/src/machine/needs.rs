//! What tests need of the processor. `PHLOX_TEST_HAS` names what it has, for one that is emulated or that the system describes:
//! then a test that would pass without having tested anything fails.

/// Whether it was said that the processor has this; `None` where nothing was said.
pub fn said(name: &str) -> Option<bool> {
    let said = std::env::var("PHLOX_TEST_HAS").ok()?;
    Some(said.split(',').any(|word| word == name))
}

/// Tiles by the unit (`amx`).
#[cfg(target_arch = "x86_64")]
pub fn tiles() -> bool {
    // A setting that lowers what is used switches the unit off.
    let lowered = std::env::var_os("PHLOX_SIMD").is_some();
    here("amx", super::simd::has_amx(), lowered)
}

/// What tiles of bfloat16 are packed and rounded with, by the unit and by its model (`avx512_bf16`).
#[cfg(target_arch = "x86_64")]
pub fn packs_pairs() -> bool {
    let has = is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512bf16")
        && is_x86_feature_detected!("avx512vl");
    here("avx512_bf16", has, false)
}

/// What tiles of bytes are packed with (`avx512f`).
#[cfg(target_arch = "x86_64")]
pub fn packs_bytes() -> bool {
    here("avx512f", is_x86_feature_detected!("avx512f"), false)
}

#[cfg(target_arch = "x86_64")]
fn here(name: &str, found: bool, lowered: bool) -> bool {
    assert!(found || lowered || said(name) != Some(true), "{name} was said to be here and is not found");
    if !found {
        println!("not tested here: what takes {name}");
    }
    found
}
