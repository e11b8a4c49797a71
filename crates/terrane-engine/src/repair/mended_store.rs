//! [`MendedStore`]: the extents of a damaged database, with damaged parts set right as they are read. The
//! files stay as they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use terrane_base::sync::Mutex;
use terrane_base::{Error, ExtentId, Result};
use terrane_format::extent::Handle;
use terrane_storage::{Store, StoreUsage};

/// Bytes of index blocks that take the place of damaged ones, at most: a made-up database may have any
/// number.
const REPLACED_BYTES_MAX: usize = 64 << 20;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct MendedStore {
    inner: Arc<dyn Store>,
    mends: Mutex<Mends>,
}

#[derive(Debug, Default)]
struct Mends {
    /// Bytes of each extent that are read as others: offset in the extent, and the right byte.
    bytes: BTreeMap<ExtentId, Vec<(u32, u8)>>,
    /// Parts that are read from here: by extent, offset and length.
    parts: BTreeMap<(ExtentId, u32, usize), Vec<u8>>,
    part_bytes: usize,
}

impl MendedStore {
    pub(super) fn new(inner: Arc<dyn Store>) -> Arc<MendedStore> {
        Arc::new(MendedStore { inner, mends: Mutex::new(Mends::default()) })
    }

    /// Lets a part, which is read as `wrong`, be read as `right` from now on.
    pub(super) fn mend(&self, id: ExtentId, part: Handle, (wrong, right): (&[u8], &[u8])) {
        debug_assert!(wrong.len() == right.len() && wrong != right, "bytes change, their number does not");
        let pairs = (part.offset..).zip(wrong.iter().zip(right));
        let changed = pairs.filter(|(_, (wrong, right))| wrong != right).map(|(at, (_, right))| (at, *right));
        self.mends.lock().bytes.entry(id).or_default().extend(changed);
    }

    /// Lets a read of exactly `part` give `bytes`. Returns false if there are too many such bytes.
    pub(super) fn replace(&self, id: ExtentId, part: Handle, bytes: Vec<u8>) -> bool {
        let mut mends = self.mends.lock();
        debug_assert_eq!(part.len as usize, bytes.len(), "a part is read as a whole");
        if mends.part_bytes + bytes.len() > REPLACED_BYTES_MAX {
            return false;
        }
        mends.part_bytes += bytes.len();
        let before = mends.parts.insert((id, part.offset, bytes.len()), bytes);
        debug_assert!(
            before.is_none(),
            "an extent has one index block, which takes the place of another once"
        );
        true
    }
}

impl Store for MendedStore {
    fn read(&self, id: ExtentId, offset: u32, buf: &mut [u8]) -> Result<()> {
        if let Some(part) = self.mends.lock().parts.get(&(id, offset, buf.len())) {
            buf.copy_from_slice(part);
            return Ok(());
        }
        self.inner.read(id, offset, buf)?;
        if let Some(bytes) = self.mends.lock().bytes.get(&id) {
            for (at, right) in bytes {
                if let Some(byte) = at.checked_sub(offset).and_then(|at| buf.get_mut(at as usize)) {
                    *byte = *right;
                }
            }
        }
        Ok(())
    }

    fn allocate(&self, slots: u32) -> Result<ExtentId> {
        self.inner.allocate(slots)
    }

    fn write(&self, id: ExtentId, bytes: &[u8]) -> Result<()> {
        self.inner.write(id, bytes)
    }

    fn sync(&self) -> Result<()> {
        self.inner.sync()
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

    fn restore(&self, live: &mut dyn Iterator<Item = (ExtentId, u32)>) -> Result<()> {
        self.inner.restore(live)
    }

    fn reclaim(&self) -> Result<u64> {
        self.inner.reclaim()
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
