//! Images (N, C, H, W) in another size: nearest, bilinear, bicubic; and the transposes, their gradients.
//!
//! Along an axis every result is a weighted run of neighbors ([`Map`]), so both directions are one separable kernel:
//! across the columns first where there are fewer rows before than after, else down the rows first.

mod filters;
mod map;
#[cfg(test)]
mod tests;

use crate::array::Array;
use crate::array::view;
use crate::dtype::DType;
use crate::error::{Error, Result, named};
use crate::machine::lanes::Real;
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::with_scratch;
use crate::ops::parts;
use crate::vectorize;
pub use filters::{Filter, How};
use map::Map;
use std::ops::Range;

/// Result elements per task.
const TASK: usize = 1 << 15;

/// Which pixels are read, with which weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// 4 x 4 pixels by Keys' cubic with a = -0.75.
    Bicubic,
    /// 2 x 2 pixels.
    Bilinear,
    /// One pixel.
    Nearest,
}

named!(Mode, "interpolate2d": "bicubic" Bicubic, "bilinear" Bilinear, "nearest" Nearest);

/// `x` with planes of `size`. With `align_corners` the corner pixels keep their places, else the corners of the images
/// do. Narrow floats are computed in `f32`.
pub fn interpolate2d(x: &Array, size: (usize, usize), mode: Mode, align_corners: bool) -> Result<Array> {
    let &[batch, channels, rows, cols] = &x.shape()[..] else {
        let text = format!("wrong rank: got shape {:?}, expected (N, C, H, W)", x.shape());
        return Err(Error::value("interpolate2d", text));
    };
    check_sizes("interpolate2d", [rows, cols, size.0, size.1])?;
    let maps = || [Map::new(rows, size.0, mode, align_corners), Map::new(cols, size.1, mode, align_corners)];
    resample("interpolate2d", x, maps, [batch, channels, size.0, size.1])
}

/// `x` (N, C, ..) with axes of these sizes, by a filter: the last two at once, those before them one by one.
pub fn interpolate(x: &Array, size: &[usize], how: How) -> Result<Array> {
    let first = x.rank().checked_sub(size.len()).filter(|&first| first >= 2 && !size.is_empty());
    let first = first.ok_or(Error::Rejected("as many axes as sizes, behind images and channels"))?;
    let sizes = || x.shape()[first..].iter().chain(size);
    if sizes().any(|n| !(1..=i32::MAX as usize).contains(n)) {
        return Err(Error::Rejected("sizes in 1..2^31"));
    }
    let (rank, together) = (x.rank(), size.len().min(2));
    let map = |at: usize| how.map(x.shape()[at], size[at - first]);
    let step = |x: &Array, from: [usize; 2], to: [usize; 2], maps: [Map<f64>; 2]| {
        let front = x.numel() / (from[0] * from[1]);
        let planes = view::reshape(x, &[front, 1, from[0], from[1]])?;
        resample("interpolate", &planes, || maps, [front, 1, to[0], to[1]])
    };
    // A line is an image of one row.
    let (rows, height, down) = match together {
        1 => (1, 1, Map::same(1)),
        _ => (x.shape()[rank - 2], size[size.len() - 2], map(rank - 2)),
    };
    let (cols, width) = (x.shape()[rank - 1], size[size.len() - 1]);
    let mut out = step(x, [rows, cols], [height, width], [down, map(rank - 1)])?;
    let mut behind = height * width;
    for at in (first..rank - together).rev() {
        let (n, count) = (x.shape()[at], size[at - first]);
        out = step(&out, [n, behind], [count, behind], [map(at), Map::same(behind)])?;
        behind *= count;
    }
    let mut shape = *x.shape();
    shape[first..rank].copy_from_slice(size);
    view::reshape(&out, &shape)
}

