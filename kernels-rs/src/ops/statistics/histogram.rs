//! Counts of elements between edges that lie equally far from each other.

use crate::array::Array;
use crate::array::view;
use crate::dispatch;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::machine::lanes::Real;
use crate::memory::scratch::filled;
use crate::ops::elementwise::convert::cast;
use crate::ops::reduction;
use crate::vectorize;

/// Elements whose places are guessed at once.
const PART: usize = 256;

/// How many elements lie in each of `bins` equal intervals, the last with both its ends, as `int64`; and the edges. Without
/// ends of the range they are the least and the largest element.
pub fn histogram(x: &Array, bins: usize, low: Option<f64>, high: Option<f64>) -> Result<(Array, Array)> {
    if !x.dtype().is_float() || bins == 0 {
        return Err(Error::Rejected("a histogram is of floats, with intervals"));
    }
    let axes: Vec<usize> = (0..x.rank()).collect();
    let end = |given: Option<f64>, find: fn(&Array, &[usize], bool) -> Result<Array>, of_nothing: f64| match given {
        Some(given) => Ok(given),
        None if x.numel() == 0 => Ok(of_nothing),
        None => number(&find(x, &axes, false)?),
    };
    let (low, high) = (end(low, reduction::min, 0.0)?, end(high, reduction::max, 1.0)?);
    let edges = rounded(&edges(low, high, bins)?, x.dtype())?;
    let flat = view::reshape(
        &cast(x, if x.dtype() == DType::F64 { DType::F64 } else { DType::F32 })?.contiguous()?,
        &[x.numel()],
    )?;
    let ends = cast(&edges, flat.dtype())?;
    let mut counts = Array::zeros(DType::I64, &[bins])?;
    if flat.dtype() == DType::F64 {
        count::<f64>(&flat, &ends, counts.as_mut_slice::<i64>());
    } else {
        count::<f32>(&flat, &ends, counts.as_mut_slice::<i64>());
    }
    Ok((counts, edges))
}

/// The only element.
fn number(x: &Array) -> Result<f64> {
    Ok(cast(x, DType::F64)?.as_slice::<f64>().expect("dense")[0])
}

/// Ends of equal intervals, as `NumPy`'s: a single value is in the middle of a unit.
fn edges(low: f64, high: f64, bins: usize) -> Result<Vec<f64>> {
    let shown = |x: f64| if x.is_nan() { "nan".to_owned() } else { format!("{x:?}") };
    if !low.is_finite() || !high.is_finite() {
        let text = format!(
            "the range is not finite: got {} to {}, expected finite elements, or min and max\nhint: px.histogram(x, min=0.0, max=1.0)",
            shown(low),
            shown(high)
        );
        return Err(Error::value("histogram", text));
    }
    if low > high {
        let text = format!("min > max: got {} > {}, expected min <= max", shown(low), shown(high));
        return Err(Error::value("histogram", text));
    }
    let (low, high) = if low == high { (low - 0.5, high + 0.5) } else { (low, high) };
    let mut all = filled(high, bins + 1);
    let step = (high - low) / bins as f64;
    for (at, edge) in all[..bins].iter_mut().enumerate() {
        // A step may be too small for a number of its own.
        let way = if step == 0.0 { at as f64 / bins as f64 * (high - low) } else { at as f64 * step };
        *edge = way + low;
    }
    Ok(all)
}

fn rounded(edges: &[f64], dtype: DType) -> Result<Array> {
    let mut out = Array::uninit(dtype, &[edges.len()])?;
    dispatch!(float dtype, T => {
        out.as_mut_slice::<T>().iter_mut().zip(edges).for_each(|(to, &edge)| *to = T::from_f64(edge));
    }, else return Err(Error::Rejected("edges are floats")));
    Ok(out)
}

fn count<T: Whole>(x: &Array, ends: &Array, counts: &mut [i64]) {
    let (x, ends) = (x.as_slice::<T>().expect("dense"), ends.as_slice::<T>().expect("dense"));
    let (bins, low, high) = (counts.len(), ends[0], ends[counts.len()]);
    let scale = <T as Element>::from_f64(bins as f64 / (high.into() - low.into()));
    let mut places = [0_i32; PART];
    for part in x.chunks(PART) {
        guess(part, low, scale, &mut places);
        for (&value, &place) in part.iter().zip(&places) {
            // Not so for a nan.
            if value >= low && value <= high {
                let mut place = (place.max(0) as usize).min(bins - 1);
                // Rounding may put an element beside an edge; the edges decide.
                while value < ends[place] {
                    place -= 1;
                }
                while place + 1 < bins && value >= ends[place + 1] {
                    place += 1;
                }
                counts[place] += 1;
            }
        }
    }
}

/// A float as a whole number.
trait Whole: Real + Into<f64> {
    /// Towards zero; 0 for a nan, and the ends of the range beyond it.
    fn whole(self) -> i32;
}

impl Whole for f32 {
    #[inline(always)]
    fn whole(self) -> i32 {
        self as i32
    }
}

impl Whole for f64 {
    #[inline(always)]
    fn whole(self) -> i32 {
        self as i32
    }
}

vectorize!(guess[T: Whole](x: &[T], low: T, scale: T, places: &mut [i32; PART]) => guess_body::<T>, wide T::WIDE);

/// In about which interval each element lies.
#[inline(always)]
fn guess_body<T: Whole>(x: &[T], low: T, scale: T, places: &mut [i32; PART]) {
    for (place, &value) in places.iter_mut().zip(x) {
        *place = ((value - low) * scale).whole();
    }
}

#[cfg(test)]
mod tests;
