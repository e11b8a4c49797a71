//! The checker's region without some flushes and fences: the bugs that the checker must find.
//!
//! Which thread may touch what: the region has no state; the test's choice is called by the thread that makes
//! the step, beside other threads.

use std::fmt;
use std::sync::Arc;

use terrane_base::Result;
use terrane_device::pm::{PmRegion, Survives};

use super::Shadowed;

/// A step that may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A flush of a range that begins at this offset.
    Flush(u64),
    /// A fence.
    Fence,
}

/// A checked region without the flushes and fences that a choice names: they succeed, and do nothing.
pub struct Omitting {
    region: Arc<Shadowed>,
    omits: Box<dyn Fn(Step) -> bool + Send + Sync>,
}

impl Omitting {
    /// `region` without the steps for which `omits` returns true.
    pub fn new(region: Arc<Shadowed>, omits: impl Fn(Step) -> bool + Send + Sync + 'static) -> Self {
        Omitting { region, omits: Box::new(omits) }
    }

    /// The region with all that was not left out.
    #[must_use]
    pub fn region(&self) -> &Shadowed {
        &self.region
    }
}

impl fmt::Debug for Omitting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Omitting").field(&self.region).finish()
    }
}

impl PmRegion for Omitting {
    fn len(&self) -> u64 {
        self.region.len()
    }

    fn survives(&self) -> Survives {
        self.region.survives()
    }

    fn load(&self, offset: u64) -> Result<u64> {
        self.region.load(offset)
    }

    fn store(&self, offset: u64, word: u64) -> Result<()> {
        self.region.store(offset, word)
    }

    fn exchange(&self, offset: u64, expected: u64, word: u64) -> Result<u64> {
        self.region.exchange(offset, expected, word)
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.region.read(offset, bytes)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.region.write(offset, bytes)
    }

    fn stream(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.region.stream(offset, bytes)
    }

    fn flush(&self, offset: u64, len: u64) -> Result<()> {
        if (self.omits)(Step::Flush(offset)) { Ok(()) } else { self.region.flush(offset, len) }
    }

    fn fence(&self) -> Result<()> {
        if (self.omits)(Step::Fence) { Ok(()) } else { self.region.fence() }
    }
}
