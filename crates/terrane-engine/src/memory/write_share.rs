//! How much of their memory writers do without while readers miss what it takes from the cache.
//!
//! Write memory above what a generation of useful size takes saves the levels some merging; memory of the cache saves
//! every read that would miss a whole load, which takes as long as bringing some kilobytes. So where readers beside
//! writers load a block for every [`SHORT_BYTES`] that are written, the share of writers goes down to half, little by little,
//! so that none of them stops; it comes back once hardly a block was loaded for a while. Where the data are far larger than
//! what they give up the hit ratio would not notice, and they keep it.
//!
//! What a share of less than all means: memtables and generations are full earlier, and memory counts as owed earlier. The
//! limit of write memory as such does not move, so a batch that fits with all of it always fits.

use std::time::Duration;
use terrane_base::sync::atomic::{AtomicU64, Ordering};

use terrane_base::sync::Mutex;
use terrane_table::ObjectKind;

use crate::engine::Engine;

/// Time over which loads and bytes are compared.
const WINDOW: Duration = Duration::from_millis(100);
/// A load for so many bytes written, or fewer, and the cache is short.
const SHORT_BYTES: u64 = 4 << 10;
/// A load for so many bytes written, or more, and it is short no longer.
const ENOUGH_BYTES: u64 = 16 << 10;
/// Time for which it must not have been short.
const HOLD: Duration = Duration::from_millis(500);
/// Loads in a window that say nothing.
const LOADS_MIN: u64 = 16;
/// The whole share; the least; and by how much it goes down and up in a window.
const WHOLE: u64 = 256;
const LEAST: u64 = WHOLE / 2;
const STEP_DOWN: u64 = WHOLE / 8;
const STEP_UP: u64 = WHOLE / 16;
/// What writers give up is at least one part in so many of the data, or they do not.
const DATA_SHARE: u64 = 10;
/// What is shown of memory that is owed within the limit as such.
const OWED_MAX: f64 = 0.98;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct WriteShare {
    seen: Mutex<Seen>,
    /// In 256ths.
    share: AtomicU64,
}

#[derive(Debug, Default)]
struct Seen {
    at: Duration,
    bytes: u64,
    loads: u64,
    /// When the cache was short last, or nearly.
    short_at: Duration,
}

impl Default for WriteShare {
    fn default() -> Self {
        WriteShare { seen: Mutex::default(), share: AtomicU64::new(WHOLE) }
    }
}

impl WriteShare {
    /// Looks at all the `bytes` that ever came and the `loads` there ever were; `pays` says whether the cache would gain.
    fn look(&self, now: Duration, bytes: u64, loads: u64, pays: impl FnOnce() -> bool) {
        // Who finds somebody looking has nothing to add.
        let Some(mut seen) = self.seen.try_lock() else { return };
        let took = now.saturating_sub(seen.at);
        if took < WINDOW {
            return;
        }
        let came = bytes.saturating_sub(seen.bytes);
        let loaded = loads.saturating_sub(seen.loads);
        *seen = Seen { at: now, bytes, loads, ..*seen };
        if came == 0 {
            // The pause says nothing of what comes behind it.
            seen.short_at += took;
            return;
        }
        let is_one_in = |bytes: u64| loaded >= LOADS_MIN && loaded.saturating_mul(bytes) >= came;
        // Relaxed: written under the lock, and read as a measure.
        let share = self.share.load(Ordering::Relaxed);
        if is_one_in(ENOUGH_BYTES) && pays() {
            seen.short_at = now;
            if is_one_in(SHORT_BYTES) {
                self.share.store(share.saturating_sub(STEP_DOWN).max(LEAST), Ordering::Relaxed);
            }
        } else if now.saturating_sub(seen.short_at) >= HOLD {
            self.share.store((share + STEP_UP).min(WHOLE), Ordering::Relaxed);
        }
    }

    /// The share of `bytes` that writers may use.
    #[inline]
    fn of(&self, bytes: u64) -> u64 {
        match self.share.load(Ordering::Relaxed) {
            WHOLE => bytes,
            share => (u128::from(bytes) * u128::from(share) / u128::from(WHOLE)) as u64,
        }
    }
}

