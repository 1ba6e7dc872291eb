//! What a tensor of the CPU is in Python: `RawTensor`, its buffer, its dtype as an object; and Python's scalars.

use super::error::rejected;
use crate::array::Array;
use crate::array::scalar::Scalar;
use crate::array::shape::{Shape, Strides, check_rank, is_contiguous};
use crate::dtype::DType;
use crate::error::Error;
use crate::machine::threads::{self, SharedMut};
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString, PyTuple};
use pyo3::{ffi, intern};
use std::ffi::{CStr, c_int, c_void};

/// Bytes of a task that copies: 100 us where the system has to find memory for them, as where a model is read.
const COPIED: usize = 1 << 17;

/// An immutable n-dimensional array of the CPU backend. It exports its data, read-only and without a copy, through
/// the buffer protocol (bfloat16 as 2-byte unsigned integers).
#[pyclass(frozen, weakref, module = "phlox_kernels._native")]
pub struct RawTensor {
    pub array: Array,
}

#[pymethods]
impl RawTensor {
    /// Lengths of the axes.
    #[getter]
    pub(super) fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.array.shape().iter())
    }

    /// Steps along the axes, in elements.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.array.strides().iter())
    }

    /// Name of the element type.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> &Bound<'py, PyString> {
        dtype_name(py, self.array.dtype())
    }

    /// Number of elements.
    #[getter]
    fn size(&self) -> usize {
        self.array.numel()
    }

    /// True when the elements lie in row-major order without gaps.
    #[getter]
    fn contiguous(&self) -> bool {
        self.array.is_contiguous()
    }

    /// Copies a C-contiguous buffer (`shape` row-major elements of `dtype`).
    #[staticmethod]
    #[pyo3(signature = (buffer, shape, dtype, /))]
    fn from_buffer(buffer: &Bound<'_, PyAny>, shape: &Bound<'_, PyTuple>, dtype: &Bound<'_, PyAny>) -> PyResult<Self> {
        check_rank(shape.len())?;
        let (mut sizes, dtype) = (Shape::empty(), dtype_of(dtype)?);
        for size in shape.iter_borrowed() {
            sizes.push(size.extract()?);
        }
        let mut array = Array::uninit(dtype, &sizes)?;
        let source = Source::new(buffer)?;
        let bytes = array.numel() * dtype.itemsize();
        if source.view.len as usize != bytes {
            let text = format!("wrong byte count: got {}, expected {bytes}", source.view.len);
            return Err(Error::value("from_buffer", text).into());
        }
        let from = source.view.buf.cast::<u8>();
        if dtype == DType::Bool {
            for (at, slot) in array.as_mut_slice::<bool>().iter_mut().enumerate() {
                // SAFETY: the buffer holds that many bytes.
                *slot = unsafe { *from.add(at) } != 0;
            }
        } else {
            let (from, to) = (SharedMut::new(from), SharedMut::new(array.storage().data()));
            threads::for_ranges(bytes, COPIED, &|range| {
                // SAFETY: both sides hold that many bytes; the destination is fresh, and each task has its own of it.
                unsafe {
                    let (from, to) = (from.ptr().add(range.start), to.ptr().add(range.start));
                    std::ptr::copy_nonoverlapping(from.cast_const(), to, range.len());
                }
            });
        }
        Ok(Self { array })
    }

    /// Fills a `Py_buffer` with a read-only view.
    ///
    /// # Safety
    /// Called by Python with a valid pointer.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        // SAFETY: Python gives a view to fill, and wants to see no object in one that was refused.
        (*view).obj = std::ptr::null_mut();
        let array = &slf.get().array;
        let asked = |wanted: c_int| flags & wanted == wanted;
        if let Some(why) = refusal(array, asked) {
            return Err(PyBufferError::new_err(why));
        }
        let itemsize = array.dtype().itemsize();
        let mut strides = *array.strides();
        strides.iter_mut().for_each(|step| *step *= itemsize as isize);
        let strides = Box::new(strides);
        let (with_shape, with_strides) = (asked(ffi::PyBUF_ND), asked(ffi::PyBUF_STRIDES));
        // SAFETY: Python gives a valid view to fill. `shape` points into the frozen object that `obj` keeps alive,
        // `strides` into a box that `__releasebuffer__` frees.
        (*view).buf = array.data().cast_mut().cast();
        (*view).len = (array.numel() * itemsize) as isize;
        (*view).readonly = 1;
        (*view).itemsize = itemsize as isize;
        let with_format = asked(ffi::PyBUF_FORMAT);
        (*view).format = if with_format { format(array.dtype()).as_ptr().cast_mut() } else { std::ptr::null_mut() };
        // Without a shape it is a run of bytes.
        (*view).ndim = if with_shape { array.rank() as c_int } else { 1 };
        (*view).shape = if with_shape { array.shape().as_ptr().cast_mut().cast() } else { std::ptr::null_mut() };
        (*view).strides = if with_strides { strides.as_ptr().cast_mut() } else { std::ptr::null_mut() };
        (*view).suboffsets = std::ptr::null_mut();
        (*view).internal = Box::into_raw(strides).cast::<c_void>();
        (*view).obj = slf.into_any().into_ptr();
        Ok(())
    }

    /// Frees what `__getbuffer__` allocated.
    ///
    /// # Safety
    /// Called by Python with a view that `__getbuffer__` filled.
    #[allow(clippy::unused_self)] // Python's signature.
    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: `internal` is the box made in `__getbuffer__`.
        drop(Box::from_raw((*view).internal.cast::<Strides>()));
    }
}

