//! An order of keys for tables of a run: every byte takes two. It is the order of bytes, so that the model needs no other,
//! but no key is kept as it is: one that passes the border uncoded in either direction is found.

use std::path::Path;
use std::sync::Arc;

use terrane::{Db, Env, Error, KeyOrder, KeyOrders, Options, Result};
use terrane_device::Disk;

/// The option of a table that has it.
pub(crate) fn option() -> (String, String) {
    ("key_order".to_owned(), Halves.name().to_owned())
}

/// Opens a database of a run.
///
/// # Errors
/// As [`Db::open_with_functions_on`].
pub(crate) fn open(disk: Arc<dyn Disk>, path: impl AsRef<Path>, options: &Options, env: Env) -> Result<Db> {
    Db::open_with_functions_on(disk, path, options, env, orders()?)
}

/// The orders that tables of a run may name.
pub(crate) fn orders() -> Result<KeyOrders> {
    KeyOrders::new().with(Arc::new(Halves))
}

/// The upper half of a byte, then the lower one.
#[derive(Debug)]
struct Halves;

impl KeyOrder for Halves {
    fn name(&self) -> &str {
        "sim.halves"
    }

    fn encode(&self, key: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.encode_prefix(key, out);
        Ok(())
    }

    fn decode(&self, encoded: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let (pairs, rest) = encoded.as_chunks::<2>();
        if !rest.is_empty() || encoded.iter().any(|half| *half > 15) {
            return Err(Error::corrupt("a key that is not made of halves"));
        }
        out.extend(pairs.iter().map(|[upper, lower]| upper << 4 | lower));
        Ok(())
    }

    fn encode_prefix(&self, prefix: &[u8], out: &mut Vec<u8>) -> bool {
        out.extend(prefix.iter().flat_map(|byte| [byte >> 4, byte & 15]));
        true
    }
}
