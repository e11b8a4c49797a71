//! The calls of a device as values, which tests count and select.

#[cfg(doc)]
use crate::{Disk, File, OpenMode};

/// A method of [`Disk`] or [`File`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// [`Disk::open`] of a file that exists.
    Open,
    /// [`Disk::open`] with [`OpenMode::Create`].
    Create,
    /// [`Disk::create_dir`].
    CreateDir,
    /// [`Disk::list`].
    List,
    /// [`Disk::exists`].
    Exists,
    /// [`Disk::rename`], under the path renamed from.
    Rename,
    /// [`Disk::link`], under the path linked from.
    Link,
    /// [`Disk::remove`].
    Remove,
    /// [`Disk::sync_dir`].
    SyncDir,
    /// [`Disk::lock`].
    Lock,
    /// [`Disk::free_bytes`].
    FreeBytes,
    /// [`File::len`], [`File::names`].
    Len,
    /// [`File::read_at`], each piece of [`File::copy_to`], each read of [`Disk::read_batch`],
    /// [`Disk::begin_read`].
    Read,
    /// [`File::write_at`], each piece of [`File::copy_to`].
    Write,
    /// [`File::sync`].
    Sync,
    /// [`File::set_len`].
    SetLen,
    /// [`File::allocate`].
    Allocate,
    /// [`File::punch`].
    Punch,
    /// [`File::map`].
    Map,
}

impl Call {
    /// Every kind.
    pub const ALL: [Call; Call::COUNT] = [
        Call::Open,
        Call::Create,
        Call::CreateDir,
        Call::List,
        Call::Exists,
        Call::Rename,
        Call::Link,
        Call::Remove,
        Call::SyncDir,
        Call::Lock,
        Call::FreeBytes,
        Call::Len,
        Call::Read,
        Call::Write,
        Call::Sync,
        Call::SetLen,
        Call::Allocate,
        Call::Punch,
        Call::Map,
    ];

    /// Number of kinds.
    pub(crate) const COUNT: usize = Call::Map as usize + 1;

    /// Returns true if the call may change what a later reader finds, or its durability.
    #[must_use]
    pub fn changes(self) -> bool {
        use Call::{
            Allocate, Create, CreateDir, Link, Lock, Punch, Remove, Rename, SetLen, Sync, SyncDir, Write,
        };
        matches!(
            self,
            Create
                | CreateDir
                | Rename
                | Link
                | Remove
                | SyncDir
                | Lock
                | Write
                | Sync
                | SetLen
                | Allocate
                | Punch
        )
    }
}
