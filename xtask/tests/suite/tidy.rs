//! Every rule of tidy on small made-up trees: a tree that keeps it, and one that breaks it.

use xtask::source::Source;
use xtask::tidy::{self, Finding};
use xtask::tree::Tree;

fn manifest(name: &str, layer: &str, dependencies: &str) -> String {
    format!(
        "[package]\nname = \"{name}\"\ndescription = \"About {name}\"\n[package.metadata]\n{layer}\n\
         [dependencies]\n{dependencies}\n"
    )
}

/// A tree of two crates that keeps every rule.
fn house() -> Tree {
    let mut tree = Tree::of([
        ("crates/low/src/lib.rs", "//! Low.\n"),
        ("crates/high/src/lib.rs", "//! High.\n"),
        (
            "ARCHITECTURE.md",
            "# Map\n<!-- crate map: written by `cargo xtask tidy --write` -->\n<!-- end of crate map -->\n",
        ),
        ("docs/dependencies.md", "| crate | reason |\n"),
    ]);
    tree.insert("crates/low/Cargo.toml", &manifest("low", "layer = 1", ""));
    tree.insert("crates/high/Cargo.toml", &manifest("high", "layer = 2", "low.workspace = true"));
    renew_map(&mut tree);
    tree
}

fn renew_map(tree: &mut Tree) {
    if let Some((path, text)) = tidy::layers::renewed(tree) {
        tree.insert(path, &text);
    }
}

pub(crate) fn messages(tree: &Tree) -> Vec<String> {
    tidy::check(tree).iter().map(Finding::to_string).collect()
}

/// Asserts that there is exactly one finding and that it holds all of `parts`.
pub(crate) fn refused(tree: &Tree, parts: &[&str]) {
    let found = messages(tree);
    assert_eq!(found.len(), 1, "{found:#?}");
    for part in parts {
        assert!(found[0].contains(part), "{part:?} is not in {:?}", found[0]);
    }
}

pub(crate) fn with(path: &str, text: &str) -> Tree {
    let mut tree = house();
    tree.insert(path, text);
    tree
}

#[test]
fn a_house_in_order_has_no_findings() {
    assert_eq!(messages(&house()), Vec::<String>::new());
}

#[test]
fn an_upward_edge_is_refused_with_both_names_and_the_remedy() {
    let tree = with("crates/low/Cargo.toml", &manifest("low", "layer = 1", "high.workspace = true"));
    refused(
        &tree,
        &["crates/low/Cargo.toml", "upward", "low (layer 1)", "high (layer 2)", "trait that low owns"],
    );
}

#[test]
fn a_sideways_edge_is_refused() {
    let mut tree = with("crates/high/Cargo.toml", &manifest("high", "layer = 1", "low.workspace = true"));
    renew_map(&mut tree);
    refused(&tree, &["sideways", "high (layer 1)", "low (layer 1)"]);
}

#[test]
fn an_upward_edge_hides_neither_behind_a_new_name_nor_a_target_nor_the_build() {
    let edges = [
        "[target.'cfg(unix)'.dependencies]\nhigh = { path = \"../high\" }",
        "[build-dependencies]\nhigh = { path = \"../high\" }",
        "alias = { package = \"high\", path = \"../high\" }",
    ];
    for edge in edges {
        refused(&with("crates/low/Cargo.toml", &manifest("low", "layer = 1", edge)), &["upward"]);
    }
    let dev = "[dev-dependencies]\nhigh = { path = \"../high\" }";
    assert!(messages(&with("crates/low/Cargo.toml", &manifest("low", "layer = 1", dev))).is_empty());
}

#[test]
fn a_crate_without_a_layer_is_refused() {
    let mut tree = with("crates/high/Cargo.toml", &manifest("high", "", ""));
    renew_map(&mut tree);
    refused(&tree, &["crates/high/Cargo.toml", "no layer"]);
}

#[test]
fn a_crate_map_that_differs_is_refused_and_renewed() {
    let mut tree = with("crates/low/Cargo.toml", &manifest("low", "layer = 0", ""));
    refused(&tree, &["ARCHITECTURE.md:2", "tidy --write"]);
    renew_map(&mut tree);
    assert!(messages(&tree).is_empty());
    assert!(tree.get("ARCHITECTURE.md").unwrap().contains("| 0 | `low` | About low |"));
}

