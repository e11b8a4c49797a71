//! The alternative to the mapping: heap segments, each group written to the file with one `pwrite`.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use terrane_base::{Result, SegmentId, SeqNo};
use terrane_device::{Disk, File, OpenMode, Region, SegmentMemory};
use terrane_journal::{Medium, NewSegment, SealedEnd, SegmentInfo};

/// Files are preallocated and, like those of the product, reused after they are trimmed.
pub(crate) struct WrittenMedium {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    segment_bytes: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    segments: u64,
    active: Option<Arc<dyn File>>,
    unsynced: Vec<Arc<dyn File>>,
    /// Two files and regions in turn: the bench trims everything that is sealed.
    spares: Vec<(Arc<dyn File>, Region)>,
    sealed: Vec<(Arc<dyn File>, Arc<SegmentMemory>)>,
    memory: Option<Arc<SegmentMemory>>,
}

impl WrittenMedium {
    pub(crate) fn new(disk: Arc<dyn Disk>, dir: &Path, segment_bytes: u64) -> Self {
        let medium = WrittenMedium {
            disk,
            dir: dir.to_owned(),
            segment_bytes: segment_bytes as usize,
            state: Mutex::default(),
        };
        for number in 0..3 {
            let file =
                medium.disk.open(&medium.dir.join(format!("w{number}")), OpenMode::Create, false).unwrap();
            file.allocate(0, segment_bytes).unwrap();
            file.sync().unwrap();
            let region = Region::heap(medium.segment_bytes);
            region.prefault().unwrap();
            medium.state.lock().unwrap().spares.push((file, region));
        }
        medium
    }
}

impl Medium for WrittenMedium {
    fn rotate(&self, _bytes: usize, _sealed: Option<&SealedEnd>) -> Result<NewSegment> {
        let mut state = self.state.lock().unwrap();
        if let (Some(file), Some(memory)) = (state.active.take(), state.memory.take()) {
            state.unsynced.push(Arc::clone(&file));
            state.sealed.push((file, memory));
        }
        let sealed = std::mem::take(&mut state.sealed);
        for (file, memory) in sealed {
            match Arc::try_unwrap(memory) {
                Ok(memory) => state.spares.push((file, memory.region)),
                Err(memory) => state.sealed.push((file, memory)),
            }
        }
        let (file, region) = state.spares.remove(0);
        state.segments += 1;
        let memory = Arc::new(SegmentMemory { id: SegmentId(state.segments), region });
        state.active = Some(file);
        state.memory = Some(Arc::clone(&memory));
        Ok(NewSegment { memory, file: 0 })
    }

    fn write(&self, segment: &SegmentMemory, offset: usize, len: usize) -> Result<()> {
        // SAFETY: the leader hands over a range that no thread writes any more.
        let bytes = unsafe { segment.region.slice(offset, len) };
        let state = self.state.lock().unwrap();
        state.active.as_ref().expect("rotated").write_at(offset as u64, bytes)
    }

    fn persist(&self) -> Result<()> {
        let mut state = self.state.lock().unwrap();
        let unsynced = std::mem::take(&mut state.unsynced);
        let active = state.active.clone();
        drop(state);
        unsynced.iter().chain(active.iter()).try_for_each(|file| file.sync())
    }

    fn durable(&self) -> SeqNo {
        SeqNo(0)
    }

    fn segments(&self) -> Vec<SegmentInfo> {
        Vec::new()
    }

    fn live_memory(&self) -> Vec<terrane_journal::LiveMemory> {
        Vec::new()
    }

    fn trim(&self, _upto: SegmentId) -> Result<Vec<SegmentId>> {
        Ok(Vec::new())
    }

    fn stop(&self) {}
}
