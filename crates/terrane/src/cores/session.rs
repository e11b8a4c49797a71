//! A session: submits requests to the lanes of all cores and collects their answers.
//!
//! Submitted requests are published together, when [`PUBLISH`] requests of a lane have accumulated or the
//! session asks for answers, so that client and core exchange shared cache lines once for all of them.

mod wait;

use std::sync::Arc;

use terrane_base::{Error, Kind, Result, SeqNo};

use super::lane::{Bell, Client, Taken};
use super::ownership::Home;
use super::request::{Answer, Ask, Slot};
use super::{Shared, closed};
use crate::{Batch, Durability};

/// Requests that are handed over together, at least.
const PUBLISH: u64 = 16;

/// The name of a request within its session, from 0 in the order of submission.
///
/// ```
/// # let db = terrane::Db::open_in_memory()?;
/// # let table = db.default_table();
/// use std::collections::HashMap;
/// let cores = terrane::cores::Cores::builder(&db).cores(2).table(table).build()?;
/// let mut session = cores.session()?;
/// let mut clients = HashMap::new(); // the client of each request
/// clients.insert(session.get(table, "k")?, "client 7");
/// session.finish(&mut |ticket, _answer| println!("an answer for {}", clients[&ticket]));
/// # Ok::<(), terrane::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

impl Ticket {
    /// The number.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// use terrane::cores::Cores;
    /// let cores = Cores::builder(&db).cores(2).table(table).build()?;
    /// let mut session = cores.session()?;
    /// assert_eq!(session.get(table, "k")?.number(), 0);
    /// assert_eq!(session.get(table, "l")?.number(), 1);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }
}

/// Called with each answer.
type Visit<'v> = dyn FnMut(Ticket, Result<Answer<'_>>) + 'v;

struct Lane {
    client: Client<Slot>,
    /// Behind the last write.
    written: u64,
    /// Behind the last read of a partition of another core.
    spread: u64,
}

/// One thread's access to [`Cores`](super::Cores). Dropping it completes submitted requests, and discards the
/// answers.
///
/// ```
/// # let db = terrane::Db::open_in_memory()?;
/// # let table = db.default_table();
/// use terrane::cores::{Answer, Cores};
/// table.put("a", "1")?;
/// let cores = Cores::builder(&db).cores(2).table(table).build()?;
/// let mut session = cores.session()?;
/// for key in ["a", "b"] {
///     session.get(table, key)?; // does not wait
/// }
/// let mut found = 0;
/// session.finish(&mut |_, answer| found += usize::from(matches!(answer, Ok(Answer::Value(Some(_))))));
/// assert_eq!(found, 1);
/// # Ok::<(), terrane::Error>(())
/// ```
pub struct Session {
    pub(super) shared: Arc<Shared>,
    bell: terrane_base::sync::Arc<Bell>,
    /// One for each core.
    lanes: Vec<Lane>,
    pub(super) submitted: u64,
    /// True if any lane has, or had, a read of another core's partition.
    has_spread: bool,
}

impl Session {
    pub(super) fn new(
        shared: Arc<Shared>,
        bell: terrane_base::sync::Arc<Bell>,
        clients: Vec<Client<Slot>>,
    ) -> Self {
        let lanes = clients.into_iter().map(|client| Lane { client, written: 0, spread: 0 }).collect();
        Session { shared, bell, lanes, submitted: 0, has_spread: false }
    }

    // --- requests ---

