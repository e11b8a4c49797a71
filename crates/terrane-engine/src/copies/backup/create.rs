//! Making a backup.
//!
//! 1. the place is made and locked; objects that no backup needs are removed 2. the moment, as for a
//!    checkpoint
//! 3. segments, so that their memory is free again 4. the extents that no backup has, each verified
//! 5. all of that durable 6. the manifest, durable.
//!
//! Commits go on meanwhile; extents that leave the database are kept until all are copied. A crash or an
//! error leaves objects that no manifest names, for the next step 1.

use std::sync::Arc;

use terrane_base::{Error, Kind, Result, SeqNo};
use terrane_format::backup::{BackupManifest, BackupSegment, ObjectKind, bytes_name};
use terrane_format::extent::ExtentMeta;
use terrane_format::segment::Groups;
use terrane_journal::Excerpt;
use terrane_levels::State;

use crate::background::maintenance::Maintenance;
use crate::copies::backup::objects::{Names, extents_of, object_name};
use crate::copies::backup::progress::{ProgressReporter, Watcher};
use crate::copies::backup::{BackupInfo, Backups, NOTE};
use crate::copies::checkpoint::moment::{Moment, refuse_undecided};
use crate::copies::sound_extent::read_sound;
use crate::shared::Shared;

/// Options of a backup.
///
/// ```
/// # use terrane_engine::backup::BackupOptions;
/// let nightly = BackupOptions::default()
///     .flush(true) // it opens faster
///     .bytes_per_second(50 << 20) // leaves the disk to others
///     .recheck(true) // finds what has rotted
///     .note("nightly");
/// assert_eq!(nightly.note.as_deref(), Some("nightly"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupOptions {
    /// Flush memory first: the backup then has a small journal, and opens faster. Off by default: the journal
    /// is copied.
    pub flush: bool,
    /// Ceiling for the copy, in bytes per second; 0, the default, means no ceiling.
    pub bytes_per_second: u64,
    /// Read and verify objects of older backups, and copy damaged ones again. Off by default.
    pub recheck: bool,
    /// Any text that is kept with the backup and shown with it, 64 KiB at most. None by default.
    pub note: Option<String>,
}

/// Longest note of a backup.
const NOTE_BYTES_MAX: usize = 64 << 10;

impl BackupOptions {
    /// Sets [`BackupOptions::flush`].
    #[must_use]
    pub fn flush(mut self, flush: bool) -> Self {
        self.flush = flush;
        self
    }

    /// Sets [`BackupOptions::bytes_per_second`].
    #[must_use]
    pub fn bytes_per_second(mut self, bytes: u64) -> Self {
        self.bytes_per_second = bytes;
        self
    }

    /// Sets [`BackupOptions::recheck`].
    #[must_use]
    pub fn recheck(mut self, recheck: bool) -> Self {
        self.recheck = recheck;
        self
    }

    /// Sets [`BackupOptions::note`].
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    fn check(&self) -> Result<()> {
        match self.note.as_ref().map_or(0, String::len) {
            0..=NOTE_BYTES_MAX => Ok(()),
            bytes => Err(Error::invalid(format!(
                "a note of {bytes} bytes: a backup takes {NOTE_BYTES_MAX}, keep a longer note elsewhere"
            ))),
        }
    }
}

/// A backup that is being made.
struct Making<'a, 'w> {
    backups: &'a Backups,
    engine: &'a Maintenance,
    options: &'a BackupOptions,
    reporter: ProgressReporter<'w>,
    /// Objects that whole backups name and that are there.
    extents: Names,
    segments: Names,
    /// Names of the objects that were new.
    made: Vec<String>,
}

impl Backups {
    /// Makes a backup of the open database: every commit up to now, all or nothing of each, durable on
    /// return. Copies only data that no earlier backup in this place has. Commits go on meanwhile.
    ///
    /// # Errors
    /// `Busy` if another process or thread writes to the place, or an ingest into a database that is open for
    /// reading is not decided; `Gone` if the database is a view, and extents of it are gone; `Invalid` if
    /// `place` is not a backup place, or for a flush of a database that is open for reading; `Cancelled` by
    /// `watcher` or when the database closes; `Corrupt`, naming file and offset, if an extent of the database
    /// is damaged; `Full`, `Io`, `Poisoned`. No backup was made then, and older ones are whole.
    pub fn create(
        &self,
        engine: &Maintenance,
        options: &BackupOptions,
        watcher: &mut Watcher<'_>,
    ) -> Result<BackupInfo> {
        options.check()?;
        may_begin(engine, options)?;
        self.place.prepare()?;
        let _lock = self.place.lock()?;
        let needed = self.needed()?;
        self.collect(&needed)?;
        let there = |kind, needed: &Names| Ok::<_, Error>(&self.present(kind)? & needed);
        let mut watch = |progress: &crate::copies::backup::BackupProgress| watcher(progress);
        let mut making = Making {
            backups: self,
            engine,
            options,
            reporter: ProgressReporter::new(&self.env, options.bytes_per_second, &mut watch),
            extents: there(ObjectKind::Extent, &needed.extents)?,
            segments: there(ObjectKind::Segment, &needed.segments)?,
            made: Vec::new(),
        };
        let id = self.ids()?.last().map_or(1, |last| last + 1);
        making.run(id).inspect_err(|_| {
            // If they cannot be removed now, the next backup removes them.
            let _ = making.made.iter().try_for_each(|name| self.place.delete(name));
        })
    }
}

