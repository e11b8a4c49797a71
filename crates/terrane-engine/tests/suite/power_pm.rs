//! Losses of power of a database whose journal is in persistent memory: at stores and fences of any thread
//! the checker says what the memory may have, and the device beside it is cut at the same moment. Every
//! acknowledged commit must exist, with or without `sync`, and the rows must be those of a prefix.
//!
//! `TERRANE_POWER_HISTORIES` scales it, `TERRANE_POWER_SEED` is the first history.

use crate::support;

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use support::oracle::{LASTING, Oracle, Span, random_changes};
use support::{DIR, number_from_env, open, small_options, until};
use terrane_base::Rng;
use terrane_base::options::Options;
use terrane_device::pm::PmRegion;
use terrane_device::{Disk, MemDisk};
use terrane_engine::Engine;
use terrane_journal::pm::ZoneDisk;
use terrane_levels::directory::JOURNAL;
use terrane_pmem::{Halloc, Omitting, Shadowed};

const CHUNK_BYTES: u64 = 64 << 10;
/// Room for what the write memory holds, and some segments beside.
const REGION_BYTES: u64 = 8 << 20;
/// Images of one history.
const IMAGES_MAX: usize = 8;

/// A device and its persistent memory as a cut left them, and what must be there.
struct Image {
    base: MemDisk,
    content: Vec<u8>,
    span: Span,
}

/// The device of a database on `base` with segments in `region`.
fn disk(base: MemDisk, region: Arc<Shadowed>, is_new: bool) -> ZoneDisk<Omitting> {
    let region = Omitting::new(region, |_| false);
    let (halloc, zones) = match is_new {
        true => (Halloc::create(region, CHUNK_BYTES, 7).unwrap(), Vec::new()),
        false => {
            let (halloc, found) = Halloc::open(region, |_| true).unwrap();
            (halloc, found.zones)
        }
    };
    ZoneDisk::new(Arc::new(base), &Path::new(DIR).join(JOURNAL), halloc, zones, false).unwrap()
}

fn options() -> Options {
    small_options()
}

struct History {
    numbers: Rng,
    base: MemDisk,
    region: Arc<Shadowed>,
    /// None while it is opened again.
    engine: Option<Arc<Engine>>,
    oracle: Oracle,
    images: Arc<Mutex<Vec<Image>>>,
}

impl History {
    fn new(seed: u64) -> Self {
        let (base, region) = (MemDisk::new(), Arc::new(Shadowed::new(REGION_BYTES)));
        let engine = open(disk(base.clone(), region.clone(), true), &options()).unwrap();
        let mut oracle = Oracle::new();
        oracle.begin_event(LASTING[1]);
        engine.create_table(LASTING[1], &[]).unwrap();
        oracle.end_event();
        let images = Arc::default();
        History { numbers: Rng::new(seed), base, region, engine: Some(engine), oracle, images }
    }

    fn engine(&self) -> &Arc<Engine> {
        self.engine.as_ref().unwrap()
    }

    /// Takes images at steps of the memory to come, whichever thread makes them. The memory stands still
    /// while the device is cut.
    fn watch(&mut self) {
        let mut choices = Rng::new(self.numbers.next_u64());
        let (base, images, reached) = (self.base.clone(), self.images.clone(), self.oracle.reached.clone());
        let mut left = choices.below(3000);
        self.region.watch(move |cut| {
            left = left.saturating_sub(1);
            let mut images = images.lock();
            if left > 0 || images.len() == IMAGES_MAX {
                return;
            }
            left = if choices.one_in(4) { 1 } else { choices.below(20_000) };
            // Each commit is durable, synced or not.
            let floor = reached.floor(false);
            let (content, base) = (cut.images().sample(&mut choices), base.crash(choices.next_u64()));
            images.push(Image { base, content, span: reached.close(floor) });
        });
    }

