//! The registry of live readers: which moment each sees, since when, and what it holds. A reader that pins a
//! moment (a snapshot, a scan of its own, a transaction) has a slot here while it lives. The readers of
//! changes that wait for a commit are in `feed_waiters.rs`.
//!
//! Slots lie in shards that threads do not share as a rule, and are used again with all that they have
//! allocated: scans may be short and many. The lock of a shard is a leaf; a pin is dropped after it.

mod entry;
pub(crate) mod feed_waiters;

use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_utils::CachePadded;
use terrane_base::SeqNo;
use terrane_base::sync::Mutex;
use terrane_base::sync::atomic::{AtomicU64, Ordering};
use terrane_levels::Pin;

use crate::observe::stats::{Stats, add};
use entry::Shard;
pub(crate) use entry::{Entry, Held, Release};
use feed_waiters::FeedWaiters;

/// Parts of the list; threads take turns in choosing one.
const SHARDS: usize = 16;
/// Of the greatest age, the part after which the background looks again.
const LOOKS: u32 = 16;

/// Kinds of readers that pin a moment.
///
/// ```
/// # use terrane_engine::ReaderKind;
/// assert_eq!(ReaderKind::Scan.as_str(), "scan"); // as in `terrane top`
/// ```
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

impl ReaderKind {
    /// The kind as one word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ReaderKind::Snapshot => "snapshot",
            ReaderKind::Scan => "scan",
            ReaderKind::Transaction => "transaction",
        }
    }
}

/// Where a reader comes from.
///
/// ```
/// # use terrane_engine::{Origin, ReaderKind};
/// fn show(origin: &Origin) -> String {
///     let label = origin.label.as_deref().unwrap_or("without a label");
///     format!("a {}, {label}, made in line {}", origin.kind.as_str(), origin.place.line())
/// }
/// let here = Origin::here(ReaderKind::Snapshot);
/// assert!(show(&here).starts_with("a snapshot, without a label"));
/// ```
#[derive(Clone, Debug)]
pub struct Origin {
    /// Its kind.
    pub kind: ReaderKind,
    /// The label that its maker gave it.
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
    of_changes: Arc<FeedWaiters>,
}

/// Where a reader is in the list, until it leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    shard: usize,
    index: usize,
}

/// The moment that a reader sees, and since when.
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
            of_changes: Arc::default(),
        }
    }

    /// Readers of changes that wait for a commit.
    #[inline]
    pub(crate) fn of_changes(&self) -> &Arc<FeedWaiters> {
        &self.of_changes
    }

    /// The greatest age; `None` is any.
    #[inline]
    pub(crate) fn age_max(&self) -> Option<Duration> {
        self.age_max
    }

    /// The time of the last tick.
    #[inline]
    pub(crate) fn last_tick(&self) -> Duration {
        Duration::from_nanos(self.coarse.load(Ordering::Relaxed))
    }

    /// Notes what time it is, for scans that count from then.
    pub(crate) fn tick(&self, now: Duration) {
        // Relaxed: a measure.
        self.coarse.store(nanos(now), Ordering::Relaxed);
    }

    /// Lists a reader that pins something, and the first thing that it holds, which gets number 0.
    pub(crate) fn enter(&self, since: Since, pin: Pin, origin: Origin, held: Option<Held>) -> Slot {
        debug_assert!(held.as_ref().is_none_or(|held| held.number == 0), "the first thing has number 0");
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
    pub(crate) fn with<R>(&self, slot: Slot, go: impl FnOnce(&mut Entry) -> R) -> R {
        go(self.shards[slot.shard].lock().entry(slot.index))
    }

    /// Takes away what readers pin that are too old.
    fn expire(&self, now: Duration, age_max: Duration) {
        debug_assert!(self.age_max == Some(age_max), "one age counts for all readers");
        for shard in &self.shards {
            let expired: Vec<_> =
                shard.lock().live_mut().filter_map(|entry| entry.expire(now, age_max)).collect();
            add(&self.expired, expired.iter().filter(|expired| expired.pin.is_some()).count() as u64);
            // Not under the lock: it takes others.
            expired.into_iter().for_each(entry::Expired::release);
        }
    }

    /// Takes away what one reader pins, if it is too old.
    pub(crate) fn expire_one(&self, slot: Slot, now: Duration, age_max: Duration) {
        debug_assert!(self.age_max == Some(age_max), "one age counts for all readers");
        if let Some(expired) = self.with(slot, |entry| entry.expire(now, age_max)) {
            add(&self.expired, u64::from(expired.pin.is_some()));
            expired.release();
        }
    }

    /// Looks at the clock, and takes away what readers pin that are older than the option allows. For the
    /// background, at every turn.
    pub(crate) fn look(&self, now: Duration) {
        self.tick(now);
        let Some(age_max) = self.age_max else { return };
        // Relaxed: two that look at once do no harm.
        if nanos(now) >= self.next_look.load(Ordering::Relaxed) {
            self.next_look.store(nanos(now + age_max / LOOKS), Ordering::Relaxed);
            self.expire(now, age_max);
        }
    }

    /// Copies something of each live reader by `copy`. Drops nothing under the lock: a dropped value may be
    /// the last reference to an object that a reader held.
    pub(crate) fn copy_live<R>(&self, copy: impl Fn(&Entry) -> R) -> Vec<R> {
        let mut copies = Vec::new();
        for shard in &self.shards {
            copies.extend(shard.lock().live().map(&copy));
        }
        copies
    }

    /// Adds the present numbers of readers to `stats`.
    pub(crate) fn show(&self, now: Duration, stats: &mut Stats) {
        debug_assert!(stats.readers_live == 0, "each reader counts once");
        self.tick(now);
        stats.readers_expired = self.expired.load(Ordering::Relaxed);
        for shard in &self.shards {
            for entry in shard.lock().live() {
                stats.readers_live += 1;
                stats.reader_age_micros = stats.reader_age_micros.max(entry.age(now).as_micros() as u64);
            }
        }
    }
}
