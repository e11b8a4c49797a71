//! Every rule of tidy about documents on small made-up trees: a page that keeps it, and one that breaks it.

use xtask::tidy::words::WORDS;
use xtask::tidy::{Finding, chart, figures, glossary, names, pages, record_kinds, threads};
use xtask::tree::Tree;

fn messages(found: Vec<Finding>) -> Vec<String> {
    found.iter().map(Finding::to_string).collect()
}

#[test]
fn generated_reports_are_refused_under_docs() {
    let tree = Tree::of([("docs/benchmarks/run.html", "<p>\n"), ("crates/low/tests/page.html", "<p>\n")]);
    let found = messages(pages::check(&tree));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].starts_with("docs/benchmarks/run.html: generated report"), "{found:#?}");
}

#[test]
fn links_to_files_of_every_kind_must_lead_somewhere() {
    let page = "[a](run.html), [b](../bench/plan.toml), [c](#part), [d](https://far.test/x.html)\n";
    let found = messages(pages::check(&Tree::of([("docs/a.md", page), ("bench/plan.toml", "")])));
    assert_eq!(found, ["docs/a.md:1: the link to run.html leads nowhere"]);
}

#[test]
fn a_figure_follows_the_code() {
    let key = "pub const KEY_BYTES_MAX: usize = 64 * 1024;\npub const VALUE_BYTES_MAX: usize = 1 << 26;\n\
               pub const BATCH_BYTES_MAX: usize = 256 * 1024 * 1024;\n";
    let readme = "| key | 32 KiB, any |\n| value | 64 MiB, any |\n| batch | an eighth by default), at most \
                  256 MiB |\n| tables | 65,536 |\n";
    let tables = "pub const TABLES_MAX: usize = 65_536;\n";
    let security = "| key, value | 64 KiB, 64 MiB |\n| tables, table numbers | 65,536 at a time |\n";
    let mut tree = Tree::of([
        ("crates/terrane-base/src/key.rs", key),
        ("crates/terrane-engine/src/catalog.rs", tables),
        ("README.md", readme),
        ("SECURITY.md", security),
    ]);
    let found = messages(figures::check(&tree));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].contains("README.md: says 32 KiB") && found[0].contains("has 64 KiB"), "{found:#?}");
    let renewed = figures::renewed(&tree);
    let [(path, text)] = &renewed[..] else { panic!("one page: {renewed:#?}") };
    assert_eq!((*path, text), ("README.md", &readme.replace("32 KiB", "64 KiB")));
    tree.insert(path, text);
    assert_eq!(messages(figures::check(&tree)), Vec::<String>::new());
    tree.insert("README.md", &text.replace("| tables | 65,536 |", "| tables | many |"));
    assert!(messages(figures::check(&tree))[0].contains("README.md: lacks the figure"));
    tree.insert("README.md", text);
    tree.insert("crates/terrane-engine/src/catalog.rs", "const TABLES: usize = 65_536;\n");
    let found = messages(figures::check(&tree));
    assert!(
        found.len() == 2 && found.iter().all(|finding| finding.contains("is not found in")),
        "{found:#?}"
    );
}

#[test]
fn a_constant_with_two_values_decides_no_figure() {
    let mut tree = Tree::of([("docs/design/0001-mapped-append.md", "(up to 64 turns of it)\n")]);
    let turns = "const GATHER_TURNS: u32 = if cfg!(feature = \"shuttle\") { 1 } else { 192 };\n";
    tree.insert("crates/terrane-journal/src/journal.rs", turns);
    assert!(messages(figures::check(&tree))[0].contains("says 64 where"));
    tree.insert("crates/terrane-journal/src/ring/mod.rs", turns);
    assert!(messages(figures::check(&tree))[0].contains("is not found in"));
}

const HOUSE: &str = "docs/design/0031-engine-of-parts.md";

