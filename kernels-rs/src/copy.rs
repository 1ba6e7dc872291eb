//! Row-major copies of arrays with any layout: runs, repeated elements, transposed blocks, and the rest one by one.

use crate::array::Array;
use crate::error::Result;
use crate::shape::{self, Shape};
use crate::threads::{self, SharedMut};

/// Bytes per task.
const GRAIN_BYTES: usize = 128 << 10;

/// A row-major copy.
pub fn to_contiguous(x: &Array) -> Result<Array> {
    let out = Array::uninit(x.dtype(), x.shape())?;
    let to = out.data().cast_mut();
    let (dims, strides) = shape::merge_axes(x.shape(), x.strides());
    // SAFETY: the walk over shape and strides stays inside `x`; `out` is fresh and holds as many elements. Elements of
    // one size are moved as integers of that size.
    unsafe {
        match x.dtype().itemsize() {
            1 => copy_sized::<u8, 64>(x.data(), &dims, &strides, to),
            2 => copy_sized::<u16, 32>(x.data().cast(), &dims, &strides, to.cast()),
            4 => copy_sized::<u32, 16>(x.data().cast(), &dims, &strides, to.cast()),
            _ => copy_sized::<u64, 8>(x.data().cast(), &dims, &strides, to.cast()),
        }
    }
    Ok(out)
}

/// A source address that tasks share.
#[derive(Clone, Copy)]
struct From<S>(*const S);

// SAFETY: only read, and the array behind it outlives the copy.
unsafe impl<S> Sync for From<S> {}

impl<S> From<S> {
    #[inline]
    fn at(self, index: &[usize], strides: &[isize]) -> *const S {
        let offset: isize = index.iter().zip(strides).map(|(&i, &step)| i as isize * step).sum();
        self.0.wrapping_offset(offset)
    }
}

/// # Safety
/// Every element of the walk is readable at `from`, and `to` is fresh and holds them all.
unsafe fn copy_sized<S: Copy + Default + Send + Sync, const BLOCK: usize>(
    from: *const S,
    dims: &[usize],
    strides: &[isize],
    to: *mut S,
) {
    let rank = dims.len();
    let len = shape::numel(dims);
    let (from, to) = (From(from), SharedMut::new(to));
    let last = rank - 1;
    // The axis along which the source is a run, when that is not the last one.
    let run_axis = (0..last).find(|&axis| strides[axis] == 1 && dims[axis] >= BLOCK);
    match run_axis {
        Some(axis) if strides[last] != 1 && strides[last] != 0 && dims[last] >= BLOCK => {
            transpose::<S, BLOCK>(from, dims, strides, axis, to);
        }
        _ => threads::for_ranges(len, GRAIN_BYTES / size_of::<S>(), &|range| {
            // SAFETY: the ranges are disjoint parts of the fresh result.
            let out = unsafe { to.slice(range.clone()) };
            // SAFETY: the walk stays inside the source.
            unsafe { copy_range(from, dims, strides, range.start, out) };
        }),
    }
}

/// Writes `out`, the elements of the walk from `start` on.
///
/// # Safety
/// As for [`copy_sized`].
unsafe fn copy_range<S: Copy>(from: From<S>, dims: &[usize], strides: &[isize], start: usize, out: &mut [S]) {
    let last = dims.len() - 1;
    let step = strides[last];
    let mut index = shape::unravel(dims, start);
    let mut done = 0;
    while done < out.len() {
        let len = (dims[last] - index[last]).min(out.len() - done);
        let source = from.at(&index, strides);
        let part = &mut out[done..done + len];
        // SAFETY: as the caller promises: `len` steps along the last axis stay inside it.
        unsafe {
            match step {
                1 => part.copy_from_slice(std::slice::from_raw_parts(source, len)),
                0 => part.fill(*source),
                _ => {
                    for (i, slot) in part.iter_mut().enumerate() {
                        *slot = *source.offset(i as isize * step);
                    }
                }
            }
        }
        done += len;
        shape::carry(&mut index, dims);
    }
}

