//! Seeded changes of inputs, for the smoke on a toolchain without libFuzzer: the same seed gives the same
//! input.

use terrane_base::Rng;

/// Numbers at which lengths and counts go wrong.
const EDGES: [u64; 14] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0xffff_ffff,
    (1 << 56) - 1,
    u64::MAX - 1,
    u64::MAX,
];
/// Longest input made.
const BYTES_MAX: usize = 128 << 10;

/// An input made of one of `corpus` by up to eight changes; `seed` says which.
#[must_use]
pub fn mutated(corpus: &[Vec<u8>], seed: u64) -> Vec<u8> {
    let mut numbers = Rng::new(seed);
    if corpus.is_empty() {
        return Vec::new();
    }
    let mut bytes = corpus[numbers.index(corpus.len())].clone();
    for _ in 0..1 + numbers.index(8) {
        change(&mut bytes, corpus, &mut numbers);
        bytes.truncate(BYTES_MAX);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, corpus: &[Vec<u8>], numbers: &mut Rng) {
    if bytes.is_empty() {
        bytes.extend((0..numbers.index(64)).map(|_| numbers.next_u64() as u8).collect::<Vec<_>>());
        return;
    }
    let at = numbers.index(bytes.len());
    match numbers.index(9) {
        0 => bytes[at] ^= 1 << numbers.index(8),
        1 => bytes[at] = numbers.next_u64() as u8,
        2 => bytes[at] = bytes[at].wrapping_add(numbers.index(5) as u8).wrapping_sub(2),
        3 => {
            let edge = EDGES[numbers.index(EDGES.len())].to_le_bytes();
            let len = [1, 2, 4, 8][numbers.index(4)].min(bytes.len() - at);
            bytes[at..at + len].copy_from_slice(&edge[..len]);
        }
        4 => bytes.truncate(at),
        5 => {
            let end = (at + 1 + numbers.index(32)).min(bytes.len());
            bytes.drain(at..end);
        }
        6 => {
            let added: Vec<u8> = (0..1 + numbers.index(16)).map(|_| numbers.next_u64() as u8).collect();
            bytes.splice(at..at, added);
        }
        7 => copy_piece(bytes, at, numbers),
        _ => {
            // The front of this input and the back of another.
            let other = &corpus[numbers.index(corpus.len())];
            let from = at.min(other.len());
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
    }
}

/// Copies a piece of the input over another one of it, or doubles it.
fn copy_piece(bytes: &mut Vec<u8>, at: usize, numbers: &mut Rng) {
    let end = (at + 1 + numbers.index(64)).min(bytes.len());
    let piece = bytes[at..end].to_vec();
    let to = numbers.index(bytes.len());
    let over = if numbers.index(2) == 0 { (to + piece.len()).min(bytes.len()) } else { to };
    bytes.splice(to..over, piece);
}
