//! Pauses and resumes manual compactions.

use crate::db::Database;

export! {
    fn rocksdb_abort_all_compactions(database: Option<&Database>) {
        if let Some(database) = database {
            database.db.pause_background();
            database.db.cancel_compactions();
        }
    }

    fn rocksdb_resume_all_compactions(database: Option<&Database>) {
        if let Some(database) = database {
            database.db.resume_background();
        }
    }
}
