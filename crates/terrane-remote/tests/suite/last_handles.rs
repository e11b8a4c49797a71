//! The last handle of a database of a bucket, dropped on a thread of its background.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use terrane::{Db, Kind};
use terrane_base::env::Env;
use terrane_base::sync::Mutex;
use terrane_remote::bucket::MemoryBucket;
use terrane_remote::{Bucket, Create, Deployment, Listed, Pending};

use crate::databases::{Fixture, LOOKS_MAX, check, deployment, put};

/// Drops what it is given in the next call on a thread of this name.
#[derive(Debug)]
struct DropsIn {
    inner: MemoryBucket,
    thread: &'static str,
    db: Mutex<Option<Db>>,
}

impl DropsIn {
    fn look(&self) {
        if std::thread::current().name() == Some(self.thread) {
            drop(self.db.lock().take());
        }
    }
}

impl Bucket for DropsIn {
    fn url(&self) -> &str {
        self.inner.url()
    }

    fn begin_create(&self, name: &str, parts: Vec<Bytes>) -> Pending<Create> {
        self.inner.begin_create(name, parts)
    }

    fn begin_get_ranges(&self, name: &str, ranges: Vec<Range<u64>>) -> Pending<Vec<Bytes>> {
        self.look();
        self.inner.begin_get_ranges(name, ranges)
    }

    fn get_tail(&self, name: &str, bytes_max: u64) -> terrane::Result<Bytes> {
        self.look();
        self.inner.get_tail(name, bytes_max)
    }

    fn list(&self, folder: &str, after: Option<&str>) -> terrane::Result<Vec<Listed>> {
        self.look();
        self.inner.list(folder, after)
    }

    fn delete(&self, names: &[String]) -> terrane::Result<()> {
        self.inner.delete(names)
    }
}

/// The look for another writer is in the middle of a call when the close begins.
#[test]
fn a_database_whose_last_handle_the_look_for_another_writer_drops_is_closed() {
    let inner = MemoryBucket::new(Env::real().clock);
    let bucket = Arc::new(DropsIn { inner, thread: "terrane-writer", db: Mutex::new(None) });
    let place = Fixture::new(bucket.clone());
    let db = place.open_as(&Deployment { writer_check_ms: 1, ..deployment(&place.journal("a")) });
    let db = db.expect("opens");
    put(&db, 0..20, 1);
    *bucket.db.lock() = Some(db);
    let again = (0..LOOKS_MAX).find_map(|_| match place.open_as(&deployment(&place.journal("a"))) {
        Err(error) if error.kind() == Kind::Busy => {
            Env::real().clock.sleep(Duration::from_millis(1));
            None
        }
        opened => Some(opened.expect("it was closed in good order")),
    });
    check(&again.expect("the thread does not wait for itself"), 0..20, 1);
}
