//! Typed errors. The binding maps each variant to one Python exception.

use std::fmt;

/// What every kernel returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a kernel refused. Boxed, so that the happy path stays small.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// Operands that this entry does not take as they are (dtype, kind, shapes that do not broadcast). The tensor
    /// layer then promotes or raises the user's error. Python: `phlox_tensor.Rejected`.
    Rejected(&'static str),
    /// An index value outside its axis. Python: `phlox_tensor.IndexOutOfRangeError`.
    IndexOutOfRange(Box<BadIndex>),
    /// Anything else that is wrong with the arguments: op and text. Python: `phlox_tensor.ArgumentError`.
    Value(Box<(String, String)>),
    /// The system gave no memory for this many bytes; `usize::MAX` for a shape of too many elements. Python: `MemoryError`.
    OutOfMemory(usize),
}

/// The fields of [`Error::IndexOutOfRange`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadIndex {
    /// Name of the op.
    pub op: &'static str,
    /// The offending value.
    pub index: i64,
    /// Length of the indexed axis.
    pub size: usize,
    /// The indexed axis.
    pub axis: usize,
}

impl BadIndex {
    /// Which values there are: `-3 <= index < 3 on axis 0`.
    pub fn expected(&self) -> String {
        let sign = if self.size == 0 { "" } else { "-" };
        format!("{sign}{} <= index < {} on axis {}", self.size, self.size, self.axis)
    }
}

impl Error {
    /// A value error; it reads `[op] text`, the text being `what failed: got A, expected B`.
    pub fn value(op: &str, text: impl fmt::Display) -> Self {
        Error::Value(Box::new((op.to_owned(), text.to_string())))
    }

    /// An index error.
    pub fn index(op: &'static str, index: i64, size: usize, axis: usize) -> Self {
        Error::IndexOutOfRange(Box::new(BadIndex { op, index, size, axis }))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Rejected(why) => f.write_str(why),
            Error::IndexOutOfRange(bad) => {
                write!(f, "[{}] index out of range: got {}, expected {}", bad.op, bad.index, bad.expected())
            }
            Error::Value(parts) => write!(f, "[{}] {}", parts.0, parts.1),
            Error::OutOfMemory(usize::MAX) => {
                let most = if usize::BITS == 64 { "2^56 elements" } else { "2^30 bytes" };
                write!(f, "[alloc] shape too large: expected at most {most}")
            }
            Error::OutOfMemory(bytes) => write!(f, "[alloc] out of memory: got a request for {bytes} bytes"),
        }
    }
}

impl std::error::Error for Error {}

/// How Python names the variants of an enum.
macro_rules! named {
    ($kind:ident, $op:literal: $($name:literal $variant:ident),*) => {
        impl $kind {
            /// From the name used in Python.
            pub fn from_name(name: &str) -> $crate::error::Result<Self> {
                match name {
                    $($name => Ok(Self::$variant),)*
                    _ => {
                        let expected = [$($name),*].join(", ");
                        let text = format!("unknown name: got {name:?}, expected one of {expected}");
                        Err($crate::error::Error::value($op, text))
                    }
                }
            }
        }
    };
}
pub(crate) use named;
