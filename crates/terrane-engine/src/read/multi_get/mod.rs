//! Point reads of many keys of one moment: `lookup.rs` answers from memory, `group.rs` some keys side by
//! side, `fetch.rs` asks the device for the rest, `pointers.rs` follows pointers to values in both,
//! `values.rs` holds the answers, `pending.rs` the keys that have none yet.

pub(crate) mod fetch;
mod group;
mod lookup;
mod pending;
pub(crate) mod pointers;
pub(crate) mod values;
