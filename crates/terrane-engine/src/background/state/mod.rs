//! State of the background that its parts share with the struct that holds them ([`super::Background`]).
//!
//! The code that works on it is in the parts above: `compaction/read_heavy.rs`, `idle.rs`, `scrub.rs`,
//! `space.rs`.

pub(crate) mod idle_watch;
pub(crate) mod load;
pub(crate) mod scrubber;
pub(crate) mod space_attempts;
