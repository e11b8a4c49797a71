//! `crates/terrane-rocksdb/abi.toml` as values: areas of functions, and what their types mean.

use toml::{Table, Value};

/// The effect of an exported function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// As its name says.
    Honoured,
    /// It takes a tuning value that has no meaning here.
    Accepted,
    /// It fails by name, on purpose.
    Refused,
    /// It is not there yet, and fails by name where it can.
    Missing,
}

impl State {
    /// All, in the order of the page.
    pub const ALL: [State; 4] = [State::Honoured, State::Accepted, State::Refused, State::Missing];

    /// The word of the table.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            State::Honoured => "honoured",
            State::Accepted => "accepted",
            State::Refused => "refused",
            State::Missing => "missing",
        }
    }
}

/// Where the code of a function comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Written by hand.
    Hand,
    /// Sets or gets this field of its first argument.
    Field(String),
    /// Reads this field of its first argument, an object of values.
    Value(String),
    /// Counts the items of this field of its first argument, an object of values.
    Count(String),
    /// Makes an object of nothing but fields.
    Create,
    /// Frees one.
    Destroy,
    /// Does nothing.
    Nothing,
    /// Another name of this function.
    Name(String),
    /// Fails by name where it can.
    Failure,
}

/// One exported function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its symbol.
    pub name: String,
    /// Its effect.
    pub state: State,
    /// Where its code comes from.
    pub source: Source,
    /// C type of the result.
    pub result: String,
    /// C types of the arguments.
    pub arguments: Vec<String>,
    /// The value of its field in a new object.
    pub default: Option<String>,
    /// Where it is not as in RocksDB.
    pub differs: Option<String>,
    /// The behaviour in its place, for an option of behaviour that has no effect.
    pub ignored: Option<String>,
    /// The condition on its field under which it would have one.
    pub ignored_if: Option<String>,
}

impl Function {
    /// How its arguments and then its result pass.
    fn passed(&self) -> Vec<Option<&'static str>> {
        self.arguments.iter().chain([&self.result]).map(|c| rust_type(c)).collect()
    }
}

/// Functions that belong together.
#[derive(Clone, Debug)]
pub struct Area {
    /// Its heading.
    pub name: String,
    /// Its functions, by name.
    pub functions: Vec<Function>,
}

/// An object with fields.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its C type.
    pub c: String,
    /// Its Rust type.
    pub rust: String,
    /// True if the Rust type is written by hand.
    pub is_own: bool,
    /// True if it has values that are only read, instead of fields.
    pub has_values: bool,
}

/// The whole table.
#[derive(Clone, Debug)]
pub struct Abi {
    /// The version of RocksDB that the interface is of.
    pub version: String,
    /// Objects with fields.
    pub objects: Vec<Object>,
    /// Types that are only pointed at.
    pub opaque: Vec<String>,
    /// Other names of types.
    pub type_names: Vec<(String, String)>,
    /// Named types of functions.
    pub callbacks: Vec<(String, String)>,
    /// Constants, by name.
    pub constants: Vec<(String, i64)>,
    /// All functions.
    pub areas: Vec<Area>,
}

impl Abi {
    /// Reads the table.
    ///
    /// # Errors
    /// Says which row cannot be read.
    pub fn parse(text: &str) -> Result<Abi, String> {
        let table: Table = text.parse().map_err(|why: toml::de::Error| why.to_string())?;
        let objects = section(&table, "objects")?.iter().map(|(c, row)| {
            let rust = row.get("rust").and_then(Value::as_str).ok_or(format!("{c}: no `rust`"))?.to_owned();
            let has = |what: &str| row.get(what).and_then(Value::as_bool).unwrap_or(false);
            Ok(Object { c: c.clone(), rust, is_own: has("own"), has_values: has("values") })
        });
        let type_names = section(section(&table, "types")?, "names")?.iter();
        let type_names = type_names.filter_map(|(name, of)| Some((name.clone(), of.as_str()?.to_owned())));
        let opaque = section(&table, "types")?.get("opaque").and_then(Value::as_array).ok_or("no opaque")?;
        let opaque = opaque.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let callbacks = section(&table, "callbacks")?.iter();
        let callbacks = callbacks.filter_map(|(name, c)| Some((name.clone(), c.as_str()?.to_owned())));
        let constants = section(&table, "constants")?.iter();
        let constants = constants.filter_map(|(name, value)| Some((name.clone(), value.as_integer()?)));
        let areas = table.get("area").and_then(Value::as_array).ok_or("no area")?;
        let mut areas = areas.iter().map(area).collect::<Result<Vec<_>, _>>()?;
        resolve_names(&mut areas)?;
        Ok(Abi {
            version: table.get("version").and_then(Value::as_str).ok_or("no version")?.to_owned(),
            objects: objects.collect::<Result<_, String>>()?,
            opaque,
            type_names: type_names.collect(),
            callbacks: callbacks.collect(),
            constants: constants.collect(),
            areas,
        })
    }

    /// Every function.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.areas.iter().flat_map(|area| &area.functions)
    }

    /// The object that a C type points at.
    #[must_use]
    pub fn object(&self, c: &str) -> Option<&Object> {
        let name = c.trim_start_matches("const ").strip_suffix('*')?;
        self.objects.iter().find(|object| object.c == name)
    }
}

fn section<'t>(table: &'t Table, name: &str) -> Result<&'t Table, String> {
    table.get(name).and_then(Value::as_table).ok_or(format!("no section [{name}]"))
}

