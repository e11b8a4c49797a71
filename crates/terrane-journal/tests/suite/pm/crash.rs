//! The ring over the checker: the power fails at every fence and at some stores, and each image that may be
//! left is recovered. Acknowledged commits are there, the recovered ones are a prefix, batches are whole. The
//! same check finds an omitted flush or fence, and a zone that goes back before the edit.
//!
//! `TERRANE_PM_SEQUENCES` says how many random sequences there are, also of those with a step left out;
//! `TERRANE_PM_PART` is the number with each change, of those with no step left out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use proptest::prelude::ProptestConfig;
use terrane_base::{Batch, Rng, TableId};
use terrane_journal::pm::PmJournal;
use terrane_journal::{Journal, ListedSegment};
use terrane_pmem::{Cut, Event, Shadowed};

use crate::common::{Manifest, Row, replay_rows};
use crate::pm::support::{CHUNK_BYTES, Omitted, disk_on, omitting, open, settings, stepped};

const REGION_BYTES: u64 = 40 * CHUNK_BYTES;
/// Images that are looked at in one cut.
const IMAGES: u64 = 3;

type Pair = (Vec<u8>, Vec<u8>);

/// The requests to the journal.
#[derive(Clone, Debug, Default)]
struct Model {
    /// The record of each number that was given.
    rows: BTreeMap<u64, Pair>,
    /// First numbers of batches.
    firsts: Vec<u64>,
    /// The batch that is being committed; it may be there, whole, or not.
    pending: Vec<Pair>,
}

impl Model {
    fn acknowledged(&self) -> u64 {
        self.rows.last_key_value().map_or(0, |(last, _)| *last)
    }

    fn acknowledge(&mut self) {
        let first = self.acknowledged() + 1;
        self.firsts.push(first);
        for (number, pair) in (first..).zip(std::mem::take(&mut self.pending)) {
            self.rows.insert(number, pair);
        }
    }

    /// Recovery must find the acknowledged batches, and perhaps the pending one.
    fn check(&self, last: u64, found: &[Row]) -> Result<(), String> {
        let whole = self.acknowledged() + self.pending.len() as u64;
        if last != self.acknowledged() && last != whole {
            return Err(format!("up to {} is acknowledged, up to {last} is there", self.acknowledged()));
        }
        for (number, key, value) in found {
            let behind =
                number.checked_sub(self.acknowledged() + 1).map(|index| &self.pending[index as usize]);
            let expected = self.rows.get(number).or(behind).unwrap();
            if (key, value) != (&expected.0, &expected.1) {
                return Err(format!("record {number} is another one"));
            }
        }
        Ok(())
    }
}

/// Opens an image and returns the last number and the records.
fn recover(image: &[u8], listed: &[ListedSegment]) -> Result<(u64, Vec<Row>), String> {
    let text = |error: terrane_base::Error| error.to_string();
    let disk = disk_on(Shadowed::with_content(image), false).map_err(text)?;
    let (replayed, rows) = replay_rows(&*disk, listed, 0).map_err(text)?;
    Ok((replayed.last_seq.0, rows))
}

/// The findings of the cuts of a run.
#[derive(Debug, Default)]
struct Findings {
    images: u64,
    wrong: Vec<String>,
}

struct Run {
    model: Arc<Mutex<Model>>,
    manifest: Arc<Manifest>,
    findings: Arc<Mutex<Findings>>,
    region: Arc<Shadowed>,
    omitted: Omitted,
    /// A trim frees zones before the manifest forgets their segments.
    frees_first: bool,
}

impl Run {
    fn new(omitted: Omitted, frees_first: bool) -> Self {
        let region = Arc::new(Shadowed::new(REGION_BYTES));
        disk_on(omitting(region.clone(), Omitted::Nothing), true).unwrap();
        let (model, manifest, findings) = (Arc::default(), Arc::default(), Arc::default());
        Run { model, manifest, findings, region, omitted, frees_first }
    }

    fn look(&self, cut: &Cut<'_>, rng: &mut Rng) {
        let is_looked_at = match cut.event {
            Event::BeforeFence | Event::Fence => true,
            Event::Store | Event::Stream => rng.one_in(24),
            Event::Flush => false,
        };
        if !is_looked_at {
            return;
        }
        let (model, listed) =
            (self.model.lock().unwrap().clone(), self.manifest.listed.lock().unwrap().clone());
        let mut findings = self.findings.lock().unwrap();
        cut.images().each(IMAGES, rng, |image| {
            findings.images += 1;
            let found = recover(&image, &listed).and_then(|(last, rows)| model.check(last, &rows));
            findings.wrong.extend(found.err().map(|why| format!("{:?}: {why}", cut.event)));
        });
    }

    /// Opens, commits and trims until the power fails; the next life begins with an image of that moment.
    fn live(self: &mut Arc<Self>, rng: &mut Rng, steps: u64) {
        let watching = self.clone();
        let mut drawn = Rng::new(rng.next_u64());
        self.region.watch(move |cut| watching.look(cut, &mut drawn));
        let disk = disk_on(omitting(self.region.clone(), self.omitted), false).unwrap();
        let (journal, _) = open(&disk, &self.manifest, &settings(), &stepped()).unwrap();
        for _ in 0..steps {
            match rng.below(8) {
                0 => self.trim(&journal),
                _ => self.commit(&journal, rng),
            }
        }
        self.region.unwatch();
        let image = self.region.images().sample(rng);
        let listed = self.manifest.listed.lock().unwrap().clone();
        drop((journal, disk));
        let model = self.model.lock().unwrap().clone();
        let found = recover(&image, &listed).and_then(|(last, rows)| model.check(last, &rows));
        self.findings.lock().unwrap().wrong.extend(found.err());
        let (model, manifest, findings) = (self.model.clone(), self.manifest.clone(), self.findings.clone());
        let region = Arc::new(Shadowed::with_content(&image));
        *self = Arc::new(Run {
            model,
            manifest,
            findings,
            region,
            omitted: self.omitted,
            frees_first: self.frees_first,
        });
    }

