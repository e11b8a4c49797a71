//! Comma-separated rows (RFC 4180, 2005) under a header: the value is a JSON object of the columns in the
//! order of the header.

use std::fmt;
use std::io::{self, BufRead};

use super::lines::{Line, Lines, ROW_BYTES_MAX};
use super::{BadRow, Keys, Position, Records, Row, Source, Step, invalid, too_long};

/// Parser of comma-separated rows. Blank lines are skipped; a row must have as many columns as the header.
pub struct Csv<R> {
    rows: RawRows<R>,
    header: Vec<String>,
    /// Columns that make the key.
    key_columns: Vec<usize>,
    keys: Keys,
}

impl<R: Source> Csv<R> {
    /// Reads the header and skips to `position`.
    ///
    /// # Errors
    /// Of the input; `InvalidData` if there is no header or it lacks a key field, or `delimiter` means
    /// something else.
    pub fn open(input: R, keys: Keys, delimiter: u8, position: Position) -> io::Result<Self> {
        if [b'"', b'\r', b'\n'].contains(&delimiter) {
            let shown = char::from(delimiter).escape_default();
            return Err(invalid(format!("{shown} cannot separate columns: it quotes them or ends lines")));
        }
        let mut rows = RawRows::new(input, delimiter, ROW_BYTES_MAX);
        match rows.next()? {
            Found::Row => {}
            Found::TooLong => return Err(invalid(format!("line 1: the header is {}", too_long()))),
            Found::OpenQuote => return Err(invalid("line 1: a quote in the header is not closed")),
            Found::End => return Err(invalid("has no header: the first line must name the columns")),
        }
        let header = rows.columns().map(|column| String::from_utf8(column.to_vec()));
        let header: Vec<String> =
            header.collect::<Result<_, _>>().map_err(|_| invalid("the header is not UTF-8"))?;
        let mut names: Vec<&str> =
            header.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(invalid(format!(
                "line 1: the header names column {} twice: give each column a name of its own",
                twice[0]
            )));
        }
        let column_of = |field: &String| {
            let column = header.iter().position(|name| name == field);
            column.ok_or_else(|| {
                invalid(format!("has no column {field}: the header names {}", header.join(", ")))
            })
        };
        let key_columns = keys.fields.iter().map(column_of).collect::<Result<_, _>>()?;
        let start = rows.lines.position();
        if position > start {
            super::skip_lines(rows.lines.input_mut(), position.offset - start.offset)?;
            rows.lines.set_position(position);
        }
        Ok(Csv { rows, header, key_columns, keys })
    }

    fn fill(&self, row: &mut Row) -> Result<(), String> {
        let columns: Vec<&[u8]> = self.rows.columns().collect();
        if columns.len() != self.header.len() {
            return Err(format!("{} columns where the header has {}", columns.len(), self.header.len()));
        }
        self.keys.join(self.key_columns.iter().map(|&column| columns[column]), &mut row.key);
        for (index, (name, column)) in self.header.iter().zip(columns).enumerate() {
            let text = std::str::from_utf8(column).map_err(|_| format!("column {name} is not UTF-8"))?;
            row.value.push(if index == 0 { b'{' } else { b',' });
            write_json(&mut row.value, name);
            row.value.push(b':');
            write_json(&mut row.value, text);
        }
        row.value.push(b'}');
        Ok(())
    }
}

fn write_json(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("a string can always be written to memory");
}

impl<R> fmt::Debug for Csv<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Csv").field("header", &self.header).finish_non_exhaustive()
    }
}

