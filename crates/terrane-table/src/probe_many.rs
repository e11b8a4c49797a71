//! Point lookups of many keys at once, as far as the cache knows.
//!
//! Steps, each for all lookups before the next one begins, and each asking for the memory of the next: 1. extent,
//! 2. filter object, 3. filter line, 4. index object, 5. search in the index block, 6. the block's home, 7. block
//! object, 8. leaf of the block, 9. entry, 10. search in the block. The cache misses of a step overlap: a batch waits once per step, not once per key.
//!
//! Nothing is written but reference bits that are clear; nothing waits for a device.

use terrane_base::prefetch::{prefetch, prefetch_lines};
use terrane_base::{Entry, SeqNo};

use crate::cache::{Home, Index, Object};
use crate::extent::{Extent, count_refusal, count_search};
use crate::load_many::Need;
use crate::swip::Epoch;

/// Lines of an object that a search reads: its header and the front of its payload.
const OBJECT_LINES: usize = 4;

/// One key and where it is looked for.
#[derive(Clone, Copy, Debug)]
pub struct Lookup<'g> {
    /// The extent.
    pub extent: &'g Extent,
    /// The key.
    pub key: &'g [u8],
    /// [`terrane_format::filter::hash`] of the key, or `None` to look into the blocks without asking the filter.
    pub hash: Option<u64>,
    state: State<'g>,
}

/// What the cache knows of a key.
#[derive(Clone, Copy, Debug)]
pub enum Answer<'g> {
    /// The version looked for, in the cached block.
    Found(Entry<'g>),
    /// The extent holds no version of the key up to the number.
    Absent,
    /// The same, and the filter said so.
    Refused,
    /// Something needed is not in the cache: this, to begin with.
    Unknown(Need),
}

#[derive(Clone, Copy, Debug)]
enum State<'g> {
    Begun,
    Filter(&'g Object, u64),
    Index,
    IndexObject(&'g Object),
    Home(&'g Index, usize),
    Block(&'g Index, usize, &'g Object),
    Done(Answer<'g>),
}

impl<'g> Lookup<'g> {
    /// A lookup that has not begun. Asks for the extent.
    #[inline]
    #[must_use]
    pub fn new(extent: &'g Extent, key: &'g [u8], hash: Option<u64>) -> Self {
        prefetch(std::ptr::from_ref(extent));
        Lookup { extent, key, hash, state: State::Begun }
    }

    /// What [`probe_many`] found.
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

/// Brings all lookups to their end: the newest version of each key with a number up to `seq`.
pub fn probe_many<'g>(epoch: &'g Epoch, lookups: &mut [Lookup<'g>], seq: SeqNo) {
    step(lookups, |lookup| to_filter(epoch, lookup, seq));
    // Only now are the objects here that say where the line is.
    for lookup in lookups.iter() {
        if let State::Filter(object, hash) = lookup.state {
            object.filter().prefetch(hash);
        }
    }
    step(lookups, ask_filter);
    step(lookups, |lookup| to_index(epoch, lookup));
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
        if let State::Block(_, _, object) = lookup.state {
            object.block().prefetch_entry(lookup.key);
        }
    }
    step(lookups, |lookup| search_block(epoch, lookup, seq));
}

#[inline]
fn step<'g>(lookups: &mut [Lookup<'g>], next: impl Fn(&Lookup<'g>) -> State<'g>) {
    for lookup in lookups {
        if !matches!(lookup.state, State::Done(_)) {
            lookup.state = next(lookup);
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
            prefetch_lines(std::ptr::from_ref(object), OBJECT_LINES);
            State::Filter(object, hash)
        }
        None => State::Done(Answer::Unknown(Need::Filter)),
    }
}

fn ask_filter<'g>(lookup: &Lookup<'g>) -> State<'g> {
    let State::Filter(object, hash) = lookup.state else { return lookup.state };
    object.touch();
    if object.filter().may_contain(hash) {
        State::Index
    } else {
        count_refusal();
        State::Done(Answer::Refused)
    }
}

fn to_index<'g>(epoch: &'g Epoch, lookup: &Lookup<'g>) -> State<'g> {
    match lookup.extent.index.swip.load(epoch) {
        Some(object) => {
            prefetch_lines(std::ptr::from_ref(object), OBJECT_LINES);
            State::IndexObject(object)
        }
        None => State::Done(Answer::Unknown(Need::Index)),
    }
}

fn search_index<'g>(lookup: &Lookup<'g>) -> State<'g> {
    let State::IndexObject(object) = lookup.state else { return lookup.state };
    object.touch();
    let index = object.index();
    let at = index.rows.find(lookup.key);
    match index.homes.get(at) {
        Some(home) => {
            prefetch(std::ptr::from_ref(home));
            State::Home(index, at)
        }
        None => {
            count_search(lookup.extent.asked(lookup.hash).is_some(), 0, false);
            State::Done(Answer::Absent)
        }
    }
}

fn to_block<'g>(epoch: &'g Epoch, lookup: &Lookup<'g>) -> State<'g> {
    let State::Home(index, at) = lookup.state else { return lookup.state };
    match load(epoch, &index.homes[at]) {
        Some(object) => {
            prefetch_lines(std::ptr::from_ref(object), OBJECT_LINES);
            State::Block(index, at, object)
        }
        None => State::Done(Answer::Unknown(Need::Block(at))),
    }
}

fn load<'g>(epoch: &'g Epoch, home: &'g Home) -> Option<&'g Object> {
    home.swip.load(epoch)
}

/// The end. Versions of one key that go on in the next block are rare and looked for without company.
fn search_block<'g>(epoch: &'g Epoch, lookup: &Lookup<'g>, seq: SeqNo) -> State<'g> {
    let State::Block(index, mut at, mut object) = lookup.state else { return lookup.state };
    let is_filtered = lookup.extent.asked(lookup.hash).is_some();
    let mut blocks = 0;
    let answer = loop {
        object.touch();
        blocks += 1;
        if let Some(entry) = object.block().find(lookup.key, seq) {
            break Answer::Found(entry);
        }
        at += 1;
        if !index.continues(at - 1, lookup.key) || at == index.homes.len() {
            break Answer::Absent;
        }
        match load(epoch, &index.homes[at]) {
            Some(next) => object = next,
            None => return State::Done(Answer::Unknown(Need::Block(at))),
        }
    };
    count_search(is_filtered, blocks, matches!(answer, Answer::Found(_)));
    State::Done(answer)
}
