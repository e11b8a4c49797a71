//! Which optional parts an extent has, and the version and the magic number that say so.

use super::sections::VALUE_SECTION_BYTES;
use super::{EXPIRY_BYTES, FOOTER_BYTES, HANDLE_BYTES, VERSION};

/// Which optional parts an extent has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// The extent has range deletes.
    pub is_ranged: bool,
    /// The extent has entries that expire.
    pub expires: bool,
    /// The extent has pointers to values in value tables.
    pub points: bool,
    /// Its pointers may have positions.
    pub has_positions: bool,
    /// The extent is a value table; it has none of the other parts.
    pub has_values: bool,
}

impl Form {
    /// Every form, in the order of the versions, with the last byte of its magic number.
    const ALL: [(Form, u8); 13] = [
        (Form::key(false, false, false), b'x'),
        (Form::key(true, false, false), b'r'),
        (Form::key(false, true, false), b'e'),
        (Form::key(true, true, false), b'b'),
        (Form::key(false, false, true), b'p'),
        (Form::key(true, false, true), b'q'),
        (Form::key(false, true, true), b's'),
        (Form::key(true, true, true), b't'),
        (Form { has_values: true, ..Form::key(false, false, false) }, b'v'),
        (Form::positioned(false, false), b'P'),
        (Form::positioned(true, false), b'Q'),
        (Form::positioned(false, true), b'S'),
        (Form::positioned(true, true), b'T'),
    ];

    const fn key(is_ranged: bool, expires: bool, points: bool) -> Form {
        Form { is_ranged, expires, points, has_positions: false, has_values: false }
    }

    const fn positioned(is_ranged: bool, expires: bool) -> Form {
        Form { has_positions: true, ..Form::key(is_ranged, expires, true) }
    }

    /// The format version of an extent with these parts.
    #[must_use]
    pub fn version(self) -> u16 {
        debug_assert!(!self.has_values || self == Form::ALL[8].0, "a value table has no other parts");
        debug_assert!(self.points || !self.has_positions, "positions are parts of pointers");
        let parts = u16::from(self.is_ranged) + 2 * u16::from(self.expires) + 4 * u16::from(self.points);
        let positioned = if self.has_positions { 5 } else { 0 };
        VERSION + if self.has_values { 8 } else { parts + positioned }
    }

    /// The parts of a format version.
    #[must_use]
    pub fn of_version(version: u16) -> Option<Form> {
        let index = version.checked_sub(VERSION)?;
        Form::ALL.get(usize::from(index)).map(|(form, _)| *form)
    }

    /// The last eight bytes of an extent with these parts.
    #[must_use]
    pub fn magic(self) -> [u8; 8] {
        let mut magic = *b"TERRANE?";
        magic[7] = Form::ALL[usize::from(self.version() - VERSION)].1;
        magic
    }

    pub(super) fn of_magic(magic: [u8; 8]) -> Option<Form> {
        Form::ALL.into_iter().map(|(form, _)| form).find(|form| form.magic() == magic)
    }

    /// Bytes of the footer.
    #[must_use]
    pub fn footer_bytes(self) -> usize {
        let ranges = if self.is_ranged { HANDLE_BYTES + 4 } else { 0 };
        let expiry = if self.expires { EXPIRY_BYTES } else { 0 };
        let references = if self.points { HANDLE_BYTES } else { 0 };
        FOOTER_BYTES + ranges + expiry + references + if self.has_values { VALUE_SECTION_BYTES } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::FOOTER_BYTES_MAX;
    use super::*;

    #[test]
    fn each_form_has_a_version_and_a_magic_number_of_its_own() {
        for (form, _) in Form::ALL {
            assert_eq!(Form::of_version(form.version()), Some(form));
            assert_eq!(Form::of_magic(form.magic()), Some(form));
            assert!(form.footer_bytes() <= FOOTER_BYTES_MAX);
        }
        assert_eq!((Form::of_version(0), Form::of_version(14)), (None, None));
    }
}
