//! Restarts: close or crash, the bytes that remain, the next opening, and the check of its rows.

use std::sync::Arc;

use terrane::{Db, Error};
use terrane_base::Rng;
use terrane_device::MemDisk;

use crate::disk::SimDisk;
use crate::fault::{Crash, Fault};
use crate::oracle::{Allowed, Verdict, adopt, judge};
use crate::run::{DIR, Life, Runner};

/// A reader looks at what one in so many crashes left, before it is opened for writing.
const PEEK_ONE_IN: u64 = 8;

impl Runner {
    /// The states that a kill, or a loss of power, may leave now.
    pub(crate) fn allowed(&self, crash: Crash) -> Allowed {
        self.note_losses();
        let events = self.events();
        let life = self.life.borrow();
        if self.is_opening.get()
            && let Some(captured) = &life.captured
        {
            return captured.clone();
        }
        let acked = self.model.borrow().now();
        let durable = life.durable();
        let floor = match crash {
            Crash::Kill if self.has_journal => acked,
            _ => durable,
        };
        // Behind a commit in doubt nothing is committed: the journal is poisoned.
        let extra = life.doubt.as_ref().or(life.inflight.last()).cloned();
        Allowed { floor, durable, acked, extra, events }
    }

    pub(crate) fn reopen(&self, options: u64) {
        let allowed = {
            self.judge_background();
            self.count_scrubbing();
            let db = self.db.borrow_mut().take();
            self.life.borrow_mut().snapshots.clear();
            let closed = db.map_or(Ok(()), Db::close);
            self.judge_closed_tickets();
            match closed {
                Ok(()) => self.note_durable(self.model.borrow().now()),
                Err(error) => self.met("close", &error),
            }
            if self.disk().has_crashed() {
                return;
            }
            self.allowed(Crash::Kill)
        };
        if options != 0 {
            self.change_options(options);
        }
        let (pending, armed) = (self.disk().pending_crash(), self.life.borrow().armed);
        self.next_life(self.disk().device().clone());
        if let Some((left, crash)) = pending {
            self.disk().crash_after(left, crash);
            self.life.borrow_mut().armed = armed;
        }
        self.open(&allowed, None);
    }

    /// Other options where a database may be opened with others.
    fn change_options(&self, seed: u64) {
        let mut options = self.options.borrow_mut();
        let mut numbers = Rng::new(seed);
        let drawn = crate::options::random_options(&mut numbers).into_iter();
        for (name, value) in drawn.filter(|(name, _)| self.has_journal || name != "history_bytes") {
            options.set(&name, &value).expect("generated options are valid");
        }
        options.create_if_missing = numbers.one_in(2);
    }

    pub(crate) fn rot(&self, seed: u64, path_part: &str) {
        if !self.has_journal {
            return;
        }
        let bits = 1 + seed % 3;
        let mut allowed = self.allowed(Crash::Kill);
        allowed.floor = self.rot_floor(bits);
        allowed.durable = allowed.floor.min(allowed.durable);
        let image = self.disk().device().kill();
        self.die();
        let chosen = |path: &str| path.contains(path_part) && !path.ends_with("LOCK");
        for bit in 0..bits {
            if let Some((path, offset)) = image.rot(seed.wrapping_add(bit), &chosen) {
                self.world.note(crate::trace::hash(path.as_bytes()) ^ offset);
                self.is_damaged.set(true);
                self.count(|outcome| outcome.silent += 1);
            }
        }
        self.next_life(image);
        self.open(&allowed, None);
    }

    /// Rot under an open database: cached blocks are still right, later reads may be refused.
    pub(crate) fn decay(&self, seed: u64) {
        if let Some((path, offset)) = self.disk().device().rot(seed, &|path| path.ends_with(".ext")) {
            self.world.note(crate::trace::hash(path.as_bytes()) ^ offset);
            self.is_damaged.set(true);
            self.count(|outcome| outcome.silent += 1);
        }
    }

    /// Commits that so many flipped bits leave, or are refused for. Groups in front of a mark that can be
    /// read are never cut; each bit may hit the group with the last one.
    fn rot_floor(&self, bits: u64) -> u64 {
        let life = self.life.borrow();
        let left = life.marks.len().checked_sub(bits as usize);
        life.marked().max(left.map_or(0, |at| life.marks[at]))
    }

    /// After a crash: the image is the device of the next life.
    pub(crate) fn recover(&self) {
        let disk = self.disk();
        let (captured, armed) = {
            let mut life = self.life.borrow_mut();
            (life.captured.take(), life.armed.take())
        };
        let image = disk.image().expect("there was a crash");
        // Noted when the image was taken, unless the background of this database met the crash while another
        // database was looked at, unwatched: then nothing was committed since.
        let crash = armed.map_or(Crash::Power(0), |(crash, _)| crash);
        let captured = captured.unwrap_or_else(|| self.allowed(crash));
        self.count(|outcome| outcome.crashes += 1);
        if !self.life.borrow().in_flight.is_empty() {
            self.did("asynchronous write: in flight at a crash");
        }
        self.die();
        if Rng::new(self.world.trace().value() as u64).one_in(PEEK_ONE_IN) {
            self.peek_at(image.kill(), &captured);
        }
        self.adopt_checkpoints(&image);
        self.adopt_backups(&image);
        self.next_life(image);
        self.open(&captured, armed.and_then(|(_, again)| again));
    }

