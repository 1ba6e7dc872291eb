//! Where the left side of a product lies.

/// What a kernel has tiles for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lies {
    /// In panels.
    Packed,
    /// Where it was.
    InPlace,
    /// In one of both.
    Either,
}
