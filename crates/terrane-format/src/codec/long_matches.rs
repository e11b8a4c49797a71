//! Decompresses LZ4 blocks of long sequences: values of a kilobyte and more with runs, padding or repeats.
//!
//! `lz4_flex` copies a match that overlaps itself byte by byte, and each byte waits for the one before: a
//! run of eight kilobytes takes longer than all else in its block. Here runs are filled and repeats doubled.
//! Where sequences are short, as in text, `lz4_flex` is faster: [`prevail`] looks which kind a block is.
//!
//! ```text
//! sequence = token: lengths of literals and match, 4 bits each | more of the first | literals
//!          | offset of the match, 2 bytes | more of the second; the last one ends behind its literals
//! ```

/// The length in a token behind which more bytes of the length come.
const MORE: usize = 15;
/// The shortest match.
const MATCH_MIN: usize = 4;
/// Sequences that are looked at, after so few first that text costs little.
const LOOKS: [usize; 2] = [4, 16];
/// Mean bytes of a long sequence.
const LONG_BYTES: usize = 128;
/// A repeat of at most so many bytes is copied byte by byte.
const SHORT_BYTES: usize = 32;

/// The reason why a block is refused.
type Refusal = &'static str;

/// Bytes of a block that are read one after the other.
struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    fn byte(&mut self) -> Result<usize, Refusal> {
        let byte = *self.bytes.get(self.at).ok_or("it ends within a sequence")?;
        self.at += 1;
        Ok(usize::from(byte))
    }

    fn slice(&mut self, len: usize) -> Result<&'a [u8], Refusal> {
        let slice = self.bytes[self.at..].get(..len).ok_or("it ends within a sequence")?;
        self.at += len;
        Ok(slice)
    }

    /// A length whose first part is `short`, four bits of a token. At most 255 times the bytes of the block.
    fn len(&mut self, short: usize) -> Result<usize, Refusal> {
        let mut len = short;
        let mut more = short == MORE;
        while more {
            let byte = self.byte()?;
            len += byte;
            more = byte == 255;
        }
        Ok(len)
    }

    fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }
}

/// One sequence.
struct Sequence<'a> {
    literals: &'a [u8],
    /// Offset and length of the match; none behind the last literals.
    copied: Option<(usize, usize)>,
}

fn sequence<'a>(input: &mut Input<'a>) -> Result<Sequence<'a>, Refusal> {
    let token = input.byte()?;
    let len = input.len(token >> 4)?;
    let literals = input.slice(len)?;
    if input.is_at_end() {
        return Ok(Sequence { literals, copied: None });
    }
    let offset = input.byte()? | input.byte()? << 8;
    let copied = Some((offset, input.len(token & 15)? + MATCH_MIN));
    Ok(Sequence { literals, copied })
}

/// Returns true if sequences at the beginning of a block are long. Of bytes that are not a block either may
/// come out.
pub(super) fn prevail(stored: &[u8]) -> bool {
    let mut input = Input { bytes: stored, at: 0 };
    let (mut count, mut made) = (0, 0);
    for looks in LOOKS {
        while count < looks && !input.is_at_end() {
            let Ok(Sequence { literals, copied }) = sequence(&mut input) else { return false };
            made += literals.len() + copied.map_or(0, |(_, len)| len);
            count += 1;
        }
        if made < count * LONG_BYTES {
            return false;
        }
    }
    count > 0
}

/// Decompresses `stored` into the first bytes of `raw`; returns how many. Takes what LZ4 takes, whatever
/// [`prevail`] says of it.
pub(super) fn decompress(stored: &[u8], raw: &mut [u8]) -> Result<usize, Refusal> {
    let mut input = Input { bytes: stored, at: 0 };
    let mut to = 0;
    loop {
        let Sequence { literals, copied } = sequence(&mut input)?;
        let room = raw[to..].get_mut(..literals.len()).ok_or("its literals are too many")?;
        room.copy_from_slice(literals);
        to += literals.len();
        let Some((offset, len)) = copied else { return Ok(to) };
        if offset == 0 || offset > to {
            return Err("a match begins outside of it");
        }
        if len > raw.len() - to {
            return Err("a match is too long");
        }
        repeat(raw, to, offset, len);
        to += len;
        debug_assert!(to <= raw.len(), "a match of {len} bytes passes the end");
    }
}

/// Appends `len` bytes, each of which is the one `offset` before it, at `to`. Requires: they have room, and
/// `offset` is 1 to `to`.
fn repeat(raw: &mut [u8], to: usize, offset: usize, len: usize) {
    let (from, end) = (to - offset, to + len);
    if offset == 1 {
        let byte = raw[from];
        raw[to..end].fill(byte);
    } else if len <= SHORT_BYTES && len > offset {
        let part = &mut raw[from..end];
        for at in offset..part.len() {
            part[at] = part[at - offset];
        }
    } else {
        // The output is periodic, so each copy may double it.
        let mut at = to;
        while at < end {
            let some = (at - from).min(end - at);
            raw.copy_within(from..from + some, at);
            at += some;
        }
    }
}

