//! Operations of a caller on the whole database, or on whole ranges of its keys.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use terrane::{
    BackupOptions, Backups, Db, DirectoryPlace, Error, ExtentFileWriter, IngestOptions, KeyOrders, Kind,
    Options, RestoreOptions, Result,
};
use terrane_base::Rng;

use super::caller::{Caller, OWN, is_met, own_name};
use super::history::{KEYS, Op, TABLES};

impl Caller {
    /// Does an operation of maintenance, and reads all own rows behind it. Returns false if it was refused.
    pub(super) fn maintain(&mut self, op: &Op) -> Result<bool> {
        let done = match op {
            Op::Ingest { seed } => self.ingest(*seed),
            Op::Load { seed } => self.load(*seed),
            Op::DropExtents { table, from, to } => self.drop_extents(*table, *from, *to),
            Op::Flush => self.db.flush(),
            Op::FlushToRun { table } => self.db.flush_to_run(&self.table(*table)?.1),
            Op::Level { table, level } => self.db.compact_level(&self.table(*table)?.1, *level),
            Op::Compact { table, whole } => self.compact(*table, *whole),
            Op::Pause => {
                self.db.pause_background();
                Ok(())
            }
            Op::Resume => {
                self.db.resume_background();
                Ok(())
            }
            Op::Cancel => {
                self.db.cancel_compactions();
                Ok(())
            }
            Op::Quiesce => self.db.wait_until_quiescent(),
            Op::SetOption { seed } => self.set_option(*seed),
            Op::Checkpoint => self.checkpoint(),
            Op::Backup => self.backup(),
            Op::Look => self.look(),
            op => unreachable!("{op} is not maintenance"),
        };
        let is_refused = match done {
            Ok(()) => false,
            // Another caller has paused the background, cancelled, or holds what this one wants.
            Err(error) if error.kind() == Kind::Invalid && is_of_pause(&error) => true,
            Err(error) if error.kind() == Kind::Cancelled || is_met(&error) => true,
            Err(error) => return Err(error),
        };
        (0..=OWN).try_for_each(|at| {
            let (place, table) = self.table(at)?;
            self.compare_all(place, &table, false)
        })?;
        Ok(!is_refused)
    }

    /// Some own keys in order, with values or as deletes.
    fn sorted_rows(&self, numbers: &mut Rng, has_deletes: bool) -> BTreeMap<Vec<u8>, Option<Vec<u8>>> {
        let count = 1 + numbers.below(KEYS);
        let rows = (0..count).map(|_| {
            let key = self.key(numbers.below(KEYS));
            let is_delete = has_deletes && numbers.one_in(4);
            (key, (!is_delete).then(|| self.value(8 + numbers.below(400))))
        });
        rows.collect()
    }

    /// The rows are in.
    fn take_in(&mut self, place: usize, rows: BTreeMap<Vec<u8>, Option<Vec<u8>>>) {
        for (key, value) in rows {
            match value {
                Some(value) => drop(self.rows.insert((place, key), value)),
                None => drop(self.rows.remove(&(place, key))),
            }
        }
    }

    fn ingest(&mut self, seed: u64) -> Result<()> {
        let mut numbers = Rng::new(seed);
        let (place, table) = self.table(numbers.below(OWN as u64 + 1) as usize)?;
        let rows = self.sorted_rows(&mut numbers, true);
        let path = format!("/{}-{}.extents", self.number, self.turn);
        let disk = self.world.disk();
        let mut file = ExtentFileWriter::create_on(disk, &path, self.db.options(), &KeyOrders::default())?;
        let range = numbers.one_in(3).then(|| {
            let from = numbers.below(KEYS);
            (from, from + 1 + numbers.below(KEYS - from))
        });
        if let Some((from, to)) = range {
            file.delete_range(self.key(from), self.key(to))?;
        }
        for (key, value) in &rows {
            match value {
                Some(value) => file.put(key, value)?,
                None => file.delete(key)?,
            }
        }
        file.finish()?;
        let options = IngestOptions { copy: numbers.one_in(3), ..IngestOptions::default() };
        self.db.ingest(&[(&table, &path)], options)?;
        if let Some((from, to)) = range {
            self.forget_range(place, from, to);
        }
        self.take_in(place, rows);
        Ok(())
    }

