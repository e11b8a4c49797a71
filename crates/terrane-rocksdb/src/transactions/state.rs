//! One transaction.
//!
//! It runs until it is committed, or prepared and then committed or rolled back. Rolled back before it is
//! prepared it runs on, empty, as in RocksDB; an optimistic one also after its commit.

use std::sync::Arc;

use terrane::{BareTransaction, Kind, LockMark, Snapshot};

use crate::batch::indexed::{Own, SharedBatch};
use crate::batch::layout::Change;
use crate::db::lock_count::Locked;
use crate::db::plain::write::{Mode, write_failure};
use crate::db::{Database, Family};
use crate::ffi::failure::{Failure, Result};
use crate::transactions::name::as_engine_has_it;
use crate::transactions::settings::Settings;

/// How far a transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Running,
    Prepared,
    Committed,
    /// Rolled back after it was prepared.
    RolledBack,
}

/// A transaction.
pub(crate) struct State {
    pub(crate) database: Database,
    pub(crate) batch: SharedBatch,
    pub(crate) settings: Settings,
    pub(crate) phase: Phase,
    pub(crate) name: Vec<u8>,
    /// Under which name the library has it, if that was found there: another route may have given it one that
    /// [`as_engine_has_it`] makes of none.
    pub(crate) found_as: Option<String>,
    /// How many bytes of its batch are prepared.
    pub(crate) prepared_bytes: usize,
    /// True if the name is kept from others for it.
    pub(crate) holds_name: bool,
    pub(crate) snapshot: Option<Arc<Snapshot>>,
    pub(crate) mode: Mode,
    /// The keys that it has locked, or keeps for the check at its commit; none while it has not begun or is
    /// over.
    claims: Option<Claims>,
    locked: Locked,
}

/// Keys of a transaction, and the moments to go back to.
pub(crate) struct Claims {
    pub(crate) transaction: BareTransaction,
    begin: LockMark,
    save_points: Vec<(LockMark, usize)>,
}

impl State {
    /// Begins one, with an empty batch.
    pub(crate) fn new(database: &Database, batch: SharedBatch, settings: Settings, mode: Mode) -> State {
        batch.get().set_bytes_max(settings.bytes_max);
        let mut state = State::over(database, batch, settings, mode, Phase::Running);
        // There is no way to report a failure now: the first operation begins once more, and reports it.
        if state.claims().is_ok() && state.settings.has_snapshot {
            state.snapshot =
                state.claims.as_ref().and_then(|claims| claims.transaction.snapshot()).map(Arc::new);
        }
        state
    }

    /// One that has these changes, and has locked nothing.
    pub(crate) fn over(
        database: &Database,
        batch: SharedBatch,
        settings: Settings,
        mode: Mode,
        phase: Phase,
    ) -> State {
        State {
            database: database.clone(),
            batch,
            phase,
            name: Vec::new(),
            found_as: None,
            prepared_bytes: 0,
            holds_name: false,
            snapshot: None,
            mode,
            claims: None,
            locked: Locked::new(&database.transactions.counts, settings.keys_max),
            settings,
        }
    }

    /// The name that the library has it under.
    fn engine_name(&self) -> String {
        self.found_as.clone().unwrap_or_else(|| as_engine_has_it(&self.name))
    }

    /// The keys that it has locked; begins if it has not.
    pub(crate) fn claims(&mut self) -> Result<&mut Claims> {
        if self.claims.is_none() {
            let mut transaction = self.database.db.bare_transaction(&self.settings.engine())?;
            let begin = transaction.mark();
            self.claims = Some(Claims { transaction, begin, save_points: Vec::new() });
        }
        self.claims.as_mut().ok_or_else(|| Failure::invalid("the transaction has not begun"))
    }

    /// Refuses what only a running transaction may do.
    pub(crate) fn require_running(&self) -> Result<()> {
        match self.phase {
            Phase::Running => Ok(()),
            Phase::Prepared => Err(Failure::invalid("Transaction has already been prepared.")),
            Phase::Committed => Err(Failure::invalid("Transaction has already been committed.")),
            Phase::RolledBack => Err(Failure::invalid("Transaction has already been rolledback.")),
        }
    }

    /// Has a key for this transaction until its end.
    pub(crate) fn lock(&mut self, family: &Family, key: &[u8], exclusive: bool) -> Result<()> {
        self.require_running()?;
        if self.settings.is_uncontrolled {
            return Ok(());
        }
        self.claims()?;
        let Some(claims) = &mut self.claims else { return Ok(()) };
        self.locked.add(family.id(), key, || {
            let locked = claims.transaction.lock(&family.table, key, exclusive);
            locked.map_err(|error| claims.refused(error))
        })
    }

