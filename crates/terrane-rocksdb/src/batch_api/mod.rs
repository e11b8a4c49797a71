//! The C functions that need a write batch and an open database: filling a batch by column family ([`fill`],
//! [`timestamps`]), committing one ([`apply`]), and reading through an indexed one ([`indexed`],
//! [`indexed_read`]).

pub(crate) mod apply;
pub(crate) mod fill;
pub(crate) mod indexed;
pub(crate) mod indexed_read;
pub(crate) mod timestamps;
