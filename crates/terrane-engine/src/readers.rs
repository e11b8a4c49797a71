//! Who reads at a moment of the past, for how long already, and what that keeps from being freed.
//!
//! Whatever pins a moment (a snapshot, a scan of its own, a transaction) has an entry here while it lives; scans note in
//! the entry of their moment which picture they hold. With the option `reader_age_max_ms` an entry expires: its reads fail
//! from then on with `TooOld`, and the background takes away what it pins.
//!
//! A read through an entry looks whether it has expired *after* it has read: the mark is set before the pin goes, so who
//! read from a picture that lacks a version because of that sees the mark. Scans read from a picture of their own, which
//! has what their moment needs; they look before each step.

mod range;

use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use terrane_base::{Error, Kind, SeqNo};
use terrane_levels::Pin;

pub use range::PinnedRange;

use crate::engine::Engine;
use crate::stats::{Stats, add};
use crate::table::{Picture, Table};

/// Of the greatest age, the part after which the background looks again.
const LOOKS: u32 = 16;

/// What kind of reader pins a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReaderKind {
    /// A snapshot; scans made from it are a part of it.
    Snapshot,
    /// An iterator or a cursor with a moment of its own.
    Scan,
    /// A transaction, with all its reads.
    Transaction,
}

/// Where a reader comes from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// What it is.
    pub kind: ReaderKind,
    /// What its maker calls it.
    pub label: Option<String>,
    /// The call that made it.
    pub place: &'static Location<'static>,
}

impl Origin {
    /// A reader of this kind, made by the caller of the caller.
    #[must_use]
    #[track_caller]
    pub fn here(kind: ReaderKind) -> Origin {
        Origin { kind, label: None, place: Location::caller() }
    }
}

/// A live reader and what it keeps.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LiveReader {
    /// Its number; no other reader of the opened database has or had it.
    pub id: u64,
    /// What it is, what its maker calls it, and the call that made it.
    pub origin: Origin,
    /// How long ago it was made or refreshed.
    pub age: Duration,
    /// It sees every record up to this number. Versions that are the newest at it stay in the tables, unless it has expired.
    pub seq: SeqNo,
    /// Records that were committed since: exact. How many bytes of older versions that keeps cannot be told; it is no more
    /// than what lay there at its moment and was overwritten or deleted since.
    pub records_since: u64,
    /// Names of the tables that its scans read now, each scan for itself.
    pub tables: Vec<String>,
    /// Stored bytes of extents that its scans hold and that their tables do not need any more: exact. What several readers
    /// hold counts for each.
    pub extent_bytes: u64,
    /// Bytes of records and their indexes that its scans hold in memory though they are in the levels by now. Exact for what
    /// they refer to; segments come back whole, so it may be up to a segment more.
    pub memory_bytes: u64,
    /// Whether it is older than the option `reader_age_max_ms` allows: its reads fail.
    pub is_expired: bool,
}

/// The live readers of a database.
pub(crate) struct Readers {
    age_max: Option<Duration>,
    live: Mutex<Vec<Arc<Entry>>>,
    next_id: AtomicU64,
    /// When the background looks again, in nanoseconds of the clock.
    next_look: AtomicU64,
    expired: AtomicU64,
}

/// One live reader.
pub(crate) struct Entry {
    id: u64,
    origin: Origin,
    seq: AtomicU64,
    /// When it was made or refreshed, in nanoseconds of the clock.
    since: AtomicU64,
    /// Set before the pin goes.
    is_expired: AtomicBool,
    pin: Mutex<Option<Pin>>,
    held: Mutex<Vec<Held>>,
    /// Its index among the live ones; changed under their lock.
    at: AtomicUsize,
}

/// What a scan holds.
struct Held {
    number: u64,
    table: Arc<Table>,
    picture: Weak<Picture>,
    release: Option<Weak<dyn Release>>,
}

/// Something that the background can take away from its owner.
pub(crate) trait Release: Send + Sync {
    /// Takes it away, unless its owner uses it now.
    fn release(&self);
}

/// A scan's note of what it holds, until dropped.
pub struct Hold {
    entry: Arc<Entry>,
    number: u64,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.entry.held.lock().retain(|held| held.number != self.number);
    }
}

impl Entry {
    /// What it sees.
    pub(crate) fn seq(&self) -> SeqNo {
        // Relaxed: only its owner changes it.
        SeqNo(self.seq.load(Ordering::Relaxed))
    }

