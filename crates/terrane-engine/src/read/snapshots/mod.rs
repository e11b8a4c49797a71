//! Who reads at a moment of the past, for how long already, and what that keeps from being freed.
//!
//! Whatever pins a moment (a snapshot, a scan of its own, a transaction) has a slot here while it lives;
//! scans note in the slot of their moment which picture they hold. With the option `reader_age_max_ms` a
//! reader expires: its reads fail from then on with `TooOld`, and the background takes away what it pins.
//!
//! A read through a snapshot looks how old it is *after* it has read: the pin goes only when that is too old,
//! and the clock does not go back, so who read from a picture that lacks a version because of that is
//! refused. Scans read from a picture of their own, which has what their moment needs; they look before each
//! step.
//!
//! Scans may be short and many. So slots lie in shards that threads do not share as a rule, are used again
//! with all that they have allocated, and where readers may have any age the age of a scan counts from the
//! last tick of the background ([`Readers::tick`]): listing it costs a scan one uncontended lock at each end,
//! and no look at the clock.

mod entry;
mod hold;
mod live;
mod range;
pub(crate) mod snapshot;

use std::panic::Location;
use std::time::Duration;
use terrane_base::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use terrane_base::sync::Mutex;
use terrane_base::{Error, Kind, Result, SeqNo};
use terrane_levels::Pin;

pub use hold::Hold;
pub use live::LiveReader;
pub use range::PinnedRange;

use crate::engine::Engine;
use crate::observe::stats::add;
use crate::read::snapshots::snapshot::Snapshot;
use entry::{Entry, Shard};
pub(crate) use entry::{Held, Release};

/// Parts of the list; threads take turns in choosing one.
const SHARDS: usize = 16;
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

/// The live readers of a database.
pub(crate) struct Readers {
    age_max: Option<Duration>,
    shards: [CachePadded<Mutex<Shard>>; SHARDS],
    /// The clock as the background saw it last, in nanoseconds.
    coarse: AtomicU64,
    /// When the background looks again, in nanoseconds of the clock.
    next_look: AtomicU64,
    expired: AtomicU64,
}

/// Where a reader is in the list, until it leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    shard: usize,
    index: usize,
}

/// What a reader sees, and since when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Since {
    pub(crate) seq: SeqNo,
    /// By the clock.
    pub(crate) time: Duration,
}

/// The part of the list that this thread uses.
fn own_shard() -> usize {
    terrane_base::sync::thread_number() % SHARDS
}

fn nanos(time: Duration) -> u64 {
    time.as_nanos() as u64
}

impl Readers {
    /// No readers; each may get so old, in milliseconds, 0 for any age.
    pub(crate) fn new(age_max_ms: u64) -> Readers {
        Readers {
            age_max: (age_max_ms > 0).then(|| Duration::from_millis(age_max_ms)),
            shards: std::array::from_fn(|shard| CachePadded::new(Mutex::new(Shard::new(shard)))),
            coarse: AtomicU64::new(0),
            next_look: AtomicU64::new(0),
            expired: AtomicU64::new(0),
        }
    }

    /// The greatest age; `None` is any.
    #[inline]
    pub(crate) fn age_max(&self) -> Option<Duration> {
        self.age_max
    }

    /// Notes what time it is, for scans that count from then.
    pub(crate) fn tick(&self, now: Duration) {
        // Relaxed: a measure.
        self.coarse.store(nanos(now), Ordering::Relaxed);
    }

    /// Lists a reader that pins something, and the first thing that it holds, which gets number 0.
    pub(crate) fn enter(&self, since: Since, pin: Pin, origin: Origin, held: Option<Held>) -> Slot {
        let shard = own_shard();
        let index = self.shards[shard].lock().enter(since, pin, origin, held);
        Slot { shard, index }
    }

    /// Lets a reader go.
    pub(crate) fn leave(&self, slot: Slot) {
        let pin = self.shards[slot.shard].lock().leave(slot.index);
        // Not under the lock: it takes another one.
        drop(pin);
    }

    /// Does something with the entry of a live reader.
    fn with<R>(&self, slot: Slot, go: impl FnOnce(&mut Entry) -> R) -> R {
        go(self.shards[slot.shard].lock().entry(slot.index))
    }

