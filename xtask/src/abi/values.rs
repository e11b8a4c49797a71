//! Objects of values that are only read: a struct, and a function for each field. The type of the function
//! says what the field is.

use std::fmt::Write as _;

use super::rust::made_and_freed;
use super::table::{Abi, Function, Object, Source, rust_type};

/// The rows of an object: its fields with what reads them, what counts lists, what makes and frees it.
///
/// # Errors
/// Names the function whose type is that of no field.
pub(super) fn object(abi: &Abi, object: &Object) -> Result<Vec<String>, String> {
    let mut rows = vec![format!("values! {{ {} {{\n", object.rust)];
    let mut counts = Vec::new();
    for function in abi.functions() {
        let first = function.arguments.first().and_then(|first| abi.object(first));
        if first.is_none_or(|first| first.c != object.c) {
            continue;
        }
        match &function.source {
            Source::Value(field) => {
                let kind = kind(abi, function).ok_or(format!("{}: the type of no field", function.name))?;
                let mut row = String::new();
                let _ = writeln!(row, "    {field}: ({kind}) {};", function.name);
                rows.push(row);
            }
            Source::Count(field) => {
                counts.push(format!("count! {{ {} {} {field} }}\n", function.name, object.rust));
            }
            _ => {}
        }
    }
    rows.push("} }\n".into());
    rows.extend(counts);
    rows.extend(made_and_freed(abi, object));
    Ok(rows)
}

/// The kind of a field whose function has this type.
fn kind(abi: &Abi, function: &Function) -> Option<String> {
    let rest: Vec<&str> = function.arguments.iter().skip(1).map(String::as_str).collect();
    let part = || {
        let object = abi.object(&function.result).filter(|object| object.has_values);
        object.map(|object| object.rust.clone())
    };
    Some(match (function.result.as_str(), rest.as_slice()) {
        ("const char*", ["size_t*"]) => "text".to_owned(),
        ("const char*", ["size_t", "size_t*"]) => "texts".to_owned(),
        ("void", ["char**"]) => "failure".to_owned(),
        (_, ["size_t"]) => format!("parts {}", part()?),
        (number, []) => match rust_type(number)? {
            "()" => return None,
            "Pointer" => format!("part {}", part()?),
            number => format!("number {number}"),
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = r#"
version = "1"
[objects]
a_t = { rust = "A", values = true }
b_t = { rust = "B", values = true }
[types]
opaque = ["a_t", "b_t"]
names = {}
[callbacks]
[constants]
[[area]]
name = "all"
[area.functions]
n = { is = "honoured", c = "uint64_t (const a_t*)", value = "n" }
t = { is = "honoured", c = "const char* (const a_t*, size_t*)", value = "t" }
p = { is = "honoured", c = "const b_t* (const a_t*)", value = "p" }
l = { is = "honoured", c = "const b_t* (const a_t*, size_t)", value = "l" }
c = { is = "honoured", c = "size_t (const a_t*)", count = "l" }
d = { is = "honoured", c = "void (a_t*)", by = "destroy" }
"#;

    #[test]
    fn the_type_of_a_function_says_what_a_field_is() {
        let abi = Abi::parse(TABLE).expect("a table");
        let rows = object(&abi, &abi.objects[0]).expect("all can be made").concat();
        for row in [
            "n: (number u64) n;",
            "t: (text) t;",
            "p: (part B) p;",
            "l: (parts B) l;",
            "count! { c A l }",
            "destroy! { d A }",
        ] {
            assert!(rows.contains(row), "{row} is not in {rows}");
        }
        let bad = TABLE.replace("uint64_t (const a_t*)", "void (const a_t*)");
        let abi = Abi::parse(&bad).expect("a table");
        assert!(object(&abi, &abi.objects[0]).expect_err("no field is void").starts_with("n: "));
        let twice = TABLE.replace("value = \"n\"", "value = \"n\", count = \"n\"");
        assert!(Abi::parse(&twice).is_err());
    }
}
