//! Factorisations.

use super::arg::*;
use crate::ops::factorization::{self, Columns};

super::ops! {
    _reflected(x1: Tensor, x2: Tensor) => factorization::reflected(x1, x2);
    cholesky(x: Tensor, upper: bool) => factorization::cholesky(x, upper);
    det(x: Tensor) => factorization::det(x);
    inv(x: Tensor) => factorization::inv(x);
    lu(x: Tensor) => factorization::lu(x);
    qr(x: Tensor, mode: Text) => factorization::qr(x, Columns::from_name(mode)?);
    slogdet(x: Tensor) => factorization::slogdet(x);
    solve(x1: Tensor, x2: Tensor) => factorization::solve(x1, x2);
    solve_triangular(x1: Tensor, x2: Tensor, upper: bool, unit_diagonal: bool)
        => factorization::solve_triangular(x1, x2, upper, unit_diagonal);
}
