//! Gradients scaled down where their norm is too large.

use super::{Rule, Stream, check, run};
use crate::array::Array;
use crate::array::float::Wide;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::machine::lanes::Lanes;
use crate::memory::scratch::reserved;
use crate::ops::elementwise::convert::cast;
use crate::ops::reduction::wide_norm;

/// Beside a norm, which may be 0.
const TINY: f64 = 1e-6;

/// Each tensor scaled down to a Euclidean norm of at most `threshold`, with `joint` all together. What is small enough
/// is given back as it is.
pub fn clip_norms(grads: Stream<'_>, threshold: f64, joint: bool) -> Result<Vec<Array>> {
    check("clip_norms", &[grads])?;
    let mut norms = reserved(grads.len());
    for grad in grads {
        norms.push(norm(grad)?);
    }
    let factor = |norm: f64| threshold / (norm + TINY);
    if joint {
        return scaled(grads, factor(norms.iter().map(|norm| norm * norm).sum::<f64>().sqrt()));
    }
    let mut clipped = reserved(grads.len());
    for (grad, norm) in grads.iter().zip(norms) {
        clipped.extend(scaled(&[grad], factor(norm))?);
    }
    Ok(clipped)
}

fn norm(x: &Array) -> Result<f64> {
    let axes: Vec<usize> = (0..x.rank()).collect();
    let found = cast(&wide_norm(x, &axes, false)?, DType::F64)?;
    Ok(found.to_vec::<f64>()?[0])
}

/// All of one type.
fn scaled(list: Stream<'_>, factor: f64) -> Result<Vec<Array>> {
    if factor >= 1.0 || list.is_empty() {
        return Ok(list.iter().map(|&x| x.clone()).collect());
    }
    dispatch!(float list[0].dtype(), T => run::<T, 1>([list], list, &Scale::new(factor)),
        else Err(Error::Rejected("clip_norms takes floats")))
}

/// Each element times a number.
struct Scale<W>(W);

impl<W: Wide> Scale<W> {
    fn new(factor: f64) -> Self {
        Self(W::from_f64(factor))
    }
}

impl<W: Wide> Rule<1> for Scale<W> {
    type Wide = W;
    #[inline(always)]
    unsafe fn step<V: Lanes<Elem = W>>(&self, [x]: [V; 1], _: V) -> [V; 1] {
        [x.mul(V::splat(self.0))]
    }
}
