//! The progress of an import: one row of the table `terrane.import` per input and table, written in the same
//! atomic batch as the records that it counts. Its value is a JSON object, for people to read.

use serde_json::{Map, Value, json};

use crate::exit::{Code, Failure};
use crate::import::{Position, Syntax};
use crate::input::Identity;

/// The table that holds the positions.
pub(super) const TABLE: &str = "terrane.import";

/// The progress of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    /// What is imported.
    pub(super) identity: Identity,
    /// How it is read, as text.
    pub(super) syntax: String,
    /// The end of the last record in the database.
    pub(super) position: Position,
    /// Records in the database.
    pub(super) records: u64,
    /// Bad records skipped.
    pub(super) bad: u64,
    /// True if the input was read to its end.
    pub(super) complete: bool,
}

impl Progress {
    /// An import that has not begun.
    pub(super) fn new(identity: Identity, syntax: &Syntax) -> Progress {
        let syntax = format!("{syntax:?}");
        Progress { identity, syntax, position: Position::default(), records: 0, bad: 0, complete: false }
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
            "syntax": self.syntax,
            "offset": self.position.offset,
            "line": self.position.line,
            "records": self.records,
            "bad": self.bad,
            "complete": self.complete,
        });
        object.to_string().into_bytes()
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Progress, Failure> {
        let object: Map<String, Value> =
            serde_json::from_slice(bytes).map_err(|error| unreadable(&error.to_string()))?;
        let number = |name: &str| object.get(name).and_then(Value::as_u64).ok_or_else(|| unreadable(name));
        let text = |name: &str| object.get(name).and_then(Value::as_str).ok_or_else(|| unreadable(name));
        let head = u32::try_from(number("head")?).map_err(|_| unreadable("head"))?;
        Ok(Progress {
            identity: Identity {
                path: text("path")?.to_owned(),
                len: number("len")?,
                changed_nanos: number("changed_nanos")?,
                head,
            },
            syntax: text("syntax")?.to_owned(),
            position: Position { offset: number("offset")?, line: number("line")? },
            records: number("records")?,
            bad: number("bad")?,
            complete: object
                .get("complete")
                .and_then(Value::as_bool)
                .ok_or_else(|| unreadable("complete"))?,
        })
    }

    /// Refuses to go on in another input, or in the same one read in another way.
    pub(super) fn require_same(&self, now: &Progress, input: &str) -> Result<(), Failure> {
        let (before, after) = (&self.identity, &now.identity);
        let changed = if before.head != after.head {
            "its first bytes are others than"
        } else if before.len != after.len {
            "its length is another than"
        } else if before.changed_nanos != after.changed_nanos {
            "it was changed"
        } else if self.syntax != now.syntax {
            "format or key fields are others than"
        } else {
            return Ok(());
        };
        Err(Failure::new(
            Code::Usage,
            format!(
                "{input}: {changed} when its import stopped after {} records; import it from the start with \
                 --restart, or under another --name",
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
