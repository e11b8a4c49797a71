//! Names of data objects: `PREFIX/data/EPOCH-NUMBER-PART`.
//!
//! The epoch is that of the writer, the number is that of the extents' file. A name is never used twice: one
//! writer has an epoch, and it counts numbers and parts up. Two objects may have one number, from a writer
//! and from an older one that did not know yet that it was replaced; the one of the newer epoch counts,
//! because a writer begins behind every number that the manifest names and the bucket lists.

use std::fmt;

/// Digits of each part of a name, so that the order of names is that of what they say.
const EPOCH_DIGITS: usize = 20;
const NUMBER_DIGITS: usize = 10;
const PART_DIGITS: usize = 5;
/// Most objects of one number.
pub(crate) const PARTS_MAX: u32 = 99_999;

/// The meaning of a data object's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DataName {
    /// The epoch of the writer.
    pub(crate) epoch: u64,
    /// The number by which extents name their file.
    pub(crate) number: u32,
    /// Counts the objects of a number, from 0.
    pub(crate) part: u32,
}

impl fmt::Display for DataName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DataName { epoch, number, part } = self;
        write!(f, "{epoch:0EPOCH_DIGITS$}-{number:0NUMBER_DIGITS$}-{part:0PART_DIGITS$}")
    }
}

/// The folders of a database in its bucket.
#[derive(Clone, Debug)]
pub(crate) struct Folders {
    /// Data objects.
    pub(crate) data: String,
    /// Lists of garbage.
    pub(crate) garbage: String,
}

impl Folders {
    pub(crate) fn new(prefix: &str) -> Self {
        Folders { data: format!("{prefix}/data"), garbage: format!("{prefix}/gc/lists") }
    }

    /// The whole name of a data object.
    pub(crate) fn data_name(&self, name: DataName) -> String {
        format!("{}/{name}", self.data)
    }

    /// The meaning of the name of a data object; `None` for every other name.
    pub(crate) fn parse(&self, name: &str) -> Option<DataName> {
        let end = name.strip_prefix(self.data.as_str())?.strip_prefix('/')?;
        let mut fields = end.split('-').map(|field| {
            let is_number = field.bytes().all(|byte| byte.is_ascii_digit());
            field.parse::<u64>().ok().filter(|_| is_number)
        });
        let epoch = fields.next()??;
        let number = u32::try_from(fields.next()??).ok()?;
        let part = u32::try_from(fields.next()??).ok()?;
        let parsed = DataName { epoch, number, part };
        (fields.next().is_none() && number > 0 && parsed.to_string() == end).then_some(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_names_that_are_written_are_read() {
        let folders = Folders::new("a/db");
        let name = DataName { epoch: 7, number: 12, part: 3 };
        let text = folders.data_name(name);
        assert_eq!(text, "a/db/data/00000000000000000007-0000000012-00003");
        assert_eq!(folders.parse(&text), Some(name));
        let greatest = DataName { epoch: u64::MAX, number: u32::MAX, part: PARTS_MAX };
        assert_eq!(folders.parse(&folders.data_name(greatest)), Some(greatest));
        for other in [
            "a/db/data/7-12-3",
            "a/db/data/00000000000000000007-0000000000-00003",
            "a/db/data/00000000000000000007-0000000012-00003-1",
            "a/db/data/00000000000000000007-0000000012",
            "a/db/data/+0000000000000000007-0000000012-00003",
            "a/db/data/99999999999999999999-0000000012-00003",
            "a/dc/data/00000000000000000007-0000000012-00003",
            "a/db/data",
            "",
        ] {
            assert_eq!(folders.parse(other), None, "{other}");
        }
    }
}
