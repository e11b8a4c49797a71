//! A server that refuses a request instead of letting it wait.

use std::time::Duration;

use terrane::{Batch, Db, Durability, Kind, Options, Result};

/// The answer to a request.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Done,
    /// The client is to come again later: nothing was written.
    TooBusy,
}

fn serve(db: &Db, key: &[u8], value: &[u8]) -> Result<Answer> {
    let mut batch = Batch::new();
    batch.put(db.default_table(), key, value)?;
    // The write waits for the throttle for 20 ms at most; if it would have to wait longer, it is refused at
    // once.
    match db.write_with_deadline(&batch, Durability::Buffered, Duration::from_millis(20)) {
        Ok(_) => Ok(Answer::Done),
        Err(error) if error.kind() == Kind::Busy => Ok(Answer::TooBusy),
        Err(error) => Err(error),
    }
}

pub(crate) fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let options = Options { memory_bytes: 32 << 20, ..Options::default() };
    let db = Db::open_with(dir.path().join("data"), &options)?;
    // Nothing is flushed while the background is paused, so memory runs full.
    db.pause_background();
    let mut served = 0u64;
    while serve(&db, &served.to_be_bytes(), &[7; 4096])? == Answer::Done {
        served += 1;
    }
    println!("{served} requests at once, then the pressure was {:.2}", db.pressure());

    // A caller that may lose a write asks not to wait at all.
    let mut sample = Batch::new();
    sample.put(db.default_table(), "sample", "value")?;
    if let Err(error) = db.try_write(&sample, Durability::Buffered) {
        println!("left out: {error}");
    }

    // Once the background works there is room again.
    db.resume_background();
    db.flush()?;
    db.wait_until_quiescent()?;
    assert_eq!(serve(&db, b"later", b"value")?, Answer::Done);
    db.close()
}
