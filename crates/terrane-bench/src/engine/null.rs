//! An engine that does nothing: its rates are the harness's own ceiling, with which every report is read.
//!
//! It answers each read with a fixed value and each scan with as many rows as were asked for, so that the
//! harness does all it does for a real engine.

use crate::engine::{
    Change, Control, Direction, Engine, EngineOptions, Opened, Session, ShowRow, Visit, Write, refuse_unknown,
};
use crate::error::Result;

/// The engine that does nothing.
#[derive(Debug)]
pub struct Null {
    records: u64,
    value: Vec<u8>,
}

impl Null {
    /// "Opens" it.
    ///
    /// # Errors
    /// `Plan` for any engine option: it has none.
    pub fn open(options: &EngineOptions) -> Result<Self> {
        refuse_unknown("null", &options.options, &[])?;
        let longest = usize::try_from(options.value_bytes_max).unwrap_or(usize::MAX).min(1 << 20);
        Ok(Null { records: options.records, value: vec![b'x'; longest] })
    }
}

impl Engine for Null {
    fn opened(&self) -> Opened {
        Opened {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            settings: vec![("does".to_owned(), "nothing: the harness's own ceiling".to_owned())],
        }
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(NullSession { null: self, written: 0 }))
    }

    fn control(&self, _control: Control) -> Result<()> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

struct NullSession<'n> {
    null: &'n Null,
    written: u64,
}

impl Session for NullSession<'_> {
    fn get(&mut self, _table: u32, key: &[u8], visit: &mut Visit<'_>) -> Result<bool> {
        visit(key, &self.null.value);
        Ok(true)
    }

    fn write(&mut self, _table: u32, writes: &[Write<'_>], _sync: bool) -> Result<()> {
        self.written += writes.len() as u64;
        std::hint::black_box(self.written);
        Ok(())
    }

    fn delete_range(&mut self, _table: u32, start: &[u8], end: &[u8], _sync: bool) -> Result<()> {
        self.written += 1;
        std::hint::black_box((start, end, self.written));
        Ok(())
    }

    fn transact(&mut self, changes: &[Change<'_>], _sync: bool, visit: &mut Visit<'_>) -> Result<bool> {
        changes.iter().for_each(|change| visit(change.key, &self.null.value));
        self.written += changes.len() as u64;
        std::hint::black_box(self.written);
        Ok(true)
    }

    fn iterate(
        &mut self,
        _table: u32,
        start: Option<&[u8]>,
        rows: u64,
        _direction: Direction,
        row: &mut ShowRow<'_>,
    ) -> Result<u64> {
        let key = start.unwrap_or(&[0; 16]);
        let rows = if start.is_some() { rows } else { rows.min(self.null.records) };
        for seen in 0..rows {
            if !row(key, &self.null.value) {
                return Ok(seen + 1);
            }
        }
        Ok(rows)
    }
}
