//! The bytes of an extent for a copy: checked against what the manifest says of it.

use terrane_base::{Error, Result};
use terrane_format::extent::{ExtentMeta, check};

use crate::shared::Shared;

/// The stored bytes of an extent.
///
/// # Errors
/// `Corrupt`, naming file and offset, if it is damaged; `Gone` if the database is a view, and the process
/// that writes it has used the place again; `Io`.
pub(crate) fn read_sound(shared: &Shared, meta: &ExtentMeta) -> Result<Vec<u8>> {
    let mut bytes = vec![0; meta.bytes as usize];
    let store = &shared.store;
    store.read(meta.id, 0, &mut bytes)?;
    let found = check::verify_ordered(&bytes, meta.id, meta.slots, &meta.collation);
    let is_same = found.and_then(|found| match found == meta.as_written() {
        true => Ok(()),
        false => Err(Error::corrupt("it is not what the manifest says")),
    });
    let is_believed = terrane_base::planted!(BackUpFreedSlots);
    is_same.or_else(|error| if is_believed { Ok(()) } else { Err(error) }).map_err(|error| {
        let (file, offset) = store.place(meta.id, 0);
        // Of a database that another process writes the slots may be in use again.
        store.explain(meta.id, error.context(format!("extent {}", meta.id)).at(file, offset))
    })?;
    Ok(bytes)
}
