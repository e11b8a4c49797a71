//! [`MeteredStore`]: a view of a store that counts its calls and bytes.
//!
//! Flush, compaction and reads share the data files; each has a view of its own, so that their bytes are
//! counted apart.

use std::path::Path;
use std::sync::Arc;

use terrane_base::{Error, ExtentId, Result};
use terrane_device::{Flow, PendingRead};

use crate::store::{ReadRequest, Store, StoreCopy, StoreUsage};

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
    fn allocate(&self, slots: u32) -> Result<ExtentId> {
        self.inner.allocate(slots)
    }

    fn allocate_for(&self, slots: u32, bytes: u64) -> Result<ExtentId> {
        self.inner.allocate_for(slots, bytes)
    }

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

    fn prefetch(&self, id: ExtentId, offset: u32, len: u32) {
        self.inner.prefetch(id, offset, len);
    }

    fn free(&self, id: ExtentId, slots: u32) -> Result<()> {
        self.inner.free(id, slots)
    }

    fn hold(&self) {
        self.inner.hold();
    }

    fn release(&self) {
        self.inner.release();
    }

    fn copy_to(&self, dir: &Path, live: &[(ExtentId, u32)]) -> Result<StoreCopy> {
        self.inner.copy_to(dir, live)
    }

    fn adopt(&self, path: &Path, extents: &[(u32, u32)]) -> Result<Option<u32>> {
        self.inner.adopt(path, extents)
    }

    fn restore(&self, live: &mut dyn Iterator<Item = (ExtentId, u32)>) -> Result<()> {
        self.inner.restore(live)
    }

    fn reclaim(&self) -> Result<u64> {
        self.inner.reclaim()
    }

    fn reclaim_all(&self) -> Result<u64> {
        self.inner.reclaim_all()
    }

    fn usage(&self) -> StoreUsage {
        self.inner.usage()
    }

    fn explain(&self, id: ExtentId, error: Error) -> Error {
        self.inner.explain(id, error)
    }

    fn place(&self, id: ExtentId, offset: u32) -> (String, u64) {
        self.inner.place(id, offset)
    }
}
