//! Copies between layouts, and the ops that only move elements.

#[cfg(test)]
pub mod samples;
pub mod strided;
mod transpose;
