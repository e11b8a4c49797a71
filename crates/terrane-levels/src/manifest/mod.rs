//! The manifest: makes edits durable before anything relies on them.
//!
//! One file is in use, the one that `CURRENT` names: a snapshot of the state, then edits. When the edits
//! outgrow the snapshot, a new file starts with a new snapshot. `docs/format/manifest.md` has the bytes,
//! `docs/design/0004-manifest.md` the reasons.
//!
//! Appending: 1. encode 2. queue 3. lead or wait 4. check against the state 5. write and sync one record for
//! all queued edits 6. publish the state.
//!
//! Invariants: at most one record is in flight; an edit is published only when it is durable; after a failed
//! write or sync nothing is appended any more.
//!
//! Lock order: `writer`, then `queue` or `published`.

pub mod conformance;
mod create;
mod log;
mod read;
mod remains;
mod salvage;
mod tail;
mod version;
mod window;
mod write;

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use terrane_base::sync::atomic::{AtomicU64, Ordering};

use terrane_base::sync::Mutex;
use terrane_base::{Collation, Error, KeyOrders, Kind, Result, verify};
use terrane_device::{Disk, OpenMode};
use terrane_format::manifest::edit::decode_edits;
use terrane_format::manifest::file::Current;
use terrane_format::manifest::record::PAYLOAD_BYTES_MAX;
use terrane_format::manifest::{Edit, EditOp};

use crate::directory;
use crate::state::State;
pub use log::ManifestLog;
use read::Loaded;
pub use remains::{LastKnown, Remains};
pub use salvage::{Salvaged, salvage};
use tail::Tail;
pub use tail::{ManifestSettings, ManifestSize};
use write::Writer;
pub(crate) use write::set_current;

/// The durable log of edits of one database. The caller holds the lock of the directory while a manifest is
/// open for appending.
#[derive(Debug)]
pub struct Manifest {
    settings: ManifestSettings,
    queue: Mutex<Vec<Arc<Waiting>>>,
    writer: Mutex<Tail>,
    published: Mutex<Arc<State>>,
    /// Number of the last durable edit.
    number: AtomicU64,
    torn_bytes: u64,
}

/// An edit that waits until it is durable.
#[derive(Debug)]
struct Waiting {
    edit: Edit,
    payload: Vec<u8>,
    outcome: Mutex<Option<Result<()>>>,
}

/// The state after one of so many edits is walked.
const CHECKED_EDITS: u64 = 64;
/// No further edit joins a record once this many payload bytes are queued.
const GROUP_BYTES: usize = 1 << 20;
/// Attempts to read while another process may be writing, and the limit if it starts new manifests faster
/// than they are read.
const READ_ATTEMPTS: usize = 5;
const READ_ATTEMPTS_MAX: usize = 10_000;

impl Manifest {
    /// Opens the manifest of the database in `dir`; also returns its state.
    ///
    /// # Errors
    /// `NotFound` if there is no database, `Invalid` if it belongs to another program or has a newer format
    /// version, `Corrupt` with file and offset, `Io`.
    pub fn open(disk: Arc<dyn Disk>, dir: &Path) -> Result<(Manifest, State)> {
        Self::open_with(disk, dir, ManifestSettings::default())
    }

    /// [`Manifest::open`] with settings.
    ///
    /// # Errors
    /// As [`Manifest::open`].
    pub fn open_with(
        disk: Arc<dyn Disk>,
        dir: &Path,
        settings: ManifestSettings,
    ) -> Result<(Manifest, State)> {
        let loaded = Self::load(&*disk, dir, directory::read_current(&*disk, dir)?, OpenMode::Write)?;
        // The process that created or rolled the manifest may have died, or failed, between the rename and
        // this.
        if !terrane_base::planted!(SkipNamesOfOpening) {
            disk.sync_dir(dir)?;
        }
        let writer = Writer::resume(disk.clone(), dir, &loaded)?;
        directory::clean(&*disk, dir, loaded.header.file)?;
        let (torn_bytes, state) = (loaded.torn, loaded.state);
        Ok((Manifest { torn_bytes, ..Self::on(Box::new(writer), &state, settings) }, state))
    }