    /// Notes what a scan of this moment holds.
    pub(crate) fn hold(
        self: &Arc<Entry>,
        table: &Arc<Table>,
        picture: &Arc<Picture>,
        release: Option<Weak<dyn Release>>,
    ) -> Hold {
        let mut held = self.held.lock();
        let number = held.last().map_or(0, |last| last.number) + 1;
        held.push(Held { number, table: table.clone(), picture: Arc::downgrade(picture), release });
        Hold { entry: self.clone(), number }
    }

    /// Moves it to what `engine` shows now, also if it had expired.
    pub(crate) fn renew(&self, engine: &Engine) {
        let visible = || engine.journal.visible();
        let mut pin = self.pin.lock();
        match &mut *pin {
            Some(pin) => pin.renew(visible),
            none => *none = Some(engine.pins.pin(visible)),
        }
        let seq = pin.as_ref().expect("it was pinned just now").seq();
        self.seq.store(seq.0, Ordering::Relaxed);
        self.since.store(nanos(engine.env.clock.now()), Ordering::Relaxed);
        self.is_expired.store(false, Ordering::Release);
    }

    fn age(&self, now: Duration) -> Duration {
        now.saturating_sub(Duration::from_nanos(self.since.load(Ordering::Relaxed)))
    }

    /// Takes away what it pins if it is too old; returns whether it had anything.
    fn expire(&self, now: Duration, age_max: Duration) -> bool {
        let mut pin = self.pin.lock();
        // Under the lock: its owner may have renewed it meanwhile.
        if self.age(now) <= age_max {
            return false;
        }
        self.is_expired.store(true, Ordering::Release);
        let taken = pin.take();
        drop(pin);
        let releases: Vec<_> =
            self.held.lock().iter().filter_map(|held| held.release.as_ref()?.upgrade()).collect();
        releases.iter().for_each(|release| release.release());
        taken.is_some()
    }

    fn show(&self, now: Duration, visible: SeqNo) -> LiveReader {
        let held: Vec<(Arc<Table>, Option<Arc<Picture>>)> =
            self.held.lock().iter().map(|held| (held.table.clone(), held.picture.upgrade())).collect();
        let pictures = || held.iter().filter_map(|(table, picture)| Some((table, picture.as_ref()?)));
        LiveReader {
            id: self.id,
            origin: self.origin.clone(),
            age: self.age(now),
            seq: self.seq(),
            records_since: visible.0.saturating_sub(self.seq().0),
            tables: held.iter().map(|(table, _)| table.name.clone()).collect(),
            extent_bytes: pictures().map(|(_, picture)| obsolete_bytes(picture)).sum(),
            memory_bytes: pictures().map(|(table, picture)| flushed_bytes(table, picture)).sum(),
            is_expired: self.is_expired.load(Ordering::Acquire),
        }
    }
}

/// Stored bytes of the extents of a picture that its table does not need any more.
fn obsolete_bytes(picture: &Picture) -> u64 {
    let extents = picture.tree.places().flat_map(|(_, level)| level.iter());
    extents.filter(|extent| extent.is_obsolete()).map(|extent| u64::from(extent.meta.bytes)).sum()
}

/// Bytes of what a picture has in memory and its table has not.
fn flushed_bytes(table: &Table, picture: &Picture) -> u64 {
    let now = table.pinned();
    let memtables = || std::iter::once(&now.active).chain(&now.frozen);
    let held = std::iter::once(&picture.active).chain(&picture.frozen);
    let held = held.filter(|held| !memtables().any(|memtable| Arc::ptr_eq(held, memtable)));
    let memtable_bytes: u64 = held.map(|held| held.record_bytes() + held.index_bytes()).sum();
    let is_there = |held: &&Arc<_>| now.generations.iter().any(|one| Arc::ptr_eq(held, one));
    let held = picture.generations.iter().filter(|held| !is_there(held));
    memtable_bytes + held.map(|held| held.record_bytes() + held.index_bytes()).sum::<u64>()
}

fn nanos(time: Duration) -> u64 {
    time.as_nanos() as u64
}

impl Readers {
    /// No readers; each may get so old, in milliseconds, 0 for any age.
    pub(crate) fn new(age_max_ms: u64) -> Readers {
        Readers {
            age_max: (age_max_ms > 0).then(|| Duration::from_millis(age_max_ms)),
            live: Mutex::default(),
            next_id: AtomicU64::new(1),
            next_look: AtomicU64::new(0),
            expired: AtomicU64::new(0),
        }
    }

