//! Factorisations.

use super::arg::*;
use crate::ops::factorization::{self, Columns};

super::ops! {
    cholesky(x: Tensor, upper: bool) => factorization::cholesky(x, upper);
    lu(x: Tensor) => factorization::lu(x);
    qr(x: Tensor, mode: Text) => factorization::qr(x, Columns::from_name(mode)?);
}
