//! The readers of moments of the past: how old each is, and what it keeps from being freed.
//!
//! Whatever pins a moment (a snapshot, a scan of its own, a transaction) has a slot here while it lives;
//! scans note in the slot of their moment which read view they hold. With the option `reader_age_max_ms` a
//! reader expires: its reads fail from then on with `TooOld`, and the background takes away what it pins.
//!
//! A read through a snapshot looks how old it is *after* it has read: the pin goes only when that is too old,
//! and the clock does not go back, so a read from a read view that lacks a version because of that is
//! refused. Scans read from a read view of their own, which has what their moment needs; they look before
//! each step.
//!
//! Scans may be short and many. So slots lie in shards that threads do not share as a rule, are used again
//! with all that they have allocated, and where readers may have any age the age of a scan counts from the
//! last tick of the background (`Readers::tick`): listing it costs a scan one uncontended lock at each end,
//! and no look at the clock.

mod hold;
mod live;
mod range;
pub(crate) mod snapshot;

use std::time::Duration;

use terrane_base::{Error, Kind, Result};

pub use hold::Hold;
pub use live::LiveReader;
pub use range::PinnedRange;

use crate::read::snapshots::snapshot::Snapshot;
use crate::readers::{ReaderKind, Since, Slot};
use crate::shared::Shared;

impl Shared {
    /// Since when a reader of this kind counts that begins now.
    #[inline]
    pub(crate) fn reader_time(&self, kind: ReaderKind) -> Duration {
        let is_coarse = kind == ReaderKind::Scan && self.readers.age_max().is_none();
        // Without a background there are no ticks.
        if is_coarse && !self.options.read_only && !self.is_closing() {
            return self.readers.last_tick();
        }
        self.env.clock.now()
    }

    /// Moves a reader to the newest visible number, also if it had expired.
    pub(crate) fn renew_reader(&self, slot: Slot, kind: ReaderKind, before: Since) -> Since {
        let visible = || self.journal.visible();
        let time = self.reader_time(kind);
        // As a rule nothing was written since, or time has not gone on. What did not expire is still pinned.
        if self.readers.age_max().is_none() && time == before.time && visible() == before.seq {
            return before;
        }
        self.readers.with(slot, |entry| {
            let seq = match &mut entry.pin {
                Some(pin) if pin.seq() == visible() => pin.seq(),
                Some(pin) => {
                    pin.renew(visible);
                    pin.seq()
                }
                none => none.insert(self.pins.pin(visible)).seq(),
            };
            debug_assert!(seq >= before.seq, "a reader is renewed to an older moment");
            entry.is_expired = false;
            entry.since = Since { seq, time };
            entry.since
        })
    }

    /// Refuses what a reader has read that is older than `age_max`.
    ///
    /// # Errors
    /// `TooOld`, naming the reader and the remedy.
    #[inline]
    pub(crate) fn check_reader(&self, reader: &Snapshot, age_max: Duration) -> Result<()> {
        let now = self.env.clock.now();
        if now.saturating_sub(reader.since().time) <= age_max {
            return Ok(());
        }
        self.refuse_reader(reader, now, age_max)
    }

    #[cold]
    fn refuse_reader(&self, reader: &Snapshot, now: Duration, age_max: Duration) -> Result<()> {
        debug_assert!(now.saturating_sub(reader.since().time) > age_max, "a reader in time is refused");
        self.readers.expire_one(reader.slot(), now, age_max);
        if terrane_base::planted!(ReadThroughExpired) {
            return Ok(());
        }
        let origin = self.readers.with(reader.slot(), |entry| entry.origin.clone());
        let (name, remedy) = match origin.kind {
            ReaderKind::Snapshot => ("snapshot", "take a new one"),
            ReaderKind::Scan => ("scan", "begin a new one, or refresh the cursor"),
            ReaderKind::Transaction => ("transaction", "run it again"),
        };
        let age = now.saturating_sub(reader.since().time);
        let label = origin.label.as_ref().map_or_else(String::new, |label| format!(" {label:?}"));
        let message = format!(
            "the {name}{label}, made at {}, is {age:.1?} old, more than reader_age_max_ms={}: {remedy}, and sooner to its \
             end, or raise the option",
            origin.place,
            age_max.as_millis()
        );
        Err(Error::new(Kind::TooOld, message))
    }
}
