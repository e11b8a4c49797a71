//! A region that charges the time of persistent memory, and counts its calls.
//!
//! # Charges
//! Each step waits, by spinning on the clock, until it has taken as long as the [`Profile`] says *on top of*
//! the time of the region beneath it. There is no model of the caches: a load waits as if it missed them, a
//! store as if it met them (0 ns in every preset), a flush of a line waits only if the line was stored to
//! since it was flushed last. Lines that go to or come from the device take turns on it: that is the
//! bandwidth.
//!
//! # Units
//! The device writes whole units (256 bytes in Optane DIMMs) and has a buffer of a few of them, from which
//! the one that was used longest ago leaves when another one comes. A unit is counted as written when it
//! leaves; units in the buffer count in [`Counts::unit_writes`], too.
//!
//! Costs nothing where it is not used: code is generic over its region, and the region of the device is not
//! aware of this one.
//!
//! Which thread may touch what: counters are relaxed atomics, the sums of all threads' steps and no order
//! between them; the buffer is behind a lock; `busy_until` moves by compare-and-swap.

mod pace;
mod profile;
mod units;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use terrane_base::Result;
use terrane_base::env::{Clock, Env};
use terrane_base::sync::Mutex;
use terrane_device::Region;
use terrane_device::pm::{LINE_BYTES, PmRegion, Survives, WORD_BYTES, check_range, lines};

use pace::Pace;
pub use profile::Profile;
use units::UnitBuffer;

/// The calls of an [`Emulated`] region since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls that loaded; an exchange is one.
    pub loads: u64,
    /// Bytes that they loaded.
    pub loaded_bytes: u64,
    /// Calls that stored; an exchange that stored is one.
    pub stores: u64,
    /// Bytes that they stored.
    pub stored_bytes: u64,
    /// Calls that streamed.
    pub streams: u64,
    /// Bytes that they streamed.
    pub streamed_bytes: u64,
    /// Lines that were to be flushed.
    pub flushed_lines: u64,
    /// Lines that went to the device: streamed, or flushed while they had something to write.
    pub written_lines: u64,
    /// Fences.
    pub fences: u64,
    /// Units that the device wrote, or has to write yet.
    pub unit_writes: u64,
    /// Bytes of a unit.
    pub unit_bytes: u64,
}

impl Counts {
    /// Bytes that the device wrote for each byte that was sent to it in lines; 0 before the first line.
    #[must_use]
    pub fn write_amplification(&self) -> f64 {
        match self.written_lines {
            0 => 0.0,
            lines => (self.unit_writes * self.unit_bytes) as f64 / (lines * LINE_BYTES) as f64,
        }
    }
}

#[derive(Debug, Default)]
struct Counters {
    loads: AtomicU64,
    loaded_bytes: AtomicU64,
    stores: AtomicU64,
    stored_bytes: AtomicU64,
    streams: AtomicU64,
    streamed_bytes: AtomicU64,
    flushed_lines: AtomicU64,
    written_lines: AtomicU64,
    fences: AtomicU64,
}

/// Relaxed: a sum and nothing else.
fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

/// A region as if on another device.
#[derive(Debug)]
pub struct Emulated<R> {
    region: R,
    profile: Profile,
    pace: Pace,
    counters: Counters,
    units: Mutex<UnitBuffer>,
    /// A bit for each line: it was stored to since it was flushed last.
    dirty: Box<[AtomicU64]>,
}

impl<R: PmRegion> Emulated<R> {
    /// `region` with the costs of `profile`, in real time.
    #[must_use]
    pub fn new(region: R, profile: Profile) -> Self {
        Emulated::with_clock(region, profile, Env::real().clock)
    }

    /// As [`Emulated::new`], in the time of `clock`. A few hundred calls of the clock are made at once, to
    /// know what one takes.
    #[must_use]
    pub fn with_clock(region: R, profile: Profile, clock: Arc<dyn Clock>) -> Self {
        let groups = (region.len() / LINE_BYTES).div_ceil(u64::from(u64::BITS));
        let dirty = (0..groups).map(|_| AtomicU64::new(0)).collect();
        let units = Mutex::new(UnitBuffer::new(profile.unit_bytes, profile.buffered_units));
        Emulated { region, profile, pace: Pace::new(clock), counters: Counters::default(), units, dirty }
    }

    /// The region beneath.
    #[must_use]
    pub fn region(&self) -> &R {
        &self.region
    }

