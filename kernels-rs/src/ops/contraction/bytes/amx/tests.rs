use super::super::tests::{BYTES, SIZES, values, want, wide};
use super::super::{Panels, packed};
use super::*;
use crate::array::Array;
use crate::dtype::DType;
use crate::machine::amx::{Processor, model::Model};
use crate::machine::needs;
use crate::machine::threads::set_num_threads;
use crate::ops::contraction::tests::Random;

/// A product whose right side is int8.
fn product<U: Unit, T: Value>(a: &Array, b: &Array) -> Vec<i32> {
    let size @ (m, k, n) = (a.shape()[0], a.shape()[1], b.shape()[1]);
    let cells = packed(b.as_slice::<i8>().unwrap(), (k, n), 0).unwrap();
    let mut out = vec![0; m * n];
    let (right, to) = (Panels::of(&cells, n), SharedMut::new(out.as_mut_ptr()));
    // SAFETY: the caller chose a unit that is there, and asked for AVX-512.
    unsafe {
        let left = Rows::new(a.as_slice::<T>().unwrap(), (m, k)).unwrap();
        run::<U, T>(&Job { left: &[], size, offset: T::LEAST, right, to }, &left, 0);
    }
    out
}

fn check<U: Unit>(random: &mut Random, (m, k, n): (usize, usize, usize), threads: &[usize]) {
    for dtype in BYTES {
        let (a, b) = (values(random, &[m, k], dtype), values(random, &[k, n], DType::I8));
        let wanted = want(&wide(&a), &wide(&b), (m, k, n));
        for &threads in threads {
            set_num_threads(threads);
            let got = if dtype == DType::I8 { product::<U, i8>(&a, &b) } else { product::<U, u8>(&a, &b) };
            assert!(got == wanted, "{m} {k} {n} {dtype:?}, {threads} threads");
        }
    }
}

#[test]
fn sizes_and_threads() {
    let mut random = Random(34);
    // The last goes along the depth in two blocks and more.
    let more = [(1, 64, 32), (17, 1030, 33), (31, 63, 1), (32, 2100, 64), (100, 65, 95), (258, 4170, 33)];
    for size in more.into_iter().chain(SIZES).filter(|_| needs::packs_bytes()) {
        check::<Model>(&mut random, size, &[1, 2, 64]);
        if needs::tiles() {
            check::<Processor>(&mut random, size, &[1, 2, 3, 64]);
        }
    }
}

#[test]
fn results_past_the_caches() {
    let mut random = Random(35);
    if needs::tiles() {
        check::<Processor>(&mut random, (600, 70, 1040), &[1, 4]);
    }
}