/// The page with figures of the house, each false, and the sources of all of them.
fn house() -> Tree {
    let page = "There are 9 options now: 9 ordinary ones, 9 in\n`Options::diagnostics`, 9 in `Options::experiments`.\n\
                | fields of `Engine`; methods | 43; 319 | 9; 9 on the four structs that it consists of |\n\
                | comment lines wider than 110 columns | 2,710 | 9 |\n| pronouns, six words of `words.txt` | 1,148 | 9 |\n\
                | idioms, six phrases of `words.txt` | 288 | 9 |\n| ordinary options | 61 | 9 |\n\
                | engine | 39; 3 of 748 | 9; 9 of 9 |\n| others | 61; 39 of 923 | 9; 9 of 9 |\n\
                | files above 400 lines | 2 | 9 |\n| cycle, as `cycles.rs` of tidy counts them | 40 of 133 | 9 |\n";
    let options = |names: &str| format!("options! {{\n    struct Of \"\";\n{names}}}\n");
    let assertions: String =
        ["engine", "journal", "memtable", "table", "levels", "storage", "compaction", "sim"]
            .map(|name| format!("terrane-{name} 500 30 60 20\n"))
            .concat();
    let engine = "pub struct Engine {\n    /// The parts.\n    pub(crate) path: WritePath,\n    lock: u8,\n}\n\
                  impl Engine {\n    fn one() {}\n    fn two() {}\n}\nimpl Drop for Engine {\n    fn drop() {}\n}\n";
    let shared = "impl Shared {\n    fn three() {}\n}\nimpl Other {\n    fn four() {}\n}\n";
    // Two pronouns, an idiom, and a word that is neither; this file has none of them.
    let words = [(3, 0), (2, 3), (7, 12), (40, 14)];
    let words = words.map(|(count, at)| format!("{count} {}\n", WORDS[at].0)).concat();
    let mut tree = Tree::of([(HOUSE, page), ("xtask/assertions.txt", &assertions)]);
    for (path, text) in [
        ("crates/terrane-base/src/options.rs", options("    one: u64 = 0,\n    two: u64 = 0,\n")),
        ("crates/terrane-base/src/options/diagnostics.rs", options("    three: u64 = 0,\n")),
        ("crates/terrane-base/src/options/experiments.rs", options("    four: u64 = 0,\n")),
        ("docs/tuning.md", "The 2 options of a database\n".to_owned()),
        ("crates/terrane-engine/src/engine.rs", engine.to_owned()),
        ("crates/terrane-engine/src/read/get.rs", shared.to_owned()),
        ("xtask/width.txt", "terrane 4\nterrane-base 1\n".to_owned()),
        ("xtask/words.txt", words),
        ("xtask/ratchet.txt", "file a.rs 422\nfunction a.rs f 80\n".to_owned()),
    ] {
        tree.insert(path, &text);
    }
    tree
}

#[test]
fn figures_of_the_house_follow_its_files() {
    let mut tree = house();
    let of_page = |tree: &Tree| -> Vec<String> {
        messages(figures::check(tree)).into_iter().filter(|found| found.starts_with(HOUSE)).collect()
    };
    assert_eq!(of_page(&tree).len(), 13, "each figure is false: {:#?}", of_page(&tree));
    let renewed = figures::renewed(&tree);
    let [(path, text)] = &renewed[..] else { panic!("one page: {renewed:#?}") };
    tree.insert(path, text);
    assert_eq!(of_page(&tree), Vec::<String>::new());
    for row in [
        "There are 4 options now: 2 ordinary ones, 1 in\n`Options::diagnostics`, 1 in `Options::experiments`.\n",
        "| 43; 319 | 2; 3 on the four structs",
        "| 2,710 | 5 |\n",
        "| 1,148 | 5 |\n",
        "| 288 | 7 |\n",
        "| ordinary options | 61 | 2 |\n",
        "| 30; 20 of 500 |\n",
        "| 180; 120 of 3,000 |\n",
        "| files above 400 lines | 2 | 1 |\n",
        "| 40 of 133 | 0 of 2 |\n",
    ] {
        assert!(text.contains(row), "{row}: {text}");
    }
    tree.insert("xtask/assertions.txt", "terrane-journal 500 30 60 20\n");
    let found = of_page(&tree);
    assert_eq!(found.len(), 2, "a crate without a line has no figure: {found:#?}");
}

