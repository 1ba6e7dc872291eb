//! Discrete Fourier transforms, of lines one by one or of columns side by side. A real line of even length is one of half as
//! many complex numbers, taken apart on its way out, and put together on its way back.

mod bands;
mod butterfly;
mod columns;
mod line;
mod passes;
mod plans;
mod powers;
mod real;
mod rows;

use crate::array::Array;
use crate::array::reader::Reader;
use crate::array::view;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::machine::lanes::lane_count;
use crate::machine::threads::SharedMut;
use crate::ops::elementwise::convert::cast;
use crate::ops::parts;
use bands::Bands;
use columns::Columns;
pub use plans::{Transformed, forget as forget_plans, install_fork_handlers};
use plans::{columns_plan, halves_plan};

/// Elements of columns that are transformed side by side, at most: longer ones leave the caches.
const LONGEST: usize = 1 << 14;

/// Which transform.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Along which axis.
    pub axis: usize,
    /// With `exp(+...)`; nothing is divided by the length.
    pub inverse: bool,
    /// The first n // 2 + 1 alone.
    pub half: bool,
}

/// Real and imaginary parts of the transform of `re + i * im`. Narrow floats are computed in `f32`.
pub fn dft(re: &Array, im: Option<&Array>, settings: Settings) -> Result<(Array, Array)> {
    let fits = im.is_none_or(|im| im.shape() == re.shape() && im.dtype() == re.dtype());
    if settings.axis >= re.rank() || !re.dtype().is_float() || !fits || (settings.half && im.is_some()) {
        return Err(Error::Rejected("dft wants parts of one float dtype and shape, and an axis of theirs"));
    }
    let (real, imag) =
        if re.dtype() == DType::F64 { parted::<f64>(re, im, settings)? } else { parted::<f32>(re, im, settings)? };
    Ok((cast(&real, re.dtype())?, cast(&imag, re.dtype())?))
}

/// By columns or by lines.
fn parted<T: Transformed>(re: &Array, im: Option<&Array>, settings: Settings) -> Result<(Array, Array)> {
    let n = re.shape()[settings.axis];
    let beside: usize = re.shape()[settings.axis + 1..].iter().product();
    let apart = im.is_some() || n.is_multiple_of(2);
    if re.numel() > 0 && apart && n <= LONGEST && 2 * beside >= lane_count::<T>() && re.strides()[settings.axis] != 1 {
        let length = if im.is_some() { n } else { n / 2 };
        if let Some(plan) = columns_plan::<T>(length) {
            return across(re, im, settings, &plan);
        }
    }
    along::<T>(re, im, settings)
}

/// Columns side by side.
fn across<T: Transformed>(
    re: &Array,
    im: Option<&Array>,
    settings: Settings,
    plan: &Columns<T>,
) -> Result<(Array, Array)> {
    let (re, im) = (parts::ready(re, T::DTYPE)?, im.map(|im| parts::ready(im, T::DTYPE)).transpose()?);
    let mut shape = *re.shape();
    let n = shape[settings.axis];
    if settings.half {
        shape[settings.axis] = n / 2 + 1;
    }
    let (mut real, mut imag) = (Array::uninit(T::DTYPE, &shape)?, Array::uninit(T::DTYPE, &shape)?);
    let bands = Bands {
        n,
        out: shape[settings.axis],
        beside: shape[settings.axis + 1..].iter().product(),
        batches: shape[..settings.axis].iter().product(),
        inverse: settings.inverse,
    };
    let to = [SharedMut::new(real.mut_ptr::<T>()), SharedMut::new(imag.mut_ptr::<T>())];
    let re = re.as_slice::<T>().expect("dense");
    match &im {
        Some(im) => bands.complex(plan, [re, im.as_slice::<T>().expect("dense")], to),
        None => bands.halved(plan, &halves_plan(n), re, to),
    }
    Ok((real, imag))
}

/// The real numbers, `n` of them along the axis, of whose transform these are the first `n / 2 + 1`; nothing is divided by n.
pub fn irdft(re: &Array, im: &Array, axis: usize, n: usize) -> Result<Array> {
    let fits = im.shape() == re.shape() && im.dtype() == re.dtype() && re.dtype().is_float();
    if !fits || axis >= re.rank() || n == 0 || re.shape()[axis] != n / 2 + 1 {
        return Err(Error::Rejected("irdft wants parts of one float dtype and shape, and a length of theirs"));
    }
    let out = if re.dtype() == DType::F64 { mended::<f64>(re, im, axis, n)? } else { mended::<f32>(re, im, axis, n)? };
    cast(&out, re.dtype())
}

/// By lines.
fn mended<T: Transformed>(re: &Array, im: &Array, axis: usize, n: usize) -> Result<Array> {
    let (re, im, rank) = (lines_of::<T>(re, axis)?, lines_of::<T>(im, axis)?, re.rank());
    let mut shape = *re.shape();
    shape[rank - 1] = n;
    let mut out = Array::uninit(T::DTYPE, &shape)?;
    if out.numel() > 0 {
        let to = SharedMut::new(out.mut_ptr::<T>());
        let job = rows::Job { n, out: n, inverse: true, lines: out.numel() / n };
        let (re, im) = (Reader::new(&re), Reader::new(&im));
        if n.is_multiple_of(2) { job.mended(&re, &im, to) } else { job.mended_odd(&re, &im, to) }
    }
    view::permute_dims(&out, &back(rank, axis))
}

/// With the axis last: lines whose elements lie side by side.
fn lines_of<T: Transformed>(x: &Array, axis: usize) -> Result<Array> {
    let order: Vec<usize> = (0..x.rank()).filter(|&at| at != axis).chain([axis]).collect();
    let x = view::permute_dims(x, &order)?;
    // They are read where they lie; those of one element have gaps between them.
    let lies = x.dtype() == T::DTYPE && x.strides()[x.rank() - 1] == 1 && x.shape()[x.rank() - 1] > 1;
    if lies { Ok(x) } else { parts::ready(&x, T::DTYPE) }
}

/// Where each axis is after the last has come back to its place.
fn back(rank: usize, axis: usize) -> Vec<usize> {
    (0..rank).map(|at| if at == axis { rank - 1 } else { at - usize::from(at > axis) }).collect()
}

/// The axis last, the transform, and the axis back in its place.
fn along<T: Transformed>(re: &Array, im: Option<&Array>, settings: Settings) -> Result<(Array, Array)> {
    let (rank, axis) = (re.rank(), settings.axis);
    let (re, im) = (lines_of::<T>(re, axis)?, im.map(|im| lines_of::<T>(im, axis)).transpose()?);
    let mut shape = *re.shape();
    let n = shape[rank - 1];
    if settings.half {
        shape[rank - 1] = n / 2 + 1;
    }
    let fresh = || if n == 0 { Array::zeros(T::DTYPE, &shape) } else { Array::uninit(T::DTYPE, &shape) };
    let (mut real, mut imag) = (fresh()?, fresh()?);
    if re.numel() > 0 {
        let to = [SharedMut::new(real.mut_ptr::<T>()), SharedMut::new(imag.mut_ptr::<T>())];
        let job = rows::Job { n, out: shape[rank - 1], inverse: settings.inverse, lines: re.numel() / n };
        match &im {
            None if n % 2 == 0 => job.halved(&Reader::new(&re), to),
            None => job.odd(&Reader::new(&re), to),
            Some(im) => job.complex(&Reader::new(&re), &Reader::new(im), to),
        }
    }
    let back = back(rank, axis);
    Ok((view::permute_dims(&real, &back)?, view::permute_dims(&imag, &back)?))
}

#[cfg(test)]
mod tests;