    /// Makes a change of a key. Once it is prepared, the key is locked at the commit.
    pub(crate) fn change(&mut self, family: &Family, key: &[u8], change: Change<'_>) -> Result<()> {
        family.refuse_without_timestamp()?;
        if self.phase != Phase::Prepared {
            self.lock(family, key, true)?;
        }
        self.batch.get().order_by(family.id(), &family.order);
        self.add(family.id(), change)
    }

    /// The state of a key in its changes.
    pub(crate) fn own(&self, family: &Family, key: &[u8]) -> Own {
        let mut batch = self.batch.get();
        // A prepared transaction that was found again has changes, and does not know the key orders.
        batch.order_by(family.id(), &family.order);
        batch.own(family.id(), key)
    }

    pub(crate) fn add(&self, family: u32, change: Change<'_>) -> Result<()> {
        match self.batch.get().add(family, change) {
            true => Ok(()),
            false => Err(Failure::new("Operation aborted", "Memory limit reached")),
        }
    }

    pub(crate) fn set_save_point(&mut self) -> Result<()> {
        self.require_running()?;
        let locked = self.locked.len();
        let claims = self.claims()?;
        let mark = claims.transaction.mark();
        claims.save_points.push((mark, locked));
        self.batch.get().set_save_point();
        Ok(())
    }

    /// Takes back changes and locks since the last save point, which goes.
    pub(crate) fn roll_back_to_save_point(&mut self) -> Result<()> {
        self.require_running()?;
        self.batch.get().roll_back_to_save_point()?;
        if let Some(claims) = &mut self.claims
            && let Some((mark, locked)) = claims.save_points.pop()
        {
            claims.transaction.release_since(mark);
            self.locked.truncate(locked);
        }
        Ok(())
    }

    pub(crate) fn commit(&mut self) -> Result<()> {
        match self.phase {
            Phase::Running if !self.settings.skips_prepare => Err(Failure::invalid("Txn not prepared")),
            Phase::Running => self.commit_running(),
            Phase::Prepared => self.commit_prepared(),
            Phase::Committed | Phase::RolledBack => self.require_running(),
        }
    }

    /// Commits the prepared changes, with those made since.
    fn commit_prepared(&mut self) -> Result<()> {
        let (database, mode, shared) = (self.database.clone(), self.mode, self.batch.clone());
        let name = self.engine_name();
        if !shared.get().is_whole_to(self.prepared_bytes) {
            return Err(Failure::invalid(
                "the prepared changes were taken out of the transaction's batch: roll the transaction back",
            ));
        }
        let mut more = shared.get().batch().since(self.prepared_bytes)?;
        more.as_engine_batch(&database, mode, |more| {
            database.db.commit_prepared_with(&name, more, mode.sync()).map_err(write_failure)
        })?;
        self.end(Phase::Committed);
        Ok(())
    }

    fn commit_running(&mut self) -> Result<()> {
        self.claims()?;
        let (database, mode) = (self.database.clone(), self.mode);
        let shared = self.batch.clone();
        let Some(claims) = &mut self.claims else { return Ok(()) };
        shared.get().batch().as_engine_batch(&database, mode, |batch| {
            let committed = claims.transaction.commit(batch, mode.sync());
            committed.map_err(|error| claims.refused(error))
        })?;
        self.end(if self.settings.is_pessimistic { Phase::Committed } else { Phase::Running });
        Ok(())
    }

    /// Takes everything back.
    pub(crate) fn roll_back(&mut self) -> Result<()> {
        match self.phase {
            Phase::Running => {
                self.batch.get().clear();
                self.locked.truncate(0);
                if let Some(claims) = &mut self.claims {
                    claims.transaction.release_since(claims.begin);
                    claims.save_points.clear();
                }
                Ok(())
            }
            Phase::Prepared => {
                self.database.db.rollback_prepared(&self.engine_name())?;
                self.end(Phase::RolledBack);
                Ok(())
            }
            Phase::Committed => Err(Failure::invalid("This transaction has already been committed.")),
            Phase::RolledBack => Err(Failure::invalid("Two phase transaction is not in state for rollback.")),
        }
    }

    /// It holds nothing any more. Its name is free, its changes are forgotten.
    pub(crate) fn end(&mut self, phase: Phase) {
        self.phase = phase;
        self.claims = None;
        self.locked.truncate(0);
        if phase != Phase::Prepared {
            self.batch.get().clear();
            self.give_name_back();
        }
    }
}

impl Claims {
    /// The error of a refused operation, in RocksDB's words.
    #[cold]
    pub(crate) fn refused(&self, error: terrane::Error) -> Failure {
        match error.kind() {
            Kind::TooOld if self.transaction.has_expired() => Failure::new("Operation expired", error),
            Kind::TimedOut => {
                Failure::new("Operation timed out", format_args!("Timeout waiting to lock key ({error})"))
            }
            Kind::Deadlock => Failure::new("Resource busy", format_args!("Deadlock ({error})")),
            _ => write_failure(error),
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.give_name_back();
    }
}
