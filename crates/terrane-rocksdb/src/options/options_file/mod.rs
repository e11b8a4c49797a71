//! Options in the words of RocksDB's files: rows of names and values, for files OPTIONS and for the file LOG.
//! Beside the fields, which `abi.toml` lists, there are objects: the file has their names, if they have any.

pub(crate) mod names;
pub(crate) mod read;

use std::fmt::Write as _;

use crate::callbacks::comparator::BYTEWISE;
use crate::callbacks::transform::Transform;
use crate::ffi::option_fields::{FieldValue, Named, SMALL_NUMBERS};
use crate::ffi::option_words;
use crate::options::database::Options;
use crate::options::table::TableOptions;

/// A name and a value.
pub(crate) type Row = (&'static str, String);

/// The file that rows are written for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum For {
    /// A file OPTIONS, which is read again: flags and kinds are words.
    File,
    /// The file LOG: flags are 0 and 1, kinds of tables numbers, codecs have names of their own.
    Log,
}

/// Behind this in names of fields: parts of `compression_opts`.
const CODEC_PART: &str = "compression_options_";
const LAST_CODEC_PART: &str = "bottommost_compression_options_";

fn value(name: &str, field: FieldValue, reader: For) -> String {
    let is_flag = matches!(field, FieldValue::Byte(_)) && !SMALL_NUMBERS.contains(&name)
        || names::FLAGS.contains(&name);
    let number = match field {
        FieldValue::Real(real) => return format!("{real:.6}"),
        FieldValue::Byte(byte) => i128::from(byte),
        FieldValue::Whole(number) => number,
    };
    let word = match (name, reader) {
        ("compression" | "bottommost_compression" | "blob_compression_type", For::Log) => {
            option_words::logged_codec(number)
        }
        _ => option_words::word(name, number),
    };
    match word {
        _ if is_flag && reader == For::File => (number != 0).to_string(),
        Some(word) => word.to_owned(),
        None => number.to_string(),
    }
}

