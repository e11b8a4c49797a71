//! Stands in for an operator that is not registered: it makes no value and combines nothing, so operands stay
//! as they are until the database is opened with the operator.

use std::sync::Arc;

use super::MergeOperator;
use crate::{Error, Result};

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Unknown {
    name: String,
}

impl Unknown {
    pub(super) fn named(name: &str) -> Arc<dyn MergeOperator> {
        Arc::new(Unknown { name: name.to_owned() })
    }

    fn refuse(&self, what: &str) -> Error {
        let name = &self.name;
        Error::invalid(format!(
            "merge operator {name:?} is not registered: open the database with it to {what}"
        ))
    }
}

impl MergeOperator for Unknown {
    fn name(&self) -> &str {
        &self.name
    }

    fn full(&self, _key: &[u8], _base: Option<&[u8]>, _operands: &[&[u8]], _out: &mut Vec<u8>) -> Result<()> {
        Err(self.refuse("read this key"))
    }

    fn check_operand(&self, _operand: &[u8]) -> Result<()> {
        Err(self.refuse("merge"))
    }
}
