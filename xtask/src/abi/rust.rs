//! The mechanical part of the exported functions: fields, objects of nothing but fields, and what fails by
//! name.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::table::{Abi, Function, Object, Source, rust_type};
use super::values;

/// Where the generated modules lie.
pub const DIRECTORY: &str = "crates/terrane-rocksdb/src/generated/";
/// Rows of one file: enough to stay below the limit of lines.
const ROWS: usize = 340;

const HEAD: &str = "//! Written by `cargo xtask abi --write` from `abi.toml`; do not edit.\n\n";

/// The generated modules: path and text.
///
/// # Errors
/// Names the row that cannot be made.
pub fn files(abi: &Abi) -> Result<Vec<(String, String)>, String> {
    let mut parts: Vec<(String, Vec<String>)> = Vec::new();
    for object in abi.objects.iter().filter(|object| object.is_own && !object.has_values) {
        parts.push((module(&object.rust), fields(abi, object)?));
    }
    let mut small = Vec::new();
    for object in abi.objects.iter().filter(|object| !object.is_own && !object.has_values) {
        small.extend(plain_object(abi, object)?);
    }
    parts.push(("objects".into(), small));
    let mut read = Vec::new();
    for object in abi.objects.iter().filter(|object| !object.is_own && object.has_values) {
        read.extend(values::object(abi, object)?);
    }
    parts.push(("values".into(), read));
    parts.push(("ignored".into(), super::ignored::rows(abi)?));
    let is_stub = |function: &&Function| match function.source {
        Source::Nothing => function.ignored.is_none(),
        ref source => *source == Source::Failure,
    };
    let stubs = abi.functions().filter(is_stub);
    let stubs: Vec<String> = stubs.map(stub).collect::<Result<_, _>>()?;
    let names = abi.functions().filter_map(|function| match &function.source {
        Source::Name(of) => Some(other_name(function, of)),
        _ => None,
    });
    parts.push(("names".into(), names.collect::<Result<_, _>>()?));
    for (number, rows) in stubs.chunks(ROWS).enumerate() {
        parts.push((format!("stubs_{}", number + 1), rows.to_vec()));
    }
    let mut index = "//! Modules that `cargo xtask abi --write` makes from `abi.toml`.\n\n".to_owned();
    parts.sort();
    for (name, _) in &parts {
        let _ = writeln!(index, "pub(crate) mod {name};");
    }
    let mut files = vec![(format!("{DIRECTORY}mod.rs"), index)];
    for (name, rows) in parts {
        let imports = if name == "ignored" { super::ignored::imports(abi)?.concat() } else { String::new() };
        files.push((format!("{DIRECTORY}{name}.rs"), format!("{}{}", head(&rows, &imports), rows.join(""))));
    }
    Ok(files)
}

/// The head of a module, with the imports that its rows need, and these.
fn head(rows: &[String], imports: &str) -> String {
    let text = rows.join("");
    let has = |word: &str| {
        text.match_indices(word).any(|(at, _)| {
            let around = [text[..at].chars().next_back(), text[at + word.len()..].chars().next()];
            around.iter().all(|c| !c.is_some_and(|c| c.is_alphanumeric() || c == '_'))
        })
    };
    let mut head = HEAD.to_owned();
    let c: Vec<&str> = ["c_char", "c_int", "c_uint"].into_iter().filter(|name| has(name)).collect();
    match c.as_slice() {
        [] => {}
        [one] => drop(writeln!(head, "use std::ffi::{one};\n")),
        many => drop(writeln!(head, "use std::ffi::{{{}}};\n", many.join(", "))),
    }
    let passed: Vec<&str> = ["Pointer", "Slice"].into_iter().filter(|name| has(name)).collect();
    let mut uses: Vec<String> = imports.lines().map(str::to_owned).collect();
    match passed.as_slice() {
        [] => {}
        [one] => uses.push(format!("use crate::ffi::types::{one};")),
        many => uses.push(format!("use crate::ffi::types::{{{}}};", many.join(", "))),
    }
    let owned = rows.iter().filter_map(|row| row.strip_prefix("option_fields! { own ")?.split(' ').next());
    uses.extend(owned.map(|name| format!("use crate::options::{name};")));
    uses.sort();
    uses.dedup();
    if !uses.is_empty() {
        let _ = writeln!(head, "{}\n", uses.join("\n"));
    }
    head
}

/// `ReadOptions` as a module: `read_options`.
fn module(rust: &str) -> String {
    let mut name = String::new();
    for letter in rust.chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.extend(letter.to_lowercase());
    }
    name
}

/// The known facts of one field.
#[derive(Default)]
struct Field<'a> {
    set: Option<&'a Function>,
    get: Option<&'a Function>,
}