    /// Applies a batch whose keys all belong to one core, all or nothing. Answer: [`Answer::Written`].
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// use terrane::cores::Cores;
    /// let cores = Cores::builder(&db).cores(2).table(table).build()?;
    /// let mut session = cores.session()?;
    /// let mut batch = terrane::Batch::new();
    /// batch.put(table, "a", "1")?;
    /// batch.put(table, "b", "2")?;
    /// session.write(&batch, terrane::Durability::Buffered)?;
    /// session.finish(&mut |_, answer| assert!(answer.is_ok()));
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::get`] and [`Db::write`](crate::Db::write), and `Invalid` for keys of several cores: use
    /// `write_across`.
    pub fn write(&mut self, batch: &Batch, durability: Durability) -> Result<Ticket> {
        batch.check(self.shared.db.engine())?;
        let (core, places) = self.shared.ownership.home_of_batch(&batch.records)?;
        self.write_to(core, durability, |slot| {
            slot.ask = Ask::Batch;
            slot.rare.places = places;
            slot.batch.append(&batch.records)
        })
    }

    /// Applies any batch atomically in the calling thread, after all earlier requests of the session: it
    /// waits until these are answered. Returns its position in commit order.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// use terrane::cores::Cores;
    /// let cores = Cores::builder(&db).cores(2).table(table).build()?;
    /// let mut session = cores.session()?;
    /// let mut batch = terrane::Batch::new();
    /// batch.put(table, "a", "1")?;
    /// session.write_across(&batch, terrane::Durability::Buffered)?;
    /// assert!(table.contains("a")?);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::write`](crate::Db::write).
    pub fn write_across(&mut self, batch: &Batch, durability: Durability) -> Result<SeqNo> {
        if !terrane_base::planted!(AcrossTooEarly) {
            self.wait_until(|lane| lane.client.unanswered() == 0);
        }
        self.shared.db.write(batch, durability)
    }

    // --- answers ---

    /// Requests whose answers were not collected yet.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// use terrane::cores::Cores;
    /// let cores = Cores::builder(&db).cores(2).table(table).build()?;
    /// let mut session = cores.session()?;
    /// session.get(table, "k")?;
    /// assert_eq!(session.outstanding(), 1);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.lanes.iter().map(|lane| lane.client.unanswered() + lane.client.ready()).sum::<u64>() as usize
    }

    /// Publishes submitted requests and wakes sleeping cores. [`Session::collect`], [`Session::wait`] and
    /// [`Session::finish`] do so too.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// use terrane::cores::Cores;
    /// let cores = Cores::builder(&db).cores(2).table(table).build()?;
    /// let mut session = cores.session()?;
    /// session.get(table, "k")?;
    /// session.flush(); // the core begins with it
    /// # Ok::<(), terrane::Error>(())
    /// ```
    pub fn flush(&mut self) {
        for (lane, desk) in self.lanes.iter_mut().zip(&self.shared.desks) {
            lane.client.publish();
            lane.client.look();
            if lane.client.unanswered() > 0 {
                desk.wake();
            }
        }
    }

    /// Calls `visit` with every answer that is there, those of one core in the order of their requests, and
    /// returns how many there were. Never waits.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// use terrane::cores::Cores;
    /// let cores = Cores::builder(&db).cores(2).table(table).build()?;
    /// let mut session = cores.session()?;
    /// session.get(table, "k")?;
    /// let answers = session.collect(&mut |_, answer| assert!(answer.is_ok()));
    /// assert!(answers <= 1); // it may not be there yet
    /// # Ok::<(), terrane::Error>(())
    /// ```
    pub fn collect(&mut self, visit: &mut Visit<'_>) -> usize {
        self.flush();
        self.take(visit)
    }

    /// [`Session::collect`], but waits until an answer is there, unless nothing is outstanding.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// use terrane::cores::Cores;
    /// let cores = Cores::builder(&db).cores(2).table(table).build()?;
    /// let mut session = cores.session()?;
    /// session.get(table, "k")?;
    /// assert_eq!(session.wait(&mut |_, answer| assert!(answer.is_ok())), 1);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    pub fn wait(&mut self, visit: &mut Visit<'_>) -> usize {
        if self.outstanding() > 0 {
            self.wait_for(|lanes| lanes.iter().any(|lane| lane.client.ready() > 0));
        }
        self.take(visit)
    }

    /// Waits for all answers and calls `visit` with them.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// use terrane::cores::Cores;
    /// let cores = Cores::builder(&db).cores(2).table(table).build()?;
    /// let mut session = cores.session()?;
    /// session.get(table, "k")?;
    /// session.get(table, "l")?;
    /// assert_eq!(session.finish(&mut |_, answer| assert!(answer.is_ok())), 2);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    pub fn finish(&mut self, visit: &mut Visit<'_>) -> usize {
        let mut count = 0;
        while self.outstanding() > 0 {
            count += self.wait(visit);
        }
        count
    }

    fn take(&mut self, visit: &mut Visit<'_>) -> usize {
        let mut count = 0;
        for lane in &mut self.lanes {
            while let Some(taken) = lane.client.take() {
                count += 1;
                match taken {
                    Taken::Answered(slot) => {
                        visit(Ticket(slot.ticket), slot.answer());
                        slot.shed();
                    }
                    Taken::Refused(slot) => visit(Ticket(slot.ticket), Err(closed())),
                }
            }
        }
        count
    }

    // --- how ---

    /// Submits a read of `home`.
    #[inline]
    pub(super) fn read(&mut self, home: Home, ask: Ask, fill: impl FnOnce(&mut Slot)) -> Result<Ticket> {
        let core = self.reader_of(home);
        let ticket = self.submitted;
        let lane = &mut self.lanes[core];
        let position = lane.submit(ticket, |slot| {
            (slot.ask, slot.place) = (ask, home.place);
            slot.key.clear();
            fill(slot);
            Ok(())
        })?;
        if core != home.core {
            lane.spread = position + 1;
            self.has_spread = true;
        }
        self.submitted += 1;
        self.shared.load.note(home.partition, ticket);
        Ok(Ticket(ticket))
    }

    /// The core that is to read a key: its own, or, if the partition is hot, the one of which least is
    /// awaited.
    #[inline]
    fn reader_of(&mut self, home: Home) -> usize {
        if !self.shared.load.is_spread(home.partition) {
            return home.core;
        }
        let own = &mut self.lanes[home.core];
        own.client.look();
        if own.unanswered_writes() && !terrane_base::planted!(SpreadTooEarly) {
            return home.core;
        }
        let awaited = |core: &usize| (self.lanes[*core].client.unanswered(), *core != home.core);
        (0..self.lanes.len()).min_by_key(awaited).expect("there is a core")
    }

    pub(super) fn write_to(
        &mut self,
        core: usize,
        durability: Durability,
        fill: impl FnOnce(&mut Slot) -> Result<()>,
    ) -> Result<Ticket> {
        if self.has_spread {
            // A read of another core must not see this write.
            self.wait_until(|lane| lane.client.is_answered_before(lane.spread));
            self.has_spread = false;
        }
        let ticket = self.submitted;
        let lane = &mut self.lanes[core];
        let position = lane.submit(ticket, |slot| {
            slot.is_synced = durability.is_synced();
            slot.batch.clear();
            fill(slot)
        })?;
        lane.written = position + 1;
        self.submitted += 1;
        Ok(Ticket(ticket))
    }
}

impl Lane {
    /// Submits the request that `fill` writes; returns its position.
    #[inline]
    fn submit(&mut self, ticket: u64, fill: impl FnOnce(&mut Slot) -> Result<()>) -> Result<u64> {
        // A core's own thread would wait for itself.
        terrane_base::callback::refuse()?;
        if self.client.kept_back() >= PUBLISH {
            self.client.publish();
        }
        if self.client.has_ended() {
            return Err(closed());
        }
        let slot = self.client.free().ok_or_else(full)?;
        slot.ticket = ticket;
        slot.error = None;
        fill(slot)?;
        Ok(self.client.submit())
    }

    fn unanswered_writes(&self) -> bool {
        !self.client.is_answered_before(self.written)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.flush();
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("outstanding", &self.outstanding()).finish_non_exhaustive()
    }
}

#[cold]
fn full() -> Error {
    Error::new(Kind::Busy, "the ring of the core is full: collect answers and submit again")
}
