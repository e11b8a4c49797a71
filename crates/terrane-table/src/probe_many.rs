//! Point lookups of many keys at once, with cached parts only.
//!
//! Each step is done for all lookups before the next begins, and prefetches the memory of the next:
//!
//! 1. extent,
//! 2. filter object,
//! 3. filter line,
//! 4. index object,
//! 5. search in the index block,
//! 6. the block's swip slot,
//! 7. block object,
//! 8. leaf of the block,
//! 9. entry,
//! 10. search in the block.
//!
//! The cache misses of a step overlap: a batch waits once per step, not once per key.
//!
//! Nothing is written but reference bits that are clear; nothing waits for a device.

use terrane_base::prefetch::prefetch;
use terrane_base::{Entry, SeqNo, ValuePosition};

use crate::cache::{Index, Object, SwipSlot};
use crate::extent::{Extent, count_refusal, count_search};
use crate::load_many::Need;
use crate::swip::Epoch;

/// One key and the extent in which it is searched.
#[derive(Clone, Copy, Debug)]
pub struct Lookup<'g> {
    /// The extent.
    pub extent: &'g Extent,
    /// The key.
    pub key: &'g [u8],
    /// [`terrane_format::filter::hash`] of the key, or `None` to skip the filter.
    pub hash: Option<u64>,
    /// The greatest number of a version that it may find.
    seq_max: SeqNo,
    /// Where that version was written.
    position: Option<ValuePosition>,
    state: State<'g>,
}

/// The result of a lookup with cached parts only.
#[derive(Clone, Copy, Debug)]
pub enum Answer<'g> {
    /// The version was found in a cached block.
    Found(Entry<'g>),
    /// The extent holds no version of the key up to the number.
    Absent,
    /// As `Absent`, and the filter said so.
    Refused,
    /// A part is not cached; this is the first one.
    Unknown(Need),
}

#[derive(Clone, Copy, Debug)]
enum State<'g> {
    Begun,
    Filter(&'g Object, u64),
    Index,
    IndexObject(&'g Object),
    SwipSlot(&'g Index, usize),
    Block(&'g Index, usize, &'g Object),
    Done(Answer<'g>),
}

impl<'g> Lookup<'g> {
    /// A lookup that has not begun. Prefetches the extent.
    #[inline]
    #[must_use]
    pub fn new(extent: &'g Extent, key: &'g [u8], hash: Option<u64>) -> Self {
        prefetch(std::ptr::from_ref(extent));
        Lookup { extent, key, hash, seq_max: SeqNo::MAX, position: None, state: State::Begun }
    }

    /// The lookup of a version with a number up to `seq` only.
    #[inline]
    #[must_use]
    pub fn up_to(self, seq: SeqNo) -> Self {
        Lookup { seq_max: seq, ..self }
    }

    /// The lookup of a version that was written at a position, if that is known: no search of the index
    /// block. [`Answer::Absent`] says only that it is not in the block there.
    #[inline]
    #[must_use]
    pub fn written_at(self, position: Option<ValuePosition>) -> Self {
        Lookup { position, ..self }
    }

    /// The result of [`probe_many`].
    ///
    /// # Panics
    /// Before it.
    #[inline]
    #[must_use]
    pub fn answer(&self) -> Answer<'g> {
        match self.state {
            State::Done(answer) => answer,
            _ => unreachable!("probe_many brings every lookup to its end"),
        }
    }
}

/// Completes all lookups: finds the newest version of each key with a number up to `seq`, and up to its own
/// ([`Lookup::up_to`]).
pub fn probe_many<'g>(epoch: &'g Epoch, lookups: &mut [Lookup<'g>], seq: SeqNo) {
    step(lookups, |lookup| Some(to_filter(epoch, lookup, seq.min(lookup.seq_max))));
    // Only now are the objects in the processor's cache that tell which line it is.
    for lookup in lookups.iter() {
        if let State::Filter(object, hash) = lookup.state {
            object.filter().prefetch(hash);
        }
    }
    step(lookups, ask_filter);
    step(lookups, |lookup| Some(to_index(epoch, lookup)));
    for lookup in lookups.iter() {
        if let State::IndexObject(object) = lookup.state {
            object.index().rows.prefetch();
        }
    }
    step(lookups, search_index);
    step(lookups, |lookup| to_block(epoch, lookup));
    for lookup in lookups.iter() {
        if let State::Block(_, _, object) = lookup.state {
            object.block().prefetch(lookup.key);
        }
    }
    for lookup in lookups.iter() {
        if let State::Block(_, _, object) = lookup.state
            && lookup.position.is_none()
        {
            object.block().prefetch_entry(lookup.key);
        }
    }
    step(lookups, |lookup| search_block(epoch, lookup, seq.min(lookup.seq_max)));
    debug_assert!(
        lookups.iter().all(|lookup| matches!(lookup.state, State::Done(_))),
        "each lookup has an answer at the end"
    );
}

/// Brings each lookup to its next state; where `next` says none, the step is not one of this lookup.
#[inline]
fn step<'g>(lookups: &mut [Lookup<'g>], next: impl Fn(&Lookup<'g>) -> Option<State<'g>>) {
    for lookup in lookups {
        if !matches!(lookup.state, State::Done(_))
            && let Some(state) = next(lookup)
        {
            debug_assert!(
                !matches!(state, State::Begun),
                "a lookup that begins again would not end with the others"
            );
            lookup.state = state;
        }
    }
}

fn to_filter<'g>(epoch: &'g Epoch, lookup: &Lookup<'g>, seq: SeqNo) -> State<'g> {
    if lookup.extent.is_newer_than(seq) {
        return State::Done(Answer::Absent);
    }
    let Some(hash) = lookup.extent.asked(lookup.hash) else { return State::Index };
    match lookup.extent.filter.swip.load(epoch) {
        Some(object) => {
            object.prefetch();
            State::Filter(object, hash)
        }
        None => State::Done(Answer::Unknown(Need::Filter)),
    }
}

#[inline]
fn ask_filter<'g>(lookup: &Lookup<'g>) -> Option<State<'g>> {
    let State::Filter(object, hash) = lookup.state else { return None };
    object.touch();
    if object.filter().may_contain(hash) {
        Some(State::Index)
    } else {
        count_refusal();
        Some(State::Done(Answer::Refused))
    }
}