#[test]
fn the_table_of_threads_has_each_thread_that_is_started() {
    let page = "| thread | does | waits for |\n|---|---|---|\n| caller | all | nothing |\n| `terrane-N` | jobs | work |\n\
                | `terrane-old` | nothing | nothing |\n";
    let code = "fn start() {\n    let folder = format!(\"terrane-{id}\");\n\
                    \x20   env.spawn(&format!(\"terrane-{number}\"), body);\n    \
                    builder\n        .thread_name(\"terrane-bucket\");\n}\n\
                #[cfg(test)]\nmod tests {\n    fn start() { spawn(\"terrane-test\"); }\n}\n";
    let mut tree = Tree::of([("ARCHITECTURE.md", page), ("crates/low/src/lib.rs", code)]);
    let found = messages(threads::check(&tree));
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(
        found[0].starts_with("crates/low/src/lib.rs:5: starts the thread `terrane-bucket`"),
        "{found:#?}"
    );
    assert!(found[1].starts_with("ARCHITECTURE.md:5: no code starts a thread `terrane-old`"), "{found:#?}");
    tree.insert("ARCHITECTURE.md", &page.replace("terrane-old", "terrane-bucket"));
    assert_eq!(messages(threads::check(&tree)), Vec::<String>::new());
    // Those of the command are in the page of its user.
    tree.insert("ARCHITECTURE.md", &page.replace("| `terrane-old` | nothing | nothing |\n", ""));
    assert_eq!(messages(threads::check(&tree)).len(), 1);
    tree.insert("docs/operations.md", "| thread | does |\n|---|---|\n| `terrane-bucket` | requests |\n");
    assert_eq!(messages(threads::check(&tree)), Vec::<String>::new());
}

#[test]
fn the_page_for_a_first_reading_stays_short() {
    let page = |words: usize| Tree::of([("ARCHITECTURE.md", "word ".repeat(words).as_str())]);
    assert_eq!(messages(pages::check(&page(2400))), Vec::<String>::new());
    let found = messages(pages::check(&page(2401)));
    assert!(found.len() == 1 && found[0].contains("has 2401 words, 2400 are allowed"), "{found:#?}");
}

#[test]
fn the_page_of_segments_lists_the_kinds_that_the_code_reads() {
    let code =
        "match number {\n    0 => Some(RecordKind::Delete),\n    4 => Some(RecordKind::RangeDelete),\n}\n";
    let page =
        "| kind | number | value |\n|---|---|---|\n| delete | 0 | |\n| put | 1 | |\n\n| other | 4 | |\n";
    let mut tree =
        Tree::of([("crates/terrane-base/src/sequence.rs", code), ("docs/format/segment.md", page)]);
    let found = messages(record_kinds::check(&tree));
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found[0].contains("does not list kinds of records that the code reads: {4}"), "{found:#?}");
    assert!(found[1].contains("lists kinds of records that the code does not read: {1}"), "{found:#?}");
    tree.insert("docs/format/segment.md", &page.replace("| put | 1 |", "| range delete | 4 |"));
    assert_eq!(messages(record_kinds::check(&tree)), Vec::<String>::new());
}

#[test]
fn a_glossary_has_each_noun_once_with_a_place() {
    let row = |noun: &str| format!("| {noun} | meaning | None | `crates/low/src/lib.rs` |\n");
    let rows: String = glossary::VOCABULARY.iter().map(|noun| row(noun)).collect();
    let page = format!("# Glossary\n\n| noun | meaning | RocksDB | where |\n|---|---|---|---|\n{rows}");
    let check = |page: &str| {
        messages(glossary::check(&Tree::of([("docs/glossary.md", page), ("crates/low/src/lib.rs", "")])))
    };
    assert_eq!(check(&page), Vec::<String>::new());
    assert_eq!(
        check(&page.replace(&row("swip"), "")),
        ["docs/glossary.md: lacks `swip`, a noun of the design"]
    );
    assert!(
        check(&(page.clone() + &row("pointer, swip")))[0].contains("`swip` has a row already, in line 22")
    );
    assert!(check(&page.replace("| swip | meaning |", "| swip | |"))[0].contains("expected `| NOUNS"));
    let without = "| arena | memory | None | nowhere |\n";
    assert!(check(&(page.clone() + without))[0].contains("without a place"));
    let gone = page.clone() + "| arena | memory | None | `gone.rs` |\n";
    assert!(check(&gone)[0].contains("`gone.rs` is not a path"));
    let mut tree = Tree::of([("docs/glossary.md", &page), ("crates/low/src/lib.rs", "")]);
    tree.insert("crates/terrane-engine/src/kind.rs", "    JobKind::Scrub => \"scrub\",\n");
    assert_eq!(
        messages(glossary::check(&tree)),
        ["docs/glossary.md: lacks `scrub`, a kind of a background job"]
    );
}