    /// The manifest whose records `log` keeps and goes on to keep; `state` is the state after the last one.
    /// For media other than files: opening a medium, fencing another writer off included, is the medium's.
    #[must_use]
    pub fn on(log: Box<dyn ManifestLog>, state: &State, settings: ManifestSettings) -> Manifest {
        let (number, size) = (log.number(), log.size());
        Self::new(settings, Some(log), size, (number, state))
    }

    /// The manifest of a reader, which stays at `state`, the state after the record `number`, and refuses to
    /// append.
    #[must_use]
    pub fn of_reader(number: u64, state: &State, size: ManifestSize) -> Manifest {
        Self::new(ManifestSettings::default(), None, size, (number, state))
    }

    /// Opens the manifest without writing; another process may be using the database. It stays at the state
    /// that is read here, and refuses to append.
    ///
    /// # Errors
    /// As [`Manifest::open`].
    pub fn open_read_only(disk: Arc<dyn Disk>, dir: &Path) -> Result<(Manifest, State)> {
        let (mut attempts, mut in_vain, mut read) = (0, 0, None);
        let loaded = loop {
            let current = directory::read_current(&*disk, dir);
            // A file that differs from the one of the last attempt shows that a process is writing.
            let file = current.as_ref().ok().map(|current| current.file);
            in_vain = if file == read { in_vain + 1 } else { 1 };
            (read, attempts) = (file, attempts + 1);
            let may_change = in_vain < READ_ATTEMPTS && attempts < READ_ATTEMPTS_MAX;
            match current.and_then(|current| Self::load(&*disk, dir, current, OpenMode::Read)) {
                // A writer may have been in the middle of a record or of a roll.
                Err(error) if error.kind() == Kind::Corrupt && may_change => {}
                result => break result?,
            }
        };
        let size = ManifestSize {
            file: loaded.header.file.into(),
            snapshot_bytes: loaded.snapshot_end,
            edit_bytes: loaded.end - loaded.snapshot_end,
            edits: loaded.link.number - loaded.header.base,
        };
        let found = (loaded.link.number, &loaded.state);
        let manifest = Self::new(ManifestSettings::default(), None, size, found);
        Ok((Manifest { torn_bytes: loaded.torn, ..manifest }, loaded.state))
    }

    fn load(disk: &dyn Disk, dir: &Path, current: Current, mode: OpenMode) -> Result<Loaded> {
        let path = || dir.join(directory::CURRENT).display().to_string();
        let loaded = read::load(disk, dir, current.file, mode).map_err(|error| match error.kind() {
            Kind::NotFound => error.with_kind(Kind::Corrupt).at(path(), 0),
            _ => error,
        })?;
        if loaded.header.database != current.database {
            let (expected, found) = (current.database, loaded.header.database);
            let message = format!("manifest of another database: expected {expected}, found {found}");
            return Err(Error::corrupt(message).at(loaded.file.path().display().to_string(), 24));
        }
        match current.file.checked_add(1) {
            Some(next) if read::was_current(disk, dir, next)? => {
                let message =
                    format!("CURRENT is older than the manifest: file {next} has edits, expected none");
                Err(Error::corrupt(message).at(path(), 0))
            }
            _ => Ok(loaded),
        }
    }

    fn new(
        settings: ManifestSettings,
        log: Option<Box<dyn ManifestLog>>,
        size: ManifestSize,
        (number, state): (u64, &State),
    ) -> Self {
        Manifest {
            settings,
            queue: Mutex::default(),
            writer: Mutex::new(Tail::new(log, size, &settings)),
            published: Mutex::new(Arc::new(state.clone())),
            number: AtomicU64::new(number),
            torn_bytes: 0,
        }
    }

