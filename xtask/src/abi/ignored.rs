//! Options of behaviour that have no effect: the lists of them, those of openings and those of calls, and the
//! functions that only note that they were called.

use std::fmt::Write as _;

use super::table::{Abi, Function, Source, rust_type};

/// The object of the options that an opening takes.
const OF_OPENINGS: &str = "rocksdb_options_t*";
/// The object that a function without an effect is called on.
const DATABASE: &str = "rocksdb_t*";
/// A set of options of calls is one word.
const CALLS_MAX: usize = 64;

/// The rows of the generated module.
///
/// # Errors
/// Names the row that cannot be made.
pub(super) fn rows(abi: &Abi) -> Result<Vec<String>, String> {
    let ignored = abi.functions().filter(|function| function.ignored.is_some());
    let (of_openings, of_calls): (Vec<&Function>, Vec<&Function>) =
        ignored.partition(|function| first(function) == OF_OPENINGS);
    let mut rows = vec!["ignored_options! {\n".to_owned()];
    for function in &of_openings {
        let (name, instead) = (&function.name, instead(function));
        rows.push(format!("    {name} {instead:?} if |options| {};\n", condition(function)?));
    }
    rows.push("}\n".to_owned());
    rows.extend(calls(abi, &of_calls)?);
    for function in of_openings.iter().filter(|function| function.source == Source::Nothing) {
        rows.push(setter(function)?);
    }
    for (number, function) in of_calls.iter().enumerate().filter(|(_, function)| first(function) == DATABASE)
    {
        rows.push(call(number, function)?);
    }
    Ok(rows)
}

/// The imports of the module: what the lists and the functions need, and the objects that options of calls
/// are set in.
///
/// # Errors
/// Names the option whose object the table does not have.
pub(super) fn imports(abi: &Abi) -> Result<Vec<String>, String> {
    let mut imports: Vec<String> = [
        "use crate::db::Database;\n",
        "use crate::ffi::failure::Given;\n",
        "use crate::options::Options;\n",
        "use crate::options::ignored::note;\n",
    ]
    .map(str::to_owned)
    .into();
    for function in abi.functions().filter(|function| function.ignored.is_some()) {
        if [OF_OPENINGS, DATABASE].contains(&first(function)) {
            continue;
        }
        let object = abi.object(first(function)).ok_or(format!("{}: no options object", function.name))?;
        let module = if object.is_own { "options" } else { "generated::objects" };
        imports.push(format!("use crate::{module}::{};\n", object.rust));
    }
    Ok(imports)
}

fn first(function: &Function) -> &str {
    function.arguments.first().map_or("", String::as_str)
}

fn instead(function: &Function) -> &str {
    function.ignored.as_deref().unwrap_or_default()
}

/// The list of options of calls, each with its number, and how they are found in each object.
fn calls(abi: &Abi, functions: &[&Function]) -> Result<Vec<String>, String> {
    if functions.len() > CALLS_MAX {
        return Err(format!("{} ignored options of calls: a set has {CALLS_MAX} at most", functions.len()));
    }
    let mut rows = vec!["ignored_in_calls! {\n".to_owned()];
    for function in functions {
        rows.push(format!("    {} {:?};\n", function.name, instead(function)));
    }
    rows.push("}\n".to_owned());
    for object in &abi.objects {
        let is_of =
            |function: &Function| abi.object(first(function)).is_some_and(|found| found.c == object.c);
        let of_object: Vec<(usize, &&Function)> =
            functions.iter().enumerate().filter(|(_, function)| is_of(function)).collect();
        if of_object.is_empty() {
            continue;
        }
        rows.push(format!("ignored_in! {{ {}\n", object.rust));
        for (number, function) in of_object {
            rows.push(format!("    {number} if |options| {};\n", condition(function)?));
        }
        rows.push("}\n".to_owned());
    }
    Ok(rows)
}

/// When the option is set.
fn condition(function: &Function) -> Result<String, String> {
    let name = &function.name;
    Ok(match &function.source {
        Source::Field(field) => {
            let field = format!("options.fields.{}", field.to_lowercase());
            match (&function.ignored_if, &function.default) {
                (Some(condition), _) => format!("{field} {}", condition.replace("{v}", &field)),
                (None, Some(default)) => format!("{field} != {default}"),
                (None, None) => return Err(format!("{name}: no default")),
            }
        }
        _ => format!("options.is_noted({name:?})"),
    })
}

/// A function of a database that only says that it does nothing.
fn call(number: usize, function: &Function) -> Result<String, String> {
    let name = &function.name;
    if function.source != Source::Nothing || function.arguments[1..] != ["char**"] {
        return Err(format!("{name}: `ignored` of a call is for a function of a database and an error"));
    }
    Ok(format!(
        "export! {{\n    fn {name}(database: Option<&Database>, error: ErrPtr<'_>) {{\n        \
         database.given()?.note_ignored(1 << {number})\n    }}\n}}\n"
    ))
}

/// A setter that keeps nothing. A null object stands for an option that is not set.
fn setter(function: &Function) -> Result<String, String> {
    let name = &function.name;
    let mut arguments = String::new();
    for (at, c) in function.arguments.iter().enumerate().skip(1) {
        let kind = rust_type(c).ok_or(format!("{name}: unknown type {c}"))?;
        let mark = if at == 1 && kind == "Pointer" { "" } else { "_" };
        let _ = write!(arguments, ", {mark}a{at}: {kind}");
    }
    let is_set = if arguments.starts_with(", a1") { "!a1.is_null()" } else { "true" };
    Ok(format!(
        "export! {{\n    fn {name}(options: Option<&mut Options>{arguments}) {{\n        \
         note(options, {name:?}, {is_set});\n    }}\n}}\n"
    ))
}
