use super::panel::WIDTH;
use super::{Columns, cholesky, lu, qr, solve_triangular};
use crate::array::Array;
use crate::array::view;
use crate::dtype::DType;
use crate::ops::contraction::matmul;
use crate::ops::elementwise::convert::cast;
use crate::ops::samples::{Rng, floats, view_of};

/// Of sizes around those of panels, and others.
fn sizes(rng: &mut Rng) -> [usize; 2] {
    let lengths = [0, 1, 2, 5, 16, WIDTH - 1, WIDTH, WIDTH + 1, 2 * WIDTH + 3, 100, 150];
    [rng.pick(&lengths), rng.pick(&lengths)]
}

fn transposed(x: &Array) -> Array {
    let mut order: Vec<usize> = (0..x.rank()).collect();
    order.swap(x.rank() - 2, x.rank() - 1);
    view::permute_dims(x, &order).unwrap()
}

fn assert_near(found: &Array, wanted: &[f64], part: f64, what: &str) {
    let scale = wanted.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
    let tolerance = part * scale * if found.dtype() == DType::F64 { 1e-14 } else { 4e-6 };
    for (at, (a, b)) in floats(found).iter().zip(wanted).enumerate() {
        assert!((a - b).abs() <= tolerance, "{what} {:?}: {a} for {b} at {at}", found.shape());
    }
}

fn assert_unit(found: &Array, what: &str) {
    let n = found.shape()[found.rank() - 1];
    let count = found.numel() / (n * n).max(1);
    let unit: Vec<f64> =
        (0..count * n * n).map(|at| f64::from(u8::from((at % (n * n)).is_multiple_of(n + 1)))).collect();
    assert_near(found, &unit, 4.0, what);
}

/// Whether elements are 0 on one side of the diagonal.
fn is_triangle(x: &Array, upper: bool) -> bool {
    let [.., m, n] = x.shape()[..] else { unreachable!() };
    floats(x).iter().enumerate().all(|(at, &value)| {
        let (row, col) = (at / n % m, at % n);
        value == 0.0 || row == col || (col > row) == upper
    })
}

#[test]
fn factors_of_elimination_give_the_matrix_and_pivots_are_largest() {
    let mut rng = Rng::new(1);
    for round in 0..80 {
        let dtype = [DType::F32, DType::F64][round % 2];
        let [m, n] = sizes(&mut rng);
        let x = view_of(&mut rng, dtype, &[1 + round % 3, m, n], false);
        let (p, l, u) = lu(&x).unwrap();
        let k = m.min(n);
        assert_eq!(
            [p.shape()[1..].to_vec(), l.shape()[1..].to_vec(), u.shape()[1..].to_vec()],
            [[m, m], [m, k], [k, n]]
        );
        assert!(is_triangle(&l, false) && is_triangle(&u, true));
        assert!(floats(&l).iter().all(|x| x.abs() <= 1.0), "pivots are the largest");
        let found = matmul(&matmul(&p, &l).unwrap(), &u).unwrap();
        assert_near(&found, &floats(&x), 1.0 + k as f64, "p l u");
    }
}

#[test]
fn orthonormal_columns_and_their_triangle_give_the_matrix() {
    let mut rng = Rng::new(2);
    for round in 0..120 {
        let dtype = [DType::F32, DType::F64][round % 2];
        let columns = [Columns::Complete, Columns::Reduced][round / 2 % 2];
        let [m, n] = sizes(&mut rng);
        let x = view_of(&mut rng, dtype, &[1 + round % 3, m, n], false);
        let (q, r) = qr(&x, columns).unwrap();
        let across = if columns == Columns::Complete { m } else { m.min(n) };
        assert_eq!([q.shape()[1..].to_vec(), r.shape()[1..].to_vec()], [[m, across], [across, n]]);
        assert!(is_triangle(&r, true));
        assert_near(&matmul(&q, &r).unwrap(), &floats(&x), 8.0, "q r");
        if across > 0 {
            assert_unit(&matmul(&transposed(&q), &q).unwrap(), "qᵀ q");
        }
    }
}

#[test]
fn reflections_have_the_signs_of_lapack_and_leave_columns_that_are_done() {
    let x = Array::from_slice(&[3.0, 1.0, 4.0, 2.0], &[2, 2]).unwrap();
    let (q, r) = qr(&x, Columns::Reduced).unwrap();
    assert_near(&q, &[-0.6, -0.8, -0.8, 0.6], 1.0, "q");
    assert_near(&r, &[-5.0, -2.2, 0.0, 0.4], 1.0, "r");
    let done = Array::from_slice(&[2.0, 1.0, 0.0, -3.0], &[2, 2]).unwrap();
    let (q, r) = qr(&done, Columns::Reduced).unwrap();
    assert_eq!((floats(&q), floats(&r)), (vec![1.0, 0.0, 0.0, 1.0], floats(&done)));
}

#[test]
fn what_is_left_of_equal_columns_keeps_them_orthonormal() {
    for dtype in [DType::F32, DType::F64] {
        let mut rng = Rng::new(5);
        let column = view_of(&mut rng, dtype, &[90, 1], false);
        let x = view::broadcast_to(&column, &[90, 70]).unwrap();
        let (q, r) = qr(&x, Columns::Reduced).unwrap();
        assert_near(&matmul(&q, &r).unwrap(), &floats(&x), 8.0, "q r");
        assert_unit(&matmul(&transposed(&q), &q).unwrap(), "qᵀ q");
    }
}

