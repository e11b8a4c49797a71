//! Settings of how blocks are laid out and searched.

use super::Setting;

/// Layout of the entries of data blocks. Both layouts can always be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum BlockEncoding {
    /// Restart points every 16 entries.
    Plain = 1,
    /// A search tree of two layers over short runs of entries, where it fits the block.
    #[default]
    TwoLayer = 2,
}

/// The instructions that compare keys in a search tree. All return the same results; this is for measuring
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SearchKernel {
    /// The best that the processor has.
    #[default]
    Auto = 0,
    /// Without vector instructions.
    Scalar = 1,
    /// SSE2: every x86-64 processor. Never chosen automatically, because it is slower than no vectors.
    Sse2 = 2,
    /// AVX2.
    Avx2 = 3,
    /// AVX-512 F.
    Avx512 = 4,
    /// NEON: every 64-bit ARM processor.
    Neon = 5,
}

/// The memory of cached objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BlockMemory {
    /// In chunks of their own, on huge pages where the system gives them on advice.
    #[default]
    Arena,
    /// Each in its own heap allocation.
    Heap,
}

impl SearchKernel {
    /// All kernels, by their numbers.
    pub const ALL: [SearchKernel; 6] = [
        SearchKernel::Auto,
        SearchKernel::Scalar,
        SearchKernel::Sse2,
        SearchKernel::Avx2,
        SearchKernel::Avx512,
        SearchKernel::Neon,
    ];

    /// The kernel with this number.
    #[inline]
    #[must_use]
    pub fn from_u8(number: u8) -> Option<Self> {
        SearchKernel::ALL.get(usize::from(number)).copied()
    }
}

impl Setting for BlockEncoding {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        match text {
            "plain" => Ok(BlockEncoding::Plain),
            "two-layer" => Ok(BlockEncoding::TwoLayer),
            _ => Err("expected two-layer or plain".into()),
        }
    }

    fn show(&self) -> String {
        match self {
            BlockEncoding::Plain => "plain".into(),
            BlockEncoding::TwoLayer => "two-layer".into(),
        }
    }
}

impl Setting for BlockMemory {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        match text {
            "arena" => Ok(BlockMemory::Arena),
            "heap" => Ok(BlockMemory::Heap),
            _ => Err("expected arena or heap".into()),
        }
    }

    fn show(&self) -> String {
        match self {
            BlockMemory::Arena => "arena".into(),
            BlockMemory::Heap => "heap".into(),
        }
    }
}

const KERNEL_NAMES: [&str; SearchKernel::ALL.len()] = ["auto", "scalar", "sse2", "avx2", "avx512", "neon"];

impl Setting for SearchKernel {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        let found = KERNEL_NAMES.iter().position(|name| *name == text);
        found
            .map(|number| SearchKernel::ALL[number])
            .ok_or_else(|| format!("expected one of {}", KERNEL_NAMES.join(", ")))
    }

    fn show(&self) -> String {
        KERNEL_NAMES[*self as usize].into()
    }
}
