//! Replay: from segments back to records, checked.
//!
//! 1. *Scan* every listed segment, in parallel: read it (an I/O error is an error then, not a signal), map it,
//!    walk its sound groups, look for durable-end marks also behind the first damage ([`scan`]).
//! 2. *Link* the scans in order: the longest run in which each segment header names exactly the end of the
//!    segment before it. What follows that run is not used.
//! 3. *Judge* the place where the run ends, by the greatest durable-end mark seen anywhere:
//!
//!    | records behind the run | greatest mark or floor | verdict |
//!    |---|---|---|
//!    | no sign of any | up to the run's end | the end |
//!    | signs of some | up to the run's end | torn tail: cut, reported in [`Replayed::cut`] |
//!    | any | beyond the run's end | corruption: something durable is gone |
//!
//! 4. *Index* the run's records, in parallel, in pieces of about a mebibyte.
//!
//! Replay never writes. The caller records the ends of all used segments in the manifest, drops the unused
//! ones from it, and goes on in new segments; so a crash at any point repeats the same replay, and bytes behind
//! a recorded end are ignored for ever.

mod index;
mod rewrite;
mod scan;

use std::path::Path;
use std::sync::Arc;

use terrane_base::env::Spawn;
use terrane_base::record::Record;
use terrane_base::sync::Mutex;
use terrane_base::{Error, Result, SegmentId, SeqNo};
use terrane_device::{Disk, OpenMode, SegmentMemory};

use crate::fork::fork_join;
use crate::{ChainLink, JournalStart, SealedSegment, SegmentSpec};
pub use rewrite::{
    BatchJudge, FoundBatch, NewNames, Rewritten, discard, pending_name, pending_number, rewrite,
};
use scan::Scan;
pub use scan::{SegmentBytes, segment_in_file};

/// What the manifest knows of a listed segment.
#[derive(Clone, Copy, Debug)]
pub struct ListedSegment {
    /// As it was registered.
    pub spec: SegmentSpec,
    /// Where it ends, if an earlier replay was recorded.
    pub seal: Option<SegmentSeal>,
}

/// The recorded end of a segment: bytes behind it do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSeal {
    /// Bytes that count, from the front.
    pub end: u64,
    /// Number of the last record up to there.
    pub last_seq: SeqNo,
}

/// How to replay.
#[derive(Clone, Copy, Debug)]
pub struct ReplaySettings {
    /// Threads to use, the calling one included; at least 1.
    pub threads: usize,
    /// Everything up to this number was durable as far as the manifest knows.
    pub durable_floor: SeqNo,
    /// Everything up to this number is not needed from the journal. Only used if the first segment's header is
    /// not there, which otherwise says where the journal begins.
    pub flushed: SeqNo,
    /// Sync the used segments at the end, so that their ends may be recorded: what a killed process wrote is
    /// readable, but perhaps not yet durable. False for opening read-only.
    pub settle: bool,
    /// That of the database: a segment of another salt is none of this journal's.
    pub salt: u32,
}

/// Receives each record with its segment and the offset at which it lies there. Called from many threads at
/// once, in no order; an error ends the replay.
pub type RecordSink<'a> = dyn Fn(&Arc<SegmentMemory>, usize, &Record<'_>, SeqNo) -> Result<()> + Sync + 'a;

/// A torn tail: what lies behind it was never durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The segment in which the journal ends.
    pub id: SegmentId,
    /// Its file.
    pub file: String,
    /// Where its sound part ends.
    pub offset: u64,
    /// What was expected there and what was found.
    pub reason: String,
}

/// What replay found.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// Number of the last record; that of the last one before the journal if it holds none.
    pub last_seq: SeqNo,
    /// What was cut off, if anything was.
    pub cut: Option<Cut>,
    /// The used segments, oldest first; each ends where the next one, or the cut, says.
    pub segments: Vec<SealedSegment>,
    /// Listed segments without a usable byte: the caller drops them from the manifest; their files are spare.
    pub unused: Vec<SegmentSpec>,
    /// The last used segment as the next one must name it.
    pub link: ChainLink,
    /// Bytes of the used parts.
    pub bytes: u64,
    /// The last edit of the manifest that was durable as far as the journal knows.
    pub edit: u64,
    /// As the settings said.
    pub salt: u32,
}

