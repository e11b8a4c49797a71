//! The division of the memory ceiling between writers and the cache.
//!
//! Jobs in flight have a share of their own, half of which the cache has while none runs ([`crate::memory::job_lease`]); what is left is *shared*. Writers may take up to their share of it, and
//! what they do not use is lent to the cache. The limit of the cache follows what writers use, with a slack between
//! the two: room for what writers take from one look to the next, so that they need not wait for evictions.
//!
//! ```text
//! | jobs |                              shared                                  |
//!        | segments and indexes ->  | slack |  <- blocks, index blocks, filters  |
//! ```
//!
//! Steps: every quantum of bytes written, and whenever memory came back, 1. the limit of the cache is set anew,
//! 2. the cache gives up a bounded number of bytes, more than a quantum can take; 3. what is still too much is debt:
//! the writers wait ([`crate::write::throttle`]) and evict themselves.
//!
//! Invariant: writers are not admitted while both together pass what is shared. What a reader holds in its hand beyond
//! the limit of the cache is a block each.

use terrane_base::sync::Mutex;

use crate::engine::Engine;
use crate::table::settings::MemoryPlan;

/// Bytes that the cache gives up at one look: several times what writers take in between.
const STEP_BYTES: u64 = 2 << 20;

/// What one look found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Balance {
    /// Segments and the indexes over them.
    pub(crate) write_bytes: u64,
    /// Whether writers and the cache together hold more than what is shared.
    pub(crate) is_over: bool,
}

/// One look at a time: the limit must follow the newest.
#[derive(Debug, Default)]
pub(crate) struct Looking(Mutex<()>);

impl MemoryPlan {
    /// The limit of the cache while writers use `write_bytes` and jobs have lent it `lent_bytes`.
    pub(crate) fn cache_limit(&self, write_bytes: u64, lent_bytes: u64) -> u64 {
        if !self.adaptive {
            return self.cache_bytes;
        }
        // Beyond their share writers get only what is on its way when they are stopped: half of the slack.
        let end = self.write_bytes + self.slack_bytes / 2;
        let foreseen = (write_bytes + self.slack_bytes).min(end).max(write_bytes);
        (self.shared_bytes() + lent_bytes).saturating_sub(foreseen)
    }
}

impl Engine {
    /// Sets the limit of the cache by what writers use now, and lets it give up some of what is too much.
    pub(crate) fn balance_memory(&self) -> Balance {
        let _looking = self.looking.0.lock();
        let write_bytes = self.write_memory_in_use();
        if !self.budget.plan().adaptive {
            return Balance { write_bytes, is_over: false };
        }
        self.freed_watch.note(self.cache.used_bytes());
        self.cache.set_limit(self.budget.plan().cache_limit(write_bytes, self.lent_bytes()));
        self.cache.shrink_some(STEP_BYTES);
        Balance { write_bytes, is_over: write_bytes + self.cache.used_bytes() > self.bytes_max() }
    }

    /// Sets the limit of the cache, and lets it give up all that is too much.
    pub(crate) fn shrink_cache(&self) {
        let _looking = self.looking.0.lock();
        let limit = self.budget.plan().cache_limit(self.write_memory_in_use(), self.lent_bytes());
        self.freed_watch.note(self.cache.used_bytes());
        self.cache.resize(limit);
    }

    /// Changes how memory is divided, while nobody looks.
    pub(crate) fn change_budget(&self, change: impl FnOnce()) {
        let _looking = self.looking.0.lock();
        change();
    }

    /// What the cache has of the memory of jobs.
    fn lent_bytes(&self) -> u64 {
        if self.job_memory.is_lent() { self.budget.plan().lent_bytes } else { 0 }
    }

    /// What writers and the cache may hold together now.
    fn bytes_max(&self) -> u64 {
        self.budget.plan().shared_bytes()
            + if self.job_memory.is_out() { self.budget.plan().lent_bytes } else { 0 }
    }

    /// Whether `reserved` bytes of batches find room, beside what writers and the cache hold; the cache makes some.
    pub(crate) fn has_room_for(&self, reserved: u64) -> bool {
        let balance = self.balance_memory();
        let wanted = balance.write_bytes + reserved;
        if wanted > self.budget.write_bytes() {
            return terrane_base::planted!(UnlimitedWriteMemory);
        }
        let has_room = || wanted + self.cache.used_bytes() <= self.bytes_max();
        if !self.budget.plan().adaptive || has_room() {
            return true;
        }
        let _looking = self.looking.0.lock();
        self.cache.set_limit(self.budget.plan().cache_limit(wanted, self.lent_bytes()));
        self.cache.shrink_some(reserved + STEP_BYTES);
        has_room()
    }
}

#[cfg(test)]
mod tests {
    use terrane_base::options::Options;

    use super::*;

    fn plan(adaptive: bool) -> MemoryPlan {
        let options = Options { memory_bytes: 256 << 20, adaptive_memory: adaptive, ..Options::default() };
        MemoryPlan::new(&options.resolve(2).expect("options"))
    }

    #[test]
    fn writers_and_cache_never_get_more_than_is_shared() {
        let plan = plan(true);
        assert_eq!(plan.shared_bytes() + (256 << 20) / 8, 256 << 20);
        let mut last = u64::MAX;
        for write_bytes in (0..plan.write_bytes * 2).step_by(1 << 20) {
            let limit = plan.cache_limit(write_bytes, 0);
            assert!(limit <= last, "the cache gives back what writers take");
            assert!(write_bytes + limit <= plan.shared_bytes() || limit == 0);
            // Its own share stays, less what writers may have on its way.
            assert!(write_bytes > plan.write_bytes || limit >= plan.cache_bytes - plan.slack_bytes / 2);
            assert!(plan.cache_limit(write_bytes, plan.lent_bytes) <= limit + plan.lent_bytes);
            last = limit;
        }
        assert!(plan.cache_limit(0, 0) > plan.cache_bytes * 3 / 2, "most of what nobody uses is lent");
    }

    #[test]
    fn without_adapting_the_shares_are_fixed() {
        let plan = plan(false);
        assert!(
            (0..plan.write_bytes)
                .step_by(1 << 20)
                .all(|used| plan.cache_limit(used, plan.lent_bytes) == plan.cache_bytes)
        );
    }
}
