//! Images read at places between their pixels. Where a place reads, and with which weights, is found once for all
//! channels, some places at a time.

mod overlap;
mod taps;
#[cfg(test)]
mod tests;

use crate::array::Array;
use crate::array::copy::put;
use crate::array::view;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::machine::lanes::{Block, Kernel, Lanes, Real, launch};
use crate::machine::threads::{self, SharedMut};
use crate::ops::elementwise::convert::cast;
use crate::ops::parts;
use crate::vectorize;
pub use overlap::nms;
use std::ops::Range;
pub use taps::{Margin, Mode};
use taps::{Place, Taps};

/// Places of a task: their taps stay in the second-level cache while all channels are read.
const TASK: usize = 1 << 11;

/// Channels from which all of a pixel are read together, from a copy with the channels last.
const SIDE_BY_SIDE: usize = 4;

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
    let (&[n, _, rows, cols], &[batch, _, _, 2]) = (&x.shape()[..], &grid.shape()[..]) else {
        let text = format!("wrong shapes: got {:?} and {:?}", x.shape(), grid.shape());
        return Err(Error::value(OP, format!("{text}, expected (N, C, H, W) and (N, H', W', 2)")));
    };
    let fits = n == batch && rows > 0 && cols > 0 && rows.checked_mul(cols).is_some_and(|size| size < 1 << 31);
    if !fits || !x.dtype().is_float() || !grid.dtype().is_float() {
        let text = format!("operands do not fit: got {x:?} and {grid:?}");
        return Err(Error::value(OP, format!("{text}, expected floats, as many images as grids, and pixels")));
    }
    if x.dtype() == DType::F64 { sampled::<f64>(x, grid, settings) } else { sampled::<f32>(x, grid, settings) }
}

/// Some images at a time, so that none is copied but those that are read.
fn sampled<T: Place>(x: &Array, grid: &Array, settings: Settings) -> Result<Array> {
    let (channels, dtype) = (x.shape()[1], x.dtype());
    let [n, height, width] = [grid.shape()[0], grid.shape()[1], grid.shape()[2]];
    let job = Job { size: [x.shape()[2], x.shape()[3]], channels, count: height * width, settings };
    let out = Array::uninit(dtype, &[n, channels, height, width])?;
    if out.numel() == 0 {
        return Ok(out);
    }
    let together = channels >= SIDE_BY_SIDE;
    let bytes = (x.numel() + grid.numel() + out.numel() * usize::from(dtype != T::DTYPE)) * size_of::<T>();
    for images in parts::ranges(n, bytes, parts::PART) {
        let [x, grid, to] =
            [parts::narrowed(x, 0, &images)?, parts::narrowed(grid, 0, &images)?, parts::narrowed(&out, 0, &images)?];
        let x = if together { view::permute_dims(&x, &[0, 2, 3, 1])? } else { x };
        let (x, grid) = (parts::ready(&x, T::DTYPE)?, parts::ready(&grid, T::DTYPE)?);
        let read = if dtype == T::DTYPE { to.clone() } else { Array::uninit(T::DTYPE, to.shape())? };
        let (from, places) = (x.as_slice::<T>().expect("made dense"), grid.as_slice::<T>().expect("made dense"));
        // Nobody else has seen the result, of which this is a part.
        let lines = SharedMut::new(read.data().cast_mut().cast::<T>());
        match settings.mode {
            Mode::Nearest => job.read::<T, 1>(from, places, lines, together),
            Mode::Bilinear => job.read::<T, 4>(from, places, lines, together),
            Mode::Bicubic => job.read::<T, 16>(from, places, lines, together),
        }
        if dtype != T::DTYPE {
            // SAFETY: as above.
            unsafe { put(&cast(&read, dtype)?, &to) };
        }
    }
    Ok(out)
}

/// Called with an image, some of its places, and their taps.
type Work<'a, T, const K: usize> = &'a (dyn Fn(usize, Range<usize>, &Taps<T, K>) + Sync);

struct Job {
    /// Rows, columns.
    size: [usize; 2],
    channels: usize,
    /// Places of an image.
    count: usize,
    settings: Settings,
}

