//! The memory of a region as atomic words: every access of [`PmRegion`](super::PmRegion) to mapped bytes.
//!
//! Which thread may touch what: any thread any word, at any time. All accesses are atomic accesses of
//! aligned words, so none is a data race; what concurrent bytes mean is for the owner of a range to say.
//! Orderings: `store` and `exchange` release, `load` acquires, so that a reader that loads a word sees what
//! its writer wrote before it. The words of `read` and `write` are relaxed: such a load orders them.
#![expect(unsafe_code, reason = "raw memory is the subject of this module")]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use terrane_base::Result;

use super::instructions::{self, FlushInstruction};
use super::{LINE_BYTES, WORD_BYTES, check_range, check_word, lines, with_part, word_parts};
use crate::Region;

/// Mapped memory as words.
#[derive(Debug)]
pub(super) struct Words {
    region: Region,
    instruction: FlushInstruction,
}

impl Words {
    /// Takes a region for itself. It is writable and begins at a line.
    pub(super) fn new(region: Region) -> Self {
        assert!(
            region.start().as_ptr().addr().is_multiple_of(LINE_BYTES as usize),
            "lines of memory must be lines of the region"
        );
        Words { region, instruction: FlushInstruction::detect() }
    }

    /// Bytes: the whole lines of the region.
    #[inline]
    pub(super) fn len(&self) -> u64 {
        self.region.len() as u64 & !(LINE_BYTES - 1)
    }

    pub(super) fn instruction(&self) -> FlushInstruction {
        self.instruction
    }

    pub(super) fn region(&self) -> &Region {
        &self.region
    }

    /// The word at an offset that was checked.
    #[inline]
    fn word(&self, offset: u64) -> &AtomicU64 {
        debug_assert!(check_word(self.len(), offset).is_ok(), "offsets are checked before words are touched");
        // SAFETY: within the region, which lives as long as `self`; aligned, because the region begins at a
        // line; all accesses to the region are atomic accesses of words.
        unsafe { AtomicU64::from_ptr(self.address(offset).cast::<u64>().as_ptr()) }
    }

    /// The address of an offset that was checked.
    #[inline]
    fn address(&self, offset: u64) -> NonNull<u8> {
        debug_assert!(offset < self.len(), "offsets are checked before addresses are made");
        // SAFETY: within the region.
        unsafe { self.region.start().add(offset as usize) }
    }

    #[inline]
    pub(super) fn load(&self, offset: u64) -> Result<u64> {
        check_word(self.len(), offset)?;
        // Acquire: pairs with the release in `store` and `exchange`.
        Ok(u64::from_le(self.word(offset).load(Ordering::Acquire)))
    }

    #[inline]
    pub(super) fn store(&self, offset: u64, word: u64) -> Result<()> {
        check_word(self.len(), offset)?;
        // Release: pairs with the acquire in `load` and `exchange`.
        self.word(offset).store(word.to_le(), Ordering::Release);
        Ok(())
    }

    #[inline]
    pub(super) fn exchange(&self, offset: u64, expected: u64, word: u64) -> Result<u64> {
        check_word(self.len(), offset)?;
        let (expected, word) = (expected.to_le(), word.to_le());
        // Both ways, as `load` and `store`.
        let found = self.word(offset).compare_exchange(expected, word, Ordering::AcqRel, Ordering::Acquire);
        Ok(u64::from_le(found.unwrap_or_else(|found| found)))
    }

    pub(super) fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        check_range(self.len(), offset, bytes.len() as u64)?;
        // Whole words in the middle, in a loop without a copy of unknown length, which would be a call for
        // each word; the bytes around them in parts.
        let head = (offset.next_multiple_of(WORD_BYTES) - offset).min(bytes.len() as u64) as usize;
        let (head, rest) = bytes.split_at_mut(head);
        self.read_part(offset, head);
        let mut at = offset + head.len() as u64;
        let mut whole = rest.chunks_exact_mut(WORD_BYTES as usize);
        for to in &mut whole {
            // Relaxed: the caller has loaded what orders the bytes.
            to.copy_from_slice(&self.word(at).load(Ordering::Relaxed).to_ne_bytes());
            at += WORD_BYTES;
        }
        self.read_part(at, whole.into_remainder());
        Ok(())
    }

    /// Reads a part of one word, whose range was checked.
    fn read_part(&self, offset: u64, bytes: &mut [u8]) {
        if bytes.is_empty() {
            return;
        }
        let begin = (offset % WORD_BYTES) as usize;
        debug_assert!(begin + bytes.len() <= WORD_BYTES as usize, "the part is of one word");
        // Relaxed: as in `read`.
        let word = self.word(offset - begin as u64).load(Ordering::Relaxed).to_ne_bytes();
        bytes.copy_from_slice(&word[begin..begin + bytes.len()]);
    }

    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        check_range(self.len(), offset, bytes.len() as u64)?;
        word_parts(offset, bytes).for_each(|(at, part, begin)| self.put(at, part, begin));
        Ok(())
    }

    /// Stores a word, or a part of one.
    #[inline]
    fn put(&self, at: u64, part: &[u8], begin: usize) {
        let word = self.word(at);
        // Relaxed: a later `store` of the caller publishes the bytes.
        match <[u8; WORD_BYTES as usize]>::try_from(part) {
            Ok(whole) => word.store(u64::from_ne_bytes(whole), Ordering::Relaxed),
            Err(_) => {
                let merged = with_part(u64::from_le(word.load(Ordering::Relaxed)), part, begin);
                word.store(merged.to_le(), Ordering::Relaxed);
            }
        }
    }

    pub(super) fn stream(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let len = bytes.len() as u64;
        check_range(self.len(), offset, len)?;
        // Lines in the middle as wholes, the words around them word by word.
        let head = offset.next_multiple_of(LINE_BYTES).saturating_sub(offset).min(len) as usize;
        let (head, rest) = bytes.split_at(head);
        self.stream_words(offset, head);
        let at = offset + head.len() as u64;
        let whole = rest.chunks_exact(LINE_BYTES as usize);
        let tail = whole.remainder();
        for (index, line) in whole.enumerate() {
            let line: &[u8; LINE_BYTES as usize] = line.try_into().expect("a chunk of a line");
            let to = self.address(at + index as u64 * LINE_BYTES).cast::<u64>();
            // SAFETY: within the region and at the start of a line; all threads use atomic words.
            unsafe { instructions::stream_line(to, line) };
        }
        self.stream_words(at + (rest.len() - tail.len()) as u64, tail);
        if !instructions::STREAMS {
            self.flush(offset, len)?;
        }
        Ok(())
    }

    /// Streams whole words; a part of a word is stored and its line flushed.
    fn stream_words(&self, offset: u64, bytes: &[u8]) {
        for (at, part, begin) in word_parts(offset, bytes) {
            match <[u8; WORD_BYTES as usize]>::try_from(part) {
                Ok(whole) => {
                    let to = self.address(at).cast::<u64>();
                    // SAFETY: within the region and aligned; all threads use atomic words.
                    unsafe { instructions::stream_word(to, u64::from_ne_bytes(whole)) };
                }
                Err(_) => {
                    self.put(at, part, begin);
                    self.instruction.flush(self.address(at - at % LINE_BYTES));
                }
            }
        }
    }

    #[inline]
    pub(super) fn flush(&self, offset: u64, len: u64) -> Result<()> {
        check_range(self.len(), offset, len)?;
        lines(offset, len).for_each(|line| self.instruction.flush(self.address(line)));
        Ok(())
    }

    #[inline]
    pub(super) fn fence(&self) {
        self.instruction.fence();
    }
}
