//! The kernels, one room per family of ops.

pub mod attention;
pub mod blocks;
pub mod contraction;
pub mod convolution;
pub mod distance;
pub mod elementwise;
pub mod factorization;
pub mod indexing;
pub mod interpolation;
pub mod movement;
pub mod parts;
pub mod pooling;
#[cfg(target_arch = "x86_64")]
pub mod program;
pub mod quantization;
pub mod random;
pub mod recurrence;
pub mod reduction;
pub mod rows;
#[cfg(test)]
pub mod samples;
pub mod sampling;
pub mod scan;
pub mod sort;
pub mod statistics;
pub mod step;
pub mod transform;
pub mod ways;
