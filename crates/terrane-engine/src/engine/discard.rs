//! The removal of a database that was made for a work which failed before its first commit. It is removed
//! under its lock, as the last step of its close: no other process can have written to it.

use terrane_base::{Result, SeqNo};
use terrane_levels::directory::LOCK;

use crate::copies::checkpoint::unfinished::clear;
use crate::engine::Engine;

/// Closes a database, and removes its files if it lies in a directory and nothing was ever committed to it;
/// returns true then. The directory stays, empty.
///
/// # Errors
/// As [`Engine::close`].
pub fn discard(engine: &Engine) -> Result<bool> {
    engine.opening.ask_to_discard();
    engine.close()?;
    Ok(engine.opening.is_discarded())
}

/// The step of the close. What cannot be removed stays: it is an empty database.
pub(crate) fn remove_if_asked(engine: &Engine) {
    debug_assert!(engine.is_closing(), "the files of an open database are in use");
    let is_removed = engine.opening.is_to_discard()
        && !engine.options.read_only
        && engine.options.pmem_path.get().is_none()
        && !engine.opening.is_elsewhere()
        && engine.visible() == SeqNo(0);
    if is_removed
        && clear(&**engine.disk(), engine.dir()).is_ok()
        && engine.disk().remove(&engine.dir().join(LOCK)).is_ok()
    {
        engine.opening.note_discarded();
    }
}
