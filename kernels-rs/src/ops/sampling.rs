//! Images read at places between their pixels. Where a place reads, and with which weights, is found once for all
//! channels, some places at a time, in vectors.

mod direct;
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
use direct::{Direct, EXACT};
pub use overlap::nms;
use std::ops::Range;
use taps::{Axis, PLACES, Place, Tap, Taps};
pub use taps::{Margin, Mode};

/// Places of a task.
const TASK: usize = 1 << 11;

/// Channels from which all of a pixel are read together, from a copy with the channels last.
const SIDE_BY_SIDE: usize = 8;

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
    let turned = if together { x.numel() * size_of::<T>() } else { 0 };
    let bytes = parts::made(&[x, grid, &out], T::DTYPE) + turned;
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
        let exact = sizes.iter().all(|&n| n <= EXACT);
        let direct = rank == 4 && exact && !together && settings.margin != Margin::Reflection;
        match (settings.mode, rank) {
            (Mode::Nearest, _) if direct => job.directly::<T, 1>(from, places, lines),
            (Mode::Bilinear, _) if direct => job.directly::<T, 4>(from, places, lines),
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
    /// Calls `work(image, places, of_grid)` for the places of all tasks, in parallel; the last are their numbers in the grid.
    fn run(&self, len: usize, work: &(dyn Fn(usize, Range<usize>, Range<usize>) + Sync)) {
        let (axes, blocks) = (self.sizes.len(), self.count.div_ceil(TASK));
        let images = len / (axes * self.count.max(1));
        threads::parallel(images * blocks, &|task| {
            let (image, block) = (task / blocks, task % blocks);
            let places = block * TASK..self.count.min((block + 1) * TASK);
            let before = image * self.count;
            work(image, places.clone(), axes * (before + places.start)..axes * (before + places.end));
        });
    }

    /// An image, and where its results from a place on go.
    fn parts<'x, T>(&self, x: &'x [T], image: usize, to: SharedMut<T>, place: usize) -> (&'x [T], *mut T) {
        let size = self.pixels * self.channels;
        let to = to.ptr().wrapping_add(image * self.channels * self.count + place);
        (&x[image * size..(image + 1) * size], to)
    }

    /// Into (N, C, H', W').
    fn read<T: Place, const K: usize>(&self, x: &[T], grid: &[T], to: SharedMut<T>, together: bool) {
        let (channels, pitch, axes) = (self.channels, self.count, self.sizes.len());
        self.run(grid.len(), &|image, places, part| {
            let mut taps = Taps::<T, K>::new();
            for (first, grid) in places.step_by(PLACES).zip(grid[part].chunks(PLACES * axes)) {
                let (image, to) = self.parts(x, image, to, first);
                let (count, taps) = (grid.len() / axes, taps.find(grid, self.sizes, self.settings));
                let reading = Reading { image, taps, count, channels, to, pitch };
                if together { launch(Pixels(reading)) } else { launch(Planes(reading)) }
            }
        });
    }

    /// As [`Self::read`], from planes.
    fn directly<T: Place, const K: usize>(&self, x: &[T], grid: &[T], to: SharedMut<T>) {
        let (channels, pitch, settings) = (self.channels, self.count, self.settings);
        self.run(grid.len(), &|image, places, part| {
            let (image, to) = self.parts(x, image, to, places.start);
            let [down, across] =
                [(self.sizes[0], self.sizes[1]), (self.sizes[1], 1)].map(|(n, step)| Axis { n, step, settings });
            launch(Direct::<T, K> { image, grid: &grid[part], axes: [across, down], channels, to, pitch });
        });
    }
}

/// All channels of some places.
struct Reading<'a, T, const K: usize> {
    image: &'a [T],
    taps: &'a [Tap<T>; K],
    /// Places.
    count: usize,
    channels: usize,
    /// The first place in the first channel of the result.
    to: *mut T,
    /// Elements from channel to channel of the result.
    pitch: usize,
}

/// From planes of (C, H, W).
struct Planes<'a, T, const K: usize>(Reading<'a, T, K>);

/// From pixels of (H, W, C).
struct Pixels<'a, T, const K: usize>(Reading<'a, T, K>);

