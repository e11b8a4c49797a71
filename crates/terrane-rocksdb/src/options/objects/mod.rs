//! Objects that options refer to: caches, environments, rate limiters, statistics, and objects that have no
//! effect here.

pub(crate) mod cache;
pub(crate) mod cancel_flag;
pub(crate) mod env;
pub(crate) mod histogram;
pub(crate) mod index_factory;
pub(crate) mod inert;
pub(crate) mod rate_limiter;
pub(crate) mod remote_compaction;
pub(crate) mod statistics;
pub(crate) mod write_buffer_manager;
