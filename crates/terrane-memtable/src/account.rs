//! Accounts the memory of indexes, of each one and of all of a database together, without a walk over them.
//!
//! Steps: 1. an index notes each piece of memory that it takes in its own account, and in the sum; 2. when
//! the index leaves its table, its account leaves the sum, once and with all that was noted; from then on
//! that memory counts as held, by readers that look at it still, until the index is dropped; 3. later memory
//! of the index is noted in its account only.
//!
//! Invariants:
//! 1. The sum is never less than what the accounts in it have noted: a piece is added to the sum before it is
//!    added to the account, and an account leaves with what the account says. So the sum never underflows.
//! 2. While no piece is being noted the sum is equal to what the accounts in it have noted.
//! 3. Held memory is the sum of the accounts that left and were not dropped, each as it was when it left.

use std::sync::Arc;

use terrane_base::sync::atomic::{AtomicU64, Ordering};

/// Set in an account that has left the sum, or was never in one.
const LEFT: u64 = 1 << 63;

/// Bytes of memory that the indexes of all tables of a database take. Written when an index takes another
/// chunk, which is seldom.
#[derive(Debug, Default)]
pub struct IndexMemory {
    in_views: AtomicU64,
    held: AtomicU64,
}

impl IndexMemory {
    /// The sum.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> u64 {
        // Relaxed: a measure.
        self.in_views.load(Ordering::Relaxed)
    }

    /// Bytes of indexes that are not a part of a table any more, but that readers still hold.
    #[inline]
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        // Relaxed: a measure.
        self.held.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: u64) {
        self.in_views.fetch_add(bytes, Ordering::Relaxed);
    }

    fn give_back(&self, bytes: u64) {
        let before = self.in_views.fetch_sub(bytes, Ordering::Relaxed);
        assert!(before >= bytes, "{bytes} bytes of indexes are given back of {before}");
    }

    fn let_go(&self, bytes: u64) {
        let before = self.held.fetch_sub(bytes, Ordering::Relaxed);
        assert!(before >= bytes, "{bytes} bytes of indexes are let go of {before} that are held");
    }
}

/// The memory of one index.
#[derive(Debug)]
pub struct Account {
    /// Bytes, and [`LEFT`].
    noted: AtomicU64,
    sum: Option<Arc<IndexMemory>>,
    /// Bytes that count as held.
    held: AtomicU64,
}

impl Account {
    /// An account in `sum`, or in none.
    #[must_use]
    pub fn new(sum: Option<Arc<IndexMemory>>) -> Account {
        let noted = AtomicU64::new(if sum.is_some() { 0 } else { LEFT });
        Account { noted, sum, held: AtomicU64::new(0) }
    }

    /// Notes memory that was taken.
    pub fn take(&self, bytes: u64) {
        assert!(bytes < LEFT, "{bytes} bytes of one index");
        let Some(sum) = &self.sum else {
            self.noted.fetch_add(bytes, Ordering::Relaxed);
            return;
        };
        sum.add(bytes);
        // Release: pairs with the Acquire in `leave`, which gives back only what the sum has.
        if self.noted.fetch_add(bytes, Ordering::Release) & LEFT != 0 {
            sum.give_back(bytes);
        }
    }

    /// Takes the account out of the sum, and counts it as held. Only the first call does.
    pub fn leave(&self) {
        let noted = self.noted.fetch_or(LEFT, Ordering::AcqRel);
        if let Some(sum) = self.sum.as_ref().filter(|_| noted & LEFT == 0) {
            sum.held.fetch_add(noted, Ordering::Relaxed);
            // Relaxed: read by the drop only, which comes after all else.
            let before = self.held.swap(noted, Ordering::Relaxed);
            debug_assert!(before == 0, "an account leaves the sum once, and {before} bytes had left");
            sum.give_back(noted);
        }
    }

    /// Bytes noted.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.noted.load(Ordering::Relaxed) & !LEFT
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.leave();
        if let Some(sum) = &self.sum {
            sum.let_go(self.held.load(Ordering::Relaxed));
        }
    }
}