    /// The process is gone.
    pub(crate) fn die(&self) {
        self.count_scrubbing();
        self.disk().abandon();
        self.life.borrow_mut().snapshots.clear();
        let db = self.db.borrow_mut().take();
        // It closes itself, and fails at that: its device is dead.
        drop(db);
        self.world.end_loops();
    }

    /// A new device over the present one, with the faults that have not struck yet.
    pub(crate) fn next_life(&self, device: MemDisk) {
        let before = self.disk();
        self.count_faults();
        if before.struck().damage > 0 {
            self.is_damaged.set(true);
        }
        self.world.end_loops();
        device.set_capacity(u64::MAX);
        let next = SimDisk::new(self.world.clone(), device);
        before.faults().into_iter().for_each(|fault: Fault| next.fail(fault));
        *self.disk.borrow_mut() = next;
        let mut life = self.life.borrow_mut();
        let (changed, is_manifest_hurt) = (std::mem::take(&mut life.changed), life.is_manifest_hurt);
        *life = Life { is_manifest_hurt, ..Life::new(life.marked()) };
        // An edit that only the system's pages hold is gone when the power is.
        life.changed = if is_manifest_hurt { changed } else { Vec::new() };
    }

    /// Opens the database and judges what it holds; `again` crashes at that call of the recovery.
    pub(crate) fn open(&self, allowed: &Allowed, again: Option<u64>) {
        self.count(|outcome| outcome.opens += 1);
        let disk = self.disk();
        let seed = self.world.trace().value() as u64;
        if let Some(again) = again {
            disk.crash_after(again, Crash::Power(seed));
            self.life.borrow_mut().armed = Some((Crash::Power(seed), None));
        }
        {
            let mut life = self.life.borrow_mut();
            // A loss of power inside a recovery takes with it what was only in the page cache.
            let is_kill = matches!(life.armed, Some((Crash::Kill, _)));
            let floor = if is_kill { allowed.floor } else { allowed.floor.min(allowed.durable) };
            life.captured = Some(Allowed { floor, ..allowed.clone() });
        }
        self.is_opening.set(true);
        let options = self.options.borrow().clone();
        let opened = crate::order::open(Arc::new(disk.clone()), DIR, &options, self.world.env());
        self.is_opening.set(false);
        match opened {
            _ if disk.has_crashed() => {
                drop(opened);
                self.recover();
            }
            Ok(db) => {
                if again.is_some() {
                    disk.disarm();
                    self.life.borrow_mut().armed = None;
                }
                self.life.borrow_mut().captured = None;
                *self.db.borrow_mut() = Some(db);
                self.find_moment(allowed);
            }
            Err(error) if self.may_fail(&error) => self.open_without_faults(allowed, &error),
            Err(error) => self.fail(format!("open: {error} ({:?})", error.kind())),
        }
    }

    /// An open that met a fault: without faults the next one succeeds, unless something is damaged.
    fn open_without_faults(&self, allowed: &Allowed, error: &Error) {
        let is_harmed = self.struck().sum() > 0;
        self.disk().heal();
        self.next_life(self.disk().device().clone());
        self.disk().heal();
        if is_harmed {
            return self.open(allowed, None);
        }
        self.world.note_text(&error.to_string());
        self.count(|outcome| outcome.refused = true);
    }

    /// Finds out which moment the database holds, and goes on from there.
    pub(crate) fn find_moment(&self, allowed: &Allowed) {
        let verdict = judge(&self.db(), &self.model.borrow(), allowed);
        let found = match verdict {
            Ok(found) => found,
            Err(Verdict::Refused(message)) if self.is_damaged.get() || self.struck().silent > 0 => {
                self.world.note_text(&message);
                return self.count(|outcome| outcome.refused = true);
            }
            Err(_) if self.disk().has_crashed() => return,
            Err(Verdict::Wrong(_)) if allowed.has_turned() => {
                return self.count(|outcome| outcome.refused = true);
            }
            Err(Verdict::Unread(error)) => {
                self.met("after open", &error);
                if self.failure.borrow().is_none() {
                    self.disk().heal();
                    self.find_moment(allowed);
                }
                return;
            }
            Err(Verdict::Refused(message) | Verdict::Wrong(message)) => {
                return self.fail(format!("after open: {message}"));
            }
        };
        self.world.note(found.commits);
        if found.events.iter().any(|event| event.is_undone && event.is_created) {
            // The rows of a table that was dropped are not in the model any more.
            return self.count(|outcome| outcome.refused = true);
        }
        adopt(&mut self.model.borrow_mut(), &found, allowed);
        {
            let mut life = self.life.borrow_mut();
            if self.has_journal {
                life.durable = found.commits;
                life.marked = found.commits;
                life.found = found.commits;
            }
        }
        self.judge_waiting(&found);
    }
}
