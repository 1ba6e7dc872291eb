//! What one axis of a convolution reads.
//!
//! Forward and input gradient are both correlations: result `t` along an axis is a sum over taps of
//! `source[t * step + offset]`. Forward: `step` is the stride. Input gradient with stride `s`: `s` interleaved
//! correlations of the gradient with step 1, each over the taps that reach its residue class.

use crate::memory::scratch::collected;

/// A kernel position along the axis and where it reads in the tile (see [`Axis::source`]).
#[derive(Clone, Copy, Debug)]
pub struct Tap {
    /// Position in the kernel.
    pub index: usize,
    /// Index into the phases that the tile holds.
    pub slot: usize,
    /// Elements to the right of result 0 in that phase.
    pub shift: usize,
}

/// One axis of a correlation. Result `t` lies at `out_start + t * out_step`.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Results.
    pub count: usize,
    /// Where result 0 goes.
    pub out_start: usize,
    /// From one result to the next.
    pub out_step: usize,
    /// The kernel positions that contribute.
    pub taps: Vec<Tap>,
    step: usize,
    base: isize,
    phases: Vec<usize>,
}

/// The geometry of a window along one axis, as the user gives it.
#[derive(Clone, Copy, Debug)]
pub struct WindowAxis {
    /// Length of the input.
    pub input: usize,
    /// Length of the output.
    pub output: usize,
    /// Kernel positions.
    pub kernel: usize,
    /// Stride.
    pub stride: usize,
    /// Padding before the input.
    pub pad: usize,
    /// Dilation.
    pub dilation: usize,
}

impl WindowAxis {
    /// Where a position reads for a tap; none where that is padding.
    pub fn place(&self, position: usize, tap: usize) -> Option<usize> {
        let at = (position * self.stride + tap * self.dilation).wrapping_sub(self.pad);
        (at < self.input).then_some(at)
    }
}

impl Axis {
    fn new(count: usize, out: (usize, usize), step: usize, offsets: &[(usize, isize)]) -> Self {
        let base = offsets.iter().map(|&(_, offset)| offset).min().unwrap_or(0);
        let mut phases = collected(offsets.iter().map(|&(_, offset)| (offset - base) as usize % step));
        phases.sort_unstable();
        phases.dedup();
        let tap = |&(index, offset): &(usize, isize)| {
            let distance = (offset - base) as usize;
            let slot = phases.iter().position(|&phase| phase == distance % step).expect("listed above");
            Tap { index, slot, shift: distance / step }
        };
        let taps = collected(offsets.iter().map(tap));
        Self { count, out_start: out.0, out_step: out.1, taps, step, base, phases }
    }

    /// The axis of a forward pass.
    pub fn forward(window: WindowAxis) -> Self {
        let offset = |k: usize| (k, (k * window.dilation) as isize - window.pad as isize);
        let offsets = collected((0..window.kernel).map(offset));
        Self::new(window.output, (0, 1), window.stride, &offsets)
    }

    /// The axes of an input gradient, one per residue class of the input modulo the stride.
    pub fn adjoint(window: WindowAxis) -> Vec<Self> {
        let stride = window.stride as isize;
        let of_phase = |phase: usize| {
            let reach = |k: usize| phase as isize + window.pad as isize - (k * window.dilation) as isize;
            let hits = (0..window.kernel).filter(|&k| reach(k).rem_euclid(stride) == 0);
            let offsets = collected(hits.map(|k| (k, reach(k).div_euclid(stride))));
            Self::new((window.input - phase).div_ceil(window.stride), (phase, window.stride), 1, &offsets)
        };
        collected((0..window.stride.min(window.input)).map(of_phase))
    }

    /// Phases (residues of the source position modulo the step) that a tile must hold.
    pub fn slots(&self) -> usize {
        self.phases.len()
    }

    /// Elements per phase for a tile of `results`.
    pub fn extent(&self, results: usize) -> usize {
        results + self.taps.iter().map(|tap| tap.shift).max().unwrap_or(0)
    }

    /// Source position of element 0 of a phase in the tile that starts at result `first`, and the step between
    /// elements.
    pub fn source(&self, first: usize, slot: usize) -> (isize, usize) {
        ((first * self.step + self.phases[slot]) as isize + self.base, self.step)
    }
}
