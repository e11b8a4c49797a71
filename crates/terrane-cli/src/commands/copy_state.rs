//! The progress of a copy: one row of the table `terrane.import`, a JSON object for people to read. It is
//! written after each load; if the process ends between the two, the rows of that load are loaded again.

use serde::{Deserialize, Serialize};

use super::position::TABLE;
use crate::exit::{Code, Failure};

/// Key of the row.
const KEY: &[u8] = b"\0copy";

/// The progress of a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    /// Absolute path of the source.
    pub(super) path: String,
    /// The number of the last change of the source: if it is another one, it was written to.
    pub(super) last_change: u64,
    /// Its column families, in the order in which they are copied.
    pub(super) families: Vec<Copied>,
    /// True if all was copied and compared.
    pub(super) complete: bool,
}

/// The progress of one column family.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Copied {
    pub(super) name: String,
    /// By which operator its merges are worked out; none where they are refused, so that no row of the table
    /// was merged.
    #[serde(default)]
    pub(super) merge_operator: Option<String>,
    pub(super) tally: Tally,
    /// The last key, in hexadecimal digits; none before the first load.
    pub(super) last: Option<String>,
    /// True if it was read to its end.
    pub(super) complete: bool,
}

/// Rows, their bytes, and the checksum of all of them in order, by which two databases are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tally {
    pub(super) rows: u64,
    pub(super) bytes: u64,
    pub(super) checksum: u32,
}

impl Tally {
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        self.rows += 1;
        self.bytes += (key.len() + value.len()) as u64;
        let lengths = [key.len() as u64, value.len() as u64];
        for length in lengths {
            self.checksum = crc32c::crc32c_append(self.checksum, &length.to_le_bytes());
        }
        self.checksum = crc32c::crc32c_append(self.checksum, key);
        self.checksum = crc32c::crc32c_append(self.checksum, value);
    }
}

impl Copied {
    pub(super) fn set_last(&mut self, key: &[u8]) {
        self.last = Some(key.iter().map(|byte| format!("{byte:02x}")).collect());
    }

    /// The last key.
    pub(super) fn last(&self) -> Result<Option<Vec<u8>>, Failure> {
        let Some(digits) = &self.last else { return Ok(None) };
        let pairs = digits.as_bytes().chunks(2).map(|pair| {
            let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
            u8::from_str_radix(pair, 16).ok()
        });
        pairs.collect::<Option<Vec<u8>>>().map(Some).ok_or_else(|| unreadable("the last key"))
    }
}

impl State {
    /// A copy that has not begun.
    pub(super) fn new(
        path: String,
        last_change: u64,
        names_and_operators: impl Iterator<Item = (String, Option<String>)>,
    ) -> State {
        let families = names_and_operators
            .map(|(name, merge_operator)| Copied { name, merge_operator, ..Copied::default() })
            .collect();
        State { path, last_change, families, complete: false }
    }

    pub(super) fn read(positions: &terrane::Table) -> Result<Option<State>, Failure> {
        let Some(row) = positions.get(KEY)? else { return Ok(None) };
        serde_json::from_slice(&row).map(Some).map_err(|error| unreadable(&error.to_string()))
    }

    pub(super) fn write(&self, db: &terrane::Db, positions: &terrane::Table) -> Result<(), Failure> {
        let row = serde_json::to_vec(self).expect("numbers and texts can be written");
        let mut batch = terrane::Batch::new();
        batch.put(positions, KEY, &row)?;
        db.write(&batch, terrane::Durability::Synced)?;
        Ok(())
    }

    /// Refuses to continue with another source, or with one that was changed.
    pub(super) fn require_same(&self, now: &State, database: &str) -> Result<(), Failure> {
        let names =
            |state: &State| state.families.iter().map(|family| family.name.clone()).collect::<Vec<_>>();
        let changed = if self.path != now.path {
            format!("holds a copy of {}", self.path)
        } else if self.last_change != now.last_change || names(self) != names(now) {
            format!("holds the beginning of a copy of {}, which was changed since", self.path)
        } else {
            return Ok(());
        };
        Err(Failure::new(Code::Usage, format!("{database} {changed}: remove it, or name a new directory")))
    }

