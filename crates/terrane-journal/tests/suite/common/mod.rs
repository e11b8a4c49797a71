//! Helpers of the tests of the file journal: a manifest in memory, and an opening like the engine's.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "each test binary uses a part of it")]

use std::path::Path;
use std::sync::{Arc, Mutex};

use terrane_base::env::Env;
use terrane_base::{Batch, Error, Result, SegmentId, SeqNo, TableId};
use terrane_device::Disk;
use terrane_journal::{
    FileJournal, JournalSettings, JournalStart, ListedSegment, ReplaySettings, Replayed, SegmentRegistrar,
    SegmentSeal, SegmentSpec, file_number, replay,
};

pub const DIR: &str = "journal";

/// The part of a manifest that the journal needs; durable at once.
#[derive(Debug, Default)]
pub struct Manifest {
    pub listed: Mutex<Vec<ListedSegment>>,
    /// Registrations still to refuse.
    pub refuse: Mutex<u32>,
}

impl SegmentRegistrar for Manifest {
    fn register(&self, segment: &SegmentSpec) -> Result<()> {
        let mut refuse = self.refuse.lock().unwrap();
        if *refuse > 0 {
            *refuse -= 1;
            return Err(Error::invalid("registration refused by the test"));
        }
        let mut listed = self.listed.lock().unwrap();
        if listed.iter().all(|known| known.spec != *segment) {
            listed.push(ListedSegment { spec: *segment, seal: None });
        }
        Ok(())
    }
}

pub fn settings(segment_bytes: u64) -> JournalSettings {
    JournalSettings { segment_bytes, ..JournalSettings::default() }
}

/// One replayed record: number, key, value.
pub type Row = (u64, Vec<u8>, Vec<u8>);

/// Replays what the manifest lists; the records in commit order.
pub fn replay_rows(disk: &dyn Disk, listed: &[ListedSegment], floor: u64) -> Result<(Replayed, Vec<Row>)> {
    let rows = Mutex::new(Vec::new());
    let settings = ReplaySettings {
        threads: 2,
        durable_floor: SeqNo(floor),
        flushed: SeqNo(0),
        make_durable: true,
        salt: 0,
    };
    let replayed =
        replay(disk, Path::new(DIR), listed, &settings, &*Env::real().spawn, &|_, _, record, seq| {
            rows.lock().unwrap().push((seq.0, record.key.to_vec(), record.value.to_vec()));
            Ok(())
        })?;
    let mut rows = rows.into_inner().unwrap();
    rows.sort_unstable();
    assert!(rows.iter().zip(1..).all(|(row, index)| row.0 == rows[0].0 + index - 1), "no hole");
    Ok((replayed, rows))
}

/// Opens as the engine does: replay, record the ends, go on in new segments.
pub fn open(
    disk: &Arc<dyn Disk>,
    manifest: &Arc<Manifest>,
    settings: &JournalSettings,
) -> Result<(FileJournal, Vec<Row>)> {
    let (start, rows) = start(disk, manifest)?;
    let registrar = Arc::clone(manifest) as Arc<dyn SegmentRegistrar>;
    let journal =
        FileJournal::open(Arc::clone(disk), Path::new(DIR), settings, &Env::real(), registrar, &start)?;
    Ok((journal, rows))
}

/// The steps of an opening in front of the journal's own: replay, and record the ends.
pub fn start(disk: &Arc<dyn Disk>, manifest: &Arc<Manifest>) -> Result<(JournalStart, Vec<Row>)> {
    disk.create_dir(Path::new(DIR))?;
    let listed = manifest.listed.lock().unwrap().clone();
    let (replayed, rows) = replay_rows(&**disk, &listed, 0)?;
    let next_segment = SegmentId(listed.last().map_or(1, |last| last.spec.id.0 + 1));
    let used: Vec<ListedSegment> = replayed
        .segments
        .iter()
        .map(|sealed| ListedSegment {
            spec: sealed.spec,
            seal: Some(SegmentSeal { end: sealed.end, last_seq: sealed.last_seq }),
        })
        .collect();
    let (mut unlisted, mut next_file) = (Vec::new(), 1);
    for number in disk.list(Path::new(DIR))?.iter().filter_map(|name| file_number(name)) {
        next_file = next_file.max(number + 1);
        if used.iter().all(|segment| segment.spec.file != number) {
            unlisted.push(number);
        }
    }
    *manifest.listed.lock().unwrap() = used;
    Ok((replayed.start(next_segment, next_file, unlisted), rows))
}

pub fn put(key: &[u8], value: &[u8]) -> Batch {
    let mut batch = Batch::new();
    batch.put(TableId::DEFAULT, key, value).unwrap();
    batch
}
