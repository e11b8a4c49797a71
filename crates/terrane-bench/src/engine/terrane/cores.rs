//! A session that goes through the cores.

use terrane::cores::{Answer, Session as CoresSession, Ticket};
use terrane::{Batch, Kind, Table};

use super::{failed, fill, place, sync_of, walk};
use crate::engine::{Ask, Direction, Request, Session, ShowRow, Visit, Write};
use crate::error::Result;

/// See the head of the file.
pub(super) struct ThroughCores<'e> {
    pub(super) tables: &'e [Table],
    pub(super) session: CoresSession,
    pub(super) batch: Batch,
}

impl ThroughCores<'_> {
    /// Submits; collects from a full ring first.
    fn submit(
        &mut self,
        hear: &mut OnAnswer<'_>,
        submit: impl Fn(&mut CoresSession) -> terrane::Result<Ticket>,
    ) -> Result<Ticket> {
        loop {
            match submit(&mut self.session) {
                Err(error) if error.kind() == Kind::Busy => {
                    self.session.wait(hear);
                }
                submitted => return submitted.map_err(failed("submit")),
            }
        }
    }

    /// Does one request and waits for it.
    fn alone(
        &mut self,
        submit: impl Fn(&mut CoresSession) -> terrane::Result<Ticket>,
        visit: &mut dyn FnMut(Answer<'_>),
    ) -> Result<()> {
        submit(&mut self.session).map_err(failed("submit"))?;
        let mut done = Ok(());
        self.session.finish(&mut |_, answer| match answer {
            Ok(answer) => visit(answer),
            Err(error) => done = Err(failed("request")(error)),
        });
        done
    }
}

/// Callback that receives answers.
type OnAnswer<'h> = dyn FnMut(Ticket, terrane::Result<Answer<'_>>) + 'h;

impl Session for ThroughCores<'_> {
    fn get(&mut self, table: u32, key: &[u8], visit: &mut Visit<'_>) -> Result<bool> {
        let table = &self.tables[table as usize];
        let mut found = false;
        self.alone(|session| session.get(table, key), &mut |answer| {
            if let Answer::Value(Some(value)) = answer {
                found = true;
                visit(key, value);
            }
        })?;
        Ok(found)
    }

    fn multi_get(&mut self, table: u32, keys: &[&[u8]], visit: &mut Visit<'_>) -> Result<u64> {
        let table = &self.tables[table as usize];
        let mut found = 0;
        self.alone(|session| session.multi_get(table, keys), &mut |answer| {
            let Answer::Values(values) = answer else { return };
            for (key, value) in keys.iter().zip(values.iter()) {
                if let Some(value) = value {
                    visit(key, value);
                    found += 1;
                }
            }
        })?;
        Ok(found)
    }

    fn requests(&mut self, requests: &[Request<'_>], sync: bool, visit: &mut Visit<'_>) -> Result<()> {
        let tables = self.tables;
        let (mut first, mut done) = (None, Ok(()));
        let mut hear = |first: Option<u64>, ticket: Ticket, answer: terrane::Result<Answer<'_>>| match answer
        {
            Ok(Answer::Value(Some(value))) => {
                let number = ticket.number() - first.expect("an answer comes behind a submission");
                visit(requests[number as usize].key, value);
            }
            Ok(_) => {}
            Err(error) => done = Err(failed("request")(error)),
        };
        for Request { table, key, ask } in requests {
            let table = &tables[*table as usize];
            let ticket =
                self.submit(&mut |ticket, answer| hear(first, ticket, answer), |session| match ask {
                    Ask::Get => session.get(table, key),
                    Ask::Put(value) => session.put(table, key, value, sync_of(sync)),
                    Ask::Delete => session.delete(table, key, sync_of(sync)),
                })?;
            first.get_or_insert(ticket.number());
        }
        self.session.finish(&mut |ticket, answer| hear(first, ticket, answer));
        done
    }

    fn write(&mut self, table: u32, writes: &[Write<'_>], sync: bool) -> Result<()> {
        let mut batch = std::mem::take(&mut self.batch);
        fill(&mut batch, &self.tables[table as usize], writes)?;
        let done = self.alone(|session| session.write(&batch, sync_of(sync)), &mut |_| {});
        self.batch = batch;
        done
    }

    fn delete_range(&mut self, table: u32, start: &[u8], end: &[u8], sync: bool) -> Result<()> {
        let mut batch = std::mem::take(&mut self.batch);
        batch.clear();
        let added = batch.delete_range(&self.tables[table as usize], start, end).map_err(failed("batch"));
        let done =
            added.and_then(|()| self.alone(|session| session.write(&batch, sync_of(sync)), &mut |_| {}));
        self.batch = batch;
        done
    }

    fn iterate(
        &mut self,
        table: u32,
        start: Option<&[u8]>,
        rows: u64,
        direction: Direction,
        row: &mut ShowRow<'_>,
    ) -> Result<u64> {
        let table = &self.tables[table as usize];
        let Some(start) = start else {
            // A whole scan is not a request: it goes to the table.
            let mut cursor = table.cursor();
            place(&mut cursor, None, direction)?;
            return walk(&mut cursor, rows, direction, row);
        };
        let mut seen = 0;
        self.alone(
            |session| match direction {
                Direction::Forward => session.scan(table, start, rows as usize),
                Direction::Backward => session.scan_back(table, start, rows as usize),
            },
            &mut |answer| {
                let Answer::Rows(rows) = answer else { return };
                seen = rows.iter().take_while(|(key, value)| row(key, value)).count() as u64;
            },
        )?;
        Ok(seen)
    }
}
