//! A region that knows which crash images the hardware may leave: the checker of persist order.
//!
//! # Model
//! The caches hold the stored bytes, the memory the durable ones. For every line with stores that are not
//! durable for certain, the shadow keeps these stores in their order. At a crash each *word* of such a line
//! has its durable value, or that of any of the kept stores to it; words are independent of each other.
//!
//! * A flush by a thread covers the stores to the line up to then, of every thread, as `clwb` writes back
//!   the whole line; but of streamed stores only the thread's own, as those of others may still be in the
//!   write buffer of their processor. It promises nothing yet.
//! * A fence by a thread makes durable the lines that it flushed and the bytes that it streamed.
//! * A line may be written back at any time without a flush: every kept store may be durable.
//!
//! So the images are those of Px86 (Raad, Wickerson, Neiger, Vafeiadis: Persistency semantics of the
//! Intel-x86 architecture, POPL 2020; with non-temporal stores: Raad, Maranget, Vafeiadis, POPL 2022) and
//! more: Px86 keeps the order of stores to one line, here each word goes alone, because only eight bytes are
//! promised to be durable as a whole. That a fence waits is the synchronous reading of Px86, which has the
//! same observable behaviour (Khyzha, Lahav: Taming x86-TSO persistency, POPL 2021).
//!
//! Which thread may touch what: everything is behind one lock. A watcher is called under it and must not use
//! the region.

mod image;
mod omitting;
mod shadow;

use std::fmt;

use terrane_base::Result;
use terrane_base::sync::Mutex;
use terrane_base::sync::thread;
use terrane_device::pm::{
    LINE_BYTES, PmRegion, Survives, WORD_BYTES, check_range, check_word, lines, with_part, word_parts,
};

pub use image::CrashImages;
pub use omitting::{Omitting, Step};
use shadow::Shadow;

/// A step that changes which crash images are possible, or that a program relies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A word was stored.
    Store,
    /// A word was streamed.
    Stream,
    /// Lines were flushed.
    Flush,
    /// A fence is about to be made.
    BeforeFence,
    /// A fence was made.
    Fence,
}

/// Where a cache line stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineState {
    /// Nothing was stored to it since the region was made.
    Clean,
    /// It has stores that no flush covers.
    Dirty,
    /// A flush or a stream covers all its stores that are not durable; a fence is missing.
    Flushed,
    /// All that was stored to it is durable.
    Fenced,
}

/// A moment at which the power may fail, as a watcher gets it.
#[derive(Debug)]
pub struct Cut<'a> {
    /// The event of the cut.
    pub event: Event,
    shadow: &'a Shadow,
}

impl Cut<'_> {
    /// The images that the region may have if the power fails now.
    #[must_use]
    pub fn images(&self) -> CrashImages {
        self.shadow.images()
    }
}

type Watcher = Box<dyn FnMut(&Cut<'_>) + Send>;

/// A region in memory that can say what a loss of power may leave of it.
pub struct Shadowed {
    len: u64,
    state: Mutex<State>,
}

struct State {
    shadow: Shadow,
    watcher: Option<Watcher>,
}

impl State {
    fn report(&mut self, event: Event) {
        if let Some(watcher) = &mut self.watcher {
            watcher(&Cut { event, shadow: &self.shadow });
        }
    }
}

impl Shadowed {
    /// A region of `bytes` zero bytes, rounded up to whole lines, all durable.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        Shadowed::with_content(&vec![0; bytes as usize])
    }

    /// A region with this content, all durable, filled up with zeros to whole lines.
    #[must_use]
    pub fn with_content(content: &[u8]) -> Self {
        let len = (content.len() as u64).next_multiple_of(LINE_BYTES);
        let mut words = vec![0; (len / WORD_BYTES) as usize];
        for (at, part, begin) in word_parts(0, content) {
            words[(at / WORD_BYTES) as usize] = with_part(0, part, begin);
        }
        Shadowed { len, state: Mutex::new(State { shadow: Shadow::new(words), watcher: None }) }
    }

    /// The images that the region may have if the power fails now.
    #[must_use]
    pub fn images(&self) -> CrashImages {
        self.state.lock().shadow.images()
    }

    /// Where the line that contains `offset` stands.
    ///
    /// # Errors
    /// `Invalid` outside the region.
    pub fn line_state(&self, offset: u64) -> Result<LineState> {
        check_range(self.len, offset, 1)?;
        Ok(self.state.lock().shadow.line_state(offset / LINE_BYTES))
    }

    /// Calls `watcher` at every [`Event`] from now on, in place of an earlier one. It must not use the
    /// region.
    pub fn watch(&self, watcher: impl FnMut(&Cut<'_>) + Send + 'static) {
        self.state.lock().watcher = Some(Box::new(watcher));
    }

    /// Calls no watcher any more.
    pub fn unwatch(&self) {
        self.state.lock().watcher = None;
    }

    fn store_parts(&self, offset: u64, bytes: &[u8], event: Event) -> Result<()> {
        check_range(self.len, offset, bytes.len() as u64)?;
        for (at, part, begin) in word_parts(offset, bytes) {
            let mut state = self.state.lock();
            let word = with_part(state.shadow.load(at), part, begin);
            state.shadow.store(at, word, thread::current().id(), event == Event::Stream);
            state.report(event);
        }
        Ok(())
    }
}

impl PmRegion for Shadowed {
    fn len(&self) -> u64 {
        self.len
    }

    fn survives(&self) -> Survives {
        Survives::PowerLoss
    }

    fn load(&self, offset: u64) -> Result<u64> {
        check_word(self.len, offset)?;
        Ok(self.state.lock().shadow.load(offset))
    }

    fn store(&self, offset: u64, word: u64) -> Result<()> {
        check_word(self.len, offset)?;
        self.store_parts(offset, &word.to_le_bytes(), Event::Store)
    }

    fn exchange(&self, offset: u64, expected: u64, word: u64) -> Result<u64> {
        check_word(self.len, offset)?;
        let mut state = self.state.lock();
        let found = state.shadow.load(offset);
        if found == expected {
            state.shadow.store(offset, word, thread::current().id(), false);
            state.report(Event::Store);
        }
        Ok(found)
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        check_range(self.len, offset, bytes.len() as u64)?;
        self.state.lock().shadow.read(offset, bytes);
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.store_parts(offset, bytes, Event::Store)
    }

    fn stream(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.store_parts(offset, bytes, Event::Stream)
    }

    fn flush(&self, offset: u64, len: u64) -> Result<()> {
        check_range(self.len, offset, len)?;
        let mut state = self.state.lock();
        lines(offset, len).for_each(|line| state.shadow.flush(line / LINE_BYTES, thread::current().id()));
        state.report(Event::Flush);
        Ok(())
    }

    fn fence(&self) -> Result<()> {
        let mut state = self.state.lock();
        state.report(Event::BeforeFence);
        state.shadow.fence(thread::current().id());
        state.report(Event::Fence);
        Ok(())
    }
}

impl fmt::Debug for Shadowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shadowed").field("len", &self.len).finish_non_exhaustive()
    }
}
