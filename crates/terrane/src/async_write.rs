//! Writes that return before they are durable, with a ticket.

use terrane_base::Result;
use terrane_engine::Ticket;

use crate::{Batch, Db, Durability};

impl Db {
    /// As [`Db::write`], but does not wait for the disk: the [`Ticket`] says when the batch is durable. So
    /// one thread has many writes in flight, and they share a sync.
    ///
    /// On return the batch has its position in the order of commits and is visible to every read, before it
    /// is durable, as one with [`Durability::Buffered`] is; `batch` may be changed or dropped. With
    /// [`Durability::Buffered`] the ticket is done. A ticket that is dropped changes nothing: the batch
    /// becomes durable all the same, and [`Db::close`] waits until all are. A batch whose ticket is durable
    /// survives a loss of power with every commit before it.
    ///
    /// The call may be held back as [`Db::write`] is, and while 65,536 such writes are not durable yet.
    ///
    /// ```
    /// use terrane::{Batch, Durability};
    /// # let db = terrane::Db::open_in_memory()?;
    /// let mut tickets = Vec::new();
    /// for number in 0..100u32 {
    ///     let mut batch = Batch::new();
    ///     batch.put(db.default_table(), number.to_be_bytes(), "v")?;
    ///     tickets.push(db.write_async(&batch, Durability::Synced)?);
    /// }
    /// assert!(db.get(99u32.to_be_bytes())?.is_some(), "visible at once");
    /// for ticket in tickets {
    ///     ticket.wait()?; // or `ticket.await`, or `ticket.on_done(..)`
    /// }
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::write`], but for a failed sync: each ticket in flight gets that, and no later write succeeds.
    /// `Io` if the thread of tickets cannot be started.
    pub fn write_async(&self, batch: &Batch, durability: Durability) -> Result<Ticket> {
        batch.check(self.engine())?;
        let ticket = self.engine().write_async(&batch.records, durability.is_synced())?;
        debug_assert!(durability.is_synced() || ticket.is_done(), "a buffered write has nothing to wait for");
        Ok(ticket)
    }

    /// As [`Db::write_async`], but never held back.
    ///
    /// ```
    /// use terrane::{Batch, Durability, Kind};
    /// # let db = terrane::Db::open_in_memory()?;
    /// let mut batch = Batch::new();
    /// batch.put(db.default_table(), "k", "v")?;
    /// match db.try_write_async(&batch, Durability::Synced) {
    ///     Ok(ticket) => ticket.on_done(|outcome| println!("durable: {outcome:?}")),
    ///     Err(error) if error.kind() == Kind::Busy => println!("tell the client to slow down"),
    ///     Err(error) => return Err(error),
    /// }
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Busy` if it would be held back, or while 65,536 such writes are not durable yet: nothing is written.
    /// Otherwise as [`Db::try_write`] and [`Db::write_async`].
    pub fn try_write_async(&self, batch: &Batch, durability: Durability) -> Result<Ticket> {
        batch.check(self.engine())?;
        self.engine().try_write_async(&batch.records, durability.is_synced())
    }
}
