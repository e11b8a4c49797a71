//! [`MeteredStore`]: a view of a store that counts its calls and bytes.
//!
//! Flush, compaction and reads share the data files; each has a view of its own, so that their bytes are
//! counted apart.

use std::sync::Arc;

use terrane_base::{ExtentId, Result};
use terrane_device::{Flow, PendingRead};

use crate::delegate_store;
use crate::store::{ReadRequest, Store};

/// Passes every call to another store and counts reads, writes and syncs. Each read of a batch is counted; a
/// sync counts once, for any number of files; hints are not counted.
#[derive(Clone, Debug)]
pub struct MeteredStore {
    inner: Arc<dyn Store>,
    flow: Arc<Flow>,
}

impl MeteredStore {
    /// A view of `inner` that counts in `flow`.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>, flow: Arc<Flow>) -> Self {
        MeteredStore { inner, flow }
    }
}

impl Store for MeteredStore {
    delegate_store!(inner: allocate, allocate_for, prefetch, free, hold, release, copy_to);
    delegate_store!(inner: adopt, restore, reclaim, reclaim_all, usage, remote_reads, explain, place);

    fn write(&self, id: ExtentId, bytes: &[u8]) -> Result<()> {
        let result = self.inner.write(id, bytes);
        self.flow.note_write(bytes.len(), &result);
        result
    }

    fn sync(&self) -> Result<()> {
        self.flow.note_sync();
        self.inner.sync()
    }

    fn read(&self, id: ExtentId, offset: u32, buf: &mut [u8]) -> Result<()> {
        let result = self.flow.wait(|| self.inner.read(id, offset, buf));
        self.flow.note_read(buf.len(), &result);
        result
    }

    fn read_batch(&self, reads: &mut [ReadRequest<'_>]) {
        self.flow.wait(|| self.inner.read_batch(reads));
        self.flow.note_batch();
        for read in reads {
            self.flow.note_read(read.buf.len(), &read.result);
        }
    }

    fn begin_read(
        &self,
        id: ExtentId,
        offset: u32,
        len: usize,
        memory: Vec<u8>,
    ) -> Result<Box<dyn PendingRead>> {
        let result = self.inner.begin_read(id, offset, len, memory);
        // The bytes are transferred whether the caller waits for them or not.
        self.flow.note_read(len, &result);
        result
    }
}