    fn step(&mut self) {
        match self.numbers.below(100) {
            0..3 => self.engine().flush().unwrap(),
            3..5 => self.engine().sync().unwrap(),
            5..7 => self.engine().wait_until_quiescent().unwrap(),
            7 => {
                let seed = self.numbers.next_u64();
                self.base.writeback(seed);
            }
            8 => self.reopen(),
            _ => {
                let number = self.oracle.batches.len() + 1;
                let changes = random_changes(&mut self.numbers, &self.oracle.live(), number);
                let engine = self.engine().clone();
                let batch = self.oracle.begin(&engine, changes, number % 2);
                let sync = self.numbers.one_in(4);
                engine.write(&batch, sync).unwrap();
                self.oracle.end(true);
            }
        }
    }

    fn reopen(&mut self) {
        self.engine().close().unwrap();
        // It gives back the zones that nothing maps any more: two allocators would. Readers of other tests of
        // the process may be in an epoch that could see them, for a moment.
        self.engine = None;
        until("the allocator is gone", || {
            terrane_base::epoch::forget_garbage();
            Arc::strong_count(&self.region) == 1
        });
        let disk = disk(self.base.clone(), self.region.clone(), false);
        self.engine = Some(open(disk, &options()).unwrap());
    }

    /// Does the steps, then judges every image. Returns how many images there were.
    fn run(mut self, steps: u64, place: &str) -> usize {
        self.watch();
        (0..steps).for_each(|_| self.step());
        self.region.unwatch();
        let files = self.base.list(&Path::new(DIR).join(JOURNAL)).unwrap();
        assert_eq!(files, Vec::<String>::new(), "{place}: all segments are in persistent memory");
        assert_eq!(self.engine().stats().background_errors, 0, "{place}");
        self.engine().close().unwrap();
        let images = std::mem::take(&mut *self.images.lock());
        for (index, image) in images.iter().enumerate() {
            judge(
                &self.oracle,
                image,
                &mut self.numbers,
                &format!("{place}, image {index}, {:?}", image.span),
            );
        }
        images.len()
    }
}

/// Opens an image; the same state is found again when the power fails after that.
fn judge(oracle: &Oracle, image: &Image, numbers: &mut Rng, place: &str) {
    let region = Arc::new(Shadowed::with_content(&image.content));
    let base = image.base.kill();
    let engine = open(disk(base.clone(), region.clone(), false), &options())
        .unwrap_or_else(|error| panic!("{place}: {error}"));
    let found = oracle.judge(&engine, image.span, place).unwrap_or_else(|error| panic!("{place}: {error}"));
    let findings = engine.check(&mut |_, _| ()).unwrap().findings;
    assert!(findings.is_empty(), "{place}: {findings:?}");
    // Nothing is committed, so what the background still moves changes no row.
    let (cut, mut choices) = (Arc::new(Mutex::new(None)), Rng::new(numbers.next_u64()));
    let taken = cut.clone();
    region.watch(move |cut| {
        let mut taken = taken.lock();
        if taken.is_none() {
            *taken = Some((cut.images().sample(&mut choices), base.crash(choices.next_u64())));
        }
    });
    // An event at which the memory stands still.
    region.flush(0, 1).unwrap();
    region.unwatch();
    drop(engine);
    let (content, base) = cut.lock().take().unwrap();
    let region = Arc::new(Shadowed::with_content(&content));
    let engine =
        open(disk(base, region, false), &options()).unwrap_or_else(|error| panic!("{place}, again: {error}"));
    let span = Span { least: found, most: found, ..image.span };
    oracle.judge(&engine, span, place).unwrap_or_else(|error| panic!("{place}, again: {error}"));
    engine.close().unwrap();
}

#[test]
fn a_cut_of_persistent_memory_leaves_everything_acknowledged() {
    let first = number_from_env("TERRANE_POWER_SEED", 0);
    let histories = number_from_env("TERRANE_POWER_HISTORIES", 8).div_ceil(2);
    let mut images = 0;
    for seed in first..first + histories {
        images += History::new(seed).run(250, &format!("seed {seed}"));
    }
    println!("{images} images of {histories} histories");
    assert!(images as u64 >= histories, "hardly any image was taken: {images}");
}
