//! Observers beside the user: scrubbing, a reader of what a dead process left, a repair of it, and the
//! listeners of background work.
//!
//! An observer uses a copy of the device, so the run continues unchanged. While a reader is open, every call
//! that changes something fails, because a reader must not need one.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrane::{Db, Error, Kind, Options, RepairReport, Shape};
use terrane_base::env::Clock as _;
use terrane_device::{Call, Disk, MemDisk};

use crate::disk::SimDisk;
use crate::fault::{Crash, Fault, Harm};
use crate::oracle::{Allowed, Verdict, judge};
use crate::run::{DIR, Runner};

/// Where a repair puts its database.
const REPAIRED: &str = "/repaired";
/// Turns of the background within which scrubbing goes through everything.
const SCRUB_TURNS: u32 = 50_000;
/// The time that passes when nothing is due.
const SCRUB_WAIT: Duration = Duration::from_millis(100);

impl Runner {
    /// Errors of the background must come from faults of the device.
    pub(crate) fn judge_background(&self) {
        let db = self.db();
        for finding in db.scrub_findings() {
            self.met("scrub", &finding.error);
        }
        for finding in db.background_errors() {
            self.met_in_background("background", &finding.error);
        }
    }

    /// Notes an error of background work that may be reported late. Poisoned, a database may report older
    /// failures until the work is tried again.
    pub(crate) fn met_in_background(&self, what: &str, error: &Error) {
        let is_old = self.life.borrow().is_stuck && error.kind() != Kind::Corrupt;
        if !is_old {
            self.met(what, error);
        }
    }

    /// Adds what scrubbing did in this life.
    pub(crate) fn count_scrubbing(&self) {
        let stats = self.db.borrow().as_ref().map(Db::stats);
        if let Some(stats) = stats {
            self.count(|outcome| {
                outcome.scrubbed += stats.scrub_extents;
                outcome.scrubbed_bytes += stats.scrub_bytes;
                outcome.found += stats.scrub_findings;
            });
        }
    }

    /// Lets scrubbing go through every table; then it knows of all damage that a check finds in extents.
    pub(crate) fn scrub(&self) {
        let is_on = self.options.borrow().scrub_bytes_per_second > 0;
        if !is_on || self.life.borrow().is_paused || !self.comes_round() {
            return;
        }
        self.judge_background();
        let is_calm = self.struck().sum() == 0 && self.disk().faults().is_empty();
        let report = self.db().check(&mut |_, _| ());
        let (true, Ok(report)) = (is_calm && !self.disk().has_crashed(), report) else { return };
        let known: Vec<String> =
            self.db().scrub_findings().iter().map(|finding| finding.error.to_string()).collect();
        for finding in report.findings {
            let is_in_extent = finding.error.place().is_some_and(|place| place.file.ends_with(".ext"));
            if is_in_extent && !known.contains(&finding.error.to_string()) {
                self.fail(format!("scrubbing did not find what a check finds: {}", finding.error));
            }
        }
    }

    /// Gives the background turns and time until scrubbing was everywhere; false if there is nothing to
    /// scrub, or a fault is in the way.
    fn comes_round(&self) -> bool {
        let db = self.db();
        // The pass that is under way has perhaps left damaged extents behind.
        let passes = db.stats().scrub_passes + 2;
        for _ in 0..SCRUB_TURNS {
            if self.disk().has_crashed() {
                return false;
            }
            if db.stats().scrub_passes >= passes {
                return true;
            }
            self.world.begin_operation();
            if !self.world.step() {
                self.world.sleep(SCRUB_WAIT);
            }
        }
        if extents(&db.shape()) > 0 && self.struck().sum() == 0 && !self.is_hurt() {
            self.fail("scrubbing never comes round");
        }
        false
    }

    /// Returns true if stored bytes may be damaged.
    pub(crate) fn is_hurt(&self) -> bool {
        self.is_damaged.get() || self.struck().damage > 0
    }

    /// Has a reader look at what the death of the process would leave now.
    pub(crate) fn peek(&self) {
        if self.has_journal {
            self.peek_at(self.disk().device().kill(), &self.allowed(Crash::Kill));
        }
    }