fn to_index<'g>(epoch: &'g Epoch, lookup: &Lookup<'g>) -> State<'g> {
    match lookup.extent.index.swip.load(epoch) {
        Some(object) => {
            object.prefetch();
            State::IndexObject(object)
        }
        None => State::Done(Answer::Unknown(Need::Index)),
    }
}

#[inline]
fn search_index<'g>(lookup: &Lookup<'g>) -> Option<State<'g>> {
    let State::IndexObject(object) = lookup.state else { return None };
    object.touch();
    let index = object.index();
    let at = match lookup.position {
        None => index.rows.find(lookup.key),
        Some(position) => position.block as usize,
    };
    match index.slots.get(at) {
        Some(slot) => {
            prefetch(std::ptr::from_ref(slot));
            Some(State::SwipSlot(index, at))
        }
        None => {
            count_search(lookup.extent.asked(lookup.hash).is_some(), 0, false);
            Some(State::Done(Answer::Absent))
        }
    }
}

#[inline]
fn to_block<'g>(epoch: &'g Epoch, lookup: &Lookup<'g>) -> Option<State<'g>> {
    let State::SwipSlot(index, at) = lookup.state else { return None };
    Some(match load(epoch, &index.slots[at]) {
        Some(object) => {
            object.prefetch();
            State::Block(index, at, object)
        }
        None => State::Done(Answer::Unknown(Need::Block(at))),
    })
}

fn load<'g>(epoch: &'g Epoch, slot: &'g SwipSlot) -> Option<&'g Object> {
    slot.swip.load(epoch)
}

/// The last step. Versions of one key that continue in the next block are rare and are searched one lookup at
/// a time.
#[inline]
fn search_block<'g>(epoch: &'g Epoch, lookup: &Lookup<'g>, seq: SeqNo) -> Option<State<'g>> {
    let State::Block(index, mut at, mut object) = lookup.state else { return None };
    let is_filtered = lookup.extent.asked(lookup.hash).is_some();
    let mut blocks = 0;
    let answer = loop {
        object.touch();
        blocks += 1;
        let there =
            lookup.position.and_then(|written| object.block().find_at(written.entry, lookup.key, seq));
        if let Some(entry) = there.or_else(|| object.block().find(lookup.key, seq)) {
            break Answer::Found(entry);
        }
        at += 1;
        if !index.continues(at - 1, lookup.key) || at == index.slots.len() {
            break Answer::Absent;
        }
        match load(epoch, &index.slots[at]) {
            Some(next) => object = next,
            None => return Some(State::Done(Answer::Unknown(Need::Block(at)))),
        }
    };
    count_search(is_filtered, blocks, matches!(answer, Answer::Found(_)));
    Some(State::Done(answer))
}
