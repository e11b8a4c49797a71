//! Tab-separated lines: the key is made of columns by number, the value of the columns that are left.

use std::fmt;
use std::io::{self, BufRead};

use super::lines::{Line, Lines, ROW_BYTES_MAX, trim_end};
use super::{BadRow, Keys, Position, Records, Row, Step, invalid, too_long};

/// Parser of tab-separated lines. Bytes are taken as they are; blank lines are skipped.
pub struct Tsv<R> {
    lines: Lines<R>,
    keys: Keys,
    /// Columns that make the key, from 0.
    key_columns: Vec<usize>,
    comment: Option<u8>,
    line: Vec<u8>,
}

impl<R: BufRead> Tsv<R> {
    /// `input` stands at `position`; lines that start with `comment` are skipped.
    ///
    /// # Errors
    /// `InvalidData` if a key field is not the number of a column.
    pub fn new(input: R, keys: Keys, comment: Option<u8>, position: Position) -> io::Result<Self> {
        let column = |field: &String| match field.parse::<usize>() {
            Ok(number) if number > 0 => Ok(number - 1),
            _ => {
                Err(invalid(format!("key field {field}: tab-separated columns are named by number, from 1")))
            }
        };
        let key_columns = keys.fields.iter().map(column).collect::<Result<_, _>>()?;
        Ok(Tsv { lines: Lines::new(input, position), keys, key_columns, comment, line: Vec::new() })
    }
}

impl<R> fmt::Debug for Tsv<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tsv").field("key_columns", &self.key_columns).finish_non_exhaustive()
    }
}

impl<R: BufRead> Records for Tsv<R> {
    fn next(&mut self, row: &mut Row) -> io::Result<Step> {
        loop {
            self.line.clear();
            let found = self.lines.next(&mut self.line, ROW_BYTES_MAX)?;
            let line = self.lines.position().line;
            match found {
                Line::End => return Ok(Step::End),
                Line::TooLong => return Ok(Step::Bad(BadRow { line, reason: too_long() })),
                Line::Whole => {}
            }
            let text = trim_end(&self.line);
            if text.is_empty() || self.comment.is_some_and(|mark| text[0] == mark) {
                continue;
            }
            row.key.clear();
            row.value.clear();
            return Ok(match fill(text, &self.keys, &self.key_columns, row) {
                Ok(()) => Step::Row,
                Err(reason) => Step::Bad(BadRow { line, reason }),
            });
        }
    }

    fn position(&self) -> Position {
        self.lines.position()
    }
}

fn fill(text: &[u8], keys: &Keys, key_columns: &[usize], row: &mut Row) -> Result<(), String> {
    let columns: Vec<&[u8]> = text.split(|&byte| byte == b'\t').collect();
    if let Some(missing) = key_columns.iter().find(|&&column| column >= columns.len()) {
        return Err(format!("has {} columns, the key needs column {}", columns.len(), missing + 1));
    }
    keys.join(key_columns.iter().map(|&column| columns[column]), &mut row.key);
    let mut rest = columns.iter().enumerate().filter(|(index, _)| !key_columns.contains(index));
    if let Some((_, first)) = rest.next() {
        row.value.extend_from_slice(first);
    }
    for (_, column) in rest {
        row.value.push(b'\t');
        row.value.extend_from_slice(column);
    }
    Ok(())
}
