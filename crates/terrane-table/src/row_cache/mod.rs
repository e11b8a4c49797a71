//! The row cache: values of single keys, newest versions only, for point reads that go on asking for the same rows while
//! the blocks around them are cold.
//!
//! ```text
//! read    memory tier ─► row cache ─► overflow runs, levels ─► fill
//! freeze  stamp + 1 ─► forget the keys of the memtable ─► its records may move into the levels
//! ```
//!
//! # Why no read gets an old value
//! A row in the cache says: *this is the newest version of the key in runs and levels*. It is looked for only after the
//! memory tier had no version that the reader may see, and used only if its number is one that the reader may see.
//! What runs and levels hold as newest changes only when records come down from memory. So:
//! 1. Before the records of a full memtable can move, all of them being visible, the [stamp](RowCache::stamp) is raised
//!    and then every key of the memtable is [forgotten](RowCache::forget), or every row of such a key
//!    ([`RowCache::forget_where`]).
//! 2. A read takes the stamp before it loads the table's picture, and fills only if the stamp is still the same, which
//!    it looks at under the lock of the row's shard.
//! 3. A read that took the old stamp and fills before the key is forgotten is undone by the forgetting; one that comes
//!    later is refused, for the stamp was raised before. A read that took the new stamp finds the key in memory, as long
//!    as its picture has the memtable, and fills nothing; once its picture has not, runs and levels have the version.
//! 4. So when a picture without the memtable is published, no row is older than what the memtable had. A reader of that
//!    picture sees the forgetting, which came before.
//!
//! 5. Extents that come in beneath memory are in a picture before their number is visible: a read with that picture and an
//!    older number finds what was newest before. So such reads fill nothing ([`RowCache::refuse_fills_below`]), and
//!    the stamp is raised and keys are forgotten behind the picture: what a read found in an older one is refused or undone.
//!
//! Readers of older pictures and snapshots find in memory what they may see, or skip a row whose number is above theirs.
//! Only reads of the newest versions fill: what a snapshot finds may be not the newest. Merges of levels change no newest
//! version, and deletes are not kept.
//!
//! # How much it is worth
//! Only reads that had to ask the store fill: a row whose block is cached gains nothing, and while everything fits there
//! is no row cache at all. Keys are dealt to [`SHARDS`] shards by their hash. Fills wake one shard after the other. The
//! first then stays awake: a scale model of the whole, with its share of the keys and of the memory. While it answers
//! enough of what it is asked, more shards are woken, else they are put to sleep, one step at a judgement: a load whose
//! rows do not come back pays for one shard, and the block cache has the memory of the others. So it has if hardly
//! anybody asks for rows while blocks are read ([`RowCache::rest`]). Every row that is filled is taken and the oldest go: what
//! is hit is written again in front. To wait until a row is asked for again saves nothing while what is asked for stays the
//! same, and costs a tenth of the reads when it changes (`docs/design/0015-beyond-memory.md`).

mod log;

use std::sync::Arc;

use terrane_base::sync::Mutex;
use terrane_base::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use terrane_base::{SeqKind, SeqNo, TableId};

use self::log::{Log, RowName};
use crate::cache::{Cache, ObjectKind};
use crate::swip::{self, Epoch, Swip};

/// Parts that are awake or asleep.
pub const SHARDS: usize = 16;
/// A shard with less than this would hold next to nothing.
const SHARD_BYTES_MIN: usize = 16 << 10;
const SHARD_BYTES_MAX: usize = 1 << 30;

/// Reads of the first shard from one judgement to the next.
const JUDGED_READS: u64 = 128;
/// Fills of the first shard at which more shards wake before anything is known: rows must come in to be worth anything.
const WAKING_FILLS: [u64; 5] = [0, 4, 16, 64, 256];
/// Fills of the first shard from one attempt to wake at all to the next.
const RETRY_FILLS: u64 = 64;
/// Data blocks read from one look at who asks for rows to the next, and how many of them for each row that is asked for
/// are so many that blocks should have the memory.
const REST_MISSES: u64 = 4096;
const REST_RATIO: u64 = 8;
/// Answers in 256 reads above which shards wake, and below which they fall asleep. Each answer saves a read of the store,
/// for its block was not cached when the row came. In the same memory blocks would save some too: a third of a cache that
/// holds a twentieth of the data answers one or two in a hundred reads of uniform keys, and about four of zipfian ones.
const WAKE_ABOVE: u64 = 24;
const SLEEP_BELOW: u64 = 12;

/// See the [module](self).
#[derive(Debug)]
pub struct RowCache {
    /// Shards awake: the first so many. Read by every read, rarely written.
    awake: AtomicUsize,
    stamp: AtomicU64,
    /// Reads with a smaller number fill nothing.
    fills_from: AtomicU64,
    shards: Box<[Shard]>,
    /// Bytes of rows in a shard.
    shard_bytes: usize,
    cache: Arc<Cache>,
    judge: Judge,
}

#[derive(Debug, Default)]
struct Shard {
    log: Swip<Log>,
    /// Held while the log is written, made or given up.
    writing: Mutex<()>,
}

