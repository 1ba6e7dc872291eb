//! The definitions, loop by loop, in `f64`: what the fast kernels are tested against.

use super::{Settings, Window};

/// Calls `visit(x index, weight index, out index)` for every product of the convolution.
pub fn for_each_product(
    window: &Window,
    input: [usize; 4],
    settings: &Settings,
    mut visit: impl FnMut(usize, usize, usize),
) {
    let [batch, inputs, rows, cols] = input;
    let [_, outputs, out_rows, out_cols] = window.output_shape();
    let (in_group, out_group) = (inputs / settings.groups, outputs / settings.groups);
    let (kernel_rows, kernel_cols) = (window.row.kernel, window.col.kernel);
    for n in 0..batch {
        for o in 0..outputs {
            for (i, j) in (0..out_rows).flat_map(|i| (0..out_cols).map(move |j| (i, j))) {
                for c in 0..in_group {
                    for (k, l) in (0..kernel_rows).flat_map(|k| (0..kernel_cols).map(move |l| (k, l))) {
                        let row = (i * settings.stride.0 + k * settings.dilation.0).wrapping_sub(settings.padding.0.0);
                        let col = (j * settings.stride.1 + l * settings.dilation.1).wrapping_sub(settings.padding.1.0);
                        if row < rows && col < cols {
                            let channel = o / out_group * in_group + c;
                            visit(
                                ((n * inputs + channel) * rows + row) * cols + col,
                                ((o * in_group + c) * kernel_rows + k) * kernel_cols + l,
                                ((n * outputs + o) * out_rows + i) * out_cols + j,
                            );
                        }
                    }
                }
            }
        }
    }
}