#[test]
fn a_product_dependency_is_not_listed_under_tools() {
    let manifest = |dependencies: &str| format!("[package]\nname = \"low\"\n{dependencies}\n");
    let page = "| `near` | a reason |\n\n## In tests, benches and tools\n\n| `far` | a reason |\n";
    let check = |dependencies: &str| {
        let near = "[build-dependencies]\nnear = \"1\"\n";
        let manifest = manifest(&format!("{dependencies}\n{near}"));
        messages(pages::check(&Tree::of([
            ("crates/low/Cargo.toml", &manifest),
            ("docs/dependencies.md", page),
        ])))
    };
    assert_eq!(check("[dev-dependencies]\nfar = \"1\""), Vec::<String>::new());
    assert_eq!(check("[dependencies]\nfar = { version = \"1\", optional = true }"), Vec::<String>::new());
    let found = check("[dependencies]\nfar = \"1\"");
    assert!(
        found.len() == 1 && found[0].contains("`far` is listed under tools, and `low` needs it"),
        "{found:#?}"
    );
}

#[test]
fn every_build_script_is_named() {
    let files =
        [("crates/low/build.rs", ""), ("crates/low/src/build.rs", ""), ("SECURITY.md", "No script.\n")];
    let found = messages(pages::check(&Tree::of(files)));
    assert!(found.len() == 1 && found[0].contains("the build script `crates/low/build.rs`"), "{found:#?}");
}

#[test]
fn the_chart_follows_from_its_table() {
    let page = "| load | threads | Terrane, thousand/s | RocksDB | LMDB | Bf-Tree |\n|---|---|---|---|---|---|\n\
                | readseq #2 | 1 | 100 | 0.17 | **1.28** | 0.5 |\n";
    const PAGE: &str = "docs/benchmarks/2026-11-22-second.md";
    let mut tree = Tree::of([(PAGE, page)]);
    let (path, chart) = chart::renewed(&tree).expect("there is none yet");
    assert!(chart.contains(">readseq, 1 thread<") && chart.matches("<circle").count() == 2, "{chart}");
    assert_eq!(messages(chart::check(&tree)).len(), 1);
    tree.insert(path, &chart);
    assert_eq!(messages(chart::check(&tree)), Vec::<String>::new());
    tree.insert(PAGE, &page.replace("0.17", "0.18"));
    assert!(messages(chart::check(&tree))[0].contains("is not the chart of the table"));
    // A rate beyond the axis, or no figure at all, is not a chart.
    tree.insert(PAGE, &page.replace("0.17", "7.1"));
    assert!(messages(chart::check(&tree))[0].contains("lacks the table"));
}

#[test]
fn every_example_is_a_recipe() {
    let check = |page: &str| {
        let files =
            [("crates/low/examples/first.rs", ""), ("crates/low/src/lib.rs", ""), ("docs/recipes.md", page)];
        messages(pages::check(&Tree::of(files)))
    };
    assert_eq!(check("| a question | an answer | `first` |\n"), Vec::<String>::new());
    let found = check("| a question | an answer | `second` |\n");
    assert!(
        found.len() == 1 && found[0].contains("the example `crates/low/examples/first.rs`"),
        "{found:#?}"
    );
}

#[test]
fn a_design_page_says_its_answer() {
    let files = [
        ("docs/design/0001-a.md", "# A\n\n## Question\n\n## Answer\n\nYes.\n"),
        ("docs/design/0002-b.md", "# B\n\n## Question\n\nThe ## Answer\n"),
    ];
    let found = messages(pages::check(&Tree::of(files)));
    assert!(
        found.len() == 1 && found[0].starts_with("docs/design/0002-b.md: a design page without"),
        "{found:#?}"
    );
}

