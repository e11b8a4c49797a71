//! `docs/metrics.md`: every metric that there is. It is read from the rows of the three tables that are its
//! only source, each on one line: `name, kind, "unit", "sentence";`.

use std::fmt::Write as _;

use super::Finding;
use crate::tree::Tree;

const PAGE: &str = "docs/metrics.md";
const HEAD: &str = "\
# Metrics

`cargo xtask tidy --write` writes this page from the tables in the code. `cargo xtask tidy` refuses a page that differs from them.
`Db::statistics` returns all metrics of a database and of its tables by name, and `terrane stats` prints them. `Db::stats` returns the numbers of the
database as fields. In the text for Prometheus (`Statistics::to_prometheus`, `terrane stats --prometheus`) all names begin with
`terrane_`, names of counters end with `_total`, `_micros` and `_nanos` become `_seconds`, and metrics of a table have the label `table`.
A counter begins at 0 when the database is opened. For a deployment, `terrane stats --prometheus` adds the pins of its clones, which are not
metrics of the engine: `terrane_clone_pins`, and for each pin `terrane_clone_pin_objects`, `_bytes` and `_created_seconds`.
";

/// The files with the tables, what each is about, and the macro that reads its rows.
const TABLES: [(&str, &str, &str); 4] = [
    ("crates/terrane-engine/src/observe/stats/mod.rs", "Of a database", "numbers!"),
    ("crates/terrane-engine/src/observe/stats/mod.rs", "Distributions of a database", "histograms!"),
    ("crates/terrane-engine/src/observe/stats/table.rs", "Of each table", "table_numbers!"),
    (
        "crates/terrane-base/src/counters.rs",
        "Of a thread (`read_counters`), over all databases",
        "read_counters!",
    ),
];

/// Checks that the page is what the tables say, and that every row can be read.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, _, name) in TABLES {
        for (line, text) in rows(tree, path, name).filter(|(_, text)| row(text).is_none()) {
            findings.push(Finding::new(path, line, format!("not a row of metrics on one line: {text}")));
        }
    }
    if findings.is_empty() && renewed(tree).is_some() {
        let why = "the page is not what the tables of metrics say: run `cargo xtask tidy --write`";
        findings.push(Finding::new(PAGE, 0, why));
    }
    findings
}

/// The page as the tables say, if it differs. A tree without metrics needs none.
#[must_use]
pub fn renewed(tree: &Tree) -> Option<(&'static str, String)> {
    let mut page = HEAD.to_owned();
    let mut count = 0;
    for (path, about, name) in TABLES {
        let _ = write!(page, "\n## {about}\n\n| name | kind | unit | meaning |\n|---|---|---|---|\n");
        for [name, kind, unit, about] in rows(tree, path, name).filter_map(|(_, text)| row(text)) {
            let _ = writeln!(page, "| `{name}` | {kind} | {unit} | {} |", about.replace('|', "\\|"));
            count += 1;
        }
    }
    (count > 0 && tree.get(PAGE) != Some(&page)).then_some((PAGE, page))
}

/// The lines of the table that the macro `name` reads, with their numbers.
fn rows<'t>(tree: &'t Tree, path: &str, name: &str) -> impl Iterator<Item = (usize, &'t str)> {
    let head = format!("{name} {{");
    let lines = tree.get(path).unwrap_or_default().lines().enumerate();
    let inside = lines.skip_while(move |(_, line)| **line != *head).skip(1);
    inside.take_while(|(_, line)| *line != "}").map(|(index, line)| (index + 1, line))
}

/// Name, kind, unit and sentence of a row.
fn row(text: &str) -> Option<[&str; 4]> {
    let (name, rest) = text.trim().split_once(", ")?;
    let (kind, rest) = rest.split_once(", \"")?;
    let (unit, rest) = rest.split_once("\", \"")?;
    Some([name, kind, unit, rest.strip_suffix("\";")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_follows_the_tables() {
        let table = "numbers! {\n    a, gauge, \"bytes\", \"What a | b is.\";\n}\n";
        let mut tree = Tree::of([(TABLES[0].0, table)]);
        assert_eq!(check(&tree).len(), 1, "there is no page");
        let (path, page) = renewed(&tree).expect("a page");
        assert!(page.contains("| `a` | gauge | bytes | What a \\| b is. |\n"), "{page}");
        tree.insert(path, &page);
        assert_eq!(check(&tree), Vec::new());
        tree.insert(TABLES[0].0, "numbers! {\n    a, gauge, \"bytes\",\n        \"What it is.\";\n}\n");
        assert_eq!(check(&tree)[0].line, 2, "a row on two lines");
    }
}
