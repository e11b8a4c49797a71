//! Lines of a stream with their numbers and offsets; a line longer than the limit is skipped, not buffered.

use std::io::{self, BufRead};

use super::Position;

/// Longest line, stanza or row, in bytes: room for the longest value and its key, escaped.
pub(super) const ROW_BYTES_MAX: usize = terrane_base::key::VALUE_BYTES_MAX + (1 << 20);
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads lines.
#[derive(Debug)]
pub(super) struct Lines<R> {
    input: R,
    position: Position,
}

/// The result of [`Lines::next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line is in the buffer, its end of line included if it had one.
    Whole,
    /// A line longer than the limit was skipped.
    TooLong,
    /// The input is at its end.
    End,
}

impl<R: BufRead> Lines<R> {
    /// `input` stands at `position` of the whole stream.
    pub(super) fn new(input: R, position: Position) -> Self {
        Lines { input, position }
    }

    /// The end of the last line read; its number is the number of lines read.
    pub(super) fn position(&self) -> Position {
        self.position
    }

    /// The stream behind the lines.
    pub(super) fn input_mut(&mut self) -> &mut R {
        &mut self.input
    }

    /// Says where the stream stands after it was moved.
    pub(super) fn set_position(&mut self, position: Position) {
        self.position = position;
    }

    /// Appends the next line to `buffer`; `room` is how many bytes it may add.
    pub(super) fn next(&mut self, buffer: &mut Vec<u8>, room: usize) -> io::Result<Line> {
        let start = buffer.len();
        let mut kept = true;
        let mut read = 0;
        loop {
            let chunk = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                chunk => chunk?,
            };
            if chunk.is_empty() {
                break;
            }
            let end = chunk.iter().position(|&byte| byte == b'\n').map(|at| at + 1);
            let len = end.unwrap_or(chunk.len());
            kept = kept && read + len <= room;
            if kept {
                buffer.extend_from_slice(&chunk[..len]);
            }
            read += len;
            self.input.consume(len);
            if end.is_some() {
                break;
            }
        }
        if read == 0 {
            return Ok(Line::End);
        }
        if self.position.offset == 0 && buffer[start..].starts_with(BYTE_ORDER_MARK) {
            buffer.drain(start..start + BYTE_ORDER_MARK.len());
        }
        self.position.offset += read as u64;
        self.position.line += 1;
        if !kept {
            buffer.truncate(start);
            return Ok(Line::TooLong);
        }
        Ok(Line::Whole)
    }
}

/// The line without its end (`\n` or `\r\n`).
pub(super) fn trim_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}
