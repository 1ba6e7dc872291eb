//! Chains of elementwise ops as one kernel: a program becomes an array of handlers, each of which works on the elements in eight
//! vector registers and jumps to the next one, so that values between ops never leave the core.
//!
//! Handlers are made from the rows of the op tables; rows that cost much more than a call are called: the row kernel itself
//! runs on the registers. So every value has the bits that the op by itself gives. There are handlers for AVX2 and
//! AVX-512; elsewhere a program has no code, and its ops run one by one.
//!
//! A handler reads its second operand from memory: an input, a value saved in a slot, or a number that fills a slot. A program
//! has one width, 4 or 8 bytes; bools are lanes of 0 and 1, float16 and bfloat16 are lanes of `f32` that are rounded after
//! every instruction.
//!
//! A program may draw random numbers: they are inputs whose blocks are made where others are read (`sources`).
//!
//! A program may fold its values over the last axes: register code fills rows, and the loops of the reductions fold them, in
//! their order. It runs in passes over a few rows at a time (`stages`, `folded`).

mod code;
mod data;
mod folded;
mod handler;
mod moves;
mod run;
mod sources;
mod stages;
mod table;
mod task;
#[cfg(test)]
mod tests;

pub use code::{Code, compile};
pub use data::{Instr, Program};
pub use folded::run as run_stages;
pub use run::run;
pub use stages::{Folds, Stages, staged};
