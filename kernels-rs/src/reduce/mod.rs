pub mod block;
pub mod fold;
