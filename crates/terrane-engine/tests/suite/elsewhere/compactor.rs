//! Compaction jobs that run elsewhere: what runs them comes with the parts.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use terrane_base::Result;
use terrane_compaction::{Compactor, Elsewhere, JobControl, JobKind, JobResult, JobSpec, LocalCompactor};
use terrane_device::MemDisk;
use terrane_engine::{Bounds, Engine, OpenedParts, Parts, PartsRequest};

use super::{ELSEWHERE, Fixture, OtherDirectory, get, put};
use crate::support::{request, small_options};

/// Runs jobs here, and says of each second one that a worker did it.
struct Counting {
    local: LocalCompactor,
    jobs: Arc<AtomicU64>,
}

impl Compactor for Counting {
    fn run(&self, spec: &JobSpec, control: &JobControl) -> Result<JobResult> {
        let is_done = self.jobs.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
        control.note_elsewhere(Elsewhere { is_done, fell_back: !is_done, attempts_lost: 3 });
        assert!(!matches!(spec.kind, JobKind::Flush | JobKind::Dump), "these are not given to it");
        self.local.run(spec, control)
    }

    fn run_in_parts(
        &self,
        spec: &JobSpec,
        control: &JobControl,
        _publish: &mut dyn FnMut(JobResult) -> Result<()>,
    ) -> Result<JobResult> {
        self.run(spec, control)
    }
}

/// Parts that bring it along.
struct WithCompactor {
    parts: OtherDirectory,
    jobs: Arc<AtomicU64>,
}

impl fmt::Debug for WithCompactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithCompactor").finish_non_exhaustive()
    }
}

impl Parts for WithCompactor {
    fn address(&self) -> &str {
        ELSEWHERE
    }

    fn open(&self, request: &PartsRequest<'_>) -> Result<OpenedParts> {
        let jobs = self.jobs.clone();
        let opened = self.parts.open(request)?;
        let make = move |local| -> Arc<dyn Compactor> { Arc::new(Counting { local, jobs }) };
        Ok(OpenedParts { compactor: Some(Box::new(make)), ..opened })
    }
}

#[test]
fn the_compactor_of_the_parts_runs_the_compactions() {
    let disk = MemDisk::new();
    let jobs = Arc::new(AtomicU64::new(0));
    let parts = WithCompactor { parts: Fixture::parts(&disk), jobs: jobs.clone() };
    let engine = Engine::open_elsewhere_on(request(Arc::new(disk), &small_options()), &parts).unwrap();
    let key = |number: u32| format!("key-{number:05}").into_bytes();
    for round in 0..3 {
        (0..400).for_each(|number| put(&engine, &key(number), format!("{round}-{number}").as_bytes()));
        engine.flush().unwrap();
    }
    let table = engine.catalog().require("default").unwrap();
    engine.compact_range(&table, &Bounds::all()).unwrap();
    for number in 0..400 {
        assert_eq!(get(&engine, &key(number)), Some(format!("2-{number}").into_bytes()));
    }
    engine.close().unwrap();
    let (stats, jobs) = (engine.stats(), jobs.load(Ordering::Relaxed));
    assert!(jobs > 0, "there was a compaction");
    assert_eq!(stats.compactions, jobs, "each of them went through the compactor");
    assert_eq!(stats.compactions_elsewhere, jobs.div_ceil(2));
    assert_eq!(stats.compactions_fallen_back, jobs / 2);
    assert_eq!(stats.compaction_attempts_lost, 3 * jobs);
}
