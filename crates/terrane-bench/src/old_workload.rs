//! What a benchmark does. Keys and values are functions of a number, so that a run can be repeated and a read can
//! check what it gets.

/// One benchmark of db_bench's set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Puts of keys in ascending order.
    FillSeq,
    /// Puts of keys in random order; each key about once.
    FillRandom,
    /// Puts of random keys that exist.
    Overwrite,
    /// Gets of random keys that exist.
    ReadRandom,
    /// Seeks to random keys, each with some nexts.
    SeekRandom,
}

impl Workload {
    /// Every workload, in the order in which a default run does them.
    pub const ALL: [Workload; 5] = [
        Workload::FillSeq,
        Workload::FillRandom,
        Workload::Overwrite,
        Workload::ReadRandom,
        Workload::SeekRandom,
    ];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Workload::FillSeq => "fillseq",
            Workload::FillRandom => "fillrandom",
            Workload::Overwrite => "overwrite",
            Workload::ReadRandom => "readrandom",
            Workload::SeekRandom => "seekrandom",
        }
    }

    /// The workload of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Workload::ALL.into_iter().find(|workload| workload.name() == name)
    }

    /// Whether it needs what a fill leaves.
    #[must_use]
    pub fn needs_data(self) -> bool {
        !matches!(self, Workload::FillSeq | Workload::FillRandom)
    }

    /// Whether it writes.
    #[must_use]
    pub fn writes(self) -> bool {
        matches!(self, Workload::FillSeq | Workload::FillRandom | Workload::Overwrite)
    }
}

/// A fast generator for benchmarks (xorshift64*, Vigna 2016); not for anything else.
#[derive(Clone, Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// A generator with its own sequence per seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `bound`, which is not 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        // Multiply-shift (Lemire 2019) without the correction: the bias is below 2^-32 for our bounds.
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

/// Writes the key of `number` into `key`, whose length is kept: the number in decimal, led by zeros, as db_bench.
#[inline]
pub fn key_into(mut number: u64, key: &mut [u8]) {
    for digit in key.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// Values of a given entropy: a window moves over a buffer half of which, by default, repeats.
#[derive(Clone, Debug)]
pub struct Values {
    pool: Vec<u8>,
    at: usize,
}

impl Values {
    /// Values of which compression leaves about `entropy` (0 to 1).
    #[must_use]
    pub fn new(seed: u64, value_bytes: usize, entropy: f64) -> Self {
        let mut numbers = Numbers::new(seed);
        let mut pool = Vec::with_capacity((1 << 20) + value_bytes);
        while pool.len() < (1 << 20) + value_bytes {
            let fresh = ((100.0 * entropy) as usize).clamp(1, 100);
            let piece: Vec<u8> = (0..fresh).map(|_| b' ' + (numbers.next_u64() % 95) as u8).collect();
            pool.extend(piece.iter().cycle().take(100));
        }
        Values { pool, at: 0 }
    }

    /// The next value of `bytes` bytes.
    #[inline]
    pub fn next(&mut self, bytes: usize) -> &[u8] {
        if self.at + bytes > self.pool.len() {
            self.at = 0;
        }
        let value = &self.pool[self.at..self.at + bytes];
        self.at += bytes.max(1);
        value
    }
}
