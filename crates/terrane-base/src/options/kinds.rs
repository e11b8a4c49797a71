//! Types of settings, and how each is read from and written as text.

use super::Setting;

/// How stored blocks are compressed.
///
/// ```
/// # use terrane_base::options::{Compression, Options};
/// let options = Options { compression_last: Compression::None, ..Options::default() };
/// assert!(options.show().contains(&("compression_last", "none".to_owned())));
/// assert_eq!(Compression::from_u8(1), Some(Compression::Lz4)); // the number that files have
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Compression {
    /// Not at all.
    None = 0,
    /// LZ4 block format: fast.
    #[default]
    Lz4 = 1,
    /// Zstandard: small. Needs the cargo feature `zstd`.
    Zstd = 2,
}

impl Compression {
    /// The codec with this number in the formats.
    #[must_use]
    pub fn from_u8(number: u8) -> Option<Self> {
        match number {
            0 => Some(Compression::None),
            1 => Some(Compression::Lz4),
            2 => Some(Compression::Zstd),
            _ => None,
        }
    }
}

/// Where commits are recorded before they are acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum JournalMode {
    /// Segment files: an unsynced commit survives the death of the process, a synced one the loss of power.
    #[default]
    File,
    /// Memory only: a commit that was not flushed is lost when the process ends. For data that can be created
    /// again.
    Off,
}

/// True if scattered reads of extents go to the device in batches, by io_uring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IoUring {
    /// Where the system provides it to this process; else one read after the other.
    #[default]
    Auto,
    /// Always: opening fails if it is not available.
    On,
    /// No.
    Off,
}

/// True if a tree is brought to fewer sorted runs while it is mostly read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AdaptiveShape {
    /// Never: the shape follows from sizes alone.
    Off,
    /// If the reads are expected to save more time than the merging takes.
    #[default]
    Auto,
    /// As soon as there are more reads than writes, whatever the merging takes.
    Eager,
}

impl Setting for bool {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        match text {
            "true" | "yes" | "on" | "1" => Ok(true),
            "false" | "no" | "off" | "0" => Ok(false),
            _ => Err("expected true or false".into()),
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Setting for u64 {
    /// A whole number, optionally with a unit: `KiB`, `MiB`, `GiB` (or `k`, `m`, `g`), powers of 1024.
    fn parse(text: &str) -> std::result::Result<Self, String> {
        let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        if !digits.starts_with(|c: char| c.is_ascii_digit()) {
            return Err("expected a whole number, such as 256MiB".into());
        }
        let unit = text[digits.len()..].trim().to_ascii_lowercase();
        let shift = match unit.as_str() {
            "" | "b" => 0,
            "k" | "kb" | "kib" => 10,
            "m" | "mb" | "mib" => 20,
            "g" | "gb" | "gib" => 30,
            "t" | "tb" | "tib" => 40,
            _ => return Err(format!("unknown unit {unit:?}: use KiB, MiB, GiB or TiB")),
        };
        let number: u64 = digits.parse().map_err(|_| "expected a whole number, such as 256MiB".to_owned())?;
        number.checked_mul(1 << shift).ok_or_else(|| "number is too large".to_owned())
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Setting for Compression {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        match text {
            "none" => Ok(Compression::None),
            "lz4" => Ok(Compression::Lz4),
            "zstd" => Ok(Compression::Zstd),
            _ => Err("expected none, lz4 or zstd".into()),
        }
    }

    fn show(&self) -> String {
        match self {
            Compression::None => "none".into(),
            Compression::Lz4 => "lz4".into(),
            Compression::Zstd => "zstd".into(),
        }
    }
}

impl Setting for JournalMode {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        match text {
            "file" => Ok(JournalMode::File),
            "off" => Ok(JournalMode::Off),
            _ => Err("expected file or off".into()),
        }
    }

    fn show(&self) -> String {
        match self {
            JournalMode::File => "file".into(),
            JournalMode::Off => "off".into(),
        }
    }
}

impl Setting for IoUring {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        match text {
            "auto" => Ok(IoUring::Auto),
            "on" => Ok(IoUring::On),
            "off" => Ok(IoUring::Off),
            _ => Err("expected auto, on or off".into()),
        }
    }

    fn show(&self) -> String {
        match self {
            IoUring::Auto => "auto".into(),
            IoUring::On => "on".into(),
            IoUring::Off => "off".into(),
        }
    }
}

impl Setting for AdaptiveShape {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        match text {
            "off" => Ok(AdaptiveShape::Off),
            "auto" => Ok(AdaptiveShape::Auto),
            "eager" => Ok(AdaptiveShape::Eager),
            _ => Err("expected off, auto or eager".into()),
        }
    }

    fn show(&self) -> String {
        match self {
            AdaptiveShape::Off => "off".into(),
            AdaptiveShape::Auto => "auto".into(),
            AdaptiveShape::Eager => "eager".into(),
        }
    }
}
