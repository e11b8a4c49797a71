//! Looking into a database when a caller asks: all metrics (`statistics.rs`), the shape of its trees
//! (`shape.rs`), every extent and segment (`extents.rs`), verification of every stored byte (`check.rs`);
//! and into one that another process has open (`metrics_page.rs`, `shared_page.rs`).

pub(crate) mod check;
pub(crate) mod extents;
pub(crate) mod metrics_page;
pub(crate) mod shape;
pub(crate) mod shared_page;
mod statistics;
