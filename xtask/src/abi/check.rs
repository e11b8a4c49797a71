//! Checks the functions that are written by hand against the table: each exists once, with compatible
//! arguments.

use std::collections::BTreeMap;

use super::rust::DIRECTORY;
use super::table::{Abi, Function, Source, rust_type};
use crate::tidy::Finding;
use crate::tree::{Tree, line_of};

const CODE: &str = "crates/terrane-rocksdb/src/";

/// A function as it was found: its place, arguments and result.
struct Found {
    path: String,
    line: usize,
    arguments: Vec<String>,
    result: String,
}

/// Findings about functions that are written by hand.
pub(super) fn by_hand(tree: &Tree, abi: &Abi) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut found: BTreeMap<String, Found> = BTreeMap::new();
    let code = tree.rust_files().filter(|(path, _)| path.starts_with(CODE) && !path.starts_with(DIRECTORY));
    for (path, text) in code {
        for (name, function) in functions(path, text) {
            if found.contains_key(&name) {
                findings.push(Finding::new(path, function.line, format!("{name} is there twice")));
            }
            found.insert(name, function);
        }
    }
    for function in abi.functions() {
        match (found.remove(&function.name), &function.source) {
            (Some(code), Source::Hand) => findings.extend(compared(function, &code)),
            (None, Source::Hand) => {
                let why = format!("{} is {} but nowhere written", function.name, function.state.word());
                findings.push(Finding::new(super::TABLE, 0, why));
            }
            (Some(code), _) => {
                let why = format!("{} is written here, and abi.toml has it generated", function.name);
                findings.push(Finding::new(&code.path, code.line, why));
            }
            (None, _) => {}
        }
    }
    for (name, code) in found {
        findings.push(Finding::new(&code.path, code.line, format!("{name} is not in abi.toml")));
    }
    findings
}

/// Every `fn rocksdb_NAME(..)` of a file, and both of `fn rocksdb_NAME | rocksdb_NAME_cf(.. ; ..)`: the
/// second one has a handle of a column family, or a list of those, where the semicolon stands. Four names
/// are those of functions that fill a write batch, two with an index: the batch comes before the arguments.
fn functions(path: &str, text: &str) -> Vec<(String, Found)> {
    let mut functions = Vec::new();
    for (at, mark) in text.match_indices("fn rocksdb_") {
        let rest = &text[at + mark.len() - "rocksdb_".len()..];
        let Some((name, rest)) = rest.split_once('(') else { continue };
        let Some(end) = closing(rest) else { continue };
        let after = rest[end + 1..].trim_start();
        let result = after.strip_prefix("->").and_then(|after| after.split_once('{'));
        let result = result.map_or("()", |(result, _)| result.split(" as ").next().unwrap_or("").trim());
        let found = |arguments: Vec<String>| Found {
            path: path.to_owned(),
            line: line_of(text, at),
            arguments,
            result: result.to_owned(),
        };
        let names: Vec<&str> = name.split('|').map(str::trim).collect();
        let (before, behind) = match (names.len(), rest[..end].split_once(';')) {
            (4, _) => (vec!["Option<&WriteBatch>".to_owned()], kinds(&rest[..end])),
            (_, Some((before, behind))) => (kinds(before), kinds(behind)),
            (_, None) => (kinds(&rest[..end]), Vec::new()),
        };
        for (at, name) in names.iter().enumerate().rev() {
            let handle = if at % 2 == 1 { vec!["Option<&FamilyHandle>".to_owned()] } else { Vec::new() };
            let arguments = [before.clone(), handle, behind.clone()].concat();
            functions.push(((*name).to_owned(), found(arguments)));
        }
    }
    functions
}

/// The types of arguments.
fn kinds(arguments: &str) -> Vec<String> {
    let kinds = split(arguments).into_iter().filter_map(|argument| argument.split_once(':'));
    kinds.map(|(_, kind)| kind.trim().to_owned()).collect()
}

/// Where the parenthesis closes that is open at the beginning.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1;
    text.char_indices().find_map(|(at, letter)| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        (depth == 0).then_some(at)
    })
}

/// Arguments, divided at commas that stand in no bracket.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '<' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '>' if !text[..at].ends_with('-') => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

fn compared(function: &Function, code: &Found) -> Option<Finding> {
    let wanted: Vec<&str> = function.arguments.iter().filter_map(|c| rust_type(c)).collect();
    let given: Vec<&str> = code.arguments.iter().map(|kind| class(kind)).collect();
    let result = rust_type(&function.result).unwrap_or("?");
    (wanted != given || result != class(&code.result)).then(|| {
        let why = format!(
            "{}: abi.toml has ({}) -> {result}, the code ({}) -> {}",
            function.name,
            wanted.join(", "),
            given.join(", "),
            class(&code.result)
        );
        Finding::new(&code.path, code.line, why)
    })
}

/// How a Rust type passes: numbers as they are, everything else of the border is a pointer.
fn class(kind: &str) -> &str {
    match kind {
        "()" | "u8" | "i64" | "u64" | "usize" | "f32" | "f64" | "c_char" | "c_int" | "c_uint" | "Slice" => {
            kind
        }
        "u32" => "c_uint",
        "i32" => "c_int",
        _ => "Pointer",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_with_their_types() {
        let text = "export! {\n    fn rocksdb_x(a: Option<&Db>, b: extern \"C\" fn(u8, u8) -> u8, n: usize) -> u8 {\n}\n}\n";
        let found = functions("a.rs", text);
        assert_eq!(found[0].0, "rocksdb_x");
        assert_eq!(found[0].1.line, 2);
        let classes: Vec<&str> = found[0].1.arguments.iter().map(|kind| class(kind)).collect();
        assert_eq!(classes, ["Pointer", "Pointer", "usize"]);
        assert_eq!(found[0].1.result, "u8");
    }

    #[test]
    fn twins_are_two_functions() {
        let found = functions("a.rs", "fn rocksdb_x | rocksdb_x_cf(a: u64; n: usize) -> u8 as of {\n}\n");
        let [(of_family, with), (name, without)] = found.as_slice() else { panic!("two of them") };
        assert_eq!((name.as_str(), of_family.as_str()), ("rocksdb_x", "rocksdb_x_cf"));
        assert_eq!(without.arguments, ["u64", "usize"]);
        assert_eq!(with.arguments, ["u64", "Option<&FamilyHandle>", "usize"]);
        assert_eq!((with.result.as_str(), without.result.as_str()), ("u8", "u8"));
    }

    #[test]
    fn functions_that_fill_a_batch_are_four() {
        let text =
            "fn rocksdb_b | rocksdb_b_cf |\n    rocksdb_i | rocksdb_i_cf(key: Bytes<'_>, len: usize) {\n}\n";
        let found = functions("a.rs", text);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["rocksdb_i_cf", "rocksdb_i", "rocksdb_b_cf", "rocksdb_b"]);
        assert_eq!(found[0].1.arguments.len(), 4);
        assert_eq!(found[1].1.arguments, ["Option<&WriteBatch>", "Bytes<'_>", "usize"]);
    }
}
