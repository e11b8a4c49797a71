//! Tests of the schedule: which jobs may run at the same time, and what a failed job leaves behind.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrane_base::options::Options;
use terrane_base::{Error, ExtentId, Kind, Result, SeqNo, TableId};
use terrane_compaction::{
    Cursors, Input, JobControl, JobKind as CompactionKind, JobSpec, KeyRange, Limits, OutputSettings,
};
use terrane_device::MemDisk;
use terrane_format::extent::ExtentMeta;
use terrane_format::manifest::Place;
use terrane_storage::SLOT_BYTES;

use super::*;
use crate::engine::Engine;
use crate::observe::job_kind::JobKind;
use crate::table::Table;
use crate::table::due::Depth;

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
        values: Vec::new(),
        mended: None,
        kind: CompactionKind::Runs,
        request: None,
        table: TABLE,
        inputs: vec![Input { place: Place::Run(1), extents: vec![meta(first, last)] }],
        target: Place::Level(1),
        range: KeyRange::closed(first.as_bytes(), last.as_bytes()),
        below: Vec::new(),
        below_seq_max: SeqNo(0),
        grandparents: Vec::new(),
        grandparent_bytes_max: u64::MAX,
        snapshots: Vec::new(),
        output: OutputSettings::new(&limits, true, false),
        drops_deletes: false,
        rewrites: false,
        part_bytes: u64::MAX,
        extent_bytes_max: SLOT_BYTES as u64,
    }
}

/// The cursors after a job that ends with `result`, and after `later`, which was claimed meanwhile.
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
    // The next job would meet the same damage.
    assert_eq!(cursors_after(Err(Error::corrupt("damage")), None), done);
}

/// Two jobs want the same keys. The second one takes them between the copy and the choice of the first one.
#[test]
fn a_choice_is_void_once_another_job_has_claimed() {
    let scheduler = Scheduler::new(terrane_base::env::Env::real().spawn);
    let (one, other) = (runs_job("a", "c"), runs_job("b", "d"));
    assert!(one.claim().conflicts(&other.claim()), "both write level 1");
    let mut seen = Vec::new();
    let claimed = scheduler
        .claim(|copy| {
            seen.push(copy.claims.allows(&one.claim()));
            if seen.len() == 1 {
                let theirs = scheduler.claim(|_| Ok(Choice::Take((), vec![other.claim()])));
                assert!(theirs.expect("nothing fails").is_some(), "no lock is held while a job chooses");
                return Ok(Choice::Take((), vec![one.claim()]));
            }
            Ok(Choice::Nothing)
        })
        .expect("nothing fails");
    assert_eq!((claimed, seen), (None, vec![true, false]), "the second choice sees the claim");
    assert!(!scheduler.inspect(|schedule| schedule.claims.allows(&one.claim())));
}

#[test]
fn a_look_for_work_visits_no_table_at_rest() {
    let options = Options { memory_bytes: 16 << 20, segment_bytes: 64 << 10, ..Options::default() };
    let env = terrane_base::env::Env::real();
    let engine = Engine::open_on(Arc::new(MemDisk::new()), Path::new("/db"), &options, env).expect("opens");
    let create = |number: u32| engine.create_table(&number.to_string(), &[]).expect("creates");
    let tables: Vec<_> = (0..20).map(create).collect();
    let put = |table: &Table| engine.put(table.id, b"key", b"value", false).expect("commits");
    tables.iter().for_each(|table| put(table));
    engine.flush().expect("flushes");
    engine.wait_until_quiescent().expect("nothing fails");
    let catalog = engine.catalog();
    let levels = || catalog.due_levels(Depth::All).into_iter().map(|(table, _)| table.id).collect::<Vec<_>>();
    assert_eq!((levels(), catalog.moving().len(), catalog.filled().len()), (vec![], 0, 0));
    engine.set_background_paused(true);
    // The last decision that knows nothing of the pause ends.
    drop(engine.background.scheduler.adaptation.lock());
    put(&tables[3]);
    put(&tables[5]);
    let oldest = catalog.oldest_filled(|table| table.id != tables[3].id).expect("two have records");
    assert_eq!((oldest.id, catalog.filled().len()), (tables[5].id, 2));
    engine.set_table_option(&tables[7], "time_to_live", "1h").expect("can be changed");
    assert_eq!(levels(), [tables[7].id]);
    assert!(engine.freeze(&tables[3]).expect("nothing is lost"));
    assert_eq!(catalog.moving().iter().map(|table| table.id).collect::<Vec<_>>(), [tables[3].id]);
    engine.drop_table("3").expect("drops");
    engine.drop_table("7").expect("drops");
    assert_eq!((levels(), catalog.moving().len(), catalog.filled().len()), (vec![], 0, 1));
    engine.close().expect("closes");
}
