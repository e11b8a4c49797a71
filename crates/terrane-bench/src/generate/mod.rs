//! What is done, operation by operation, reproducible from a seed.

pub mod operation;