#[test]
fn a_long_file_needs_an_entry_that_goes_down_only() {
    let path = "crates/low/src/long.rs";
    let mut tree = with(path, &"//\n".repeat(401));
    refused(&tree, &[path, "401 lines", "limit is 400"]);
    tree.insert("xtask/ratchet.txt", "# head\nfile crates/low/src/long.rs 401\n");
    assert!(messages(&tree).is_empty());
    tree.insert(path, &"//\n".repeat(402));
    refused(&tree, &["grown from 401 to 402"]);
    tree.insert(path, &"//\n".repeat(400));
    refused(&tree, &["xtask/ratchet.txt", "no longer needed"]);
}

#[test]
fn the_ratchet_is_lowered_but_never_raised() {
    let mut tree = with("crates/low/src/long.rs", &"//\n".repeat(450));
    tree.insert("xtask/ratchet.txt", "file crates/low/src/long.rs 500\nfile crates/low/src/gone.rs 500\n");
    let (path, text) = tidy::length::renewed(&tree).unwrap();
    assert!(text.ends_with("\nfile crates/low/src/long.rs 450\n"), "{text}");
    tree.insert(path, &text);
    assert!(messages(&tree).is_empty());
    tree.insert("crates/low/src/long.rs", &"//\n".repeat(460));
    assert_eq!(tidy::length::renewed(&tree), None);
}

#[test]
fn no_entry_excuses_a_thousand_lines() {
    let mut tree = with("crates/low/src/long.rs", &"//\n".repeat(1001));
    tree.insert("xtask/ratchet.txt", "file crates/low/src/long.rs 1001\n");
    refused(&tree, &["1001 lines", "split it by purpose"]);
}

#[test]
fn a_long_function_is_refused() {
    let body = "    work();\n".repeat(69);
    let long = format!("/// Does.\nfn does(a: [u8; 4]) -> [u8; 4] {{\n{body}}}\n");
    refused(
        &with("crates/low/src/f.rs", &long),
        &["crates/low/src/f.rs:2", "function of 71 lines", "f.rs does 71"],
    );
    assert!(messages(&with("crates/low/src/f.rs", &long.replacen("    work();\n", "", 1))).is_empty());
}

#[test]
fn banned_words_are_refused_in_product_code_only() {
    let cases = [
        ("let t = std::time::Instant::now();", "env::Clock"),
        ("std::thread::spawn(f);", "env::Spawn"),
        ("parking_lot::Mutex::new(0);", "terrane_base::sync"),
        ("use std::fs;", "terrane_device::Disk"),
        ("let r = rand::random();", "env::Random"),
        ("let v = x.unwrap();", "return an Error"),
        ("dbg!(x);", "finish it"),
    ];
    for (line, remedy) in cases {
        refused(&with("crates/low/src/f.rs", &format!("fn f() {{\n    {line}\n}}\n")), &["f.rs:2", remedy]);
        for fine in ["crates/low/tests/f.rs", "crates/low/benches/f.rs", "crates/low/src/tests.rs"] {
            assert!(messages(&with(fine, &format!("fn f() {{ {line} }}\n"))).is_empty(), "{fine}: {line}");
        }
        let in_test = format!("#[cfg(test)]\nmod tests {{\n    fn f() {{ {line} }}\n}}\n");
        assert!(messages(&with("crates/low/src/f.rs", &in_test)).is_empty(), "{line}");
        let not_code = format!("// {line}\n/* {line} */\nconst A: &str = r#\"{line}\"#;\n");
        assert!(messages(&with("crates/low/src/f.rs", &not_code)).is_empty(), "{line}");
    }
}

