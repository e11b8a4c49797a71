//! Completion by the tab key: of commands, of names of tables behind `--table` and `.table`, and of keys of
//! the present table where a command takes one.

use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};
use terrane::Db;

use super::COMMANDS;
use super::own::OWN;
use crate::text::{escape, parse_bytes};

/// Most keys that are offered.
const KEYS_MAX: usize = 50;
/// Commands whose first word is a key.
const TAKE_KEYS: [&str; 5] = ["get", "put", "delete", "delete-range", "merge"];
/// Options that are followed by a key.
const BEFORE_KEYS: [&str; 3] = ["--from", "--to", "--prefix"];

/// The completion of lines for a database.
pub(super) struct Completion {
    pub(super) db: Db,
    pub(super) table: String,
}

impl Completion {
    /// Where the last word of `line` begins, and what it may become.
    pub(super) fn of(&self, line: &str) -> (usize, Vec<String>) {
        let start = line.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        let (before, word) = (line[..start].split_whitespace().collect::<Vec<_>>(), &line[start..]);
        let candidates = match before.as_slice() {
            [] => commands(word),
            [.., ".help"] => commands(word),
            [.., "--table" | ".table"] => begins(self.db.tables(), word),
            [.., last] if BEFORE_KEYS.contains(last) => self.keys(word),
            [command] if TAKE_KEYS.contains(command) => self.keys(word),
            _ => Vec::new(),
        };
        (start, candidates)
    }

    /// Keys that begin with the typed text; none if it is not whole, or they cannot be read.
    fn keys(&self, typed: &str) -> Vec<String> {
        let (Ok(prefix), Ok(table)) = (parse_bytes(typed), self.db.table(&self.table)) else {
            return Vec::new();
        };
        let keys = table.prefix(&prefix).map_while(Result::ok).map(|(key, _)| {
            let mut shown = String::new();
            escape(&key, &mut shown);
            shown
        });
        // A key with a space or a quote needs quotes, which a completion of one word cannot set.
        let plain =
            |key: &String| !key.contains(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '#'));
        keys.filter(plain).take(KEYS_MAX).collect()
    }
}

fn commands(word: &str) -> Vec<String> {
    let own = OWN.iter().map(|(name, _)| name.split(' ').next().unwrap_or(name));
    begins(COMMANDS.iter().map(|(name, _)| *name).chain(own).map(str::to_owned).collect(), word)
}

fn begins(names: Vec<String>, word: &str) -> Vec<String> {
    names.into_iter().filter(|name| name.starts_with(word)).collect()
}

impl Completer for Completion {
    type Candidate = String;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.of(&line[..pos]))
    }
}

impl Helper for Completion {}
impl Highlighter for Completion {}
impl Validator for Completion {}

impl Hinter for Completion {
    type Hint = String;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_tables_and_keys_are_completed() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path().join("db")).unwrap();
        let users = db.table_or_create("users").unwrap();
        for key in ["ada", "adam", "a b", "eve"] {
            users.put(key.as_bytes(), b"v").unwrap();
        }
        users.put(b"\xff\x00", b"v").unwrap();
        let completion = Completion { db, table: "users".to_owned() };
        let of = |line: &str| completion.of(line);
        assert_eq!(of("ge"), (0, vec!["get".to_owned()]));
        assert_eq!(of(".ta"), (0, vec![".table".to_owned(), ".tables".to_owned()]));
        assert_eq!(of("get ad"), (4, vec!["ada".to_owned(), "adam".to_owned()]));
        assert_eq!(of("scan --prefix \\xff"), (14, vec!["\\xff\\x00".to_owned()]));
        assert_eq!(of("get a").1.len(), 2, "a key with a space is not offered");
        assert_eq!(of(".table u"), (7, vec!["users".to_owned()]));
        assert_eq!(of("count --table d"), (14, vec!["default".to_owned()]));
        assert_eq!(of("get ada x"), (8, vec![]));
    }
}
