//! Followers: a view of the open database has every committed row, and so has the next view.

use std::sync::Arc;

use terrane::Follower;
use terrane_device::Disk;

use crate::disk::unwatched;
use crate::fault::Crash;
use crate::oracle::{Verdict, judge};
use crate::run::{DIR, Runner};
use crate::world::World;

impl Runner {
    /// Has a follower look at the files of the open database, catch up, and look again.
    pub(crate) fn follow(&self) {
        if !self.has_journal {
            return;
        }
        let allowed = self.allowed(Crash::Kill);
        let disk: Arc<dyn Disk> = Arc::new(self.disk().device().clone());
        // A world of its own: a follower must not change that of the primary.
        let env = World::new(self.world.trace().value() as u64).env();
        self.count(|outcome| outcome.looks += 1);
        let _aside = unwatched();
        let seen = self.undisturbed(|| {
            let follower = Follower::open(disk, DIR, &self.options(), crate::order::orders()?, env)?;
            let view = follower.view();
            judge(&view, &self.model.borrow(), &allowed)?;
            if follower.catch_up()? != 0 || follower.lag()? != 0 {
                return Err(Verdict::Wrong("no writer wrote, and the follower is behind".to_owned()));
            }
            judge(&follower.view(), &self.model.borrow(), &allowed)?;
            judge(&view, &self.model.borrow(), &allowed)?;
            if view.put(b"key", b"value").is_ok() || view.flush().is_ok() {
                return Err(Verdict::Wrong("a follower wrote".to_owned()));
            }
            Ok(())
        });
        self.judge_look("follow", seen);
    }
}