/// Copies in blocks of BLOCK x BLOCK (a cache line wide) over the last axis and `axis`, along which the source is a run.
/// A block goes through a local buffer: its rows are powers of two apart and would push each other out of the cache.
fn transpose<S: Copy + Default + Send + Sync, const BLOCK: usize>(
    from: From<S>,
    dims: &[usize],
    strides: &[isize],
    axis: usize,
    to: SharedMut<S>,
) {
    let last = dims.len() - 1;
    let to_strides = shape::contiguous_strides(dims);
    let mut outer: Shape = Shape::empty();
    let mut outer_axes: Shape = Shape::empty();
    for (other, &n) in dims[..last].iter().enumerate().filter(|&(other, _)| other != axis) {
        outer.push(n);
        outer_axes.push(other);
    }
    outer.push(dims[axis].div_ceil(BLOCK));
    outer_axes.push(axis);
    let strip = dims[last] * BLOCK * size_of::<S>();
    let per_task = (GRAIN_BYTES / strip.max(1)).max(1);
    let strips = shape::numel(&outer);
    threads::parallel(strips.div_ceil(per_task), &|task| {
        for strip in task * per_task..strips.min((task + 1) * per_task) {
            let at = shape::unravel(&outer, strip);
            let mut index: Shape = Shape::filled(0, dims.len());
            for (&axis, &i) in outer_axes.iter().zip(at.iter()) {
                index[axis] = i;
            }
            index[axis] *= BLOCK;
            let height = BLOCK.min(dims[axis] - index[axis]);
            let source = from.at(&index, strides);
            let target = From(to.ptr().cast_const()).at(&index, &to_strides).cast_mut();
            for column in (0..dims[last]).step_by(BLOCK) {
                let width = BLOCK.min(dims[last] - column);
                // SAFETY: the block lies inside source and result, and this task alone writes this strip.
                unsafe {
                    block::<S, BLOCK>(
                        source.offset(column as isize * strides[last]),
                        strides[last],
                        target.add(column),
                        to_strides[axis],
                        (height, width),
                    );
                }
            }
        }
    });
}

/// Turns `size.1` runs of `size.0` elements into `size.0` rows of `size.1`.
///
/// # Safety
/// Runs and rows lie inside their arrays; nobody else touches the rows.
#[inline]
unsafe fn block<S: Copy + Default, const BLOCK: usize>(
    from: *const S,
    from_step: isize,
    to: *mut S,
    to_step: isize,
    size: (usize, usize),
) {
    let (height, width) = size;
    let mut buffer = [[S::default(); BLOCK]; BLOCK];
    // SAFETY: as the caller promises.
    unsafe {
        if height == BLOCK && width == BLOCK {
            for (j, run) in buffer.iter_mut().enumerate() {
                *run = from.offset(j as isize * from_step).cast::<[S; BLOCK]>().read_unaligned();
            }
            #[expect(clippy::needless_range_loop, reason = "i runs over columns of the buffer")]
            for i in 0..BLOCK {
                let row: [S; BLOCK] = std::array::from_fn(|j| buffer[j][i]);
                to.offset(i as isize * to_step).cast::<[S; BLOCK]>().write_unaligned(row);
            }
            return;
        }
        for (j, run) in buffer.iter_mut().enumerate().take(width) {
            std::ptr::copy_nonoverlapping(from.offset(j as isize * from_step), run.as_mut_ptr(), height);
        }
        for i in 0..height {
            for (j, run) in buffer.iter().enumerate().take(width) {
                to.offset(i as isize * to_step + j as isize).write(run[i]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view;

    fn naive(x: &Array) -> Vec<u32> {
        let (dims, strides) = (*x.shape(), *x.strides());
        (0..x.numel())
            .map(|at| {
                let index = shape::unravel(&dims, at);
                let offset: isize = index.iter().zip(strides.iter()).map(|(&i, &step)| i as isize * step).sum();
                // SAFETY: the index lies inside the shape.
                unsafe { *x.ptr::<u32>().offset(offset) }
            })
            .collect()
    }

    #[test]
    fn every_layout_copies_like_the_naive_walk() {
        let dense = |shape: &[usize]| {
            let values: Vec<u32> = (0..shape::numel(shape) as u32).collect();
            Array::from_slice(&values, shape).unwrap()
        };
        let cube = dense(&[37, 50, 65]);
        let flipped = view::flip(&cube, &[0, 2]).unwrap();
        let sliced = view::slice(&cube, &[36, 3, 1], &[12, 20, 31], &[-3, 2, 2]).unwrap();
        let stretched = view::broadcast_to(&dense(&[33, 1]), &[4, 33, 40]).unwrap();
        for x in [cube, flipped, sliced, stretched, dense(&[1, 1, 1]), dense(&[0, 3, 2])] {
            for axes in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
                let view = view::permute_dims(&x, &axes).unwrap();
                let copy = to_contiguous(&view).unwrap();
                assert!(copy.is_contiguous());
                assert_eq!(copy.as_slice::<u32>().unwrap(), naive(&view), "{view:?}");
            }
        }
    }
}
