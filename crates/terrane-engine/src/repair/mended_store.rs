//! [`MendedStore`]: the extents of a damaged database, with damaged parts set right as they are read. The
//! files stay as they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use terrane_base::sync::Mutex;
use terrane_base::{ExtentId, Result};
use terrane_format::extent::Handle;
use terrane_storage::{Store, delegate_store};

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
    delegate_store!(inner: allocate, allocate_for, write, sync, prefetch, free, hold);
    delegate_store!(inner: release, restore, reclaim, reclaim_all, usage, remote_reads, explain, place);

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
}
