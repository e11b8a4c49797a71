//! Replay: reads the records back from the segments, checked.
//!
//! 1. *Scan* every listed segment, in parallel: read it (so that an I/O error is an error and not a signal),
//!    map it, walk its valid groups, and look for durable-end marks also after the first damage ([`scan`]).
//! 2. *Link* the scans in order: the longest run in which each segment header names exactly the end of the
//!    segment before it. Segments after that run are not used.
//! 3. *Check* the end of the run against the greatest durable-end mark in any segment:
//!
//!    | records after the run | greatest mark or floor | verdict |
//!    |---|---|---|
//!    | no sign of any | up to the run's end | the end |
//!    | signs of some | up to the run's end | torn tail: cut, reported in [`Replayed::cut`] |
//!    | any | beyond the run's end | corruption: durable records are lost |
//!
//! 4. *Index* the run's records, in parallel, in pieces of about one mebibyte.
//!
//! Sound groups may lie behind the end: after a loss of power, which keeps some pages and not others, or
//! behind a damaged byte of what was never synced. They are not a part of the journal. Replay names them
//! ([`Replayed::behind`]), and an opening for writing sets them aside first ([`set_aside`]).
//!
//! Replay never writes. The caller records the ends of all used segments in the manifest, removes the unused
//! ones from it, and continues in new segments. So a crash at any point repeats the same replay, and bytes
//! after a recorded end are ignored for ever.

mod aside;
mod behind;
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
pub use aside::{ASIDE_FILES_MAX, AsideLimits, Outcome, discard_unfinished_aside, set_aside};
pub use behind::Behind;
pub use rewrite::{
    BatchFilter, FoundBatch, NewNames, Rewritten, discard, pending_name, pending_number, rewrite,
};
use scan::Scan;
pub use scan::{SegmentBytes, segment_in_file};

/// A listed segment, as the manifest knows it.
#[derive(Clone, Copy, Debug)]
pub struct ListedSegment {
    /// As it was registered.
    pub spec: SegmentSpec,
    /// Its end, if an earlier replay was recorded.
    pub seal: Option<SegmentSeal>,
}

/// The recorded end of a segment: bytes after it are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSeal {
    /// Valid bytes, from the front.
    pub end: u64,
    /// Number of the last record up to there.
    pub last_seq: SeqNo,
}

/// Settings of a replay.
#[derive(Clone, Copy, Debug)]
pub struct ReplaySettings {
    /// Number of threads, including the caller; at least 1.
    pub threads: usize,
    /// Everything up to this number was durable according to the manifest.
    pub durable_floor: SeqNo,
    /// The extents hold everything up to this number. Used only if the first segment's header is missing,
    /// which otherwise says where the journal begins.
    pub flushed: SeqNo,
    /// Syncs the used segments at the end, so that their ends may be recorded: what a killed process wrote is
    /// readable, but perhaps not yet durable. False for opening read-only.
    pub make_durable: bool,
    /// The salt of the database: a segment with another salt does not belong to this journal.
    pub salt: u32,
}

/// Receives each record with its segment and its offset there. Called from many threads at once, in no order;
/// an error ends the replay.
pub type RecordSink<'a> = dyn Fn(&Arc<SegmentMemory>, usize, &Record<'_>, SeqNo) -> Result<()> + Sync + 'a;

/// A torn tail: the bytes after it were never durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The segment in which the journal ends.
    pub id: SegmentId,
    /// Name of its file.
    pub file: String,
    /// End of its valid part.
    pub offset: u64,
    /// The expected and the found state there.
    pub reason: String,
}

/// The result of a replay.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// Number of the last record; if the journal holds none, of the last record before it.
    pub last_seq: SeqNo,
    /// The torn tail, if there was one.
    pub cut: Option<Cut>,
    /// Sound groups behind that end, in the order of their segments.
    pub behind: Vec<Behind>,
    /// The used segments, oldest first, each with its end.
    pub segments: Vec<SealedSegment>,
    /// Listed segments without a valid byte: the caller removes them from the manifest; then their files are
    /// unlisted.
    pub unused: Vec<SegmentSpec>,
    /// Link of the last used segment, which the next one must contain.
    pub link: ChainLink,
    /// Bytes of all valid parts.
    pub bytes: u64,
    /// The last manifest edit that was durable according to the journal.
    pub edit: u64,
    /// From the settings.
    pub salt: u32,
}

impl Replayed {
    /// The position at which the journal continues, in new segments.
    #[must_use]
    pub fn start(self, next_segment: SegmentId, next_file: u32, unlisted_files: Vec<u32>) -> JournalStart {
        let mut ends = self.segments.iter().map(|segment| segment.last_seq);
        debug_assert!(ends.all(|end| end <= self.last_seq), "a number of {} comes again", self.link);
        JournalStart {
            next_segment,
            next_file,
            next_seq: SeqNo(self.last_seq.0 + 1),
            previous: ChainLink { last_seq: self.last_seq, ..self.link },
            salt: self.salt,
            unlisted_files,
            replayed: self.segments,
        }
    }
}

