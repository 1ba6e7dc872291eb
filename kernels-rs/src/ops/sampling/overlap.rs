//! Boxes that no better one covers.

use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::machine::lanes::Real;
use crate::memory::scratch::reserved;
use crate::ops::elementwise::convert::cast;
use crate::ops::sort::argsort;
use crate::vectorize;

/// Indices of boxes (K, 4) of x1, y1, x2, y2 that no better one covers by more than a part of their union, best score first.
/// Each is compared with those that were kept before it; the first that covers it ends that.
pub fn nms(boxes: &Array, scores: &Array, threshold: f64) -> Result<Array> {
    if !boxes.dtype().is_float()
        || boxes.rank() != 2
        || boxes.shape()[1] != 4
        || scores.shape()[..] != boxes.shape()[..1]
    {
        return Err(Error::Rejected("boxes have four floats and a score each"));
    }
    let order = argsort(scores, 0, true)?;
    let order = order.as_slice::<i64>().expect("dense");
    let kept = if boxes.dtype() == DType::F64 {
        greedy::<f64>(boxes, order, threshold)?
    } else {
        greedy::<f32>(&cast(boxes, DType::F32)?, order, threshold)?
    };
    Array::from_slice(&kept, &[kept.len()])
}

fn greedy<T: Real>(boxes: &Array, order: &[i64], threshold: f64) -> Result<Vec<i64>> {
    let boxes = boxes.contiguous()?;
    let corners = boxes.as_slice::<T>().expect("dense").as_chunks::<4>().0;
    let mut seen = Kept { corners: std::array::from_fn(|_| reserved(order.len())), threshold: T::from_f64(threshold) };
    let mut kept = reserved(order.len());
    for &at in order {
        let candidate = corners[at as usize];
        let area = (candidate[2] - candidate[0]) * (candidate[3] - candidate[1]);
        let [x1, y1, x2, y2, areas] = &seen.corners;
        let best = [&x1[..], y1, x2, y2, areas];
        if !covered::<T>(best, candidate, area, seen.threshold) {
            candidate.into_iter().chain([area]).zip(&mut seen.corners).for_each(|(value, list)| list.push(value));
            kept.push(at);
        }
    }
    Ok(kept)
}

/// The boxes that stay: their corners and areas, a list for each number.
struct Kept<T> {
    corners: [Vec<T>; 5],
    threshold: T,
}

vectorize!(covered[T: Real](best: [&[T]; 5], candidate: [T; 4], area: T, threshold: T) -> bool => covered_body::<T>);

/// Whether one of the boxes covers the candidate. What is nan covers nothing.
#[inline(always)]
fn covered_body<T: Real>(best: [&[T]; 5], candidate: [T; 4], area: T, threshold: T) -> bool {
    const TOGETHER: usize = 64;
    let zero = T::default();
    let larger = |a: T, b: T| if a > b { a } else { b };
    let smaller = |a: T, b: T| if a < b { a } else { b };
    let [x1, y1, x2, y2, areas] = best;
    let count = areas.len();
    (0..count).step_by(TOGETHER).any(|first| {
        let part = first..count.min(first + TOGETHER);
        let lines = x1[part.clone()].iter().zip(&y1[part.clone()]).zip(&x2[part.clone()]).zip(&y2[part.clone()]);
        lines.zip(&areas[part]).fold(false, |found, ((((&x1, &y1), &x2), &y2), &other)| {
            let width = larger(smaller(x2, candidate[2]) - larger(x1, candidate[0]), zero);
            let height = larger(smaller(y2, candidate[3]) - larger(y1, candidate[1]), zero);
            let common = width * height;
            let union = area + other - common;
            found | ((common > threshold * union) & (union > zero))
        })
    })
}

#[cfg(test)]
mod tests;
