//! Log lines about options of calls that have no effect, and the refusal of such options in strict mode.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::callbacks::logger::Logger;
use crate::db::{Database, Family};
use crate::ffi::failure::Result;
use crate::options::ReadOptions;
use crate::options::ignored::{IgnoredInCalls, is_strict, lines_of, refuse_calls};

/// The notices of one database: each option is named once.
#[derive(Default)]
pub(crate) struct Notices {
    /// True if such options are refused, as the environment said at the opening.
    is_strict: bool,
    /// The options that were named, as a set.
    named: AtomicU64,
    /// Where lines go that are about the whole database.
    pub(crate) logger: OnceLock<Arc<Logger>>,
}

impl Notices {
    /// Those of a database that is being opened: none yet.
    pub(crate) fn new() -> Notices {
        Notices { is_strict: is_strict(), ..Notices::default() }
    }

    /// Names the options of a set that were not named before; in strict mode refuses them.
    ///
    /// # Errors
    /// `Not implemented` in strict mode, with all their names.
    #[cold]
    pub(crate) fn note(&self, ignored: u64) -> Result<()> {
        if ignored == 0 {
            return Ok(());
        }
        if self.is_strict {
            return refuse_calls(ignored);
        }
        // Relaxed: the set is all that threads share. It is read first, so that a caller that passes such an
        // option with each call writes no shared line.
        if self.named.load(Ordering::Relaxed) & ignored == ignored {
            return Ok(());
        }
        let named = self.named.fetch_or(ignored, Ordering::Relaxed);
        for line in lines_of(ignored & !named) {
            self.warn(&line);
        }
        Ok(())
    }

    /// Logs a line, if there is a logger.
    pub(crate) fn warn(&self, line: &str) {
        if let Some(logger) = self.logger.get() {
            logger.warn(line);
        }
    }
}

impl Database {
    /// As [`Notices::note`].
    pub(crate) fn note_ignored(&self, ignored: u64) -> Result<()> {
        self.notices().note(ignored)
    }

    /// [`note_ignored`](Self::note_ignored) of the options of a call.
    pub(crate) fn note_options<O: IgnoredInCalls>(&self, options: Option<&O>) -> Result<()> {
        self.note_ignored(options.map_or(0, O::ignored))
    }
}

impl Family {
    /// As [`Notices::note`], of the options of a read: one branch where they set nothing of the sort.
    #[inline]
    pub(crate) fn note_read(&self, options: Option<&ReadOptions>) -> Result<()> {
        match options.map_or(0, ReadOptions::kept_ignored) {
            0 => Ok(()),
            ignored => self.notices.note(ignored),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_named_once_and_refused_each_time_in_strict_mode() {
        let notices = Notices::default();
        notices.note(0b101).expect("it is not strict");
        notices.note(0b100).expect("named before");
        assert_eq!(notices.named.load(Ordering::Relaxed), 0b101);
        let strict = Notices { is_strict: true, ..Notices::default() };
        strict.note(0).expect("no option");
        for _ in 0..2 {
            strict.note(1).expect_err("refused");
        }
        assert_eq!(strict.named.load(Ordering::Relaxed), 0, "a refused option is not named");
    }
}
