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
use crate::machine::lanes::{Block, Kernel, Lanes, launch};
use crate::machine::threads::{self, SharedMut};
use crate::ops::elementwise::convert::cast;
use crate::ops::parts;
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

/// `x` (N, C, H, W) at places `grid` (N, H', W', 2), x before y, or volumes (N, C, D, H, W) at places (N, D', H', W', 3).
/// Narrow floats are computed in `f32`.
pub fn grid_sample(x: &Array, grid: &Array, settings: Settings) -> Result<Array> {
    const OP: &str = "grid_sample";
    let rank = x.rank();
    if !(rank == 4 || rank == 5) || grid.rank() != rank || grid.shape()[rank - 1] != rank - 2 {
        let text = format!("wrong shapes: got {:?} and {:?}", x.shape(), grid.shape());
        let expected = "(N, C, H, W) and (N, H', W', 2), or (N, C, D, H, W) and (N, D', H', W', 3)";
        return Err(Error::value(OP, format!("{text}, expected {expected}")));
    }
    if rank == 5 && settings.mode == Mode::Bicubic {
        return Err(Error::value(OP, "no such mode for volumes: got \"bicubic\", expected bilinear or nearest"));
    }
    let pixels = x.shape()[2..].iter().try_fold(1_usize, |all, &n| all.checked_mul(n));
    let fits = x.shape()[0] == grid.shape()[0] && pixels.is_some_and(|count| 0 < count && count < 1 << 31);
    if !fits || !x.dtype().is_float() || !grid.dtype().is_float() {
        let text = format!("operands do not fit: got {x:?} and {grid:?}");
        return Err(Error::value(OP, format!("{text}, expected floats, as many images as grids, and pixels")));
    }
    if x.dtype() == DType::F64 { sampled::<f64>(x, grid, settings) } else { sampled::<f32>(x, grid, settings) }
}

/// Some images at a time, so that none is copied but those that are read.
fn sampled<T: Place>(x: &Array, grid: &Array, settings: Settings) -> Result<Array> {
    let (channels, dtype, rank) = (x.shape()[1], x.dtype(), x.rank());
    let (n, size) = (grid.shape()[0], &grid.shape()[1..rank - 1]);
    let mut shape = *x.shape();
    shape[2..].copy_from_slice(size);
    let sizes = &x.shape()[2..];
    let pixels = sizes.iter().product();
    let job = Job { sizes, pixels, channels, count: size.iter().product(), settings };
    let out = Array::uninit(dtype, &shape)?;
    if out.numel() == 0 {
        return Ok(out);
    }
    let together = channels >= SIDE_BY_SIDE;
    let bytes = (x.numel() + grid.numel() + out.numel() * usize::from(dtype != T::DTYPE)) * size_of::<T>();
    for images in parts::ranges(n, bytes, parts::PART) {
        let [x, grid, to] =
            [parts::narrowed(x, 0, &images)?, parts::narrowed(grid, 0, &images)?, parts::narrowed(&out, 0, &images)?];
        let last: Vec<usize> = [0].into_iter().chain(2..rank).chain([1]).collect();
        let x = if together { view::permute_dims(&x, &last)? } else { x };
        let (x, grid) = (parts::ready(&x, T::DTYPE)?, parts::ready(&grid, T::DTYPE)?);
        let read = if dtype == T::DTYPE { to.clone() } else { Array::uninit(T::DTYPE, to.shape())? };
        let (from, places) = (x.as_slice::<T>().expect("made dense"), grid.as_slice::<T>().expect("made dense"));
        // Nobody else has seen the result, of which this is a part.
        let lines = SharedMut::new(read.data().cast_mut().cast::<T>());
        match (settings.mode, rank) {
            (Mode::Nearest, _) => job.read::<T, 1>(from, places, lines, together),
            (Mode::Bilinear, 4) => job.read::<T, 4>(from, places, lines, together),
            (Mode::Bilinear, _) => job.read::<T, 8>(from, places, lines, together),
            (Mode::Bicubic, _) => job.read::<T, 16>(from, places, lines, together),
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

struct Job<'a> {
    /// Of an image, or of a volume.
    sizes: &'a [usize],
    /// Of one channel.
    pixels: usize,
    channels: usize,
    /// Places of an image.
    count: usize,
    settings: Settings,
}

impl Job<'_> {
    /// Calls `work(image, places, taps)` for all blocks of places, in parallel.
    fn run<T: Place, const K: usize>(&self, grid: &[T], work: Work<'_, T, K>) {
        let axes = self.sizes.len();
        let blocks = self.count.div_ceil(TASK);
        let images = grid.len() / (axes * self.count.max(1));
        threads::parallel(images * blocks, &|task| {
            let (image, block) = (task / blocks, task % blocks);
            let places = block * TASK..self.count.min((block + 1) * TASK);
            let first = image * self.count;
            let from = &grid[axes * (first + places.start)..axes * (first + places.end)];
            let taps = Taps::new(from, self.sizes, self.settings);
            assert!(taps.all_below(self.pixels) && taps.len() == places.len(), "taps of this image");
            work(image, places, &taps);
        });
    }

    /// Into (N, C, H', W').
    fn read<T: Place, const K: usize>(&self, x: &[T], grid: &[T], to: SharedMut<T>, together: bool) {
        let size = self.pixels * self.channels;
        self.run::<T, K>(grid, &|image, places, taps| {
            let image_of = &x[image * size..(image + 1) * size];
            let first = image * self.channels * self.count + places.start;
            let (channels, pitch) = (self.channels, self.count);
            // SAFETY: inside the result; each task has its own places of each channel.
            let to = unsafe { to.ptr().add(first) };
            if together {
                launch(Pixels { image: image_of, taps, channels, to, pitch });
            } else {
                launch(Planes { image: image_of, taps, channels, to, pitch });
            }
        });
    }
}

/// All channels of some places, from planes of (C, H, W).
struct Planes<'a, T, const K: usize> {
    image: &'a [T],
    taps: &'a Taps<T, K>,
    channels: usize,
    /// The first place in the first channel of the result.
    to: *mut T,
    /// Elements from channel to channel of the result.
    pitch: usize,
}

impl<T: Place, const K: usize> Kernel<T> for Planes<'_, T, K> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let Self { image, taps, channels, to, pitch } = self;
        let plane = image.len() / channels;
        let lists: [_; K] = std::array::from_fn(|tap| (taps.pixels(tap), taps.weights(tap)));
        for first in (0..taps.len()).step_by(V::N) {
            let count = V::N.min(taps.len() - first);
            for channel in 0..channels {
                // SAFETY: the machine has the instructions, as the caller promises; `run` has looked at the numbers of all
                // pixels, which lie in each plane; places are below their number, and their room in the result is the task's.
                unsafe {
                    let from = image.as_ptr().add(channel * plane);
                    let part = |tap: usize| {
                        let (pixels, weights): (&[i32], &[T]) = lists[tap];
                        let pixel = V::gather(from, pixels.as_ptr().add(first), count);
                        (pixel, V::load_some(weights.as_ptr().add(first), count))
                    };
                    let (pixel, weight) = part(0);
                    let mut sum = pixel.mul(weight);
                    for tap in 1..K {
                        let (pixel, weight) = part(tap);
                        sum = pixel.mul_add(weight, sum);
                    }
                    sum.store_some(to.add(channel * pitch + first), count);
                }
            }
        }
    }
}

/// All channels of some places, from pixels of (H, W, C).
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
                    // `run` has looked at the numbers of all pixels.
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
