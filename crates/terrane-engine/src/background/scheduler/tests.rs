//! Tests of the schedule: who may run beside whom, and what is left of a job that failed.

use std::time::Duration;

use terrane_base::options::Options;
use terrane_base::{ExtentId, Result, SeqNo, TableId};
use terrane_compaction::{
    Cursors, Input, JobKind as CompactionKind, JobSpec, KeyRange, Limits, OutputSettings,
};
use terrane_format::extent::ExtentMeta;
use terrane_format::manifest::Place;

use super::*;
use crate::observe::job_kind::JobKind;

const TABLE: TableId = TableId(7);

fn control() -> Arc<JobControl> {
    Arc::new(JobControl::new(terrane_base::env::Env::real().clock, None))
}

fn compacting(count: u64) -> Schedule {
    let running = (0..count).map(|id| Running {
        id,
        kind: JobKind::Compact,
        table: None,
        claim: None,
        is_manual: false,
        advance: None,
        control: control(),
    });
    Schedule { running: running.collect(), ..Schedule::default() }
}

#[test]
fn compactions_leave_a_worker_to_memory() {
    assert!(compacting(0).leaves_a_worker(1), "the only worker does everything");
    assert!(compacting(0).leaves_a_worker(2) && !compacting(1).leaves_a_worker(2));
    assert!(compacting(6).leaves_a_worker(8) && !compacting(7).leaves_a_worker(8));
}

fn meta(first: &str, last: &str) -> ExtentMeta {
    ExtentMeta {
        id: ExtentId { file: 1, slot: 0 },
        bytes: 1,
        raw_bytes: 1,
        smallest: first.into(),
        largest: last.into(),
        seq_min: SeqNo(1),
        seq_max: SeqNo(1),
        entries: 1,
        blocks: 1,
        ..ExtentMeta::default()
    }
}

/// A job that moves one extent of the overflow runs.
fn runs_job(first: &str, last: &str) -> JobSpec {
    let limits = Limits::from_options(&Options::default().resolve(2).expect("the defaults"));
    JobSpec {
        kind: CompactionKind::Runs,
        table: TABLE,
        inputs: vec![Input { place: Place::Run(1), extents: vec![meta(first, last)] }],
        target: Place::Level(1),
        range: KeyRange::closed(first.as_bytes(), last.as_bytes()),
        below: Vec::new(),
        below_seq_max: SeqNo(0),
        grandparents: Vec::new(),
        grandparent_bytes_max: u64::MAX,
        snapshots: Vec::new(),
        output: OutputSettings::new(&limits, true),
        drops_deletes: false,
        rewrites: false,
        part_bytes: u64::MAX,
    }
}

/// The cursors behind a job that ends with `result`, and behind `later`, which was claimed meanwhile.
fn cursors_after(result: Result<()>, later: Option<&JobSpec>) -> Cursors {
    let scheduler = Scheduler::new(terrane_base::env::Env::real().spawn);
    {
        let mut schedule = scheduler.schedule.lock();
        let spec = runs_job("a", "c");
        let claim = schedule.claims.take(spec.claim());
        let advance = schedule.cursors.advance(&spec);
        let table = Some(TABLE);
        schedule.running.push(Running {
            id: 1,
            kind: JobKind::Compact,
            table,
            claim,
            is_manual: false,
            advance,
            control: control(),
        });
        if let Some(later) = later {
            schedule.cursors.advance(later);
        }
    }
    scheduler.finish(1, (JobKind::Compact, Some(TABLE)), result, Duration::ZERO);
    scheduler.inspect(|schedule| schedule.cursors.clone())
}

#[test]
fn a_job_that_failed_is_tried_again_where_it_began() {
    let full = || Err(Error::new(Kind::Full, "no space"));
    let (mut done, mut both) = (Cursors::new(), Cursors::new());
    done.advance(&runs_job("a", "c"));
    let later = runs_job("d", "f");
    both.advance(&later);
    assert_eq!(cursors_after(Ok(()), None), done);
    assert_eq!(cursors_after(full(), None), Cursors::new());
    assert_eq!(cursors_after(full(), Some(&later)), both, "another went on meanwhile");
    // What is damaged would be met again.
    assert_eq!(cursors_after(Err(Error::corrupt("damage")), None), done);
}
