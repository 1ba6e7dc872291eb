use super::super::needs::said;
use super::*;

/// An emulated processor is said to have these: then no test of theirs passes by another way.
#[test]
fn what_the_processor_has_is_found() {
    let (pairs, bytes) =
        if cfg!(target_arch = "x86_64") { ("avx512_bf16", "avx512_vnni") } else { ("bf16", "dotprod") };
    if let (Some(pairs), Some(bytes)) = (said(pairs), said(bytes)) {
        assert_eq!((multiplies_pairs(), multiplies_bytes()), (pairs, bytes));
    }
}

#[test]
fn what_is_used_is_what_the_setting_says() {
    let asked = std::env::var("PHLOX_SIMD");
    let used = choose(asked.as_deref().ok(), &Has::here());
    assert_eq!((level(), has_bf16_pairs(), has_byte_products()), (used.level, used.pairs, used.bytes));
    assert_eq!(has_amx(), used.tiles && amx::ask());
}

/// Level, pairs, bytes and tiles, by the setting.
type Row = (Option<&'static str>, Level, [bool; 3]);

#[cfg(target_arch = "x86_64")]
const LOWERED: [(Has, &[Row]); 3] = {
    use Level::{Avx2, Avx512, Baseline};
    const NONE: [bool; 3] = [false; 3];
    [
        (
            Has { level: Avx512, pairs: true, pairs_pay: true, bytes: true },
            &[
                (None, Avx512, [true; 3]),
                (Some("baseline"), Baseline, NONE),
                (Some("avx2"), Avx2, NONE),
                (Some("avx512"), Avx512, [false, true, false]),
                (Some("avx512_bf16"), Avx512, [true, true, false]),
            ],
        ),
        (
            Has { level: Avx512, pairs: true, pairs_pay: false, bytes: false },
            &[
                (None, Avx512, [false, false, true]),
                (Some("avx512"), Avx512, NONE),
                (Some("avx512_bf16"), Avx512, [true, false, false]),
            ],
        ),
        // A hypervisor that hides part of AVX-512.
        (
            Has { level: Avx2, pairs: true, pairs_pay: true, bytes: true },
            &[
                (None, Avx2, NONE),
                (Some("baseline"), Baseline, NONE),
                (Some("avx512"), Avx2, NONE),
                (Some("avx512_bf16"), Avx2, NONE),
            ],
        ),
    ]
};

// Off x86-64 there are no tiles to ask for.
#[cfg(not(target_arch = "x86_64"))]
const LOWERED: [(Has, &[Row]); 1] = [(
    Has { level: Level::Baseline, pairs: true, pairs_pay: true, bytes: true },
    &[
        (None, Level::Baseline, [true; 3]),
        (Some("baseline"), Level::Baseline, [false; 3]),
        (Some("avx512"), Level::Baseline, [false, true, false]),
        (Some("avx512_bf16"), Level::Baseline, [true, true, false]),
    ],
)];

#[test]
fn each_setting_lowers_what_it_names() {
    for (has, rows) in LOWERED {
        for &(asked, level, [pairs, bytes, tiles]) in rows {
            assert_eq!(choose(asked, &has), Used { level, pairs, bytes, tiles }, "{asked:?} of {:?}", has.level);
        }
    }
}