impl Job {
    /// Calls `work(image, places, taps)` for all blocks of places, in parallel.
    fn run<T: Place, const K: usize>(&self, grid: &[T], work: Work<'_, T, K>) {
        let blocks = self.count.div_ceil(TASK);
        let images = grid.len() / (2 * self.count.max(1));
        threads::parallel(images * blocks, &|task| {
            let (image, block) = (task / blocks, task % blocks);
            let places = block * TASK..self.count.min((block + 1) * TASK);
            let from = &grid[2 * (image * self.count + places.start)..2 * (image * self.count + places.end)];
            work(image, places, &Taps::new(from, self.size, self.settings));
        });
    }

    /// Into (N, C, H', W').
    fn read<T: Place, const K: usize>(&self, x: &[T], grid: &[T], to: SharedMut<T>, together: bool) {
        if together { self.pixels::<T, K>(x, grid, to) } else { self.planes::<T, K>(x, grid, to) }
    }

    /// Of (N, C, H, W), channel by channel.
    fn planes<T: Place, const K: usize>(&self, x: &[T], grid: &[T], to: SharedMut<T>) {
        let plane = self.size[0] * self.size[1];
        self.run::<T, K>(grid, &|image, places, taps| {
            for channel in image * self.channels..(image + 1) * self.channels {
                let at = channel * self.count;
                // SAFETY: each task has its own places of each channel.
                let line = unsafe { to.slice(at + places.start..at + places.end) };
                read(&x[channel * plane..(channel + 1) * plane], taps, line);
            }
        });
    }

    /// Of (N, H, W, C), all channels of a pixel at once.
    fn pixels<T: Place, const K: usize>(&self, x: &[T], grid: &[T], to: SharedMut<T>) {
        let (channels, size) = (self.channels, self.size[0] * self.size[1] * self.channels);
        self.run::<T, K>(grid, &|image, places, taps| {
            let image_of = &x[image * size..(image + 1) * size];
            assert!(taps.all_below(self.size[0] * self.size[1]) && taps.len() == places.len(), "taps of this image");
            let first = image * channels * self.count + places.start;
            // SAFETY: inside the result.
            let to = unsafe { to.ptr().add(first) };
            launch(Pixels { image: image_of, taps, channels, to, pitch: self.count });
        });
    }
}

/// All channels of some places, from pixels whose channels lie together.
struct Pixels<'a, T, const K: usize> {
    image: &'a [T],
    taps: &'a Taps<T, K>,
    channels: usize,
    /// The first place in the first channel of the result.
    to: *mut T,
    /// Elements from channel to channel of the result.
    pitch: usize,
}

impl<T: Place, const K: usize> Kernel<T> for Pixels<'_, T, K> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let Self { image, taps, channels, to, pitch } = self;
        let lists: [_; K] = std::array::from_fn(|tap| (taps.pixels(tap), taps.weights(tap)));
        let (outside, mut tile) = ([T::default(); 16], [T::default(); 256]);
        for first in (0..taps.len()).step_by(V::N) {
            let places = V::N.min(taps.len() - first);
            for channel in (0..channels).step_by(V::N) {
                let width = V::N.min(channels - channel);
                for place in 0..places {
                    // SAFETY: the machine has the instructions, as the caller promises; places are below their number, and
                    // `pixels` has looked at the numbers of all pixels.
                    unsafe {
                        let part = |tap: usize| {
                            let (pixels, weights): (&[i32], &[T]) = lists[tap];
                            let (pixel, weight) =
                                (*pixels.get_unchecked(first + place), *weights.get_unchecked(first + place));
                            let inside = image.as_ptr().wrapping_offset(pixel as isize * channels as isize);
                            let from = if pixel < 0 { outside.as_ptr() } else { inside.wrapping_add(channel) };
                            (V::load_some(from, width), V::splat(weight))
                        };
                        let (pixel, weight) = part(0);
                        let mut sum = pixel.mul(weight);
                        for tap in 1..K {
                            let (pixel, weight) = part(tap);
                            sum = pixel.mul_add(weight, sum);
                        }
                        sum.store(tile.as_mut_ptr().add(place * V::N));
                    }
                }
                let block = Block { at: tile.as_ptr(), pitch: V::N, rows: places, cols: width };
                // SAFETY: registers have at most sixteen lanes; each task has its own places of each channel.
                unsafe { V::transpose(block, to.add(channel * pitch + first), pitch, places) };
            }
        }
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