impl<R: Source> Records for Csv<R> {
    fn next(&mut self, row: &mut Row) -> io::Result<Step> {
        row.key.clear();
        row.value.clear();
        let found = self.rows.next()?;
        let line = self.rows.first_line;
        Ok(match found {
            Found::End => Step::End,
            Found::TooLong => {
                Step::Bad(BadRow { line, reason: format!("{}: is a quote not closed?", too_long()) })
            }
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

pub(super) enum Found {
    Row,
    TooLong,
    OpenQuote,
    End,
}

/// Rows as columns of bytes. Input goes to the state machine line by line, so that a row always ends where a
/// line ends and its position is known.
pub(super) struct RawRows<R> {
    pub(super) lines: Lines<R>,
    machine: csv_core::Reader,
    line: Vec<u8>,
    /// Columns of the row, unquoted, back to back.
    text: Vec<u8>,
    text_len: usize,
    /// Where each column ends in `text`.
    ends: Vec<usize>,
    end_count: usize,
    pub(super) first_line: u64,
    row_bytes_max: usize,
}

impl<R: BufRead> RawRows<R> {
    pub(super) fn new(input: R, delimiter: u8, row_bytes_max: usize) -> Self {
        RawRows {
            row_bytes_max,
            lines: Lines::new(input, Position::default()),
            machine: csv_core::ReaderBuilder::new()
                .delimiter(delimiter)
                .terminator(csv_core::Terminator::Any(b'\n'))
                .build(),
            line: Vec::new(),
            text: vec![0; 1024],
            text_len: 0,
            ends: vec![0; 32],
            end_count: 0,
            first_line: 0,
        }
    }

    pub(super) fn columns(&self) -> impl Iterator<Item = &[u8]> {
        let ends = &self.ends[..self.end_count];
        ends.iter().enumerate().map(|(index, &end)| {
            let start = if index == 0 { 0 } else { ends[index - 1] };
            &self.text[start..end]
        })
    }

    pub(super) fn next(&mut self) -> io::Result<Found> {
        self.machine.reset();
        (self.text_len, self.end_count) = (0, 0);
        self.first_line = self.lines.position().line + 1;
        if self.first_line > 1 {
            // After a reset the machine takes a byte order mark at the beginning of a row for that of the
            // input. A blank line says that the input has begun.
            self.machine.read_record(b"\n", &mut self.text, &mut self.ends);
        }
        let mut row_bytes = 0;
        loop {
            self.line.clear();
            let found = self.lines.next(&mut self.line, self.row_bytes_max - row_bytes)?;
            if found == Line::TooLong {
                return Ok(Found::TooLong);
            }
            if row_bytes == 0 && found == Line::Whole && super::lines::trim_end(&self.line).is_empty() {
                self.first_line += 1;
                continue;
            }
            if row_bytes == 0 && found == Line::End {
                return Ok(Found::End);
            }
            if found == Line::End {
                // The last line had no end, or stands inside a quote: an end of line tells which.
                self.line.push(b'\n');
                return Ok(if self.feed() { Found::Row } else { Found::OpenQuote });
            }
            row_bytes += self.line.len();
            if self.feed() {
                return Ok(Found::Row);
            }
        }
    }

    /// Gives the line to the machine; true if it ends the row, false if the row goes on inside a quote.
    fn feed(&mut self) -> bool {
        let mut at = 0;
        loop {
            let (result, read, text, ends) = self.machine.read_record(
                &self.line[at..],
                &mut self.text[self.text_len..],
                &mut self.ends[self.end_count..],
            );
            at += read;
            self.text_len += text;
            self.end_count += ends;
            match result {
                csv_core::ReadRecordResult::OutputFull => self.text.resize(self.text.len() * 2, 0),
                csv_core::ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
                csv_core::ReadRecordResult::InputEmpty => return false,
                csv_core::ReadRecordResult::Record | csv_core::ReadRecordResult::End => break,
            }
        }
        // Rows end at `\n` alone for the machine, so that it never stops inside a line; the `\r` before it is
        // then the last byte of the last column.
        if let Some(end) = self.end_count.checked_sub(1).map(|last| &mut self.ends[last])
            && self.line.ends_with(b"\r\n")
            && self.text[..*end].ends_with(b"\r")
        {
            *end -= 1;
        }
        true
    }
}
