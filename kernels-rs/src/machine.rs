//! What the processor offers: vector levels and registers, threads, and its measured peak.

pub mod amx;
pub mod caches;
#[cfg(all(test, unix))]
pub mod child;
pub mod fork;
pub mod lanes;
#[cfg(test)]
pub mod needs;
pub mod peak;
pub mod simd;
pub mod threads;
pub mod tile;
