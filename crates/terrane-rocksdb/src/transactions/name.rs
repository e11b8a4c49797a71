//! Names of transactions, under which they are prepared.

use std::ffi::c_char;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::ffi::failure::{Failure, Given, Result};
use crate::ffi::types::{Out, lasting, put};
use crate::transactions::handle::Transaction;
use crate::transactions::state::{Phase, State};

/// Longest name, in bytes.
const BYTES_MAX: usize = 512;
/// Longest name as the library has it, in bytes.
const ENGINE_BYTES_MAX: usize = 255;
/// The prefix of names that are kept as digits: those that are not text.
const DIGITS: &str = "hex:";

/// A name as the library has it: as text if it is text.
pub(crate) fn as_engine_has_it(name: &[u8]) -> String {
    match std::str::from_utf8(name) {
        Ok(text) if !text.starts_with(DIGITS) => text.to_owned(),
        _ => name.iter().fold(DIGITS.to_owned(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        }),
    }
}

/// A name that the library has, as it was given.
pub(crate) fn as_given(name: &str) -> Vec<u8> {
    let bytes = name.strip_prefix(DIGITS).and_then(|digits| {
        let pairs = digits.as_bytes().chunks(2);
        let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        pairs.map(byte).collect::<Option<Vec<u8>>>()
    });
    // What another program prepared may only look like digits of ours.
    bytes.filter(|bytes| as_engine_has_it(bytes) == name).unwrap_or_else(|| name.as_bytes().to_vec())
}

impl State {
    /// Frees the name, if it is this one's.
    pub(crate) fn give_name_back(&mut self) {
        if !std::mem::take(&mut self.holds_name) {
            return;
        }
        let is_over = matches!(self.phase, Phase::Committed | Phase::RolledBack);
        let mut named = self.database.transactions.named();
        // After this one was dropped, another thread may have registered a new state under the name.
        if is_over || named.get(&self.name).is_some_and(|held| held.strong_count() == 0) {
            named.remove(&self.name);
        }
    }
}

/// Gives a transaction its name.
fn set_name(transaction: &Transaction, name: &[u8]) -> Result<()> {
    let mut state = transaction.state();
    if !state.settings.is_pessimistic {
        return Err(Failure::invalid("Optimistic transactions cannot be named."));
    }
    state.require_running()?;
    if !state.name.is_empty() {
        return Err(Failure::invalid("Transaction has already been named."));
    }
    if name.is_empty() || name.len() > BYTES_MAX {
        return Err(Failure::invalid("Transaction name length must be between 1 and 512 chars."));
    }
    let own = as_engine_has_it(name);
    if own.len() > ENGINE_BYTES_MAX {
        return Err(Failure::invalid(
            "Transaction name: at most 255 bytes of text, or 125 bytes that are not text, can be prepared",
        ));
    }
    let database = state.database.clone();
    let mut named = database.transactions.named();
    let is_prepared = database.db.prepared().contains(&own);
    if is_prepared || named.get(name).is_some_and(|held| held.strong_count() > 0) {
        return Err(Failure::invalid("Transaction name must be unique."));
    }
    let weak = Arc::downgrade(transaction.shared());
    named.insert(name.to_vec(), weak);
    (state.name, state.holds_name) = (name.to_vec(), true);
    Ok(())
}

export! {
    fn rocksdb_transaction_set_name(
        transaction: Option<&Transaction>,
        name: Bytes<'_>,
        len: usize,
        error: ErrPtr<'_>,
    ) {
        set_name(transaction.given()?, name)
    }

    fn rocksdb_transaction_get_name(transaction: Option<&Transaction>, len: Out<'_, usize>) -> *mut c_char {
        let Some(transaction) = transaction else { return std::ptr::null_mut() };
        let state = transaction.state();
        put(len, state.name.len());
        lasting(&state.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_comes_back() {
        let names: [&[u8]; 5] = [b"t1", b"\xff\x00", b"hex:", b"hex:00", "ä".as_bytes()];
        for name in names {
            assert_eq!(as_given(&as_engine_has_it(name)), name);
        }
        assert_eq!(as_engine_has_it(b"t1"), "t1");
        for other in ["hex:zz", "hex:AB", "hex:+1", "hex:6162"] {
            assert_eq!(as_given(other), other.as_bytes());
        }
    }
}
