//! Faults of calls of the device, and the calls at which they happen.

use std::io;
use std::path::Path;

use terrane_base::Error;
use terrane_device::{Call, MemDisk};

/// How a life of a process ends that does not end by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crash {
    /// The process dies; what it wrote is there.
    Kill,
    /// The power goes; what was not synced is there, torn or lost as the seed says.
    Power(u64),
    /// The power goes, and leaves the outcome of this number: see [`MemDisk::crash_as`].
    Outcome(u64),
}

impl Crash {
    /// The effect of the crash on the device.
    pub(crate) fn image(self, disk: &MemDisk) -> MemDisk {
        match self {
            Crash::Kill => disk.kill(),
            Crash::Power(seed) => disk.crash(seed),
            Crash::Outcome(number) => disk.crash_as(number),
        }
    }
}

/// The effect of a fault on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harm {
    /// EIO; of a write, half is done. A sync that fails this way may be tried again.
    Broken,
    /// ENOSPC.
    Full,
    /// A sync fails, and what it should have made durable counts as clean from then on.
    Lie,
    /// A read finds the file shorter than it is.
    Short,
    /// A read returns one wrong bit.
    Flip(u64),
    /// A write says that it was done and was not. Of a sync: none of the writes that it was to make durable
    /// is, and this shows when the power goes.
    Lost,
    /// A write goes to another place of its file. Of a sync: one page of what it was to make durable.
    Misdirected(u64),
}

impl Harm {
    /// Returns true if the call does nothing and says so.
    #[must_use]
    pub(crate) fn refuses(self) -> bool {
        matches!(self, Harm::Broken | Harm::Full)
    }

    /// The error of a call that is refused.
    #[cold]
    pub(crate) fn error(self, call: Call, path: &Path) -> Error {
        let cause = match self {
            Harm::Full => io::ErrorKind::StorageFull.into(),
            _ => io::Error::from_raw_os_error(EIO),
        };
        Error::io(format!("{call:?} of {}", path.display()), cause)
    }
}

const EIO: i32 = 5;

/// A harm, and the call it is done to: the `skip`-th of its kind from now, and if `lasting` every later one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The kind of call.
    pub(crate) call: Call,
    /// Only on paths that contain this.
    pub(crate) path_part: String,
    /// The effect.
    pub(crate) harm: Harm,
    /// Calls that pass before.
    pub(crate) skip: u64,
    /// True if it is done to every later call, too.
    pub(crate) lasting: bool,
}

/// How often what was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Struck {
    /// Calls refused with EIO.
    pub(crate) broken: u64,
    /// Calls refused with ENOSPC.
    pub(crate) full: u64,
    /// Syncs that failed and lied.
    pub(crate) lies: u64,
    /// Reads and writes harmed without a word.
    pub(crate) silent: u64,
    /// Writes and syncs among them, which damaged stored bytes.
    pub(crate) damage: u64,
    /// Those that hit the manifest, or the file that names it.
    pub(crate) manifest: u64,
    /// Syncs of segments that lost what they were to make durable.
    pub(crate) segments_lost: u64,
    /// Syncs of segments that put a page elsewhere.
    pub(crate) segments_mixed: u64,
}

impl Struck {
    fn add_silent(&mut self, harm: Harm, path: &str) {
        self.silent += 1;
        let (is_lost, is_mixed) = (harm == Harm::Lost, matches!(harm, Harm::Misdirected(_)));
        let is_damage = is_lost || is_mixed;
        self.damage += u64::from(is_damage);
        self.manifest += u64::from(is_damage && (path.contains("MANIFEST") || path.contains("CURRENT")));
        self.segments_lost += u64::from(is_lost && path.ends_with(".seg"));
        self.segments_mixed += u64::from(is_mixed && path.ends_with(".seg"));
    }

    /// All of them.
    #[must_use]
    pub(crate) fn sum(&self) -> u64 {
        self.broken + self.full + self.lies + self.silent
    }

    /// Returns true if the stored bytes may be unknown: a write or sync failed, and not for want of space.
    #[must_use]
    pub(crate) fn may_poison(&self) -> bool {
        self.broken + self.lies > 0
    }
}

/// The planned events of a device.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    faults: Vec<Fault>,
    /// Changing calls still to pass before the crash.
    pub(crate) crash: Option<(u64, Crash)>,
    pub(crate) struck: Struck,
    pub(crate) changes: u64,
}

impl Plan {
    pub(crate) fn add(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    /// The faults that may still strike.
    pub(crate) fn pending(&self) -> Vec<Fault> {
        self.faults.iter().filter(|fault| fault.skip < u64::MAX).cloned().collect()
    }

    pub(crate) fn heal(&mut self) {
        self.faults.clear();
    }

    /// Counts a call; says whether the crash is now.
    pub(crate) fn count(&mut self, call: Call) -> Option<Crash> {
        if !call.changes() {
            return None;
        }
        self.changes += 1;
        match &mut self.crash {
            Some((0, crash)) => Some(*crash),
            Some((left, _)) => {
                *left -= 1;
                None
            }
            None => None,
        }
    }

    /// The fault that hits a call, if one does.
    pub(crate) fn harm(&mut self, call: Call, path: &str) -> Option<Harm> {
        let mut done = None;
        for fault in &mut self.faults {
            if fault.call != call || !path.contains(&fault.path_part) {
                continue;
            }
            if fault.skip > 0 {
                fault.skip -= 1;
            } else if done.is_none() {
                done = Some(fault.harm);
                fault.skip = if fault.lasting { 0 } else { u64::MAX };
            }
        }
        match done {
            Some(Harm::Broken) => self.struck.broken += 1,
            Some(Harm::Full) if leaves_doubt(call, path) => self.struck.broken += 1,
            Some(Harm::Full) => self.struck.full += 1,
            Some(Harm::Lie) => self.struck.lies += 1,
            Some(harm) => self.struck.add_silent(harm, path),
            None => {}
        }
        done
    }
}

/// Returns true if the stored bytes are unknown after a call that is refused for want of space. A sync is a
/// failed sync then: there is no going on. After a rename it is unknown which file has the name, and a
/// manifest that cannot be cut may keep half a record.
fn leaves_doubt(call: Call, path: &str) -> bool {
    matches!(call, Call::Sync | Call::SyncDir | Call::Rename)
        || call == Call::SetLen && path.contains("MANIFEST")
}
