//! Commit ring, segments and replay.
