//! From opening to closing: `open/`, recovery of the journal (`recover.rs`), filters of what is replayed
//! (`replay_filter/`), views of a database that another process writes (`follower.rs`), and what users ask of
//! the background (`admin.rs`); notes with tables (`comment.rs`).

pub(crate) mod admin;
mod comment;
pub(crate) mod ddl;
pub(crate) mod follower;
pub(crate) mod open;
pub(crate) mod recover;
pub(crate) mod replay_filter;
