//! The tail of the manifest: the writer, its size, when it rolls, and whether it is usable.

use terrane_base::{Error, Kind, Result};

use super::log::ManifestLog;
use crate::state::State;

/// When a manifest rolls over to a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManifestSettings {
    /// Below this many bytes of edits it never rolls. Default 1 MiB.
    pub roll_bytes_min: u64,
    /// It rolls when the edits are this many times larger than the snapshot. Default 4.
    pub roll_factor: u64,
    /// Above this many bytes of edits it always rolls: bounds the time that opening takes. Default 16 MiB.
    pub roll_bytes_max: u64,
    /// From this many records of edits on it always rolls: bounds what opening fetches one by one where each
    /// record is an object. Default: no limit, as files are read in one go.
    pub roll_edits_max: u64,
}

impl Default for ManifestSettings {
    fn default() -> Self {
        ManifestSettings {
            roll_bytes_min: 1 << 20,
            roll_factor: 4,
            roll_bytes_max: 16 << 20,
            roll_edits_max: u64::MAX,
        }
    }
}

/// The size of a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManifestSize {
    /// Number of the file, or of the object with the snapshot.
    pub file: u64,
    /// Bytes of the snapshot at its front.
    pub snapshot_bytes: u64,
    /// Bytes of the edits after it.
    pub edit_bytes: u64,
    /// Records of edits after it.
    pub edits: u64,
}

#[derive(Debug)]
pub(super) struct Tail {
    /// `None` if opened for reading only.
    pub(super) log: Option<Box<dyn ManifestLog>>,
    pub(super) size: ManifestSize,
    poison: Option<Error>,
    /// Bytes of edits at which a roll is tried.
    roll_at: u64,
    /// Records of edits at which a roll is tried.
    roll_at_edits: u64,
}

impl ManifestSettings {
    pub(super) fn roll_at(&self, snapshot_bytes: u64) -> u64 {
        let by_snapshot = snapshot_bytes.saturating_mul(self.roll_factor);
        by_snapshot.min(self.roll_bytes_max).max(self.roll_bytes_min)
    }
}

impl Tail {
    pub(super) fn new(
        log: Option<Box<dyn ManifestLog>>,
        size: ManifestSize,
        settings: &ManifestSettings,
    ) -> Self {
        let (roll_at, roll_at_edits) = (settings.roll_at(size.snapshot_bytes), settings.roll_edits_max);
        Tail { log, size, poison: None, roll_at, roll_at_edits }
    }

    pub(super) fn check_usable(&self) -> Result<()> {
        if self.log.is_none() {
            return Err(Error::invalid("the database is open for reading only"));
        }
        match &self.poison {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Number of the last record of the log.
    pub(super) fn number(&self) -> u64 {
        self.log.as_ref().expect("checked by check_usable").number()
    }

    pub(super) fn append(&mut self, payload: &[u8]) -> Result<()> {
        debug_assert!(self.poison.is_none(), "nothing is appended behind an edit whose outcome is unknown");
        let log = self.log.as_mut().expect("checked by check_usable");
        let before = self.size.edit_bytes;
        let result = log.append(payload);
        self.size = log.size();
        assert!(self.size.edit_bytes > before || result.is_err(), "an edit is durable and not in the file");
        debug_assert!(self.size.edits > 0 || result.is_err(), "an edit is durable and not counted");
        self.note(&result);
        result
    }

    pub(super) fn roll_if_due(&mut self, state: &State, settings: &ManifestSettings) {
        if self.size.edit_bytes > self.roll_at || self.size.edits >= self.roll_at_edits {
            // The edit that led here is durable in any case. A failure that matters is kept as poison; after
            // any other the old file stays in use and `roll_at` is raised.
            let _ = self.roll(state, settings);
        }
        debug_assert!(
            self.size.edit_bytes <= self.roll_at,
            "a file has fewer bytes of edits than make it roll, not {}",
            self.size.edit_bytes
        );
    }

    pub(super) fn roll(&mut self, state: &State, settings: &ManifestSettings) -> Result<()> {
        debug_assert!(self.poison.is_none(), "no file begins behind an edit whose outcome is unknown");
        let log = self.log.as_mut().expect("checked by check_usable");
        let result = log.roll(state);
        self.size = log.size();
        debug_assert!(self.size.edit_bytes == 0 || result.is_err(), "a new file begins without edits");
        (self.roll_at, self.roll_at_edits) = match &result {
            Ok(()) => (settings.roll_at(self.size.snapshot_bytes), settings.roll_edits_max),
            // Never below what the settings ask for: a roll that failed early must not make rolls frequent.
            Err(_) => {
                let least = settings.roll_at(self.size.snapshot_bytes);
                let (bytes, edits) = (self.size.edit_bytes, self.size.edits);
                (bytes.saturating_mul(2).max(least), edits.saturating_mul(2).max(settings.roll_edits_max))
            }
        };
        self.note(&result);
        result
    }

    /// Checks that this is still the writer of the log.
    pub(super) fn check(&mut self) -> Result<()> {
        self.check_usable()?;
        let result = self.log.as_mut().expect("checked by check_usable").check();
        self.note(&result);
        result
    }

    /// Records a failure after which nothing may be appended.
    fn note(&mut self, result: &Result<()>) {
        debug_assert!(self.poison.is_none(), "the first failure is the cause, and nothing follows it");
        if let Err(error) = result
            && error.kind() == Kind::Poisoned
            && !terrane_base::planted!(GoOnAfterManifestFailure)
        {
            let error = error.clone();
            self.poison = Some(
                error.context("the manifest cannot be written after a failed write: reopen the database"),
            );
        }
    }
}
