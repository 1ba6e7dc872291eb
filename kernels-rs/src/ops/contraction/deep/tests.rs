use super::super::matmul;
use super::super::tests::{Random, compare};
use super::*;
use crate::array::{Array, view};
use crate::machine::threads::set_num_threads;

#[test]
fn long_sums_keep_many_threads_busy() {
    for (size, parts) in [
        ((128, 50_000, 128), 16),
        ((64, 65_536, 64), 16),
        ((256, 32_768, 256), 8),
        ((8, 100_000, 3), 2),
        ((256, 8192, 256), 2),
        ((256, 4096, 256), 1),
        ((257, 50_000, 64), 1),
        ((1, 1 << 20, 1), 1),
        ((64, 4000, 64), 1),
    ] {
        let k: usize = size.1;
        assert_eq!(k.div_ceil(part(size)), parts, "{size:?}");
    }
}

fn bits(x: &Array) -> Vec<u64> {
    x.to_vec::<f64>().unwrap().into_iter().map(f64::to_bits).collect()
}

#[test]
fn parts_add_up_whatever_the_threads() {
    let mut random = Random(23);
    for (m, k, n) in [(48, 4103, 21), (16, 9000, 16), (4, 70_001, 9)] {
        assert!(part((m, k, n)) < k, "a product that is cut");
        let (turned, x2) = (random.dense::<f64>(&[k, m]), random.dense::<f64>(&[k, n]));
        let x1 = view::permute_dims(&turned, &[1, 0]).unwrap();
        compare::<f64>(&x1, &x2, 1e-14);
        compare::<f32>(&random.dense::<f32>(&[m, k]), &random.dense::<f32>(&[k, n]), 1e-6);
        set_num_threads(1);
        let alone = bits(&matmul(&x1, &x2).unwrap());
        set_num_threads(5);
        assert!(bits(&matmul(&x1, &x2).unwrap()) == alone, "{m} {k} {n}");
    }
}
