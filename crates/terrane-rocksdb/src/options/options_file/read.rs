//! Reads a file OPTIONS: sections of rows. A malformed row is an error that names the line.

use crate::ffi::failure::{Failure, Result};
use crate::options::database::Options;
use crate::options::options_file::names;

/// The content of a file.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    pub(crate) database: Options,
    /// Of each column family, by name, in the order of the file.
    pub(crate) families: Vec<(String, Options)>,
}

/// The subject of the rows under a title.
enum Section {
    Version,
    Database,
    Family(usize),
    Table(usize),
}

/// Reads the text of a file; names that are not known are refused, or left out.
pub(crate) fn stored(text: &str, ignores_unknown: bool) -> Result<Stored> {
    let mut stored = Stored::default();
    let mut section = None;
    for (at, line) in text.lines().enumerate() {
        let line = without_comment(line).trim();
        let done = match line.strip_prefix('[') {
            _ if line.is_empty() => Ok(()),
            Some(title) => stored.begin(title).map(|begun| section = Some(begun)),
            None => stored.row(section.as_ref(), line, ignores_unknown),
        };
        done.map_err(|why| Failure::invalid(format_args!("line {}: {}", at + 1, why.reason())))?;
    }
    if !stored.families.iter().any(|(name, _)| name == "default") {
        return Err(Failure::corrupt("it has no options of the column family \"default\""));
    }
    Ok(stored)
}

/// A line as far as a `#` that no backslash stands before.
fn without_comment(line: &str) -> &str {
    let mut is_escaped = false;
    for (at, letter) in line.char_indices() {
        match letter {
            '#' if !is_escaped => return &line[..at],
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    line
}

fn unescaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => text.extend(letters.next().map(|letter| match letter {
                'n' => '\n',
                'r' => '\r',
                letter => letter,
            })),
            _ => text.push(letter),
        }
    }
    text
}

impl Stored {
    fn begin(&mut self, title: &str) -> Result<Section> {
        let bad = || Failure::invalid(format_args!("[{title}: no title of a section that is known"));
        let title = title.strip_suffix(']').ok_or_else(bad)?;
        let (kind, name) = match title.split_once(' ') {
            None => (title, None),
            Some((kind, name)) => {
                let name = name.trim().strip_prefix('"').and_then(|name| name.strip_suffix('"'));
                (kind, Some(unescaped(name.ok_or_else(bad)?)))
            }
        };
        match (kind, name) {
            ("Version", None) => Ok(Section::Version),
            ("DBOptions", None) => Ok(Section::Database),
            ("CFOptions", Some(name)) => {
                if self.at(&name).is_some() {
                    return Err(Failure::invalid(format_args!("column family {name:?} is there twice")));
                }
                self.families.push((name, Options::default()));
                Ok(Section::Family(self.families.len() - 1))
            }
            ("TableOptions/BlockBasedTable", Some(name)) => {
                self.at(&name).map(Section::Table).ok_or_else(|| {
                    Failure::invalid(format_args!(
                        "tables of column family {name:?}, whose options are not above"
                    ))
                })
            }
            _ => Err(bad()),
        }
    }

    fn at(&self, name: &str) -> Option<usize> {
        self.families.iter().position(|(known, _)| known == name)
    }

    fn row(&mut self, section: Option<&Section>, line: &str, ignores_unknown: bool) -> Result<()> {
        let (name, value) = line.split_once('=').ok_or_else(|| {
            Failure::invalid(format_args!("{line}: no name and value, with = between them"))
        })?;
        let (name, value) = (name.trim(), unescaped(value.trim()));
        let set = match section {
            None => Err(Failure::invalid(format_args!("{name}: before the first section"))),
            Some(Section::Version) => version(name, &value),
            Some(Section::Database) => self.database.set_stored(name, &value),
            Some(Section::Family(at)) => self.families[*at].1.set_stored(name, &value),
            Some(Section::Table(at)) => self.families[*at].1.table.set_pair(name, &value),
        };
        match set {
            Err(failure) if ignores_unknown && failure.reason().starts_with(UNKNOWN) => Ok(()),
            set => set,
        }
    }
}

/// How the failure begins that says that a name is not known.
const UNKNOWN: &str = "Could not find option";