    /// Gives the manifest the available comparators, before anything is appended; returns the state with
    /// them.
    ///
    /// # Errors
    /// As [`State::with_orders`].
    pub fn set_orders(&self, orders: &KeyOrders) -> Result<State> {
        let mut published = self.published.lock();
        let state = State::clone(&published).with_orders(orders)?;
        debug_assert!(
            state.tables.len() == published.tables.len(),
            "comparators neither make nor drop tables"
        );
        *published = Arc::new(state.clone());
        Ok(state)
    }

    /// Makes an edit durable. Concurrent edits share one sync.
    ///
    /// # Errors
    /// `Invalid` if the edit contradicts the state (nothing happened), `Full` if there is no space (nothing
    /// happened, a later append may succeed), `Poisoned` if a write or sync failed, now or before: the next
    /// opening shows whether this edit is durable.
    pub fn append(&self, edit: &Edit) -> Result<()> {
        let mut payload = Vec::new();
        edit.encode(&mut payload);
        if payload.len() > PAYLOAD_BYTES_MAX {
            let bytes = payload.len();
            return Err(Error::invalid(format!(
                "edit of {bytes} bytes: the limit is {PAYLOAD_BYTES_MAX}; split it"
            )));
        }
        check_readable(edit, &payload)?;
        let waiting = Arc::new(Waiting { edit: edit.clone(), payload, outcome: Mutex::new(None) });
        let before = self.edit_number();
        self.queue.lock().push(waiting.clone());
        // The thread that gets the lock first leads for all edits queued before; the others find their
        // outcome.
        let mut tail = self.writer.lock();
        loop {
            if let Some(outcome) = waiting.outcome.lock().take() {
                debug_assert!(
                    outcome.is_err() || self.edit_number() > before,
                    "a durable edit has a number above those that the log had before it, {before}"
                );
                return outcome;
            }
            let group = self.take_group();
            self.commit(&mut tail, &group);
        }
    }

    /// Takes queued edits, oldest first, as many as fit one record.
    fn take_group(&self) -> Vec<Arc<Waiting>> {
        let mut queue = self.queue.lock();
        let mut bytes = 0;
        let fits = |waiting: &&Arc<Waiting>| {
            bytes += waiting.payload.len();
            bytes <= GROUP_BYTES
        };
        let count = queue.iter().take_while(fits).count().max(1).min(queue.len());
        debug_assert!(count > 0, "the leader's own edit waits, or its outcome is there");
        queue.drain(..count).collect()
    }

    /// Steps 4 to 6 for a group; afterwards every member has its outcome.
    fn commit(&self, tail: &mut Tail, group: &[Arc<Waiting>]) {
        let mut state = self.published.lock().clone();
        let mut payload = Vec::new();
        let mut accepted = Vec::new();
        for waiting in group {
            match tail.check_usable().and_then(|()| state.apply(&waiting.edit)) {
                Ok(next) => {
                    state = Arc::new(next);
                    payload.extend_from_slice(&waiting.payload);
                    accepted.push(waiting);
                }
                Err(error) => *waiting.outcome.lock() = Some(Err(error)),
            }
        }
        if accepted.is_empty() {
            return;
        }
        let result = tail.append(&payload);
        if result.is_ok() {
            // Release: a reader that sees the number finds the state.
            *self.published.lock() = state.clone();
            let number = tail.number();
            let before = self.number.swap(number, Ordering::Release);
            assert!(before < number, "edit {number} has a number that the log had before, {before}");
            // A caller's comparator may break its promise.
            let is_checked = number.is_multiple_of(CHECKED_EDITS)
                && state.tables.values().all(|table| table.collation.is_bytes());
            verify!(!is_checked || state.check().is_ok(), "the state after edit {number}");
        }
        for waiting in accepted {
            *waiting.outcome.lock() = Some(result.clone());
        }
        if result.is_ok() {
            tail.roll_if_due(&state, &self.settings);
        }
    }

