//! Prefix extractors: the leading part of a key that filters store beside the key, so that a scan within one
//! prefix skips extents that hold no key with it.
//!
//! A table names its extractor, and every filter names the one that it was built with: a filter of another
//! extractor is not used. Built-in extractors ([`built_in`]) are always available, [`PrefixExtractors`]
//! passes others at opening.
//!
//! # Contract
//! 1. An extractor is a function: the same key always has the same prefix, in every version of the program
//!    that uses the name. It may be called any number of times, on any thread. Changing a database there, or
//!    waiting for one, is refused ([`crate::callback`]).
//! 2. A prefix is a front part of its key; a key may have none.
//! 3. Every key that begins with a *closed* prefix ([`PrefixExtractor::is_closed`]) has that prefix.
//!
//! If an extractor breaks these rules, scans within a prefix miss keys; point reads, other scans and stored
//! data are not affected. A panic is caught: the filter is then built without prefixes, and the scan uses no
//! filter.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::{Error, Result, callback};

/// Longest name of an extractor, in bytes: filters have it behind their lines.
pub const NAME_BYTES_MAX: usize = 48;
/// Longest prefix of the built-in extractors `fixed` and `capped`, in bytes.
pub const PREFIX_BYTES_MAX: usize = 1024;
/// Longest delimiter of the built-in extractor `until`, in bytes.
pub const DELIMITER_BYTES_MAX: usize = 16;

/// Says which front part of a key is its prefix. See the [module](self) for the contract.
///
/// ```
/// # use terrane_base::prefix_extractor::PrefixExtractor;
/// /// Keys begin with the number of a tenant, four bytes.
/// #[derive(Debug)]
/// struct Tenant;
///
/// impl PrefixExtractor for Tenant {
///     fn name(&self) -> &str {
///         "tenant"
///     }
///
///     fn prefix_len(&self, key: &[u8]) -> Option<usize> {
///         (key.len() >= 4).then_some(4)
///     }
/// }
///
/// assert_eq!(Tenant.prefix_len(b"0007/user/ada"), Some(4));
/// ```
pub trait PrefixExtractor: Send + Sync + fmt::Debug {
    /// The name that filters record: 1 to [`NAME_BYTES_MAX`] bytes without control characters.
    fn name(&self) -> &str;

    /// How many bytes of `key` are its prefix; `None` if it has none.
    fn prefix_len(&self, key: &[u8]) -> Option<usize>;

    /// Returns true if every key that begins with `prefix`, the prefix of some key, has it as its prefix. If
    /// not, filters are never checked for it.
    fn is_closed(&self, prefix: &[u8]) -> bool {
        let _ = prefix;
        true
    }
}

/// An extractor under the name that was checked when it was given, behind which its panics stay.
#[derive(Debug)]
pub struct Extractor {
    name: String,
    function: Arc<dyn PrefixExtractor>,
}

impl Extractor {
    /// The name that filters record.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The prefix of `key`; `None` if it has none.
    ///
    /// # Errors
    /// `Invalid`, naming the extractor, if it panicked or named more bytes than there are.
    #[inline]
    pub fn prefix_of<'k>(&self, key: &'k [u8]) -> Result<Option<&'k [u8]>> {
        match callback::call(|| self.function.prefix_len(key)) {
            Ok(None) => Ok(None),
            Ok(Some(len)) => key.get(..len).map(Some).ok_or_else(|| self.failed()),
            Err(_) => Err(self.failed()),
        }
    }

    /// The prefix that all keys beginning with `start` have, if the extractor knows one. Never the empty one:
    /// every key begins with it, so there is nothing to pass by.
    #[must_use]
    pub fn prefix_over<'k>(&self, start: &'k [u8]) -> Option<&'k [u8]> {
        let prefix = self.prefix_of(start).ok().flatten().filter(|prefix| !prefix.is_empty())?;
        let is_closed = callback::call(|| self.function.is_closed(prefix));
        is_closed.unwrap_or(false).then_some(prefix)
    }

    #[cold]
    fn failed(&self) -> Error {
        let name = &self.name;
        Error::invalid(format!("prefix extractor {name:?} panicked, or its prefix is longer than the key"))
    }
}

