//! Programs as data.

use crate::dtype::DType;

/// One elementwise op: its name, the values it takes, the type of its result.
#[derive(Clone, Debug)]
pub struct Instr {
    /// A row of the op tables, or `cast`, `clip`, `where`; or a source: `random_normal`, `random_uniform`.
    pub op: String,
    /// Values, counted from 0: inputs, numbers, then instructions.
    pub args: Vec<usize>,
    /// Of the result.
    pub dtype: DType,
}

/// Elementwise ops over inputs and numbers whose shapes broadcast.
#[derive(Clone, Debug)]
pub struct Program {
    /// Types of the inputs.
    pub inputs: Vec<DType>,
    /// Types that the numbers take.
    pub numbers: Vec<DType>,
    /// In an order in which they can run.
    pub instrs: Vec<Instr>,
    /// The instructions whose results are wanted, as values.
    pub outputs: Vec<usize>,
}