fn fields(abi: &Abi, object: &Object) -> Result<Vec<String>, String> {
    let mut found: BTreeMap<&str, Field<'_>> = BTreeMap::new();
    for function in abi.functions() {
        let Source::Field(name) = &function.source else { continue };
        let first = function.arguments.first().and_then(|first| abi.object(first));
        if first.is_none_or(|first| first.c != object.c) {
            continue;
        }
        let field = found.entry(name).or_default();
        let is_set = function.arguments.len() == 2;
        *(if is_set { &mut field.set } else { &mut field.get }) = Some(function);
    }
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let kind = if object.is_own { "own" } else { "plain" };
    let mut rows = vec![format!("option_fields! {{ {kind} {} {}Fields {{\n", object.rust, object.rust)];
    for (name, field) in found {
        rows.push(row(name, &field)?);
    }
    rows.push("} }\n".into());
    Ok(rows)
}

fn row(name: &str, field: &Field<'_>) -> Result<String, String> {
    let typed =
        |function: &Function, c: &str| rust_type(c).ok_or(format!("{}: unknown type {c}", function.name));
    let set =
        field.set.map(|set| Ok::<_, String>((&set.name, typed(set, &set.arguments[1])?))).transpose()?;
    let get = field.get.map(|get| Ok::<_, String>((&get.name, typed(get, &get.result)?))).transpose()?;
    let kind = set.or(get).ok_or(format!("{name}: neither set nor got"))?.1;
    let default =
        [field.set, field.get].into_iter().flatten().find_map(|function| function.default.as_deref());
    let default = default.ok_or(format!("field {name}: no default"))?;
    let mut row = format!("    {}: {kind} = {default}", name.to_lowercase());
    if let Some((function, kind)) = set {
        let _ = write!(row, ", set {function} {kind}");
    }
    match get {
        Some((function, got)) if got == kind => drop(write!(row, ", get {function} {got}")),
        Some((function, got)) => drop(write!(row, ", get_as {function} {got}")),
        None => {}
    }
    row.push_str(";\n");
    Ok(row)
}

/// An object of nothing but fields, with what makes and frees it.
fn plain_object(abi: &Abi, object: &Object) -> Result<Vec<String>, String> {
    let mut rows = fields(abi, object)?;
    rows.extend(made_and_freed(abi, object));
    Ok(rows)
}

/// The functions that make and free an object, where that is mechanical.
pub(super) fn made_and_freed(abi: &Abi, object: &Object) -> Vec<String> {
    let mut rows = Vec::new();
    for function in abi.functions() {
        let is_made = function.source == Source::Create
            && abi.object(&function.result).is_some_and(|o| o.c == object.c);
        let first = function.arguments.first().and_then(|first| abi.object(first));
        let is_freed = function.source == Source::Destroy && first.is_some_and(|first| first.c == object.c);
        if is_made {
            rows.push(format!("create! {{ {} {} }}\n", function.name, object.rust));
        } else if is_freed {
            rows.push(format!("destroy! {{ {} {} }}\n", function.name, object.rust));
        }
    }
    rows
}

/// A function that is another under another name.
fn other_name(function: &Function, of: &str) -> Result<String, String> {
    let typed = |c: &String| rust_type(c).ok_or(format!("{}: unknown type {c}", function.name));
    let arguments = function.arguments.iter().enumerate();
    let arguments = arguments.map(|(at, c)| Ok::<_, String>(format!("a{at}: {}", typed(c)?)));
    let arguments: Vec<String> = arguments.collect::<Result<_, _>>()?;
    let result = match typed(&function.result)? {
        "()" => String::new(),
        result => format!(" -> {result}"),
    };
    Ok(format!("name! {{ {} of {of}({}){result} }}\n", function.name, arguments.join(", ")))
}

/// A function that does nothing, or fails by name.
fn stub(function: &Function) -> Result<String, String> {
    let typed = |c: &String| rust_type(c).ok_or(format!("{}: unknown type {c}", function.name));
    let mut arguments: Vec<&str> = function.arguments.iter().map(typed).collect::<Result<_, _>>()?;
    let result = match typed(&function.result)? {
        "()" => String::new(),
        result => format!(" -> {result}"),
    };
    // The errors of a multi-get are an array, one for each key.
    let is_failing = function.source == Source::Failure
        && function.arguments.last().is_some_and(|last| last == "char**")
        && !function.name.contains("multi_get");
    let word = match function.source {
        Source::Nothing => "nothing",
        _ if is_failing => "failing",
        _ => "silent",
    };
    if is_failing {
        arguments.pop();
    }
    Ok(format!("stub! {{ {word} {}({}){result} }}\n", function.name, arguments.join(", ")))
}
