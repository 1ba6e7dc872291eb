use super::*;

#[test]
fn long_key_axes_are_cut_for_many_threads() {
    for (heads, keys, tasks) in
        [(1, 16_384, 32), (8, 4096, 32), (1, 4096, 32), (1, 1024, 8), (3, 100_000, 33), (64, 4096, 64), (1, 9, 1)]
    {
        let (pieces, piece) = cut(heads, keys);
        assert_eq!(heads * pieces, tasks, "{heads} heads, {keys} keys");
        assert!(pieces * piece >= keys && (pieces - 1) * piece < keys);
    }
}
