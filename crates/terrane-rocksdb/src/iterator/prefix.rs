//! Staying within the prefix of the last placement.

use std::sync::Arc;

use crate::callbacks::transform::Transform;

/// The prefix that an iterator stays within.
pub(crate) struct WithinPrefix {
    pub(crate) transform: Arc<Transform>,
    /// Prefix of the last seek key; `None` if that key has no prefix.
    pub(crate) current: Option<Vec<u8>>,
}

impl WithinPrefix {
    /// Returns true if the row of a key may be shown.
    pub(crate) fn shows(&self, key: &[u8]) -> bool {
        match &self.current {
            None => true,
            Some(current) => self.transform.prefix(key).as_deref() == Some(current.as_slice()),
        }
    }
}