/// Why an array cannot be exported as it was asked for.
fn refusal(array: &Array, asked: impl Fn(c_int) -> bool) -> Option<&'static str> {
    let by_rows = array.is_contiguous();
    let by_columns = || {
        let (mut shape, mut strides) = (*array.shape(), *array.strides());
        shape.reverse();
        strides.reverse();
        is_contiguous(&shape, &strides)
    };
    if asked(ffi::PyBUF_WRITABLE) {
        return Some("[buffer] a tensor is read-only");
    }
    if asked(ffi::PyBUF_FORMAT) && !asked(ffi::PyBUF_ND) {
        return Some("[buffer] a run of bytes has no format: ask for the shape too");
    }
    if !by_rows && (asked(ffi::PyBUF_C_CONTIGUOUS) || !asked(ffi::PyBUF_STRIDES)) {
        return Some("[buffer] the tensor is not contiguous");
    }
    if asked(ffi::PyBUF_F_CONTIGUOUS) && !by_columns() {
        return Some("[buffer] the tensor is not contiguous by columns");
    }
    if asked(ffi::PyBUF_ANY_CONTIGUOUS) && !by_rows && !by_columns() {
        return Some("[buffer] the tensor is contiguous neither by rows nor by columns");
    }
    None
}

/// A C-contiguous buffer of another object, released on drop.
struct Source {
    view: ffi::Py_buffer,
}

impl Source {
    fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut view = ffi::Py_buffer::new();
        // SAFETY: a valid object and a view to fill.
        if unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &raw mut view, ffi::PyBUF_SIMPLE) } != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        Ok(Self { view })
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        // SAFETY: the view was filled, and the GIL is held in `from_buffer`.
        unsafe { ffi::PyBuffer_Release(&raw mut self.view) };
    }
}

/// The `struct` code of a dtype.
fn format(dtype: DType) -> &'static CStr {
    match dtype {
        DType::F16 => c"e",
        DType::F32 => c"f",
        DType::F64 => c"d",
        DType::I8 => c"b",
        DType::I16 => c"h",
        DType::I32 => c"i",
        DType::I64 => c"q",
        DType::U8 => c"B",
        DType::BF16 | DType::U16 => c"H",
        DType::U32 => c"I",
        DType::U64 => c"Q",
        DType::Bool => c"?",
    }
}

macro_rules! interned {
    ($py:ident, $dtype:ident; $($variant:ident $name:literal),*) => {
        match $dtype { $(DType::$variant => intern!($py, $name)),* }
    };
}

