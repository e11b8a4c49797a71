//! The answers of a multi_get: one buffer for all values, used again from call to call.

use terrane_base::Result;

/// Values of several keys, in the order of the keys. To be used again: what it allocated stays.
///
/// ```
/// # use terrane_engine::Values;
/// /// Works with the answers of a read of many keys; the next read uses their memory again.
/// fn show(values: &Values) {
///     println!("{} keys, {} bytes", values.len(), values.value_bytes());
///     for value in values.iter() {
///         println!("{value:?}");
///     }
///     if !values.is_empty() {
///         println!("the first is {:?}", values.get(0));
///     }
/// }
/// let values = Values::new(); // passed to `multi_get_into`, again and again
/// show(&values);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Values {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    distinct: Distinct,
}

/// The distinct keys of a call. Kept with the call's buffers, so that its memory is reused.
#[derive(Clone, Debug, Default)]
pub(crate) struct Distinct {
    /// The first of each set of equal keys, in order, by index, and its hash.
    pub(crate) keys: Vec<(usize, u64)>,
    /// Indexes of the others, each with that of its first.
    repeats: Vec<(usize, usize)>,
    /// Open addressing: 1 + place in `keys`, or 0.
    table: Vec<u32>,
}

impl Distinct {
    /// Finds the distinct keys; `hash` is their hash.
    pub(crate) fn find(&mut self, keys: &[&[u8]], hash: impl Fn(&[u8]) -> u64) {
        self.keys.clear();
        self.repeats.clear();
        self.table.clear();
        self.table.resize((2 * keys.len()).next_power_of_two(), 0);
        let mask = self.table.len() - 1;
        'keys: for (index, key) in keys.iter().enumerate() {
            let hash = hash(key);
            let mut place = hash as usize & mask;
            while let Some(known) = self.table[place].checked_sub(1) {
                let (first, first_hash) = self.keys[known as usize];
                if first_hash == hash && keys[first] == *key {
                    self.repeats.push((index, first));
                    continue 'keys;
                }
                place = (place + 1) & mask;
            }
            self.keys.push((index, hash));
            self.table[place] = self.keys.len() as u32;
        }
        debug_assert!(
            self.keys.len() + self.repeats.len() == keys.len(),
            "a key is looked up or repeats another"
        );
    }
}

/// Where in the buffer a value is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    start: usize,
    end: usize,
}

impl Span {
    const NONE: Span = Span { start: usize::MAX, end: usize::MAX };
}

impl Values {
    /// No values.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many keys were asked for.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns true if no key was asked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Bytes of all values together; of equal keys those of one.
    #[inline]
    #[must_use]
    pub fn value_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The value of the key at `index`; `None` if it has none.
    ///
    /// # Panics
    /// If fewer keys were asked for.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let span = self.spans[index];
        self.bytes.get(span.start..span.end)
    }

    /// The values in the order of the keys.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<&[u8]>> {
        self.spans.iter().map(|span| self.bytes.get(span.start..span.end))
    }

    /// Forgets everything and makes room for the answers of `keys` keys, none of which has a value yet.
    pub(crate) fn begin(&mut self, keys: usize) {
        self.bytes.clear();
        self.spans.clear();
        self.spans.resize(keys, Span::NONE);
    }

    /// Sets the value of the key at `index`.
    #[inline]
    pub(crate) fn set(&mut self, index: usize, value: &[u8]) {
        debug_assert!(self.get(index).is_none(), "the value of a key is set once");
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.spans[index] = Span { start, end: self.bytes.len() };
    }

    /// Sets the value of the key at `index` to what `read` appends, if it says that there is one; returns
    /// that.
    pub(crate) fn set_if(&mut self, index: usize, read: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
        let start = self.bytes.len();
        let is_there = read(&mut self.bytes);
        debug_assert!(self.bytes.len() >= start, "a value is appended to those of other keys");
        if is_there {
            self.spans[index] = Span { start, end: self.bytes.len() };
        }
        is_there
    }

    /// Sets the value of the key at `index` to what `read` appends, if it says that there is one.
    pub(crate) fn set_by(
        &mut self,
        index: usize,
        read: impl FnOnce(&mut Vec<u8>) -> Result<bool>,
    ) -> Result<()> {
        debug_assert!(self.get(index).is_none(), "the value of a key is set once");
        let start = self.bytes.len();
        if read(&mut self.bytes)? {
            debug_assert!(self.bytes.len() >= start, "a value is appended to those of other keys");
            self.spans[index] = Span { start, end: self.bytes.len() };
        }
        Ok(())
    }

    /// Lends out the memory for finding distinct keys; [`Values::finish`] takes it back.
    pub(crate) fn take_distinct(&mut self) -> Distinct {
        std::mem::take(&mut self.distinct)
    }

    /// Gives equal keys equal answers.
    pub(crate) fn finish(&mut self, distinct: Distinct) {
        for &(index, first) in &distinct.repeats {
            debug_assert!(first < index, "a key repeats one before it");
            self.spans[index] = self.spans[first];
        }
        self.distinct = distinct;
    }
}
