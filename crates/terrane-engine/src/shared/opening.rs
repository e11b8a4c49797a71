//! Which opening of a database this is, what it shows, and whether its close has begun.

use std::time::Duration;

use terrane_base::sync::atomic::{AtomicBool, Ordering};
use terrane_base::{Error, Result, SeqNo};
use terrane_device::ProcessUsage;

/// How many databases this process has opened.
static INSTANCES: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

/// See the [module](self).
pub(crate) struct Opening {
    instance: u64,
    /// Where manifest and extents lie, if not in the directory.
    elsewhere: Option<String>,
    /// The last commit that is shown, if this is an earlier moment: the journal has later ones.
    until: Option<SeqNo>,
    /// Opened for reading only: sound records behind a break of the journal, which are not shown.
    behind_break: Vec<Error>,
    /// The processor time that the process had taken before.
    processor_time: Duration,
    is_closing: AtomicBool,
}

impl Opening {
    /// Returns true if manifest and extents do not lie in the directory.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.elsewhere.is_some()
    }

    /// The next opening of this process.
    pub(crate) fn new(elsewhere: Option<&str>, until: Option<SeqNo>, behind_break: Vec<Error>) -> Opening {
        let instance = INSTANCES.fetch_add(1, Ordering::Relaxed) + 1;
        debug_assert!(instance > 0, "0 names no opening");
        Opening {
            instance,
            elsewhere: elsewhere.map(str::to_owned),
            until,
            behind_break,
            processor_time: processor_time(),
            is_closing: AtomicBool::new(false),
        }
    }

    /// Tells it from every other opened database of this process, at any time; from 1.
    #[inline]
    pub(crate) fn instance(&self) -> u64 {
        self.instance
    }

    /// Returns true if an earlier moment is shown.
    pub(crate) fn shows_earlier_moment(&self) -> bool {
        self.until.is_some()
    }

    /// Sound records behind a break of the journal that a reader does not show: one error for each place.
    pub(crate) fn behind_break(&self) -> &[Error] {
        &self.behind_break
    }

    /// The processor time that the process has taken since.
    pub(crate) fn processor_time(&self) -> Duration {
        processor_time().saturating_sub(self.processor_time)
    }

    /// Refuses `what` for a database whose manifest and extents do not lie in its directory.
    pub(crate) fn refuse_elsewhere(&self, what: &str, remedy: &str) -> Result<()> {
        match &self.elsewhere {
            None => Ok(()),
            Some(address) => Err(Error::invalid(format!(
                "{what} needs manifest and extents in the database's directory, and they lie in {address}: {remedy}"
            ))),
        }
    }

    /// Begins the close; false if it has begun before.
    pub(crate) fn begin_close(&self) -> bool {
        !self.is_closing.swap(true, Ordering::AcqRel)
    }

    /// Returns true if the close has begun. Acquire: pairs with the swap of [`Opening::begin_close`].
    #[inline]
    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    /// Set when the close has begun.
    pub(crate) fn closing_flag(&self) -> &AtomicBool {
        &self.is_closing
    }
}

/// The processor time that all threads of this process have taken; 0 where the kernel does not say.
fn processor_time() -> Duration {
    ProcessUsage::now().map_or(Duration::ZERO, |usage| usage.user_time + usage.system_time)
}
