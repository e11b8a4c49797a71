//! Copies that stop in the middle, and rows that no table can have.

use terrane::{Batch, Durability};

use super::*;

const ROWS: u32 = 3000;

/// A source that our own library reads, which cargo puts beside the tests.
fn source(directory: &Path) -> Source {
    let path = directory.join("old");
    let db = Db::open(&path).expect("made");
    let more = db.create_table("more", &TableOptions::new()).expect("made");
    let mut batch = Batch::new();
    for n in 0..ROWS {
        batch.put(db.default_table(), n.to_be_bytes(), n.to_string().as_bytes()).expect("short");
        batch.put(&more, n.to_be_bytes(), b"v").expect("short");
    }
    db.write(&batch, Durability::Synced).expect("written");
    db.close().expect("closed");
    let test = std::env::current_exe().expect("a test has a path");
    let library = test.parent().expect("it lies in a directory").join("librocksdb.so");
    Source::open(&path, Some(&library), "").expect("our own library reads it")
}

fn begin<'d>(db: &'d Db, source: &'d Source, stop: &Arc<AtomicBool>) -> Copy<'d> {
    let state = State::new("old".to_owned(), source.last_change(), operators(source));
    let copy = Copy::begin(db, source, state, stop.clone(), Path::new("new")).expect("a new database");
    copy.expect("it is not complete")
}

/// Asks for a stop when so many rows were shown.
struct StopsAfter<'s> {
    rows: Rows<'s>,
    left: u32,
    stop: Arc<AtomicBool>,
}

impl Scan for StopsAfter<'_> {
    fn next_row(&mut self) -> Result<Option<Shown<'_>>, Failure> {
        self.left -= 1;
        if self.left == 0 {
            self.stop.store(true, Ordering::Relaxed);
        }
        Scan::next_row(&mut self.rows)
    }
}

#[test]
fn a_copy_stops_behind_the_row_where_it_is_asked_to_and_goes_on_there() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let source = source(directory.path());
    let index = source.families().iter().position(|family| family.name == "more").expect("it is there");
    let db = Db::open(directory.path().join("new")).expect("made");
    let stop = Arc::new(AtomicBool::new(false));
    let mut copy = begin(&db, &source, &stop);
    let target = table(&db, "more", Order::Bytewise).expect("made");
    let mut rows = StopsAfter { rows: source.rows(index, None), left: 1234, stop: stop.clone() };
    let stopped = copy.load_rows(index, &target, &mut rows).expect_err("it was asked to stop");
    assert_eq!(stopped.code, Code::Stopped, "{}", stopped.message);
    assert!(stopped.message.contains("1,234 rows"), "{}", stopped.message);
    drop(copy);
    assert_eq!(target.iter().count(), 1234);

    // Asked before the first row: all tables are there, and nothing more is loaded.
    let mut copy = begin(&db, &source, &stop);
    assert_eq!(copy.state.families[index].tally.rows, 1234, "it knows the copied rows");
    assert_eq!(copy.copy_all().expect_err("it was asked to stop").code, Code::Stopped);
    drop(copy);
    assert_eq!(target.iter().count(), 1234);

    stop.store(false, Ordering::Relaxed);
    let mut copy = begin(&db, &source, &stop);
    copy.copy_all().and_then(|()| copy.compare()).expect("it goes on to the end");
    assert!(copy.state.complete && copy.state.rows() == u64::from(2 * ROWS));
    assert_eq!((target.iter().count(), db.default_table().iter().count()), (3000, 3000));
}

#[test]
fn tables_are_made_before_the_first_load() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let source = source(directory.path());
    let db = Db::open(directory.path().join("new")).expect("made");
    let mut copy = begin(&db, &source, &Arc::new(AtomicBool::new(true)));
    assert_eq!(copy.copy_all().expect_err("it was asked to stop").code, Code::Stopped);
    assert!(source.families().iter().all(|family| db.table(&family.name).is_ok()), "{:?}", db.tables());
    assert_eq!(copy.state.rows(), 0);
}

/// One row whose key is too long.
struct TooLong(Vec<u8>);

impl Scan for TooLong {
    fn next_row(&mut self) -> Result<Option<Shown<'_>>, Failure> {
        Ok(Some((&self.0, b"v")))
    }
}

#[test]
fn a_row_that_no_table_can_have_is_named() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let source = source(directory.path());
    let db = Db::open(directory.path().join("new")).expect("made");
    let mut copy = begin(&db, &source, &Arc::default());
    let mut rows = TooLong(vec![b'k'; terrane_base::key::KEY_BYTES_MAX + 1]);
    let refused = copy.load_rows(0, db.default_table(), &mut rows).expect_err("too long");
    let name = format!("column family {:?}", source.families()[0].name);
    assert!(refused.message.contains(&name) && refused.message.contains("kkk"), "{}", refused.message);
    assert!(refused.message.len() < 1000, "only the front of it is shown");
}
