//! Annotated hex of any stored structure: each format module describes its bytes as a list of [`Field`]s.
//!
//! `describe` functions accept any input: bytes that make no sense become a last field named `broken`. Their
//! memory is bounded: a list ends after [`FIELDS_MAX`] rows, and a manifest is described field by field.
//! Names and meanings are those of the pages that `docs/format/README.md` lists.

use terrane_base::{Moment, RecordKind, Stored};

/// One field of a stored structure, for people to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Where the field starts, from the start of the structure.
    pub offset: usize,
    /// Bytes of the field.
    pub len: usize,
    /// Name of the field in `docs/format`.
    pub name: String,
    /// The meaning of the bytes.
    pub value: String,
}

impl Field {
    /// A field of `len` bytes at `offset`.
    #[must_use]
    pub fn new(offset: usize, len: usize, name: impl Into<String>, value: impl ToString) -> Self {
        Field { offset, len, name: name.into(), value: value.to_string() }
    }

    /// The field of a structure that starts `base` bytes into a larger one; `outer` becomes the front of its
    /// name.
    #[must_use]
    pub fn within(mut self, base: usize, outer: &str) -> Self {
        self.offset += base;
        self.name = format!("{outer}.{}", self.name);
        self
    }
}

/// Most rows of one structure that are described one by one: far more than an extent of 2 MiB has.
pub const FIELDS_MAX: usize = 1 << 16;

/// One field for `count` rows that are not described one by one.
#[must_use]
pub fn more(offset: usize, len: usize, count: usize) -> Field {
    Field::new(offset, len, "more", format!("{count} more of these"))
}

/// The rest of a structure that makes no sense: `len` bytes at `offset`, and the reason.
#[must_use]
pub fn broken(offset: usize, len: usize, why: impl ToString) -> Field {
    Field::new(offset, len, "broken", why)
}

/// User bytes for display: printable ASCII unchanged, other bytes as `\xNN`; cut after 64 bytes.
#[must_use]
pub fn text(bytes: &[u8]) -> String {
    const SHOWN_MAX: usize = 64;
    let shown = &bytes[..bytes.len().min(SHOWN_MAX)];
    let more = if bytes.len() > SHOWN_MAX { format!("... ({} bytes)", bytes.len()) } else { String::new() };
    format!("\"{}\"{more}", shown.escape_ascii())
}

/// The description of the prefix of a stored value, and the user's value after it.
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
