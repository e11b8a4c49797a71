//! Records of text files. Parsers are pure and streaming: they take any [`BufRead`], know no file and no
//! store, hold one record at a time, and go on after a bad one.
//!
//! * [`jsonl`]: JSON Lines. [`csv`]: comma-separated rows with a header. [`deb`]: Debian control stanzas.
//!   [`tsv`]: tab-separated lines. [`rows`]: rows of tables, as `export` and `scan` write them.
//! * `lines`: lines with numbers and offsets. [`Keys`]: how a key is made of fields.
//!
//! Every parser can start at a position at which it (or another of the same kind) ended a record, and then
//! gives exactly the records after it; an interrupted import goes on that way.

pub mod csv;
pub mod deb;
pub mod jsonl;
mod lines;
pub mod rows;
pub mod tsv;

use std::io::{self, BufRead, Read};

/// One record of the input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Key as it will be stored.
    pub key: Vec<u8>,
    /// Value as it will be stored.
    pub value: Vec<u8>,
    /// The table that the input names for it, if it does.
    pub table: Option<String>,
}

/// The next result of a parser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A record is in the row.
    Row,
    /// The input says that there is a table, and with which options it was made.
    Table(String, Vec<(String, String)>),
    /// A record was malformed and skipped.
    Bad(BadRow),
    /// The input is at its end.
    End,
}

/// A malformed record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRow {
    /// Number of its first line, from 1.
    pub line: u64,
    /// The mistake in the line.
    pub reason: String,
}

/// A place between two records of the uncompressed stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Bytes before it.
    pub offset: u64,
    /// Lines before it.
    pub line: u64,
}

/// A stream of records.
pub trait Records {
    /// Reads the next record into `row`.
    ///
    /// # Errors
    /// Only of the input; a malformed record is a [`Step::Bad`].
    fn next(&mut self, row: &mut Row) -> io::Result<Step>;

    /// The end of the last record (or bad record) read.
    fn position(&self) -> Position;
}

/// The formats that can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// JSON Lines: one object a line; the value is the line
    Jsonl,
    /// Comma-separated rows under a header; the value is a JSON object of the columns
    Csv,
    /// Debian control stanzas, such as the package database; the value is the stanza
    Deb,
    /// Tab-separated lines; the value is the columns that are not in the key
    Tsv,
    /// JSON Lines of rows, as `export` and `scan` write them.
    #[value(skip)]
    JsonRows,
    /// Comma-separated rows, as `export` writes them.
    #[value(skip)]
    CsvRows,
    /// Tab-separated rows with escapes, as `export` and `scan` write them.
    #[value(skip)]
    TsvRows,
}

impl Format {
    /// The format that a file name tells, compression suffixes aside.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Format> {
        let name = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
        let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
        if matches!(name, "status" | "available" | "packages" | "sources" | "control") {
            return Some(Format::Deb);
        }
        match name.rsplit_once('.')?.1 {
            "jsonl" | "ndjson" | "json" => Some(Format::Jsonl),
            "csv" => Some(Format::Csv),
            "deb822" | "control" | "dsc" => Some(Format::Deb),
            "tsv" | "tab" => Some(Format::Tsv),
            _ => None,
        }
    }

    /// The word for it on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Format::Jsonl | Format::JsonRows => "jsonl",
            Format::Csv | Format::CsvRows => "csv",
            Format::Deb => "deb",
            Format::Tsv | Format::TsvRows => "tsv",
        }
    }
}

/// How a format is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Syntax {
    /// The format.
    pub format: Format,
    /// How keys are made.
    pub keys: Keys,
    /// Column separator of CSV.
    pub delimiter: u8,
    /// Lines that start with this byte are skipped (tab-separated only).
    pub comment: Option<u8>,
}

/// How a key is made: the values of fields, joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// Names of the fields in order; numbers of columns for tab-separated lines.
    pub fields: Vec<String>,
    /// The text between two of them in the key.
    pub separator: Vec<u8>,
}

