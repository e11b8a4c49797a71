//! The memory ceiling and the sizes that follow from it, as they are now: both can change while the database
//! is open.
//!
//! Numbers that every write reads are atomics; the division as a whole is behind a lock that is
//! held for a copy only. Sizes of files stay as they were at the opening: those of segments, and of levels.

use terrane_base::sync::atomic::{AtomicU64, Ordering};

use terrane_base::options::Options;
use terrane_base::sync::RwLock;
use terrane_base::{Error, Result};

use crate::table::settings::{MemoryPlan, has_room_for_chunks};

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Budget {
    /// Sizes that the database was opened with; 0 means that the size follows from the ceiling.
    asked: Options,
    plan: RwLock<MemoryPlan>,
    memory_bytes: AtomicU64,
    write_bytes: AtomicU64,
    memtable_bytes: AtomicU64,
    generation_bytes: AtomicU64,
}

impl Budget {
    /// The budget of a database that is opened with `asked`, which means `options`.
    pub(crate) fn new(asked: Options, options: &Options) -> Budget {
        let plan = MemoryPlan::new(options);
        Budget {
            asked,
            plan: RwLock::new(plan),
            memory_bytes: AtomicU64::new(options.memory_bytes),
            write_bytes: AtomicU64::new(plan.write_bytes),
            memtable_bytes: AtomicU64::new(options.memtable_bytes),
            generation_bytes: AtomicU64::new(options.global_index_bytes),
        }
    }

    /// How the ceiling is divided.
    pub(crate) fn plan(&self) -> MemoryPlan {
        *self.plan.read()
    }

    /// The ceiling.
    pub(crate) fn memory_bytes(&self) -> u64 {
        // Relaxed, here and below: a reader that misses a change sees it at the next look.
        self.memory_bytes.load(Ordering::Relaxed)
    }

    /// The part of it that writers may have.
    #[inline]
    pub(crate) fn write_bytes(&self) -> u64 {
        self.write_bytes.load(Ordering::Relaxed)
    }

    /// Bytes at which a memtable is full.
    #[inline]
    pub(crate) fn memtable_bytes(&self) -> u64 {
        self.memtable_bytes.load(Ordering::Relaxed)
    }

    /// Bytes at which a generation of the global index is full.
    #[inline]
    pub(crate) fn generation_bytes(&self) -> u64 {
        self.generation_bytes.load(Ordering::Relaxed)
    }

    /// The options of a database under another ceiling.
    ///
    /// # Errors
    /// `Invalid`, naming what contradicts it.
    pub(super) fn under(&self, memory_bytes: u64, now: &Options) -> Result<Options> {
        let threads = usize::try_from(now.background_threads).unwrap_or(1);
        let kept = Options {
            memory_bytes,
            segment_bytes: now.segment_bytes,
            level_base_bytes: now.level_base_bytes,
            ..self.asked.clone()
        };
        let options = kept.resolve(threads)?;
        let keeps_files =
            options.segment_bytes == now.segment_bytes && options.level_base_bytes == now.level_base_bytes;
        debug_assert!(keeps_files, "sizes of files stay as they were at the opening");
        if let Some(chunk_bytes) = self.plan().chunk_bytes
            && !has_room_for_chunks(&options, chunk_bytes as u64)
        {
            return Err(Error::invalid(format!(
                "memory_bytes={memory_bytes} is too little for a cache in chunks of {chunk_bytes} bytes: reopen the database with \
                 it, or with experiments.block_memory=heap"
            )));
        }
        Ok(options)
    }

    pub(super) fn set(&self, options: &Options) {
        let mut plan = self.plan.write();
        *plan = MemoryPlan { chunk_bytes: plan.chunk_bytes, ..MemoryPlan::new(options) };
        debug_assert!(options.memtable_bytes <= plan.write_bytes, "writers wait before a memtable is full");
        self.memory_bytes.store(options.memory_bytes, Ordering::Relaxed);
        self.write_bytes.store(plan.write_bytes, Ordering::Relaxed);
        self.memtable_bytes.store(options.memtable_bytes, Ordering::Relaxed);
        self.generation_bytes.store(options.global_index_bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn budget(asked: Options) -> (Budget, Options) {
        let options = asked.resolve(2).expect("options");
        (Budget::new(asked, &options), options)
    }

    #[test]
    fn derived_sizes_follow_the_ceiling_and_given_sizes_stay() {
        let asked = Options {
            memory_bytes: 256 * MIB,
            memtable_bytes: 30 * MIB,
            global_index_bytes: 48 * MIB,
            ..Options::default()
        };
        let (budget, now) = self::budget(asked);
        let more = budget.under(1024 * MIB, &now).expect("more");
        assert_eq!((more.write_memory_bytes, more.global_index_bytes), (512 * MIB, 48 * MIB));
        assert_eq!((more.segment_bytes, more.level_base_bytes), (now.segment_bytes, now.level_base_bytes));
        budget.set(&more);
        assert_eq!((budget.memory_bytes(), budget.write_bytes()), (1024 * MIB, 512 * MIB));
        assert_eq!((budget.memtable_bytes(), budget.generation_bytes()), (30 * MIB, 48 * MIB));
        assert_eq!(budget.plan().write_bytes, budget.write_bytes());
    }

    #[test]
    fn a_contradiction_is_refused_by_name() {
        let (budget, now) = self::budget(Options { memory_bytes: 1024 * MIB, ..Options::default() });
        let refused = |bytes: u64| budget.under(bytes, &now).expect_err("too little").to_string();
        assert!(refused(MIB).contains("memory_bytes"));
        assert!(refused(64 * MIB).contains("segment_bytes"), "segments stay as they are");
        assert_eq!(budget.memory_bytes(), 1024 * MIB, "nothing has changed");
        let (in_chunks, now) = self::budget(Options { segment_bytes: MIB, ..Options::default() });
        let refused = in_chunks.under(64 * MIB, &now).expect_err("too few chunks").to_string();
        assert!(refused.contains("experiments.block_memory=heap"), "{refused}");
        in_chunks.under(128 * MIB, &now).expect("enough of them");
    }

    #[test]
    fn chunks_shrink_with_the_cache_and_hold_its_blocks() {
        let chunk_bytes = |memory_bytes: u64, block_bytes: u64| {
            let asked = Options { memory_bytes, block_bytes, ..Options::default() };
            self::budget(asked).0.plan().chunk_bytes
        };
        assert_eq!(chunk_bytes(1024 * MIB, 16 << 10), Some(2 << 20));
        assert_eq!(chunk_bytes(64 * MIB, 16 << 10), Some(1 << 20));
        assert_eq!(chunk_bytes(16 * MIB, 16 << 10), Some(256 << 10), "the least ceiling has chunks, too");
        assert_eq!(chunk_bytes(16 * MIB, 64 << 10), None, "few blocks would fit in a chunk");
        assert_eq!(
            chunk_bytes(1024 * MIB, 1 << 20),
            Some(2 << 20),
            "large blocks lie on the heap, indexes do not"
        );
    }
}
