//! Checkpoints.

use super::Database;
use crate::border::Text;
use crate::failure::{Failure, Given};
use crate::files;

/// What makes checkpoints of a database.
pub(crate) struct Checkpoint {
    db: terrane::Db,
}

impl Checkpoint {
    pub(crate) fn of(database: &Database) -> Checkpoint {
        Checkpoint { db: database.db.clone() }
    }
}

export! {
    fn rocksdb_checkpoint_object_create(
        database: Option<&Database>,
        error: ErrPtr<'_>,
    ) -> Option<Box<Checkpoint>> {
        Ok(Some(Box::new(Checkpoint::of(database.given()?))))
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
        checkpoint.given()?.db.checkpoint(path)?;
        Ok(())
    }

    fn rocksdb_checkpoint_object_destroy(checkpoint: Option<Box<Checkpoint>>) {
        drop(checkpoint);
    }
}