impl Keys {
    /// Joins field values to a key.
    fn join<'a>(&self, values: impl IntoIterator<Item = &'a [u8]>, key: &mut Vec<u8>) {
        for (index, value) in values.into_iter().enumerate() {
            if index > 0 {
                key.extend_from_slice(&self.separator);
            }
            key.extend_from_slice(value);
        }
    }
}

/// A stream of text that can skip.
pub trait Source: BufRead {
    /// Goes `count` bytes forward.
    ///
    /// # Errors
    /// Of the input; `UnexpectedEof` if it ends before.
    fn skip(&mut self, count: u64) -> io::Result<()>;
}

/// A stream that can only be read: it skips by reading.
#[derive(Debug)]
pub struct Streamed<R>(pub R);

impl<R: BufRead> Read for Streamed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl<R: BufRead> BufRead for Streamed<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.0.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.0.consume(amount);
    }
}

impl<R: BufRead> Source for Streamed<R> {
    fn skip(&mut self, count: u64) -> io::Result<()> {
        let skipped = io::copy(&mut (&mut self.0).take(count), &mut io::sink())?;
        if skipped < count { Err(ends_early()) } else { Ok(()) }
    }
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn skip(&mut self, count: u64) -> io::Result<()> {
        (**self).skip(count)
    }
}

pub(crate) fn ends_early() -> io::Error {
    let why = "the input ends before the place where the import stopped";
    io::Error::new(io::ErrorKind::UnexpectedEof, why)
}

/// Opens the parser of a syntax on a stream that stands at its start, and skips to `position`, where a record
/// ended before.
///
/// # Errors
/// Of the input; `UnexpectedEof` if it is shorter than `position`; `InvalidData` if a header is missing or
/// lacks a key field, or a key field is not a column number where it must be one.
pub fn open(mut input: Box<dyn Source>, syntax: &Syntax, position: Position) -> io::Result<Box<dyn Records>> {
    let keys = syntax.keys.clone();
    if syntax.format == Format::Csv {
        return Ok(Box::new(csv::Csv::open(input, keys, syntax.delimiter, position)?));
    }
    if syntax.format == Format::CsvRows {
        return Ok(Box::new(rows::CsvRows::open(input, position)?));
    }
    skip_lines(&mut input, position.offset)?;
    Ok(match syntax.format {
        Format::Jsonl => Box::new(jsonl::JsonLines::new(input, keys, position)),
        Format::Deb => Box::new(deb::Stanzas::new(input, keys, position)),
        Format::JsonRows => Box::new(rows::Lined::new(input, rows::json, position)),
        Format::TsvRows => Box::new(rows::Lined::new(input, rows::tsv, position)),
        Format::Tsv | Format::Csv | Format::CsvRows => {
            Box::new(tsv::Tsv::new(input, keys, syntax.comment, position)?)
        }
    })
}

/// Goes `count` bytes forward, to where a line ended when it was read before.
///
/// # Errors
/// As [`Source::skip`]; `InvalidData` if the line had no end then, and goes on now: it was read as a whole
/// record.
pub(crate) fn skip_lines(input: &mut impl Source, count: u64) -> io::Result<()> {
    let Some(before) = count.checked_sub(1) else { return Ok(()) };
    input.skip(before)?;
    let mut last = [0];
    match input.read_exact(&mut last) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(ends_early()),
        read => read?,
    }
    let next = input.fill_buf()?;
    if last == *b"\n" || next.is_empty() || next[0] == b'\n' || next.starts_with(b"\r\n") {
        return Ok(());
    }
    Err(invalid(
        "its last line had no end when it was imported, and is longer now: import it from the start with --restart",
    ))
}

fn invalid(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.into())
}

fn too_long() -> String {
    format!("longer than {} bytes", lines::ROW_BYTES_MAX)
}
