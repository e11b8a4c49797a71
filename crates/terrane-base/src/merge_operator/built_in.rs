//! The built-in merge operators.
//!
//! | name | base and operands | result |
//! |---|---|---|
//! | `counter` | [`counter::encode`]: 8 bytes, little-endian, signed | the sum modulo 2^64; no base is 0 |
//! | `append`, `append:SEPARATOR` | any bytes | all of them, oldest first, the separator in between |
//! | `max`, `min` | any bytes | the greatest or least as unsigned bytes, as keys are ordered |
//!
//! The library adds `json_merge_patch` (RFC 7396) with its feature `json`.
//!
//! The sum wraps around: saturation would depend on the order in which parts are folded, and it would be
//! unknown later which sums were cut.

use std::sync::Arc;

use super::MergeOperator;
use crate::{Error, Result};

/// The values and operands of the operator `counter`.
pub mod counter {
    use crate::{Error, Result};

    /// A number as value or operand.
    #[must_use]
    pub fn encode(number: i64) -> [u8; 8] {
        number.to_le_bytes()
    }

    /// The number that a value or operand stands for.
    ///
    /// # Errors
    /// `Invalid` unless it has 8 bytes.
    pub fn decode(bytes: &[u8]) -> Result<i64> {
        let number = bytes.try_into().map(i64::from_le_bytes);
        number.map_err(|_| Error::invalid(format!("a counter of {} bytes: expected 8", bytes.len())))
    }
}

/// The built-in operator with this name.
#[must_use]
pub fn built_in(name: &str) -> Option<Arc<dyn MergeOperator>> {
    match name {
        "counter" => Some(Arc::new(Counter)),
        "max" => Some(Arc::new(Extreme { name: "max", is_max: true })),
        "min" => Some(Arc::new(Extreme { name: "min", is_max: false })),
        _ => {
            let separator = if name == "append" { "" } else { name.strip_prefix("append:")? };
            super::check_name(name).ok()?;
            Some(Arc::new(Append { name: name.to_owned(), separator: separator.to_owned() }))
        }
    }
}

#[derive(Debug)]
struct Counter;

impl MergeOperator for Counter {
    fn name(&self) -> &str {
        "counter"
    }

    fn full(&self, _key: &[u8], base: Option<&[u8]>, operands: &[&[u8]], out: &mut Vec<u8>) -> Result<()> {
        let mut sum = 0i64;
        for part in base.iter().chain(operands) {
            sum = sum.wrapping_add(counter::decode(part)?);
        }
        out.extend_from_slice(&counter::encode(sum));
        Ok(())
    }

    fn partial(&self, key: &[u8], operands: &[&[u8]], out: &mut Vec<u8>) -> Result<bool> {
        self.full(key, None, operands, out).map(|()| true)
    }

    fn check_operand(&self, operand: &[u8]) -> Result<()> {
        counter::decode(operand).map(drop)
    }

    fn check_value(&self, value: &[u8]) -> Result<()> {
        counter::decode(value).map(drop)
    }
}

#[derive(Debug)]
struct Append {
    name: String,
    separator: String,
}

impl MergeOperator for Append {
    fn name(&self) -> &str {
        &self.name
    }

    fn full(&self, _key: &[u8], base: Option<&[u8]>, operands: &[&[u8]], out: &mut Vec<u8>) -> Result<()> {
        for (at, part) in base.iter().chain(operands).enumerate() {
            if at > 0 {
                out.extend_from_slice(self.separator.as_bytes());
            }
            out.extend_from_slice(part);
        }
        Ok(())
    }

    fn partial(&self, key: &[u8], operands: &[&[u8]], out: &mut Vec<u8>) -> Result<bool> {
        self.full(key, None, operands, out).map(|()| true)
    }
}

#[derive(Debug)]
struct Extreme {
    name: &'static str,
    is_max: bool,
}

impl MergeOperator for Extreme {
    fn name(&self) -> &str {
        self.name
    }

    fn full(&self, _key: &[u8], base: Option<&[u8]>, operands: &[&[u8]], out: &mut Vec<u8>) -> Result<()> {
        let all = base.iter().chain(operands);
        let found = if self.is_max { all.max() } else { all.min() };
        out.extend_from_slice(found.ok_or_else(|| Error::invalid("there is no operand"))?);
        Ok(())
    }

    fn partial(&self, key: &[u8], operands: &[&[u8]], out: &mut Vec<u8>) -> Result<bool> {
        self.full(key, None, operands, out).map(|()| true)
    }
}
