//! Backups: a backup that is restored elsewhere has the same rows as the database had; after any crash every
//! backup is complete, and the newest one exists.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use terrane::{BackupOptions, Backups, DirectoryPlace, Kind, Options};
use terrane_device::{Disk, MemDisk};

use crate::disk::unwatched;
use crate::fault::Crash;
use crate::oracle::{Allowed, Verdict, adopt, judge};
use crate::prepared_transactions::PreparedTransaction;
use crate::restore::Kept;
use crate::run::Runner;
use crate::world::World;

/// Where backups are kept, on the device of the database.
const PLACE: &str = "/backups";
/// Where one is restored, on a device of its own.
const TARGET: &str = "/restored";

pub(crate) fn backups_on(disk: Arc<dyn Disk>, target: Arc<dyn Disk>, world: &Arc<World>) -> Backups {
    Backups::open_on(Arc::new(DirectoryPlace::new(disk, Path::new(PLACE))), target, world.env())
}

impl Runner {
    /// Makes a backup, and removes all but the newest `keep`. What `seed` draws: memory goes into extents
    /// first, what older ones have is checked.
    pub(crate) fn backup(&self, keep: u64, seed: u64) {
        let before = self.allowed(Crash::Kill);
        let disk: Arc<dyn Disk> = Arc::new(self.disk());
        let backups = backups_on(disk.clone(), disk, &self.world);
        let options = BackupOptions::default().flush(seed & 1 == 1).recheck(seed & 2 == 2);
        let made = backups.create_with(&self.db(), &options, &mut |_| ControlFlow::Continue(()));
        if self.disk().has_crashed() {
            return;
        }
        match made {
            Ok(made) => {
                self.newest_backup.set(made.id);
                self.judge_backup(made.id, &before);
            }
            Err(error) => {
                self.did("backup that failed");
                self.met_in_background("backup", &error);
            }
        }
        if self.disk().has_crashed() {
            return;
        }
        match backups.purge(keep.max(1) as usize) {
            Ok(_) => {}
            Err(error) if self.newest_backup.get() == 0 && error.kind() == Kind::NotFound => {}
            Err(error) => self.met_in_background("purge of backups", &error),
        }
    }

    /// Restores a backup that was just made from what a loss of power would leave of it.
    fn judge_backup(&self, id: u64, before: &Allowed) {
        if !self.has_journal {
            return;
        }
        // What came in the middle may be in it.
        let allowed = Allowed { floor: before.floor, ..self.allowed(Crash::Kill) };
        let seed = self.world.trace().value() as u64;
        let place = self.observer_disk(self.disk().device().crash(seed));
        let target: Arc<dyn Disk> = Arc::new(self.observer_disk(MemDisk::new()));
        let options = Options { create_if_missing: false, ..self.options() };
        let _aside = unwatched();
        let seen = self.undisturbed(|| {
            backups_on(Arc::new(place), target.clone(), &self.world).restore(id, TARGET)?;
            let db = crate::order::open(target, TARGET, &options, self.world.env())?;
            let found = judge(&db, &self.model.borrow(), &allowed)?;
            let report = db.check(&mut |_, _| ())?;
            if let Some(finding) = report.findings.first() {
                return Err(Verdict::Refused(finding.error.to_string()));
            }
            let prepared = db.prepared();
            db.close()?;
            Ok((found, prepared))
        });
        let seen = seen.map(|(found, prepared)| {
            let mut model = self.model.borrow().clone();
            adopt(&mut model, &found, &allowed);
            let mut waiting = self.waiting.borrow().clone();
            waiting.retain(|one| prepared.contains(&one.name));
            waiting.iter_mut().for_each(PreparedTransaction::is_there);
            self.kept.borrow_mut().insert(id, Kept { model, waiting });
        });
        self.judge_look("backup", seen);
    }

    /// Returns true if there are some, or parts of some: they take space.
    pub(crate) fn has_backups(&self) -> bool {
        self.disk().device().exists(Path::new(PLACE)).unwrap_or(true)
    }

    /// Looks at the backups that a crash left: all are whole, and the newest that was made is among them, or
    /// a newer one.
    pub(crate) fn judge_backups(&self, image: &MemDisk) -> Result<(), String> {
        let newest = self.newest_backup.get();
        if !image.exists(Path::new(PLACE)).map_err(|error| error.to_string())? {
            return if newest == 0 {
                Ok(())
            } else {
                Err(format!("backup {newest} is gone, and all others"))
            };
        }
        // A world of its own: this is looked at in the middle of a call of the other.
        let world = World::new(newest);
        let image: Arc<dyn Disk> = Arc::new(image.kill());
        let backups = backups_on(image.clone(), image, &world);
        let list = backups.list().map_err(|error| format!("backups: {error}"))?;
        if let Some((id, error)) = list.damaged.first() {
            return Err(format!("backup {id} is not whole: {error}"));
        }
        for backup in &list.backups {
            let report =
                backups.verify(backup.id).map_err(|error| format!("backup {}: {error}", backup.id))?;
            if let Some(finding) = report.findings.first() {
                return Err(format!(
                    "backup {} is not whole: {}: {}",
                    backup.id, finding.object, finding.error
                ));
            }
        }
        match list.backups.last().map_or(0, |backup| backup.id) {
            last if last < newest => Err(format!("backup {newest} was made and is gone")),
            _ => Ok(()),
        }
    }

    /// The same between two lives.
    pub(crate) fn adopt_backups(&self, image: &MemDisk) {
        let is_hurt = self.is_hurt() || self.struck().silent > 0;
        match self.judge_backups(image) {
            Err(message) if !is_hurt => self.fail(message),
            _ => {}
        }
        let world = World::new(0);
        let image: Arc<dyn Disk> = Arc::new(image.kill());
        let list = backups_on(image.clone(), image, &world).list();
        let last = list.ok().and_then(|list| list.backups.last().map(|last| last.id)).unwrap_or(0);
        // One that is found and whose making was never said to be done need not be durable yet.
        self.newest_backup.set(last.min(self.newest_backup.get()));
    }
}
