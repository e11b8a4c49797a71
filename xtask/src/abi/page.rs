//! The page that describes each function.

use std::fmt::Write as _;

use super::table::{Abi, Area, State};

/// Its path.
pub const PATH: &str = "docs/rocksdb-c-api.md";

const HEAD: &str = "\
# RocksDB's C interface

Written by `cargo xtask abi --write` from `crates/terrane-rocksdb/abi.toml`; `cargo xtask tidy` refuses a page that says
otherwise. How to build and use the library: `crates/terrane-rocksdb/README.md`.

* **honoured**: does what its name says; where it differs from RocksDB, a sentence says how.
* **accepted**: a tuning value without meaning here; what is set is kept, and its getter returns it. Some such options
  change behaviour in RocksDB: see [Strict mode](#strict-mode).
* **refused**: an error by name, on purpose: at open, where an option asks for it.
* **missing**: not there yet. It is exported, so programs that bind every symbol load; called, it gives the error
  `Not implemented: NAME`, or, where it has no way to report an error, does nothing and returns zero or null.
";

const STRICT: &str = "
## Strict mode

These options and functions change the behaviour of RocksDB and have no effect here. A database that is opened with one of the
options, or gets a column family with one, says so in its info log (the file LOG, or the logger of the options): one line that
names the function. Options of a call (a read, a compaction, an ingestion, a transaction, a backup) are named at the first call
that has another value than the default, once in each database. With the environment variable `TERRANE_ROCKSDB_STRICT=1` the
opening, the creation of the column family, or the call fails instead, with an error that begins with `Not implemented: Not
supported in strict mode`, names all of them, and says what to do; an iterator has it as its status. A call that cannot report
an error (`compact_range_opt`) does nothing and writes the error to the log. The variable is read at each opening; any value
but `0` and the empty one switches strict mode on.

An option that is a pure hint of performance, or asks for less than what is always done, is silent in both modes: where a
program could see a difference, the tables below say which. Options of writes are all of this sort.
";

/// The page as the table says.
#[must_use]
pub fn text(abi: &Abi) -> String {
    let mut text = HEAD.to_owned();
    let _ = write!(
        text,
        "\nThe interface is that of RocksDB {}: {} functions.\n\n| area | honoured | accepted | refused | missing |\n\
         |---|---|---|---|---|\n",
        abi.version,
        abi.functions().count()
    );
    for area in &abi.areas {
        counts(&mut text, &area.name, |state| count(area, state));
    }
    counts(&mut text, "**all**", |state| abi.areas.iter().map(|area| count(area, state)).sum());
    text.push_str("\nThe prefix `rocksdb_` is left out below.\n");
    strict(&mut text, abi);
    for area in &abi.areas {
        section(&mut text, area);
    }
    text
}

/// Options of behaviour that have no effect.
fn strict(text: &mut String, abi: &Abi) {
    text.push_str(STRICT);
    text.push_str("\n| option | what happens instead |\n|---|---|\n");
    for function in abi.functions() {
        if let Some(instead) = &function.ignored {
            let _ = writeln!(text, "| `{}` | {instead} |", function.name.trim_start_matches("rocksdb_"));
        }
    }
}

fn count(area: &Area, state: State) -> usize {
    area.functions.iter().filter(|function| function.state == state).count()
}

fn counts(text: &mut String, name: &str, count: impl Fn(State) -> usize) {
    let _ = write!(text, "| {name} |");
    for state in State::ALL {
        let _ = write!(text, " {} |", count(state));
    }
    text.push('\n');
}

fn section(text: &mut String, area: &Area) {
    let _ = write!(text, "\n## {}\n", area.name);
    let short = |name: &str| name.trim_start_matches("rocksdb_").to_owned();
    for state in State::ALL {
        let names = area.functions.iter().filter(|function| function.state == state);
        let names: Vec<String> = names.map(|function| format!("`{}`", short(&function.name))).collect();
        if !names.is_empty() {
            let word = state.word();
            let _ = write!(text, "\n**{}{}**: {}\n", word[..1].to_uppercase(), &word[1..], names.join(" "));
        }
    }
    let mut differing = area.functions.iter().filter(|function| function.differs.is_some()).peekable();
    if differing.peek().is_some() {
        text.push_str("\n| function | how it differs |\n|---|---|\n");
    }
    for function in differing {
        let how = function.differs.as_deref().unwrap_or_default().replace('|', "\\|");
        let _ = writeln!(text, "| `{}` | {how} |", short(&function.name));
    }
}