#[test]
fn locks_of_std_are_refused_however_they_are_imported() {
    for line in [
        "use std::sync::Mutex;",
        "use std::sync::{Arc, Mutex};",
        "use std::{io, sync::{Arc, RwLock as Lock}};",
        "use std::sync::{self, Arc};",
        "use std::sync;",
        "use std::sync::*;",
        "use std::sync::mpsc::{Sender, channel};",
        "use std::sync::{Arc, mpsc};",
        "fn f() { use std::sync::{Condvar, Weak}; }",
        "fn f(lock: &std::sync::Mutex<u8>) {}",
    ] {
        refused(
            &with("crates/low/src/f.rs", &format!("{line}\n")),
            &["f.rs:1", "(lock)", "terrane_base::sync"],
        );
        assert!(messages(&with("crates/low/tests/f.rs", &format!("{line}\n"))).is_empty(), "{line}");
        let in_test = format!("#[cfg(test)]\nmod tests {{\n    {line}\n}}\n");
        assert!(messages(&with("crates/low/src/f.rs", &in_test)).is_empty(), "{line}");
    }
    for fine in [
        "use std::sync::Arc;",
        "use std::sync::{Arc, OnceLock, Weak};",
        "use std::{io, sync::atomic::{AtomicU64, Ordering}};",
        "use terrane_base::sync::{Condvar, Mutex, MutexGuard};",
    ] {
        assert!(messages(&with("crates/low/src/f.rs", &format!("{fine}\n"))).is_empty(), "{fine}");
    }
    refused(&with("crates/low/src/f.rs", "use std::{io, fs};\n"), &["`std::fs`", "terrane_device::Disk"]);
}

#[test]
fn no_static_holds_what_the_explorer_has() {
    for text in [
        "use terrane_base::sync::Mutex;\nstatic A: Mutex<u8> = Mutex::new(0);",
        "use terrane_base::sync::atomic::{AtomicU64, Ordering};\npub(crate) static A: [AtomicU64; 4] = [];",
        "use terrane_base::{Result, sync::{Arc, atomic}};\nfn f() { static A: atomic::AtomicBool = x; }",
        "use terrane_base::sync::atomic::*;\nstatic A: AtomicU64 = x;",
        "use terrane_base::sync::RwLock as Lock;\nthread_local! { static A: Cell<Lock<u8>> = x; }",
        "mod a { use std::sync::atomic::AtomicU64; }\nstatic A: terrane_base::sync::atomic::AtomicU64 = x;",
        "use crate::sync::Condvar;\nstatic A: OnceLock<Condvar> = x;",
        "use shuttle::sync::atomic::AtomicU64;\nfn f() { use std::sync::Arc; static A: AtomicU64 = x; }",
    ] {
        for path in ["crates/low/src/f.rs", "crates/low/tests/shuttle.rs", "crates/low/tests/shuttle/ring.rs"]
        {
            refused(
                &with(path, &format!("{text}\n")),
                &[&format!("{path}:2"), "outlives", "std::sync::atomic"],
            );
        }
        assert!(messages(&with("crates/low/tests/f.rs", &format!("{text}\n"))).is_empty(), "{text}");
    }
    for fine in [
        "use std::sync::atomic::AtomicU64;\nstatic A: AtomicU64 = x;",
        "use terrane_base::sync::Mutex;\nfn f(a: &'static Mutex<u8>) { static A: OnceLock<u8> = x; }",
        "use terrane_base::sync::atomic::AtomicU64;\nfn f() { use std::sync::atomic::AtomicU64; static A: AtomicU64 = x; }",
        "fn f() { use terrane_base::sync::atomic::*; }\nuse std::sync::atomic::*;\nstatic A: AtomicU64 = x;",
        "use terrane_base::sync::atomic::Ordering;\nstatic A: std::sync::atomic::AtomicU64 = x;",
        "use terrane_base::sync::Arc;\nstatic A: OnceLock<Arc<u8>> = x;",
    ] {
        assert!(messages(&with("crates/low/src/f.rs", &format!("{fine}\n"))).is_empty(), "{fine}");
    }
}

#[test]
fn a_library_without_a_test_program_has_no_tests() {
    let without = |lib: &str, path: &str, text: &str| {
        let mut tree = with(path, text);
        let manifest = tree.get("crates/low/Cargo.toml").unwrap().to_owned();
        tree.insert("crates/low/Cargo.toml", &format!("{manifest}[lib]\n{lib}"));
        tree
    };
    let tests_inside = "//! Low.\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn one() {}\n}\n";
    let inside = "crates/low/src/part.rs";
    let any = "//! Low.\n\n#[cfg(any(feature = \"x\", test))]\nmod part;\n";
    for text in [tests_inside, any, "//! Low.\n\n#[test]\nfn one() {}\n", "//! Low.\n\nproptest! {}\n"] {
        let tree = without("test = false\n", inside, text);
        refused(&tree, &["crates/low/src/part.rs:3", "would never run", "`crates/low/tests/suite`"]);
    }
    let kept: [(&str, &str, &str); 6] = [
        ("test = false\n", inside, "//! Low.\n\n#[cfg(not(test))]\nconst TESTED: bool = cfg!(tested);\n"),
        ("test = false\n", "crates/low/src/bin/part.rs", tests_inside),
        ("test = true\n", inside, tests_inside),
        ("doctest = false\n", inside, tests_inside),
        ("test = false\n", "crates/low/tests/suite/part.rs", tests_inside),
        ("test = false\n", inside, "//! Low: `#[test]` and `#[cfg(test)]` are words here.\n"),
    ];
    for (lib, path, text) in kept {
        assert_eq!(messages(&without(lib, path, text)), Vec::<String>::new(), "{lib} {path}");
    }
}

