//! A registrar that keeps all registrations, for replay.

use std::sync::Mutex;

use terrane_base::Result;
use terrane_journal::{ListedSegment, SegmentRegistrar, SegmentSpec};

/// The registered segments, in the order of their registration.
#[derive(Debug, Default)]
pub(crate) struct Listed(pub(crate) Mutex<Vec<ListedSegment>>);

impl SegmentRegistrar for Listed {
    fn register(&self, spec: &SegmentSpec) -> Result<()> {
        self.0.lock().unwrap().push(ListedSegment { spec: *spec, seal: None });
        Ok(())
    }
}
