//! The pace of writers: bytes are charged at a rate (`token_bucket.rs`); the rate that the backlog of a table
//! allows its writers (`per_table.rs`). The throttle sets the rates and charges.

pub(crate) mod per_table;
pub(crate) mod token_bucket;
