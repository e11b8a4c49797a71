//! The frame around the fields of jobs and their reports: magic and version in front, a checksum behind.

use std::fmt::Display;

use terrane_base::{Error, Result};
use terrane_format::checksum::crc32c;
use terrane_format::wire::{Fields, checked_body};

/// The frame of one kind of payload.
pub(super) struct Frame {
    /// Its name in errors.
    pub(super) what: &'static str,
    pub(super) magic: &'static [u8; 8],
    pub(super) version: u16,
    /// The start of its checksum.
    pub(super) seed: u32,
    pub(super) bytes_max: usize,
}

impl Frame {
    /// Begins a payload.
    pub(super) fn begin(&self) -> Vec<u8> {
        debug_assert!(self.version > 0, "versions begin with 1: 0 is what zeroed bytes say");
        let mut out = Vec::with_capacity(1024);
        out.extend_from_slice(self.magic);
        out.extend_from_slice(&self.version.to_le_bytes());
        out
    }

    /// Ends it with its checksum.
    pub(super) fn seal(&self, mut out: Vec<u8>) -> Vec<u8> {
        debug_assert!(out.len() > self.magic.len() + 2, "magic and version are in front");
        let checksum = crc32c(self.seed, &out);
        out.extend_from_slice(&checksum.to_le_bytes());
        out
    }

    /// The fields of a payload.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not a frame; `Invalid` if a newer version wrote them.
    pub(super) fn open<'b>(&self, bytes: &'b [u8]) -> Result<Fields<'b>> {
        let &Frame { what, magic, version, seed, bytes_max } = self;
        debug_assert!(seed != 0, "the payloads of another kind fail the checksum");
        if bytes.len() > bytes_max {
            return Err(self.wrong(format_args!("{} bytes, the limit is {bytes_max}", bytes.len())));
        }
        if bytes.get(..magic.len()) != Some(magic) {
            return Err(self.wrong("the first bytes are those of something else"));
        }
        let body = checked_body(what, seed, bytes)?;
        let mut fields = Fields::new(what, &body[magic.len()..]);
        match fields.u16()? {
            found if found == version => Ok(fields),
            found => {
                let message =
                    format!("{what} of version {found}, this program reads version {version}: update it");
                Err(Error::invalid(message))
            }
        }
    }

    /// The error for bytes that are not such a payload.
    pub(super) fn wrong(&self, why: impl Display) -> Error {
        Error::corrupt(format!("{}: {why}", self.what))
    }
}
