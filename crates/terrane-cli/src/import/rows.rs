//! Rows of tables, as `export` and `scan` write them: the read rows are byte for byte the written ones.
//!
//! * [`json`]: `{"key":"..","value":".."}`, with `key_hex` and `value_hex` for bytes that are not UTF-8, and
//!   `table` where a row is not of the table that the caller names. A line `{"table":"..","options":{..}}`
//!   says that there is a table.
//! * [`tsv`]: key, tab, value with the escapes of [`crate::text::escape`]; [`TSV_HEAD`] may be its first
//!   line.
//! * [`CsvRows`]: columns `key,value,hex` (RFC 4180, 2005); the third one holds `k` where the key is
//!   hexadecimal digits, and `v` where the value is.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead};

use serde::Deserialize;

use super::csv::{Found, RawRows};
use super::lines::{Line, Lines, trim_end};
use super::{BadRow, Position, Records, Row, Source, Step, invalid};
use crate::text::{parse_bytes, parse_hex};

/// The first line of an export as tab-separated lines: by it an import knows that there are escapes.
pub const TSV_HEAD: &str = "#terrane-rows";
/// The header of an export as comma-separated rows.
pub const CSV_HEAD: &str = "key,value,hex";
/// Longest row, in bytes: the longest key and value, where each byte is an escape of six.
const BYTES_MAX: usize = 6 * (terrane_base::key::VALUE_BYTES_MAX + terrane_base::key::KEY_BYTES_MAX) + 4096;

/// Makes a row of a line.
pub type Parse = fn(&[u8], &mut Row) -> Result<Step, String>;

/// Rows of which each is a line.
pub struct Lined<R> {
    lines: Lines<R>,
    parse: Parse,
    line: Vec<u8>,
}

impl<R: BufRead> Lined<R> {
    /// `input` stands at `position`.
    pub fn new(input: R, parse: Parse, position: Position) -> Self {
        Lined { lines: Lines::new(input, position), parse, line: Vec::new() }
    }
}

impl<R> fmt::Debug for Lined<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lined").finish_non_exhaustive()
    }
}

impl<R: BufRead> Records for Lined<R> {
    fn next(&mut self, row: &mut Row) -> io::Result<Step> {
        loop {
            self.line.clear();
            let found = self.lines.next(&mut self.line, BYTES_MAX)?;
            let line = self.lines.position().line;
            match found {
                Line::End => return Ok(Step::End),
                Line::TooLong => return Ok(too_long(line)),
                Line::Whole => {}
            }
            let text = trim_end(&self.line);
            if text.is_empty() || line == 1 && text == TSV_HEAD.as_bytes() {
                continue;
            }
            clear(row);
            return Ok((self.parse)(text, row).unwrap_or_else(|reason| Step::Bad(BadRow { line, reason })));
        }
    }

    fn position(&self) -> Position {
        self.lines.position()
    }
}

fn too_long(line: u64) -> Step {
    Step::Bad(BadRow { line, reason: format!("longer than {BYTES_MAX} bytes") })
}

fn clear(row: &mut Row) {
    row.key.clear();
    row.value.clear();
    row.table = None;
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Object<'l> {
    #[serde(borrow)]
    key: Option<Cow<'l, str>>,
    key_hex: Option<Cow<'l, str>>,
    value: Option<Cow<'l, str>>,
    value_hex: Option<Cow<'l, str>>,
    table: Option<String>,
    options: Option<BTreeMap<String, String>>,
}

