//! Options of behaviour that are accepted and have no effect. A database that is opened with one says so in
//! its info log; in strict mode it does not open.
//!
//! `abi.toml` lists them, each with what happens instead ([`IGNORED`]). An option that is a field counts as
//! set when its value differs from the default; the setters of the others note that they were called.

use std::ffi::OsStr;

use crate::ffi::failure::{Failure, Result};
use crate::generated::ignored::IGNORED;
use crate::options::database::Options;

/// The environment variable that switches strict mode on.
const STRICT: &str = "TERRANE_ROCKSDB_STRICT";

/// An option of behaviour that has no effect.
pub(crate) struct Ignored {
    /// The function that sets it.
    pub(crate) function: &'static str,
    pub(crate) instead: &'static str,
    pub(crate) is_set: fn(&Options) -> bool,
}

/// Makes the list of such options: the setter, what happens instead, and when the option is set.
macro_rules! ignored_options {
    ($( $function:ident $instead:literal if |$options:ident| $is_set:expr; )*) => {
        /// All options of behaviour that have no effect.
        pub(crate) const IGNORED: &[$crate::options::ignored::Ignored] = &[
            $( $crate::options::ignored::Ignored {
                function: stringify!($function),
                instead: $instead,
                is_set: |$options| $is_set,
            }, )*
        ];
    };
}

/// Notes that an option without a field was set, or is not set any more.
pub(crate) fn note(options: Option<&mut Options>, function: &'static str, is_set: bool) {
    if let Some(options) = options {
        match is_set {
            true => options.objects.noted.insert(function),
            false => options.objects.noted.remove(function),
        };
    }
}

impl Options {
    /// Whether [`note`] was called for this setter.
    pub(crate) fn is_noted(&self, function: &str) -> bool {
        self.objects.noted.contains(function)
    }
}

/// The options that are set in any of `options` and have no effect.
fn ignored<'a>(options: &'a [&'a Options]) -> impl Iterator<Item = &'static Ignored> + 'a {
    IGNORED.iter().filter(|ignored| options.iter().any(|options| (ignored.is_set)(options)))
}

/// One line for each option that is set and has no effect.
pub(crate) fn warnings(options: &[&Options]) -> Vec<String> {
    ignored(options)
        .map(|Ignored { function, instead, .. }| format!("{function} has no effect: {instead}"))
        .collect()
}

/// Refuses such options in strict mode.
pub(crate) fn refuse_if_strict(options: &[&Options]) -> Result<()> {
    if is_strict(std::env::var_os(STRICT).as_deref()) { refuse(options) } else { Ok(()) }
}

fn is_strict(value: Option<&OsStr>) -> bool {
    value.is_some_and(|value| !value.is_empty() && value != "0")
}

fn refuse(options: &[&Options]) -> Result<()> {
    let found: Vec<String> =
        ignored(options).map(|Ignored { function, instead, .. }| format!("{function} ({instead})")).collect();
    if found.is_empty() {
        return Ok(());
    }
    Err(Failure::not_implemented(format_args!(
        "Not supported in strict mode ({STRICT}): {}",
        found.join("; ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_options_set_nothing_that_is_ignored() {
        let options = Options::default();
        assert_eq!(warnings(&[&options]), Vec::<String>::new());
        refuse(&[&options]).expect("nothing to refuse");
    }

    #[test]
    fn an_ignored_option_is_named_once_and_refused() {
        let (mut one, mut other) = (Options::default(), Options::default());
        one.fields.compaction_style = 2;
        other.fields.compaction_style = 2;
        note(Some(&mut other), "rocksdb_options_set_db_paths", true);
        let lines = warnings(&[&one, &other]);
        assert_eq!(lines.len(), 2, "{lines:?}");
        let refused = refuse(&[&one, &other]).expect_err("two options");
        for name in ["rocksdb_options_set_compaction_style", "rocksdb_options_set_db_paths"] {
            assert!(refused.text().contains(name), "{}", refused.text());
        }
        note(Some(&mut other), "rocksdb_options_set_db_paths", false);
        one.fields.compaction_style = 1;
        other.fields.compaction_style = 0;
        assert_eq!(warnings(&[&one, &other]), Vec::<String>::new());
    }

    #[test]
    fn strict_mode_is_off_without_the_variable_and_with_zero() {
        for (value, is_on) in [(None, false), (Some(""), false), (Some("0"), false), (Some("1"), true)] {
            assert_eq!(is_strict(value.map(OsStr::new)), is_on, "{value:?}");
        }
    }
}
