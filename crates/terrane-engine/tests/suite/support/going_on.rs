//! A database after its recovery: it must keep working, not only open.

use terrane_base::Rng;
use terrane_base::options::Options;
use terrane_device::MemDisk;

use super::{get, open};

/// Writing goes on where the recovery ended, in the files that are there; and the new rows are durable.
pub(crate) fn go_on(options: &Options, disk: &MemDisk, numbers: &mut Rng, place: &str) {
    let engine = open(disk.clone(), options).unwrap_or_else(|error| panic!("{place}: open: {error}"));
    let table = engine.catalog().require("default").unwrap();
    for number in 0u64..100 {
        let mut value = vec![1; 1000];
        value[..8].copy_from_slice(&number.to_le_bytes());
        engine.put(table.id, b"later", &value, false).unwrap();
        if number == 50 && numbers.one_in(2) {
            engine.flush().unwrap();
        }
    }
    engine.sync().unwrap();
    // At rest: no thread may store through a mapping while an image is taken.
    engine.wait_until_quiescent().unwrap();
    let cut = disk.crash(numbers.next_u64());
    engine.close().unwrap();
    let engine = open(cut, options).unwrap_or_else(|error| panic!("{place}: open after going on: {error}"));
    let table = engine.catalog().require("default").unwrap();
    let found = get(&engine, &table, b"later").unwrap().map(|value| value[..8].to_vec());
    assert_eq!(found, Some(99u64.to_le_bytes().to_vec()), "{place}: written after the recovery");
    let report = engine.check(&mut |_, _| ()).unwrap();
    assert!(report.findings.is_empty(), "{place}: going on: {:?}", report.findings);
    engine.close().unwrap();
}
