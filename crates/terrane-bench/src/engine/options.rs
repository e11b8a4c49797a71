//! Reading an adapter's options by name; what they mean is the adapter's.

use std::collections::BTreeMap;

use crate::error::{Error, Result};

/// The options of one engine.
#[derive(Clone, Copy, Debug)]
pub struct Named<'o> {
    engine: &'o str,
    options: &'o BTreeMap<String, String>,
}

impl<'o> Named<'o> {
    /// The options of `engine`, after refusing those that are not in `known`.
    ///
    /// # Errors
    /// `Plan`, naming an unknown option.
    pub fn new(engine: &'o str, options: &'o BTreeMap<String, String>, known: &[&str]) -> Result<Self> {
        super::refuse_unknown(engine, options, known)?;
        Ok(Named { engine, options })
    }

    /// The text of an option, if it was given.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&'o str> {
        self.options.get(name).map(String::as_str)
    }

    /// A whole number, or `default`.
    ///
    /// # Errors
    /// `Plan` if it is not a number.
    pub fn number(&self, name: &str, default: u64) -> Result<u64> {
        self.text(name).map_or(Ok(default), |text| {
            text.replace('_', "").parse().map_err(|_| self.wrong(name, text, "a whole number"))
        })
    }

    /// `true` or `false`, or `default`.
    ///
    /// # Errors
    /// `Plan` if it is neither.
    pub fn flag(&self, name: &str, default: bool) -> Result<bool> {
        self.text(name)
            .map_or(Ok(default), |text| text.parse().map_err(|_| self.wrong(name, text, "true or false")))
    }

    /// One of `choices`, the first of them if the option was not given.
    ///
    /// # Errors
    /// `Plan` if it is another.
    pub fn one_of(&self, name: &str, choices: &[&'static str]) -> Result<&'static str> {
        let Some(text) = self.text(name) else { return Ok(choices[0]) };
        let found = choices.iter().copied().find(|choice| *choice == text);
        found.ok_or_else(|| self.wrong(name, text, &choices.join(", ")))
    }

    fn wrong(&self, name: &str, text: &str, wanted: &str) -> Error {
        Error::plan(format!("option {name} of {} is {text:?}: it must be {wanted}", self.engine))
    }
}

/// A setting as the report prints it.
#[must_use]
pub fn setting(name: &str, value: impl std::fmt::Display) -> (String, String) {
    (name.to_owned(), value.to_string())
}

/// The version of a crate that this build was made with.
#[must_use]
pub fn locked_version(name: &str) -> String {
    const LOCK: &str = include_str!("../../../../Cargo.lock");
    let entry = format!("name = \"{name}\"\nversion = \"");
    let rest = LOCK.split_once(&entry).map_or("", |(_, rest)| rest);
    rest.split_once('"').map_or_else(|| "unknown".to_owned(), |(version, _)| version.to_owned())
}
