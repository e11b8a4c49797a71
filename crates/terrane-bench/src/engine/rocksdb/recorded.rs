//! The options file of a database: the newest file `OPTIONS-NUMBER` of its directory, text in sections.
//!
//! Only the options that decide how rows are read are used: the comparator and the merge operator of each
//! column family.
#![expect(clippy::disallowed_methods, reason = "a file of RocksDB's, in a directory of its own")]

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::{Error, Result};

const FILE_PREFIX: &str = "OPTIONS-";
const FAMILY_PREFIX: &str = "CFOptions \"";
/// RocksDB's word for an absent object.
const NONE: &str = "nullptr";

/// The recorded options of one column family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Name of the comparator.
    pub comparator: Option<String>,
    /// The merge operator.
    pub merge_operator: Option<String>,
}

/// Reads the recorded options of each column family of the database in `directory`; empty if it has no such
/// file.
///
/// # Errors
/// `Io`.
pub fn read(directory: &Path) -> Result<BTreeMap<String, Recorded>> {
    let failed = |why: std::io::Error| Error::io("read the directory", directory, why);
    let mut newest: Option<(u64, std::path::PathBuf)> = None;
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(FILE_PREFIX)?.parse().ok());
        if let Some(number) =
            number.filter(|number| newest.as_ref().is_none_or(|(before, _)| number > before))
        {
            newest = Some((number, entry.path()));
        }
    }
    let Some((_, path)) = newest else { return Ok(BTreeMap::new()) };
    let bytes = std::fs::read(&path).map_err(|why| Error::io("read", &path, why))?;
    Ok(parse(&String::from_utf8_lossy(&bytes)))
}

fn parse(text: &str) -> BTreeMap<String, Recorded> {
    let mut families: BTreeMap<String, Recorded> = BTreeMap::new();
    let mut family: Option<String> = None;
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            let name = section.strip_prefix(FAMILY_PREFIX).and_then(|name| name.strip_suffix('"'));
            family = name.map(unescaped);
            continue;
        }
        let (Some(family), Some((name, value))) = (&family, line.split_once('=')) else { continue };
        let value = Some(unescaped(value.trim())).filter(|value| value != NONE && !value.is_empty());
        match name.trim() {
            "comparator" => families.entry(family.clone()).or_default().comparator = value,
            "merge_operator" => families.entry(family.clone()).or_default().merge_operator = value,
            _ => {}
        }
    }
    families
}

/// Text without the backslashes that stand before special letters.
fn unescaped(text: &str) -> String {
    let mut letters = text.chars();
    let mut plain = String::with_capacity(text.len());
    while let Some(letter) = letters.next() {
        plain.extend(if letter == '\\' { letters.next() } else { Some(letter) });
    }
    plain
}
