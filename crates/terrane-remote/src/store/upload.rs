//! Uploads of data objects.

use bytes::Bytes;
use terrane_base::{Error, Kind, Result};

use super::BucketStore;
use super::names::DataName;
use super::state::Packed;
use super::table::{Row, Table};
use crate::bucket::{Create, Pending, names as object_names};
use crate::tier::ObjectKey;

/// An object that is under way.
#[derive(Debug)]
pub(super) struct Upload {
    name: DataName,
    table: Table,
    object_bytes: u64,
    pending: Pending<Create>,
}

impl BucketStore {
    /// Starts to upload the staged extents of these groups.
    pub(super) fn begin_uploads(&self, numbers: &[u32]) -> Result<()> {
        for number in numbers {
            // Until the upload is in the list, no sync may believe that it has seen all of them.
            let mut uploads = self.uploads.lock();
            let packed = self.state.write().pack(*number)?;
            if let Some(packed) = packed {
                uploads.push(self.begin_upload(packed));
            }
        }
        Ok(())
    }

    fn begin_upload(&self, packed: Packed) -> Upload {
        let Packed { name, extents } = packed;
        let row = |(slot, slots, bytes): &(u32, u32, Bytes)| Row {
            slot: *slot,
            slots: *slots,
            len: bytes.len() as u32,
            crc: crc32c::crc32c(bytes),
        };
        let table = Table::new(&extents.iter().map(row).collect::<Vec<_>>());
        let mut parts: Vec<Bytes> = extents.into_iter().map(|(_, _, bytes)| bytes).collect();
        parts.push(table.encode(name, self.nonce).into());
        let object_bytes = parts.iter().map(|part| part.len() as u64).sum();
        debug_assert!(object_bytes > table.data_bytes(), "the table is behind the extents");
        if let Some(tier) = &self.source.tier {
            // Now, while the stage counts the bytes. What becomes of the upload does not matter: a frame is
            // asked for by the name and the nonce of an object that exists.
            let (nonce, DataName { epoch, number, part }) = (self.nonce, name);
            tier.offer_object(&ObjectKey { nonce, epoch, number, part }, &parts);
        }
        let pending = self.bucket.begin_create(&self.folders.data_name(name), parts);
        Upload { name, table, object_bytes, pending }
    }

    /// Uploads all that is staged and waits for all uploads. After a failure nothing is written any more.
    pub(super) fn upload_all(&self) -> Result<()> {
        let guard = self.sync.lock();
        // Checked again under the lock: the sync that this caller waited for may have failed, and with it the
        // caller's bytes.
        self.check_writable("sync")?;
        let staged = self.state.read().staged(false);
        let begun = self.begin_uploads(&staged);
        let outcome = self.finish_uploads().and(begun);
        drop(guard);
        outcome.map_err(|error| self.poisoned(error))
    }

    /// Makes room in the stage: waits for the uploads that have begun, or begins some.
    pub(super) fn make_room(&self) -> Result<()> {
        let guard = self.sync.lock();
        self.check_writable("write an extent")?;
        if self.state.read().uploading_bytes == 0 {
            drop(guard);
            return self.upload_all();
        }
        let outcome = self.finish_uploads();
        drop(guard);
        outcome.map_err(|error| self.poisoned(error))
    }

    /// Waits for all uploads, up to the first that fails: the store writes nothing any more then. Requires:
    /// `sync` is held.
    fn finish_uploads(&self) -> Result<()> {
        let uploads = std::mem::take(&mut *self.uploads.lock());
        uploads.into_iter().try_for_each(|upload| self.finish_upload(upload))
    }

    #[cold]
    fn poisoned(&self, error: Error) -> Error {
        let error = error.context(format!("extents in {} may be lost", self.folder()));
        self.poison.get_or_init(|| error).clone()
    }

    fn finish_upload(&self, upload: Upload) -> Result<()> {
        let Upload { name, table, object_bytes, pending } = upload;
        let created = pending.wait();
        let created = if terrane_base::planted!(SkipUploadWait) { Ok(Create::Created) } else { created };
        match created? {
            Create::Created => {
                self.state.write().stored(name, self.nonce, &table, object_bytes);
                self.forget_dead();
                Ok(())
            }
            Create::AlreadyExists => Err(self.is_taken(name)),
        }
    }

    #[cold]
    fn is_taken(&self, name: DataName) -> Error {
        let place = object_names::place(self.bucket.url(), &self.folders.data_name(name));
        let message = format!(
            "{place} exists, and this writer did not create it: another writer uses epoch {}; stop one of them",
            self.epoch
        );
        Error::new(Kind::Poisoned, message)
    }
}
