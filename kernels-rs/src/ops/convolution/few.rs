//! The forward pass of few positions, where the weights are most of the data: what each position reads is copied into a
//! row, and the results are dot products of the rows with the weights, which are read once and where they lie.

use super::Window;
use super::axis::WindowAxis;
use crate::array::Array;
use crate::error::Result;
use crate::machine::lanes::Real;
use crate::ops::contraction::{self, Call, Epilogue, Gemm, Matrix};

/// Most positions: that many rows are multiplied by dot products.
const POSITIONS: usize = 8;
/// Least output channels: they share what is copied.
const OUTPUTS: usize = 8;
/// Least numbers that a result is summed over.
const TERMS: usize = 64;

/// True when the results are few, and each is a long sum.
pub fn applies(window: &Window) -> bool {
    let positions = window.row.output * window.col.output;
    window.batch == 1
        && window.groups == 1
        && (1..=POSITIONS).contains(&positions)
        && window.row.input * window.col.input > 0
        && window.outputs >= OUTPUTS
        && terms(window) >= TERMS
}

/// Writes all of `out`.
pub fn forward<T: Gemm + Real>(
    window: &Window,
    x: &[T],
    weight: &[T],
    bias: Option<&[T]>,
    out: &mut [T],
) -> Result<()> {
    let (positions, terms) = (window.row.output * window.col.output, terms(window));
    assert_eq!(weight.len(), window.outputs * terms);
    assert_eq!(out.len(), window.outputs * positions);
    let mut rows = Array::uninit(T::DTYPE, &[positions, terms])?;
    gather(window, x, rows.as_mut_slice());
    let call = Call {
        size: (positions, terms, window.outputs),
        a: Matrix::new(rows.mut_ptr::<T>(), (terms as isize, 1)),
        b: Matrix::new(weight.as_ptr().cast_mut(), (1, terms as isize)),
        c: Matrix::new(out.as_mut_ptr(), (1, positions as isize)),
        end: Epilogue { bias: bias.map(|bias| Matrix::new(bias.as_ptr().cast_mut(), (0, 1))), ..Epilogue::default() },
    };
    // SAFETY: the operands have these sizes, which were compared; the rows and the result are ours.
    unsafe { contraction::multiply(&call, true, None) }
}

/// Numbers that a result is summed over.
fn terms(window: &Window) -> usize {
    window.inputs * window.row.kernel * window.col.kernel
}

/// Copies what each position reads, in the order of the weights: zeros where that is padding.
fn gather<T: Real>(window: &Window, x: &[T], rows: &mut [T]) {
    let (row, col) = (&window.row, &window.col);
    let mut lines = rows.chunks_exact_mut(col.kernel);
    for (t, u) in (0..row.output).flat_map(|t| (0..col.output).map(move |u| (t, u))) {
        for plane in x.chunks_exact(row.input * col.input) {
            for k in 0..row.kernel {
                let to = lines.next().expect("a line for each position, channel and row of the kernel");
                match row.place(t, k) {
                    Some(i) => copy(col, u, &plane[i * col.input..(i + 1) * col.input], to),
                    None => to.fill(T::default()),
                }
            }
        }
    }
}

/// Copies what a position reads of a line of the source.
fn copy<T: Real>(axis: &WindowAxis, position: usize, from: &[T], to: &mut [T]) {
    let last = axis.place(position, axis.kernel - 1);
    if let (1, Some(first), Some(_)) = (axis.dilation, axis.place(position, 0), last) {
        return to.copy_from_slice(&from[first..first + axis.kernel]);
    }
    for (tap, value) in to.iter_mut().enumerate() {
        *value = axis.place(position, tap).map_or(T::default(), |at| from[at]);
    }
}
