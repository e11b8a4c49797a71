//! Merge operators: how operands, which are written without a read, become a value when a reader needs it.
//!
//! A table names its operator; the name is stored with the table, and a table whose operator is not available
//! is not opened, unless any is accepted ([`MergeOperators::with_any`]). Built-in operators ([`built_in`])
//! are always available, [`MergeOperators`] passes others at opening.
//!
//! # Contract
//! 1. An operator is a function: the same key, base and operands always make the same value, in every version
//!    of the program that opens the table. It may be called any number of times, on any thread, at any time.
//! 2. `partial` keeps what `full` makes: with any base and any operands before and behind, to fold the parts
//!    first changes nothing.
//! 3. An error or a panic loses nothing: a reader of the key gets the error, a compaction keeps the operands.
//! 4. It is called without a lock and outside every epoch. It may read; changing a database, or waiting for
//!    one, is refused ([`crate::callback`]).

mod built_in;
mod unknown;

pub use built_in::{built_in, counter};

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::{Error, Result};
use unknown::Unknown;

/// Longest name of an operator, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// Name that is reserved for an operator of the library, which has it with its feature `json`.
pub const JSON_MERGE_PATCH: &str = "json_merge_patch";

/// First part of the names that RocksDB's C interface stores with its column families, with and without an
/// operator: it takes the operator itself at each opening. Tables with such a name open without the operator.
pub const COLUMN_FAMILY: &str = "rocksdb:";

/// Folds the operands of a key. See the [module](self) for the contract.
///
/// ```
/// # use terrane_base::{MergeOperator, Result};
/// /// Values and operands are sets of small numbers, a bit for each.
/// #[derive(Debug)]
/// struct Union;
///
/// impl MergeOperator for Union {
///     fn name(&self) -> &str {
///         "union-of-bits"
///     }
///
///     fn full(&self, _: &[u8], base: Option<&[u8]>, operands: &[&[u8]], out: &mut Vec<u8>) -> Result<()> {
///         let all = base.into_iter().chain(operands.iter().copied()).flatten();
///         out.push(all.fold(0, |set, bits| set | bits));
///         Ok(())
///     }
/// }
///
/// let mut value = Vec::new();
/// Union.full(b"key", Some(&[0b001]), &[&[0b010], &[0b100]], &mut value)?;
/// assert_eq!(value, [0b111]);
/// # Ok::<(), terrane_base::Error>(())
/// ```
pub trait MergeOperator: Send + Sync + fmt::Debug {
    /// The name that is stored with tables: 1 to [`NAME_BYTES_MAX`] bytes without control characters.
    fn name(&self) -> &str;

    /// Appends to `out` the value of `key` that `operands`, oldest first and at least one, make of `base`,
    /// which is `None` if the key has no value.
    ///
    /// # Errors
    /// Whatever is wrong with base or operands; the caller gets it as `Invalid`.
    fn full(&self, key: &[u8], base: Option<&[u8]>, operands: &[&[u8]], out: &mut Vec<u8>) -> Result<()>;

    /// Appends to `out` one operand that combines `operands`, oldest first and at least two, and returns
    /// true; false if the operator makes no such operand.
    ///
    /// # Errors
    /// As [`MergeOperator::full`].
    fn partial(&self, key: &[u8], operands: &[&[u8]], out: &mut Vec<u8>) -> Result<bool> {
        let _ = (key, operands, out);
        Ok(false)
    }

    /// Refuses an operand that no value can be made of, when it is written: a wrong operand that was accepted
    /// fails every later read of its key. By default every operand is accepted.
    ///
    /// # Errors
    /// The reason why the operand is wrong; the writer gets it as `Invalid`.
    fn check_operand(&self, operand: &[u8]) -> Result<()> {
        let _ = operand;
        Ok(())
    }

    /// Refuses a value that no operand can be folded onto, when it is put: a value that is accepted fails
    /// every read of its key behind the next merge. By default every value is accepted.
    ///
    /// # Errors
    /// Says why the value is wrong; the writer gets it as `Invalid`.
    fn check_value(&self, value: &[u8]) -> Result<()> {
        let _ = value;
        Ok(())
    }

