//! Images read at places between their pixels. Where a place reads, and with which weights, is found once for all
//! channels, some places at a time.

mod taps;
#[cfg(test)]
mod tests;

use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::machine::lanes::Real;
use crate::machine::threads::{self, SharedMut};
use crate::ops::parts;
use crate::vectorize;
pub use taps::{Margin, Mode};
use taps::{Place, Taps};

/// Places of a task: their taps stay in the second-level cache while all channels are read.
const TASK: usize = 1 << 11;

/// How images are read.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Which pixels.
    pub mode: Mode,
    /// What is outside.
    pub margin: Margin,
    /// Whether -1 and 1 are the middles of the pixels at the edges, or their outer sides.
    pub align_corners: bool,
}

/// `x` (N, C, H, W) at places `grid` (N, H', W', 2), x before y. Narrow floats are computed in `f32`.
pub fn grid_sample(x: &Array, grid: &Array, settings: Settings) -> Result<Array> {
    const OP: &str = "grid_sample";
    let (&[n, channels, rows, cols], &[batch, height, width, 2]) = (&x.shape()[..], &grid.shape()[..]) else {
        let text = format!("wrong shapes: got {:?} and {:?}", x.shape(), grid.shape());
        return Err(Error::value(OP, format!("{text}, expected (N, C, H, W) and (N, H', W', 2)")));
    };
    let fits = n == batch && rows > 0 && cols > 0 && rows.checked_mul(cols).is_some_and(|size| size < 1 << 31);
    if !fits || !x.dtype().is_float() || !grid.dtype().is_float() {
        let text = format!("operands do not fit: got {x:?} and {grid:?}");
        return Err(Error::value(OP, format!("{text}, expected floats, as many images as grids, and pixels")));
    }
    let mut out = Array::uninit(x.dtype(), &[n, channels, height, width])?;
    if x.dtype() == DType::F64 {
        sampled::<f64>(x, grid, settings, &mut out)?;
    } else {
        sampled::<f32>(x, grid, settings, &mut out)?;
    }
    Ok(out)
}

fn sampled<T: Place>(x: &Array, grid: &Array, settings: Settings, out: &mut Array) -> Result<()> {
    let (x, grid) = (parts::ready(x, T::DTYPE)?, parts::ready(grid, T::DTYPE)?);
    let job = Job {
        size: [x.shape()[2], x.shape()[3]],
        channels: x.shape()[1],
        count: grid.shape()[1] * grid.shape()[2],
        settings,
    };
    let (x, grid) = (x.as_slice::<T>().expect("made dense"), grid.as_slice::<T>().expect("made dense"));
    let all = 0..out.numel();
    parts::write::<T>(out, all, |to| {
        match settings.mode {
            Mode::Nearest => job.run::<T, 1>(x, grid, to),
            Mode::Bilinear => job.run::<T, 4>(x, grid, to),
            Mode::Bicubic => job.run::<T, 16>(x, grid, to),
        }
        Ok(())
    })
}

struct Job {
    /// Rows, columns.
    size: [usize; 2],
    channels: usize,
    /// Places of an image.
    count: usize,
    settings: Settings,
}

impl Job {
    fn run<T: Place, const K: usize>(&self, x: &[T], grid: &[T], out: &mut [T]) {
        let blocks = self.count.div_ceil(TASK);
        let images = grid.len() / (2 * self.count.max(1));
        let plane = self.size[0] * self.size[1];
        let to = SharedMut::new(out.as_mut_ptr());
        threads::parallel(images * blocks, &|task| {
            let (image, block) = (task / blocks, task % blocks);
            let places = block * TASK..self.count.min((block + 1) * TASK);
            let from = &grid[2 * (image * self.count + places.start)..2 * (image * self.count + places.end)];
            let taps = Taps::<T, K>::new(from, self.size, self.settings);
            for channel in image * self.channels..(image + 1) * self.channels {
                let at = channel * self.count;
                // SAFETY: each task has its own places of each channel.
                let line = unsafe { to.slice(at + places.start..at + places.end) };
                read(&x[channel * plane..(channel + 1) * plane], &taps, line);
            }
        });
    }
}

fn read<T: Place, const K: usize>(plane: &[T], taps: &Taps<T, K>, out: &mut [T]) {
    assert!(taps.all_below(plane.len()) && out.len() == taps.len(), "taps of this plane");
    if K == 1 {
        return read_one(plane, taps.pixels(0), taps.weights(0), out);
    }
    read_four(plane, taps.four(0), out, false);
    (4..K).step_by(4).for_each(|first| read_four(plane, taps.four(first), out, true));
}

/// Pixel numbers and weights of four taps. A number below 0 stands for 0.
pub type Four<'a, T> = [(&'a [i32], &'a [T]); 4];

vectorize!(read_one[T: Real](plane: &[T], pixels: &[i32], weights: &[T], out: &mut [T]) => read_one_body::<T>);

#[inline(always)]
fn read_one_body<T: Real>(plane: &[T], pixels: &[i32], weights: &[T], out: &mut [T]) {
    for ((slot, &pixel), &weight) in out.iter_mut().zip(pixels).zip(weights) {
        // SAFETY: the caller has looked at all numbers.
        *slot = weight * unsafe { pixel_of(plane, pixel) };
    }
}

vectorize!(read_four[T: Real](plane: &[T], taps: Four<'_, T>, out: &mut [T], adds: bool) => read_four_body::<T>);

#[inline(always)]
fn read_four_body<T: Real>(plane: &[T], taps: Four<'_, T>, out: &mut [T], adds: bool) {
    let [(p, a), (q, b), (r, c), (s, d)] = taps.map(|(pixels, weights)| (&pixels[..out.len()], &weights[..out.len()]));
    for (i, slot) in out.iter_mut().enumerate() {
        // SAFETY: the caller has looked at all numbers.
        let sum = unsafe {
            a[i] * pixel_of(plane, p[i])
                + b[i] * pixel_of(plane, q[i])
                + c[i] * pixel_of(plane, r[i])
                + d[i] * pixel_of(plane, s[i])
        };
        *slot = if adds { *slot + sum } else { sum };
    }
}

/// A pixel, or 0 for a number below 0.
///
/// # Safety
/// The number is below the size of the plane, which is not empty.
#[inline(always)]
unsafe fn pixel_of<T: Real>(plane: &[T], pixel: i32) -> T {
    // SAFETY: as the caller promises.
    let value = unsafe { *plane.get_unchecked(pixel.max(0) as usize) };
    if pixel < 0 { T::default() } else { value }
}
