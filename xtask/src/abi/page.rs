//! The page that describes each function.

use std::fmt::Write as _;

use super::table::{Abi, Area, State};

/// Its path.
pub const PATH: &str = "docs/rocksdb-c-api.md";

const HEAD: &str = "\
# RocksDB's C interface

`cargo xtask abi --write` writes this page from `crates/terrane-rocksdb/abi.toml`. `cargo xtask tidy` refuses a page that
differs from it. How to build and use the library: `crates/terrane-rocksdb/README.md`.

* **honoured**: the function does what its name says. If it differs from RocksDB, a sentence says how.
* **accepted**: a tuning value without meaning here. The library keeps the value, and its getter returns it. Some of these options
  change behaviour in RocksDB: see [Strict mode](#strict-mode).
* **refused**: on purpose, the function returns an error that names it. For an option, the opening returns this error.
* **missing**: the function is not implemented yet. It is exported, so that programs that bind every symbol can load the library. A call
  returns the error `Not implemented: NAME`. A function that cannot report an error does nothing and returns zero or null.
";

const STRICT: &str = "
## Strict mode

The options and functions of this table change the behaviour of RocksDB and have no effect here. If a database is opened with such an
option, or gets a column family with one, its info log (the file LOG, or the logger of the options) gets one line that
names the function. Options of a call (a read, a compaction, an ingestion, a transaction, a backup) are logged once in each database, at the
first call with another value than the default.

With the environment variable `TERRANE_ROCKSDB_STRICT=1`, the opening, the creation of the column family, or the call fails instead. The error
begins with `Not implemented: Not supported in strict mode`, names all such options, and says what to do. An iterator has this error as its status. A call that cannot
report an error (`compact_range_opt`) does nothing and writes the error to the log. Each opening reads the variable. Every value
except `0` and the empty value turns strict mode on.

Options that are only hints of performance, or that ask for less than the library always does, cause no log line and no error. If a
program can see a difference, the tables below describe it. All options of writes are of this kind.
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
    text.push_str("\n| option | effect here |\n|---|---|\n");
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
