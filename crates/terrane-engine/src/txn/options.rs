//! How a transaction is run.

use std::time::Duration;

/// The effects of concurrent transactions that a transaction may see. Each level includes the promises of the
/// weaker ones.
///
/// | effect | `ReadCommitted` | `Snapshot` | `Serializable` |
/// |---|---|---|---|
/// | dirty, aborted, intermediate and cyclic reads and writes | absent | absent | absent |
/// | lost updates, changing reads, read skew | possible | absent | absent |
/// | write skew, phantoms | possible | possible | absent |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isolation {
    /// Each read sees the commits before it begins. The transaction reads rows that must not change until its
    /// commit for update.
    ReadCommitted,
    /// All reads see one moment, and no other commit has changed since then what the transaction writes or
    /// reads for update.
    Snapshot,
    /// As if all transactions that change something had run one after the other, in the order of their
    /// commits, and those that only read at the moment that they see. The default: the one level at which a
    /// transaction that is right alone is right while others run.
    #[default]
    Serializable,
}

/// When conflicts are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Concurrency {
    /// At the commit: no transaction waits before it, and there are no deadlocks. For transactions that
    /// seldom conflict.
    #[default]
    Optimistic,
    /// At each write and each read for update (when serializable, each read of a key): they lock the key
    /// until the end of the transaction, and wait while another one has it. For transactions that often meet.
    Pessimistic,
}

/// Settings of one transaction.
///
/// ```
/// use terrane_engine::{Concurrency, TransactionOptions};
/// let options = TransactionOptions { concurrency: Concurrency::Pessimistic, ..Default::default() };
/// assert_eq!(options.lock_timeout.as_secs(), 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionOptions {
    /// When conflicts are found.
    pub concurrency: Concurrency,
    /// The level of isolation.
    pub isolation: Isolation,
    /// The longest wait for one lock; by default a second. 0 never waits.
    pub lock_timeout: Duration,
    /// Most changes, locks, and reads and ranges that are kept for the commit, together; by default 4
    /// million.
    pub keys_max: u64,
    /// Most bytes of changes, and of keys that are kept for the commit; by default 256 MiB.
    pub bytes_max: u64,
    /// True if a wait that closes a cycle of waiters is refused at once; by default it is. Without it such a
    /// wait ends as any other, after `lock_timeout`.
    pub finds_deadlocks: bool,
    /// True if it sees the moment of its beginning in any case. By default it does not: as long as it has
    /// read nothing, its snapshot moves on with its first lock, so a transaction that waited for a lock does
    /// not fail because of what the holder wrote.
    pub keeps_snapshot: bool,
    /// How long it may take; by default any time. Afterwards it fails to commit or prepare with `TooOld`, and
    /// an owner that waits for one of its locks takes the lock. Its range locks stay until it is dropped.
    pub expires_after: Option<Duration>,
}

impl Default for TransactionOptions {
    fn default() -> Self {
        TransactionOptions {
            concurrency: Concurrency::default(),
            isolation: Isolation::default(),
            lock_timeout: Duration::from_secs(1),
            keys_max: 4 << 20,
            bytes_max: 256 << 20,
            finds_deadlocks: true,
            keeps_snapshot: false,
            expires_after: None,
        }
    }
}
