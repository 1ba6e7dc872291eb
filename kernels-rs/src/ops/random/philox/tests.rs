use super::*;

fn one(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let mut c = counter.map(|word| [word as u64]);
    rounds(&mut c, key);
    c.map(|[word]| word as u32)
}

/// Source: `kat_vectors` of Random123.
#[test]
fn known_answers() {
    assert_eq!(one([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    assert_eq!(one([u32::MAX; 4], [u32::MAX; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
    let pi = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
    let answer = [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1];
    assert_eq!(one(pi, [0xa409_3822, 0x299f_31d0]), answer);
}

#[test]
fn streams_are_made_of_blocks() {
    let (key, first) = (0x0123_4567_89ab_cdef_u64, 0xffff_fff0_u64);
    for count in [0, 1, 3, 4, 63, 64, 65, 1000] {
        let mut out = vec![0; count];
        words(&mut out, key, first);
        for (at, &word) in out.iter().enumerate() {
            let block = first + (at / 4) as u64;
            assert_eq!(word, one([block as u32, (block >> 32) as u32, 0, 0], [key as u32, (key >> 32) as u32])[at % 4]);
        }
    }
    let mut wrapped = [0; 8];
    words(&mut wrapped, 0, u64::MAX);
    assert_eq!(wrapped[4..], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
}
