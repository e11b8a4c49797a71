//! Where a worker's operations come from: a generated stream or a recorded trace; either may be recorded on the way.

use std::sync::Arc;

use super::worker::Source;
use crate::error::{Error, Result};
use crate::generate::catalogue::{Definition, Kind};
use crate::generate::operation::Operation;
use crate::generate::space::KeySpace;
use crate::generate::stream::Stream;
use crate::plan::{Data, Run};

impl Source for Stream {
    fn next(&mut self, operation: &mut Operation) -> bool {
        Stream::next(self, operation)
    }
}

/// The source of a measured worker.
pub(super) fn open(
    definition: &Definition,
    run: &Run,
    data: &Data,
    space: &Arc<KeySpace>,
    seed: u64,
    thread: u32,
) -> Result<Box<dyn Source>> {
    if matches!(definition.kind, Kind::Replay) {
        return Err(Error::plan("replay"));
    }
    Ok(Box::new(Stream::new(definition, run, data, space.clone(), seed, thread, run.threads)?))
}