impl Replayed {
    /// Where the journal goes on, in new segments.
    #[must_use]
    pub fn start(
        self,
        next_segment: SegmentId,
        next_file: u32,
        spare_files: Vec<(u32, u64)>,
    ) -> JournalStart {
        JournalStart {
            next_segment,
            next_file,
            next_seq: SeqNo(self.last_seq.0 + 1),
            previous: ChainLink { last_seq: self.last_seq, ..self.link },
            salt: self.salt,
            spare_files,
            replayed: self.segments,
        }
    }
}

/// Replays the listed segments, oldest first, of directory `dir`; see the head of the file.
///
/// # Errors
/// `Corrupt`, naming file and offset, if something that was durable is missing or damaged, or a listed file is
/// missing or too short; `Io`; whatever `sink` returns.
pub fn replay(
    disk: &dyn Disk,
    dir: &Path,
    listed: &[ListedSegment],
    settings: &ReplaySettings,
    spawn: &dyn Spawn,
    sink: &RecordSink<'_>,
) -> Result<Replayed> {
    if let Some(pair) = listed.windows(2).find(|pair| pair[0].spec.id >= pair[1].spec.id) {
        let (first, second) = (pair[0].spec.id, pair[1].spec.id);
        return Err(Error::corrupt(format!("the list of segments names {first} before {second}")));
    }
    let mode = if settings.settle { OpenMode::Write } else { OpenMode::Read };
    let scans = run_tasks(spawn, settings.threads, listed, &|listed| {
        scan::scan(disk, dir, listed, mode, settings.salt)
    })?;
    let run = link(&scans, settings)?;
    judge(&scans, &run, settings)?;
    let used: Vec<&Scan> = run.used.iter().map(|&index| &scans[index]).collect();
    let pieces: Vec<_> =
        used.iter().flat_map(|scan| scan.pieces.iter().map(|piece| (*scan, piece))).collect();
    run_tasks(spawn, settings.threads, &pieces, &|(scan, piece)| index::index(scan, piece, sink))?;
    if settings.settle && !terrane_base::planted!(SkipSettleSync) {
        let durable = durable_through(&scans, settings);
        for scan in used.iter().filter(|scan| scan.listed.seal.is_none()) {
            scan.settle(durable)?;
        }
    }
    let segments: Vec<SealedSegment> = used.iter().map(|scan| scan.sealed()).collect();
    Ok(Replayed {
        last_seq: run.last_seq,
        cut: run.cut(&scans),
        unused: (0..scans.len()).filter(|i| !run.used.contains(i)).map(|i| scans[i].listed.spec).collect(),
        link: segments.last().map_or_else(ChainLink::default, SealedSegment::link),
        bytes: segments.iter().map(|segment| segment.end).sum(),
        edit: scans.iter().map(|scan| scan.edit).max().unwrap_or(0),
        salt: settings.salt,
        segments,
    })
}

/// The longest run of segments in which each continues the one before it.
struct Run {
    /// Indexes of its scans.
    used: Vec<usize>,
    last_seq: SeqNo,
    /// Why the segment that should follow does not.
    broken: Option<String>,
}

impl Run {
    /// Where the run ends: a scan, and an offset in it.
    fn end<'a>(&self, scans: &'a [Scan]) -> Option<(&'a Scan, u64)> {
        match self.used.last() {
            Some(&last) => Some((&scans[last], scans[last].end.offset as u64)),
            None => scans.first().map(|first| (first, 0)),
        }
    }

    fn reason(&self, scan: &Scan) -> String {
        match &self.broken {
            Some(broken) => format!("{}; {broken}", scan.stop_reason),
            None => scan.stop_reason.clone(),
        }
    }

    /// What lies behind the run, if there is any sign of it.
    fn cut(&self, scans: &[Scan]) -> Option<Cut> {
        let (scan, offset) = self.end(scans)?;
        let behind = self.used.last().map_or(0, |last| last + 1);
        let has_more = !self.used.is_empty() && scan.has_more
            || scans[behind..].iter().any(|scan| scan.header.is_ok() || scan.has_more);
        has_more.then(|| Cut {
            id: scan.listed.spec.id,
            file: scan.path.clone(),
            offset,
            reason: self.reason(scan),
        })
    }
}

