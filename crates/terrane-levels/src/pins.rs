//! Pins: the sequence numbers at which live snapshots read.
//!
//! A version may be dropped only if no snapshot, now or later, can see it. Two rules decide that while
//! snapshots come and go:
//! 1. The number of a new pin is read under the lock (by the function that [`Pins::pin`] takes), so it is
//!    never below the `visible` of a list that does not contain it.
//! 2. A list ends with the current `visible` ([`Pins::list`]), which covers every later pin.

use std::sync::Arc;

use terrane_base::SeqNo;
use terrane_base::sync::Mutex;

/// The set of pinned sequence numbers. Clones share the set.
#[derive(Clone, Debug, Default)]
pub struct Pins {
    /// Each number with its count of pins; ascending, no count is 0. Snapshots come in rising order and there
    /// are rarely many, so adding is a push and everything else a short search.
    pinned: Arc<Mutex<Vec<(SeqNo, u64)>>>,
}

/// Keeps a sequence number pinned until dropped.
#[derive(Debug)]
pub struct Pin {
    pins: Pins,
    seq: SeqNo,
}

impl Pins {
    /// No pins.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Pins the number that `visible` returns: the highest one that readers see now. `visible` runs under the
    /// lock of the set and must be short.
    #[must_use]
    pub fn pin(&self, visible: impl FnOnce() -> SeqNo) -> Pin {
        let mut pinned = self.pinned.lock();
        let seq = visible();
        add(&mut pinned, seq);
        debug_assert!(
            pinned.iter().any(|(known, count)| *known == seq && *count > 0),
            "versions that the pin sees would be dropped"
        );
        drop(pinned);
        Pin { pins: self.clone(), seq }
    }

    /// The numbers at which versions must stay readable: every pin, and last the current `visible`.
    /// Ascending, without duplicates.
    ///
    /// Of each key, all versions above the last number stay, and for each number in the list the newest
    /// version at or below it.
    #[must_use]
    pub fn list(&self, visible: impl FnOnce() -> SeqNo) -> Vec<SeqNo> {
        let pinned = self.pinned.lock();
        let now = visible();
        let mut list: Vec<SeqNo> = pinned.iter().map(|&(seq, _)| seq).take_while(|&seq| seq < now).collect();
        list.push(now);
        debug_assert!(list.is_sorted_by(|a, b| a < b), "each number once: compaction searches the list");
        list
    }

    /// The lowest pinned number.
    #[must_use]
    pub fn oldest(&self) -> Option<SeqNo> {
        self.pinned.lock().first().map(|&(seq, _)| seq)
    }

    /// The highest pinned number.
    #[must_use]
    pub fn newest(&self) -> Option<SeqNo> {
        self.pinned.lock().last().map(|&(seq, _)| seq)
    }

    /// Number of pins; equal numbers are counted separately.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.pinned.lock().iter().map(|&(_, count)| count).sum()
    }
}

/// Adds a pin of `seq`.
fn add(pinned: &mut Vec<(SeqNo, u64)>, seq: SeqNo) {
    match pinned.binary_search_by_key(&seq, |&(seq, _)| seq) {
        Ok(index) => pinned[index].1 += 1,
        Err(index) => pinned.insert(index, (seq, 1)),
    }
    debug_assert!(pinned.is_sorted_by(|a, b| a.0 < b.0), "the oldest pin is the first");
}

/// Removes a pin of `seq`, which exists.
fn remove(pinned: &mut Vec<(SeqNo, u64)>, seq: SeqNo) {
    let index = pinned.binary_search_by_key(&seq, |&(seq, _)| seq).expect("a live pin is in the set");
    assert!(
        pinned[index].1 > 0,
        "a pin of {seq} is released twice: another snapshot would lose its versions"
    );
    pinned[index].1 -= 1;
    if pinned[index].1 == 0 {
        pinned.remove(index);
    }
}

impl Pin {
    /// Pins the number that `visible` returns instead of the present one, by the rules of [`Pins::pin`].
    pub fn renew(&mut self, visible: impl FnOnce() -> SeqNo) {
        let mut pinned = self.pins.pinned.lock();
        let seq = visible();
        if seq != self.seq {
            remove(&mut pinned, self.seq);
            add(&mut pinned, seq);
            self.seq = seq;
        }
        debug_assert!(
            pinned.iter().any(|(known, count)| *known == seq && *count > 0),
            "versions that the pin sees would be dropped"
        );
    }

    /// The pinned number.
    #[must_use]
    pub fn seq(&self) -> SeqNo {
        self.seq
    }
}

/// A second pin of the same number.
impl Clone for Pin {
    fn clone(&self) -> Self {
        self.pins.pin(|| self.seq)
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        remove(&mut self.pins.pinned.lock(), self.seq);
    }
}
