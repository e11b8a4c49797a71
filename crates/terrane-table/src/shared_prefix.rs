//! The common prefix of the current keys of a merge.

use terrane_base::key::head;

/// A prefix; mostly so short that a call to compare it would not pay.
///
/// Invariant: `head` is that of `bytes`.
#[derive(Debug, Default)]
pub(crate) struct SharedPrefix {
    bytes: Vec<u8>,
    head: u64,
}

impl SharedPrefix {
    pub(crate) fn set(&mut self, prefix: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(prefix);
        self.head = head(prefix);
    }

    /// The part of `key` after the prefix, if it begins with the prefix.
    #[inline]
    pub(crate) fn behind<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        debug_assert!(self.head == head(&self.bytes), "the head is that of the prefix");
        let len = self.bytes.len();
        match key.first_chunk::<8>() {
            Some(front) if len <= 8 => {
                let mask = u64::MAX.checked_shl(u64::BITS - 8 * len as u32).unwrap_or(0);
                (u64::from_be_bytes(*front) & mask == self.head).then(|| &key[len..])
            }
            _ => key.strip_prefix(self.bytes.as_slice()),
        }
    }
}