#[test]
fn a_door_lets_one_word_through_and_must_be_used() {
    let mut tree = with("crates/low/src/f.rs", "use std::fs;\n");
    tree.insert("xtask/doors.txt", "file crates/low/src/f.rs # the door\n");
    assert!(messages(&tree).is_empty());
    tree.insert("crates/low/src/f.rs", "use std::time::Instant;\n");
    refused(&tree, &["xtask/doors.txt:1", "not used"]);
}

#[test]
fn unsafe_code_stands_only_in_named_modules() {
    let mut tree = with(
        "crates/low/src/f.rs",
        "//! unsafe\n#![expect(unsafe_code, reason = \"r\")]\nunsafe fn f() {}\n",
    );
    refused(&tree, &["f.rs:3", "xtask/unsafe.txt"]);
    tree.insert("xtask/unsafe.txt", "crates/low/src/f.rs\n");
    let (path, page) = tidy::inventory::renewed(&tree).unwrap();
    tree.insert(path, &page);
    assert!(messages(&tree).is_empty());
    tree.insert("crates/low/src/f.rs", "fn f() {}\n");
    assert!(messages(&tree).iter().any(|finding| finding.contains("holds no unsafe code")));
}

#[test]
fn lints_are_silenced_with_a_reason_only() {
    let allow = "#![allow(dead_code, reason = \"shared\")]\n";
    refused(&with("crates/low/src/f.rs", allow), &["f.rs:1", "write `expect"]);
    assert!(messages(&with("crates/low/tests/f.rs", allow)).is_empty());
    refused(&with("crates/low/tests/f.rs", "#![allow(dead_code)]\n"), &["f.rs:1", "without a reason"]);
    refused(&with("crates/low/src/f.rs", "#[expect(dead_code)]\nfn f() {}\n"), &["without a reason"]);
    let fine = "#[expect(\n    dead_code,\n    reason = \"kept\"\n)]\nfn f() {}\n";
    assert!(messages(&with("crates/low/tests/f.rs", fine)).is_empty());
}

#[test]
fn unfinished_marks_name_their_issue() {
    let mark = concat!("TO", "DO");
    refused(&with("crates/low/src/f.rs", &format!("// {mark}: later\n")), &["f.rs:1", "bare"]);
    assert!(messages(&with("crates/low/src/f.rs", &format!("// {mark}(#7): later\n"))).is_empty());
}

#[test]
fn text_rules_hold_for_every_file() {
    let local = concat!("see /ho", "me/ada/notes\n");
    refused(&with("docs/a.md", local), &["docs/a.md:1", "path of one machine"]);
    refused(&with("docs/a.md", "a\u{7}b\n"), &["U+0007"]);
    refused(&with("docs/a.md", "a\u{202E}b\n"), &["U+202E"]);
    refused(&with("docs/a.md", "a \n"), &["ends in blanks"]);
    refused(&with("docs/a.md", "a"), &["line break"]);
    assert!(messages(&with("docs/a.md", "/var/lib and $HOME/x and a\tb\n")).is_empty());
}

#[test]
fn every_format_has_a_page() {
    let mut tree = with("crates/terrane-format/src/lib.rs", "pub mod block;\n");
    tree.insert("crates/terrane-format/Cargo.toml", &manifest("terrane-format", "layer = 1", ""));
    tree.insert("crates/terrane-format/src/block.rs", "//! Blocks.\n");
    renew_map(&mut tree);
    refused(&tree, &["docs/format/block.md"]);
    tree.insert("docs/format/extent.md", "# Extent\n");
    tree.insert("crates/terrane-format/src/block.rs", "//! Blocks: see `docs/format/extent.md`.\n");
    assert!(messages(&tree).is_empty());
    tree.insert("docs/format/block.md", "# Block\n");
    tree.insert("crates/terrane-format/src/block.rs", "//! Blocks.\n");
    assert!(messages(&tree).is_empty());
}