/// Replays the listed segments, oldest first, of directory `dir`; see the head of the file.
///
/// # Errors
/// `Corrupt`, naming file and offset, if durable bytes are missing or damaged, or a listed file is missing or
/// too short; `Io`; any error that `sink` returns.
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
    let mode = if settings.make_durable { OpenMode::Write } else { OpenMode::Read };
    let scans = run_tasks(spawn, settings.threads, listed, &|listed| {
        scan::scan(disk, dir, listed, mode, settings.salt)
    })?;
    let run = link(&scans, settings)?;
    check_end(&scans, &run, settings)?;
    let used: Vec<&Scan> = run.used.iter().map(|&index| &scans[index]).collect();
    let pieces: Vec<_> =
        used.iter().flat_map(|scan| scan.pieces.iter().map(|piece| (*scan, piece))).collect();
    run_tasks(spawn, settings.threads, &pieces, &|(scan, piece)| index::index(scan, piece, sink))?;
    if settings.make_durable && !terrane_base::planted!(SkipReplaySync) {
        let durable = durable_through(&scans, settings);
        for scan in used.iter().filter(|scan| scan.listed.seal.is_none()) {
            scan.make_durable(durable)?;
        }
    }
    let segments: Vec<SealedSegment> = used.iter().map(|scan| scan.sealed()).collect();
    assert!(segments.is_sorted_by(|a, b| a.spec.id < b.spec.id), "records are replayed in their order");
    debug_assert!(segments.is_sorted_by_key(|segment| segment.last_seq), "numbers ascend over the segments");
    Ok(Replayed {
        last_seq: run.last_seq,
        cut: run.cut(&scans),
        behind: behind::look(&scans, &run, settings),
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
    /// The reason why the next segment does not continue the run.
    broken: Option<String>,
}

impl Run {
    /// The end of the run: a scan, and an offset in it.
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

    /// The torn tail after the run, if there are traces of more.
    fn cut(&self, scans: &[Scan]) -> Option<Cut> {
        let (scan, offset) = self.end(scans)?;
        let behind = self.used.last().map_or(0, |last| last + 1);
        debug_assert!(behind <= scans.len(), "the run is a part of the segments");
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
            // If a segment lost its end, the run is shorter than the next segment says. No crash makes it
            // longer, or different at the same length.
            if header.previous.last_seq <= link.last_seq {
                return Err(
                    Error::corrupt(format!("segments do not belong together: {broken}")).at(&*scan.path, 0)
                );
            }
            run.broken = Some(broken);
            break;
        }
        // The first used segment follows a trimmed one; if a listed segment before it was lost, that breaks
        // the run.
        if link.is_none()
            && header.previous.id >= scans[0].listed.spec.id
            && !terrane_base::planted!(ForgetLostSegment)
        {
            run.broken =
                Some(format!("{} follows {}, which is missing", scan.listed.spec.id, header.previous));
            break;
        }
        assert!(
            scan.end.last_seq >= header.previous.last_seq,
            "a walk goes forward from what its header follows"
        );
        link = Some(scan.link());
        run.last_seq = scan.end.last_seq;
        run.used.push(index);
    }
    Ok(run)
}

/// The number up to which the journal was durable, according to manifest and marks.
fn durable_through(scans: &[Scan], settings: &ReplaySettings) -> SeqNo {
    scans.iter().filter_map(|scan| scan.durable).fold(settings.durable_floor, SeqNo::max)
}

/// Step 3.
fn check_end(scans: &[Scan], run: &Run, settings: &ReplaySettings) -> Result<()> {
    let durable = durable_through(scans, settings);
    let Some((scan, offset)) = run.end(scans) else { return Ok(()) };
    if durable <= run.last_seq || terrane_base::planted!(CutDurableDamage) {
        return Ok(());
    }
    Err(Error::corrupt(format!(
        "the journal was durable up to {durable}, but is valid only up to {}: {}",
        run.last_seq,
        run.reason(scan)
    ))
    .at(&*scan.path, offset))
}

/// Runs `each` for all tasks on `threads` threads; returns the results in order, or the error of the first
/// failed task.
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
        // Relaxed: the counter distributes tasks; the locks and the join transfer the data.
        while !failed.load(Relaxed) {
            let index = next.fetch_add(1, Relaxed);
            let Some(task) = tasks.get(index) else { break };
            let result = each(task);
            failed.fetch_or(result.is_err(), Relaxed);
            *results[index].lock() = Some(result);
        }
    });
    // Tasks are taken in order, so every task that was not done comes after the error.
    let done: Result<Vec<R>> = results.into_iter().map_while(Mutex::into_inner).collect();
    assert!(
        done.as_ref().is_ok_and(|done| done.len() == tasks.len()) || done.is_err(),
        "a task was left out"
    );
    done
}