    /// Has a reader look at what a crash left.
    pub(crate) fn peek_at(&self, image: MemDisk, allowed: &Allowed) {
        let disk = self.observer_disk(image);
        // A lock may make its file: a reader takes one where it can.
        for call in Call::ALL.into_iter().filter(|call| call.changes() && *call != Call::Lock) {
            disk.fail(Fault { call, path_part: String::new(), harm: Harm::Broken, skip: 0, lasting: true });
        }
        let options = Options { read_only: true, ..self.options() };
        let seen = self.undisturbed(|| {
            let db = crate::order::open(Arc::new(disk.clone()), DIR, &options, self.world.env())?;
            judge(&db, &self.model.borrow(), allowed)?;
            if db.put(b"key", b"value").is_ok() || db.flush().is_ok() {
                return Err(Verdict::Wrong("a reader wrote".to_owned()));
            }
            db.close()?;
            if disk.struck().broken > 0 {
                return Err(Verdict::Wrong("a reader changed something".to_owned()));
            }
            // An opening for writing makes names durable before it reads them.
            disk.heal();
            let options = Options { error_if_exists: true, ..self.options() };
            match crate::order::open(Arc::new(disk.clone()), DIR, &options, self.world.env()) {
                Ok(_) => Err(Verdict::Wrong("it exists and was opened with error_if_exists".to_owned())),
                Err(_) => Ok(()),
            }
        });
        self.judge_look("peek", seen);
    }

    /// Repairs what the death of the process would leave now: what reports no loss has everything.
    pub(crate) fn repair(&self) {
        if !self.has_journal {
            return;
        }
        let allowed = self.allowed(Crash::Kill);
        let disk = self.observer_disk(self.disk().device().kill());
        let seen = self.undisturbed(|| self.repair_on(&disk, &allowed));
        self.judge_look("repair", seen);
    }

    fn repair_on(&self, disk: &SimDisk, allowed: &Allowed) -> Result<(), Verdict> {
        let (options, env) = (self.options(), self.world.env());
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let (source, target, orders) = (Path::new(DIR), Path::new(REPAIRED), crate::order::orders()?);
        let report = terrane_engine::repair_with_on(&shared, source, target, &options, env.clone(), orders)?;
        let RepairReport { losses, doubts, .. } = report;
        let is_hurt = self.is_hurt();
        match losses.first() {
            Some(_) if is_hurt => return Ok(()),
            // A loss of power left out pages of what was not synced, and the opening behind it, whose rows
            // were judged, has set aside what lay behind: the records at the break are lost.
            Some(loss) if is_set_aside(&loss.error) => return Ok(()),
            Some(loss) => {
                return Err(Verdict::Wrong(format!("a loss of rows that are not damaged: {}", loss.error)));
            }
            None if is_hurt && !doubts.is_empty() => return Ok(()),
            None => {}
        }
        let db = crate::order::open(shared, REPAIRED, &options, env)?;
        // A repair that reports nothing has no excuse.
        match judge(&db, &self.model.borrow(), allowed) {
            Err(Verdict::Refused(message)) => Err(Verdict::Wrong(message)),
            judged => judged.map(drop),
        }?;
        Ok(db.close()?)
    }

    /// The device of an observer: a copy, so that the run continues unchanged.
    pub(crate) fn observer_disk(&self, image: MemDisk) -> SimDisk {
        image.set_capacity(u64::MAX);
        self.count(|outcome| outcome.looks += 1);
        SimDisk::new(self.world.clone(), image)
    }

    /// Does something in the middle of which nothing else comes.
    pub(crate) fn undisturbed<R>(&self, look: impl FnOnce() -> R) -> R {
        let during = std::mem::take(&mut self.life.borrow_mut().during);
        let seen = look();
        self.life.borrow_mut().during = during;
        seen
    }

    pub(crate) fn judge_look(&self, what: &str, seen: Result<(), Verdict>) {
        match seen {
            Ok(()) => {}
            Err(Verdict::Refused(_)) if self.is_hurt() => {}
            Err(Verdict::Refused(message) | Verdict::Wrong(message)) => {
                self.fail(format!("{what}: {message}"));
            }
            Err(Verdict::Unread(error)) => self.fail(format!("{what}: {error} ({:?})", error.kind())),
        }
    }
}

fn extents(shape: &Shape) -> u64 {
    let tables = shape.tables.iter();
    let places = tables.flat_map(|table| table.runs.iter().chain(&table.levels));
    places.map(|place| place.extents).sum()
}

/// Returns true if the error is of a file of records that an opening has set aside.
fn is_set_aside(error: &terrane_base::Error) -> bool {
    let name = error.place().and_then(|place| Path::new(&place.file).file_name()?.to_str());
    name.is_some_and(|name| terrane_journal::aside_numbers(name).is_some())
}
