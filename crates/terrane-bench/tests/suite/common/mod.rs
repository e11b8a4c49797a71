//! Data and runs that several tests use.

pub(crate) mod data;
pub(crate) mod run;
