//! [`delegate_store`](crate::delegate_store): calls that a wrapper of a [`Store`](crate::Store) passes on
//! unchanged.

/// Writes those methods of an `impl Store` that pass their call on to a field: the field, then the methods.
///
/// ```
/// use std::sync::Arc;
///
/// use terrane_base::{ExtentId, Result};
/// use terrane_storage::{Store, delegate_store};
///
/// /// A store whose reads fail.
/// #[derive(Debug)]
/// struct Unreadable {
///     inner: Arc<dyn Store>,
/// }
///
/// impl Store for Unreadable {
///     delegate_store!(inner: allocate, allocate_for, write, sync, prefetch, free, hold, release);
///     delegate_store!(inner: restore, reclaim, reclaim_all, usage, place);
///
///     fn read(&self, _id: ExtentId, _offset: u32, _buf: &mut [u8]) -> Result<()> {
///         Err(terrane_base::Error::corrupt("no extent can be read"))
///     }
/// }
/// ```
#[macro_export]
macro_rules! delegate_store {
    ($inner:ident: $($call:ident),+ $(,)?) => {
        $($crate::delegate_store!(@ $inner $call);)+
    };
    (@ $inner:ident allocate) => {
        fn allocate(&self, slots: u32) -> terrane_base::Result<terrane_base::ExtentId> {
            self.$inner.allocate(slots)
        }
    };
    (@ $inner:ident allocate_for) => {
        fn allocate_for(&self, slots: u32, bytes: u64) -> terrane_base::Result<terrane_base::ExtentId> {
            self.$inner.allocate_for(slots, bytes)
        }
    };
    (@ $inner:ident write) => {
        fn write(&self, id: terrane_base::ExtentId, bytes: &[u8]) -> terrane_base::Result<()> {
            self.$inner.write(id, bytes)
        }
    };
    (@ $inner:ident sync) => {
        fn sync(&self) -> terrane_base::Result<()> {
            self.$inner.sync()
        }
    };
    (@ $inner:ident read) => {
        fn read(&self, id: terrane_base::ExtentId, offset: u32, buf: &mut [u8]) -> terrane_base::Result<()> {
            self.$inner.read(id, offset, buf)
        }
    };
    (@ $inner:ident prefetch) => {
        fn prefetch(&self, id: terrane_base::ExtentId, offset: u32, len: u32) {
            self.$inner.prefetch(id, offset, len);
        }
    };
    (@ $inner:ident free) => {
        fn free(&self, id: terrane_base::ExtentId, slots: u32) -> terrane_base::Result<()> {
            self.$inner.free(id, slots)
        }
    };
    (@ $inner:ident hold) => {
        fn hold(&self) {
            self.$inner.hold();
        }
    };
    (@ $inner:ident release) => {
        fn release(&self) {
            self.$inner.release();
        }
    };
    (@ $inner:ident copy_to) => {
        fn copy_to(
            &self,
            dir: &std::path::Path,
            live: &[(terrane_base::ExtentId, u32)],
        ) -> terrane_base::Result<$crate::StoreCopy> {
            self.$inner.copy_to(dir, live)
        }
    };
    (@ $inner:ident adopt) => {
        fn adopt(
            &self,
            path: &std::path::Path,
            extents: &[(u32, u32)],
        ) -> terrane_base::Result<Option<u32>> {
            self.$inner.adopt(path, extents)
        }
    };
    (@ $inner:ident restore) => {
        fn restore(
            &self,
            live: &mut dyn Iterator<Item = (terrane_base::ExtentId, u32)>,
        ) -> terrane_base::Result<()> {
            self.$inner.restore(live)
        }
    };
    (@ $inner:ident reclaim) => {
        fn reclaim(&self) -> terrane_base::Result<u64> {
            self.$inner.reclaim()
        }
    };
    (@ $inner:ident reclaim_all) => {
        fn reclaim_all(&self) -> terrane_base::Result<u64> {
            self.$inner.reclaim_all()
        }
    };
    (@ $inner:ident usage) => {
        fn usage(&self) -> $crate::StoreUsage {
            self.$inner.usage()
        }
    };
    (@ $inner:ident remote_reads) => {
        fn remote_reads(&self) -> $crate::RemoteReads {
            self.$inner.remote_reads()
        }
    };
    (@ $inner:ident explain) => {
        fn explain(&self, id: terrane_base::ExtentId, error: terrane_base::Error) -> terrane_base::Error {
            self.$inner.explain(id, error)
        }
    };
    (@ $inner:ident place) => {
        fn place(&self, id: terrane_base::ExtentId, offset: u32) -> (String, u64) {
            self.$inner.place(id, offset)
        }
    };
}