    /// The greatest age; `None` is any.
    #[inline]
    pub(crate) fn age_max(&self) -> Option<Duration> {
        self.age_max
    }

    /// Takes a reader in that pins what `engine` shows now.
    pub(crate) fn enter(&self, engine: &Engine, origin: Origin) -> Arc<Entry> {
        let pin = engine.pins.pin(|| engine.journal.visible());
        let entry = Arc::new(Entry {
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
            origin,
            seq: AtomicU64::new(pin.seq().0),
            since: AtomicU64::new(nanos(engine.env.clock.now())),
            is_expired: AtomicBool::new(false),
            pin: Mutex::new(Some(pin)),
            held: Mutex::default(),
            at: AtomicUsize::new(0),
        });
        let mut live = self.live.lock();
        entry.at.store(live.len(), Ordering::Relaxed);
        live.push(entry.clone());
        entry
    }

    /// Lets a reader go.
    pub(crate) fn leave(&self, entry: &Entry) {
        let mut live = self.live.lock();
        let at = entry.at.load(Ordering::Relaxed);
        let left = live.swap_remove(at);
        if let Some(moved) = live.get(at) {
            moved.at.store(at, Ordering::Relaxed);
        }
        drop(live);
        debug_assert_eq!(left.id, entry.id, "a reader is where it says");
        drop(entry.pin.lock().take());
    }

    fn all(&self) -> Vec<Arc<Entry>> {
        self.live.lock().clone()
    }

    /// Takes away what readers pin that are too old.
    fn expire(&self, now: Duration, age_max: Duration) {
        for entry in self.all().iter().filter(|entry| entry.age(now) > age_max) {
            if entry.expire(now, age_max) {
                add(&self.expired, 1);
            }
        }
    }
}

impl Engine {
    /// What reads at a moment of the past now, oldest first.
    #[must_use]
    pub fn live_readers(&self) -> Vec<LiveReader> {
        let (now, visible) = (self.env.clock.now(), self.journal.visible());
        let mut readers: Vec<_> = self.readers.all().iter().map(|entry| entry.show(now, visible)).collect();
        readers.sort_by_key(|reader| (std::cmp::Reverse(reader.age), reader.id));
        readers
    }

    /// Takes away what readers pin that are older than the option allows. For the background, at every turn.
    pub(crate) fn expire_readers(&self) {
        let Some(age_max) = self.readers.age_max else { return };
        let now = self.env.clock.now();
        // Relaxed: two that look at once do no harm.
        if nanos(now) >= self.readers.next_look.load(Ordering::Relaxed) {
            self.readers.next_look.store(nanos(now + age_max / LOOKS), Ordering::Relaxed);
            self.readers.expire(now, age_max);
        }
    }

    /// Refuses what an expired reader has read.
    ///
    /// # Errors
    /// `TooOld`, naming the reader and the remedy.
    #[cold]
    pub(crate) fn check_reader(&self, entry: &Entry, age_max: Duration) -> terrane_base::Result<()> {
        let now = self.env.clock.now();
        let age = entry.age(now);
        if entry.expire(now, age_max) {
            add(&self.readers.expired, 1);
        }
        if !entry.is_expired.load(Ordering::Acquire) || terrane_base::planted!(ReadThroughExpired) {
            return Ok(());
        }
        let (name, remedy) = match entry.origin.kind {
            ReaderKind::Snapshot => ("snapshot", "take a new one"),
            ReaderKind::Scan => ("scan", "begin a new one, or refresh the cursor"),
            ReaderKind::Transaction => ("transaction", "run it again"),
        };
        let label = entry.origin.label.as_ref().map_or_else(String::new, |label| format!(" {label:?}"));
        let message = format!(
            "the {name}{label}, made at {}, is {age:.1?} old, more than reader_age_max_ms={}: {remedy}, and sooner to its \
             end, or raise the option",
            entry.origin.place,
            age_max.as_millis()
        );
        Err(Error::new(Kind::TooOld, message))
    }

    /// Tells what there is of readers now.
    pub(crate) fn show_readers(&self, stats: &mut Stats) {
        let (live, now) = (self.readers.all(), self.env.clock.now());
        stats.readers_live = live.len() as u64;
        stats.readers_expired = self.readers.expired.load(Ordering::Relaxed);
        let oldest = live.iter().map(|entry| entry.age(now)).max();
        stats.reader_age_micros = oldest.unwrap_or_default().as_micros() as u64;
    }
}
