//! Writes that do not wait: refused while writers are held back, admitted at the allowed rate, and never
//! partly visible.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use std::sync::Arc;
use std::time::Duration;

use support::{get, open, small_options};
use terrane_base::{Batch, Kind, TableId};
use terrane_device::MemDisk;
use terrane_engine::Engine;

fn batch(number: u64) -> Batch {
    let mut batch = Batch::new();
    batch.put(TableId::DEFAULT, &number.to_be_bytes(), &[7; 4000]).unwrap();
    batch
}

fn is_there(engine: &Arc<Engine>, number: u64) -> bool {
    let table = engine.catalog().require("default").unwrap();
    get(engine, &table, &number.to_be_bytes()).unwrap().is_some()
}

#[test]
fn a_write_that_would_wait_for_memory_is_refused_and_not_written() {
    let engine = open(MemDisk::new(), &small_options()).unwrap();
    engine.set_background_paused(true);
    let mut refused = None;
    for number in 0..10_000 {
        // The allowed rate is not zero before memory is full: a short wait is enough until then.
        match engine.write_within(&batch(number), false, Duration::from_millis(number % 2 * 500)) {
            Ok(_) => {
                assert!(is_there(&engine, number));
                assert!(engine.debt() < 1.25, "admitted though memory is full");
            }
            Err(error) => {
                assert_eq!(error.kind(), Kind::Busy, "{error}");
                assert!(!is_there(&engine, number));
                if error.to_string().contains("write memory is full") {
                    refused = Some(number);
                    break;
                }
            }
        }
    }
    let number = refused.expect("memory is full at last");
    let before = engine.visible();
    for wait_max in [0, 5, 50] {
        let refused = engine.write_within(&batch(number), false, Duration::from_millis(wait_max));
        assert_eq!(refused.unwrap_err().kind(), Kind::Busy);
    }
    assert_eq!(engine.visible(), before);
    // With a background that works there is room again.
    engine.set_background_paused(false);
    engine.write_within(&batch(number), true, Duration::from_secs(3600)).unwrap();
    assert!(is_there(&engine, number));
    engine.close().unwrap();
    let error = engine.write_within(&batch(number), false, Duration::ZERO).unwrap_err();
    assert_eq!(error.kind(), Kind::Cancelled);
}

#[test]
fn without_debt_no_write_is_refused() {
    let engine = open(MemDisk::new(), &small_options()).unwrap();
    // A flush under way whose thread has no turn is a slow one, and writers go as slowly.
    engine.set_background_paused(true);
    for number in 0..100 {
        engine.write_within(&batch(number), number % 10 == 0, Duration::ZERO).unwrap();
    }
    assert!((0..100).all(|number| is_there(&engine, number)));
    // All of it leaves memory at once.
    engine.set_background_paused(false);
    engine.flush().unwrap();
    assert!((0..100).all(|number| is_there(&engine, number)));
    engine.close().unwrap();
}