    /// Number of the last durable edit. It rises with every record of edits and never falls. A caller
    /// that stores it elsewhere detects a manifest that lost edits by [`Manifest::check_reached`].
    #[must_use]
    pub fn edit_number(&self) -> u64 {
        // Acquire: pairs with the Release in `commit`.
        self.number.load(Ordering::Acquire)
    }

    /// Checks that the manifest has the edit `number`, which was durable once.
    ///
    /// # Errors
    /// `Corrupt` if it ends before that.
    pub fn check_reached(&self, number: u64) -> Result<()> {
        let found = self.edit_number();
        if found < number && !terrane_base::planted!(IgnoreLostEdits) {
            return Err(Error::corrupt(format!(
                "the manifest lost its last edits or is an older copy: expected edit {number} or later, found {found}; \
                 restore the database from a backup, or save what is there with `terrane repair`"
            )));
        }
        Ok(())
    }

    /// The state after the last durable edit.
    #[must_use]
    pub fn state(&self) -> Arc<State> {
        self.published.lock().clone()
    }

    /// The size of the manifest.
    #[must_use]
    pub fn size(&self) -> ManifestSize {
        self.writer.lock().size
    }

    /// Bytes of a torn record that opening found after the last edit: that edit's append had not returned.
    #[must_use]
    pub fn torn_bytes(&self) -> u64 {
        self.torn_bytes
    }

    /// Starts a new file now, whatever the sizes.
    ///
    /// # Errors
    /// `Full` or `Io`: the old file stays in use. `Poisoned` as [`Manifest::append`].
    pub fn roll(&self) -> Result<()> {
        let mut tail = self.writer.lock();
        tail.check_usable()?;
        let state = self.published.lock().clone();
        tail.roll(&state, &self.settings)?;
        debug_assert!(tail.number() >= self.edit_number(), "a new file goes on behind the last edit");
        Ok(())
    }

    /// Makes the durable-end mark durable, so that damage to the last record is detected even after a power
    /// cut. Called after the last edit.
    ///
    /// # Errors
    /// `Io`, `Poisoned`.
    pub fn close(&self) -> Result<()> {
        let mut tail = self.writer.lock();
        let usable = tail.check_usable();
        match (&mut tail.log, usable) {
            (None, _) => Ok(()),
            (Some(log), Ok(())) => log.close(),
            (_, Err(error)) => Err(error),
        }
    }

    /// Checks that no other writer has taken the database over. Of a database in a directory the lock sees to
    /// that, and nothing is checked.
    ///
    /// # Errors
    /// `Poisoned` if another one has, or if an append failed before: nothing is appended any more. `Io` if
    /// that is not known now.
    pub fn check_writer(&self) -> Result<()> {
        self.writer.lock().check()
    }
}

/// The edit as it is decoded from its bytes, which do not contain key orders.
fn as_encoded(edit: &Edit) -> Cow<'_, Edit> {
    let says_order = |op: &EditOp| matches!(op, EditOp::AddExtent { meta, .. } if !meta.collation.is_bytes());
    if !edit.ops.iter().any(says_order) {
        return Cow::Borrowed(edit);
    }
    let mut edit = edit.clone();
    for op in &mut edit.ops {
        if let EditOp::AddExtent { meta, .. } = op {
            Arc::make_mut(meta).collation = Collation::BYTES;
        }
    }
    Cow::Owned(edit)
}

/// Checks that the written bytes decode to the same edit: an edit that the decoder refuses would make the
/// database impossible to open.
fn check_readable(edit: &Edit, payload: &[u8]) -> Result<()> {
    let edits = decode_edits(payload).map_err(|error| error.with_kind(Kind::Invalid))?;
    if edits.as_slice() != std::slice::from_ref(&*as_encoded(edit)) {
        return Err(Error::invalid("edit with an operation that has no encoding"));
    }
    Ok(())
}