    /// Returns false if [`MergeOperator::check_value`] accepts every value: then it is not called. Asked
    /// once, when a table is opened or created.
    fn checks_values(&self) -> bool {
        true
    }

    /// Returns true if a flush or compaction that finds operands and their base first asks for one operand
    /// that combines them, and then for the value. By the contract the value is the same; it costs a call.
    /// For operators whose users expect it: RocksDB joins operands in a flush, and folds them in a
    /// compaction.
    fn joins_first(&self) -> bool {
        false
    }
}

/// Finds operators that are not known by name when a database is opened: for a program whose tables name more
/// than it can list.
///
/// ```
/// # use std::sync::Arc;
/// # use terrane_base::MergeOperator;
/// # use terrane_base::merge_operator::{OperatorSource, built_in};
/// /// Names of an earlier version of the program.
/// #[derive(Debug)]
/// struct Renamed;
///
/// impl OperatorSource for Renamed {
///     fn operator(&self, name: &str) -> Option<Arc<dyn MergeOperator>> {
///         built_in(name.strip_prefix("v1:")?)
///     }
/// }
///
/// assert!(Renamed.operator("v1:counter").is_some() && Renamed.operator("v2:counter").is_none());
/// ```
pub trait OperatorSource: Send + Sync + fmt::Debug {
    /// The operator with this name, if the source knows it; every time the same one.
    fn operator(&self, name: &str) -> Option<Arc<dyn MergeOperator>>;
}

/// Makes the operator that tables get of one that is found.
#[doc(hidden)]
pub type Wrap = fn(Arc<dyn MergeOperator>) -> Arc<dyn MergeOperator>;

/// Operators of a program, by name, given when a database is opened.
///
/// ```
/// # use std::sync::Arc;
/// # use terrane_base::{MergeOperator, MergeOperators, Result};
/// # #[derive(Debug)]
/// # struct Last;
/// # impl MergeOperator for Last {
/// #     fn name(&self) -> &str {
/// #         "last"
/// #     }
/// #     fn full(&self, _: &[u8], _: Option<&[u8]>, new: &[&[u8]], out: &mut Vec<u8>) -> Result<()> {
/// #         out.extend_from_slice(new.last().expect("at least one"));
/// #         Ok(())
/// #     }
/// # }
/// let operators = MergeOperators::new().with(Arc::new(Last))?; // passed when a database is opened
/// assert_eq!(operators.find("last")?.name(), "last");
/// assert_eq!(operators.find("counter")?.name(), "counter"); // built in
/// # Ok::<(), terrane_base::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct MergeOperators {
    by_name: BTreeMap<String, Arc<dyn MergeOperator>>,
    source: Option<Arc<dyn OperatorSource>>,
    /// True if a stand-in replaces an operator that is not registered.
    takes_any: bool,
    /// Replaces each operator that is found.
    wrap: Option<Wrap>,
}

impl MergeOperators {
    /// No operators but the built-in ones.
    ///
    /// ```
    /// # use terrane_base::MergeOperators;
    /// assert!(MergeOperators::new().find("append:,").is_ok()); // built in
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an operator.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use terrane_base::{MergeOperator, MergeOperators, Result};
    /// # #[derive(Debug)]
    /// # struct Last;
    /// # impl MergeOperator for Last {
    /// #     fn name(&self) -> &str {
    /// #         "last"
    /// #     }
    /// #     fn full(&self, _: &[u8], _: Option<&[u8]>, new: &[&[u8]], out: &mut Vec<u8>) -> Result<()> {
    /// #         out.extend_from_slice(new.last().expect("at least one"));
    /// #         Ok(())
    /// #     }
    /// # }
    /// let operators = MergeOperators::new().with(Arc::new(Last))?;
    /// assert!(operators.with(Arc::new(Last)).is_err()); // the name is taken
    /// # Ok::<(), terrane_base::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a bad name, one that is taken, or that of a built-in operator.
    pub fn with(mut self, operator: Arc<dyn MergeOperator>) -> Result<Self> {
        let name = operator.name().to_owned();
        check_name(&name).map_err(|why| Error::invalid(format!("merge operator {name:?}: {why}")))?;
        if is_reserved(&name) || self.by_name.contains_key(&name) {
            return Err(Error::invalid(format!(
                "merge operator {name:?}: the name is taken, choose another"
            )));
        }
        self.by_name.insert(name, operator);
        Ok(self)
    }

