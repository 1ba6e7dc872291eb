//! Plans: many ops as one call. Each step is a row or a program with its arguments taken apart once; arrays lie in slots.

use super::arg::{Arg, Text, run};
use super::error::rejected;
use super::frame::{Frame, Given, Made, Place, Slot, Step};
use super::raw::{RawTensor, scalar};
use super::{elementwise, table};
use crate::array::Array;
use crate::error::{Error, Result};
use crate::memory::scratch::reserved;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyModule, PyTuple};
use std::sync::Arc;

/// A step of plans.
#[pyclass(frozen, module = "phlox_kernels._native", name = "_Step")]
pub struct PlanStep {
    run: Step,
}

/// A step: an op by its name, or a program for each of some tuples of arguments; `None` for what must go through Python.
#[pyfunction]
#[pyo3(signature = (function, each, /))]
fn _step(function: &Bound<'_, PyAny>, each: Vec<Bound<'_, PyTuple>>) -> Option<PlanStep> {
    let made = match function.extract::<Text>() {
        Err(_) => super::program::step(function, &each),
        Ok(name) => {
            let name = name.as_value();
            match (elementwise::steps(name).or_else(|| table::steps(name)), &each[..]) {
                (Some(make), [args]) => make(args).ok(),
                _ => None,
            }
        }
    };
    made.map(|run| PlanStep { run })
}

/// A step, where its results go, and which slots are empty afterwards.
struct Line {
    run: Step,
    gives: Vec<usize>,
    ends: Vec<usize>,
}

/// Steps as one function: of a list of arrays, which it empties, and a tuple of numbers.
#[pyclass(frozen, module = "phlox_kernels._native", name = "_Plan")]
pub struct Plan {
    lines: Vec<Line>,
    slots: usize,
    results: Vec<usize>,
    work: usize,
}

#[pymethods]
impl Plan {
    /// Operands lie in the first slots. `work` is that of all steps, in elements.
    #[new]
    #[pyo3(signature = (lines, slots, results, work, /))]
    fn new(
        lines: Vec<(Bound<'_, PlanStep>, Vec<usize>, Vec<usize>)>,
        slots: usize,
        results: Vec<usize>,
        work: usize,
    ) -> PyResult<Self> {
        let line = |(step, gives, ends): (Bound<'_, PlanStep>, Vec<usize>, Vec<usize>)| {
            let run = Arc::clone(&step.get().run);
            Line { run, gives, ends }
        };
        let lines: Vec<_> = lines.into_iter().map(line).collect();
        let written = lines.iter().flat_map(|line| line.gives.iter().chain(&line.ends)).chain(&results);
        if written.copied().any(|place| place >= slots) {
            return Err(rejected("a slot that the plan does not have"));
        }
        Ok(Self { lines, slots, results, work })
    }

    #[pyo3(signature = (operands, numbers, /))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        operands: &Bound<'py, PyList>,
        numbers: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut frame = Frame { slots: Vec::new(), numbers: Vec::new() };
        for item in operands.iter() {
            let tensor = item.cast_exact::<RawTensor>();
            let tensor = tensor.map_err(|_| rejected("operand is not a primitive of this backend"))?;
            frame.slots.push(Some(tensor.get().array.clone()));
        }
        for item in numbers.iter_borrowed() {
            frame.numbers.push(scalar(&item)?);
        }
        // What nobody else holds goes with its last use.
        operands.del_slice(0, operands.len())?;
        frame.slots.resize_with(self.slots, || None);
        run(py, self.work, move || self.run(frame))
    }
}

impl Plan {
    fn run(&self, mut frame: Frame) -> Result<Vec<Array>> {
        for line in &self.lines {
            match (line.run)(&frame)? {
                Made::One(array) => match line.gives[..] {
                    [place] => frame.slots[place] = Some(array),
                    _ => return Err(Error::Rejected("a step gives one result")),
                },
                Made::Many(arrays) => {
                    if arrays.len() != line.gives.len() {
                        return Err(Error::Rejected("a step gives another number of results"));
                    }
                    for (&place, array) in line.gives.iter().zip(arrays) {
                        frame.slots[place] = Some(array);
                    }
                }
            }
            for &place in &line.ends {
                frame.slots[place] = None;
            }
        }
        let mut results = reserved(self.results.len());
        for &place in &self.results {
            results.push(Place::Slot(place).resolve(&frame)?.clone());
        }
        Ok(results)
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Given>()?;
    module.add_class::<Plan>()?;
    module.add_class::<Slot>()?;
    module.add_class::<PlanStep>()?;
    module.add_function(wrap_pyfunction!(_step, module)?)
}