/// Extractors of a program, by name, given when a database is opened.
///
/// ```
/// # use std::sync::Arc;
/// # use terrane_base::prefix_extractor::{PrefixExtractor, PrefixExtractors};
/// # #[derive(Debug)]
/// # struct Tenant;
/// # impl PrefixExtractor for Tenant {
/// #     fn name(&self) -> &str {
/// #         "tenant"
/// #     }
/// #     fn prefix_len(&self, key: &[u8]) -> Option<usize> {
/// #         (key.len() >= 4).then_some(4)
/// #     }
/// # }
/// let extractors = PrefixExtractors::new().with(Arc::new(Tenant))?; // passed at opening
/// assert_eq!(extractors.find("tenant")?.prefix_of(b"0007/user/ada")?, Some(&b"0007"[..]));
/// assert_eq!(extractors.find("until:/")?.prefix_of(b"0007/user/ada")?, Some(&b"0007/"[..])); // built in
/// # Ok::<(), terrane_base::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct PrefixExtractors {
    by_name: BTreeMap<String, Arc<dyn PrefixExtractor>>,
    /// True if a table whose extractor is not registered opens without one.
    takes_any: bool,
}

impl PrefixExtractors {
    /// No extractors but the built-in ones.
    ///
    /// ```
    /// # use terrane_base::prefix_extractor::PrefixExtractors;
    /// assert!(PrefixExtractors::new().find("fixed:4").is_ok()); // built in
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an extractor.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use terrane_base::prefix_extractor::{PrefixExtractor, PrefixExtractors};
    /// # #[derive(Debug)]
    /// # struct Tenant;
    /// # impl PrefixExtractor for Tenant {
    /// #     fn name(&self) -> &str {
    /// #         "tenant"
    /// #     }
    /// #     fn prefix_len(&self, key: &[u8]) -> Option<usize> {
    /// #         (key.len() >= 4).then_some(4)
    /// #     }
    /// # }
    /// let extractors = PrefixExtractors::new().with(Arc::new(Tenant))?;
    /// assert!(extractors.with(Arc::new(Tenant)).is_err()); // the name is taken
    /// # Ok::<(), terrane_base::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a bad name, one that is taken, or one that means a built-in extractor.
    pub fn with(mut self, extractor: Arc<dyn PrefixExtractor>) -> Result<Self> {
        let name = extractor.name().to_owned();
        check_name(&name).map_err(|why| Error::invalid(format!("prefix extractor {name:?}: {why}")))?;
        if name == "none" || family(&name).is_some() || self.by_name.contains_key(&name) {
            return Err(Error::invalid(format!(
                "prefix extractor {name:?}: the name is taken, choose another"
            )));
        }
        self.by_name.insert(name, extractor);
        Ok(self)
    }

    /// Accepts extractors that are not registered: their tables open without one. Scans within a prefix then
    /// skip no extent, and filters that are written have no prefixes.
    ///
    /// ```
    /// # use terrane_base::prefix_extractor::PrefixExtractors;
    /// // For a tool that shows databases of any program.
    /// let extractors = PrefixExtractors::new().with_any();
    /// assert!(extractors.find_stored("theirs")?.is_none()); // scans skip no extent by it
    /// # Ok::<(), terrane_base::Error>(())
    /// ```
    #[must_use]
    pub fn with_any(self) -> Self {
        PrefixExtractors { takes_any: true, ..self }
    }

    /// The extractor of a table that names this one; `None` if it is not registered and any is accepted
    /// ([`PrefixExtractors::with_any`]).
    ///
    /// ```
    /// # use terrane_base::prefix_extractor::PrefixExtractors;
    /// assert!(PrefixExtractors::new().find_stored("theirs").is_err());
    /// assert!(PrefixExtractors::new().with_any().find_stored("theirs")?.is_none());
    /// # Ok::<(), terrane_base::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`PrefixExtractors::find`].
    pub fn find_stored(&self, name: &str) -> Result<Option<Arc<Extractor>>> {
        match self.find(name) {
            Err(_) if self.takes_any => Ok(None),
            found => found.map(Some),
        }
    }

