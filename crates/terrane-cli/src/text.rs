//! Keys and values as text: what people type, and what they are shown.

use std::fmt::Write as _;

use crate::exit::{Code, Failure};

/// How rows are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Key, tab, value; tabs, line breaks and bytes that are not text as \t, \n, \xNN
    Tsv,
    /// One JSON object a line; bytes that are not UTF-8 as `key_hex` and `value_hex`
    Json,
    /// Hexadecimal key and value
    Hex,
    /// The bytes as they are, each followed by a line break
    Raw,
}

/// Decodes a typed key or value: text with the escapes \n, \r, \t, \0, \\ and \xNN, or 0x and hexadecimal
/// digits.
///
/// # Errors
/// Says which part is wrong.
pub fn parse_bytes(typed: &str) -> Result<Vec<u8>, String> {
    if let Some(digits) = typed.strip_prefix("0x") {
        if !digits.len().is_multiple_of(2) {
            let why =
                "0x needs an even number of hexadecimal digits; write text that begins with 0x as \\x30x";
            return Err(why.into());
        }
        let wrong = "0x is followed by something else than hexadecimal digits";
        return parse_hex(digits).ok_or_else(|| wrong.to_owned());
    }
    let mut bytes = Vec::with_capacity(typed.len());
    let mut rest = typed;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let escape = &rest[at + 1..];
        let (byte, len) = match escape.as_bytes().first() {
            Some(b'n') => (b'\n', 1),
            Some(b'r') => (b'\r', 1),
            Some(b't') => (b'\t', 1),
            Some(b'0') => (0, 1),
            Some(b'\\') => (b'\\', 1),
            Some(b'x') => (hex_escape(escape)?, 3),
            _ => {
                let shown: String = escape.chars().take(1).collect();
                return Err(format!("unknown escape \\{shown}: use \\n \\r \\t \\0 \\\\ or \\xNN"));
            }
        };
        bytes.push(byte);
        rest = &escape[len..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

fn hex_escape(escape: &str) -> Result<u8, String> {
    let digits = escape.get(1..3).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
    let digits = digits.ok_or("expected two hexadecimal digits after \\x")?;
    u8::from_str_radix(digits, 16).map_err(|error| error.to_string())
}

/// The bytes of hexadecimal digits; `None` if they are something else.
pub(crate) fn parse_hex(digits: &str) -> Option<Vec<u8>> {
    let pair = |pair: &[u8]| {
        let &[high, low] = pair else { return None };
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        digit(high).zip(digit(low)).map(|(high, low)| high << 4 | low)
    };
    digits.as_bytes().chunks(2).map(pair).collect()
}

/// Appends bytes so that they fit in one column of one line: [`parse_bytes`] reads them back.
pub fn escape(bytes: &[u8], out: &mut String) {
    // Text that begins with 0x would be read as hexadecimal digits.
    let leading = if bytes.starts_with(b"0x") { "\\x30" } else { "" };
    out.push_str(leading);
    for chunk in bytes[leading.len() / 4..].utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\t' => out.push_str("\\t"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\\' => out.push_str("\\\\"),
                // A byte order mark at the front of a text is dropped by readers of text.
                c if c.is_control() || c == '\u{feff}' => {
                    c.to_string().bytes().for_each(|byte| push_hex_escape(byte, out))
                }
                c => out.push(c),
            }
        }
        chunk.invalid().iter().for_each(|&byte| push_hex_escape(byte, out));
    }
}

fn push_hex_escape(byte: u8, out: &mut String) {
    let _ = write!(out, "\\x{byte:02x}");
}

/// Appends bytes as hexadecimal digits.
pub fn hex(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
}

/// Appends one row in `format`, its line break included.
pub fn write_row(format: Format, key: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let mut line = String::new();
    match format {
        Format::Tsv => {
            escape(key, &mut line);
            line.push('\t');
            escape(value, &mut line);
        }
        Format::Hex => {
            hex(key, &mut line);
            line.push(' ');
            hex(value, &mut line);
        }
        Format::Json => {
            line.push('{');
            json_member("key", key, &mut line);
            line.push(',');
            json_member("value", value, &mut line);
            line.push('}');
        }
        Format::Raw => {
            out.extend_from_slice(key);
            out.push(b'\t');
            out.extend_from_slice(value);
        }
    }
    out.extend_from_slice(line.as_bytes());
    out.push(b'\n');
}

/// Appends a key or a value alone in `format`, whose name is that of its JSON member; [`Format::Raw`] adds
/// nothing to it.
pub fn write_alone(format: Format, name: &str, value: &[u8], out: &mut Vec<u8>) {
    let mut line = String::new();
    match format {
        Format::Raw => {
            out.extend_from_slice(value);
            return;
        }
        Format::Tsv => escape(value, &mut line),
        Format::Hex => hex(value, &mut line),
        Format::Json => {
            line.push('{');
            json_member(name, value, &mut line);
            line.push('}');
        }
    }
    out.extend_from_slice(line.as_bytes());
    out.push(b'\n');
}

fn json_member(name: &str, bytes: &[u8], out: &mut String) {
    match std::str::from_utf8(bytes) {
        Ok(text) => {
            let _ = write!(out, "\"{name}\":{}", serde_json::Value::from(text));
        }
        Err(_) => {
            let _ = write!(out, "\"{name}_hex\":\"");
            hex(bytes, out);
            out.push('"');
        }
    }
}

/// Bytes as people write them: three digits and a unit of 1024.
#[must_use]
pub fn size(bytes: u64) -> String {
    let mut amount = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if amount < 1000.0 {
            let digits = if unit == "B" || amount >= 100.0 { 0 } else { 1 };
            return format!("{amount:.digits$} {unit}");
        }
        amount /= 1024.0;
    }
    format!("{amount:.1} TiB")
}

/// A count with thin groups of three digits.
#[must_use]
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A path or other text for people to read: control characters, which a terminal would obey, as escapes.
#[must_use]
pub fn shown(text: impl std::fmt::Display) -> String {
    let text = text.to_string();
    if !text.chars().any(char::is_control) {
        return text;
    }
    text.chars()
        .map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() })
        .collect()
}

/// [`shown`] of a path.
#[must_use]
pub fn path(path: &std::path::Path) -> String {
    shown(path.display())
}

/// `parse_bytes` as a failure that names what was typed.
///
/// # Errors
/// `Usage`.
pub fn key_argument(typed: &str) -> Result<Vec<u8>, Failure> {
    parse_bytes(typed).map_err(|why| Failure::new(Code::Usage, format!("key {typed:?}: {why}")))
}

/// A moment, in milliseconds since the beginning of 1970, as date and time of day in UTC.
#[must_use]
pub fn utc(millis: u64) -> String {
    let (days, second) = (millis / 86_400_000, millis / 1000 % 86_400);
    // Years begin in March here, so that the day that comes and goes is the last one.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}
