//! The state behind [`Shadowed`](super::Shadowed): contents, stores that may be lost, flushes without fence.
//!
//! Invariants: a word of `words` is its last store. A line is in `lines` from its first store on; `durable`
//! is what its words are for certain, and `stores` has, in their order, the stores to each word that came
//! after that.

use std::collections::{BTreeMap, HashMap};

use terrane_base::sync::thread::ThreadId;
use terrane_device::pm::{LINE_BYTES, WORD_BYTES};

use super::{CrashImages, LineState};

/// Words in a line.
pub(super) const LINE_WORDS: usize = (LINE_BYTES / WORD_BYTES) as usize;

#[derive(Debug)]
pub(super) struct Shadow {
    words: Vec<u64>,
    /// By number of the line.
    lines: BTreeMap<u64, Line>,
    /// Flushes of each thread that no fence of it followed: number of the line, and of the last store
    /// before the flush.
    flushes: HashMap<ThreadId, Vec<(u64, u64)>>,
    /// Lines that each thread streamed to since its last fence.
    streams: HashMap<ThreadId, Vec<u64>>,
    /// Number of the last store.
    stored: u64,
}

#[derive(Debug)]
struct Line {
    durable: [u64; LINE_WORDS],
    stores: Vec<Store>,
}

#[derive(Debug)]
struct Store {
    number: u64,
    /// Which word of the line.
    index: usize,
    word: u64,
    thread: ThreadId,
    is_stream: bool,
    /// A flush covers it, or it needs none.
    is_flushed: bool,
}

impl Shadow {
    pub(super) fn new(words: Vec<u64>) -> Self {
        assert!(words.len().is_multiple_of(LINE_WORDS), "a region has whole lines");
        let (flushes, streams) = (HashMap::new(), HashMap::new());
        Shadow { words, lines: BTreeMap::new(), flushes, streams, stored: 0 }
    }

    pub(super) fn load(&self, offset: u64) -> u64 {
        self.words[(offset / WORD_BYTES) as usize]
    }

    pub(super) fn read(&self, offset: u64, bytes: &mut [u8]) {
        for (at, byte) in (offset..).zip(bytes) {
            *byte = self.load(at).to_le_bytes()[(at % WORD_BYTES) as usize];
        }
    }

    pub(super) fn store(&mut self, offset: u64, word: u64, thread: ThreadId, is_stream: bool) {
        let at = (offset / WORD_BYTES) as usize;
        let (number, index) = ((at / LINE_WORDS) as u64, at % LINE_WORDS);
        let line = self.lines.entry(number).or_insert_with(|| {
            let first = at - index;
            let durable = self.words[first..first + LINE_WORDS].try_into().expect("a whole line");
            Line { durable, stores: Vec::new() }
        });
        self.stored += 1;
        let store = Store { number: self.stored, index, word, thread, is_stream, is_flushed: is_stream };
        line.stores.push(store);
        self.words[at] = word;
        if is_stream {
            self.streams.entry(thread).or_default().push(number);
        }
    }

    pub(super) fn flush(&mut self, line: u64, thread: ThreadId) {
        let Some(shadow) = self.lines.get_mut(&line) else { return };
        for store in &mut shadow.stores {
            store.is_flushed = true;
        }
        self.flushes.entry(thread).or_default().push((line, self.stored));
    }

    pub(super) fn fence(&mut self, thread: ThreadId) {
        for (line, upto) in self.flushes.remove(&thread).unwrap_or_default() {
            let line = self.lines.get_mut(&line).expect("a flushed line has stores");
            line.make_durable(|store| store.number <= upto && (!store.is_stream || store.thread == thread));
        }
        for line in self.streams.remove(&thread).unwrap_or_default() {
            let line = self.lines.get_mut(&line).expect("a streamed line has stores");
            line.make_durable(|store| store.is_stream && store.thread == thread);
        }
    }

    pub(super) fn line_state(&self, line: u64) -> LineState {
        match self.lines.get(&line) {
            None => LineState::Clean,
            Some(line) if line.stores.is_empty() => LineState::Fenced,
            Some(line) if line.stores.iter().all(|store| store.is_flushed) => LineState::Flushed,
            Some(_) => LineState::Dirty,
        }
    }

    pub(super) fn images(&self) -> CrashImages {
        let mut base = self.words.clone();
        let mut choices = Vec::new();
        for (number, line) in self.lines.iter().filter(|(_, line)| !line.stores.is_empty()) {
            let first = *number as usize * LINE_WORDS;
            for index in 0..LINE_WORDS {
                let durable = line.durable[index];
                base[first + index] = durable;
                let mut words = vec![durable];
                words.extend(line.stores.iter().filter(|store| store.index == index).map(|store| store.word));
                // The same word again and again is one image.
                words.dedup();
                if words.len() > 1 {
                    choices.push((first + index, words));
                }
            }
        }
        CrashImages::new(base, choices)
    }
}

impl Line {
    /// Makes durable each store for which `is_covered` is true, with all earlier stores to its word.
    fn make_durable(&mut self, is_covered: impl Fn(&Store) -> bool) {
        for index in 0..LINE_WORDS {
            let last = self.stores.iter().rposition(|store| store.index == index && is_covered(store));
            let Some(last) = last.map(|at| self.stores[at].number) else { continue };
            let mut word = self.durable[index];
            self.stores.retain(|store| {
                let is_durable = store.index == index && store.number <= last;
                if is_durable {
                    word = store.word;
                }
                !is_durable
            });
            self.durable[index] = word;
        }
    }
}
