//! Checkpoints: a checkpoint has the same rows as the database had, also after a loss of power right behind
//! it; after any crash there is a complete checkpoint under its name, or none.

use std::path::Path;
use std::sync::Arc;

use terrane::{Db, Error, Kind, Options};
use terrane_device::{Disk, MemDisk};

use crate::disk::unwatched;
use crate::fault::Crash;
use crate::oracle::{Allowed, Verdict, judge};
use crate::run::Runner;
use crate::world::World;

/// How one came to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Making {
    /// Its making returned: it survives everything.
    Returned,
    /// A process that died while it made one left it: the loss of power may take it.
    Left,
}

/// How many there are at once, at most: they share their names.
pub(crate) const CHECKPOINTS: u64 = 3;

fn dir(name: u64) -> String {
    format!("/checkpoint{name}")
}

impl Runner {
    /// Makes the checkpoint of this name, unless it is there.
    pub(crate) fn checkpoint(&self, name: u64) {
        let before = self.allowed(Crash::Kill);
        let made = self.db().checkpoint(dir(name));
        if self.disk().has_crashed() {
            return;
        }
        match made {
            Ok(_) if self.made.borrow_mut().insert(name, Making::Returned).is_some() => {
                self.fail("a checkpoint was made over another one")
            }
            Ok(_) => self.judge_checkpoint(name, &before),
            Err(error) if self.made.borrow().contains_key(&name) && error.kind() == Kind::Invalid => {}
            Err(error) => self.met_in_background("checkpoint", &error),
        }
    }

    fn judge_checkpoint(&self, name: u64, before: &Allowed) {
        if !self.has_journal {
            return;
        }
        // An operation in the middle may be included.
        let allowed = Allowed { floor: before.floor, ..self.allowed(Crash::Kill) };
        let seed = self.world.trace().value() as u64;
        let disk = self.observer_disk(self.disk().device().crash(seed));
        let options = Options { create_if_missing: false, ..self.options() };
        let _aside = unwatched();
        let seen = self.undisturbed(|| {
            let db = crate::order::open(Arc::new(disk), dir(name), &options, self.world.env())?;
            judge(&db, &self.model.borrow(), &allowed)?;
            check(&db)?;
            Ok(db.close()?)
        });
        self.judge_look("checkpoint", seen);
    }

    /// Returns true if there are some, or parts of some, or external files: they take space, and data files
    /// that they share keep free room.
    pub(crate) fn has_checkpoints(&self) -> bool {
        let is_there = |dir: String| self.disk().device().exists(Path::new(&dir)).unwrap_or(true);
        (0..CHECKPOINTS).map(dir).any(|dir| is_there(format!("{dir}.unfinished")) || is_there(dir))
            || self.has_external_files()
    }

    /// Looks at the checkpoints that a crash left.
    pub(crate) fn judge_checkpoints(&self, image: &MemDisk) -> Result<(), String> {
        let made = self.made.borrow();
        let options = Options { create_if_missing: false, read_only: true, ..self.options() };
        for name in 0..CHECKPOINTS {
            let is_there = image.exists(Path::new(&dir(name))).map_err(|error| error.to_string())?;
            if !is_there && made.get(&name) == Some(&Making::Returned) {
                return Err(format!("checkpoint {name} was made and is gone"));
            }
            if is_there {
                let whole = is_whole(image, name, &options);
                whole.map_err(|error| format!("checkpoint {name} is not whole: {error}"))?;
            }
        }
        Ok(())
    }

    /// The same between two lives; one whose making did not return is there from now on, or not.
    pub(crate) fn adopt_checkpoints(&self, image: &MemDisk) {
        let is_hurt = self.is_hurt() || self.struck().silent > 0;
        match self.judge_checkpoints(image) {
            Err(message) if !is_hurt => self.fail(message),
            _ => {}
        }
        let is_there = |name: &u64| image.exists(Path::new(&dir(*name))).is_ok_and(|is_there| is_there);
        let mut made = self.made.borrow_mut();
        let now_there = (0..CHECKPOINTS).filter(is_there);
        *made = now_there.map(|name| (name, made.get(&name).copied().unwrap_or(Making::Left))).collect();
    }
}

fn is_whole(image: &MemDisk, name: u64, options: &Options) -> Result<(), Error> {
    // A world of its own: this is looked at in the middle of a call of the other.
    let env = World::new(name).env();
    let db = crate::order::open(Arc::new(image.kill()), dir(name), options, env)?;
    match check(&db) {
        Ok(()) => db.close(),
        Err(Verdict::Unread(error)) => Err(error),
        Err(Verdict::Refused(message) | Verdict::Wrong(message)) => Err(Error::corrupt(message)),
    }
}

fn check(db: &Db) -> Result<(), Verdict> {
    let report = db.check(&mut |_, _| ())?;
    match report.findings.first() {
        None => Ok(()),
        Some(finding) => Err(Verdict::Refused(finding.error.to_string())),
    }
}
