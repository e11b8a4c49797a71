//! The progress of an import: one row of the table `terrane.import` per input and table, written in the same
//! atomic batch as the records that it counts. Its value is a JSON object, for people to read.

use serde_json::{Map, Value, json};

use crate::exit::{Code, Failure};
use crate::import::{Position, Syntax};
use crate::input::{HEAD_BYTES, Identity, Input};

/// The table that holds the positions.
pub(super) const TABLE: &str = "terrane.import";

/// The progress of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    /// The input that is imported.
    pub(super) identity: Identity,
    /// How it is read, as text.
    pub(super) syntax: String,
    /// The end of the last record in the database.
    pub(super) position: Position,
    /// Records in the database.
    pub(super) records: u64,
    /// Bad records skipped.
    pub(super) bad: u64,
    /// Records that replaced one of the same key.
    pub(super) replaced: u64,
    /// True if the input was read to its end.
    pub(super) complete: bool,
}

/// How an import uses the position that an earlier one stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Earlier {
    /// Nothing: it begins at the start of the input.
    Another,
    /// It goes on behind the position.
    Unfinished,
    /// The input was read to its end and is as it was.
    Complete,
}

impl Progress {
    /// An import that has not begun.
    pub(super) fn new(identity: Identity, syntax: &Syntax) -> Progress {
        let syntax = format!("{syntax:?}");
        Progress {
            identity,
            syntax,
            position: Position::default(),
            records: 0,
            bad: 0,
            replaced: 0,
            complete: false,
        }
    }

    /// Key of the row: the table imported into, a zero byte, the name of the input.
    pub(super) fn key(table: &str, name: &str) -> Vec<u8> {
        [table.as_bytes(), &[0], name.as_bytes()].concat()
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let object = json!({
            "path": self.identity.path,
            "len": self.identity.len,
            "changed_nanos": self.identity.changed_nanos,
            "head": self.identity.head,
            "head_len": self.identity.head_len,
            "syntax": self.syntax,
            "offset": self.position.offset,
            "line": self.position.line,
            "records": self.records,
            "bad": self.bad,
            "replaced": self.replaced,
            "complete": self.complete,
        });
        object.to_string().into_bytes()
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Progress, Failure> {
        let object: Map<String, Value> =
            serde_json::from_slice(bytes).map_err(|error| unreadable(&error.to_string()))?;
        let optional = |name: &str| object.get(name).and_then(Value::as_u64);
        let number = |name: &str| object.get(name).and_then(Value::as_u64).ok_or_else(|| unreadable(name));
        let text = |name: &str| object.get(name).and_then(Value::as_str).ok_or_else(|| unreadable(name));
        let head = u32::try_from(number("head")?).map_err(|_| unreadable("head"))?;
        Ok(Progress {
            identity: Identity {
                path: text("path")?.to_owned(),
                len: number("len")?,
                changed_nanos: number("changed_nanos")?,
                // Positions of earlier versions lack it.
                head_len: optional("head_len")
                    .or(optional("len"))
                    .filter(|&len| len > 0)
                    .map_or(HEAD_BYTES, |len| {
                        usize::try_from(len).map_or(HEAD_BYTES, |len| len.min(HEAD_BYTES))
                    }),
                head,
            },
            syntax: text("syntax")?.to_owned(),
            position: Position { offset: number("offset")?, line: number("line")? },
            records: number("records")?,
            bad: number("bad")?,
            replaced: optional("replaced").unwrap_or(0),
            complete: object
                .get("complete")
                .and_then(Value::as_bool)
                .ok_or_else(|| unreadable("complete"))?,
        })
    }

    /// Decides how an import of `input`, read as `now` says, uses this position. The import continues a file
    /// that grew since, and a pipe that has a name, or that was interrupted and begins the same way. Any
    /// other pipe is an input of its own.
    ///
    /// # Errors
    /// `Usage` if a file or a named pipe is another one than it was, or is read in another way.
    pub(super) fn earlier(
        &self,
        now: &Progress,
        input: &Input,
        name: Option<&str>,
    ) -> Result<Earlier, Failure> {
        let (before, after) = (&self.identity, &now.identity);
        let is_pipe = input.len.is_none();
        let begins = before.head_len > 0 && before.begins(&input.head);
        if is_pipe && name.is_none() {
            let goes_on = begins && !self.complete && self.syntax == now.syntax;
            return Ok(if goes_on { Earlier::Unfinished } else { Earlier::Another });
        }
        let changed = if !is_pipe && after.len < before.len {
            "it is shorter than"
        } else if before.head_len > 0 && !begins {
            "its first bytes are not the same as"
        } else if after.len == before.len && before.changed_nanos != after.changed_nanos {
            "it was written to, without growing, since"
        } else if self.syntax != now.syntax {
            "format or key fields are not the same as"
        } else if self.complete && !is_pipe && after.len == before.len {
            return Ok(Earlier::Complete);
        } else {
            return Ok(Earlier::Unfinished);
        };
        let shown = match name {
            Some(name) => format!("{} as --name {name}", input.name),
            None => input.name.clone(),
        };
        let state = if self.complete { "was complete with" } else { "stopped after" };
        Err(Failure::new(
            Code::Usage,
            format!(
                "{shown}: {changed} when its import {state} {} records; import it from the start with \
                 --restart, or as another input with --name NAME",
                self.records
            ),
        ))
    }
}

fn unreadable(what: &str) -> Failure {
    Failure::new(
        Code::Corrupt,
        format!("table {TABLE} holds a position that cannot be read ({what}): use --restart"),
    )
}
