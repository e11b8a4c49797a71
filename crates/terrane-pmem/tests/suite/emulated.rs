//! Counts and charges of an emulated region.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use terrane_base::env::Clock;
use terrane_device::pm::{PmRegion, Survives, Volatile, conformance};
use terrane_pmem::{Counts, Emulated, Halloc, Owner, Profile};

/// A clock that goes on by a nanosecond with each look.
#[derive(Debug, Default)]
struct Looks(AtomicU64);

impl Clock for Looks {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.fetch_add(1, Ordering::Relaxed))
    }

    fn wall(&self) -> Duration {
        self.now()
    }

    fn sleep(&self, _duration: Duration) {}
}

fn emulated(profile: Profile) -> (Emulated<Volatile>, Arc<Looks>) {
    let clock = Arc::new(Looks::default());
    (Emulated::with_clock(Volatile::new(1 << 16), profile, clock.clone()), clock)
}

/// Nanoseconds that `step` takes.
fn time(clock: &Looks, step: impl FnOnce()) -> u64 {
    let begin = clock.0.load(Ordering::Relaxed);
    step();
    clock.0.load(Ordering::Relaxed) - begin
}

#[test]
fn it_conforms() {
    conformance::run(&emulated(Profile::OPTANE_LIKE).0);
}

#[test]
fn every_step_is_counted() {
    let (region, clock) = emulated(Profile::DRAM);
    let took = time(&clock, || {
        region.store(0, 1).unwrap();
        region.write(100, &[1; 100]).unwrap();
        assert_eq!(region.load(0).unwrap(), 1);
        region.read(64, &mut [0; 200]).unwrap();
        assert_eq!(region.exchange(0, 1, 2).unwrap(), 1);
        assert_eq!(region.exchange(0, 1, 3).unwrap(), 2);
        region.flush(0, 300).unwrap();
        region.flush(0, 300).unwrap();
        region.stream(4096, &[2; 130]).unwrap();
        region.fence().unwrap();
        assert!(region.load(1 << 16).is_err());
    });
    let counts = Counts {
        loads: 4,
        loaded_bytes: 8 + 200 + 8 + 8,
        stores: 3,
        stored_bytes: 8 + 100 + 8,
        streams: 1,
        streamed_bytes: 130,
        flushed_lines: 10,
        // Lines 0, 1, 2 and 3 were stored to, and three were streamed.
        written_lines: 4 + 3,
        fences: 1,
        unit_writes: 7,
        unit_bytes: 64,
    };
    assert_eq!(region.counts(), counts);
    assert_eq!(took, 0, "memory of this machine charges nothing, not even a look at the clock");
    assert_eq!(region.survives(), Survives::Nothing);
}

#[test]
fn steps_take_what_the_profile_says() {
    let mut profile = Profile { read_ns: 300, store_ns: 20, flush_ns: 50, fence_ns: 100, ..Profile::DRAM };
    let (region, clock) = emulated(profile);
    let took = |step: &dyn Fn()| time(&clock, step);
    // Two looks at the clock more or less: a wait begins and ends with one.
    let about = |nanoseconds: u64| nanoseconds - 2..=nanoseconds + 2;
    assert!(about(300).contains(&took(&|| assert_eq!(region.load(0).unwrap(), 0))));
    assert!(
        about(300).contains(&took(&|| region.read(0, &mut [0; 1000]).unwrap())),
        "one latency for all lines"
    );
    assert!(about(20).contains(&took(&|| region.store(0, 1).unwrap())));
    assert!(
        about(50).contains(&took(&|| region.flush(0, 200).unwrap())),
        "one of the lines has bytes to write"
    );
    assert_eq!(took(&|| region.flush(0, 200).unwrap()), 0);
    assert!(about(100).contains(&took(&|| region.fence().unwrap())));
    profile = Profile { read_bandwidth: 640, write_bandwidth: 64, ..Profile::DRAM };
    let (region, clock) = emulated(profile);
    let took = |step: &dyn Fn()| time(&clock, step);
    assert!(about(1000).contains(&took(&|| region.read(0, &mut [0; 640]).unwrap())));
    assert!(about(10_000).contains(&took(&|| region.stream(0, &[1; 640]).unwrap())));
    region.write(0, &[1; 128]).unwrap();
    assert!(about(2000).contains(&took(&|| region.flush(0, 128).unwrap())));
}

#[test]
fn lines_of_a_unit_are_written_at_once_while_it_is_buffered() {
    let profile = Profile { unit_bytes: 256, buffered_units: 2, ..Profile::DRAM };
    let writes = |offsets: &[u64]| {
        let region = emulated(profile).0;
        for offset in offsets {
            region.stream(*offset, &[1; 64]).unwrap();
        }
        (region.counts().unit_writes, region.counts().write_amplification())
    };
    assert_eq!(writes(&[0, 64, 128, 192]), (1, 1.0), "a whole unit");
    assert_eq!(writes(&[0, 256, 64, 320]), (2, 2.0), "two units in turns, both buffered");
    assert_eq!(writes(&[0, 256, 512, 64]), (4, 4.0), "the first one has left before its second line");
    assert_eq!(writes(&[0, 256, 0, 512, 0]), (3, 2.4), "a unit that is used stays");
    assert_eq!(emulated(profile).0.counts().write_amplification(), 0.0);
}

#[test]
fn presets_are_ordered_by_what_they_take() {
    let cost = |profile: Profile| profile.read_ns + profile.flush_ns + profile.fence_ns;
    assert_eq!(cost(Profile::DRAM), 0);
    assert!(cost(Profile::DRAM) < cost(Profile::DRAM_2X) && cost(Profile::DRAM_2X) < cost(Profile::DRAM_8X));
    assert!(cost(Profile::DRAM_2X) < cost(Profile::OPTANE_LIKE));
    assert_eq!((Profile::OPTANE_LIKE.unit_bytes, Profile::OPTANE_LIKE.write_bandwidth), (256, 2300));
}

#[test]
fn an_allocation_is_one_flush_and_one_fence() {
    let region = Emulated::new(Volatile::new(1 << 20), Profile::DRAM);
    let halloc = Halloc::create(region, 1 << 16, 1).unwrap();
    let steps = || {
        let counts = halloc.region().counts();
        (counts.flushed_lines, counts.fences, counts.stores)
    };
    for bytes in [128, 16 << 10] {
        // The first one makes a chunk of objects.
        halloc.allocate(bytes, Owner(1)).unwrap();
        let before = steps();
        let object = halloc.allocate(bytes, Owner(1)).unwrap();
        assert_eq!(steps(), (before.0 + 1, before.1 + 1, before.2 + 1), "an object of {bytes} bytes");
        halloc.free_object(object).unwrap();
        assert_eq!(steps(), (before.0 + 2, before.1 + 2, before.2 + 2), "freed");
    }
    let before = steps();
    let zone = halloc.grant(3, Owner(1)).unwrap();
    assert_eq!(steps(), (before.0 + 1, before.1 + 1, before.2 + 1), "a zone of three chunks");
    halloc.assign(zone, Owner(2)).unwrap();
    assert_eq!(steps(), (before.0 + 2, before.1 + 2, before.2 + 2), "assigned");
    let counts = halloc.region().counts();
    drop(halloc.grant_volatile(2).unwrap());
    assert_eq!(halloc.region().counts(), counts, "a volatile zone touches nothing");
}