    fn commit(&self, journal: &PmJournal, rng: &mut Rng) {
        let tag = rng.next_u64();
        let pairs: Vec<Pair> = (0..1 + rng.below(3))
            .map(|i| (format!("{tag}-{i}").into_bytes(), vec![tag as u8; rng.index(500)]))
            .collect();
        let mut batch = Batch::new();
        for (key, value) in &pairs {
            batch.put(TableId::DEFAULT, key, value).unwrap();
        }
        self.model.lock().unwrap().pending = pairs;
        journal.commit(&batch, rng.one_in(2), &mut |_| {}).unwrap();
        self.model.lock().unwrap().acknowledge();
    }

    fn trim(&self, journal: &PmJournal) {
        let complete = journal.complete_segments();
        let Some(upto) = complete.iter().rev().nth(1).map(|segment| segment.id) else { return };
        if self.frees_first {
            journal.trim(upto).unwrap();
        }
        self.manifest.listed.lock().unwrap().retain(|listed| listed.spec.id > upto);
        journal.trim(upto).unwrap();
    }

    fn wrong(&self) -> Vec<String> {
        self.findings.lock().unwrap().wrong.clone()
    }
}

/// How many sequences are asked for, if that is said.
fn asked_sequences() -> Option<u64> {
    let text = std::env::var("TERRANE_PM_SEQUENCES").ok()?;
    Some(text.parse().expect("TERRANE_PM_SEQUENCES is a number"))
}

/// With and without `sync`, through rotations, trims and openings.
#[test]
fn every_commit_survives_a_cut_anywhere() {
    let some = u64::from(ProptestConfig::default().cases).div_ceil(16);
    let part = std::env::var("TERRANE_PM_PART").map(|text| text.parse().expect("a number"));
    let sequences = asked_sequences().or(part.ok()).unwrap_or(some);
    let mut images = 0;
    for sequence in 0..sequences {
        let mut rng = Rng::part(238, sequence);
        let mut run = Arc::new(Run::new(Omitted::Nothing, false));
        for _ in 0..4 {
            run.live(&mut rng, 16);
        }
        assert_eq!(run.wrong(), Vec::<String>::new(), "sequence {sequence}");
        images += run.findings.lock().unwrap().images;
    }
    println!("{sequences} sequences, {images} images");
    assert!(images > sequences * 100, "{images} images of {sequences} sequences");
}

/// The findings of the look above where a step is missing or in the wrong place.
fn found_with(omitted: Omitted, frees_first: bool, seed: u64) -> Vec<String> {
    let mut rng = Rng::new(seed);
    let mut run = Arc::new(Run::new(omitted, frees_first));
    run.live(&mut rng, 40);
    run.wrong()
}

/// Each of the sequences shows the omission, by these words.
fn each_finds(omitted: Omitted, frees_first: bool, words: &str) {
    let sequences = asked_sequences().unwrap_or(1);
    for seed in 239..239 + sequences {
        let wrong = found_with(omitted, frees_first, seed);
        assert!(wrong.iter().any(|why| why.contains(words)), "seed {seed}: {wrong:?}");
    }
    println!("found in each of {sequences} sequences");
}

#[test]
fn a_flush_that_is_left_out_is_found() {
    each_finds(Omitted::Flushes, false, "is acknowledged");
}

#[test]
fn a_fence_that_is_left_out_is_found() {
    each_finds(Omitted::Fences, false, "is acknowledged");
}

#[test]
fn a_zone_that_goes_back_before_the_edit_is_found() {
    let wrong = found_with(Omitted::Nothing, true, 239);
    assert!(wrong.iter().any(|why| why.contains("missing")), "{wrong:?}");
    assert_eq!(found_with(Omitted::Nothing, false, 239), Vec::<String>::new());
}

/// The power fails in an opening, and in the opening after that: the same records are there each time, and
/// no zone is lost.
#[test]
fn an_opening_may_be_cut_anywhere() {
    let mut rng = Rng::new(240);
    let mut run = Arc::new(Run::new(Omitted::Nothing, false));
    for _ in 0..24 {
        let steps = 1 + rng.below(6);
        run.live(&mut rng, steps);
    }
    assert_eq!(run.wrong(), Vec::<String>::new());
    let disk = disk_on(Shadowed::with_content(&run.region.images().newest()), false).unwrap();
    let (journal, _) = open(&disk, &run.manifest, &settings(), &stepped()).unwrap();
    let used: u64 = journal.segments().iter().map(|segment| segment.bytes.div_ceil(CHUNK_BYTES)).sum();
    let halloc = disk.halloc();
    // One more segment is ready.
    let ready = 1;
    assert_eq!(u64::from(halloc.chunk_count() - halloc.free_chunk_count()), used + ready, "a zone leaked");
}