#[test]
fn lengths_of_large_and_small_numbers_neither_overflow_nor_vanish() {
    for size in [1e30_f64, 1e-30, 1e-38] {
        let x = Array::from_slice(&[3.0 * size as f32, 4.0 * size as f32], &[2, 1]).unwrap();
        let (_, r) = qr(&x, Columns::Reduced).unwrap();
        assert!((floats(&r)[0] / size + 5.0).abs() < 1e-5, "{size}: {r:?}");
    }
    for size in [1e200_f64, 1e-200] {
        let x = Array::from_slice(&[3.0 * size, 4.0 * size], &[2, 1]).unwrap();
        let (_, r) = qr(&x, Columns::Reduced).unwrap();
        assert!((floats(&r)[0] / size + 5.0).abs() < 1e-14, "{size}: {r:?}");
    }
}

#[test]
fn triangles_of_definite_matrices_give_them_and_both_triangles_are_read() {
    let mut rng = Rng::new(3);
    for round in 0..60 {
        let dtype = [DType::F32, DType::F64][round % 2];
        let [n, _] = sizes(&mut rng);
        let some = view_of(&mut rng, dtype, &[1 + round % 3, n, n + 8], false);
        let mut values = floats(&matmul(&some, &transposed(&some)).unwrap());
        let shape = [1 + round % 3, n, n];
        let of = |values: &[f64]| cast(&Array::from_slice(values, &shape).unwrap(), dtype).unwrap();
        (0..values.len()).filter(|at| (at % (n * n)).is_multiple_of(n + 1)).for_each(|at| values[at] += 8.0);
        let x = of(&values);
        for matrix in values.chunks_exact_mut((n * n).max(1)).filter(|_| n > 1) {
            matrix[1] += 0.5;
            matrix[n] -= 0.5;
        }
        let uneven = of(&values);
        let lower = cholesky(&uneven, false).unwrap();
        let upper = cholesky(&uneven, true).unwrap();
        assert!(is_triangle(&lower, false));
        assert_eq!(floats(&transposed(&lower)), floats(&upper));
        assert_near(&matmul(&lower, &upper).unwrap(), &floats(&x), 4.0, "l lᵀ");
    }
}

#[test]
fn what_has_no_factors_is_refused() {
    let of = |values: &[f32], shape: &[usize]| Array::from_slice(values, shape).unwrap();
    for bad in [[1.0, 2.0, 2.0, 1.0], [0.0; 4], [1.0, 0.0, 0.0, -1.0]] {
        let text = cholesky(&of(&bad, &[2, 2]), false).unwrap_err().to_string();
        assert!(text.starts_with("[cholesky] a matrix is not positive definite"), "{text}");
    }
    assert!(cholesky(&of(&[0.0; 6], &[2, 3]), false).is_err());
    assert!(lu(&of(&[0.0; 2], &[2])).is_err());
    assert!(Columns::from_name("raw").is_err());
}

#[test]
fn a_singular_matrix_is_eliminated_all_the_same() {
    let zeros = Array::from_slice(&[0.0_f32; 4], &[2, 2]).unwrap();
    let (p, l, u) = lu(&zeros).unwrap();
    assert_eq!(
        (floats(&p), floats(&l), floats(&u)),
        (vec![1.0, 0.0, 0.0, 1.0], vec![1.0, 0.0, 0.0, 1.0], vec![0.0; 4])
    );
}

#[test]
fn a_matrix_that_is_not_finite_has_factors_of_nan_and_its_neighbor_has_its_own() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let x = Array::from_slice(&[2.0, 1.0, 1.0, 2.0, 1.0, bad, 1.0, 1.0], &[2, 2, 2]).unwrap();
        let (p, l, u) = lu(&x).unwrap();
        let (q, r) = qr(&x, Columns::Reduced).unwrap();
        for part in [cholesky(&x, false).unwrap(), p, l, u, q, r] {
            let values = floats(&part);
            assert!(values[..4].iter().all(|value| value.is_finite()), "{values:?}");
            assert!(values[4..].iter().all(|value| value.is_nan()), "{values:?}");
        }
    }
}

#[test]
fn triangles_give_back_what_they_were_multiplied_with() {
    let mut rng = Rng::new(41);
    for round in 0..60 {
        let dtype = [DType::F32, DType::F64][round % 2];
        let (upper, unit) = (round % 4 < 2, round % 3 == 0);
        let (n, k) = (sizes(&mut rng)[0], rng.pick(&[0, 1, 3, 20]));
        let mut half: Vec<f64> = (0..2 * n * n).map(|_| rng.below(200) as f64 / 2000.0 - 0.05).collect();
        for (at, value) in half.iter_mut().enumerate() {
            let (row, col) = (at / n % n, at % n);
            if row == col {
                *value = if unit { 1.0 } else { 2.0 + *value };
            } else if (row < col) != upper {
                *value = 0.0;
            }
        }
        let a = cast(&Array::from_slice(&half, &[2, 1, n, n]).unwrap(), dtype).unwrap();
        let x = view_of(&mut rng, dtype, &[3, n, k], false);
        let all = view::broadcast_to(&x, &[2, 3, n, k]).unwrap();
        let b = matmul(&view::broadcast_to(&a, &[2, 3, n, n]).unwrap(), &all).unwrap();
        let found = solve_triangular(&a, &b, upper, unit).unwrap();
        assert_near(&found, &floats(&all), 20.0, "solution");
    }
    let singular = Array::zeros(DType::F32, &[2, 2]).unwrap();
    assert!(solve_triangular(&singular, &singular, false, false).is_err());
    assert!(solve_triangular(&singular, &singular, false, true).is_ok());
}
