//! Background work on journal segments: `trim.rs` gives back those whose records are all in the levels,
//! `history.rs` keeps and removes those that readers of changes may still want.

pub(crate) mod history;
pub(crate) mod trim;
