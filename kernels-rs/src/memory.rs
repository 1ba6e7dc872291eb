//! Where bytes come from: the caching allocator, what arrays share, scratch of a call, what is kept between calls.

pub mod alloc;
pub mod notes;
pub mod owned;
pub mod packed;
pub mod scratch;
pub mod storage;
pub mod trim;
