//! From opening to closing: `open/`, recovery of the journal (`recover.rs`), filters of the replay
//! (`replay_filter/`), and views of a database that another process writes (`follower.rs`; `followed.rs` if
//! its parts lie elsewhere); notes with tables (`comment.rs`); the close behind the last handle
//! (`close_apart.rs`).

mod behind;
pub(crate) mod close_apart;
mod comment;
pub(crate) mod followed;
pub(crate) mod follower;
pub(crate) mod open;
pub(crate) mod recover;
pub(crate) mod replay_filter;
