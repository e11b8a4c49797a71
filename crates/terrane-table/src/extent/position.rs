//! Values at the position that a pointer says: no search in the index of the value table, and none in its
//! block where each interval is one entry.

use terrane_base::{SeqKind, SeqNo, ValuePosition};

use super::Extent;
use crate::swip::Epoch;

impl Extent {
    /// The version `seq` of `key` at the position at which it was written, if that part is cached and it lies
    /// there; its value is appended. Otherwise it has to be searched for. Under the caller's epoch. Counts
    /// nothing.
    #[inline]
    #[must_use]
    pub fn probe_at(
        &self,
        epoch: &Epoch,
        position: ValuePosition,
        key: &[u8],
        seq: SeqNo,
        value: &mut Vec<u8>,
    ) -> Option<SeqKind> {
        let index = self.index.swip.load(epoch)?;
        index.touch();
        let object = index.index().slots.get(position.block as usize)?.swip.load(epoch)?;
        object.prefetch();
        object.touch();
        let entry = object.block().find_at(position.entry, key, seq)?;
        debug_assert!(entry.seq_kind.seq() == seq, "a position is that of version {seq}, or of none");
        value.extend_from_slice(entry.value);
        Some(entry.seq_kind)
    }
}