/// The gradient of [`interpolate2d`] with respect to `x`, which has shape `input_shape`.
pub fn interpolate2d_backward(g: &Array, input_shape: &[usize], mode: Mode, align_corners: bool) -> Result<Array> {
    const OP: &str = "interpolate2d_backward";
    let (&[batch, channels, rows, cols], [n, c, height, width]) = (&g.shape()[..], input_shape) else {
        let text = format!("wrong rank: got shapes {:?} and {input_shape:?}, expected (N, C, H, W)", g.shape());
        return Err(Error::value(OP, text));
    };
    if (batch, channels) != (*n, *c) {
        let text = format!("wrong gradient: got shape {:?}, expected ({n}, {c}, .., ..)", g.shape());
        return Err(Error::value(OP, text));
    }
    check_sizes(OP, [*height, *width, rows, cols])?;
    let maps = || {
        let row = Map::new(*height, rows, mode, align_corners).transposed();
        [row, Map::new(*width, cols, mode, align_corners).transposed()]
    };
    resample(OP, g, maps, [batch, channels, *height, *width])
}

fn check_sizes(op: &str, sizes: [usize; 4]) -> Result<()> {
    if sizes.iter().all(|&size| (1..=i32::MAX as usize).contains(&size)) {
        return Ok(());
    }
    Err(Error::value(op, format!("wrong sizes: got {sizes:?}, expected each in 1..2^31")))
}

fn resample(op: &str, x: &Array, maps: impl FnOnce() -> [Map<f64>; 2], shape: [usize; 4]) -> Result<Array> {
    match x.dtype() {
        DType::F64 => resampled::<f64>(x, maps, shape),
        dtype if dtype.is_float() => resampled::<f32>(x, maps, shape),
        dtype => Err(Error::value(op, format!("wrong dtype: got {}, expected a float", dtype.name()))),
    }
}

fn resampled<T: Real>(x: &Array, maps: impl FnOnce() -> [Map<f64>; 2], shape: [usize; 4]) -> Result<Array> {
    let mut out = Array::uninit(x.dtype(), &shape)?;
    if out.numel() == 0 {
        return Ok(out);
    }
    let [rows, cols] = maps();
    let image = Image { rows: rows.narrow::<T>(), cols: cols.narrow::<T>() };
    parts::map_planes::<T>(x, &mut out, |_, x, to| image.planes(x, to))?;
    Ok(out)
}

/// Both axes of a plane.
struct Image<T> {
    rows: Map<T>,
    cols: Map<T>,
}

impl<T: Real> Image<T> {
    /// Writes all of `out`.
    fn planes(&self, x: &[T], out: &mut [T]) {
        let (height, width) = (self.rows.len(), self.cols.len());
        let size = self.rows.sources * self.cols.sources;
        // Bands of rows of a large plane, or several small planes.
        let band = (TASK / width).clamp(1, height);
        let bands = height.div_ceil(band);
        let count = out.len() / (height * width);
        let together = if bands > 1 { 1 } else { (TASK / (height * width)).max(1) };
        let to = SharedMut::new(out.as_mut_ptr());
        threads::parallel(count.div_ceil(together) * bands, &|task| {
            let (group, number) = (task / bands, task % bands);
            let rows = number * band..height.min((number + 1) * band);
            let (sources, room) = self.buffer(rows.clone());
            with_scratch(room, |buffer| {
                for plane in group * together..count.min((group + 1) * together) {
                    let at = plane * height;
                    // SAFETY: each task has its own rows of the result.
                    let part = unsafe { to.slice((at + rows.start) * width..(at + rows.end) * width) };
                    band_of(self, &x[plane * size..(plane + 1) * size], (rows.clone(), sources.start), buffer, part);
                }
            });
        });
    }

    /// Whether rows are summed first, since the result has fewer.
    fn shrinks(&self) -> bool {
        self.rows.sources > self.rows.len()
    }

    /// Rows of the source that some rows of results are made of, and the elements of a buffer for them.
    fn buffer(&self, rows: Range<usize>) -> (Range<usize>, usize) {
        let runs = || rows.clone().map(|row| self.rows.run(row)).filter(|run| !run.is_empty());
        let first = runs().map(|run| run.start).min().unwrap_or(0);
        let end = runs().map(|run| run.end).max().unwrap_or(0);
        (first..end, if self.shrinks() { self.cols.sources } else { (end - first) * self.cols.len() })
    }
}