    /// The calls so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.counters;
        Counts {
            loads: get(&counters.loads),
            loaded_bytes: get(&counters.loaded_bytes),
            stores: get(&counters.stores),
            stored_bytes: get(&counters.stored_bytes),
            streams: get(&counters.streams),
            streamed_bytes: get(&counters.streamed_bytes),
            flushed_lines: get(&counters.flushed_lines),
            written_lines: get(&counters.written_lines),
            fences: get(&counters.fences),
            unit_writes: self.units.lock().writes(),
            unit_bytes: self.profile.unit_bytes,
        }
    }

    fn loaded(&self, offset: u64, len: u64) {
        add(&self.counters.loads, 1);
        add(&self.counters.loaded_bytes, len);
        let busy = self.profile.read_time(lines(offset, len).count() as u64);
        self.pace.wait(if len > 0 { self.profile.read_ns } else { 0 }, busy);
    }

    fn stored(&self, offset: u64, len: u64) {
        add(&self.counters.stores, 1);
        add(&self.counters.stored_bytes, len);
        for line in lines(offset, len).map(|line| line / LINE_BYTES) {
            let (group, bit) = self.dirty_bit(line);
            // Relaxed: says only whether a flush counts as a write.
            group.fetch_or(bit, Ordering::Relaxed);
        }
        self.pace.wait(self.profile.store_ns, 0);
    }

    /// Counts lines that go to the device.
    fn written(&self, line: u64) {
        add(&self.counters.written_lines, 1);
        self.units.lock().write(line * LINE_BYTES);
    }

    fn dirty_bit(&self, line: u64) -> (&AtomicU64, u64) {
        let bits = u64::from(u64::BITS);
        (&self.dirty[(line / bits) as usize], 1 << (line % bits))
    }
}

impl<R: PmRegion> PmRegion for Emulated<R> {
    fn len(&self) -> u64 {
        self.region.len()
    }

    fn survives(&self) -> Survives {
        self.region.survives()
    }

    fn name(&self) -> String {
        self.region.name()
    }

    fn load(&self, offset: u64) -> Result<u64> {
        let word = self.region.load(offset)?;
        self.loaded(offset, WORD_BYTES);
        Ok(word)
    }

    fn store(&self, offset: u64, word: u64) -> Result<()> {
        self.region.store(offset, word)?;
        self.stored(offset, WORD_BYTES);
        Ok(())
    }

    fn exchange(&self, offset: u64, expected: u64, word: u64) -> Result<u64> {
        let found = self.region.exchange(offset, expected, word)?;
        self.loaded(offset, WORD_BYTES);
        if found == expected {
            self.stored(offset, WORD_BYTES);
        }
        Ok(found)
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.region.read(offset, bytes)?;
        self.loaded(offset, bytes.len() as u64);
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.region.write(offset, bytes)?;
        self.stored(offset, bytes.len() as u64);
        Ok(())
    }

    fn stream(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.region.stream(offset, bytes)?;
        let len = bytes.len() as u64;
        add(&self.counters.streams, 1);
        add(&self.counters.streamed_bytes, len);
        lines(offset, len).for_each(|line| self.written(line / LINE_BYTES));
        self.pace.wait(0, self.profile.write_time(lines(offset, len).count() as u64));
        Ok(())
    }

    fn flush(&self, offset: u64, len: u64) -> Result<()> {
        check_range(self.len(), offset, len)?;
        self.region.flush(offset, len)?;
        let (mut flushed, mut written) = (0, 0);
        for line in lines(offset, len).map(|line| line / LINE_BYTES) {
            flushed += 1;
            let (group, bit) = self.dirty_bit(line);
            // Relaxed: as in `stored`.
            if group.fetch_and(!bit, Ordering::Relaxed) & bit != 0 {
                written += 1;
                self.written(line);
            }
        }
        add(&self.counters.flushed_lines, flushed);
        self.pace.wait(self.profile.flush_ns * written, self.profile.write_time(written));
        Ok(())
    }

    fn fence(&self) -> Result<()> {
        self.region.fence()?;
        add(&self.counters.fences, 1);
        self.pace.wait(self.profile.fence_ns, 0);
        Ok(())
    }

    fn memory(&self) -> Option<&Region> {
        self.region.memory()
    }

    fn note_stores(&self, offset: u64, len: u64) -> Result<()> {
        self.region.note_stores(offset, len)?;
        debug_assert!(offset + len <= self.len(), "the region beneath checks the range");
        self.stored(offset, len);
        Ok(())
    }

    fn read_checked(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.region.read_checked(offset, bytes)?;
        self.loaded(offset, bytes.len() as u64);
        Ok(())
    }

    fn has_cheap_fences(&self) -> bool {
        self.region.has_cheap_fences()
    }
}
