//! Seeded changes of inputs, for the smoke on a toolchain without libFuzzer: the same seed gives the same input.

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub struct Numbers(pub u64);

impl Numbers {
    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.draw() % bound as u64) as usize
    }
}

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
    let mut numbers = Numbers(seed);
    if corpus.is_empty() {
        return Vec::new();
    }
    let mut bytes = corpus[numbers.below(corpus.len())].clone();
    for _ in 0..1 + numbers.below(8) {
        change(&mut bytes, corpus, &mut numbers);
        bytes.truncate(BYTES_MAX);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, corpus: &[Vec<u8>], numbers: &mut Numbers) {
    if bytes.is_empty() {
        bytes.extend((0..numbers.below(64)).map(|_| numbers.draw() as u8).collect::<Vec<_>>());
        return;
    }
    let at = numbers.below(bytes.len());
    match numbers.below(9) {
        0 => bytes[at] ^= 1 << numbers.below(8),
        1 => bytes[at] = numbers.draw() as u8,
        2 => bytes[at] = bytes[at].wrapping_add(numbers.below(5) as u8).wrapping_sub(2),
        3 => {
            let edge = EDGES[numbers.below(EDGES.len())].to_le_bytes();
            let len = [1, 2, 4, 8][numbers.below(4)].min(bytes.len() - at);
            bytes[at..at + len].copy_from_slice(&edge[..len]);
        }
        4 => bytes.truncate(at),
        5 => {
            let end = (at + 1 + numbers.below(32)).min(bytes.len());
            bytes.drain(at..end);
        }
        6 => {
            let added: Vec<u8> = (0..1 + numbers.below(16)).map(|_| numbers.draw() as u8).collect();
            bytes.splice(at..at, added);
        }
        7 => copy_piece(bytes, at, numbers),
        _ => {
            // The front of this input and the back of another.
            let other = &corpus[numbers.below(corpus.len())];
            let from = at.min(other.len());
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
    }
}

/// Copies a piece of the input over another one of it, or doubles it.
fn copy_piece(bytes: &mut Vec<u8>, at: usize, numbers: &mut Numbers) {
    let end = (at + 1 + numbers.below(64)).min(bytes.len());
    let piece = bytes[at..end].to_vec();
    let to = numbers.below(bytes.len());
    let over = if numbers.below(2) == 0 { (to + piece.len()).min(bytes.len()) } else { to };
    bytes.splice(to..over, piece);
}
