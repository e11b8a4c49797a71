//! Result files: JSON lines, appended as they come, so that an interrupted run keeps what it has.
//!
//! Layout: one line of [`Line`] each, the header first, at most one end and nothing after it. A last line
//! that was cut (no line feed, does not parse) is dropped and the result is partial; damage anywhere else is
//! an error that names the line.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::report::model::{FORMAT, Line, RunReport};

/// An open result file.
#[derive(Debug)]
pub struct Sink {
    path: PathBuf,
    file: std::fs::File,
}

impl Sink {
    /// Creates the file, or empties it.
    ///
    /// # Errors
    /// `Io`.
    pub fn create(path: &Path) -> Result<Sink> {
        let file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).open(path);
        let file = file.map_err(|error| Error::io("create", path, error))?;
        Ok(Sink { path: path.to_owned(), file })
    }

    /// Appends a line and gives it to the system: it outlives this process from here on.
    ///
    /// # Errors
    /// `Io`.
    pub fn append(&mut self, line: &Line) -> Result<()> {
        let mut text =
            serde_json::to_vec(line).map_err(|error| Error::io("write a result to", &self.path, error))?;
        text.push(b'\n');
        // One call per line: a reader, or a kill, finds whole lines but for the last.
        self.file.write_all(&text).map_err(|error| Error::io("write a result to", &self.path, error))
    }
}

/// Reads a result file.
///
/// # Errors
/// `Io` if it cannot be read, is not a result file, is of a newer format, or has a damaged line; the text
/// names the line.
pub fn read(path: &Path) -> Result<RunReport> {
    let mut bytes = Vec::new();
    std::fs::OpenOptions::new()
        .read(true)
        .open(path)
        .and_then(|mut file| std::io::Read::read_to_end(&mut file, &mut bytes))
        .map_err(|error| Error::io("read", path, error))?;
    parse(&bytes).map_err(|why| Error::Io(format!("{}: {why}", path.display())))
}

/// Reads the text of a result file.
///
/// # Errors
/// The error of the text, with its line.
pub fn parse(bytes: &[u8]) -> std::result::Result<RunReport, String> {
    let mut lines: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').collect();
    // What follows the last line feed: empty in a whole file, the start of a line in a cut one.
    let cut = lines.pop().unwrap_or_default();
    let mut report = None;
    for (at, line) in lines.iter().enumerate() {
        let parsed = parse_line(line).map_err(|why| format!("line {} is damaged: {why}", at + 1));
        take(&mut report, at + 1, parsed?)?;
    }
    if !cut.is_empty() {
        match parse_line(cut) {
            Ok(line) => take(&mut report, lines.len() + 1, line)?,
            Err(why) if report.is_none() => {
                return Err(format!("line 1 is not a header of a result file: {why}"));
            }
            Err(_) => {}
        }
    }
    report.ok_or_else(|| "is empty: the run ended before its first line".to_owned())
}

fn take(report: &mut Option<RunReport>, number: usize, line: Line) -> std::result::Result<(), String> {
    let Some(report) = report else {
        let Line::Header(header) = line else {
            return Err(format!("line {number} should be the header of a result file, but is another line"));
        };
        *report = Some(RunReport { header: *header, cells: Vec::new(), failed: Vec::new(), end: None });
        return Ok(());
    };
    if report.end.is_some() {
        return Err(format!("line {number} stands after the end of the run: two results in one file?"));
    }
    match line {
        Line::Header(_) => return Err(format!("line {number} is a second header: two results in one file?")),
        Line::Cell(cell) => report.cells.push(*cell),
        Line::Failed(failed) => report.failed.push(failed),
        Line::End(end) => report.end = Some(end),
    }
    Ok(())
}

/// Fields that every format since the first has, whatever else is in its header.
#[derive(Deserialize)]
struct Version {
    line: String,
    format: Option<u32>,
}

fn parse_line(line: &[u8]) -> std::result::Result<Line, String> {
    // The format is looked at first: a newer header may not parse, and that would be the wrong thing to say.
    if let Ok(Version { line, format: Some(format) }) = serde_json::from_slice(line)
        && line == "header"
        && format > FORMAT
    {
        return Err(format!(
            "it has format {format}, this version reads up to {FORMAT}: use the version that wrote it, or a newer one"
        ));
    }
    serde_json::from_slice(line).map_err(|error| error.to_string())
}