    /// The extractor with this name.
    ///
    /// ```
    /// # use terrane_base::prefix_extractor::PrefixExtractors;
    /// let error = PrefixExtractors::new().find("fixed").unwrap_err();
    /// assert!(error.message().contains("fixed:BYTES"));
    /// ```
    ///
    /// # Errors
    /// `Invalid`, naming the extractor and the remedy.
    pub fn find(&self, name: &str) -> Result<Arc<Extractor>> {
        let found = self.by_name.get(name).cloned().or_else(|| built_in(name));
        let found = found.map(|function| Arc::new(Extractor { name: name.to_owned(), function }));
        found.ok_or_else(|| {
            Error::invalid(format!(
                "there is no prefix extractor {name:?}: give it at opening, or use one of fixed:BYTES, capped:BYTES, \
                 until:DELIMITER"
            ))
        })
    }
}

/// A built-in extractor by its name: `fixed:BYTES` (the first bytes of keys that have as many),
/// `capped:BYTES` (of shorter keys the whole), `until:DELIMITER` (up to the first delimiter, that included).
#[must_use]
pub fn built_in(name: &str) -> Option<Arc<dyn PrefixExtractor>> {
    let (family, rest) = family(name)?;
    let name = name.to_owned();
    let extractor: Arc<dyn PrefixExtractor> = match family {
        Family::Fixed => Arc::new(Fixed { name, bytes: parse_bytes(rest)? }),
        Family::Capped => Arc::new(Capped { name, bytes: parse_bytes(rest)? }),
        Family::Until => {
            let is_possible = (1..=DELIMITER_BYTES_MAX).contains(&rest.len());
            is_possible.then(|| Until { name, delimiter: rest.as_bytes().to_vec() }).map(Arc::new)?
        }
    };
    Some(extractor)
}

/// Checks the name of an extractor; what means a built-in one must be one.
pub(crate) fn check_name(name: &str) -> std::result::Result<(), String> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
        return Err(format!("expected 1 to {NAME_BYTES_MAX} bytes without control characters"));
    }
    if family(name).is_some() && built_in(name).is_none() {
        return Err(format!(
            "expected fixed:BYTES or capped:BYTES with 1 to {PREFIX_BYTES_MAX}, or until:DELIMITER with 1 to \
             {DELIMITER_BYTES_MAX} bytes"
        ));
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Family {
    Fixed,
    Capped,
    Until,
}

/// Which built-in extractors a name means, and what stands behind it.
fn family(name: &str) -> Option<(Family, &str)> {
    let known = [("fixed:", Family::Fixed), ("capped:", Family::Capped), ("until:", Family::Until)];
    known.into_iter().find_map(|(start, family)| Some((family, name.strip_prefix(start)?)))
}

/// A number as it is shown: names are compared, so `04` is not `4`.
fn parse_bytes(text: &str) -> Option<usize> {
    let bytes: usize = text.parse().ok()?;
    ((1..=PREFIX_BYTES_MAX).contains(&bytes) && bytes.to_string() == text).then_some(bytes)
}

#[derive(Debug)]
struct Fixed {
    name: String,
    bytes: usize,
}

impl PrefixExtractor for Fixed {
    fn name(&self) -> &str {
        &self.name
    }

    #[inline]
    fn prefix_len(&self, key: &[u8]) -> Option<usize> {
        (key.len() >= self.bytes).then_some(self.bytes)
    }
}

#[derive(Debug)]
struct Capped {
    name: String,
    bytes: usize,
}

impl PrefixExtractor for Capped {
    fn name(&self) -> &str {
        &self.name
    }

    #[inline]
    fn prefix_len(&self, key: &[u8]) -> Option<usize> {
        Some(key.len().min(self.bytes))
    }

    /// A shorter key is its own prefix, and longer ones that begin with it have another.
    fn is_closed(&self, prefix: &[u8]) -> bool {
        prefix.len() == self.bytes
    }
}

#[derive(Debug)]
struct Until {
    name: String,
    delimiter: Vec<u8>,
}

impl PrefixExtractor for Until {
    fn name(&self) -> &str {
        &self.name
    }

    #[inline]
    fn prefix_len(&self, key: &[u8]) -> Option<usize> {
        let bytes = self.delimiter.len();
        key.windows(bytes).position(|window| window == self.delimiter).map(|at| at + bytes)
    }
}

#[cfg(test)]
mod tests;
