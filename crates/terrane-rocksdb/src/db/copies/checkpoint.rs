//! Checkpoints.

use crate::db::Database;
use crate::ffi::failure::{Failure, Given, Result};
use crate::files;

/// Makes checkpoints of a database.
pub(crate) struct Checkpoint {
    pub(crate) db: terrane::Db,
    identity: Option<String>,
}

impl Checkpoint {
    pub(crate) fn of(database: &Database) -> Result<Checkpoint> {
        Ok(Checkpoint { db: database.db.clone(), identity: database.kept_identity()? })
    }
}

export! {
    fn rocksdb_checkpoint_object_create(
        database: Option<&Database>,
        error: ErrPtr<'_>,
    ) -> Option<Box<Checkpoint>> {
        Ok(Some(Box::new(Checkpoint::of(database.given()?)?)))
    }

    fn rocksdb_checkpoint_create(
        checkpoint: Option<&Checkpoint>,
        path: Text<'_>,
        _log_size_for_flush: u64,
        error: ErrPtr<'_>,
    ) {
        let path = path.utf8()?;
        if files::is_there(path.as_ref()) {
            return Err(Failure::invalid("Directory exists"));
        }
        let checkpoint = checkpoint.given()?;
        checkpoint.db.checkpoint(path)?;
        match &checkpoint.identity {
            Some(identity) => files::write_identity(path.as_ref(), identity),
            None => Ok(()),
        }
    }

    fn rocksdb_checkpoint_object_destroy(checkpoint: Option<Box<Checkpoint>>) {
        drop(checkpoint);
    }
}
