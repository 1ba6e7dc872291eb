//! Programs: chains of elementwise ops as one kernel.

use pyo3::prelude::*;
use pyo3::types::PyModule;

#[cfg(target_arch = "x86_64")]
mod kernel {
    use crate::array::Array;
    use crate::dtype::DType;
    use crate::machine::simd::level;
    use crate::ops::program::{self, Code, Instr, Program};
    use crate::py::arg;
    use crate::py::error::rejected;
    use crate::py::tensor::RawTensor;
    use pyo3::prelude::*;
    use pyo3::types::{PyString, PyTuple};

    /// What runs a program: a function of its operands, then its numbers, that gives a tuple of results.
    #[pyclass(frozen, module = "phlox_kernels._native")]
    pub struct Kernel {
        code: Code,
        inputs: usize,
    }

    #[pymethods]
    impl Kernel {
        #[pyo3(signature = (*args))]
        fn __call__<'py>(&self, py: Python<'py>, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
            let mut tensors = Vec::new();
            let mut numbers = Vec::new();
            for (at, item) in args.iter_borrowed().enumerate() {
                if at < self.inputs {
                    let tensor = item.cast::<RawTensor>();
                    tensors.push(tensor.map_err(|_| rejected("operand is not a primitive of this backend"))?);
                } else {
                    numbers.push(arg::scalar(&item)?);
                }
            }
            let arrays: Vec<&Array> = tensors.iter().map(|tensor| &tensor.get().array).collect();
            let work = arrays.iter().map(|array| array.numel()).sum();
            arg::run(py, work, || program::run(&self.code, &arrays, &numbers))
        }
    }

    /// The kernel of a program, or `None` where this machine has no code for it.
    #[pyfunction]
    #[pyo3(signature = (inputs, numbers, instrs, outputs, /))]
    pub fn _program(
        inputs: Vec<Bound<'_, PyString>>,
        numbers: Vec<Bound<'_, PyString>>,
        instrs: Vec<(String, Vec<usize>, Bound<'_, PyString>)>,
        outputs: Vec<usize>,
    ) -> PyResult<Option<Kernel>> {
        let dtype = |name: &Bound<'_, PyString>| -> PyResult<DType> { Ok(DType::from_name(&name.to_cow()?)?) };
        let dtypes = |names: &[Bound<'_, PyString>]| names.iter().map(dtype).collect::<PyResult<Vec<_>>>();
        let count = inputs.len();
        let instr = |(op, args, name): (String, Vec<usize>, Bound<'_, PyString>)| -> PyResult<Instr> {
            Ok(Instr { op, args, dtype: dtype(&name)? })
        };
        let (inputs, numbers) = (dtypes(&inputs)?, dtypes(&numbers)?);
        let instrs = instrs.into_iter().map(instr).collect::<PyResult<Vec<_>>>()?;
        let code = program::compile(&Program { inputs, numbers, instrs, outputs }, level())?;
        Ok(code.map(|code| Kernel { code, inputs: count }))
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod kernel {
    use pyo3::prelude::*;

    /// There is no code for this machine.
    #[pyfunction]
    #[pyo3(signature = (_inputs, _numbers, _instrs, _outputs, /))]
    pub fn _program(
        _inputs: &Bound<'_, PyAny>,
        _numbers: &Bound<'_, PyAny>,
        _instrs: &Bound<'_, PyAny>,
        _outputs: &Bound<'_, PyAny>,
    ) {
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(kernel::_program, module)?)
}