fn written_name(name: &'static str) -> &'static str {
    names::OTHER_NAMES.iter().find(|(field, _)| *field == name).map_or(name, |(_, written)| *written)
}

impl Options {
    fn rows(&self, reader: For, is_wanted: impl Fn(&str) -> bool) -> Vec<Row> {
        let fields = self.fields.values().into_iter();
        let wanted = fields.filter(|(name, _)| {
            let is_part = name.starts_with(CODEC_PART) || name.starts_with(LAST_CODEC_PART);
            !is_part && !names::NOT_WRITTEN.contains(name) && is_wanted(name)
        });
        wanted.map(|(name, field)| (written_name(name), value(name, field, reader))).collect()
    }

    /// The rows of the database.
    pub(crate) fn database_rows(&self, reader: For) -> Vec<Row> {
        let mut rows = self.rows(reader, |name| names::OF_DATABASES.contains(&name));
        for (name, directory) in [("db_log_dir", &self.log_directory), ("wal_dir", &self.wal_directory)] {
            rows.push((name, directory.to_string_lossy().into_owned()));
        }
        rows
    }

    /// The rows of a column family.
    pub(crate) fn family_rows(&self, reader: For) -> Vec<Row> {
        let mut rows = self.rows(reader, |name| !names::OF_DATABASES.contains(&name));
        let codecs = self.codec_of_levels.iter();
        let codecs = codecs.map(|codec| value("compression", FieldValue::Whole((*codec).into()), reader));
        rows.push(("compression_per_level", codecs.collect::<Vec<_>>().join(":")));
        rows.push(("compression_opts", self.codec_parts(CODEC_PART)));
        rows.push(("bottommost_compression_opts", self.codec_parts(LAST_CODEC_PART)));
        rows.extend(self.objects(reader));
        rows
    }

    /// Parts of the options of a codec, as one value.
    fn codec_parts(&self, beginning: &str) -> String {
        let mut text = "{".to_owned();
        for (name, field) in self.fields.values() {
            if let Some(part) = name.strip_prefix(beginning) {
                let _ = write!(text, "{part}={};", value(part, field, For::File));
            }
        }
        text.push('}');
        text
    }

    /// Objects by their names.
    fn objects(&self, reader: For) -> [Row; 7] {
        let (comparator, factory) = (self.comparator.as_ref(), self.objects.filter_factory.as_deref());
        // As RocksDB writes them: its log has one word for an extractor, another one for what is called.
        let none = if reader == For::Log { "None" } else { "nullptr" };
        let or_none = |name: Option<String>| name.unwrap_or_else(|| none.to_owned());
        [
            (
                "comparator",
                comparator.map_or(BYTEWISE, |comparator| terrane::Comparator::name(&**comparator)).to_owned(),
            ),
            (
                "merge_operator",
                or_none(self.merge_operator.as_deref().map(|operator| operator.name().to_owned())),
            ),
            (
                "prefix_extractor",
                self.transform.as_deref().map_or_else(|| "nullptr".to_owned(), Transform::shown_name),
            ),
            (
                "compaction_filter",
                or_none(
                    self.filter.as_deref().map(|filter| terrane::CompactionFilter::name(filter).to_owned()),
                ),
            ),
            (
                "compaction_filter_factory",
                or_none(factory.map(|factory| terrane::CompactionFilter::name(factory).to_owned())),
            ),
            ("memtable_factory", "SkipListFactory".to_owned()),
            ("table_factory", "BlockBasedTable".to_owned()),
        ]
    }
}

impl TableOptions {
    /// The rows of the table format.
    pub(crate) fn rows(&self, reader: For) -> Vec<Row> {
        let row = |(name, field)| match (reader, field) {
            (For::Log, FieldValue::Whole(number)) => (name, number.to_string()),
            _ => (name, value(name, field, reader)),
        };
        let mut rows: Vec<Row> = self.fields.values().into_iter().map(row).collect();
        let policy = self.filter_bits.map(|bits| format!("bloomfilter:{bits}:false"));
        rows.push(("filter_policy", policy.unwrap_or_else(|| "nullptr".to_owned())));
        rows
    }
}

/// The text of a file OPTIONS: the options of a database, and those of its column families by name.
pub(crate) fn file_text(database: &Options, families: &[(String, Options)]) -> String {
    let mut text =
        "# Options of a Terrane database, as RocksDB lays such files out.\n\n[Version]\n".to_owned();
    // By these readers know what the file may have.
    text.push_str("  rocksdb_version=11.9.0\n  options_file_version=1.1\n");
    section(&mut text, "DBOptions", database.database_rows(For::File));
    for (name, options) in families {
        let name = escaped(name);
        section(&mut text, &format!("CFOptions \"{name}\""), options.family_rows(For::File));
        let table = options.table.rows(For::File);
        section(&mut text, &format!("TableOptions/BlockBasedTable \"{name}\""), table);
    }
    text
}

fn section(text: &mut String, title: &str, rows: Vec<Row>) {
    let _ = writeln!(text, "\n[{title}]");
    for (name, value) in rows {
        let _ = writeln!(text, "  {name}={}", escaped(&value));
    }
}

/// A value without what ends a line, or begins a comment.
fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for letter in value.chars() {
        match letter {
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\\' | '#' => text.extend(['\\', letter]),
            _ => text.push(letter),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(options: &Options, reader: For, name: &str) -> String {
        let mut rows = options.family_rows(reader).into_iter();
        rows.find_map(|(row, value)| (row == name).then_some(value)).expect("each family has the row")
    }

    #[test]
    fn the_log_and_the_files_of_options_have_words_of_their_own() {
        let mut options = Options::default();
        options.fields.compression = 1;
        options.codec_of_levels = vec![0, 7, 77];
        for (name, logged, stored) in [
            ("compression", "Snappy", "kSnappyCompression"),
            ("bottommost_compression", "Disabled", "kDisableCompressionOption"),
            ("blob_compression_type", "NoCompression", "kNoCompression"),
            ("compression_per_level", "NoCompression:ZSTD:77", "kNoCompression:kZSTD:77"),
            ("merge_operator", "None", "nullptr"),
            ("compaction_filter", "None", "nullptr"),
            ("prefix_extractor", "nullptr", "nullptr"),
            ("num_levels", "7", "7"),
        ] {
            assert_eq!(shown(&options, For::Log, name), logged, "{name}");
            assert_eq!(shown(&options, For::File, name), stored, "{name}");
        }
    }
}