fn version(name: &str, value: &str) -> Result<()> {
    match name {
        "options_file_version" if !value.starts_with("1.") => {
            Err(Failure::not_implemented(format_args!("{name}={value}: files of 1.x can be read")))
        }
        _ => Ok(()),
    }
}

impl Options {
    /// Sets a row of a file. Objects that the library has not are left for the program to give, as in
    /// RocksDB.
    fn set_stored(&mut self, name: &str, value: &str) -> Result<()> {
        let field =
            names::OTHER_NAMES.iter().find(|(_, written)| *written == name).map_or(name, |(field, _)| *field);
        match name {
            "compression_opts" => self.set_parts(crate::options::options_file::CODEC_PART, value),
            "bottommost_compression_opts" => {
                self.set_parts(crate::options::options_file::LAST_CODEC_PART, value)
            }
            "comparator" | "compaction_filter" | "compaction_filter_factory" => Ok(()),
            "merge_operator" | "prefix_extractor" => {
                // A name that is not an object of the library belongs to the program.
                let _ = self.set_pair(name, value);
                Ok(())
            }
            _ => self.set_pair(field, value),
        }
    }

    fn set_parts(&mut self, beginning: &str, value: &str) -> Result<()> {
        let inside = value.strip_prefix('{').and_then(|value| value.strip_suffix('}'));
        let inside = inside.ok_or_else(|| Failure::invalid(format_args!("{value}: not in braces")))?;
        for part in inside.split(';').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            self.set_pair(&format!("{beginning}{name}"), value)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::options_file::{For, file_text};

    #[test]
    fn a_written_file_of_options_is_read_again() {
        let mut options = Options::default();
        (options.fields.compaction_pri, options.fields.max_open_files) = (4, 77);
        (options.fields.use_fsync, options.fields.wal_ttl_seconds) = (1, 60);
        options.fields.blob_gc_age_cutoff = 0.5;
        options.fields.compression_options_zstd_max_train_bytes = 9;
        options.table.fields.format_version = 4;
        options.table.filter_bits = Some(12.0);
        options.codec_of_levels = vec![0, 4, 7, 77];
        options.log_directory = c"/logs # of \\ all".to_owned();
        options.wal_directory = c"/wal".to_owned();
        let families = [("default".to_owned(), options.clone()), ("a \"#\\\nb]".to_owned(), options.clone())];
        let text = file_text(&options, &families);
        assert!(text.contains("compaction_pri=kRoundRobin") && text.contains("use_fsync=true"), "{text}");
        let read = stored(&text, false).expect("what was written");
        assert_eq!(read.database.database_rows(For::File), options.database_rows(For::File));
        assert_eq!(read.database.log_directory, options.log_directory);
        assert_eq!(read.database.wal_directory, options.wal_directory);
        for (name, read) in &read.families {
            assert_eq!(read.codec_of_levels, options.codec_of_levels, "{name}");
            assert_eq!(read.table.filter_bits, options.table.filter_bits, "{name}");
        }
        for ((name, read), (written, options)) in read.families.iter().zip(&families) {
            assert_eq!(name, written);
            assert_eq!(read.family_rows(For::File), options.family_rows(For::File));
            assert_eq!(read.table.rows(For::File), options.table.rows(For::File));
        }
    }

    #[test]
    fn a_wrong_file_of_options_is_refused_by_its_line() {
        let whole = file_text(&Options::default(), &[("default".to_owned(), Options::default())]);
        let with = |line: &str| format!("{whole}{line}\n");
        for (text, says) in [
            (String::new(), "default"),
            ("max_open_files=1".to_owned(), "before the first section"),
            (with("no_such_option=1"), "no_such_option"),
            (with("[Foreign]"), "[Foreign]"),
            (with("[CFOptions \"default\"]"), "twice"),
            (with("[CFOptions default]"), "no title"),
            (with("[TableOptions/BlockBasedTable \"x\"]"), "not above"),
            (with("block_size"), "no name and value"),
            (with("block_size=many"), "block_size=many"),
            (whole.replace("options_file_version=1.1", "options_file_version=2.0"), "2.0"),
        ] {
            let failure = stored(&text, false).map(drop).expect_err(says);
            assert!(failure.text().contains(says), "{} in {}", says, failure.text());
        }
        stored(&with("no_such_option=1"), true).expect("an unknown option is left out");
    }
}