pub(super) fn dtype_name(py: Python<'_>, dtype: DType) -> &Bound<'_, PyString> {
    interned!(py, dtype; F16 "float16", BF16 "bfloat16", F32 "float32", F64 "float64", I8 "int8", I16 "int16",
        I32 "int32", I64 "int64", U8 "uint8", U16 "uint16", U32 "uint32", U64 "uint64", Bool "bool")
}

/// Shape of a tensor.
#[pyfunction]
#[pyo3(signature = (x, /))]
fn _shape_of<'py>(py: Python<'py>, x: &Bound<'py, RawTensor>) -> PyResult<Bound<'py, PyTuple>> {
    x.get().shape(py)
}

/// Registers the object that `_dtype_of` gives for a dtype name.
#[pyfunction]
#[pyo3(signature = (dtype, object, /))]
fn _set_dtype(py: Python<'_>, dtype: &str, object: Py<PyAny>) -> PyResult<()> {
    // A second import of the Python side brings the same objects: the first ones stay.
    let _ = DTYPES[DType::from_name(dtype)? as usize].set(py, object);
    Ok(())
}

/// The object registered for the dtype of a tensor, else its name.
#[pyfunction]
#[pyo3(signature = (x, /))]
fn _dtype_of<'py>(py: Python<'py>, x: &Bound<'py, RawTensor>) -> Bound<'py, PyAny> {
    let dtype = x.get().array.dtype();
    dtype_object(py, dtype)
}

/// The object registered for a dtype, else its name.
pub(super) fn dtype_object(py: Python<'_>, dtype: DType) -> Bound<'_, PyAny> {
    match DTYPES[dtype as usize].get(py) {
        Some(object) => object.bind(py).clone(),
        None => dtype_name(py, dtype).clone().into_any(),
    }
}

/// Shape and dtype object of a tensor: what every call asks for, in one.
#[pyfunction]
#[pyo3(signature = (x, /))]
fn _spec_of<'py>(py: Python<'py>, x: &Bound<'py, RawTensor>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyAny>)> {
    let raw = x.get();
    Ok((raw.shape(py)?, dtype_object(py, raw.array.dtype())))
}

/// The dtype that an object was registered for. Identity is compared: reading the object's name costs as much as a kernel.
/// The dtype that an object was registered for. Identity is compared: reading the object's name costs as much as a kernel.
pub(super) fn registered(object: &Bound<'_, PyAny>) -> Option<DType> {
    let known = |dtype: &DType| DTYPES[*dtype as usize].get(object.py()).is_some_and(|each| object.is(each));
    DType::ALL.iter().copied().find(known)
}

static DTYPES: [PyOnceLock<Py<PyAny>>; DType::ALL.len()] = [const { PyOnceLock::new() }; DType::ALL.len()];

/// The dtype that an object stands for: a registered one, a name, or an object whose `name` it is.
pub fn dtype_of(object: &Bound<'_, PyAny>) -> PyResult<DType> {
    if let Some(dtype) = registered(object) {
        return Ok(dtype);
    }
    if let Ok(name) = object.cast::<PyString>() {
        return Ok(DType::from_name(&name.to_cow()?)?);
    }
    let name = object.getattr(intern!(object.py(), "name"))?;
    Ok(DType::from_name(&name.cast::<PyString>()?.to_cow()?)?)
}

/// A bool, int or float; anything else, and an int beyond 64 bits, is rejected.
#[inline]
pub fn scalar(object: &Bound<'_, PyAny>) -> PyResult<Scalar> {
    if let Ok(value) = object.cast_exact::<PyFloat>() {
        return Ok(Scalar::Float(value.value()));
    }
    if let Ok(value) = object.cast::<PyBool>() {
        return Ok(Scalar::Bool(value.is_true()));
    }
    if let Ok(value) = object.cast::<PyInt>() {
        if let Ok(value) = value.extract::<i64>() {
            return Ok(Scalar::Int(value));
        }
        if let Ok(value) = value.extract::<u64>() {
            return Ok(Scalar::Uint(value));
        }
        return Err(rejected("int scalar beyond 64 bits"));
    }
    match object.cast::<PyFloat>() {
        Ok(value) => Ok(Scalar::Float(value.value())),
        Err(_) => Err(rejected("operand is neither a primitive of this backend nor a scalar")),
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<RawTensor>()?;
    module.add_function(wrap_pyfunction!(_dtype_of, module)?)?;
    module.add_function(wrap_pyfunction!(_set_dtype, module)?)?;
    module.add_function(wrap_pyfunction!(_shape_of, module)?)?;
    module.add_function(wrap_pyfunction!(_spec_of, module)?)?;
    Ok(())
}
