//! JSON Lines: each line is an object; the key is made of its fields, the value is the line as it stands.

use std::fmt;
use std::io::{self, BufRead};

use serde_json::Value;
use serde_json::value::RawValue;

use super::lines::{Line, Lines, ROW_BYTES_MAX, trim_end};
use super::{BadRow, Keys, Position, Records, Row, Step, too_long};

/// Parser of JSON Lines. A field `a.b` is the field `b` of the object `a`. Blank lines are skipped.
pub struct JsonLines<R> {
    lines: Lines<R>,
    keys: Keys,
    line: Vec<u8>,
}

impl<R: BufRead> JsonLines<R> {
    /// `input` stands at `position`.
    pub fn new(input: R, keys: Keys, position: Position) -> Self {
        JsonLines { lines: Lines::new(input, position), keys, line: Vec::new() }
    }
}

impl<R> fmt::Debug for JsonLines<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonLines").field("keys", &self.keys).finish_non_exhaustive()
    }
}

impl<R: BufRead> Records for JsonLines<R> {
    fn next(&mut self, row: &mut Row) -> io::Result<Step> {
        loop {
            self.line.clear();
            let found = self.lines.next(&mut self.line, ROW_BYTES_MAX)?;
            let line = self.lines.position().line;
            match found {
                Line::End => return Ok(Step::End),
                Line::TooLong => return Ok(Step::Bad(BadRow { line, reason: too_long() })),
                Line::Whole => {}
            }
            let text = trim_end(&self.line);
            if text.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            row.key.clear();
            row.value.clear();
            return Ok(match make_key(text, &self.keys, &mut row.key) {
                Ok(()) => {
                    row.value.extend_from_slice(text);
                    Step::Row
                }
                Err(reason) => Step::Bad(BadRow { line, reason }),
            });
        }
    }

    fn position(&self) -> Position {
        self.lines.position()
    }
}

fn make_key(text: &[u8], keys: &Keys, key: &mut Vec<u8>) -> Result<(), String> {
    let text =
        std::str::from_utf8(text).map_err(|error| format!("not UTF-8 at byte {}", error.valid_up_to()))?;
    // The whole line is checked here; only the key's fields are decoded below.
    let whole: &RawValue = serde_json::from_str(text).map_err(|error| not_json(&error))?;
    let values = keys.fields.iter().map(|field| field_text(whole, field)).collect::<Result<Vec<_>, _>>()?;
    keys.join(values.iter().map(String::as_bytes), key);
    Ok(())
}

/// Words of the parser, which are those of a grammar, and what they say.
const PLAIN: [(&str, &str); 9] = [
    ("expected ident", "a word that is not true, false or null"),
    ("expected value", "expected a text in double quotes, a number, an object, a list, true, false or null"),
    ("trailing characters", "text behind the end of the object"),
    ("key must be a string", "a name that is not in double quotes"),
    ("EOF while parsing a value", "the line ends before the value"),
    ("EOF while parsing an object", "the line ends within the object: a } is missing"),
    ("EOF while parsing a list", "the line ends within a list: a ] is missing"),
    ("EOF while parsing a string", "the line ends within a text: a closing double quote is missing"),
    ("trailing comma", "a comma behind the last member"),
];

/// The mistake in a line of JSON, in plain words.
pub(super) fn not_json(error: &serde_json::Error) -> String {
    // The error's own line number is always 1 here; the column is what helps.
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text);
    let plain = PLAIN.iter().find(|(words, _)| *words == what).map_or(what, |(_, plain)| plain);
    format!("not JSON: {plain}, at column {}", error.column())
}

/// The text of a field of `object`, or of a field of a field.
fn field_text(object: &RawValue, path: &str) -> Result<String, String> {
    let mut at = object;
    for part in path.split('.') {
        at = member(at, part).map_err(|why| format!("{why} (key field {path})"))?;
    }
    match serde_json::from_str(at.get()) {
        Ok(Value::String(text)) => Ok(text),
        Ok(Value::Number(_) | Value::Bool(_)) => Ok(at.get().to_owned()),
        Ok(Value::Null) => Err(format!("key field {path} is null")),
        Ok(Value::Array(_) | Value::Object(_)) => {
            Err(format!("key field {path} is not a string, number or boolean"))
        }
        Err(error) => Err(not_json(&error)),
    }
}

/// One member of an object, undecoded; the last one if the name stands there twice.
fn member<'a>(object: &'a RawValue, name: &str) -> Result<&'a RawValue, String> {
    struct Visitor<'n>(&'n str);

    impl<'de> serde::de::Visitor<'de> for Visitor<'_> {
        type Value = Option<&'de RawValue>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut found = None;
            while let Some(matches) = map.next_key_seed(NameIs(self.0))? {
                if matches {
                    found = Some(map.next_value()?);
                } else {
                    map.next_value::<serde::de::IgnoredAny>()?;
                }
            }
            Ok(found)
        }
    }

    let mut deserializer = serde_json::Deserializer::from_str(object.get());
    let found = serde::de::Deserializer::deserialize_map(&mut deserializer, Visitor(name));
    found.map_err(|_| "not an object".to_owned())?.ok_or_else(|| format!("has no field {name}"))
}

/// Compares a member's name without keeping it.
struct NameIs<'n>(&'n str);

impl<'de> serde::de::DeserializeSeed<'de> for NameIs<'_> {
    type Value = bool;

    fn deserialize<D: serde::de::Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl serde::de::Visitor<'_> for NameIs<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}