impl<T: Place, const K: usize> Kernel<T> for Planes<'_, T, K> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let Reading { image, taps, count, channels, to, pitch } = self.0;
        let plane = image.len() / channels;
        for first in (0..count).step_by(V::N) {
            let places = first..first + V::N;
            let paired = K > 1
                && taps
                    .as_chunks::<2>()
                    .0
                    .iter()
                    .all(|[a, b]| follow(&a.pixels[places.clone()], &b.pixels[places.clone()]));
            for channel in 0..channels {
                // SAFETY: the machine has the instructions, as the caller promises; numbers are of pixels, which lie in each
                // plane, also behind the last place; places are below their number, and their room in the result is the
                // task's.
                let from = image.as_ptr().add(channel * plane);
                let sum =
                    if paired { pairs::<T, V, K>(from, taps, first) } else { alone::<T, V, K>(from, taps, first) };
                sum.store_some(to.add(channel * pitch + first), V::N.min(count - first));
            }
        }
    }
}

/// Whether each of the first is a pixel, and that of the second is the next.
#[inline(always)]
fn follow(a: &[i32], b: &[i32]) -> bool {
    a.iter().zip(b).fold(0, |gaps, (&a, &b)| gaps | a >> 31 | (b ^ (a + 1))) == 0
}

/// Sums of pixels times weights, which `part` reads.
///
/// # Safety
/// The machine has the instructions.
#[inline(always)]
unsafe fn sum<T: Place, V: Lanes<Elem = T>, const K: usize>(taps: &[Tap<T>; K], part: impl Fn(&Tap<T>) -> (V, V)) -> V {
    let (pixels, weights) = part(&taps[0]);
    let mut sum = pixels.mul(weights);
    for tap in &taps[1..] {
        let (pixels, weights) = part(tap);
        sum = pixels.mul_add(weights, sum);
    }
    sum
}

/// Sums of weighted pixels.
///
/// # Safety
/// The machine has the instructions; from `first` on there are the places of a register, all of whose pixels are there.
#[inline(always)]
unsafe fn alone<T: Place, V: Lanes<Elem = T>, const K: usize>(from: *const T, taps: &[Tap<T>; K], first: usize) -> V {
    sum(taps, |tap| {
        let pixels = V::gather(from, tap.pixels.as_ptr().add(first), V::N);
        (pixels, V::load(tap.weights.as_ptr().add(first)))
    })
}

/// The same sums, to the bit, where each second pixel is behind the one before it.
///
/// # Safety
/// As [`alone`], and no number is -1.
#[inline(always)]
unsafe fn pairs<T: Place, V: Lanes<Elem = T>, const K: usize>(from: *const T, taps: &[Tap<T>; K], first: usize) -> V {
    let mut sum = V::splat(T::default());
    for (pair, [a, b]) in taps.as_chunks::<2>().0.iter().enumerate() {
        let (left, right) = V::gather_pairs(from, a.pixels.as_ptr().add(first));
        let (by, behind) = (V::load(a.weights.as_ptr().add(first)), V::load(b.weights.as_ptr().add(first)));
        sum = if pair == 0 { left.mul(by) } else { left.mul_add(by, sum) };
        sum = right.mul_add(behind, sum);
    }
    sum
}

impl<T: Place, const K: usize> Kernel<T> for Pixels<'_, T, K> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let Reading { image, taps, count, channels, to, pitch } = self.0;
        let (outside, mut tile) = ([T::default(); 16], [T::default(); 256]);
        for first in (0..count).step_by(V::N) {
            let places = V::N.min(count - first);
            for channel in (0..channels).step_by(V::N) {
                let width = V::N.min(channels - channel);
                for place in 0..places {
                    // SAFETY: the machine has the instructions, as the caller promises; places are below their number, and
                    // numbers are of pixels.
                    let part = |tap: &Tap<T>| {
                        let (pixel, weight) =
                            (*tap.pixels.get_unchecked(first + place), *tap.weights.get_unchecked(first + place));
                        let inside = image.as_ptr().wrapping_offset(pixel as isize * channels as isize);
                        let from = if pixel < 0 { outside.as_ptr() } else { inside.wrapping_add(channel) };
                        (V::load_some(from, width), V::splat(weight))
                    };
                    sum::<T, V, K>(taps, part).store(tile.as_mut_ptr().add(place * V::N));
                }
                let block = Block { at: tile.as_ptr(), pitch: V::N, rows: places, cols: width };
                // SAFETY: registers have at most sixteen lanes; each task has its own places of each channel.
                V::transpose(block, to.add(channel * pitch + first), pitch, places);
            }
        }
    }
}