vectorize!(
    band_of[T: Real](image: &Image<T>, source: &[T], rows: (Range<usize>, usize), buffer: &mut [T], out: &mut [T])
        => band_body::<T>, wide T::WIDE
);

#[inline(always)]
fn band_body<T: Real>(
    image: &Image<T>,
    source: &[T],
    (rows, first): (Range<usize>, usize),
    buffer: &mut [T],
    out: &mut [T],
) {
    let (width, cols) = (image.cols.len(), image.cols.sources);
    if image.shrinks() {
        for (row, line) in rows.zip(out.chunks_exact_mut(width)) {
            down(&image.rows, row, source, cols, 0, buffer);
            across(&image.cols, buffer, line);
        }
        return;
    }
    for (line, from) in buffer.chunks_exact_mut(width).zip(source[first * cols..].chunks_exact(cols)) {
        across(&image.cols, from, line);
    }
    for (row, line) in rows.zip(out.chunks_exact_mut(width)) {
        down(&image.rows, row, buffer, width, first, line);
    }
}

/// One row of results: the weighted sum of rows, `from` beginning with row `first`.
#[inline(always)]
fn down<T: Real>(map: &Map<T>, row: usize, from: &[T], width: usize, first: usize, out: &mut [T]) {
    let (run, weights) = (map.run(row), map.weights_of(row));
    let line = |k: usize| &from[(run.start - first + k) * width..][..width];
    match *weights {
        [] => out.fill(T::default()),
        [a] => out.iter_mut().zip(line(0)).for_each(|(out, &x)| *out = a * x),
        [a, b] => {
            let lines = line(0).iter().zip(line(1));
            out.iter_mut().zip(lines).for_each(|(out, (&x, &y))| *out = a * x + b * y);
        }
        [a, b, c, d] => {
            let lines = line(0).iter().zip(line(1)).zip(line(2).iter().zip(line(3)));
            out.iter_mut().zip(lines).for_each(|(out, ((&x, &y), (&z, &w)))| *out = a * x + b * y + c * z + d * w);
        }
        [a, ref rest @ ..] => {
            out.iter_mut().zip(line(0)).for_each(|(out, &x)| *out = a * x);
            for (k, &weight) in rest.iter().enumerate() {
                out.iter_mut().zip(line(k + 1)).for_each(|(out, &x)| *out = *out + weight * x);
            }
        }
    }
}

/// One row of results, each the weighted sum of neighbors in `row`.
#[inline(always)]
fn across<T: Real>(map: &Map<T>, row: &[T], out: &mut [T]) {
    let even = map.even.clone();
    for at in (0..even.start).chain(even.end..out.len()) {
        let terms = row[map.run(at)].iter().zip(map.weights_of(at));
        out[at] = terms.fold(T::default(), |sum, (&x, &weight)| sum + weight * x);
    }
    let (out, starts) = (&mut out[even.clone()], &map.starts[even]);
    assert!(row.len() == map.sources, "a row of the source");
    match &map.columns[..] {
        [a] => {
            for ((out, &start), &a) in out.iter_mut().zip(starts).zip(a) {
                // SAFETY: every run of a map lies inside its sources.
                *out = a * unsafe { *row.get_unchecked(start as usize) };
            }
        }
        [a, b] => {
            for (((out, &start), &a), &b) in out.iter_mut().zip(starts).zip(a).zip(b) {
                // SAFETY: every run of a map lies inside its sources, here of two.
                let (x, y) = unsafe { (*row.get_unchecked(start as usize), *row.get_unchecked(start as usize + 1)) };
                *out = a * x + b * y;
            }
        }
        columns => {
            for (k, column) in columns.iter().enumerate() {
                for ((out, &start), &weight) in out.iter_mut().zip(starts).zip(column) {
                    // SAFETY: every run of a map lies inside its sources, here of `columns.len()`.
                    let term = weight * unsafe { *row.get_unchecked(start as usize + k) };
                    *out = if k == 0 { term } else { *out + term };
                }
            }
        }
    }
}