    /// Takes away what readers pin that are too old.
    fn expire(&self, now: Duration, age_max: Duration) {
        for shard in &self.shards {
            let expired: Vec<_> =
                shard.lock().live_mut().filter_map(|entry| entry.expire(now, age_max)).collect();
            add(&self.expired, expired.iter().filter(|expired| expired.pin.is_some()).count() as u64);
            // Not under the lock: it takes others.
            expired.into_iter().for_each(entry::Expired::release);
        }
    }

    fn expire_one(&self, slot: Slot, now: Duration, age_max: Duration) {
        if let Some(expired) = self.with(slot, |entry| entry.expire(now, age_max)) {
            add(&self.expired, u64::from(expired.pin.is_some()));
            expired.release();
        }
    }
}

impl Engine {
    /// Since when a reader of this kind counts that begins now.
    #[inline]
    pub(crate) fn reader_time(&self, kind: ReaderKind) -> Duration {
        let is_coarse = kind == ReaderKind::Scan && self.readers.age_max.is_none();
        // Without a background nobody ticks.
        if is_coarse && !self.options.read_only && !self.is_closing() {
            return Duration::from_nanos(self.readers.coarse.load(Ordering::Relaxed));
        }
        self.env.clock.now()
    }

    /// Moves a reader to what is visible now, also if it had expired.
    pub(crate) fn renew_reader(&self, slot: Slot, kind: ReaderKind, before: Since) -> Since {
        let visible = || self.journal.visible();
        let time = self.reader_time(kind);
        // As a rule nothing was written since, or time has not gone on. What did not expire is still pinned.
        if self.readers.age_max.is_none() && time == before.time && visible() == before.seq {
            return before;
        }
        self.readers.with(slot, |entry| {
            let seq = match &mut entry.pin {
                Some(pin) if pin.seq() == visible() => pin.seq(),
                Some(pin) => {
                    pin.renew(visible);
                    pin.seq()
                }
                none => none.insert(self.pins.pin(visible)).seq(),
            };
            entry.is_expired = false;
            entry.since = Since { seq, time };
            entry.since
        })
    }

    /// Looks at the clock, and takes away what readers pin that are older than the option allows. For the
    /// background, at every turn.
    pub(crate) fn look_at_readers(&self) {
        let now = self.env.clock.now();
        self.readers.tick(now);
        let Some(age_max) = self.readers.age_max else { return };
        // Relaxed: two that look at once do no harm.
        if nanos(now) >= self.readers.next_look.load(Ordering::Relaxed) {
            self.readers.next_look.store(nanos(now + age_max / LOOKS), Ordering::Relaxed);
            self.readers.expire(now, age_max);
        }
    }

    /// Refuses what a reader has read that is older than `age_max`.
    ///
    /// # Errors
    /// `TooOld`, naming the reader and the remedy.
    #[inline]
    pub(crate) fn check_reader(&self, reader: &Snapshot, age_max: Duration) -> Result<()> {
        let now = self.env.clock.now();
        if now.saturating_sub(reader.since().time) <= age_max {
            return Ok(());
        }
        self.refuse_reader(reader, now, age_max)
    }

    #[cold]
    fn refuse_reader(&self, reader: &Snapshot, now: Duration, age_max: Duration) -> Result<()> {
        self.readers.expire_one(reader.slot(), now, age_max);
        if terrane_base::planted!(ReadThroughExpired) {
            return Ok(());
        }
        let origin = self.readers.with(reader.slot(), |entry| entry.origin.clone());
        let (name, remedy) = match origin.kind {
            ReaderKind::Snapshot => ("snapshot", "take a new one"),
            ReaderKind::Scan => ("scan", "begin a new one, or refresh the cursor"),
            ReaderKind::Transaction => ("transaction", "run it again"),
        };
        let age = now.saturating_sub(reader.since().time);
        let label = origin.label.as_ref().map_or_else(String::new, |label| format!(" {label:?}"));
        let message = format!(
            "the {name}{label}, made at {}, is {age:.1?} old, more than reader_age_max_ms={}: {remedy}, and sooner to its \
             end, or raise the option",
            origin.place,
            age_max.as_millis()
        );
        Err(Error::new(Kind::TooOld, message))
    }
}
