//! A device of one megabyte, from the view of its user: it is filled, refuses rows with the remedy, and goes
//! on once rows are deleted.

use terrane::{Db, Error, Kind, MemoryDevice, Options, Result};

const MIB: u64 = 1 << 20;

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// Bytes that no compression makes fewer.
fn value(number: u64) -> Vec<u8> {
    let mut rng = terrane_base::Rng::new(number);
    (0..12).flat_map(|_| rng.next_u64().to_le_bytes()).collect()
}

/// Puts rows from `first` on until the device refuses one; returns its number, and the refusal.
fn fill(db: &Db, first: u64) -> (u64, Error) {
    (first..).find_map(|number| Some((number, db.put(key(number), value(number)).err()?))).unwrap()
}

/// The output of a merge that runs takes room for a while: a write that is refused meanwhile has room later.
fn in_time(attempt: impl Fn() -> Result<()>) {
    let mut refused = None;
    for _ in 0..100_000 {
        match attempt() {
            Err(error) if error.kind() == Kind::Full => refused = Some(error),
            done => return done.unwrap(),
        }
        std::thread::yield_now();
    }
    panic!("it never has room: {refused:?}");
}

fn assert_rows(db: &Db, from: u64, until: u64) {
    let mut rows = db.default_table().iter();
    for number in from..until {
        let row = rows.next().unwrap().unwrap();
        assert!(row.0 == key(number) && row.1 == value(number), "row {number}");
    }
    assert!(rows.next().is_none());
    assert_eq!(db.get(key(from)).unwrap().as_deref(), Some(&value(from)[..]));
}

/// A device on which rows were put until it refused one, and the most of them deleted; the first row that is
/// left and the number of the next one.
fn filled_and_deleted(device: &MemoryDevice) -> (u64, u64) {
    let db = device.open("/data", &Options::default()).unwrap();
    let (count, refused) = fill(&db, 0);
    assert_eq!(refused.kind(), Kind::Full);
    assert!(refused.to_string().contains("free some on the device, or delete rows"), "{refused}");
    assert!(count * 104 > MIB / 3, "{count} rows");
    assert_rows(&db, 0, count);
    let kept = count - count / 8;
    (0..kept).for_each(|number| in_time(|| db.delete(key(number))));
    assert_rows(&db, kept, count);
    db.close().unwrap();
    (kept, count)
}

#[test]
fn a_device_of_one_megabyte_is_filled_and_takes_deletes() {
    let device = MemoryDevice::new(MIB);
    let (kept, count) = filled_and_deleted(&device);
    assert_rows(&device.open("/data", &Options::default()).unwrap(), kept, count);
    assert!(device.used_bytes() <= MIB);
}

#[test]
fn a_device_of_one_megabyte_goes_on_behind_deletes() {
    let device = MemoryDevice::new(MIB);
    let (kept, count) = filled_and_deleted(&device);
    let open = || device.open("/data", &Options::default()).unwrap();
    let db = open();
    in_time(|| db.compact_range(db.default_table(), ..));
    let more = kept + count / 2;
    (count..more).for_each(|number| in_time(|| db.put(key(number), value(number))));
    assert_rows(&db, kept, more.max(count));
    assert!(device.used_bytes() <= MIB);
    db.close().unwrap();
    assert_rows(&open(), kept, more.max(count));
}