    /// Goes on with the merge operators of `now`, which has the same families.
    ///
    /// # Errors
    /// `Usage` if a family has rows that were merged by another one.
    pub(super) fn take_operators(&mut self, now: &State) -> Result<(), Failure> {
        for (family, now) in self.families.iter_mut().zip(&now.families) {
            match &family.merge_operator {
                Some(before) if family.tally.rows > 0 && now.merge_operator.as_ref() != Some(before) => {
                    let by = now.merge_operator.as_deref().unwrap_or("none");
                    let why = format!(
                        "table {:?} has rows of a copy with the merge operator {before}, and now it is {by}: go on with the same \
                         library and --source-options as before, or remove the database and copy again",
                        family.name
                    );
                    return Err(Failure::new(Code::Usage, why));
                }
                _ => family.merge_operator.clone_from(&now.merge_operator),
            }
        }
        Ok(())
    }

    pub(super) fn rows(&self) -> u64 {
        self.families.iter().map(|family| family.tally.rows).sum()
    }
}

fn unreadable(what: &str) -> Failure {
    let why = format!(
        "table {TABLE} has a record of a copy that cannot be read ({what}): remove the database and copy again"
    );
    Failure::new(Code::Corrupt, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_separates_adjacent_rows() {
        let tally = |rows: &[(&[u8], &[u8])]| {
            let mut tally = Tally::default();
            rows.iter().for_each(|(key, value)| tally.add(key, value));
            tally
        };
        assert_ne!(tally(&[(b"ab", b"c")]), tally(&[(b"a", b"bc")]));
        assert_ne!(tally(&[(b"a", b"1"), (b"b", b"2")]), tally(&[(b"b", b"2"), (b"a", b"1")]));
        assert_eq!(tally(&[(b"a", b"1"), (b"b", b"")]).bytes, 3);
    }

    #[test]
    fn rows_of_one_family_are_merged_by_one_operator() {
        let state = |operator: Option<&str>| {
            let family = ("f".to_owned(), operator.map(str::to_owned));
            State::new("source".to_owned(), 1, [family].into_iter())
        };
        let begun = |operator, rows| {
            let mut state = state(operator);
            state.families[0].tally.rows = rows;
            state
        };
        for (before, rows, now, is_taken) in [
            (Some("add"), 0, Some("append"), true),
            (Some("add"), 0, None, true),
            (None, 7, Some("add"), true),
            (Some("add"), 7, Some("add"), true),
            (Some("add"), 7, Some("append"), false),
            (Some("add"), 7, None, false),
        ] {
            let mut found = begun(before, rows);
            match found.take_operators(&state(now)) {
                Ok(()) => assert!(is_taken && found.families[0].merge_operator.as_deref() == now),
                Err(why) => {
                    assert!(!is_taken && why.code == Code::Usage, "{before:?} {rows} {now:?}");
                    assert!(found == begun(before, rows), "nothing is changed");
                }
            }
        }
        let older = r#"{"name":"f","tally":{"rows":1,"bytes":2,"checksum":3},"last":"61","complete":false}"#;
        let older: Copied = serde_json::from_str(older).expect("a state without an operator");
        assert_eq!(older.merge_operator, None);
    }

    #[test]
    fn the_last_key_comes_back_as_it_was() {
        let mut copied = Copied::default();
        assert_eq!(copied.last(), Ok(None));
        for key in [&b""[..], b"\0\xff k", b"a"] {
            copied.set_last(key);
            assert_eq!(copied.last(), Ok(Some(key.to_vec())));
        }
        copied.last = Some("abc".to_owned());
        assert_eq!(copied.last().map_err(|why| why.code), Err(Code::Corrupt));
    }
}
