//! The row cache: newest values of single keys, for point reads that repeat the same rows while the blocks
//! around them are cold.
//!
//! ```text
//! read    memory tier ─► row cache ─► overflow runs, levels ─► fill
//! freeze  stamp + 1 ─► forget the keys of the memtable ─► its records may move into the levels
//! ```
//!
//! # Why no read gets an old value
//! A row in the cache means: *this is the newest version of the key in runs and levels*. A read checks it
//! only after the memory tier had no version that the read may see, and uses it only if it may see its
//! number. The newest versions in runs and levels change only when records move there from memory. So:
//! 1. Before the records of a full memtable, all visible, can move, the [stamp](RowCache::stamp) is raised
//!    and then every key of the memtable is [forgotten](RowCache::forget), or every row of such a key
//!    ([`RowCache::forget_where`]).
//! 2. A read takes the stamp before it loads the table's read view, and fills only if the stamp is unchanged,
//!    which it checks under the lock of the row's shard.
//! 3. If a read with the old stamp fills before the key is forgotten, the forgetting removes the row; if it
//!    fills later, the raised stamp refuses it. A read with the new stamp finds the key in memory and fills
//!    nothing, as long as its read view has the memtable; once its read view has not, runs and levels have
//!    the version.
//! 4. So when a read view without the memtable is published, no row is older than the memtable's version. A
//!    reader of that read view sees the forgetting, which happened before.
//!
//! 5. Extents of an ingest are in a read view before their number is visible: a read with that read view and
//!    an older number finds what was newest before. So such reads fill nothing
//!    ([`RowCache::refuse_fills_below`]), and after the read view the stamp is raised and the keys are
//!    forgotten: what a read found in an older read view is refused or removed.
//!
//! Readers of older read views and snapshots find their versions in memory, or skip a row whose number is
//! above theirs. Only reads of newest versions fill, because a snapshot may find an older one. Merges of
//! levels change no newest version, and deletes are not cached.
//!
//! # How much it is worth
//! Only reads that had to read the store fill: a row whose block is cached gains nothing, and while
//! everything fits into the block cache there is no row cache at all. Keys are distributed to [`SHARDS`]
//! shards by their hash. Fills wake one shard after the other. The first shard then stays awake as a scale
//! model of the whole, with its share of the keys and of the memory. While its hit rate is high enough, more
//! shards are woken, else they are put to sleep, one step per evaluation: a load whose rows do not repeat
//! pays for one shard, and the block cache has the memory of the others. The same happens if hardly any rows
//! are read while blocks are ([`RowCache::rest`]). Every filled row is cached and the oldest are dropped; a
//! row that is hit is written again at the end. Caching a row only at its second read saves nothing while the
//! set of rows stays the same, and costs a tenth of the reads when it changes
//! (`docs/design/0015-beyond-memory.md`).

mod log;

use std::sync::Arc;

use terrane_base::sync::Mutex;
use terrane_base::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use terrane_base::{SeqKind, SeqNo, TableId};

use self::log::{Log, RowName};
use crate::cache::{Cache, ObjectKind};
use crate::swip::{self, Epoch, Swip};

/// Number of parts that are awake or asleep.
pub const SHARDS: usize = 16;
const _: () = assert!(SHARDS == 1 << 4, "four bits of a hash select a shard");
/// A shard with less than this would hold hardly any rows.
const SHARD_BYTES_MIN: usize = 16 << 10;
const SHARD_BYTES_MAX: usize = 1 << 30;

/// Reads of the first shard between two evaluations.
const JUDGED_READS: u64 = 128;
/// Fills of the first shard after which more shards wake before a hit rate is known, because only filled
/// shards can be hit.
const WAKING_FILLS: [u64; 5] = [0, 4, 16, 64, 256];
/// Fills of the first shard between two attempts to wake.
const RETRY_FILLS: u64 = 64;
/// Data blocks read between two checks of the use of rows, and the number of block reads per row read above
/// which blocks should have the memory.
const REST_MISSES: u64 = 4096;
const REST_RATIO: u64 = 8;
/// Hits in 256 reads above which shards wake, and below which they fall asleep. Each hit saves a read of the
/// store, because its block was not cached when the row was filled. In the same memory blocks would save some
/// too: a third of a cache that holds a twentieth of the data hits in one or two of a hundred reads of
/// uniform keys, and about four of zipfian ones.
const WAKE_ABOVE: u64 = 24;
const SLEEP_BELOW: u64 = 12;

