//! Basic indexing: one view for a whole index.

use crate::array::Array;
use crate::array::shape::{Shape, Strides, check_rank};
use crate::error::{Error, Result};

/// What an index says, part by part. All but `New` take an axis of the operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Drops the axis at this place.
    At(usize),
    /// Keeps the axis.
    Keep,
    /// Adds an axis of length 1.
    New,
    /// Element `k` is the one at `start + k * step`, `size` of them.
    Slice {
        /// Place of the first element.
        start: usize,
        /// Number of elements.
        size: usize,
        /// From one to the next.
        step: isize,
    },
}

/// The view that an index asks for; axes behind its last part are kept.
pub fn getitem(x: &Array, parts: &[Part]) -> Result<Array> {
    let (mut shape, mut strides, mut offset) = (Shape::empty(), Strides::empty(), x.offset() as isize);
    let (mut axis, empty) = (0, x.numel() == 0);
    let kept = parts.iter().filter(|part| !matches!(part, Part::At(_))).count();
    let taken = parts.iter().filter(|&&part| part != Part::New).count();
    if taken > x.rank() {
        return Err(Error::Rejected("more parts than axes"));
    }
    check_rank(kept + x.rank() - taken).map_err(|_| Error::Rejected("more axes than there may be"))?;
    for &part in parts {
        if part == Part::New {
            shape.push(1);
            strides.push(0);
            continue;
        }
        let (n, stride) = (x.shape()[axis], x.strides()[axis]);
        axis += 1;
        match part {
            Part::At(place) => {
                if place >= n {
                    return Err(Error::Rejected("an index leaves its axis"));
                }
                if !empty {
                    offset += place as isize * stride;
                }
            }
            Part::Slice { start, size, step } => {
                let last = start as i128 + size.saturating_sub(1) as i128 * step as i128;
                if size > 0 && (start >= n || last < 0 || last >= n as i128) {
                    return Err(Error::Rejected("a slice leaves its axis"));
                }
                shape.push(size);
                strides.push(stride.wrapping_mul(step));
                if !empty && size > 0 {
                    offset += start as isize * stride;
                }
            }
            Part::Keep | Part::New => {
                shape.push(n);
                strides.push(stride);
            }
        }
    }
    for axis in axis..x.rank() {
        shape.push(x.shape()[axis]);
        strides.push(x.strides()[axis]);
    }
    x.with_geometry(&shape, &strides, offset as usize)
}
