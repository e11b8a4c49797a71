//! The extents of a checkpoint of a database that is only read.
//!
//! Each is read, checked against the manifest and written: what a writer has used again during the copy is
//! found, and never becomes a part of a copy.

use std::path::Path;
use std::sync::Arc;

use terrane_base::{Error, Kind, Result};
use terrane_device::Disk;
use terrane_levels::State;
use terrane_storage::{ExtentFiles, StoreCopy};

use crate::copies::refuse_if;
use crate::copies::sound_extent::read_sound;
use crate::shared::Shared;

impl Shared {
    /// Writes the extents of `state` into the empty directory `data` of `disk`, under the same ids; durable
    /// on return.
    pub(super) fn copy_of_reader(
        &self,
        disk: &Arc<dyn Disk>,
        data: &Path,
        state: &State,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<StoreCopy> {
        debug_assert!(self.options.read_only, "the files of a writer's store are linked");
        let mut files = ExtentFiles::new(disk.clone(), data);
        let mut copy = StoreCopy::default();
        // A close releases the lock: bytes that are read after it may belong to a later state.
        let refuse_if_closing = || match self.is_closing() {
            true => Err(Error::new(Kind::Cancelled, "the database closes")),
            false => Ok(()),
        };
        refuse_if_closing()?;
        for meta in state.metas() {
            refuse_if(is_cancelled)?;
            let bytes = match terrane_base::planted!(CopyUncheckedExtent) {
                true => {
                    let mut bytes = vec![0; meta.bytes as usize];
                    self.store.read(meta.id, 0, &mut bytes)?;
                    bytes
                }
                false => read_sound(self, meta)?,
            };
            refuse_if_closing()?;
            files.put(meta.id, meta.slots, &bytes)?;
            copy.bytes_copied += bytes.len() as u64;
        }
        files.finish()?;
        Ok(copy)
    }
}