impl Engine {
    /// Sets the share of writers by what was written and loaded of late.
    pub(crate) fn look_at_yielding(&self) {
        if !self.options.write_memory_yields || !self.budget.plan().adaptive {
            return;
        }
        let bytes = self.written.bytes();
        // What jobs loaded in the place of their inputs nobody missed.
        let replaced = self.counters.blocks_replaced.load(Ordering::Relaxed);
        let loads = self.cache.misses(ObjectKind::Data).saturating_sub(replaced);
        self.yielding.look(self.env.clock.now(), bytes, loads, || {
            let data = self.catalog.sums().now().tree_bytes;
            self.budget.write_bytes() / WHOLE * LEAST >= data / DATA_SHARE
        });
    }

    /// Bytes of a memtable at which it is full now.
    #[inline]
    pub(crate) fn memtable_limit(&self) -> u64 {
        self.yielding.of(self.budget.memtable_bytes())
    }

    /// Bytes of a generation of the global index at which it is full now.
    pub(crate) fn generation_limit(&self) -> u64 {
        self.yielding.of(self.budget.generation_bytes())
    }

    /// The part of their memory that writers use, 1 at the limit. What they have beyond a smaller share is owed and does not
    /// stop them.
    pub(crate) fn debt_of(&self, write_bytes: u64) -> f64 {
        let owed = write_bytes as f64 / self.budget.write_bytes() as f64;
        let of_share = write_bytes as f64 / self.yielding.of(self.budget.write_bytes()) as f64;
        owed.max(of_share.min(OWED_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Windows with so many bytes and loads each; the share behind each.
    fn shares(yielding: &WriteShare, from: &mut Seen, windows: usize, bytes: u64, loads: u64) -> Vec<u64> {
        let mut window = || {
            *from =
                Seen { at: from.at + WINDOW, bytes: from.bytes + bytes, loads: from.loads + loads, ..*from };
            yielding.look(from.at, from.bytes, from.loads, || true);
            yielding.of(WHOLE)
        };
        (0..windows).map(|_| window()).collect()
    }

    #[test]
    fn writers_yield_little_by_little_and_get_it_back_when_nobody_misses() {
        let (yielding, mut at) =
            (WriteShare::default(), Seen { at: Duration::from_secs(9), ..Seen::default() });
        let down = shares(&yielding, &mut at, 9, MIB, 300);
        assert_eq!(down[0], WHOLE - STEP_DOWN);
        assert!(down.is_sorted_by(|a, b| a >= b) && down[8] == LEAST, "{down:?}");
        // A pause is no end.
        assert_eq!(shares(&yielding, &mut at, 20, 0, 0), [LEAST; 20]);
        // Some still miss: it stays as long as they do.
        assert_eq!(shares(&yielding, &mut at, 20, MIB, 100), [LEAST; 20]);
        let up = shares(&yielding, &mut at, 20, MIB, 3);
        assert!(up[..4].iter().all(|share| *share == LEAST) && up.is_sorted() && up[19] == WHOLE, "{up:?}");
    }

    #[test]
    fn few_loads_say_nothing() {
        let (yielding, mut at) = (WriteShare::default(), Seen::default());
        assert_eq!(shares(&yielding, &mut at, 5, 0, 1000), [WHOLE; 5], "nobody writes");
        assert_eq!(shares(&yielding, &mut at, 5, 1, LOADS_MIN - 1), [WHOLE; 5]);
        assert_eq!(shares(&yielding, &mut at, 5, 10 * MIB, 1000), [WHOLE; 5], "writers bring far more");
    }

    #[test]
    fn what_does_not_help_the_cache_is_not_given_up() {
        let yielding = WriteShare::default();
        (1..9).for_each(|at| yielding.look(WINDOW * at, u64::from(at), u64::from(at) * 1000, || false));
        assert_eq!(yielding.of(WHOLE), WHOLE);
    }

    #[test]
    fn a_look_within_a_window_changes_nothing() {
        let yielding = WriteShare::default();
        yielding.look(WINDOW, MIB, 1000, || true);
        let share = yielding.of(WHOLE);
        yielding.look(WINDOW + WINDOW / 2, 2 * MIB, 2000, || true);
        assert_eq!(yielding.of(WHOLE), share);
    }
}
