use super::*;

#[test]
fn a_size_that_a_cache_can_have() {
    assert!((1 << 16..=1 << 26).contains(&second_level()), "{}", second_level());
}

#[test]
fn what_the_system_lists() {
    let folder = std::env::temp_dir().join(format!("phlox-caches-{}", std::process::id()));
    let caches =
        [("1", "Data", "48K"), ("2", "Instruction", "1K"), ("2", "Unified", "2048K\n"), ("3", "Unified", "32M")];
    for (index, (level, kind, size)) in caches.into_iter().enumerate() {
        let cache = folder.join(format!("index{index}"));
        std::fs::create_dir_all(&cache).unwrap();
        for (name, text) in [("level", level), ("type", kind), ("size", size)] {
            std::fs::write(cache.join(name), text).unwrap();
        }
    }
    let found = listed(&folder);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!((found, listed(&folder)), (Some(2 << 20), None));
    assert_eq!(["512", "3M", "0K", "", "K", "1G"].map(size), [Some(512), Some(3 << 20), None, None, None, None]);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn fields_of_a_cache_of_two_mebibytes() {
    // 16 ways, 1 partition, lines of 64 bytes, 2048 sets.
    assert_eq!(bytes(15 << 22 | 63, 2047), 2 << 20);
}
