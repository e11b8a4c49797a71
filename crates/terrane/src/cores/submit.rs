//! Requests of a session that name keys. Slots contain encoded keys; cores know no others.

use terrane_base::key_order::encoded;
use terrane_base::{Batch, Error, Result, key};

use super::request::Ask;
use super::session::{Session, Ticket};
use crate::{Durability, Table};

impl Session {
    /// Asks for the value of `key`. Answer: [`Answer::Value`](super::Answer::Value).
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// use terrane::cores::Cores;
    /// let cores = Cores::builder(&db).cores(2).table(table).build()?;
    /// let mut session = cores.session()?;
    /// let asked = session.get(table, "k")?;
    /// session.finish(&mut |ticket, answer| assert!(ticket == asked && answer.is_ok()));
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Busy` if the ring of the core is full: collect answers and submit again. `Invalid` for a key beyond
    /// the limit or a table that no core owns. `Cancelled` after a close.
    #[inline]
    pub fn get(&mut self, table: &Table, key: impl AsRef<[u8]>) -> Result<Ticket> {
        self.get_bytes(table, key.as_ref())
    }

    #[inline]
    fn get_bytes(&mut self, table: &Table, key: &[u8]) -> Result<Ticket> {
        key::check_key(key)?;
        table.encoding(key, |key| {
            let home = self.shared.ownership.home(table, key)?;
            self.read(home, Ask::Get, |slot| slot.key.extend_from_slice(key))
        })
    }

    /// Asks for the values of several keys of one partition, of one moment. Answer:
    /// [`Answer::Values`](super::Answer::Values).
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// use terrane::cores::Cores;
    /// let cores = Cores::builder(&db).cores(2).table(table).build()?;
    /// let mut session = cores.session()?;
    /// session.multi_get(table, &[b"a", b"b"])?;
    /// assert_eq!(session.finish(&mut |_, answer| assert!(answer.is_ok())), 1);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::get`], and `Invalid` for keys of several partitions.
    pub fn multi_get(&mut self, table: &Table, keys: &[&[u8]]) -> Result<Ticket> {
        keys.iter().try_for_each(|key| key::check_key(key))?;
        let keys = keys.iter().map(|key| encoded(table.order.as_deref(), key));
        let keys = keys.collect::<Result<Vec<_>>>()?;
        let home = self.shared.ownership.home(table, keys.first().map_or(&[], |key| key))?;
        for key in &keys {
            if self.shared.ownership.home(table, key)? != home {
                return Err(Error::invalid(
                    "the keys belong to several partitions: ask for those of each apart",
                ));
            }
        }
        self.read(home, Ask::MultiGet, |slot| {
            slot.rare.ends.clear();
            for key in &keys {
                slot.key.extend_from_slice(key);
                slot.rare.ends.push(slot.key.len());
            }
        })
    }

    /// Asks for up to `rows_max` rows from the first key at or after `start`, fewer once they pass
    /// [`SCAN_BYTES_MAX`](super::SCAN_BYTES_MAX). The core of `start` reads them, beyond its range too; there
    /// the session's earlier writes may still be missing. Answer: [`Answer::Rows`](super::Answer::Rows).
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// use terrane::cores::{Answer, Cores};
    /// table.put("b", "2")?;
    /// let cores = Cores::builder(&db).cores(2).table(table).build()?;
    /// let mut session = cores.session()?;
    /// session.scan(table, "a", 10)?;
    /// session.finish(&mut |_, answer| match answer {
    ///     Ok(Answer::Rows(rows)) => assert_eq!(rows.len(), 1),
    ///     _ => unreachable!("a scan is answered with rows"),
    /// });
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn scan(&mut self, table: &Table, start: impl AsRef<[u8]>, rows_max: usize) -> Result<Ticket> {
        self.scan_to(table, start.as_ref(), rows_max, true)
    }

    /// [`Session::scan`] downward, from the last key at or before `start`.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// use terrane::cores::Cores;
    /// let cores = Cores::builder(&db).cores(2).table(table).build()?;
    /// let mut session = cores.session()?;
    /// session.scan_back(table, "z", 10)?; // down from z
    /// session.finish(&mut |_, answer| assert!(answer.is_ok()));
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn scan_back(&mut self, table: &Table, start: impl AsRef<[u8]>, rows_max: usize) -> Result<Ticket> {
        self.scan_to(table, start.as_ref(), rows_max, false)
    }

    fn scan_to(&mut self, table: &Table, start: &[u8], rows_max: usize, is_forward: bool) -> Result<Ticket> {
        key::check_key(start)?;
        table.encoding(start, |start| {
            let home = self.shared.ownership.home(table, start)?;
            self.read(home, Ask::Scan(is_forward), |slot| {
                slot.key.extend_from_slice(start);
                slot.rare.rows_max = rows_max;
            })
        })
    }

    /// Sets `key` to `value`. Answer: [`Answer::Written`](super::Answer::Written).
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// use terrane::cores::Cores;
    /// let cores = Cores::builder(&db).cores(2).table(table).build()?;
    /// let mut session = cores.session()?;
    /// session.put(table, "k", "v", terrane::Durability::Buffered)?;
    /// session.finish(&mut |_, answer| assert!(answer.is_ok()));
    /// assert!(table.contains("k")?);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::get`], and `Invalid` for a value beyond the limit.
    pub fn put(
        &mut self,
        table: &Table,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        durability: Durability,
    ) -> Result<Ticket> {
        self.put_bytes(table, key.as_ref(), value.as_ref(), durability)
    }

    fn put_bytes(
        &mut self,
        table: &Table,
        key: &[u8],
        value: &[u8],
        durability: Durability,
    ) -> Result<Ticket> {
        self.write_key(table, key, durability, |batch, key| table.add_put(batch, key, value))
    }

    /// Removes `key`; fine if it is not there. Answer: [`Answer::Written`](super::Answer::Written).
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// use terrane::cores::Cores;
    /// let cores = Cores::builder(&db).cores(2).table(table).build()?;
    /// let mut session = cores.session()?;
    /// session.delete(table, "k", terrane::Durability::Buffered)?;
    /// session.finish(&mut |_, answer| assert!(answer.is_ok()));
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn delete(&mut self, table: &Table, key: impl AsRef<[u8]>, durability: Durability) -> Result<Ticket> {
        self.delete_bytes(table, key.as_ref(), durability)
    }

    fn delete_bytes(&mut self, table: &Table, key: &[u8], durability: Durability) -> Result<Ticket> {
        self.write_key(table, key, durability, |batch, key| batch.delete(table.id(), key))
    }

    /// Has the core of `key` write what `add` makes of the encoded key.
    #[inline]
    fn write_key(
        &mut self,
        table: &Table,
        key: &[u8],
        durability: Durability,
        add: impl FnOnce(&mut Batch, &[u8]) -> Result<()>,
    ) -> Result<Ticket> {
        table.encoding(key, |key| {
            let home = self.shared.ownership.home(table, key)?;
            self.write_to(home.core, durability, |slot| {
                (slot.ask, slot.place) = (Ask::Write, home.place);
                add(&mut slot.batch, key)
            })
            .inspect(|_| self.shared.load.note(home.partition, self.submitted))
        })
    }
}