impl Making<'_, '_> {
    fn run(&mut self, id: u64) -> Result<BackupInfo> {
        debug_assert!(self.made.is_empty(), "a backup is made once");
        if self.options.flush {
            self.engine.flush()?;
        }
        let (state, excerpt, _held) = Moment::take(self.engine)?.split();
        let extents = extents_of(&state);
        let extent_bytes: u64 = extents.values().map(|meta| u64::from(meta.bytes)).sum();
        let segment_count = excerpt.segments().count() as u64;
        self.reporter.begin(extents.len() as u64 + segment_count, extent_bytes + excerpt.bytes())?;
        let last_seq = excerpt.last_seq();
        let segments = self.copy_segments(excerpt)?;
        for (name, meta) in &extents {
            self.check_open()?;
            self.copy_extent(*name, meta)?;
            self.reporter.done(meta.bytes.into())?;
        }
        let progress = self.reporter.progress();
        debug_assert_eq!(progress.objects_done, progress.objects, "the manifest names only copied objects");
        if !terrane_base::planted!(NameUnsyncedBackup) {
            self.backups.place.settle()?;
        }
        let manifest = BackupManifest {
            database: state.database,
            created_millis: self.backups.env.clock.wall().as_millis() as u64,
            last_seq,
            extents: extents.len() as u64,
            extent_bytes,
            copied_bytes: self.reporter.progress().bytes_moved,
            options: shown_options(self.engine, self.options.note.as_deref()),
            segments,
            state: without_segments(&state).to_image()?,
        };
        // From here on the backup may exist, also after an error: its objects stay.
        self.made.clear();
        self.backups.write(ObjectKind::Manifest, id.into(), &manifest.encode())?;
        self.backups.place.settle()?;
        Ok(BackupInfo::new(id, manifest))
    }

    /// Copies the journal, and frees the memory of the excerpt.
    fn copy_segments(&mut self, excerpt: Excerpt) -> Result<Vec<BackupSegment>> {
        let mut segments = Vec::new();
        for (id, source) in excerpt.segments() {
            self.check_open()?;
            let last_seq =
                sound_end(source).map_err(|error| error.context(format!("segment {id} in memory")))?;
            let (name, bytes) = (bytes_name(source), source.len() as u64);
            if !self.has(ObjectKind::Segment, name, bytes) {
                self.reporter.spend(bytes)?;
                self.put(ObjectKind::Segment, name, source)?;
            }
            let is_next = segments.last().is_none_or(|before: &BackupSegment| before.id < id);
            debug_assert!(is_next, "segments are copied in the order in which they are read again");
            segments.push(BackupSegment { id, bytes, last_seq, name });
            self.reporter.done(bytes)?;
        }
        Ok(segments)
    }

    fn copy_extent(&mut self, name: u128, meta: &ExtentMeta) -> Result<()> {
        if self.has(ObjectKind::Extent, name, meta.bytes.into()) {
            return Ok(());
        }
        self.reporter.spend(meta.bytes.into())?;
        let bytes = read_sound(self.engine, meta)?;
        debug_assert_eq!(bytes.len(), meta.bytes as usize, "the name is that of an extent of this length");
        self.put(ObjectKind::Extent, name, &bytes)
    }

    /// Returns true if the place has the object already, so that it need not be copied.
    fn has(&self, kind: ObjectKind, name: u128, bytes: u64) -> bool {
        debug_assert!(kind != ObjectKind::Manifest, "no two backups have one manifest");
        let names = if kind == ObjectKind::Extent { &self.extents } else { &self.segments };
        names.contains(&name) && (!self.options.recheck || self.backups.read(kind, name, bytes).is_ok())
    }

    fn put(&mut self, kind: ObjectKind, name: u128, body: &[u8]) -> Result<()> {
        debug_assert!(kind != ObjectKind::Manifest, "a backup that fails removes what it has put");
        let is_new = !self.extents.contains(&name) && !self.segments.contains(&name);
        if is_new {
            self.made.push(object_name(kind, name));
        }
        self.backups.write(kind, name, body)
    }

    fn check_open(&self) -> Result<()> {
        if self.engine.is_closing() {
            return Err(Error::new(Kind::Cancelled, "the database closes"));
        }
        Ok(())
    }
}

/// Checks that a backup of this database can be made now.
fn may_begin(engine: &Maintenance, options: &BackupOptions) -> Result<()> {
    if !engine.options.read_only {
        return engine.refuse_if_read_only();
    }
    crate::reentrancy::refuse(engine.instance())?;
    if options.flush {
        return Err(Error::invalid(
            "option flush: the database was opened for reading, and nothing of it can be flushed",
        ));
    }
    refuse_undecided(engine)
}

/// Number of the last record of a segment; `source` is its used part.
pub(super) fn sound_end(source: &[u8]) -> Result<SeqNo> {
    let (_, mut groups) = Groups::new(source)?;
    groups.by_ref().for_each(drop);
    let end = groups.walk();
    if end.offset != source.len() {
        let (found, expected) = (end.offset, source.len());
        return Err(Error::corrupt(format!(
            "sound up to offset {found}, expected {expected}: {}",
            groups.stop_reason()
        )));
    }
    Ok(end.last_seq)
}

/// The state without its segments: the manifest of a backup lists its segments itself.
fn without_segments(state: &Arc<State>) -> State {
    state.detached(state.database, &[], SeqNo::default())
}

/// The options that the database is open with, and the note.
fn shown_options(engine: &Shared, note: Option<&str>) -> Vec<(String, String)> {
    let options = engine.options().show().into_iter().map(|(name, value)| (name.to_owned(), value));
    let note = note.map(|note| (NOTE.to_owned(), note.to_owned()));
    options.chain(note).collect()
}
