//! Annotated hex of any stored structure: each format describes its own bytes as a list of [`Field`]s.
//!
//! `describe` functions are total: bytes that cannot be understood become a last field named `broken`. None takes memory
//! without bound: a list ends after [`FIELDS_MAX`] rows, a manifest is told field by field.
//! Names and meanings are those of the pages that `docs/format/README.md` lists.

use terrane_base::{Moment, RecordKind, Stored};

/// One field of a stored structure, for people to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Where the field starts, from the start of the structure.
    pub offset: usize,
    /// Bytes of the field.
    pub len: usize,
    /// What the field is called in `docs/format`.
    pub name: String,
    /// What the bytes mean.
    pub value: String,
}

impl Field {
    /// A field of `len` bytes at `offset`.
    #[must_use]
    pub fn new(offset: usize, len: usize, name: impl Into<String>, value: impl ToString) -> Self {
        Field { offset, len, name: name.into(), value: value.to_string() }
    }

    /// The field as it stands in a structure that lies `base` bytes into a larger one, its name led by `outer`.
    #[must_use]
    pub fn within(mut self, base: usize, outer: &str) -> Self {
        self.offset += base;
        self.name = format!("{outer}.{}", self.name);
        self
    }
}

/// Most rows of one structure that are told one by one: far more than an extent of 2 MiB has.
pub const FIELDS_MAX: usize = 1 << 16;

/// What stands for `count` rows that are not told one by one.
#[must_use]
pub fn more(offset: usize, len: usize, count: usize) -> Field {
    Field::new(offset, len, "more", format!("{count} more of these"))
}

/// What is left over when a structure stops making sense: `len` bytes at `offset`, and why.
#[must_use]
pub fn broken(offset: usize, len: usize, why: impl ToString) -> Field {
    Field::new(offset, len, "broken", why)
}

/// User bytes for display: printable ASCII as it is, all else as `\xNN`; cut after 64 bytes.
#[must_use]
pub fn text(bytes: &[u8]) -> String {
    const SHOWN_MAX: usize = 64;
    let shown = &bytes[..bytes.len().min(SHOWN_MAX)];
    let more = if bytes.len() > SHOWN_MAX { format!("... ({} bytes)", bytes.len()) } else { String::new() };
    format!("\"{}\"{more}", shown.escape_ascii())
}

/// What stands in front of a stored value, in words, and the user's value behind it.
#[must_use]
pub fn stored(kind: Option<RecordKind>, bytes: &[u8]) -> (String, &[u8]) {
    let Some(Ok(stored)) = kind.map(|kind| Stored::decode(kind, bytes)) else {
        return (" with a broken prefix".to_owned(), bytes);
    };
    let mut words = String::new();
    if stored.expires_at != Moment::NEVER {
        words.push_str(&format!(" until {} ms", stored.expires_at.0));
    }
    if stored.span > 0 {
        words.push_str(&format!(" for {} numbers", stored.span + 1));
    }
    (words, stored.value)
}
