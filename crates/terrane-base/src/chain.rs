//! The versions of one key that together make its value: operands of merges, and the base onto which they are
//! folded.
//!
//! Versions are taken newest first, until one ends the chain: a value, a delete, or an expired version.
//! During a flush and after a crash a version may exist twice: in a newer place as it was written, in an
//! older one possibly folded with others. So:
//! 1. a version that the collected operands include already is skipped;
//! 2. a version from an older place that includes some of them, and more, replaces them.
//!
//! Invariant: the collected operands include disjoint, descending ranges of sequence numbers.

use crate::merge_operator::MergeOperator;
use crate::stored::{Moment, Stored};
use crate::{Error, Result, SeqKind, SeqNo, key};

/// An operand that was met.
#[derive(Clone, Debug)]
pub struct Operand {
    /// Its sequence number: the greatest that it includes.
    pub last: SeqNo,
    /// The least.
    pub first: SeqNo,
    /// From when on it is a delete.
    pub expires_at: Moment,
    start: usize,
    end: usize,
}

/// The base that ends a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Base {
    /// Nothing yet: something older may count.
    Open,
    /// No value: a delete, or something expired.
    Delete {
        /// Its sequence number.
        seq: SeqNo,
    },
    /// A value.
    Value {
        /// Its sequence number.
        seq: SeqNo,
        /// From when on it is a delete.
        expires_at: Moment,
    },
}

/// See the [module](self). Reused from key to key, with its allocations.
#[derive(Debug)]
pub struct Chain {
    bytes: Vec<u8>,
    /// Newest first.
    operands: Vec<Operand>,
    base: Base,
    base_at: usize,
}

impl Default for Chain {
    fn default() -> Self {
        Chain { bytes: Vec::new(), operands: Vec::new(), base: Base::Open, base_at: 0 }
    }
}

