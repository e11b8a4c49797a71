//! The debt of the background, for [`crate::throttle`]:
//!
//! * memory: segments and indexes against the write memory, or the share of it that is left to writers
//!   ([`crate::memory`]). At 1 writers wait: the ceiling is hard. They also wait while the cache has not
//!   freed memory that was lent to it.
//! * the backlog of the levels ([`crate::throttle::compaction_debt`]), of each table by itself:
//!   overflow runs, and bytes that compaction has to move. It slows the writers of the table and never stops
//!   them.

use crate::throttle::control::WriteControl;

/// Bytes written between two computations of the debt.
pub(crate) const DEBT_QUANTUM_BYTES: u64 = 256 * 1024;

impl WriteControl<'_> {
    /// Computes the debt again and sets the rates of writers. Called when memory or levels changed. Writers
    /// call it, too, so no step goes through all tables.
    pub(crate) fn refresh_debt(&self) {
        self.background.stop_for_writers();
        self.look_at_stall();
        let balance = self.memory.balance(self.shared);
        // Memory that the cache has not freed yet counts like memory that is not flushed yet.
        self.note_memory(balance.write_bytes + self.cache.used_bytes());
        let memory = if balance.is_over { 1.0 } else { self.memory.debt_of(balance.write_bytes) };
        let (backlog, slows) = self.refresh_backlogs();
        debug_assert!(memory >= 0.0, "a debt below nothing lets writers pass that should wait");
        self.throttle.pressure.set_debt(memory, self.rate_until_flushed(1.0 - memory), backlog, slows);
    }
}