    fn load(&mut self, seed: u64) -> Result<()> {
        let mut numbers = Rng::new(seed);
        let (place, table) = self.table(numbers.below(OWN as u64 + 1) as usize)?;
        let rows = self.sorted_rows(&mut numbers, false);
        let pairs = rows.iter().map(|(key, value)| (key, value.as_deref().unwrap_or_default()));
        self.db.bulk_load(&table, pairs)?;
        self.take_in(place, rows);
        Ok(())
    }

    /// Of a range that was deleted before: it changes nothing that reads see.
    fn drop_extents(&mut self, at: usize, from: u64, to: u64) -> Result<()> {
        let (place, table) = self.table(at)?;
        let (start, end) = (self.key(from), self.key(to));
        table.delete_range(&start, &end)?;
        self.forget_range(place, from, to);
        table.delete_files_in_range(&start[..]..&end[..]).map(drop)
    }

    fn compact(&self, at: usize, whole: bool) -> Result<()> {
        let (_, table) = self.table(at)?;
        if whole {
            return self.db.compact_range(&table, ..);
        }
        let (start, end) = (self.key(0), self.key(KEYS / 2));
        self.db.compact_range(&table, &start[..]..&end[..])
    }

    fn set_option(&self, seed: u64) -> Result<()> {
        let mut numbers = Rng::new(seed);
        let (_, table) = self.table(numbers.below(OWN as u64) as usize)?;
        let kind = numbers.below(4);
        let mut pick = |values: &[&'static str]| *numbers.pick(values);
        match kind {
            0 => table.set_option("level_fanout", pick(&["2", "4"])),
            1 => table.set_option("overflow_runs_max", pick(&["1", "3"])),
            2 => table.set_option("auto_compaction", pick(&["false", "true", "true"])),
            _ => table.set_option("level_base_bytes", pick(&["64KiB", "256KiB"])),
        }
    }

    /// Returns true if the rows of the caller are in another database.
    pub(super) fn compare_elsewhere(&self, db: &Db) -> Result<()> {
        for (place, name) in TABLES.iter().enumerate() {
            self.compare_all(place, &db.table(name)?, false)?;
        }
        let own = own_name(self.number);
        let is_there = db.tables().contains(&own);
        let has_own = self.db.tables().contains(&own);
        assert_eq!(is_there, has_own, "table {own} elsewhere");
        Ok(())
    }

    fn checkpoint(&self) -> Result<()> {
        if !self.has_journal {
            // Rows that are only in memory are not copied.
            self.db.flush()?;
        }
        let path = format!("/checkpoint-{}-{}", self.number, self.turn);
        self.db.checkpoint(&path)?;
        let db = Db::open_on(self.world.disk(), &path, &self.elsewhere(), self.world.env())?;
        self.compare_elsewhere(&db)?;
        db.close()
    }

    fn backup(&self) -> Result<()> {
        let disk = self.world.disk();
        let place = DirectoryPlace::new(disk.clone(), format!("/place-{}", self.number).as_ref());
        let backups = Backups::open_on(Arc::new(place), disk, self.world.env());
        let options = BackupOptions::default().flush(!self.has_journal || self.turn.is_multiple_of(2));
        let made = backups.create_with(&self.db, &options, &mut |_| ControlFlow::Continue(()))?;
        let target = format!("/restored-{}-{}", self.number, self.turn);
        let goes_on = &mut |_: &terrane::BackupProgress| ControlFlow::Continue(());
        backups.restore_with(made.id, &target, &RestoreOptions::default(), goes_on)?;
        let db = Db::open_on(self.world.disk(), &target, &self.elsewhere(), self.world.env())?;
        self.compare_elsewhere(&db)?;
        db.close()
    }

    /// Options for a second database that is only looked at.
    fn elsewhere(&self) -> Options {
        Options { create_if_missing: false, background_threads: 1, ..self.db.options().clone() }
    }

    /// Looks that must not fail nor find anything.
    fn look(&self) -> Result<()> {
        let report = self.db.check(&mut |_, _| ())?;
        assert!(report.findings.is_empty(), "check found {:?}", report.findings);
        let _ = (self.db.shape(), self.db.stats(), self.db.progress());
        Ok(())
    }
}

fn is_of_pause(error: &Error) -> bool {
    error.message().contains("paused")
}
