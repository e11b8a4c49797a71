//! Rust text with everything that is not code blanked out, so that a text search sees only code.
//!
//! Not a parser: it knows comments, string, byte, C and character literals, and braces. That is enough for
//! rules about words and lengths, and it keeps working on code that does not compile yet.

use std::ops::Range;

/// A Rust file: the text as written and the same bytes with comments and literals as blanks.
#[derive(Clone, Debug)]
pub struct Source<'a> {
    /// As written.
    pub text: &'a str,
    /// Same length and lines; comments and literals are blanks.
    pub code: String,
}

/// A function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Line of the word `fn`, from 1.
    pub line: usize,
    /// Lines from `fn` to the closing brace, both counted.
    pub lines: usize,
}

impl<'a> Source<'a> {
    /// Blanks out comments and literals.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Source { text, code: blank(text) }
    }

    /// Blanks out modules and items under `#[cfg(test)]` as well.
    #[must_use]
    pub fn without_tests(mut self) -> Self {
        for mark in ["#[cfg(test)]", "#[cfg(all(test"] {
            while let Some(start) = self.code.find(mark) {
                let attribute = self.code[start..].find(']').map_or(mark.len(), |at| at + 1);
                let end = item_end(&self.code, start + attribute);
                blank_range(&mut self.code, start..end);
            }
        }
        self
    }

    /// Byte offsets at which `word` stands in the code, not as part of a longer name.
    pub fn find_word<'s>(&'s self, word: &'s str) -> impl Iterator<Item = usize> + 's {
        let is_name = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
        let bytes = self.code.as_bytes();
        self.code.match_indices(word).map(|(at, _)| at).filter(move |&at| {
            let starts = !is_name(word.as_bytes().first()) || at == 0 || !is_name(bytes.get(at - 1));
            let ends = !is_name(word.as_bytes().last()) || !is_name(bytes.get(at + word.len()));
            starts && ends
        })
    }

    /// Every function that has a body.
    #[must_use]
    pub fn functions(&self) -> Vec<Function> {
        self.find_word("fn").filter_map(|at| self.function_at(at)).collect()
    }

    fn function_at(&self, at: usize) -> Option<Function> {
        let rest = self.code[at + 2..].trim_start();
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if name.is_empty() {
            return None; // a function type: `fn(u8)`
        }
        let end = item_end(&self.code, at);
        if !self.code[at..end].ends_with('}') {
            return None; // a declaration in a trait
        }
        let lines = 1 + self.code[at..end].bytes().filter(|&byte| byte == b'\n').count();
        Some(Function { name, line: crate::tree::line_of(&self.code, at), lines })
    }
}

/// Where the item that starts at `from` ends: after its `;` or its closing brace, outside any brackets.
pub(crate) fn item_end(code: &str, from: usize) -> usize {
    let mut depth = 0i32;
    for (offset, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' => depth -= 1,
            b'}' => {
                depth -= 1;
                if depth <= 0 {
                    return offset + 1;
                }
            }
            b';' if depth <= 0 => return offset + 1,
            _ => {}
        }
    }
    code.len()
}

fn blank_range(code: &mut String, range: Range<usize>) {
    let blanks: String = code[range.clone()].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
    code.replace_range(range, &blanks);
}

fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = not_code_end(bytes, at);
        for byte in &mut out[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        // Letters outside ASCII may stand in code only as names, which no rule is about.
        if end == at && !bytes[at].is_ascii() {
            out[at] = b' ';
        }
        at = end.max(at + 1);
    }
    String::from_utf8(out).expect("only ASCII is left")
}

/// Where the comment or literal that starts at `at` ends; `at` itself if code stands there.
fn not_code_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        return at + rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
    }
    if rest.starts_with(b"/*") {
        return at + block_comment_len(rest);
    }
    let after_name = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    let prefix =
        if after_name { 0 } else { rest.iter().take_while(|byte| b"bcr".contains(byte)).count().min(2) };
    let literal = &rest[prefix..];
    let hashes = literal.iter().take_while(|&&byte| byte == b'#').count();
    let raw = prefix > 0 && rest[prefix - 1] == b'r';
    match literal.get(if raw { hashes } else { 0 }) {
        Some(b'"') if raw => at + prefix + raw_string_len(literal, hashes),
        Some(b'"') => at + prefix + quoted_len(literal, b'"'),
        Some(b'\'') if !raw && prefix <= 1 => char_end(bytes, at + prefix).unwrap_or(at),
        _ => at,
    }
}

fn block_comment_len(rest: &[u8]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn raw_string_len(literal: &[u8], hashes: usize) -> usize {
    let mut end = vec![b'#'; hashes + 1];
    end[0] = b'"';
    let body = &literal[hashes + 1..];
    let close = body.windows(end.len()).position(|window| window == end);
    close.map_or(literal.len(), |at| hashes + 1 + at + end.len())
}

/// Bytes of a literal that starts and ends with `quote`, with backslash escapes.
fn quoted_len(literal: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < literal.len() {
        match literal[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    literal.len()
}

/// The end of a character literal at `at`, or `None` if a lifetime stands there.
fn char_end(bytes: &[u8], at: usize) -> Option<usize> {
    let literal = &bytes[at..];
    if literal.get(1) == Some(&b'\\') {
        return Some(at + quoted_len(literal, b'\''));
    }
    let first = std::str::from_utf8(&literal[1..literal.len().min(5)]);
    let first = match first {
        Ok(text) => text.chars().next(),
        Err(error) => std::str::from_utf8(&literal[1..1 + error.valid_up_to()]).ok()?.chars().next(),
    }?;
    let close = 1 + first.len_utf8();
    (literal.get(close) == Some(&b'\'')).then_some(at + close + 1)
}
