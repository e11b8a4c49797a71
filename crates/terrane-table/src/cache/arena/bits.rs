//! Runs of free granules in a chunk, as a map of bits.

const WORD_BITS: usize = u64::BITS as usize;

/// A bitmap of granules: a bit is set if its granule is taken. Any run of clear bits can be taken, so
/// adjacent runs that were freed are one run again.
#[derive(Debug)]
pub(super) struct Bits {
    words: Box<[u64]>,
    len: usize,
}

impl Bits {
    /// A map of `len` clear bits.
    pub(super) fn new(len: usize) -> Bits {
        Bits { words: vec![0; len.div_ceil(WORD_BITS)].into(), len }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_set(&self, at: usize) -> bool {
        self.words[at / WORD_BITS] >> (at % WORD_BITS) & 1 == 1
    }

    /// Sets or clears a run.
    pub(super) fn fill(&mut self, start: usize, len: usize, value: bool) {
        let (mut at, end) = (start, start + len);
        assert!(end <= self.len, "granules {start}..{end} of {}", self.len);
        while at < end {
            let (word, bit) = (at / WORD_BITS, at % WORD_BITS);
            let count = (WORD_BITS - bit).min(end - at);
            let mask = (u64::MAX >> (WORD_BITS - count)) << bit;
            if value {
                self.words[word] |= mask;
            } else {
                self.words[word] &= !mask;
            }
            at += count;
        }
    }

    /// The indexes of set bits.
    pub(super) fn ones(&self) -> impl Iterator<Item = usize> {
        let tail_bits = self.len % WORD_BITS;
        debug_assert!(
            tail_bits == 0 || self.words.last().is_none_or(|last| last >> tail_bits == 0),
            "a bit behind the last granule would be an address outside of the chunk"
        );
        self.words.iter().enumerate().flat_map(|(word, &bits)| {
            let rest = |bits: &u64| Some(bits & (bits - 1)).filter(|bits| *bits != 0);
            let first = Some(bits).filter(|bits| *bits != 0);
            std::iter::successors(first, rest).map(move |b| word * WORD_BITS + b.trailing_zeros() as usize)
        })
    }

    /// The clear runs in order: start and length.
    pub(super) fn gaps(&self) -> impl Iterator<Item = (usize, usize)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let start = self.next(at, false);
            if start >= self.len {
                return None;
            }
            at = self.next(start, true).min(self.len);
            debug_assert!(start < at, "a run of free granules is not empty");
            Some((start, at - start))
        })
    }

    /// The shortest clear run of at least `wanted` bits, the first of several, and the length of the longest
    /// run.
    pub(super) fn fit(&self, wanted: usize) -> (Option<usize>, usize) {
        let (mut best, mut longest) = (None, 0);
        for (start, len) in self.gaps() {
            longest = longest.max(len);
            if len >= wanted && best.is_none_or(|(_, least)| len < least) {
                best = Some((start, len));
            }
        }
        debug_assert!(
            best.is_none_or(|(_, len)| wanted <= len && len <= longest),
            "the shortest that is enough"
        );
        (best.map(|(start, _)| start), longest)
    }

    /// The first bit from `at` on that has `value`, or any number from the length on.
    fn next(&self, at: usize, value: bool) -> usize {
        let flip = if value { 0 } else { u64::MAX };
        let Some(&first) = self.words.get(at / WORD_BITS) else { return self.len };
        let rest = (first ^ flip) & (u64::MAX << (at % WORD_BITS));
        if rest != 0 {
            return at / WORD_BITS * WORD_BITS + rest.trailing_zeros() as usize;
        }
        let behind = at / WORD_BITS + 1;
        let found = self.words[behind..].iter().position(|word| word ^ flip != 0);
        let found = found.map_or(self.len, |word| {
            let word = behind + word;
            word * WORD_BITS + (self.words[word] ^ flip).trailing_zeros() as usize
        });
        debug_assert!(
            found >= self.len || self.is_set(found) == value,
            "bit {found}, which was found, is {value}"
        );
        found
    }
}
