//! Options of behaviour that are accepted and have no effect. A database that is opened with one says so in
//! its info log; in strict mode it does not open. Those of calls are named, or refused, by the call.
//!
//! `abi.toml` lists them, each with what happens instead ([`IGNORED`], [`IN_CALLS`]). An option that is a
//! field counts as set when its value differs from the default; the setters of the others note that they were
//! called. The options of a call that are set are a set of bits: the places in [`IN_CALLS`].

use std::ffi::OsStr;

use crate::ffi::failure::{Failure, Result};
use crate::generated::ignored::{IGNORED, IN_CALLS};
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

/// An option of calls, or a call, that has no effect.
pub(crate) struct InCall {
    /// The function that sets it.
    pub(crate) function: &'static str,
    pub(crate) instead: &'static str,
}

/// Options of calls.
pub(crate) trait IgnoredInCalls {
    /// Those that are set and have no effect.
    fn ignored(&self) -> u64;
}

/// Makes the list of options of calls.
macro_rules! ignored_in_calls {
    ($( $function:ident $instead:literal; )*) => {
        /// All options of calls that have no effect.
        pub(crate) const IN_CALLS: &[$crate::options::ignored::InCall] = &[
            $( $crate::options::ignored::InCall { function: stringify!($function), instead: $instead }, )*
        ];
    };
}

/// Finds the options of one object that have no effect, each by its place in the list.
macro_rules! ignored_in {
    ($object:ident $( $number:literal if |$options:ident| $is_set:expr; )*) => {
        impl $crate::options::ignored::IgnoredInCalls for $object {
            fn ignored(&self) -> u64 {
                0 $( | {
                    let $options = self;
                    u64::from($is_set) << $number
                } )*
            }
        }
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
    /// Returns true if [`note`] was called for this setter.
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

/// The options of calls in a set.
fn in_calls(ignored: u64) -> impl Iterator<Item = &'static InCall> {
    let is_listed = u32::try_from(IN_CALLS.len()).is_ok_and(|len| ignored.checked_shr(len).unwrap_or(0) == 0);
    debug_assert!(is_listed, "{ignored:b}: an option that the list does not have");
    IN_CALLS
        .iter()
        .enumerate()
        .filter(move |(number, _)| ignored >> number & 1 != 0)
        .map(|(_, option)| option)
}

/// One line for each option of calls in a set.
pub(crate) fn lines_of(ignored: u64) -> impl Iterator<Item = String> {
    in_calls(ignored).map(|InCall { function, instead }| format!("{function} has no effect: {instead}"))
}

/// Refuses the options of calls in a set.
#[cold]
pub(crate) fn refuse_calls(ignored: u64) -> Result<()> {
    refused(in_calls(ignored).map(|InCall { function, instead }| format!("{function} ({instead})")).collect())
}

/// Refuses such options in strict mode.
pub(crate) fn refuse_if_strict(options: &[&Options]) -> Result<()> {
    if is_strict() { refuse(options) } else { Ok(()) }
}

/// Refuses the options of a call in strict mode, where no database is open.
pub(crate) fn refuse_options_if_strict<O: IgnoredInCalls>(options: &O) -> Result<()> {
    if is_strict() { refuse_calls(options.ignored()) } else { Ok(()) }
}

/// Returns true if strict mode is on.
pub(crate) fn is_strict() -> bool {
    is_strict_by(std::env::var_os(STRICT).as_deref())
}

fn is_strict_by(value: Option<&OsStr>) -> bool {
    value.is_some_and(|value| !value.is_empty() && value != "0")
}

fn refuse(options: &[&Options]) -> Result<()> {
    refused(
        ignored(options).map(|Ignored { function, instead, .. }| format!("{function} ({instead})")).collect(),
    )
}

/// The error that names such options, if there are any.
fn refused(found: Vec<String>) -> Result<()> {
    if found.is_empty() {
        return Ok(());
    }
    Err(Failure::not_implemented(format_args!(
        "Not supported in strict mode ({STRICT}): {}; leave these options out, or unset {STRICT}",
        found.join("; ")
    )))
}

#[cfg(test)]
mod tests;