/// The row, or the table, of a line of JSON.
///
/// # Errors
/// The mistake in the line.
pub fn json(text: &[u8], row: &mut Row) -> Result<Step, String> {
    let object: Object<'_> = serde_json::from_slice(text).map_err(|error| {
        let error = super::jsonl::not_json(&error);
        format!("no row of an export ({error}); of other objects say with --key FIELD,... what the key is")
    })?;
    if let Some(options) = object.options {
        let name = object.table.ok_or("it has options, and names no table")?;
        return Ok(Step::Table(name, options.into_iter().collect()));
    }
    let bytes = |name: &str, text: Option<Cow<'_, str>>, hex: Option<Cow<'_, str>>, out: &mut Vec<u8>| {
        match (text, hex) {
            (Some(text), None) => out.extend_from_slice(text.as_bytes()),
            (None, Some(hex)) => {
                out.extend(parse_hex(&hex).ok_or_else(|| format!("{name}_hex is not hexadecimal digits"))?)
            }
            _ => return Err(format!("expected one of {name} and {name}_hex")),
        }
        Ok(())
    };
    bytes("key", object.key, object.key_hex, &mut row.key)?;
    bytes("value", object.value, object.value_hex, &mut row.value)?;
    row.table = object.table;
    Ok(Step::Row)
}

/// The row of a tab-separated line.
///
/// # Errors
/// The mistake in the line.
pub fn tsv(text: &[u8], row: &mut Row) -> Result<Step, String> {
    let text = std::str::from_utf8(text).map_err(|_| "not UTF-8: an export has no such bytes".to_owned())?;
    let (key, value) = text.split_once('\t').ok_or("expected a key, a tab and a value")?;
    if value.contains('\t') {
        return Err("more than two columns: tabs within a key or a value are written as \\t".to_owned());
    }
    row.key = parse_bytes(key).map_err(|why| format!("key: {why}"))?;
    row.value = parse_bytes(value).map_err(|why| format!("value: {why}"))?;
    Ok(Step::Row)
}

/// Rows of comma-separated columns.
pub struct CsvRows<R> {
    rows: RawRows<R>,
}

impl<R: Source> CsvRows<R> {
    /// Reads the header and skips to `position`.
    ///
    /// # Errors
    /// Of the input; `InvalidData` if the header is not [`CSV_HEAD`].
    pub fn open(input: R, position: Position) -> io::Result<Self> {
        let mut rows = RawRows::new(input, b',', BYTES_MAX);
        let is_row = matches!(rows.next()?, Found::Row);
        if !is_row || !rows.columns().eq(CSV_HEAD.split(',').map(str::as_bytes)) {
            return Err(invalid(format!(
                "its header is not {CSV_HEAD}, as that of an export: give the fields that make the key with --key \
                 FIELD,..."
            )));
        }
        let start = rows.lines.position();
        if position > start {
            super::skip_lines(rows.lines.input_mut(), position.offset - start.offset)?;
            rows.lines.set_position(position);
        }
        Ok(CsvRows { rows })
    }

    fn fill(&self, row: &mut Row) -> Result<(), String> {
        let columns: Vec<&[u8]> = self.rows.columns().collect();
        let &[key, value, hex] = columns.as_slice() else {
            return Err(format!("{} columns where an export has three", columns.len()));
        };
        if !matches!(hex, b"" | b"k" | b"v" | b"kv") {
            return Err("the third column must be one of: nothing, k, v, kv".to_owned());
        }
        let bytes = |name: char, column: &[u8]| {
            if !hex.contains(&(name as u8)) {
                return Ok(column.to_vec());
            }
            let digits = std::str::from_utf8(column).ok().and_then(parse_hex);
            digits.ok_or_else(|| format!("the column marked {name} is not hexadecimal digits"))
        };
        (row.key, row.value) = (bytes('k', key)?, bytes('v', value)?);
        Ok(())
    }
}

impl<R> fmt::Debug for CsvRows<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CsvRows").finish_non_exhaustive()
    }
}

impl<R: Source> Records for CsvRows<R> {
    fn next(&mut self, row: &mut Row) -> io::Result<Step> {
        clear(row);
        let found = self.rows.next()?;
        let line = self.rows.first_line;
        Ok(match found {
            Found::End => Step::End,
            Found::TooLong => too_long(line),
            Found::OpenQuote => Step::Bad(BadRow { line, reason: "a quote is not closed".to_owned() }),
            Found::Row => match self.fill(row) {
                Ok(()) => Step::Row,
                Err(reason) => Step::Bad(BadRow { line, reason }),
            },
        })
    }

    fn position(&self) -> Position {
        self.rows.lines.position()
    }
}