impl Chain {
    /// An empty chain.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets everything; keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.operands.clear();
        self.base = Base::Open;
    }

    /// Returns true if nothing was taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.operands.is_empty() && self.base == Base::Open
    }

    /// The operands, newest first.
    #[must_use]
    pub fn operands(&self) -> &[Operand] {
        &self.operands
    }

    /// The base onto which the operands are folded.
    #[must_use]
    pub fn base(&self) -> &Base {
        &self.base
    }

    /// The user's bytes of an operand.
    #[must_use]
    pub fn operand_bytes(&self, operand: &Operand) -> &[u8] {
        &self.bytes[operand.start..operand.end]
    }

    /// The user's bytes of the base, if it is a value.
    #[must_use]
    pub fn base_bytes(&self) -> Option<&[u8]> {
        matches!(self.base, Base::Value { .. }).then(|| &self.bytes[self.base_at..])
    }

    /// Takes the next version, newest first within each place, newer places first. `bytes` are as stored.
    /// Returns whether older versions may count.
    ///
    /// # Errors
    /// `Corrupt` if the bytes do not match the kind, or overlap with operands of other numbers.
    pub fn take(&mut self, seq_kind: SeqKind, bytes: &[u8], now: Moment) -> Result<bool> {
        let stored = Stored::of_entry(seq_kind, bytes)?;
        let last = seq_kind.seq();
        let is_base = !seq_kind.is_merge() || stored.is_expired(now);
        let first = stored.first(last);
        if !is_base && self.floor().is_some_and(|floor| first >= floor) {
            return Ok(true);
        }
        self.give_way(last)?;
        let start = self.bytes.len();
        if seq_kind.is_delete() || stored.is_expired(now) {
            self.base = Base::Delete { seq: last };
            return Ok(false);
        }
        self.bytes.extend_from_slice(stored.value);
        if is_base {
            self.base = Base::Value { seq: last, expires_at: stored.expires_at };
            self.base_at = start;
            return Ok(false);
        }
        let end = self.bytes.len();
        self.operands.push(Operand { last, first, expires_at: stored.expires_at, start, end });
        Ok(true)
    }

    /// Ends the chain with a range delete, which hides versions older than its number. Versions of the same
    /// ingest have the same number, and stay.
    ///
    /// # Errors
    /// `Corrupt` if operands on both sides of it were folded with each other.
    pub fn end_by_range_delete(&mut self, seq: SeqNo) -> Result<()> {
        if let Some(hidden) = seq.0.checked_sub(1) {
            self.give_way(SeqNo(hidden))?;
        }
        self.base = Base::Delete { seq };
        Ok(())
    }

    /// The least number that the operands include.
    fn floor(&self) -> Option<SeqNo> {
        self.operands.last().map(|operand| operand.first)
    }

    /// Removes the operands up to `last`, because the next version includes them.
    fn give_way(&mut self, last: SeqNo) -> Result<()> {
        if crate::planted!(FoldTwice) {
            return Ok(());
        }
        while let Some(operand) = self.operands.pop_if(|operand| operand.last <= last) {
            self.bytes.truncate(operand.start);
        }
        match self.operands.last() {
            Some(operand) if operand.first <= last => {
                let message = format!(
                    "operands {} to {} were folded with some that lie deeper, at {last}",
                    operand.first, operand.last
                );
                Err(Error::corrupt(message).of_order())
            }
            _ => Ok(()),
        }
    }

    /// Appends the value that the chain makes to `out`; returns whether there is one.
    ///
    /// # Errors
    /// `Invalid` if there is no operator, or it fails, panics, or makes a value beyond the limit.
    pub fn fold(&self, operator: Option<&dyn MergeOperator>, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        let base = self.base_bytes();
        if self.operands.is_empty() {
            out.extend_from_slice(base.unwrap_or_default());
            return Ok(base.is_some());
        }
        self.fold_operands(operator, key, &self.operands, out)
    }

    /// Appends the value that the given ones of the operands make with the base to `out`. Returns true.
    ///
    /// # Errors
    /// As [`Chain::fold`].
    pub fn fold_operands(
        &self,
        operator: Option<&dyn MergeOperator>,
        key: &[u8],
        operands: &[Operand],
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let operator = operator.ok_or_else(|| missing(key))?;
        let parts: Vec<&[u8]> = operands.iter().rev().map(|operand| self.operand_bytes(operand)).collect();
        let start = out.len();
        guard(operator, key, || operator.full(key, self.base_bytes(), &parts, out))?;
        check_len(operator, key, out.len() - start)?;
        Ok(true)
    }

    /// [`Chain::fold_operands`] for a merge that stores the value: through one operand that combines the
    /// given ones, if the operator asks for that and has one. If it fails to combine them, that is not an
    /// error, because it may know the value.
    ///
    /// # Errors
    /// As [`Chain::fold`].
    pub fn fold_to_store(
        &self,
        operator: &dyn MergeOperator,
        key: &[u8],
        operands: &[Operand],
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let mut joined = Vec::new();
        let joins = operands.len() > 1 && operator.joins_first();
        if !joins || !matches!(self.fold_partly(operator, key, operands, &mut joined), Ok(true)) {
            return self.fold_operands(Some(operator), key, operands, out);
        }
        let start = out.len();
        guard(operator, key, || operator.full(key, self.base_bytes(), &[&joined], out))?;
        check_len(operator, key, out.len() - start)?;
        Ok(true)
    }

    /// Appends one operand that combines the given adjacent ones to `out`; returns false if the operator
    /// makes none.
    ///
    /// # Errors
    /// As [`Chain::fold`].
    pub fn fold_partly(
        &self,
        operator: &dyn MergeOperator,
        key: &[u8],
        operands: &[Operand],
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let parts: Vec<&[u8]> = operands.iter().rev().map(|operand| self.operand_bytes(operand)).collect();
        let start = out.len();
        let is_done = guard(operator, key, || operator.partial(key, &parts, out))?;
        check_len(operator, key, out.len() - start)?;
        Ok(is_done)
    }
}

/// Calls an operator; a panic becomes an error.
fn guard<R>(operator: &dyn MergeOperator, key: &[u8], call: impl FnOnce() -> Result<R>) -> Result<R> {
    let named = || format!("merge operator {:?} on key \"{}\"", operator.name(), shown(key));
    match crate::callback::call(call) {
        Ok(Ok(done)) => Ok(done),
        // No stored data is damaged: the operator or its input must be fixed.
        Ok(Err(error)) => Err(error.with_kind(crate::Kind::Invalid).context(named())),
        Err(_) => Err(Error::invalid(format!("{} panicked: the operands stay; fix the operator", named()))),
    }
}

fn check_len(operator: &dyn MergeOperator, key: &[u8], len: usize) -> Result<()> {
    // Its prefix must fit as well.
    if len + crate::stored::PREFIX_BYTES_MAX <= key::VALUE_BYTES_MAX {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "merge operator {:?} on key \"{}\" makes {len} bytes: the limit is {} bytes; put a new value",
        operator.name(),
        shown(key),
        key::VALUE_BYTES_MAX - crate::stored::PREFIX_BYTES_MAX
    )))
}

#[cold]
fn missing(key: &[u8]) -> Error {
    Error::invalid(format!(
        "key \"{}\" has operands of merges, and its table has no merge operator: open it with the one that wrote them",
        shown(key)
    ))
}

/// The part of a key that errors show.
fn shown(key: &[u8]) -> String {
    let shown = &key[..key.len().min(64)];
    format!("{}{}", shown.escape_ascii(), if shown.len() < key.len() { ".." } else { "" })
}
