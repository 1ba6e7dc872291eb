//! The sizes of caches, as the processor or else the system tells them.

use std::path::Path;
use std::sync::OnceLock;

/// What is assumed where neither tells.
const SECOND_LEVEL: usize = 1 << 20;
/// Where Linux lists the caches of the first processor (Documentation/ABI/testing/sysfs-devices-system-cpu).
const LISTED: &str = "/sys/devices/system/cpu/cpu0/cache";

/// Bytes of the second-level cache of one core.
pub fn second_level() -> usize {
    static SIZE: OnceLock<usize> = OnceLock::new();
    *SIZE.get_or_init(|| told().or_else(|| listed(Path::new(LISTED))).unwrap_or(SECOND_LEVEL))
}

/// The first cache of level 2 for data among those that are listed in a folder, if there is one.
fn listed(folder: &Path) -> Option<usize> {
    let mut found: Vec<_> = std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.sort();
    found.into_iter().find_map(|cache| {
        let text = |name: &str| std::fs::read_to_string(cache.join(name)).ok().map(|text| text.trim().to_owned());
        (text("level")? == "2" && text("type")? != "Instruction").then(|| size(&text("size")?)).flatten()
    })
}

/// Bytes in a number with a unit, as Linux writes it; 0 is no size.
fn size(text: &str) -> Option<usize> {
    let (number, unit) = text.split_at(text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic()).len());
    let scale = match unit {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        _ => return None,
    };
    number.parse().ok().and_then(|number: usize| number.checked_mul(scale)).filter(|&bytes| bytes > 0)
}

#[cfg(not(target_arch = "x86_64"))]
fn told() -> Option<usize> {
    None
}

/// The first cache of level 2 among those that leaf 4 (Intel) or `0x8000_001d` (AMD) lists, both of the same form: Intel 64
/// and IA-32 Architectures Software Developer's Manual, volume 2, CPUID; AMD64 Architecture Programmer's Manual, volume 3,
/// appendix E.
#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe, reason = "newer compilers call these functions safe")]
fn told() -> Option<usize> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    const MOST_CACHES: u32 = 8;
    // SAFETY: each x86-64 processor has the instruction; a leaf is read only where the processor says that it exists.
    let leaf = |leaf: u32, index: u32| unsafe {
        (__cpuid(leaf & 0x8000_0000).eax >= leaf).then(|| __cpuid_count(leaf, index))
    };
    let of_kind = |kind: u32| {
        let caches = (0..MOST_CACHES).map_while(|index| leaf(kind, index).filter(|cache| cache.eax & 31 != 0));
        caches
            .filter(|cache| cache.eax >> 5 & 7 == 2 && cache.eax & 31 != 2)
            .map(|cache| bytes(cache.ebx, cache.ecx))
            .next()
    };
    [4, 0x8000_001d].into_iter().find_map(of_kind)
}

/// Ways, partitions, bytes of a line and sets, each less one, in the fields that the leaves have.
#[cfg(target_arch = "x86_64")]
fn bytes(ebx: u32, sets: u32) -> usize {
    let part = |shift: u32, bits: u32| (ebx >> shift & ((1 << bits) - 1)) as usize + 1;
    part(22, 10) * part(12, 10) * part(0, 12) * (sets as usize + 1)
}

#[cfg(test)]
mod tests;
