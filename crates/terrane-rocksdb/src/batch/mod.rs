//! Write batches as data: records of the engine as long as these serve ([`handle`]), else in RocksDB's byte
//! layout ([`layout`], [`write_batch`]), visited record by record ([`visit`]), with an index over their keys
//! ([`indexed`]), and user functions that filter replayed batches ([`wal_filter`]).

pub(crate) mod handle;
pub(crate) mod indexed;
pub(crate) mod layout;
pub(crate) mod visit;
pub(crate) mod wal_filter;
pub(crate) mod write_batch;
