//! Options of behaviour that have no effect: the list of them, and the setters that only note that they were
//! called.

use std::fmt::Write as _;

use super::table::{Abi, Function, Source, rust_type};

/// The rows of the generated module.
///
/// # Errors
/// Names the row that cannot be made.
pub(super) fn rows(abi: &Abi) -> Result<Vec<String>, String> {
    let ignored: Vec<&Function> = abi.functions().filter(|function| function.ignored.is_some()).collect();
    let mut rows = vec!["ignored_options! {\n".to_owned()];
    for function in &ignored {
        rows.push(row(function)?);
    }
    rows.push("}\n".to_owned());
    for function in ignored.iter().filter(|function| function.source == Source::Nothing) {
        rows.push(setter(function)?);
    }
    Ok(rows)
}

/// One option of the list.
fn row(function: &Function) -> Result<String, String> {
    let name = &function.name;
    let is_set = match &function.source {
        Source::Field(field) => {
            let field = format!("options.fields.{}", field.to_lowercase());
            match (&function.ignored_if, &function.default) {
                (Some(condition), _) => format!("{field} {}", condition.replace("{v}", &field)),
                (None, Some(default)) => format!("{field} != {default}"),
                (None, None) => return Err(format!("{name}: no default")),
            }
        }
        _ => format!("options.is_noted({name:?})"),
    };
    let instead = function.ignored.as_deref().unwrap_or_default();
    Ok(format!("    {name} {instead:?} if |options| {is_set};\n"))
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
