//! Pins: the sequence numbers that live snapshots read at.
//!
//! A version may be dropped only if no snapshot, now or later, can see it. Two rules make that decidable while
//! both sides run:
//! 1. A new pin's number is read under the lock ([`Pins::pin`] takes a function for it), so it is never below
//!    the `visible` of a list that did not contain it.
//! 2. A list ends with the `visible` of its own moment ([`Pins::list`]), which stands for every later pin.

use std::sync::Arc;

use terrane_base::SeqNo;
use terrane_base::sync::Mutex;

/// The set of pinned sequence numbers. Cheap to clone: clones are the same set.
#[derive(Clone, Debug, Default)]
pub struct Pins {
    /// Number and how many pin it; ascending, no count is 0. Snapshots come in rising order and there are
    /// rarely many, so adding is a push and all else a short search.
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
        drop(pinned);
        Pin { pins: self.clone(), seq }
    }

    /// The numbers at which versions must stay readable: every pin, and last the `visible` of this moment.
    /// Ascending, without doubles.
    ///
    /// Of the versions of a key, those above the last number stay, and of those at or below a number the
    /// newest stays for each number in the list.
    #[must_use]
    pub fn list(&self, visible: impl FnOnce() -> SeqNo) -> Vec<SeqNo> {
        let pinned = self.pinned.lock();
        let now = visible();
        let mut list: Vec<SeqNo> = pinned.iter().map(|&(seq, _)| seq).take_while(|&seq| seq < now).collect();
        list.push(now);
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

    /// How many pins there are, equal numbers counted each.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.pinned.lock().iter().map(|&(_, count)| count).sum()
    }
}

/// Counts one more pin of `seq`.
fn add(pinned: &mut Vec<(SeqNo, u64)>, seq: SeqNo) {
    match pinned.binary_search_by_key(&seq, |&(seq, _)| seq) {
        Ok(index) => pinned[index].1 += 1,
        Err(index) => pinned.insert(index, (seq, 1)),
    }
}

/// Counts one pin of `seq`, which there is, less.
fn remove(pinned: &mut Vec<(SeqNo, u64)>, seq: SeqNo) {
    let index = pinned.binary_search_by_key(&seq, |&(seq, _)| seq).expect("a live pin is in the set");
    pinned[index].1 -= 1;
    if pinned[index].1 == 0 {
        pinned.remove(index);
    }
}

impl Pin {
    /// Pins the number that `visible` returns instead, by the rules of [`Pins::pin`].
    pub fn renew(&mut self, visible: impl FnOnce() -> SeqNo) {
        let mut pinned = self.pins.pinned.lock();
        let seq = visible();
        if seq != self.seq {
            remove(&mut pinned, self.seq);
            add(&mut pinned, seq);
            self.seq = seq;
        }
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
