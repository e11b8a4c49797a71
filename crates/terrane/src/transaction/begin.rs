//! Transactions of a database: begun, run until they commit, and prepared ones ended.

use terrane_base::{Result, SeqNo};
use terrane_engine::TransactionOptions;

use super::Transaction;
use crate::{Db, Durability};

impl Db {
    /// Begins a transaction.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut transaction = db.transaction(&terrane::TransactionOptions::default())?;
    /// transaction.put(table, "k", "v")?;
    /// transaction.commit(terrane::Durability::Buffered)?;
    /// assert!(table.contains("k")?);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` if the database is open for reading only, `Cancelled` after a close.
    #[track_caller]
    pub fn transaction(&self, options: &TransactionOptions) -> Result<Transaction> {
        Transaction::begin(self, options)
    }

    /// Runs `body` in transactions until one commits, or fails with an error that another run would not help;
    /// at most `runs` times. Returns what `body` returned.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// # let db = terrane::Db::open(dir.path().join("data"))?;
    /// let table = db.default_table();
    /// let options = terrane::TransactionOptions::default();
    /// let count = db.transact(&options, terrane::Durability::Buffered, 10, |transaction| {
    ///     let count = transaction.get(table, "visits")?.map_or(0, |value| value[0]) + 1;
    ///     transaction.put(table, "visits", &[count])?;
    ///     Ok(count)
    /// })?;
    /// assert_eq!(count, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of `body` and of [`Transaction::commit`].
    #[track_caller]
    pub fn transact<T>(
        &self,
        options: &TransactionOptions,
        durability: Durability,
        runs: u32,
        mut body: impl FnMut(&mut Transaction) -> Result<T>,
    ) -> Result<T> {
        let mut run = 1;
        loop {
            let mut transaction = self.transaction(options)?;
            let done = body(&mut transaction);
            let done = done.and_then(|value| transaction.commit(durability).map(|_| value));
            match done {
                Err(error) if error.kind().is_worth_another_run() && run < runs => run += 1,
                done => return done,
            }
        }
    }

    /// The names of the prepared transactions that wait to be committed or rolled back.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut transaction = db.transaction(&terrane::TransactionOptions::default())?;
    /// transaction.put(table, "k", "v")?;
    /// transaction.prepare("payment 7")?;
    /// assert_eq!(db.prepared(), ["payment 7"]);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn prepared(&self) -> Vec<String> {
        self.engine().prepared()
    }

    /// Commits the transaction that is prepared as `name`. Returns its position in the order of commits.
    /// Changes of a table that was dropped meanwhile are left out.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut transaction = db.transaction(&terrane::TransactionOptions::default())?;
    /// transaction.put(table, "k", "v")?;
    /// transaction.prepare("payment 7")?;
    /// db.commit_prepared("payment 7", terrane::Durability::Synced)?;
    /// assert!(table.contains("k")?);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if nothing is prepared under the name, `Busy` while another thread resolves it. As
    /// [`Db::write`] besides: it stays prepared then.
    pub fn commit_prepared(&self, name: &str, durability: Durability) -> Result<SeqNo> {
        self.engine().commit_prepared(name, &terrane_base::Batch::new(), durability.is_synced())
    }

    /// Rolls the transaction back that is prepared as `name`; on disk when this returns.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// let mut transaction = db.transaction(&terrane::TransactionOptions::default())?;
    /// transaction.put(table, "k", "v")?;
    /// transaction.prepare("payment 7")?;
    /// db.rollback_prepared("payment 7")?;
    /// assert!(!table.contains("k")?);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::commit_prepared`].
    pub fn rollback_prepared(&self, name: &str) -> Result<()> {
        self.engine().rollback_prepared(name)
    }
}