#[cfg(test)]
mod tests {
    use terrane_base::Rng;

    use super::*;

    /// Bytes of which a part repeats with a period, in pieces of up to `longest` bytes.
    fn bytes(rng: &mut Rng, longest: usize) -> Vec<u8> {
        let mut raw = Vec::new();
        for _ in 0..1 + rng.index(12) {
            let (period, len) = (1 + rng.index(40), 1 + rng.index(longest));
            let piece: Vec<u8> = (0..period).map(|_| rng.index(256) as u8).collect();
            raw.extend(piece.iter().cycle().take(len));
            raw.extend((0..rng.index(longest)).map(|_| rng.index(256) as u8));
        }
        raw
    }

    #[test]
    fn it_takes_what_the_library_takes() {
        let mut rng = Rng::new(22);
        let (mut taken, mut refused) = (0, 0);
        for round in 0..600 {
            let raw = bytes(&mut rng, [8, 80, 800][round % 3]);
            let mut stored = lz4_flex::block::compress(&raw);
            for damage in 0..8 {
                if damage > 0 {
                    let at = rng.index(stored.len());
                    stored[at] = rng.index(256) as u8;
                }
                let (mut ours, mut theirs) = (vec![0; raw.len()], vec![0; raw.len()]);
                let found = decompress(&stored, &mut ours);
                let expected = lz4_flex::block::decompress_into(&stored, &mut theirs);
                assert_eq!(found.ok(), expected.ok(), "round {round}, damage {damage}");
                if let Ok(len) = found {
                    assert_eq!(ours[..len], theirs[..len], "round {round}, damage {damage}");
                }
                taken += usize::from(found.is_ok());
                refused += usize::from(found.is_err());
                assert!(damage > 0 || ours == raw, "round {round} comes back");
            }
        }
        assert!(taken > 600 && refused > 100, "{taken} taken, {refused} refused");
    }

    #[test]
    fn blocks_that_end_early_or_reach_outside_are_refused() {
        let refuses = |stored: &[u8], room: usize| {
            let _ = prevail(stored);
            decompress(stored, &mut vec![0; room]).unwrap_err()
        };
        assert_eq!(refuses(&[], 9), "it ends within a sequence");
        assert_eq!(refuses(&[0xf0, 255, 255], 9), "it ends within a sequence");
        assert_eq!(refuses(&[0x20, 7], 9), "it ends within a sequence");
        assert_eq!(refuses(&[0x10, 7, 1], 9), "it ends within a sequence");
        assert_eq!(refuses(&[0x10, 7, 1, 0], 9), "it ends within a sequence");
        assert_eq!(refuses(&[0x10, 7, 0, 0, 0], 9), "a match begins outside of it");
        assert_eq!(refuses(&[0x10, 7, 2, 0, 0], 9), "a match begins outside of it");
        assert_eq!(refuses(&[0x10, 7, 1, 0, 0], 4), "a match is too long");
        assert_eq!(refuses(&[0x20, 7, 8], 1), "its literals are too many");
        assert_eq!(decompress(&[0x10, 7, 1, 0, 0], &mut [0; 9]), Ok(5));
    }

    #[test]
    fn long_and_short_sequences_are_distinguished() {
        let mut rng = Rng::new(3);
        let mut noise = |len: usize| -> Vec<u8> { (0..len).map(|_| rng.index(256) as u8).collect() };
        let rows = |parts: Vec<(Vec<u8>, usize)>| -> Vec<u8> {
            let row = |(noise, run): (Vec<u8>, usize)| [noise, vec![b'.'; run]].concat();
            lz4_flex::block::compress(&parts.into_iter().flat_map(row).collect::<Vec<u8>>())
        };
        assert!(prevail(&rows((0..16).map(|_| (noise(500), 500)).collect())), "rows of a kilobyte");
        assert!(prevail(&rows(vec![(noise(8000), 8000)])), "a long row alone");
        assert!(!prevail(&rows((0..160).map(|_| (noise(50), 50)).collect())), "rows of a hundred bytes");
        let text =
            (0..900).map(|at| format!("{{\"row\":{at},\"mail\":\"{}\"}}", at * at)).collect::<String>();
        assert!(!prevail(&lz4_flex::block::compress(text.as_bytes())), "text");
        let late = [text.as_bytes(), &[b'.'; 4000]].concat();
        assert!(!prevail(&lz4_flex::block::compress(&late)), "text before a run");
        assert!(!prevail(&[]) && !prevail(&[0xf0]), "no block");
    }
}
