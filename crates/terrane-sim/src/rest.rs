//! A database at rest: after writes nothing happens for seconds. The background has time for idle work, and
//! frees unneeded space on the device.

use std::path::Path;
use std::time::Duration;

use terrane_base::env::Clock as _;
use terrane_device::{Disk as _, MemDisk, OpenMode};

use crate::op::Value;
use crate::run::{DIR, Runner};

/// Longer than the background waits before it takes a database for one at rest.
const REST: Duration = Duration::from_millis(1_500);
/// Turns of the background within which it has done what it wants to.
const TURNS_MAX: u32 = 20_000;
/// So often a rest may be broken by what comes in its middle: more is not prepared at a time.
const RESTS_MAX: u32 = 4;
const PAGE_BYTES: u64 = 4096;

impl Runner {
    /// Writes a row, so that a new rest begins, and lets time pass.
    pub(crate) fn rest(&self) {
        let stamp = self.outcome.get().operations;
        self.put("default", 0, Some(Value { len: 20, stamp }), false);
        // What comes in the middle of the background's work may be a write, and then the rest begins behind
        // it.
        for _ in 0..RESTS_MAX {
            let before = self.db().stats().bytes_written;
            let is_at_rest = self.let_time_pass();
            if self.disk().has_crashed() || !is_at_rest {
                return;
            }
            if self.db().stats().bytes_written == before {
                if self.may_be_judged() {
                    self.judge_space();
                }
                return;
            }
        }
    }

    /// Lets seconds pass; returns whether the background has done what it wants to.
    fn let_time_pass(&self) -> bool {
        for _ in 0..2 {
            if self.disk().has_crashed() {
                return false;
            }
            self.world.begin_operation();
            let _is_done = (0..TURNS_MAX).any(|_| !self.world.step());
            self.world.sleep(REST);
        }
        self.world.begin_operation();
        (0..TURNS_MAX).any(|_| !self.world.step())
    }

    /// Returns true if nothing hinders the background, and no reader holds what it replaced.
    fn may_be_judged(&self) -> bool {
        let (options, life, disk) = (self.options(), self.life.borrow(), self.disk());
        let is_calm = self.struck().sum() == 0 && disk.faults().is_empty() && !self.is_damaged.get();
        let is_free = !(life.is_paused || life.is_cramped || life.was_cramped) && life.snapshots.is_empty();
        let is_alone = !self.has_checkpoints() && !self.has_backups();
        options.experiments.idle_reclaim
            && self.has_journal
            && is_calm
            && is_free
            && is_alone
            && !disk.has_crashed()
    }

    /// The space on the device equals the space in use: extents, listed segments, history, the manifest, and
    /// the rest of a page for each file.
    fn judge_space(&self) {
        let (device, shape) = (self.disk().device().clone(), self.db().shape());
        let data = Path::new(DIR).join("data");
        let files =
            device.list(&data).unwrap_or_default().len() as u64 + shape.segments + shape.history_segments;
        let in_use = shape.store_live_bytes
            + shape.segment_bytes
            + shape.history_bytes
            + files * PAGE_BYTES
            + beside(&device);
        let used = device.used_bytes();
        if used > in_use {
            let files = files_of(&device);
            self.fail(format!(
                "at rest the device holds {used} bytes, and {in_use} are in use: {shape}\n{files}"
            ));
        }
    }
}

/// Bytes of the files beside data and journal.
fn beside(device: &MemDisk) -> u64 {
    let names = device.list(Path::new(DIR)).unwrap_or_default();
    let bytes = |name: String| {
        let file = device.open(&Path::new(DIR).join(name), OpenMode::Read, false).ok()?;
        Some(file.len().ok()?.next_multiple_of(PAGE_BYTES))
    };
    names.into_iter().filter_map(bytes).sum()
}

/// Every file with its length, for a message.
fn files_of(device: &MemDisk) -> String {
    let mut text = String::from("files:");
    for dir in ["", "data", "journal"].map(|name| Path::new(DIR).join(name)) {
        for name in device.list(&dir).unwrap_or_default() {
            let file = device.open(&dir.join(&name), OpenMode::Read, false);
            if let Ok(bytes) = file.and_then(|file| file.len()) {
                text.push_str(&format!(" {name} {bytes}"));
            }
        }
    }
    text
}
