//! Sets a damaged part of an extent right, for repair: its checksum stands in the meta and in the footer,
//! too, and tells which byte is wrong if it is one alone.
//!
//! A part is only set right if its content or its own copy of the checksum is as the meta says: the part of
//! another extent, which lay in the slot before, has neither.

use super::Handle;
use crate::checksum::{WrongByte, crc32c, wrong_bytes};
use crate::{index, range_deletes};

/// Bytes that are tried in the place of the wrong one, at most: more than one fits by chance only, once in
/// 2^24 bytes.
const TRIES_MAX: usize = 16;

/// The part, for the seed of its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The index block.
    Index,
    /// The range deletes.
    RangeDeletes,
    /// The list of value tables.
    References,
}

impl Part {
    fn seed(self) -> u32 {
        match self {
            Part::Index => index::SEED,
            Part::RangeDeletes => range_deletes::SEED,
            Part::References => super::references::SEED,
        }
    }
}

/// The state of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Every byte is as written.
    Sound,
    /// These bytes were written: one of those that were read is wrong, or some of the part's own checksum.
    Mended(Vec<u8>),
    /// More than that is damaged.
    Damaged,
    /// It is a whole part, but not the one that `handle` names.
    Another,
}

/// Looks at the bytes that were read of a part. `is_right` says of bytes that have the checksum, and differ
/// from those in one byte, if they can be the part: only if one byte alone leads to such bytes, it is that.
#[must_use]
pub fn state_of(kind: Part, handle: Handle, bytes: &[u8], is_right: &mut dyn FnMut(&[u8]) -> bool) -> State {
    let Some((body, stored)) = bytes.split_last_chunk().filter(|_| bytes.len() == handle.len as usize) else {
        return State::Damaged;
    };
    let (found, stored) = (crc32c(kind.seed(), body), u32::from_le_bytes(*stored));
    if found == handle.checksum {
        if stored == found {
            return State::Sound;
        }
        let mended = [body, &found.to_le_bytes()].concat();
        return if is_right(&mended) { State::Mended(mended) } else { State::Damaged };
    }
    if stored != handle.checksum {
        return if stored == found { State::Another } else { State::Damaged };
    }
    let mut mended = bytes.to_vec();
    let mut right = None;
    for wrong in wrong_bytes(found, handle.checksum, body.len()).take(TRIES_MAX) {
        let WrongByte { at, bits } = wrong;
        mended[at] ^= bits;
        debug_assert_eq!(crc32c(kind.seed(), &mended[..body.len()]), handle.checksum, "{wrong:?}");
        let is_it = is_right(&mended);
        mended[at] ^= bits;
        if is_it && right.replace(wrong).is_some() {
            return State::Damaged;
        }
    }
    let Some(WrongByte { at, bits }) = right else { return State::Damaged };
    mended[at] ^= bits;
    State::Mended(mended)
}