fn area(value: &Value) -> Result<Area, String> {
    let name = value.get("name").and_then(Value::as_str).ok_or("an area without a name")?.to_owned();
    let rows = value.get("functions").and_then(Value::as_table).ok_or(format!("{name}: no functions"))?;
    let functions = rows.iter().map(|(name, row)| function(name, row));
    Ok(Area { functions: functions.collect::<Result<_, _>>()?, name })
}

/// Gives other names of functions what these have. A name with a C type of its own keeps that, its state and
/// its remark; the type must pass as that of the function does.
fn resolve_names(areas: &mut [Area]) -> Result<(), String> {
    let known: Vec<Function> = areas.iter().flat_map(|area| &area.functions).cloned().collect();
    for function in areas.iter_mut().flat_map(|area| &mut area.functions) {
        let Source::Name(of) = &function.source else { continue };
        let other = known.iter().find(|other| other.name == *of && !matches!(other.source, Source::Name(_)));
        let other = other.ok_or(format!("{}: there is no {of}", function.name))?;
        if !function.result.is_empty() {
            if function.passed() != other.passed() {
                return Err(format!("{}: its type does not pass as that of {of}", function.name));
            }
            continue;
        }
        let differs = Some(format!("Another name of `{}`.", of.trim_start_matches("rocksdb_")));
        let (name, source) = (function.name.clone(), function.source.clone());
        // What it does is said of the other name.
        let (default, ignored, ignored_if) = (None, None, None);
        *function = Function { name, source, default, differs, ignored, ignored_if, ..other.clone() };
    }
    Ok(())
}

fn function(name: &str, row: &Value) -> Result<Function, String> {
    let text = |key: &str| row.get(key).and_then(Value::as_str).map(str::to_owned);
    if let (Some(of), None) = (text("of"), text("c")) {
        return Ok(Function {
            name: name.to_owned(),
            state: State::Missing,
            source: Source::Name(of),
            result: String::new(),
            arguments: Vec::new(),
            default: None,
            differs: None,
            ignored: None,
            ignored_if: None,
        });
    }
    let bad = |what: &str| format!("{name}: {what}");
    let word = text("is").ok_or(bad("no `is`"))?;
    let state = State::ALL.into_iter().find(|state| state.word() == word).ok_or(bad("unknown state"))?;
    let fields = [
        ("field", Source::Field as fn(String) -> Source),
        ("value", Source::Value),
        ("count", Source::Count),
    ];
    let mut fields = fields.into_iter().filter_map(|(key, source)| Some(source(text(key)?)));
    let source = match (fields.next(), text("by").as_deref()) {
        (None, None) if text("of").is_some() => Source::Name(text("of").unwrap_or_default()),
        (Some(field), None) => field,
        (None, Some("create")) => Source::Create,
        (None, Some("destroy")) => Source::Destroy,
        (None, Some("nothing")) => Source::Nothing,
        (None, Some("hand")) => Source::Hand,
        (None, None) if matches!(state, State::Refused | State::Missing) => Source::Failure,
        (None, None) => Source::Hand,
        _ => return Err(bad("`field`, `value` or `count` does not go with `by`, or `by` is unknown")),
    };
    if fields.next().is_some() {
        return Err(bad("more than one of `field`, `value` and `count`"));
    }
    let c = text("c").ok_or(bad("no `c`"))?;
    let (result, arguments) = signature(&c).ok_or(bad("`c` is not a type of a function"))?;
    let (default, differs) = (text("default"), text("differs"));
    let (ignored, ignored_if) = (text("ignored"), text("ignored_if"));
    if ignored.is_some() && arguments.is_empty() {
        return Err(bad("`ignored` is for setters of options, and for calls of a database"));
    }
    let name = name.to_owned();
    Ok(Function { name, state, source, result, arguments, default, differs, ignored, ignored_if })
}

/// Result and arguments of `RESULT (ARGUMENTS)`.
fn signature(c: &str) -> Option<(String, Vec<String>)> {
    let (result, rest) = c.split_once(" (")?;
    let inside = rest.strip_suffix(')')?;
    let (mut arguments, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, letter) in inside.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                arguments.push(inside[start..at].trim().to_owned());
                start = at + 1;
            }
            _ => {}
        }
    }
    if !inside[start..].trim().is_empty() {
        arguments.push(inside[start..].trim().to_owned());
    }
    Some((result.to_owned(), arguments))
}

/// The Rust type that passes as a C type does: pointers of all kinds are one.
#[must_use]
pub fn rust_type(c: &str) -> Option<&'static str> {
    Some(match c {
        "void" => "()",
        "unsigned char" | "uint8_t" | "bool" => "u8",
        "char" => "c_char",
        "int" | "int32_t" => "c_int",
        "unsigned int" | "uint32_t" => "c_uint",
        "int64_t" => "i64",
        "uint64_t" => "u64",
        "size_t" => "usize",
        "float" => "f32",
        "double" => "f64",
        "rocksdb_slice_t" => "Slice",
        pointer if pointer.ends_with('*') || pointer.contains("(*)") || pointer.ends_with("_cb") => "Pointer",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_of_a_function_is_taken_apart() {
        let (result, arguments) = signature("char* (void*, int (*)(void*, int), size_t)").expect("is one");
        assert_eq!((result.as_str(), arguments.len()), ("char*", 3));
        assert_eq!(arguments[1], "int (*)(void*, int)");
        assert_eq!(signature("void ()"), Some(("void".to_owned(), Vec::new())));
        assert_eq!(signature("void"), None);
        assert_eq!(rust_type("int (*)(void*)"), Some("Pointer"));
        assert_eq!(rust_type("long"), None);
    }
}
