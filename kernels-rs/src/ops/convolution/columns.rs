//! The input gradient over one small plane, where the weights are most of the data: a plain product in which they are read
//! once and where they lie. What is small is copied: a matrix `[position][channel and tap]` of results.

use super::Window;
use crate::array::Array;
use crate::error::Result;
use crate::machine::lanes::Real;
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::{reserved, with_scratch};
use crate::ops::contraction::{self, Call, Epilogue, Gemm, Matrix};

/// Most positions: that many rows read a right side where it lies.
const POSITIONS: usize = 64;
/// Least output channels: they are what a result is summed over.
const OUTPUTS: usize = 96;
/// Least weights.
const WEIGHTS: usize = 1 << 18;
/// Channels of a task that adds up.
const CHANNELS: usize = 32;

/// True when the plane is small, and the weights are many.
pub fn applies(window: &Window) -> bool {
    let positions = window.row.output * window.col.output;
    let taps = window.row.kernel * window.col.kernel;
    window.batch == 1
        && window.groups == 1
        && (1..=POSITIONS).contains(&positions)
        && taps > 1
        && window.outputs >= OUTPUTS
        && window.outputs * window.inputs * taps >= WEIGHTS
}

/// Writes the gradient with respect to the input, all of `out`: the products of the gradient and the weights, added up
/// where they belong, and to the bias.
pub fn input_grad<T: Gemm + Real>(
    window: &Window,
    g: &[T],
    weight: &[T],
    bias: Option<&[T]>,
    out: &mut [T],
) -> Result<()> {
    let sizes = Sizes::new(window);
    let mut columns = Array::uninit(T::DTYPE, &[sizes.positions, sizes.pitch])?;
    let products = Matrix::new(columns.mut_ptr::<T>(), (sizes.pitch as isize, 1));
    let call = Call {
        size: (sizes.positions, window.outputs, sizes.width()),
        a: Matrix::new(g.as_ptr().cast_mut(), (1, sizes.positions as isize)),
        b: Matrix::new(weight.as_ptr().cast_mut(), (sizes.width() as isize, 1)),
        c: products,
        end: Epilogue::default(),
    };
    // SAFETY: the operands have these sizes; the products are ours.
    unsafe { contraction::multiply(&call, true, None)? };
    let from = SharedMut::new(columns.mut_ptr::<T>());
    let out = SharedMut::new(out.as_mut_ptr());
    sizes.for_channels(&|channel, plane: &mut [T]| {
        plane.fill(bias.map_or(T::default(), |bias| bias[channel]));
        for (position, places) in sizes.places.chunks_exact(sizes.taps).enumerate() {
            let at = position * sizes.pitch + channel * sizes.taps;
            // SAFETY: inside the products, which are all there.
            let line = unsafe { from.slice(at..at + sizes.taps) };
            for (&place, &mut value) in places.iter().zip(line) {
                plane[place] = plane[place] + value;
            }
        }
        // SAFETY: each channel has its own plane.
        let to = unsafe { out.slice(channel * sizes.plane..(channel + 1) * sizes.plane) };
        to.copy_from_slice(&plane[..sizes.plane]);
    });
    Ok(())
}

struct Sizes {
    channels: usize,
    taps: usize,
    positions: usize,
    /// Elements of a plane of the source.
    plane: usize,
    /// From one position to the next: an odd number of cache lines, so that positions do not share cache sets.
    pitch: usize,
    /// Where each position reads for each tap, in a plane; `plane` where it reads nothing.
    places: Vec<usize>,
}

impl Sizes {
    fn new(window: &Window) -> Self {
        let (row, col) = (&window.row, &window.col);
        let (channels, taps) = (window.inputs, row.kernel * col.kernel);
        let plane = row.input * col.input;
        let mut places = reserved(row.output * col.output * taps);
        for (t, u) in (0..row.output).flat_map(|t| (0..col.output).map(move |u| (t, u))) {
            for (k, l) in (0..row.kernel).flat_map(|k| (0..col.kernel).map(move |l| (k, l))) {
                let at = row.place(t, k).zip(col.place(u, l));
                places.push(at.map_or(plane, |(i, j)| i * col.input + j));
            }
        }
        let pitch = ((channels * taps).div_ceil(16) | 1) * 16;
        Self { channels, taps, positions: row.output * col.output, plane, pitch, places }
    }

    fn width(&self) -> usize {
        self.channels * self.taps
    }

    /// Calls `work` with each channel and room for a plane and an element more.
    fn for_channels<T: Real>(&self, work: &(dyn Fn(usize, &mut [T]) + Sync)) {
        threads::parallel(self.channels.div_ceil(CHANNELS), &|task| {
            with_scratch(self.plane + 1, |plane| {
                for channel in task * CHANNELS..self.channels.min((task + 1) * CHANNELS) {
                    work(channel, plane);
                }
            });
        });
    }
}
