//! A line of the shell as words.

/// Splits a line at spaces. Words with spaces stand in single or double quotes; within double quotes `\"` is
/// a quote. Every other backslash stays, since keys and values have escapes of their own. A `#` before a word
/// begins a comment.
///
/// # Errors
/// A quote is not closed.
pub(super) fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut chars = line.chars().peekable();
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        match chars.peek() {
            None | Some('#') => return Ok(words),
            Some(_) => {}
        }
        let mut word = String::new();
        while let Some(c) = chars.next_if(|c| !c.is_whitespace()) {
            match c {
                '\'' | '"' => loop {
                    match chars.next() {
                        None => return Err(format!("a {c} is not closed")),
                        Some(end) if end == c => break,
                        Some('\\') if c == '"' && chars.next_if_eq(&'"').is_some() => word.push('"'),
                        Some(inner) => word.push(inner),
                    }
                },
                c => word.push(c),
            }
        }
        words.push(word);
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn words_quotes_escapes_and_comments() {
        let words = |line: &str| split(line).unwrap();
        assert_eq!(words("  put  a 'b c' \"d \\\" e\"  # rest"), ["put", "a", "b c", "d \" e"]);
        assert_eq!(words(r"get \x00\n k#1 ''"), ["get", r"\x00\n", "k#1", ""]);
        assert_eq!(words(r#"put k '{"a":1}'"#), ["put", "k", r#"{"a":1}"#]);
        assert_eq!(words("   "), Vec::<String>::new());
        assert_eq!(words("# only"), Vec::<String>::new());
        assert!(split("get 'a").is_err() && split("get \"a").is_err());
    }
}
