//! CPU kernels of phlox. This library names no Python; `src/py.rs` and `src/py/` are the only files that do, behind
//! the feature `python`.
//!
//! # Rooms
//!
//! `machine` (vectors, threads) < `memory` (allocation) < `array` (shapes, dtypes, views) < `ops` (one room per family) <
//! `py`; `math` has the scalar functions. A room imports only from rooms on its left.
//!
//! # How to add an op
//!
//! 1. Write `pub fn my_op(x: &Array, axis: usize, ...) -> Result<Array>` in the module of its family. Check what
//!    an entry must check; never panic on bad input: `Err(Error::Rejected(..))` for operands that the tensor layer may
//!    still promote, `Error::index(..)` for an index value out of range, `Error::value("op", ..)` for the rest.
//! 2. Allocate the result: `let mut out = Array::uninit(dtype, &shape)?` (arbitrary contents) or `Array::zeros`.
//!    Write through `out.as_mut_slice::<T>()` or `out.mut_ptr::<T>()`; both want a fresh, unshared array.
//!    Read through `x.as_slice::<T>()` (row-major layouts), `x.ptr::<T>()` plus `x.strides()` (any layout; strides are
//!    in elements, may be 0 or negative), or `x.contiguous()?` (copies only when it must).
//! 3. Go from dtype to type with `dispatch!(all dtype, T => ..)`, or `num`/`float`/`int` with an `else` arm. Keep what is
//!    generic small: each arm is compiled 4 to 13 times.
//! 4. Parallel work: `threads::parallel(tasks, &|i| ..)`, or `threads::for_ranges` where cuts cannot change the result.
//!    Cut by shape, never by thread count, wherever the order of additions matters. `threads::SharedMut` carries the
//!    output pointer into tasks.
//! 5. SIMD: write plain loops in an `#[inline(always)]` function and give it to `simd::vectorize!`, which compiles it for
//!    baseline, AVX2+FMA and AVX-512 and picks at run time.
//! 6. One row in `src/py/table.rs` (see the head of `src/py/row.rs`). The Python table picks the name up by itself.
//! 7. Tests: a naive reference over random shapes and layouts beside the kernel, and a pytest in `tests/`.

pub mod array;
pub mod dtype;
pub mod error;
pub mod machine;
pub mod math;
pub mod memory;
pub mod ops;

#[cfg(feature = "python")]
mod py;

// A test beside the library would compile all of it a second time.
#[cfg(test)]
#[path = "../tests/ulp/main.rs"]
mod ulp;

pub use array::Array;
pub use dtype::{BF16, DType, Element, F16, Float, Kind};
pub use error::{Error, Result};

/// Prepares for forks. The binding calls it once; calling it again does nothing.
pub fn init() {
    memory::alloc::init();
    memory::packed::init();
    machine::caches::second_level();
    machine::simd::level();
    machine::threads::init();
    machine::threads::install_fork_handlers();
    memory::alloc::install_fork_handlers();
    ops::transform::install_fork_handlers();
}
