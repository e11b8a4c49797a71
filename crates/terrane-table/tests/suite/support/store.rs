//! A store in memory that counts its reads and can be damaged, and extents written to it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use terrane_base::{Error, ExtentId, Result};
use terrane_storage::{ReadRequest, Store, StoreUsage};
use terrane_table::{Extent, ExtentWriter, WriterSettings};

use super::Row;

#[derive(Debug, Default)]
pub(crate) struct TestStore {
    extents: Mutex<BTreeMap<ExtentId, Vec<u8>>>,
    next: AtomicU64,
    pub(crate) reads: AtomicU64,
    pub(crate) batches: AtomicU64,
    bytes_read: AtomicU64,
    pub(crate) frees: AtomicU64,
}

impl TestStore {
    pub(crate) fn new() -> Arc<TestStore> {
        Arc::new(TestStore::default())
    }

    pub(crate) fn bytes(&self, id: ExtentId) -> Vec<u8> {
        self.extents.lock().unwrap()[&id].clone()
    }

    pub(crate) fn set_bytes(&self, id: ExtentId, bytes: Vec<u8>) {
        self.extents.lock().unwrap().insert(id, bytes);
    }

    pub(crate) fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }
}

impl Store for TestStore {
    fn allocate(&self, _slots: u32) -> Result<ExtentId> {
        let slot = self.next.fetch_add(1, Ordering::Relaxed) as u32;
        Ok(ExtentId { file: 1, slot })
    }

    fn write(&self, id: ExtentId, bytes: &[u8]) -> Result<()> {
        self.set_bytes(id, bytes.to_vec());
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn read(&self, id: ExtentId, offset: u32, buf: &mut [u8]) -> Result<()> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.bytes_read.fetch_add(buf.len() as u64, Ordering::Relaxed);
        let extents = self.extents.lock().unwrap();
        let bytes = extents.get(&id).ok_or_else(|| Error::corrupt("no such extent"))?;
        let bytes = bytes.get(offset as usize..offset as usize + buf.len());
        buf.copy_from_slice(bytes.ok_or_else(|| Error::corrupt("the data file ends before"))?);
        Ok(())
    }

    fn read_batch(&self, reads: &mut [ReadRequest<'_>]) {
        self.batches.fetch_add(1, Ordering::Relaxed);
        for ReadRequest { id, offset, buf, result } in reads {
            *result = self.read(*id, *offset, buf);
        }
    }

    fn prefetch(&self, id: ExtentId, offset: u32, len: u32) {
        let end = offset as usize + len as usize;
        assert!(end <= self.extents.lock().unwrap()[&id].len(), "hints stay within the extent");
    }

    fn free(&self, id: ExtentId, _slots: u32) -> Result<()> {
        self.frees.fetch_add(1, Ordering::Relaxed);
        let freed = self.extents.lock().unwrap().remove(&id);
        freed.map(drop).ok_or_else(|| Error::invalid("not allocated"))
    }

    fn hold(&self) {}

    fn release(&self) {}

    fn restore(&self, _live: &mut dyn Iterator<Item = (ExtentId, u32)>) -> Result<()> {
        Ok(())
    }

    fn reclaim(&self) -> Result<u64> {
        Ok(0)
    }

    fn usage(&self) -> StoreUsage {
        StoreUsage::default()
    }

    fn place(&self, id: ExtentId, offset: u32) -> (String, u64) {
        (format!("data/{:06}.ext", id.file), (u64::from(id.slot) << 21) + u64::from(offset))
    }
}

/// Writes sorted rows into extents of about `extent_bytes`; all versions of a key go into one extent.
pub(crate) fn write_extents(
    rows: &[Row],
    settings: WriterSettings,
    extent_bytes: usize,
    store: &Arc<TestStore>,
) -> Vec<Arc<Extent>> {
    let mut writer = ExtentWriter::new(settings).unwrap();
    let mut extents = Vec::new();
    let mut finish = |writer: &mut ExtentWriter| {
        let meta = writer.finish(&**store).unwrap();
        extents.push(Extent::new(meta, store.clone()));
    };
    for row in rows {
        let is_full = !writer.is_empty() && writer.estimated_bytes() > extent_bytes;
        if is_full && writer.last_key() != row.key {
            finish(&mut writer);
        }
        writer.add(row.entry()).unwrap();
    }
    if !writer.is_empty() {
        finish(&mut writer);
    }
    extents
}

/// One extent of all rows.
pub(crate) fn write_extent(rows: &[Row], settings: WriterSettings, store: &Arc<TestStore>) -> Arc<Extent> {
    let mut extents = write_extents(rows, settings, usize::MAX, store);
    assert_eq!(extents.len(), 1);
    extents.pop().unwrap()
}
