//! Time to live: for a table, and for single keys.

use std::time::Duration;

use terrane::{Db, Result, TableOptions};

pub(crate) fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = Db::open(dir.path().join("data"))?;

    // Whatever is put into the table lives for half an hour.
    let sessions = db.create_table("sessions", &TableOptions::new().set("time_to_live", "30m")?)?;
    sessions.put("token-1", "ada")?;
    // But for what says otherwise: an hour, or until a moment.
    sessions.put_with_ttl("token-2", "grace", Duration::from_secs(3600))?;
    sessions.put_until("token-3", "alan", Duration::from_secs(1_000_000_000))?; // in 2001

    assert!(sessions.contains("token-1")? && sessions.contains("token-2")?);
    // What has expired is gone for every read at once; compactions give its space back later.
    assert!(!sessions.contains("token-3")?);
    assert_eq!(sessions.iter().count(), 2);

    // For rows that are written from now on. Stored, so it holds after the next opening.
    sessions.set_option("time_to_live", "12h")?;
    sessions.put("token-4", "barbara")?;
    println!("{} sessions", sessions.iter().count());
    db.close()
}
