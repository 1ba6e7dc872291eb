//! The sizes of caches, as the processor tells them.

use std::sync::OnceLock;

/// What is assumed where the processor does not tell.
const SECOND_LEVEL: usize = 1 << 20;

/// Bytes of the second-level cache of one core.
pub fn second_level() -> usize {
    static SIZE: OnceLock<usize> = OnceLock::new();
    *SIZE.get_or_init(|| told().unwrap_or(SECOND_LEVEL))
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
mod tests {
    use super::*;

    #[test]
    fn a_size_that_a_cache_can_have() {
        assert!((1 << 16..=1 << 26).contains(&second_level()), "{}", second_level());
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn fields_of_a_cache_of_two_mebibytes() {
        // 16 ways, 1 partition, lines of 64 bytes, 2048 sets.
        assert_eq!(bytes(15 << 22 | 63, 2047), 2 << 20);
    }
}