    /// Adds an operator that the library has beside those of this crate, under the name that is reserved for
    /// it.
    ///
    /// # Panics
    /// If its name is not [`JSON_MERGE_PATCH`].
    #[doc(hidden)]
    #[must_use]
    pub fn with_reserved(mut self, operator: Arc<dyn MergeOperator>) -> Self {
        assert_eq!(operator.name(), JSON_MERGE_PATCH, "the one reserved name");
        self.by_name.insert(JSON_MERGE_PATCH.to_owned(), operator);
        self
    }

    /// Has `source` asked for operators that are neither given by name nor built in.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use terrane_base::MergeOperator;
    /// # use terrane_base::merge_operator::{MergeOperators, OperatorSource, built_in};
    /// # #[derive(Debug)]
    /// # struct Renamed;
    /// # impl OperatorSource for Renamed {
    /// #     fn operator(&self, name: &str) -> Option<Arc<dyn MergeOperator>> {
    /// #         built_in(name.strip_prefix("v1:")?)
    /// #     }
    /// # }
    /// let operators = MergeOperators::new().with_source(Arc::new(Renamed));
    /// assert_eq!(operators.find("v1:counter")?.name(), "counter");
    /// # Ok::<(), terrane_base::Error>(())
    /// ```
    #[must_use]
    pub fn with_source(mut self, source: Arc<dyn OperatorSource>) -> Self {
        self.source = Some(source);
        self
    }

    /// Accepts operators that are not registered: their tables open, and keys without operands are read and
    /// written as always. A read of a key with operands is refused, and so is a merge; compactions keep the
    /// operands as they are.
    ///
    /// ```
    /// # use terrane_base::MergeOperators;
    /// // For a tool that shows databases of any program.
    /// assert!(MergeOperators::new().find("theirs").is_err());
    /// assert!(MergeOperators::new().with_any().find("theirs").is_ok());
    /// ```
    #[must_use]
    pub fn with_any(self) -> Self {
        MergeOperators { takes_any: true, ..self }
    }

    /// Calls `wrap` with each operator that is found, built-in ones included; tables get its result.
    /// For tools that read databases: with operators that make other values, nothing may be written.
    #[doc(hidden)]
    #[must_use]
    pub fn wrapped(self, wrap: Wrap) -> Self {
        MergeOperators { wrap: Some(wrap), ..self }
    }

    /// The operator with this name.
    ///
    /// ```
    /// # use terrane_base::MergeOperators;
    /// let error = MergeOperators::new().find("cuonter").unwrap_err();
    /// assert!(error.message().contains("cuonter"));
    /// ```
    ///
    /// # Errors
    /// `Invalid`, naming the operator and the remedy.
    pub fn find(&self, name: &str) -> Result<Arc<dyn MergeOperator>> {
        let found = self.by_name.get(name).cloned().or_else(|| built_in(name));
        let found = found.or_else(|| self.source.as_ref()?.operator(name));
        let may_lack = self.takes_any || name.starts_with(COLUMN_FAMILY);
        let found = found.or_else(|| may_lack.then(|| Unknown::named(name)));
        let found = found.map(|operator| match self.wrap {
            Some(wrap) => wrap(operator),
            None => operator,
        });
        found.ok_or_else(|| {
            let remedy = match name {
                JSON_MERGE_PATCH => "build the program with the feature json",
                _ => "give it at opening, or use one of counter, append, append:SEPARATOR, max, min, json_merge_patch",
            };
            Error::invalid(format!("there is no merge operator {name:?}: {remedy}"))
        })
    }
}

/// Checks the name of an operator.
pub(crate) fn check_name(name: &str) -> std::result::Result<(), String> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
        return Err(format!("expected 1 to {NAME_BYTES_MAX} bytes without control characters"));
    }
    Ok(())
}

/// Returns true if a name means a built-in operator, or none.
fn is_reserved(name: &str) -> bool {
    matches!(name, "none" | JSON_MERGE_PATCH) || built_in(name).is_some()
}
