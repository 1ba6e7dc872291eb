use crate::array::Array;
use crate::array::view;
use crate::dtype::DType;
use crate::machine::threads::set_num_threads;
use crate::ops::contraction::matmul;
use crate::ops::elementwise::convert::cast;
use crate::ops::factorization::{det, inv, slogdet, solve};
use crate::ops::samples::{Rng, floats, view_of};

const SIZES: [usize; 11] = [0, 1, 2, 5, 8, 16, 31, 33, 64, 67, 130];

/// Matrices that are far from singular, of any order of rows.
fn solid(rng: &mut Rng, dtype: DType, shape: &[usize]) -> Array {
    let n = shape[shape.len() - 1];
    let mut values = floats(&view_of(rng, DType::F64, shape, false));
    for matrix in values.chunks_exact_mut((n * n).max(1)) {
        (0..n).for_each(|row| matrix[row * n + (row + 3) % n] += 6.0 * n as f64);
    }
    cast(&Array::from_slice(&values, shape).unwrap(), dtype).unwrap()
}

/// The determinant by elimination in the plainest way.
fn plain_determinant(mut a: Vec<f64>, n: usize) -> f64 {
    let mut found = 1.0;
    for j in 0..n {
        let pivot = (j..n).max_by(|&p, &q| a[p * n + j].abs().total_cmp(&a[q * n + j].abs())).unwrap();
        if pivot != j {
            (0..n).for_each(|col| a.swap(pivot * n + col, j * n + col));
            found = -found;
        }
        found *= a[j * n + j];
        for row in j + 1..n {
            let factor = a[row * n + j] / a[j * n + j];
            (j..n).for_each(|col| a[row * n + col] -= factor * a[j * n + col]);
        }
    }
    found
}

fn assert_near(found: &Array, wanted: &[f64], what: &str) {
    let scale = wanted.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
    let tolerance = 50.0 * scale * if found.dtype() == DType::F64 { 1e-14 } else { 4e-6 };
    assert_eq!(found.numel(), wanted.len());
    for (at, (a, b)) in floats(found).iter().zip(wanted).enumerate() {
        assert!((a - b).abs() <= tolerance, "{what} {:?}: {a} for {b} at {at}", found.shape());
    }
}

#[test]
fn solutions_give_back_what_is_solved_for_and_inverses_give_one() {
    let mut rng = Rng::new(11);
    for (round, &n) in SIZES.iter().cycle().take(44).enumerate() {
        let dtype = [DType::F32, DType::F64][round % 2];
        let a = solid(&mut rng, dtype, &[2, 1, n, n]);
        let x = view_of(&mut rng, dtype, &[3, n, some_columns(round)], false);
        let all = view::broadcast_to(&x, &[2, 3, n, x.shape()[2]]).unwrap();
        let b = matmul(&view::broadcast_to(&a, &[2, 3, n, n]).unwrap(), &all).unwrap();
        assert_near(&solve(&a, &b).unwrap(), &floats(&all), "solution");
        let one = matmul(&inv(&a).unwrap(), &a).unwrap();
        let unit: Vec<f64> = (0..one.numel()).map(|at| f64::from((at % (n * n)).is_multiple_of(n + 1))).collect();
        assert_near(&one, &unit, "inverse");
    }
}

fn some_columns(round: usize) -> usize {
    [0, 1, 3, 17, 40][round % 5]
}

#[test]
fn determinants_are_those_of_plain_elimination() {
    let mut rng = Rng::new(12);
    for (round, &n) in SIZES[..9].iter().cycle().take(36).enumerate() {
        let dtype = [DType::F32, DType::F64][round % 2];
        // Near 1, so that the product of many pivots is a number of the type.
        let scale = 1.0 / (6.0 * n.max(1) as f64);
        let values: Vec<f64> =
            floats(&solid(&mut rng, DType::F64, &[2, n, n])).iter().map(|value| value * scale).collect();
        let a = cast(&Array::from_slice(&values, &[2, n, n]).unwrap(), dtype).unwrap();
        let wanted: Vec<f64> = (0..2).map(|at| plain_determinant(values[at * n * n..][..n * n].to_vec(), n)).collect();
        assert_near(&det(&a).unwrap(), &wanted, "determinant");
        let (sign, size) = slogdet(&a).unwrap();
        assert_eq!(floats(&sign), wanted.iter().map(|x| x.signum()).collect::<Vec<_>>());
        assert_near(&size, &wanted.iter().map(|x| x.abs().ln()).collect::<Vec<_>>(), "logarithm");
    }
}

#[test]
fn singular_matrices_are_refused_or_have_no_determinant() {
    let a = Array::from_slice(&[1.0_f32, 2.0, 2.0, 4.0, 1.0, 0.0, 0.0, 1.0], &[2, 2, 2]).unwrap();
    let text = solve(&a, &a).unwrap_err().to_string();
    assert!(text.starts_with("[solve] a matrix is singular"), "{text}");
    assert!(inv(&a).unwrap_err().to_string().starts_with("[inv] a matrix is singular"));
    assert_eq!(floats(&det(&a).unwrap()), [0.0, 1.0]);
    let (sign, size) = slogdet(&a).unwrap();
    assert_eq!((floats(&sign), floats(&size)), (vec![0.0, 1.0], vec![f64::NEG_INFINITY, 0.0]));
}

#[test]
fn a_matrix_that_is_not_finite_gives_nan_and_its_neighbor_what_it_is() {
    let a = Array::from_slice(&[1.0, 0.0, 0.0, 1.0, 1.0, f32::INFINITY, 0.0, 1.0], &[2, 2, 2]).unwrap();
    let (sign, size) = slogdet(&a).unwrap();
    for found in [solve(&a, &a).unwrap(), inv(&a).unwrap(), det(&a).unwrap(), sign, size] {
        let values = floats(&found);
        let (known, unknown) = values.split_at(values.len() / 2);
        assert!(
            known.iter().all(|value| value.is_finite()) && unknown.iter().all(|value| value.is_nan()),
            "{values:?}"
        );
    }
}

#[test]
fn solutions_do_not_depend_on_threads() {
    let mut rng = Rng::new(13);
    let a = solid(&mut rng, DType::F32, &[200, 200]);
    set_num_threads(1);
    let (alone, inverse) = (floats(&solve(&a, &a).unwrap()), floats(&inv(&a).unwrap()));
    set_num_threads(3);
    assert_eq!((alone, inverse), (floats(&solve(&a, &a).unwrap()), floats(&inv(&a).unwrap())));
}
