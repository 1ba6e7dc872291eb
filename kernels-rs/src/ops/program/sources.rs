//! Sources: instructions that draw random numbers. To the code they are inputs behind those of the program, whose blocks are
//! drawn where others are read; so a number has the bits that the op by itself gives, and lies in no memory but a block.

use super::data::{Instr, Program};
use crate::array::scalar::Scalar;
use crate::dtype::DType;
use crate::error::Result;
use crate::memory::scratch::{collected, filled};
use crate::ops::random::{Law, Stream};

/// What an instruction draws, and which numbers of the program tell it: two parameters, key and counter.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    law: Law,
    dtype: DType,
    numbers: [usize; 4],
}

/// The types as which the numbers of a source are taken.
const TYPES: [DType; 4] = [DType::F64, DType::F64, DType::U64, DType::U64];

/// A program whose sources are its last inputs.
#[derive(Debug)]
pub struct Split {
    pub program: Program,
    pub sources: Vec<Source>,
    /// Which numbers of the whole it takes.
    pub numbers: Vec<usize>,
}

/// Whether an instruction draws.
pub fn is_source(instr: &Instr) -> bool {
    Law::of(&instr.op).is_some()
}

/// Takes the sources out of a program; `None` where one is a result, or takes other values than its numbers.
pub fn split(whole: &Program) -> Option<Split> {
    let (inputs, count) = (whole.inputs.len(), whole.numbers.len());
    let first = inputs + count;
    let mut sources = Vec::new();
    let (mut asked, mut taken) = (filled(false, first), filled(false, first));
    for (at, instr) in (first..).zip(&whole.instrs) {
        let Some(law) = Law::of(&instr.op) else {
            instr.args.iter().filter(|arg| **arg < first).for_each(|&arg| taken[arg] = true);
            continue;
        };
        let typed = instr
            .args
            .iter()
            .zip(TYPES)
            .all(|(&arg, dtype)| arg >= inputs && arg < first && whole.numbers[arg - inputs] == dtype);
        if !typed || instr.args.len() != TYPES.len() || !instr.dtype.is_float() || whole.outputs.contains(&at) {
            return None;
        }
        instr.args.iter().for_each(|&arg| asked[arg] = true);
        sources.push(Source { law, dtype: instr.dtype, numbers: std::array::from_fn(|k| instr.args[k] - inputs) });
    }
    let numbers: Vec<usize> = (0..count).filter(|at| taken[inputs + at] || !asked[inputs + at]).collect();
    let mut names = filled(0, first + whole.instrs.len());
    (0..inputs).for_each(|at| names[at] = at);
    let start = inputs + sources.len();
    numbers.iter().enumerate().for_each(|(new, at)| names[inputs + at] = start + new);
    let (mut drawn, mut instrs) = (inputs, Vec::new());
    for (at, instr) in (first..).zip(&whole.instrs) {
        if is_source(instr) {
            names[at] = drawn;
            drawn += 1;
        } else {
            names[at] = start + numbers.len() + instrs.len();
            let args = instr.args.iter().map(|&arg| names[arg]).collect();
            instrs.push(Instr { args, ..instr.clone() });
        }
    }
    let dtypes = sources.iter().map(|source| source.dtype);
    let program = Program {
        inputs: whole.inputs.iter().copied().chain(dtypes).collect(),
        numbers: numbers.iter().map(|&at| whole.numbers[at]).collect(),
        instrs,
        outputs: whole.outputs.iter().map(|&at| names[at]).collect(),
    };
    Some(Split { program, sources, numbers })
}

/// What the sources draw in a call with these numbers.
pub fn streams(sources: &[Source], numbers: &[Scalar]) -> Result<Vec<Stream>> {
    let stream = |source: &Source| {
        let [first, second, key, counter] = source.numbers.map(|at| numbers[at]);
        Ok(Stream {
            law: source.law,
            dtype: source.dtype,
            first: first.to()?,
            second: second.to()?,
            key: key.to()?,
            counter: counter.to()?,
        })
    };
    sources.iter().map(stream).collect()
}

/// Those of the numbers that fill slots.
pub fn chosen(numbers: &[Scalar], places: &[usize]) -> Vec<Scalar> {
    collected(places.iter().map(|&at| numbers[at]))
}

#[cfg(test)]
mod tests;
