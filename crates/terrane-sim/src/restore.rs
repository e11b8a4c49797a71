//! Restores: of a backup into a directory of its own, while calls fail or the process crashes, and then
//! again; and of a backup in the place of the database, which continues from there.
//!
//! The expected rows of a backup are a copy of the model, taken when the backup was made.

use std::path::Path;
use std::sync::Arc;

use terrane::Options;
use terrane_base::Rng;
use terrane_device::{Call, Disk as _, MemDisk};

use crate::backup::backups_on;
use crate::disk::{SimDisk, unwatched};
use crate::fault::{Crash, Fault, Harm};
use crate::model::Model;
use crate::oracle::{Allowed, Verdict, judge};
use crate::prepared_transactions::PreparedTransaction;
use crate::replica::Replica;
use crate::run::{DIR, Runner};

/// Where one is restored, on a device of its own.
const TARGET: &str = "/restored";

/// The expected content of a backup.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) model: Model,
    /// Its prepared transactions.
    pub(crate) waiting: Vec<PreparedTransaction>,
}

impl Kept {
    /// Exactly this.
    fn allowed(&self) -> Allowed {
        let now = self.model.now();
        Allowed { floor: now, durable: now, acked: now, extra: None, events: Vec::new() }
    }
}

impl Runner {
    /// One of the backups that are there, and what it has.
    fn draw_backup(&self, numbers: &mut Rng) -> Option<(u64, Kept)> {
        if !self.has_journal || self.is_hurt() || self.struck().silent > 0 {
            return None;
        }
        let place = Arc::new(self.observer_disk(self.disk().device().kill()));
        let list = {
            let _aside = unwatched();
            self.undisturbed(|| backups_on(place.clone(), place, &self.world).list())
        };
        let ids: Vec<u64> = list.ok()?.backups.iter().map(|backup| backup.id).collect();
        let mut kept = self.kept.borrow_mut();
        kept.retain(|id, _| ids.contains(id));
        let known: Vec<u64> = kept.keys().copied().collect();
        let id = (!known.is_empty()).then(|| *numbers.pick(&known))?;
        Some((id, kept[&id].clone()))
    }

    /// Restores a backup to a device of its own, on which a call fails or the process dies; then once more,
    /// on what that left.
    pub(crate) fn restore(&self, seed: u64) {
        let mut numbers = Rng::new(seed);
        let Some((id, kept)) = self.draw_backup(&mut numbers) else { return };
        let place = self.observer_disk(self.disk().device().kill());
        let target = self.observer_disk(MemDisk::new());
        let dies = numbers.one_in(2);
        if dies {
            let crash = if numbers.one_in(3) { Crash::Kill } else { Crash::Power(numbers.next_u64()) };
            target.crash_after(numbers.skewed(40), crash);
        } else {
            let call = *numbers.pick(&Call::ALL);
            let harm = if numbers.one_in(3) { Harm::Full } else { Harm::Broken };
            let on = if call == Call::Read { &place } else { &target };
            on.fail(Fault { call, path_part: String::new(), harm, skip: numbers.skewed(12), lasting: false });
        }
        let _aside = unwatched();
        let seen = self.undisturbed(|| self.restore_twice(id, &kept, &place, &target));
        self.judge_look("restore", seen);
    }

    fn restore_twice(&self, id: u64, kept: &Kept, place: &SimDisk, target: &SimDisk) -> Result<(), Verdict> {
        let first =
            backups_on(Arc::new(place.clone()), Arc::new(target.clone()), &self.world).restore(id, TARGET);
        let was_harmed = place.struck().sum() + target.struck().sum() > 0;
        let left = match (target.image(), first) {
            (Some(image), _) => {
                self.did("restore that was killed");
                image
            }
            (None, Ok(_)) => target.device().clone(),
            (None, Err(_)) if was_harmed => {
                self.did("restore that failed");
                target.device().clone()
            }
            (None, Err(error)) => return Err(error.into()),
        };
        place.heal();
        let target = self.observer_disk(left);
        let is_there = target.device().exists(Path::new(TARGET))?;
        if !is_there {
            backups_on(Arc::new(place.clone()), Arc::new(target.clone()), &self.world).restore(id, TARGET)?;
        } else if backups_on(Arc::new(place.clone()), Arc::new(target.clone()), &self.world)
            .restore(id, TARGET)
            .is_ok()
        {
            return Err(Verdict::Wrong("a backup was restored over a database".to_owned()));
        }
        self.judge_restored(kept, &target, TARGET)
    }

    fn judge_restored(&self, kept: &Kept, disk: &SimDisk, path: &str) -> Result<(), Verdict> {
        let options = Options { create_if_missing: false, ..self.options() };
        let db = crate::order::open(Arc::new(disk.clone()), path, &options, self.world.env())?;
        judge(&db, &kept.model, &kept.allowed())?;
        let report = db.check(&mut |_, _| ())?;
        if let Some(finding) = report.findings.first() {
            return Err(Verdict::Refused(finding.error.to_string()));
        }
        Ok(db.close()?)
    }

    /// Closes the database, restores a backup in its place, and goes on from there.
    pub(crate) fn go_back(&self, seed: u64) {
        let is_calm =
            self.struck().sum() == 0 && self.disk().faults().is_empty() && !self.life.borrow().is_cramped;
        if !is_calm || self.disk().pending_crash().is_some() {
            return;
        }
        let Some((id, kept)) = self.draw_backup(&mut Rng::new(seed)) else { return };
        self.judge_background();
        self.count_scrubbing();
        let db = self.db.borrow_mut().take();
        self.life.borrow_mut().snapshots.clear();
        if let Some(Err(error)) = db.map(terrane::Db::close) {
            self.met("close", &error);
        }
        self.judge_closed_tickets();
        let device = self.disk().device().clone();
        let moved = self.undisturbed(|| {
            let disk = Arc::new(self.observer_disk(device.clone()));
            remove_all(&disk, Path::new(DIR))?;
            disk.sync_dir(Path::new("/"))?;
            backups_on(disk.clone(), disk, &self.world).restore(id, DIR)
        });
        if let Err(error) = moved {
            return self.fail(format!("restore in the place of the database: {error} ({:?})", error.kind()));
        }
        self.did("go back to a backup");
        let allowed = kept.allowed();
        *self.model.borrow_mut() = kept.model;
        self.model.borrow_mut().set_clock(self.wall_millis());
        *self.waiting.borrow_mut() = kept.waiting;
        // The replica read changes of another history.
        *self.replica.borrow_mut() = Replica::default();
        self.next_life(device);
        self.life.borrow_mut().marked = allowed.floor;
        self.open(&allowed, None);
    }
}

/// Removes a directory and all in it.
fn remove_all(disk: &SimDisk, path: &Path) -> terrane::Result<()> {
    for name in disk.list(path)? {
        let path = path.join(name);
        // A directory is removed only when it is empty.
        if disk.remove(&path).is_err() {
            remove_all(disk, &path)?;
        }
    }
    disk.remove(path)
}
