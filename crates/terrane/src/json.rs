//! JSON merge patch (RFC 7396): each operand is a patch; `null` removes a member, an object is merged,
//! anything else replaces.
//!
//! A patch that replaces a value by an object cannot be distinguished from one that merges an object into it.
//! So two patches are folded into one only if no object of the newer one meets a non-object of the older one.

use serde_json::{Map, Value};
use terrane_base::{Error, MergeOperator, Result};

#[cfg(test)]
mod tests;

/// The operator `json_merge_patch`.
#[derive(Debug)]
pub(crate) struct JsonMergePatch;

impl MergeOperator for JsonMergePatch {
    fn name(&self) -> &str {
        "json_merge_patch"
    }

    fn full(&self, _key: &[u8], base: Option<&[u8]>, operands: &[&[u8]], out: &mut Vec<u8>) -> Result<()> {
        let mut document = base.map_or(Ok(Value::Null), parse)?;
        for operand in operands {
            apply(&mut document, parse(operand)?);
        }
        write(&document, out)
    }

    fn partial(&self, _key: &[u8], operands: &[&[u8]], out: &mut Vec<u8>) -> Result<bool> {
        let mut patches = operands.iter();
        let mut patch = patches.next().map_or(Ok(Value::Null), |first| parse(first))?;
        for newer in patches {
            match compose(patch, parse(newer)?) {
                Some(composed) => patch = composed,
                None => return Ok(false),
            }
        }
        write(&patch, out).map(|()| true)
    }

    fn check_operand(&self, operand: &[u8]) -> Result<()> {
        parse(operand).map(drop)
    }

    fn check_value(&self, value: &[u8]) -> Result<()> {
        parse(value).map(drop)
    }
}

/// As RFC 7396, section 2. The depth is bounded by the parser.
fn apply(target: &mut Value, patch: Value) {
    let Value::Object(members) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(object) = target else { return };
    for (name, member) in members {
        if member.is_null() {
            object.remove(&name);
        } else {
            apply(object.entry(name).or_insert(Value::Null), member);
        }
    }
}

/// The patch that does what `older` and then `newer` do, if there is one.
fn compose(older: Value, newer: Value) -> Option<Value> {
    let Value::Object(members) = newer else { return Some(newer) };
    let Value::Object(mut object) = older else { return None };
    for (name, member) in members {
        let composed = match object.remove(&name) {
            Some(before) => compose(before, member)?,
            None => member,
        };
        object.insert(name, composed);
    }
    Some(Value::Object(object))
}

fn parse(bytes: &[u8]) -> Result<Value> {
    serde_json::from_slice(bytes).map_err(|error| Error::invalid(format!("not JSON: {error}")))
}

fn write(value: &Value, out: &mut Vec<u8>) -> Result<()> {
    serde_json::to_writer(out, value).map_err(|error| Error::invalid(format!("JSON: {error}")))
}
