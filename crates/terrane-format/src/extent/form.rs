//! Which optional parts an extent has, and the version and the magic number that say so.

use super::sections::VALUE_SECTION_BYTES;
use super::{EXPIRY_BYTES, FOOTER_BYTES, HANDLE_BYTES, VERSION};

/// Number of forms without an origin.
const FORMS: u16 = 13;

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
    /// The extent is a value table; of the other parts it has at most an origin.
    pub has_values: bool,
    /// The extent says where it comes from.
    pub has_origin: bool,
}

impl Form {
    /// Every form without an origin, in the order of the versions, with the last byte of its magic number.
    /// The forms with an origin follow in the same order.
    const ALL: [(Form, u8); FORMS as usize] = [
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
        Form { is_ranged, expires, points, has_positions: false, has_values: false, has_origin: false }
    }

    const fn positioned(is_ranged: bool, expires: bool) -> Form {
        Form { has_positions: true, ..Form::key(is_ranged, expires, true) }
    }

    /// The format version of an extent with these parts.
    #[must_use]
    pub fn version(self) -> u16 {
        let bare = Form { has_origin: false, ..self };
        debug_assert!(!self.has_values || bare == Form::ALL[8].0, "a value table has no other parts");
        debug_assert!(self.points || !self.has_positions, "positions are parts of pointers");
        let parts = u16::from(self.is_ranged) + 2 * u16::from(self.expires) + 4 * u16::from(self.points);
        let positioned = if self.has_positions { 5 } else { 0 };
        let origin = if self.has_origin { FORMS } else { 0 };
        VERSION + origin + if self.has_values { 8 } else { parts + positioned }
    }

    /// The parts of a format version.
    #[must_use]
    pub fn of_version(version: u16) -> Option<Form> {
        let index = version.checked_sub(VERSION)?;
        let (has_origin, index) = (index >= FORMS, if index >= FORMS { index - FORMS } else { index });
        Form::ALL.get(usize::from(index)).map(|(form, _)| Form { has_origin, ..*form })
    }

    /// The last eight bytes of an extent with these parts.
    #[must_use]
    pub fn magic(self) -> [u8; 8] {
        let mut magic = if self.has_origin { *b"TERRANO?" } else { *b"TERRANE?" };
        magic[7] = Form::ALL[usize::from((self.version() - VERSION) % FORMS)].1;
        magic
    }

    pub(super) fn of_magic(magic: [u8; 8]) -> Option<Form> {
        (VERSION..VERSION + 2 * FORMS).filter_map(Form::of_version).find(|form| form.magic() == magic)
    }

    /// Bytes of the footer.
    #[must_use]
    pub fn footer_bytes(self) -> usize {
        let ranges = if self.is_ranged { HANDLE_BYTES + 4 } else { 0 };
        let expiry = if self.expires { EXPIRY_BYTES } else { 0 };
        let references = if self.points { HANDLE_BYTES } else { 0 };
        let values = if self.has_values { VALUE_SECTION_BYTES } else { 0 };
        let origin = if self.has_origin { HANDLE_BYTES } else { 0 };
        FOOTER_BYTES + ranges + expiry + references + values + origin
    }
}

#[cfg(test)]
mod tests {
    use super::super::FOOTER_BYTES_MAX;
    use super::*;

    #[test]
    fn each_form_has_a_version_and_a_magic_number_of_its_own() {
        for version in VERSION..VERSION + 2 * FORMS {
            let form = Form::of_version(version).unwrap();
            assert_eq!(form.version(), version);
            assert_eq!(Form::of_magic(form.magic()), Some(form));
            assert!(form.footer_bytes() <= FOOTER_BYTES_MAX);
        }
        assert_eq!((Form::of_version(0), Form::of_version(27)), (None, None));
    }
}