/// See the [module](self).
#[derive(Debug)]
pub struct RowCache {
    /// Number of shards awake, the first ones. Read by every read, rarely written.
    awake: AtomicUsize,
    stamp: AtomicU64,
    /// Reads with a smaller number fill nothing.
    fills_from: AtomicU64,
    shards: Box<[Shard]>,
    /// Bytes of rows in a shard.
    shard_bytes: usize,
    cache: Arc<Cache>,
    hit_rate: HitRate,
}

#[derive(Debug, Default)]
struct Shard {
    log: Swip<Log>,
    /// Held while the log is written, created or dropped.
    writing: Mutex<()>,
}

/// Statistics of the first shard.
#[derive(Debug, Default)]
struct HitRate {
    reads: AtomicU64,
    hits: AtomicU64,
    fills: AtomicU64,
    /// Reads of rows, and of data blocks, when [`RowCache::rest`] last checked.
    seen: Mutex<(u64, u64)>,
    /// Hits in 256 reads, smoothed.
    worth: Mutex<u64>,
}

/// The time of a read, for [`RowCache::fill`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp(u64);

impl RowCache {
    /// A row cache of up to `bytes`, which it takes from `cache` as it wakes; `None` if that is too little to
    /// be useful.
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
            hit_rate: HitRate::default(),
        };
        (shard_bytes >= SHARD_BYTES_MIN).then_some(rows)
    }

    /// The stamp that a read takes before it loads its read view.
    #[inline]
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        // Acquire: pairs with the Release in `raise_stamp`; a read view loaded after it is not older than the
        // raise.
        Stamp(self.stamp.load(Ordering::Acquire))
    }

    /// Returns true if the part of the cache for keys with this hash is in use.
    #[inline]
    #[must_use]
    pub fn is_awake(&self, hash: u64) -> bool {
        shard_of(hash) < self.awake.load(Ordering::Relaxed)
    }

    /// Appends the value of `key` to `value` if the cache has its newest version outside the memory tier and
    /// that has a number up to `seq`; returns that version. `hash` is [`terrane_format::filter::hash`] of the
    /// key.
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
        debug_assert!(
            found.is_some() || value.len() == start,
            "the store would append its value to these bytes"
        );
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

    /// Caches what a read of the newest version, with the number `seq`, found in runs and levels by reading
    /// the store, if the read began after `stamp` was taken, no records moved from memory since, and the read
    /// sees all ingests.
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
            let fills = self.hit_rate.fills.fetch_add(1, Ordering::Relaxed);
            // While all shards are asleep there are no hits to count: it found no memory, and tries again.
            let is_asleep = self.awake.load(Ordering::Relaxed) == 0 && fills.is_multiple_of(RETRY_FILLS);
            if is_asleep || WAKING_FILLS.contains(&fills) {
                self.evaluate(epoch, true);
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
        // Relaxed: raised before the stamp that was just loaded. A read with a later stamp checks again.
        let is_blind =
            seq.0 < self.fills_from.load(Ordering::Relaxed) && !terrane_base::planted!(FillUnseenRow);
        if !is_late && !is_blind {
            log.put(RowName { table, key, hash }, seq_kind, value);
        }
    }

    /// The first step before records leave memory: from now on no read that began before fills. Requires: all
    /// of the records are visible, and every read view that is loaded from now on contains them, until they
    /// are in runs or levels.
    pub fn raise_stamp(&self) {
        self.stamp.fetch_add(1, Ordering::AcqRel);
    }

    /// Called before an ingest with the number `seq` is visible, and before the stamp is raised for it: from
    /// now on reads with a smaller number, which do not see it, fill nothing.
    pub fn refuse_fills_below(&self, seq: SeqNo) {
        // Released by the raise of the stamp, which follows.
        self.fills_from.fetch_max(seq.0, Ordering::Relaxed);
    }

    /// The second step, by visiting all rows: forgets those for whose table and key `is_old` returns true.
    /// For records with more keys than there are rows.
    pub fn forget_where(&self, mut is_old: impl FnMut(TableId, &[u8]) -> bool) {
        let mut key = Vec::new();
        for shard in &self.shards {
            let mut next = Some(0);
            while let Some(from) = next {
                let epoch = swip::enter();
                // Under the lock, as in `forget`. A log that is created between two parts is filled by later
                // reads only.
                let _writing = shard.writing.lock();
                let log = shard.log.load(&epoch);
                next = log.and_then(|log| log.remove_where(from, &mut key, &mut is_old));
                debug_assert!(
                    next.is_none_or(|next| next > from),
                    "a walk over the rows that does not go on would not end"
                );
            }
        }
    }

    /// Approximate maximal number of rows, for choosing how to forget.
    #[must_use]
    pub fn places(&self) -> u64 {
        let epoch = swip::enter();
        self.shards.iter().filter_map(|shard| shard.log.load(&epoch)).map(Log::places).sum()
    }

    /// The second step, for each key of the records.
    pub fn forget(&self, epoch: &Epoch, (table, key): (TableId, &[u8]), hash: u64) {
        let shard = &self.shards[shard_of(hash)];
        // Under the lock, because a log that is created and filled at this moment could be missed.
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

    /// Number of shards awake, of [`SHARDS`].
    #[must_use]
    pub fn awake(&self) -> usize {
        self.awake.load(Ordering::Relaxed)
    }

    /// Counts a read of the first shard; evaluates the hit rate from time to time.
    fn count(&self, is_hit: bool, epoch: &Epoch) {
        if is_hit {
            self.hit_rate.hits.fetch_add(1, Ordering::Relaxed);
        }
        let reads = self.hit_rate.reads.fetch_add(1, Ordering::Relaxed);
        if (reads + 1).is_multiple_of(JUDGED_READS) {
            self.evaluate(epoch, false);
        }
    }

    /// Returns memory to the block cache if hardly any rows are read while blocks are. Called from time to
    /// time, with the number of data blocks read so far.
    pub fn rest(&self, block_misses: u64) {
        let Some(mut seen) = self.hit_rate.seen.try_lock() else { return };
        let misses = block_misses.saturating_sub(seen.1);
        if misses < REST_MISSES {
            return;
        }
        let reads = self.hit_rate.reads.load(Ordering::Relaxed);
        let asked = reads.saturating_sub(seen.0) * SHARDS as u64;
        *seen = (reads, block_misses);
        drop(seen);
        if asked < misses / REST_RATIO {
            // The holder of the lock creates logs, and callers of this function make others wait.
            let Some(worth) = self.hit_rate.worth.try_lock() else { return };
            let awake = self.awake.load(Ordering::Relaxed);
            debug_assert!(awake <= SHARDS, "{awake} shards are awake, of {SHARDS}");
            if awake > 1 {
                self.put_to_sleep(awake / 2, awake, &swip::enter());
            }
            drop(worth);
        }
    }

    #[cold]
    fn evaluate(&self, epoch: &Epoch, is_early: bool) {
        let mut worth = self.hit_rate.worth.lock();
        if is_early {
            *worth = WAKE_ABOVE;
            let awake = self.awake.load(Ordering::Relaxed);
            return self.wake(awake, (awake * 2).clamp(1, SHARDS), epoch);
        }
        let hits = self.hit_rate.hits.swap(0, Ordering::Relaxed);
        *worth = (*worth + hits * 256 / JUDGED_READS) / 2;
        let awake = self.awake.load(Ordering::Relaxed);
        debug_assert!(awake <= SHARDS, "{awake} shards are awake, of {SHARDS}");
        if *worth > WAKE_ABOVE && awake < SHARDS {
            // If the hit rate is very high, all shards wake at once.
            let to = if *worth > 2 * WAKE_ABOVE { SHARDS } else { awake * 2 };
            self.wake(awake, to.clamp(1, SHARDS), epoch);
        } else if *worth < SLEEP_BELOW && awake > 1 {
            self.put_to_sleep(awake / 2, awake, epoch);
        }
    }

    /// Creates logs for shards, as far as the cache has memory for them. Requires: the lock of `worth`.
    fn wake(&self, from: usize, to: usize, epoch: &Epoch) {
        debug_assert!(from <= to && to <= SHARDS, "shards {from}..{to} wake");
        for at in from..to {
            let charge = self.cache.reserve(ObjectKind::Rows, Log::memory_bytes(self.shard_bytes));
            let Some(charge) = charge else { return };
            let made = Arc::new(Log::new(self.shard_bytes, charge));
            let shard = &self.shards[at];
            let _writing = shard.writing.lock();
            shard.log.clear(epoch);
            assert!(shard.log.publish(made).is_ok(), "logs are created under the lock of the hit rate");
            self.awake.store(at + 1, Ordering::Relaxed);
        }
    }

    fn put_to_sleep(&self, from: usize, to: usize, epoch: &Epoch) {
        assert!(from <= to && to <= SHARDS, "shards {from}..{to} go to sleep");
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
