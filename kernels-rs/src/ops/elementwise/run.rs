//! What a kernel is, and how it reads its call.

/// One call of a kernel: `len` elements of each operand that is a run (`unit`), the same one where it is not.
pub struct Run {
    /// First element of each operand.
    pub src: [*const u8; 3],
    /// Whether the operand advances.
    pub unit: [bool; 3],
    /// First element of the result.
    pub dst: *mut u8,
    /// Number of elements.
    pub len: usize,
}

/// Reads operands and writes results of fixed types.
///
/// # Safety
/// The pointers of the [`Run`] are valid for its length and of the kernel's types, and the result overlaps no operand.
pub type Kernel = unsafe fn(&Run);

/// # Safety
/// The operand is valid for this type and the length of the run (1 where it does not advance).
#[inline(always)]
pub(super) unsafe fn operand<T>(run: &Run, at: usize) -> &[T] {
    let len = if run.unit[at] { run.len } else { run.len.min(1) };
    // One that does not move has one.
    std::slice::from_raw_parts(run.src[at].cast(), len)
}

/// # Safety
/// The result is valid for this type and the length of the run, and nothing else refers to it.
#[inline(always)]
#[allow(clippy::mut_from_ref)] // The run only carries the address.
pub(super) unsafe fn result<T>(run: &Run) -> &mut [T] {
    // One that does not move has one.
    std::slice::from_raw_parts_mut(run.dst.cast(), run.len)
}