/// What the first shard was asked and answered.
#[derive(Debug, Default)]
struct Judge {
    reads: AtomicU64,
    hits: AtomicU64,
    fills: AtomicU64,
    /// Reads, and data blocks read by anybody, when [`RowCache::rest`] last looked.
    seen: Mutex<(u64, u64)>,
    /// Answers in 256 reads, smoothed.
    worth: Mutex<u64>,
}

/// The moment of a read, for [`RowCache::fill`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp(u64);

impl RowCache {
    /// A row cache of up to `bytes`, which it takes from `cache` as it wakes; `None` if that is too little to be of use.
    #[must_use]
    pub fn new(cache: Arc<Cache>, bytes: u64) -> Option<RowCache> {
        let per_shard = usize::try_from(bytes / SHARDS as u64).unwrap_or(usize::MAX).min(SHARD_BYTES_MAX);
        let shard_bytes = Log::bytes_within(per_shard);
        let rows = RowCache {
            awake: AtomicUsize::new(0),
            stamp: AtomicU64::new(0),
            fills_from: AtomicU64::new(0),
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            shard_bytes,
            cache,
            judge: Judge::default(),
        };
        (shard_bytes >= SHARD_BYTES_MIN).then_some(rows)
    }

    /// The stamp that a read takes before it loads its picture.
    #[inline]
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        // Acquire: pairs with the Release in `raise_stamp`; a picture loaded after it is not older than the raise.
        Stamp(self.stamp.load(Ordering::Acquire))
    }

    /// Appends the value of `key` to `value` if the cache has its newest version outside the memory tier and that has a
    /// number up to `seq`; returns that version. `hash` is [`terrane_format::filter::hash`] of the key.
    #[inline]
    pub fn get(
        &self,
        epoch: &Epoch,
        (table, key): (TableId, &[u8]),
        hash: u64,
        seq: SeqNo,
        value: &mut Vec<u8>,
    ) -> Option<SeqKind> {
        let at = shard_of(hash);
        if at >= self.awake.load(Ordering::Relaxed) {
            return None;
        }
        let name = RowName { table, key, hash };
        let start = value.len();
        let shard = &self.shards[at];
        let log = shard.log.load(epoch);
        let found = log.and_then(|log| log.read(name, seq, value));
        if at == 0 {
            self.count(found.is_some(), epoch);
        }
        if let (Some(log), Some(found)) = (log, found)
            && found.is_old
        {
            let _writing = shard.writing.lock();
            log.renew(name, found, &value[start..]);
        }
        found.map(|found| found.seq_kind)
    }

    /// Puts in what a read of the newest version with the number `seq` found in runs and levels by asking the store, if it began after
    /// `stamp` was taken, nothing came down from memory since, and it sees all that came in beneath memory.
    #[inline]
    pub fn fill(
        &self,
        epoch: &Epoch,
        (stamp, seq): (Stamp, SeqNo),
        (table, key): (TableId, &[u8]),
        hash: u64,
        (seq_kind, value): (SeqKind, &[u8]),
    ) {
        let at = shard_of(hash);
        if at == 0 {
            let fills = self.judge.fills.fetch_add(1, Ordering::Relaxed);
            // Asleep as a whole it hears of no hits: it found no memory, and looks again.
            let is_asleep = self.awake.load(Ordering::Relaxed) == 0 && fills.is_multiple_of(RETRY_FILLS);
            if is_asleep || WAKING_FILLS.contains(&fills) {
                self.judge(epoch, true);
            }
        }
        if at >= self.awake.load(Ordering::Relaxed) {
            return;
        }
        let shard = &self.shards[at];
        let Some(log) = shard.log.load(epoch) else { return };
        if !log.takes(key, value) {
            return;
        }
        let _writing = shard.writing.lock();
        // Acquire: pairs with the Release in `raise_stamp`. Under the lock: see the module's third point.
        let is_late = self.stamp.load(Ordering::Acquire) != stamp.0 && !terrane_base::planted!(FillStaleRow);
        // Relaxed: raised before the stamp that was just seen. A read with a later stamp looks again.
        let is_blind =
            seq.0 < self.fills_from.load(Ordering::Relaxed) && !terrane_base::planted!(FillUnseenRow);
        if !is_late && !is_blind {
            log.put(RowName { table, key, hash }, seq_kind, value);
        }
    }

    /// The first half of letting records out of memory: from now on no read that began before fills. Requires: all of
    /// the records are visible, and every picture that is loaded from now on has them, until they are in runs or levels.
    pub fn raise_stamp(&self) {
        self.stamp.fetch_add(1, Ordering::AcqRel);
    }

    /// Before what comes in beneath memory with the number `seq` is visible, and before the stamp is raised for it: reads with a smaller
    /// number, which do not see it, fill nothing from now on.
    pub fn refuse_fills_below(&self, seq: SeqNo) {
        // Release by way of the stamp, which is raised behind it.
        self.fills_from.fetch_max(seq.0, Ordering::Relaxed);
    }

    /// The second half by looking through the rows: forgets those that `is_old` says so of, by table and key. For records
    /// of more keys than there are rows.
    pub fn forget_where(&self, mut is_old: impl FnMut(TableId, &[u8]) -> bool) {
        let mut key = Vec::new();
        for shard in &self.shards {
            let mut next = Some(0);
            while let Some(from) = next {
                let epoch = swip::enter();
                // Under the lock, as in `forget`. A log that is made between two parts is filled by later reads only.
                let _writing = shard.writing.lock();
                let log = shard.log.load(&epoch);
                next = log.and_then(|log| log.remove_where(from, &mut key, &mut is_old));
            }
        }
    }

    /// How many rows there may be: about, for choosing how to forget.
    #[must_use]
    pub fn places(&self) -> u64 {
        let epoch = swip::enter();
        self.shards.iter().filter_map(|shard| shard.log.load(&epoch)).map(Log::places).sum()
    }

    /// The second half, for each key of the records.
    pub fn forget(&self, epoch: &Epoch, (table, key): (TableId, &[u8]), hash: u64) {
        let shard = &self.shards[shard_of(hash)];
        // Under the lock, or a log that is made and filled at this moment could be missed.
        let _writing = shard.writing.lock();
        if let Some(log) = shard.log.load(epoch) {
            log.remove(RowName { table, key, hash });
        }
    }

    /// Bytes of memory in use.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        (self.awake.load(Ordering::Relaxed) * Log::memory_bytes(self.shard_bytes)) as u64
    }

    /// Shards awake, of [`SHARDS`].
    #[must_use]
    pub fn awake(&self) -> usize {
        self.awake.load(Ordering::Relaxed)
    }

    /// Counts a read of the first shard; from time to time judges.
    fn count(&self, is_hit: bool, epoch: &Epoch) {
        if is_hit {
            self.judge.hits.fetch_add(1, Ordering::Relaxed);
        }
        let reads = self.judge.reads.fetch_add(1, Ordering::Relaxed);
        if (reads + 1).is_multiple_of(JUDGED_READS) {
            self.judge(epoch, false);
        }
    }

    /// Gives memory back to blocks if hardly anybody asks for rows while blocks are read. To be called from time to time,
    /// with the number of data blocks that were read so far.
    pub fn rest(&self, block_misses: u64) {
        let Some(mut seen) = self.judge.seen.try_lock() else { return };
        let misses = block_misses.saturating_sub(seen.1);
        if misses < REST_MISSES {
            return;
        }
        let reads = self.judge.reads.load(Ordering::Relaxed);
        let asked = reads.saturating_sub(seen.0) * SHARDS as u64;
        *seen = (reads, block_misses);
        drop(seen);
        if asked < misses / REST_RATIO {
            // Who holds it makes logs, and the caller keeps others waiting.
            let Some(worth) = self.judge.worth.try_lock() else { return };
            let awake = self.awake.load(Ordering::Relaxed);
            if awake > 1 {
                self.put_to_sleep(awake / 2, awake, &swip::enter());
            }
            drop(worth);
        }
    }

    #[cold]
    fn judge(&self, epoch: &Epoch, is_early: bool) {
        let mut worth = self.judge.worth.lock();
        if is_early {
            *worth = WAKE_ABOVE;
            let awake = self.awake.load(Ordering::Relaxed);
            return self.wake(awake, (awake * 2).clamp(1, SHARDS), epoch);
        }
        let hits = self.judge.hits.swap(0, Ordering::Relaxed);
        *worth = (*worth + hits * 256 / JUDGED_READS) / 2;
        let awake = self.awake.load(Ordering::Relaxed);
        if *worth > WAKE_ABOVE && awake < SHARDS {
            // A model that does very well need not be enlarged step by step.
            let to = if *worth > 2 * WAKE_ABOVE { SHARDS } else { awake * 2 };
            self.wake(awake, to.clamp(1, SHARDS), epoch);
        } else if *worth < SLEEP_BELOW && awake > 1 {
            self.put_to_sleep(awake / 2, awake, epoch);
        }
    }

    /// Makes logs for shards, as far as the cache has memory for them. Requires: the judge's lock.
    fn wake(&self, from: usize, to: usize, epoch: &Epoch) {
        for at in from..to {
            let charge = self.cache.reserve(ObjectKind::Rows, Log::memory_bytes(self.shard_bytes));
            let Some(charge) = charge else { return };
            let made = Arc::new(Log::new(self.shard_bytes, charge));
            let shard = &self.shards[at];
            let _writing = shard.writing.lock();
            shard.log.clear(epoch);
            assert!(shard.log.publish(made).is_ok(), "logs are made under the judge's lock");
            self.awake.store(at + 1, Ordering::Relaxed);
        }
    }

    fn put_to_sleep(&self, from: usize, to: usize, epoch: &Epoch) {
        self.awake.store(from, Ordering::Relaxed);
        for shard in &self.shards[from..to] {
            let _writing = shard.writing.lock();
            shard.log.clear(epoch);
        }
    }
}

#[inline]
fn shard_of(hash: u64) -> usize {
    (hash >> 60) as usize
}
