//! The format version of a manifest: what its edits need.

use std::sync::Arc;

use terrane_base::{Error, Result};
use terrane_format::manifest::EditOp;
use terrane_format::manifest::file::FORMAT_VERSION;

use super::Manifest;
use crate::state::State;

impl Manifest {
    /// Begins a new file, unless the present one has this format version or a later one. An edit with an
    /// operation of a later version than its file is refused: programs that do not know the operation are to
    /// refuse the file by its version, not the record as damage.
    ///
    /// # Errors
    /// As [`Manifest::roll`]: the manifest keeps its version.
    pub fn reach_version(&self, version: u32) -> Result<()> {
        let mut tail = self.writer.lock();
        tail.check_usable()?;
        let mut state = State::clone(&self.state());
        if version <= state.format_version {
            return Ok(());
        }
        assert!(version <= FORMAT_VERSION, "no program reads a manifest of version {version}");
        state.format_version = version;
        tail.roll(&state, &self.settings)?;
        debug_assert!(tail.number() >= self.edit_number(), "a new file goes on behind the last edit");
        *self.published.lock() = Arc::new(state);
        Ok(())
    }
}

impl State {
    /// Checks that the manifest of this state may have the operation.
    pub(crate) fn check_version(&self, op: &EditOp) -> Result<()> {
        if op.version() <= self.format_version {
            return Ok(());
        }
        let (needed, found) = (op.version(), self.format_version);
        Err(Error::invalid(format!(
            "the operation needs a manifest of version {needed}, this one has version {found}"
        )))
    }
}
