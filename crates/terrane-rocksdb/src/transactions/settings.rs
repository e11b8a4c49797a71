//! Options of transactions and of databases that have them.

use std::time::Duration;

use terrane::{Concurrency, Isolation};

use crate::db::transaction_registry::Limits;
use crate::generated::objects::{OptimisticTransactionOptions, TransactionOptions};

/// The wait for a lock if the options set no limit.
const FOR_EVER: Duration = Duration::from_secs(u32::MAX as u64);

/// So many milliseconds; for ever if it is less than none.
pub(crate) fn timeout(milliseconds: i64) -> Duration {
    u64::try_from(milliseconds).map_or(FOR_EVER, Duration::from_millis)
}

/// How one transaction is run.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) is_pessimistic: bool,
    pub(crate) has_snapshot: bool,
    /// Its commit needs no prepare before it.
    pub(crate) skips_prepare: bool,
    /// It takes no locks before its commit.
    pub(crate) is_uncontrolled: bool,
    pub(crate) bytes_max: usize,
    pub(crate) keys_max: i64,
    /// How long it may take.
    expires_after: Option<Duration>,
    lock_timeout: Duration,
    finds_deadlocks: bool,
}

impl Settings {
    /// Of a transaction that locks.
    pub(crate) fn pessimistic(limits: &Limits, options: Option<&TransactionOptions>) -> Settings {
        let default = TransactionOptions::default();
        let fields = &options.unwrap_or(&default).fields;
        let lock_timeout = if fields.lock_timeout >= 0 { fields.lock_timeout } else { limits.lock_timeout };
        Settings {
            is_pessimistic: true,
            has_snapshot: fields.set_snapshot != 0,
            skips_prepare: fields.skip_prepare != 0,
            is_uncontrolled: fields.skip_concurrency_control != 0 || limits.is_uncontrolled,
            bytes_max: fields.max_write_batch_size,
            keys_max: limits.keys_max,
            expires_after: u64::try_from(fields.expiration).ok().map(Duration::from_millis),
            lock_timeout: timeout(lock_timeout),
            finds_deadlocks: fields.deadlock_detect != 0,
        }
    }

    /// Of one that is checked at its commit.
    pub(crate) fn optimistic(options: Option<&OptimisticTransactionOptions>) -> Settings {
        Settings {
            is_pessimistic: false,
            has_snapshot: options.is_some_and(|options| options.fields.set_snapshot != 0),
            skips_prepare: true,
            is_uncontrolled: false,
            bytes_max: 0,
            keys_max: 0,
            expires_after: None,
            lock_timeout: timeout(-1),
            finds_deadlocks: true,
        }
    }

    /// Of one that was prepared, perhaps before the database was opened.
    pub(crate) fn prepared() -> Settings {
        Settings { is_pessimistic: true, ..Settings::optimistic(None) }
    }

    /// As the library has them.
    pub(crate) fn engine(&self) -> terrane::TransactionOptions {
        let isolation = if self.has_snapshot { Isolation::Snapshot } else { Isolation::ReadCommitted };
        let concurrency =
            if self.is_pessimistic { Concurrency::Pessimistic } else { Concurrency::Optimistic };
        terrane::TransactionOptions {
            concurrency,
            isolation,
            lock_timeout: self.lock_timeout,
            finds_deadlocks: self.finds_deadlocks,
            keeps_snapshot: true,
            // RocksDB has no limits but that of the batch.
            keys_max: u64::MAX,
            bytes_max: u64::MAX,
            expires_after: self.expires_after,
        }
    }
}
