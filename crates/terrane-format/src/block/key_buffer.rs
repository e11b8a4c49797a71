//! The key at a cursor's position, rebuilt from entry to entry.

use super::two_layer::Parts;

/// Bytes that are copied at once: longer than most parts of keys.
const CHUNK: usize = 16;

/// A key that is rebuilt from entry to entry: its front is kept and the rest is replaced.
///
/// Invariant: `len <= bytes.len()`. Bytes after `len` mean nothing: a short part is copied as a whole chunk,
/// with one load and one store, because a copy of the exact length costs a function call.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyBuffer {
    bytes: Vec<u8>,
    len: usize,
}

impl KeyBuffer {
    #[inline]
    pub(super) fn key(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Sets the key to `key`.
    pub(super) fn set(&mut self, key: &[u8]) {
        self.len = 0;
        self.replace(0, key, 0, key.len());
    }

    /// Keeps the first `at` bytes (all, if there are fewer) and appends `source[from..from + len]`, or
    /// nothing if that range is outside `source`.
    #[inline]
    pub(super) fn replace(&mut self, at: usize, source: &[u8], from: usize, len: usize) {
        if len <= CHUNK
            && at <= self.len
            && let Some(source) = source.get(from..).and_then(|source| source.first_chunk::<CHUNK>())
            && let Some(room) = self.bytes.get_mut(at..).and_then(|room| room.first_chunk_mut::<CHUNK>())
        {
            *room = *source;
            self.len = at + len;
            return;
        }
        self.replace_slowly(at, source.get(from..).and_then(|source| source.get(..len)).unwrap_or_default());
    }

    /// As [`KeyBuffer::replace`], for the first entry of an interval: appends the head and then the entry's
    /// suffix.
    #[inline]
    pub(super) fn replace_behind_head(&mut self, at: usize, head: u64, parts: &Parts, source: &[u8]) {
        if parts.unshared <= CHUNK
            && at <= self.len
            && let Some(source) =
                source.get(parts.suffix_at..).and_then(|source| source.first_chunk::<CHUNK>())
            && let Some(room) =
                self.bytes.get_mut(at..).and_then(|room| room.first_chunk_mut::<{ 8 + CHUNK }>())
        {
            // A head of fewer than 8 bytes has no suffix.
            let (front, back) = room.split_at_mut(8);
            front.copy_from_slice(&head.to_be_bytes());
            back.copy_from_slice(source);
            self.len = at + parts.key_len();
            return;
        }
        self.replace_by_head(at, head, parts.shared);
        self.replace(at + parts.shared, source, parts.suffix_at, parts.unshared);
    }

    /// As [`KeyBuffer::replace`], for the first `len` bytes of a head.
    #[inline]
    pub(super) fn replace_by_head(&mut self, at: usize, head: u64, len: usize) {
        let bytes = head.to_be_bytes();
        if at <= self.len
            && let Some(room) = self.bytes.get_mut(at..).and_then(|room| room.first_chunk_mut())
        {
            *room = bytes;
            self.len = at + len.min(bytes.len());
            return;
        }
        self.replace_slowly(at, &bytes[..len.min(bytes.len())]);
    }

    #[cold]
    fn replace_slowly(&mut self, at: usize, part: &[u8]) {
        let at = at.min(self.len);
        self.len = at + part.len();
        if self.bytes.len() < self.len + CHUNK {
            // Room for the chunks of the next keys.
            self.bytes.resize(self.len + 4 * CHUNK, 0);
        }
        self.bytes[at..self.len].copy_from_slice(part);
    }
}
