//! Names of pins and references.

use terrane_format::manifest::DatabaseId;

/// The names of the pins of a database.
#[derive(Clone, Debug)]
pub(crate) struct PinNames {
    pub(crate) folder: String,
}

impl PinNames {
    pub(crate) fn new(prefix: &str) -> Self {
        PinNames { folder: format!("{prefix}/gc/pins") }
    }

    /// The whole name of a pin.
    pub(crate) fn of(&self, nonce: u128) -> String {
        format!("{}/{nonce:032x}", self.folder)
    }

    /// The number in the name of a pin; `None` for every other name.
    pub(crate) fn parse(&self, name: &str) -> Option<u128> {
        hexadecimal(name.strip_prefix(self.folder.as_str())?.strip_prefix('/')?)
    }
}

/// The meaning of a name in the folder of a clone's references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OriginalFile {
    /// Which objects the clone reads.
    Reference,
    /// Since when it names none of them.
    Unneeded,
    /// The pin is deleted.
    Released,
}

/// The names of the references of a clone.
#[derive(Clone, Debug)]
pub(crate) struct OriginalNames {
    pub(crate) folder: String,
}

impl OriginalNames {
    pub(crate) fn new(prefix: &str) -> Self {
        OriginalNames { folder: format!("{prefix}/originals") }
    }

    /// The whole name of a reference, or of a mark on it.
    pub(crate) fn of(&self, database: DatabaseId, nonce: u128, file: OriginalFile) -> String {
        format!("{}/{:032x}-{nonce:032x}{}", self.folder, database.0, file.end())
    }

    /// The meaning of a name; `None` for every other one.
    pub(crate) fn parse(&self, name: &str) -> Option<(DatabaseId, u128, OriginalFile)> {
        let end = name.strip_prefix(self.folder.as_str())?.strip_prefix('/')?;
        let (database, rest) = end.split_once('-')?;
        let (nonce, mark) = rest.split_at_checked(32)?;
        let files = [OriginalFile::Reference, OriginalFile::Unneeded, OriginalFile::Released];
        let file = files.into_iter().find(|file| file.end() == mark)?;
        Some((DatabaseId(hexadecimal(database)?), hexadecimal(nonce)?, file))
    }
}

impl OriginalFile {
    fn end(self) -> &'static str {
        match self {
            OriginalFile::Reference => "",
            OriginalFile::Unneeded => "-unneeded",
            OriginalFile::Released => "-released",
        }
    }
}

/// The number that 32 digits say, as they are written.
fn hexadecimal(text: &str) -> Option<u128> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_plain = text.len() == 32 && text.bytes().all(is_digit);
    u128::from_str_radix(text, 16).ok().filter(|_| is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_names_that_are_written_are_read() {
        let (pins, originals) = (PinNames::new("a/db"), OriginalNames::new("a/db"));
        assert_eq!(pins.parse(&pins.of(0xabc)), Some(0xabc));
        let database = DatabaseId(7);
        for file in [OriginalFile::Reference, OriginalFile::Unneeded, OriginalFile::Released] {
            assert_eq!(originals.parse(&originals.of(database, 9, file)), Some((database, 9, file)));
        }
        let written = originals.of(database, 9, OriginalFile::Reference);
        for other in [
            pins.of(1).to_uppercase(),
            pins.of(0xabc).replace("abc", "ABC"),
            format!("{}0", pins.of(1)),
            format!("{written}-"),
            format!("{written}-unneeded-now-0000000000000001"),
            written.replace("-0", "-+"),
            "a/db/originals".to_owned(),
            String::new(),
        ] {
            assert_eq!((pins.parse(&other), originals.parse(&other)), (None, None), "{other}");
        }
    }
}