#[test]
fn outside_crates_are_listed_exactly() {
    let mut tree = with("crates/low/Cargo.toml", &manifest("low", "layer = 1", "far = \"1\""));
    refused(&tree, &["crates/low/Cargo.toml", "`far`", "docs/dependencies.md"]);
    tree.insert("docs/dependencies.md", "| crate | reason |\n|---|---|\n| `far` | a reason |\n");
    assert!(messages(&tree).is_empty());
    tree.insert("crates/low/Cargo.toml", &manifest("low", "layer = 1", ""));
    refused(&tree, &["no crate depends on `far`"]);
}

#[test]
fn paths_and_links_in_pages_lead_somewhere() {
    refused(&with("docs/a.md", "see `crates/low/src/gone.rs`\n"), &["docs/a.md:1", "does not exist"]);
    refused(&with("docs/a.md", "see [b](../B.md#part)\n"), &["leads nowhere"]);
    let fine = "see `crates/low/src/lib.rs`, `crates/low`, [map](../ARCHITECTURE.md#map), [far](https://x.test/a.md)\n";
    assert!(messages(&with("docs/a.md", fine)).is_empty());
}

#[test]
fn the_scanner_tells_code_from_text() {
    let text = r##"fn a<'x>(c: &'x u8) { let q = '"'; let s = "fn no() {}\""; let b = b'\''; }
        fn c() { let r = r#"}" fn no() {"#; /* fn no() { /* } */ */ } // fn no() {}
        trait T { fn declared(&self); fn given(&self) { work() } }
        type F = fn(u8) -> u8;"##;
    let source = Source::new(text);
    let names: Vec<_> =
        source.functions().into_iter().map(|function| (function.name, function.lines)).collect();
    assert_eq!(names, [("a".to_owned(), 1), ("c".to_owned(), 1), ("given".to_owned(), 1)]);
    assert_eq!(source.code.len(), text.len());
    assert_eq!(source.find_word("work").count(), 1);
    assert_eq!(source.find_word("wor").count(), 0);
}

#[test]
fn the_inventory_of_unsafe_code_says_what_the_modules_say() {
    let module = "//! Raw memory. More.\n#![expect(unsafe_code, reason = \"it is raw\")]\n\
                  pub unsafe fn one() {}\nfn two() {\n    unsafe {\n        one()\n    }\n}\n\
                  #[cfg(test)]\nmod tests {\n    fn three() { unsafe { super::one() } }\n}\n";
    let mut tree = with("crates/low/src/raw.rs", module);
    tree.insert("xtask/unsafe.txt", "crates/low/src/raw.rs\n");
    refused(&tree, &["docs/unsafe.md", "tidy --write"]);
    let (path, page) = tidy::inventory::renewed(&tree).unwrap();
    assert!(page.contains("| `crates/low/src/raw.rs` | Raw memory | it is raw | 1 | 1 | 3 |"), "{page}");
    assert!(page.contains("1 modules, 1 blocks, 1 functions and impls, 3 lines"), "{page}");
    tree.insert(path, &page);
    assert_eq!(messages(&tree), Vec::<String>::new());
    tree.insert("crates/low/src/raw.rs", &module.replace("one()\n", "one();\n        one()\n"));
    refused(&tree, &["docs/unsafe.md"]);
}

#[test]
fn comments_wider_than_the_code_only_become_fewer() {
    let wide = format!("//! {}.\n", "word ".repeat(30));
    let mut tree = with("crates/low/src/wide.rs", &wide);
    refused(
        &tree,
        &["crates/low/src/wide.rs:1", "low has 1 comment lines wider than 110 columns, 0 are allowed"],
    );
    tree.insert("xtask/width.txt", "low 3\nlow\n");
    refused(&tree, &["xtask/width.txt:2", "expected `PACKAGE COUNT`"]);
    tree.insert("xtask/width.txt", "low 3\n");
    let (path, text) = tidy::width::renewed(&tree).expect("counts fall");
    assert_eq!(path, "xtask/width.txt");
    assert!(text.ends_with("low 1\n"), "{text}");
}
