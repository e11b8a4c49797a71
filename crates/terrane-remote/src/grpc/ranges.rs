//! Ranges of a read, cut into requests.
//!
//! A range of any length becomes pieces that follow each other, so the answers in the order of the requests
//! are the bytes of the ranges in their order.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::{Buf, Bytes};

use super::messages::ByteRange;
use super::wire::RANGES_MAX;

/// Bytes that are asked for by one request.
const REQUEST_BYTES: u64 = 8 << 20;

/// Requests for ranges, none of which runs backward: made when they are sent, because a caller may ask for
/// more than there is.
pub(super) struct Requests {
    rest: VecDeque<Range<u64>>,
}

impl Requests {
    pub(super) fn new(ranges: &[Range<u64>]) -> Requests {
        debug_assert!(ranges.iter().all(|range| range.start <= range.end), "checked before");
        Requests { rest: ranges.iter().filter(|range| !range.is_empty()).cloned().collect() }
    }
}

impl Iterator for Requests {
    type Item = Vec<ByteRange>;

    fn next(&mut self) -> Option<Vec<ByteRange>> {
        let (mut pieces, mut bytes) = (Vec::new(), 0);
        while bytes < REQUEST_BYTES && pieces.len() < RANGES_MAX {
            let Some(range) = self.rest.front_mut() else { break };
            let end = range.end.min(range.start + (REQUEST_BYTES - bytes));
            pieces.push(ByteRange { start: range.start, end });
            bytes += end - range.start;
            range.start = end;
            if range.is_empty() {
                self.rest.pop_front();
            }
        }
        debug_assert!(bytes <= REQUEST_BYTES, "the server takes it");
        Some(pieces).filter(|pieces| !pieces.is_empty())
    }
}

/// The bytes of a request's pieces.
pub(super) fn bytes_of(pieces: &[ByteRange]) -> u64 {
    pieces.iter().map(|piece| piece.end - piece.start).sum()
}

/// Cuts answers, which have the bytes of the ranges one behind the other.
pub(super) fn cut(ranges: &[Range<u64>], answers: Vec<Bytes>) -> Vec<Bytes> {
    let mut rest: VecDeque<Bytes> = answers.into();
    let cut = ranges.iter().map(|range| take(&mut rest, (range.end - range.start) as usize)).collect();
    assert!(rest.iter().all(Bytes::is_empty), "no byte more than was asked for");
    cut
}

fn take(rest: &mut VecDeque<Bytes>, len: usize) -> Bytes {
    while rest.front().is_some_and(Bytes::is_empty) {
        rest.pop_front();
    }
    match rest.front_mut() {
        Some(front) if front.len() >= len => front.split_to(len),
        _ => {
            let mut whole = Vec::with_capacity(len);
            while whole.len() < len {
                let front = rest.front_mut().expect("each answer has what was asked for");
                let part = front.len().min(len - whole.len());
                whole.extend_from_slice(&front[..part]);
                front.advance(part);
                if front.is_empty() {
                    rest.pop_front();
                }
            }
            whole.into()
        }
    }
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "a list of one range")]
mod tests {
    use super::*;

    /// Requests for `ranges`, answered from an object of bytes that follow from their offset, and cut.
    fn answered(ranges: &[Range<u64>]) -> (usize, Vec<Bytes>) {
        let byte = |at: u64| (at ^ (at >> 8) ^ (at >> 16)) as u8;
        let answers: Vec<Bytes> = Requests::new(ranges)
            .map(|pieces| {
                assert!(bytes_of(&pieces) <= REQUEST_BYTES && pieces.len() <= RANGES_MAX);
                pieces.iter().flat_map(|piece| (piece.start..piece.end).map(byte)).collect()
            })
            .collect();
        let found = (answers.len(), cut(ranges, answers));
        for (range, bytes) in ranges.iter().zip(&found.1) {
            assert!(bytes.iter().copied().eq(range.clone().map(byte)), "{range:?}");
        }
        found
    }

    #[test]
    fn answers_are_cut_as_they_were_asked_for() {
        assert_eq!(answered(&[]).0, 0);
        assert_eq!(answered(&[3..3]).0, 0);
        assert_eq!(answered(&[5..8, 0..2, 4..4, 1..6]).0, 1);
        assert_eq!(answered(&[0..REQUEST_BYTES + 1, 2..3]).0, 2);
        assert_eq!(answered(&vec![7..8; RANGES_MAX + 1]).0, 2);
    }

    #[test]
    fn a_range_without_an_end_is_made_piece_by_piece() {
        let mut requests = Requests::new(&[6..u64::MAX]);
        let first = requests.next().expect("there is one");
        assert_eq!(first, [ByteRange { start: 6, end: 6 + REQUEST_BYTES }]);
        assert!(requests.next().is_some());
    }
}
