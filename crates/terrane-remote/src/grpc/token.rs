//! The token that a client shows to a server.

use std::fmt;
use std::path::Path;

use terrane_base::{Error, Result};
use terrane_device::{Disk, OpenMode, PosixDisk};

/// Longest token.
const TOKEN_BYTES_MAX: usize = 4096;
/// The variable of the environment with the token.
const TOKEN_VARIABLE: &str = "TERRANE_TOKEN";
/// The variable of the environment with the file of the token.
const TOKEN_FILE_VARIABLE: &str = "TERRANE_TOKEN_FILE";

/// A secret text that both sides know. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// The token of this text, without spaces and line ends around it.
    ///
    /// # Errors
    /// `Invalid` if it is empty, longer than 4096 bytes, or has other characters than visible ones of ASCII.
    pub fn new(text: &str) -> Result<Token> {
        let text = text.trim();
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        if text.is_empty() || text.len() > TOKEN_BYTES_MAX || !is_plain {
            let message = format!(
                "a token has 1 to {TOKEN_BYTES_MAX} visible ASCII characters: draw one, for \
                 example with `openssl rand -hex 32`"
            );
            return Err(Error::invalid(message));
        }
        Ok(Token(text.to_owned()))
    }

    /// The token in a file.
    ///
    /// # Errors
    /// As [`Token::new`]; those of reading the file.
    pub fn read(path: &Path) -> Result<Token> {
        let file = PosixDisk::new().open(path, OpenMode::Read, false)?;
        let len = file.len()?.min(TOKEN_BYTES_MAX as u64 + 64);
        let mut bytes = vec![0; len as usize];
        file.read_at(0, &mut bytes)?;
        Token::new(&String::from_utf8_lossy(&bytes)).map_err(|error| error.context(path.display()))
    }

    /// The token that the environment has: in `TERRANE_TOKEN`, or in the file that `TERRANE_TOKEN_FILE`
    /// names.
    ///
    /// # Errors
    /// As [`Token::read`].
    pub fn of_environment() -> Result<Option<Token>> {
        if let Some(text) = std::env::var_os(TOKEN_VARIABLE) {
            let token = Token::new(&text.to_string_lossy());
            return token.map(Some).map_err(|error| error.context(TOKEN_VARIABLE));
        }
        std::env::var_os(TOKEN_FILE_VARIABLE).map(|path| Token::read(Path::new(&path))).transpose()
    }

    /// The value of the header `authorization`.
    pub(super) fn header(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// Says whether a header shows this token. The time does not depend on how much of it is right.
    pub(super) fn is_shown_by(&self, header: Option<&[u8]>) -> bool {
        let shown = header.and_then(|header| header.strip_prefix(b"Bearer ")).unwrap_or_default();
        let own = self.0.as_bytes();
        // Each byte of what was shown is compared with one of the token, whatever the length.
        let compared = shown.iter().enumerate().map(|(at, byte)| byte ^ own[at % own.len()]);
        let difference = compared.fold(0, |all, one| std::hint::black_box(all | one));
        (shown.len() == own.len()) & (difference == 0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_counts() {
        let token = Token::new(" secret\n").expect("plain");
        assert_eq!(token.header(), "Bearer secret");
        assert!(token.is_shown_by(Some(b"Bearer secret")));
        let wrong: [&[u8]; 7] = [
            b"",
            b"secret",
            b"Bearer ",
            b"Bearer secre",
            b"Bearer secrets",
            b"Bearer secretsecret",
            b"Bearer sEcret",
        ];
        for header in wrong {
            assert!(!token.is_shown_by(Some(header)), "{header:?}");
        }
        assert!(!token.is_shown_by(None));
        assert!(!format!("{token:?}").contains("secret"), "it is not shown");
    }

    #[test]
    fn a_text_that_is_not_a_token_is_refused() {
        for text in ["", " \n", "two words", "ä", &"x".repeat(TOKEN_BYTES_MAX + 1)] {
            Token::new(text).expect_err(text);
        }
    }
}
