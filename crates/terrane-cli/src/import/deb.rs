//! Debian control stanzas (`deb822`): paragraphs of `Name: value` fields, parted by blank lines. The value is
//! the paragraph as it stands.

use std::fmt;
use std::io::{self, BufRead};

use super::lines::{Line, Lines, ROW_BYTES_MAX, trim_end};
use super::{BadRow, Keys, Position, Records, Row, Step, too_long};

/// Parser of stanzas. Names of fields are the same in any case; lines that start with `#` are comments.
pub struct Stanzas<R> {
    lines: Lines<R>,
    keys: Keys,
    line: Vec<u8>,
}

impl<R: BufRead> Stanzas<R> {
    /// `input` stands at `position`.
    pub fn new(input: R, keys: Keys, position: Position) -> Self {
        Stanzas { lines: Lines::new(input, position), keys, line: Vec::new() }
    }

    /// Reads lines up to a blank one into `stanza`; the number of its first line, or `None` at the end.
    fn read_stanza(&mut self, stanza: &mut Vec<u8>) -> io::Result<Option<(u64, Result<(), String>)>> {
        let mut first = None;
        let mut whole = Ok(());
        loop {
            self.line.clear();
            let found = self.lines.next(&mut self.line, ROW_BYTES_MAX - stanza.len())?;
            let blank = found == Line::Whole && trim_end(&self.line).iter().all(u8::is_ascii_whitespace);
            match found {
                Line::End => return Ok(first.map(|line| (line, whole))),
                Line::Whole if blank && first.is_none() => continue,
                Line::Whole if blank => return Ok(first.map(|line| (line, whole))),
                Line::Whole if self.line.starts_with(b"#") => continue,
                Line::Whole => {
                    stanza.extend_from_slice(trim_end(&self.line));
                    stanza.push(b'\n');
                }
                Line::TooLong => whole = Err(too_long()),
            }
            first = first.or(Some(self.lines.position().line));
        }
    }
}

impl<R> fmt::Debug for Stanzas<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stanzas").field("keys", &self.keys).finish_non_exhaustive()
    }
}

impl<R: BufRead> Records for Stanzas<R> {
    fn next(&mut self, row: &mut Row) -> io::Result<Step> {
        row.key.clear();
        row.value.clear();
        let Some((first, whole)) = self.read_stanza(&mut row.value)? else { return Ok(Step::End) };
        row.value.pop();
        let made = whole
            .map_err(|reason| BadRow { line: first, reason })
            .and_then(|()| make_key(&row.value, first, &self.keys, &mut row.key));
        Ok(match made {
            Ok(()) => Step::Row,
            Err(bad) => Step::Bad(bad),
        })
    }

    fn position(&self) -> Position {
        self.lines.position()
    }
}

fn make_key(stanza: &[u8], first: u64, keys: &Keys, key: &mut Vec<u8>) -> Result<(), BadRow> {
    let mut values: Vec<Option<&[u8]>> = vec![None; keys.fields.len()];
    for (index, line) in stanza.split(|&byte| byte == b'\n').enumerate() {
        let bad = |reason: &str| BadRow { line: first + index as u64, reason: reason.to_owned() };
        if line.starts_with(b" ") || line.starts_with(b"\t") {
            if index == 0 {
                return Err(bad("a continuation line without a field before it"));
            }
            continue;
        }
        let colon = line.iter().position(|&byte| byte == b':').filter(|&at| at > 0);
        let colon = colon.ok_or_else(|| bad("expected `Name: value`"))?;
        let (name, value) = (line[..colon].trim_ascii(), line[colon + 1..].trim_ascii());
        for (field, slot) in keys.fields.iter().zip(&mut values) {
            if name.eq_ignore_ascii_case(field.as_bytes()) {
                if slot.is_some() {
                    return Err(bad(&format!("key field {field} occurs twice in one stanza")));
                }
                *slot = Some(value);
            }
        }
    }
    let present = |(field, value): (&String, &Option<&'_ [u8]>)| match value {
        Some(value) if !value.is_empty() => Ok(()),
        _ => Err(BadRow { line: first, reason: format!("has no field {field}") }),
    };
    keys.fields.iter().zip(&values).try_for_each(present)?;
    keys.join(values.into_iter().flatten(), key);
    Ok(())
}
