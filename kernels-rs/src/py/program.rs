//! Programs: chains of elementwise ops as one kernel.

use pyo3::prelude::*;
use pyo3::types::PyModule;

#[cfg(target_arch = "x86_64")]
mod kernel {
    use crate::array::Array;
    use crate::array::scalar::Scalar;
    use crate::dtype::DType;
    use crate::error::Result;
    use crate::machine::simd::level;
    use crate::ops::program::{self, Code, Folds, Instr, Program, Stages};
    use crate::py::arg;
    use crate::py::error::rejected;
    use crate::py::frame::{self, Made, Num, Place, Step};
    use crate::py::raw::{RawTensor, scalar};
    use pyo3::prelude::*;
    use pyo3::types::{PyString, PyTuple};
    use std::sync::Arc;

    /// What runs a program: a function of its operands, then its numbers, that gives a tuple of results.
    #[pyclass(frozen, module = "phlox_kernels._native")]
    pub struct Kernel {
        code: Arc<Any>,
        inputs: usize,
    }

    enum Any {
        Map(Code),
        Folds(Stages),
    }

    #[pymethods]
    impl Kernel {
        #[pyo3(signature = (*args))]
        fn __call__<'py>(&self, py: Python<'py>, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
            let call = Call::of(args, self.inputs)?;
            let arrays = call.arrays();
            arg::run(py, call.work(), || self.run(&arrays, &call.numbers))
        }

        /// Runs it for each of some tuples of arguments, and gives the results of all, one after the other.
        fn over<'py>(&self, py: Python<'py>, calls: Vec<Bound<'py, PyTuple>>) -> PyResult<Bound<'py, PyAny>> {
            let calls = calls.iter().map(|args| Call::of(args, self.inputs)).collect::<PyResult<Vec<_>>>()?;
            let given: Vec<(Vec<&Array>, &[Scalar])> =
                calls.iter().map(|call| (call.arrays(), &call.numbers[..])).collect();
            arg::run(py, calls.iter().map(Call::work).sum(), || {
                let mut results = Vec::new();
                for (arrays, numbers) in &given {
                    results.extend(self.run(arrays, numbers)?);
                }
                Ok(results)
            })
        }
    }

    impl Kernel {
        fn run(&self, arrays: &[&Array], numbers: &[Scalar]) -> Result<Vec<Array>> {
            self.code.run(arrays, numbers)
        }
    }

    impl Any {
        fn run(&self, arrays: &[&Array], numbers: &[Scalar]) -> Result<Vec<Array>> {
            match self {
                Self::Map(code) => program::run(code, arrays, numbers),
                Self::Folds(stages) => program::run_stages(stages, arrays, numbers),
            }
        }
    }

    /// The arguments of a call.
    struct Call<'a, 'py> {
        tensors: Vec<Borrowed<'a, 'py, RawTensor>>,
        numbers: Vec<Scalar>,
    }

    impl<'a, 'py> Call<'a, 'py> {
        fn of(args: &'a Bound<'py, PyTuple>, inputs: usize) -> PyResult<Self> {
            let mut call = Call { tensors: Vec::new(), numbers: Vec::new() };
            for (at, item) in args.iter_borrowed().enumerate() {
                if at < inputs {
                    let tensor = item.cast::<RawTensor>();
                    call.tensors.push(tensor.map_err(|_| rejected("operand is not a primitive of this backend"))?);
                } else {
                    call.numbers.push(scalar(&item)?);
                }
            }
            Ok(call)
        }

        fn arrays(&self) -> Vec<&Array> {
            self.tensors.iter().map(|tensor| &tensor.get().array).collect()
        }

        fn work(&self) -> usize {
            self.tensors.iter().map(|tensor| tensor.get().array.numel()).sum()
        }
    }

    /// The kernel of a program, or `None` where this machine has no code for it.
    #[pyfunction]
    #[pyo3(signature = (inputs, numbers, instrs, outputs, inner, keepdims, rows, /))]
    pub fn _program(
        inputs: Vec<Bound<'_, PyString>>,
        numbers: Vec<Bound<'_, PyString>>,
        instrs: Vec<(String, Vec<usize>, Bound<'_, PyString>)>,
        outputs: Vec<usize>,
        inner: usize,
        keepdims: bool,
        rows: Vec<usize>,
    ) -> PyResult<Option<Kernel>> {
        let dtype = |name: &Bound<'_, PyString>| -> PyResult<DType> { Ok(DType::from_name(&name.to_cow()?)?) };
        let dtypes = |names: &[Bound<'_, PyString>]| names.iter().map(dtype).collect::<PyResult<Vec<_>>>();
        let count = inputs.len();
        let instr = |(op, args, name): (String, Vec<usize>, Bound<'_, PyString>)| -> PyResult<Instr> {
            Ok(Instr { op, args, dtype: dtype(&name)? })
        };
        let (inputs, numbers) = (dtypes(&inputs)?, dtypes(&numbers)?);
        let instrs = instrs.into_iter().map(instr).collect::<PyResult<Vec<_>>>()?;
        let program = Program { inputs, numbers, instrs, outputs };
        let code = if inner == 0 {
            program::compile(&program, level())?.map(Any::Map)
        } else {
            program::staged(&Folds { program, inner, keepdims, rows }, level())?.map(Any::Folds)
        };
        Ok(code.map(|code| Kernel { code: Arc::new(code), inputs: count }))
    }

    /// A program for each of some tuples of arguments as a step of a plan; `None` for any other function.
    pub fn step(function: &Bound<'_, PyAny>, each: &[Bound<'_, PyTuple>]) -> Option<Step> {
        let kernel = function.cast_exact::<Kernel>().ok()?.get();
        let (code, inputs) = (Arc::clone(&kernel.code), kernel.inputs);
        let calls = each.iter().map(|args| StepCall::of(args, inputs)).collect::<PyResult<Vec<_>>>().ok()?;
        Some(frame::step(move |frame| {
            let mut results = Vec::new();
            for call in &calls {
                let arrays = call.arrays.iter().map(|place| place.resolve(frame)).collect::<Result<Vec<_>>>()?;
                let numbers = call.numbers.iter().map(|number| number.resolve(frame)).collect::<Result<Vec<_>>>()?;
                results.extend(code.run(&arrays, &numbers)?);
            }
            Ok(Made::Many(results))
        }))
    }

    /// The arguments of a call in a plan.
    struct StepCall {
        arrays: Vec<Place>,
        numbers: Vec<Num<Scalar>>,
    }

    impl StepCall {
        fn of(args: &Bound<'_, PyTuple>, inputs: usize) -> PyResult<Self> {
            let mut items = args.iter_borrowed();
            let arrays = items.by_ref().take(inputs).map(|item| Place::keep(&item)).collect::<PyResult<_>>()?;
            let numbers = items.map(|item| Num::<Scalar>::keep(&item)).collect::<PyResult<_>>()?;
            Ok(Self { arrays, numbers })
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod kernel {
    use pyo3::prelude::*;
    use pyo3::types::PyTuple;

    /// There is no code for this machine.
    #[pyfunction]
    #[pyo3(signature = (*_parts))]
    pub fn _program(_parts: &Bound<'_, PyTuple>) {}

    /// There are no programs here.
    pub fn step(_: &Bound<'_, PyAny>, _: &[Bound<'_, PyTuple>]) -> Option<crate::py::frame::Step> {
        None
    }
}

pub(super) use kernel::step;

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(kernel::_program, module)?)
}
