//! The transactions of an open database: their kind, their limits, and those that have a name.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::db::lock_count::Counts;
use crate::generated::objects::TransactionDbOptions;

/// How transactions of a database meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It was opened without them.
    #[default]
    None,
    Pessimistic(Limits),
    Optimistic,
}

/// Limits from the options of a database with pessimistic transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Milliseconds that a transaction waits for a lock, if it does not say.
    pub(crate) lock_timeout: i64,
    /// Milliseconds that a write beside transactions waits for a lock.
    pub(crate) beside_timeout: i64,
    /// Most locked keys of a column family; any number if it is not above 0.
    pub(crate) keys_max: i64,
    pub(crate) is_uncontrolled: bool,
}

impl Limits {
    pub(crate) fn of(options: &TransactionDbOptions) -> Limits {
        let fields = &options.fields;
        Limits {
            lock_timeout: fields.transaction_lock_timeout,
            beside_timeout: fields.default_lock_timeout,
            keys_max: fields.max_num_locks,
            is_uncontrolled: fields.skip_concurrency_control != 0,
        }
    }
}

/// Transactions by name. The registry does not know their type, and does not keep them alive.
pub(crate) type Named = BTreeMap<Vec<u8>, Weak<dyn Any + Send + Sync>>;

/// State that the transactions of an open database share.
#[derive(Default)]
pub(crate) struct Transactions {
    pub(crate) kind: Kind,
    pub(crate) counts: Counts,
    named: Mutex<Named>,
}

impl Transactions {
    /// The registry of a database that was opened for transactions of this kind.
    pub(crate) fn of(kind: Kind) -> Transactions {
        Transactions { kind, ..Transactions::default() }
    }

    /// The transactions that have a name.
    pub(crate) fn named(&self) -> MutexGuard<'_, Named> {
        // Each change of the map is one step.
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The transaction with this name, while it exists.
    pub(crate) fn find<T: Any + Send + Sync>(&self, name: &[u8]) -> Option<Arc<T>> {
        self.named().get(name)?.upgrade()?.downcast().ok()
    }
}
