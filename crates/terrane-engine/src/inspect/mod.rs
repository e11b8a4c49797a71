//! Looking into a database when a caller asks: all metrics (`statistics.rs`), the shape of its trees (`shape.rs`), every
//! extent and segment (`extents.rs`), verification of every stored byte (`check.rs`).

pub(crate) mod check;
pub(crate) mod extents;
pub(crate) mod shape;
mod statistics;
