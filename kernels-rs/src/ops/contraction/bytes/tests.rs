use super::super::tests::Random;
use super::super::{matmul, matmul_integer};
use super::*;
use crate::array::view;
use crate::dtype::DType;
use crate::machine::threads::set_num_threads;
use crate::ops::elementwise::convert::cast;

/// Bytes of any value.
pub fn values(random: &mut Random, shape: &[usize], dtype: DType) -> Array {
    let bytes: Vec<i32> = (0..shape.iter().product()).map(|_| random.next(256) as i32).collect();
    cast(&Array::from_slice(&bytes, shape).unwrap(), dtype).unwrap()
}

pub fn wide(x: &Array) -> Vec<i32> {
    cast(x, DType::I32).unwrap().to_vec().unwrap()
}

fn product(a: &Array, b: &Array) -> Vec<i32> {
    matmul_integer(a, b, DType::I32).unwrap().to_vec().unwrap()
}

/// Of products: rows, depth, columns.
pub const SIZES: [(usize, usize, usize); 7] =
    [(8, 8, 8), (9, 33, 40), (14, 64, 32), (15, 65, 31), (200, 130, 70), (40, 1030, 33), (7, 9, 90)];
/// Both kinds.
pub const BYTES: [DType; 2] = [DType::I8, DType::U8];

/// The definition, for one product.
pub fn want(a: &[i32], b: &[i32], (m, k, n): (usize, usize, usize)) -> Vec<i32> {
    let sum =
        |i: usize, j: usize| (0..k).fold(0i32, |sum, l| sum.wrapping_add(a[i * k + l].wrapping_mul(b[l * n + j])));
    (0..m * n).map(|at| sum(at / n, at % n)).collect()
}

#[test]
fn bytes_multiply_as_int32_does() {
    let mut random = Random(36);
    for (round, (m, k, n)) in SIZES.into_iter().chain([(64, 300, 33)]).enumerate() {
        set_num_threads(1 + round % 3);
        for (left, right) in BYTES.into_iter().flat_map(|left| BYTES.map(|right| (left, right))) {
            let (a, b) = (values(&mut random, &[2, m, k], left), values(&mut random, &[k, n], right));
            let wanted = want(&wide(&a), &wide(&b), (2 * m, k, n));
            let turned = view::permute_dims(&b, &[1, 0]).unwrap().contiguous().unwrap();
            let turned = view::permute_dims(&turned, &[1, 0]).unwrap();
            for b in [&b, &b, &b, &turned] {
                assert!(product(&a, b) == wanted, "{m} {k} {n} {left:?} {right:?}");
            }
            let whole = matmul(&cast(&a, DType::I32).unwrap(), &cast(&b, DType::I32).unwrap()).unwrap();
            assert!(whole.to_vec::<i32>().unwrap() == wanted, "{m} {k} {n} {left:?} {right:?}");
            let narrow = matmul_integer(&a, &b, DType::I16).unwrap();
            assert!(narrow.to_vec::<i16>().unwrap().iter().zip(&wanted).all(|(&got, &want)| got == want as i16));
        }
    }
    let (floats, row) = (Array::zeros(DType::F32, &[2, 2]).unwrap(), Array::zeros(DType::I8, &[2, 2]).unwrap());
    assert!(matmul_integer(&row, &floats, DType::I32).is_err());
    assert!(matmul_integer(&row, &row, DType::F32).is_err());
}

#[test]
fn a_right_side_is_kept_from_its_second_use_on() {
    let mut random = Random(33);
    let (m, k, n) = (9, 40, 70);
    let (a, b) = (values(&mut random, &[m, k], DType::U8), values(&mut random, &[k, n], DType::I8));
    let wanted = want(&wide(&a), &wide(&b), (m, k, n));
    let there_are =
        |count: usize| assert_eq!(b.storage().packed().count(), if simd::has_byte_products() { count } else { 0 });
    for uses in 0..4 {
        there_are(usize::from(uses > 1));
        assert!(product(&a, &b) == wanted, "use {uses}");
    }
    // Another left side, and columns of the right one, which are a layout of their own.
    let more = values(&mut random, &[3, m, k], DType::I8);
    assert!(product(&more, &b) == want(&wide(&more), &wide(&b), (3 * m, k, n)));
    let columns = view::slice(&b, &[0, 10], &[k, 40], &[1, 1]).unwrap();
    let wanted = want(&wide(&a), &wide(&columns), (m, k, 40));
    for _ in 0..3 {
        assert!(product(&a, &columns) == wanted);
    }
    there_are(2);
}

#[test]
fn batches_of_any_layout_are_those_of_dense_operands() {
    let mut random = Random(33);
    let a = values(&mut random, &[4, 16, 8, 32], DType::I8);
    let (one, two) = (values(&mut random, &[32, 24], DType::I8), values(&mut random, &[4, 1, 32, 24], DType::U8));
    let turned = view::permute_dims(&a, &[0, 2, 1, 3]).unwrap();
    let spread = view::broadcast_to(&one, &[4, 16, 32, 24]).unwrap();
    for (a, b) in [(&a, &spread), (&turned, &two), (&turned, &one)] {
        let (got, m, x, y) = (product(a, b), a.shape()[2], wide(a), wide(b));
        let (across, size) = (a.shape()[1], (m, 32, 24));
        for (item, got) in got.chunks_exact(m * 24).enumerate() {
            let right = match b.rank() {
                2 => 0,
                _ if b.shape()[1] == 1 => item / across,
                _ => item,
            };
            assert!(got == want(&x[item * m * 32..], &y[right * 32 * 24..], size), "product {item} of {a:?} and {b:?}");
        }
    }
}

#[test]
fn batches_share_what_is_repeated() {
    let mut random = Random(32);
    let (m, k, n) = (10, 20, 40);
    let (a, b) = (values(&mut random, &[3, m, k], DType::U8), values(&mut random, &[2, 1, k, n], DType::U8));
    let (got, a, b) = (product(&a, &b), wide(&a), wide(&b));
    for (item, got) in got.chunks_exact(m * n).enumerate() {
        let wanted = want(&a[item % 3 * m * k..], &b[item / 3 * k * n..], (m, k, n));
        assert!(got == wanted, "product {item}");
    }
}