/// Step 2.
fn link(scans: &[Scan], settings: &ReplaySettings) -> Result<Run> {
    let mut run = Run { used: Vec::new(), last_seq: settings.flushed, broken: None };
    let mut link: Option<ChainLink> = None;
    for (index, scan) in scans.iter().enumerate() {
        let Ok(header) = &scan.header else {
            // Prepared and never used, or lost. If it was lost, no later segment links to the run.
            continue;
        };
        if let Some(link) = link
            && header.previous != link
            && !terrane_base::planted!(AcceptBrokenChain)
        {
            let broken = format!(
                "expected {} to follow {link}, found that it follows {}",
                scan.listed.spec.id, header.previous
            );
            // A lost end makes the run shorter than the successor says. Nothing that a crash does makes it
            // longer, or different at the same length.
            if header.previous.last_seq <= link.last_seq {
                return Err(
                    Error::corrupt(format!("segments do not belong together: {broken}")).at(&*scan.path, 0)
                );
            }
            run.broken = Some(broken);
            break;
        }
        // The first used segment follows one that is trimmed; a listed one before it that was lost breaks the run.
        if link.is_none()
            && header.previous.id >= scans[0].listed.spec.id
            && !terrane_base::planted!(ForgetLostSegment)
        {
            run.broken = Some(format!("{} follows {}, which is lost", scan.listed.spec.id, header.previous));
            break;
        }
        link = Some(scan.link());
        run.last_seq = scan.end.last_seq;
        run.used.push(index);
    }
    Ok(run)
}

/// Up to which number the journal was durable, as far as manifest and marks say.
fn durable_through(scans: &[Scan], settings: &ReplaySettings) -> SeqNo {
    scans.iter().filter_map(|scan| scan.durable).fold(settings.durable_floor, SeqNo::max)
}

/// Step 3.
fn judge(scans: &[Scan], run: &Run, settings: &ReplaySettings) -> Result<()> {
    let durable = durable_through(scans, settings);
    let Some((scan, offset)) = run.end(scans) else { return Ok(()) };
    if durable <= run.last_seq || terrane_base::planted!(CutDurableDamage) {
        return Ok(());
    }
    Err(Error::corrupt(format!(
        "the journal was durable up to {durable}, but is sound only up to {}: {}",
        run.last_seq,
        run.reason(scan)
    ))
    .at(&*scan.path, offset))
}

/// Runs `each` over all tasks on `threads` threads; results in order, or the error of the first failed task.
fn run_tasks<T: Sync, R: Send>(
    spawn: &dyn Spawn,
    threads: usize,
    tasks: &[T],
    each: &(dyn Fn(&T) -> Result<R> + Sync),
) -> Result<Vec<R>> {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let results: Vec<Mutex<Option<Result<R>>>> = tasks.iter().map(|_| Mutex::new(None)).collect();
    let failed = std::sync::atomic::AtomicBool::new(false);
    fork_join(spawn, threads.clamp(1, tasks.len().max(1)), &|| {
        use std::sync::atomic::Ordering::Relaxed;
        // Relaxed: the counter shares out tasks, the locks and the join carry the data.
        while !failed.load(Relaxed) {
            let index = next.fetch_add(1, Relaxed);
            let Some(task) = tasks.get(index) else { break };
            let result = each(task);
            failed.fetch_or(result.is_err(), Relaxed);
            *results[index].lock() = Some(result);
        }
    });
    // Tasks are taken in order, so whatever was not done comes behind the error.
    results.into_iter().map_while(Mutex::into_inner).collect()
}