#[test]
fn names_in_pages_are_in_the_code() {
    let mut tree =
        Tree::of([("crates/low/src/lib.rs", "fn try_write() {}\n#[test]\nfn a_full_disk_refuses() {}\n")]);
    tree.insert("docs/promises.md", "`try_write`, `a_full_..`, `none`, `Db::try_write`, `low/lib_old.rs`\n");
    assert_eq!(messages(names::check(&tree)), Vec::<String>::new());
    tree.insert("docs/promises.md", "x\n`try_writes` and `a_fuller_..`\n");
    let found = messages(names::check(&tree));
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(
        found[0].starts_with("docs/promises.md:2: `try_writes` is not an option, metric, function or test")
    );
    assert!(found[1].contains("`a_fuller_..`"), "{found:#?}");
}

#[test]
fn an_experiment_is_named_with_its_prefix() {
    let list = "options! {\n    struct Experiments \"experiments.\";\n    hot_cold: bool = false, \"true, false\";\n}\n";
    let check = |page: &str| {
        let files = [("crates/terrane-base/src/options/experiments.rs", list), ("docs/tuning.md", page)];
        messages(names::check(&Tree::of(files)))
    };
    assert_eq!(check("`experiments.hot_cold`, `Options::experiments`\n"), Vec::<String>::new());
    assert_eq!(
        check("`hot_cold`\n"),
        ["docs/tuning.md:1: `hot_cold` is an experiment: call it `experiments.hot_cold`"]
    );
    assert!(check("`experiments.hot_hot`\n")[0].contains("`experiments.hot_hot` is not an experiment"));
}

#[test]
fn a_diagnostic_option_is_named_with_its_prefix() {
    let list =
        "options! {\n    struct Diagnostics \"diagnostics.\";\n    slow_job_micros: u64 = 0, \"0\";\n}\n";
    let check = |page: &str| {
        let files = [("crates/terrane-base/src/options/diagnostics.rs", list), ("docs/operations.md", page)];
        messages(names::check(&Tree::of(files)))
    };
    assert_eq!(check("`diagnostics.slow_job_micros`\n"), Vec::<String>::new());
    let found = check("`slow_job_micros` and `diagnostics.slow_jobs`\n");
    assert_eq!(
        found,
        [
            "docs/operations.md:1: `slow_job_micros` is a diagnostic option: call it `diagnostics.slow_job_micros`",
            "docs/operations.md:1: `diagnostics.slow_jobs` is not a diagnostic option: it was renamed or removed",
        ]
    );
}

#[test]
fn the_tuning_page_says_the_defaults_of_the_code() {
    let options = "options! {\n    memory_bytes: u64 = 512 * MIB, \"16 MiB up\",\n    \
                   block_memory: Kind = Kind::Arena, \"arena, heap\",\n    \
                   write_bytes: u64 = 0, \"0 (derived)\",\n}\n";
    let page =
        "| `memory_bytes` | 512 MiB | a |\n| `block_memory` | `arena` | a |\n| `write_bytes` | half | a |\n";
    let check = |page: &str| {
        let files = [("crates/terrane-base/src/options.rs", options), ("docs/tuning.md", page)];
        messages(names::check(&Tree::of(files)))
    };
    assert_eq!(check(page), Vec::<String>::new());
    let found = check(&page.replace("512", "256"));
    assert_eq!(
        found,
        ["docs/tuning.md:1: says that the default of `memory_bytes` is 256 MiB: it is 512 MiB"]
    );
    assert!(check(&page.replace("`arena`", "`heap`"))[0].contains("is heap: it is arena"));
    assert!(check(&page.replace("write_bytes", "gone"))[0].contains("there is no option `gone`"));
}

#[test]
fn names_of_source_files_are_in_the_tree() {
    let page = "`write/commit.rs`, `commit.rs`, `engine/NAME.rs`\n`mit.rs`\n";
    let mut tree = Tree::of([("docs/a.md", page), ("crates/low/src/write/commit.rs", "//! C.\n")]);
    tree.insert("docs/a-log.md", "`gone.rs`\n");
    assert_eq!(messages(pages::check(&tree)), ["docs/a.md:2: no file of the tree is called `mit.rs`"]);
}
