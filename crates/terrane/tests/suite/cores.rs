//! Per-core ownership: a session against a model, sessions beside each other, hot partitions, closing,
//! errors.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "cores/support.rs"]
mod support;

use support::{Script, open};
use terrane::cores::{Answer, Cores, Session, Ticket};
use terrane::{Batch, Durability, Env, Kind, TableOptions};
use terrane_base::Rng;

/// The requests that each core has served, once their sum is this large: a request is counted just after its
/// answer was given.
fn served(cores: &Cores, together: u64) -> Vec<u64> {
    let clock = Env::real().clock;
    for _ in 0..20_000 {
        if cores.served().iter().sum::<u64>() >= together {
            break;
        }
        clock.sleep(std::time::Duration::from_millis(1));
    }
    cores.served()
}

#[test]
fn a_session_reads_its_own_writes() {
    for (cores, slots, helping) in [(1, 256, true), (2, 2, true), (2, 64, false), (3, 16, true)] {
        let (_dir, db) = open();
        let tables = [db.default_table().clone(), db.table_or_create("ranged").unwrap()];
        let builder = Cores::builder(&db).cores(cores).slots(slots).helping(helping).pinned(slots == 16);
        let splits: [&[u8]; 3] = [b"key03", b"key06", b"key08"];
        let cores = builder.table(&tables[0]).ranges(&tables[1], &splits).build().unwrap();
        let mut script = Script::new(&db, &cores, &tables, slots as u64);
        script.run(4000);
        script.collect_answers();
        script.compare();
    }
}

#[test]
fn sessions_beside_each_other_keep_to_their_own_order() {
    let (_dir, db) = open();
    let cores = Cores::builder(&db).cores(2).slots(32).ranges(db.default_table(), &[b"1"]).build().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let (cores, db) = (&cores, &db);
            scope.spawn(move || {
                let table = db.default_table();
                let mut session = cores.session().unwrap();
                let mut rng = Rng::new(u64::from(thread));
                for round in 0..500u32 {
                    let key = [b'0' + rng.below(2) as u8, thread];
                    session.put(table, key, round.to_be_bytes(), Durability::Buffered).unwrap();
                    let asked = session.get(table, key).unwrap();
                    let mut seen = false;
                    session.finish(&mut |ticket, answer| {
                        if let Answer::Value(value) = answer.unwrap() {
                            assert_eq!((ticket, value), (asked, Some(&round.to_be_bytes()[..])));
                            seen = true;
                        }
                    });
                    assert!(seen);
                }
            });
        }
    });
    assert_eq!(served(&cores, 4 * 500 * 2).iter().sum::<u64>(), 4 * 500 * 2);
}

#[test]
fn requests_that_arrive_together_are_done_together() {
    let (_dir, db) = open();
    let cores = Cores::builder(&db).cores(1).table(db.default_table()).build().unwrap();
    let mut session = cores.session().unwrap();
    for number in 0..16u8 {
        session.put(db.default_table(), [number], b"v", Durability::Synced).unwrap();
    }
    let (before, visible) = (db.stats().batches_written, db.snapshot().seq());
    let mut positions = Vec::new();
    session.finish(&mut |ticket, answer| {
        let Answer::Written(seq) = answer.unwrap() else { panic!("a put is written") };
        positions.push((ticket.number(), seq.0));
    });
    assert_eq!(db.stats().batches_written - before, 1, "one commit");
    let expected: Vec<_> = (0..16).map(|number| (number, visible.0 + 1 + number)).collect();
    assert_eq!(positions, expected);
}

#[test]
fn a_session_that_writes_much_holds_up_no_other() {
    let (_dir, db) = open();
    let cores = Cores::builder(&db).cores(1).slots(256).table(db.default_table()).build().unwrap();
    let (mut busy, mut other) = (cores.session().unwrap(), cores.session().unwrap());
    // A commit takes 31 of these; requests for eight commits wait.
    const PUTS_PER_COMMIT: u64 = 31;
    let value = [7; 4100];
    while busy.put(db.default_table(), b"busy", value, Durability::Buffered).is_ok() {}
    other.put(db.default_table(), b"other", value, Durability::Buffered).unwrap();
    // What became visible before the put was seen counts for no session, however late this thread submits and
    // looks.
    other.flush();
    let before = db.snapshot().seq().0;
    let mut written = Vec::new();
    other.wait(&mut |_, answer| {
        let Answer::Written(seq) = answer.unwrap() else { panic!("a put is written") };
        written.push(seq.0);
    });
    assert_eq!(written.len(), 1);
    let earlier = written[0].saturating_sub(before);
    assert!(earlier <= 3 * PUTS_PER_COMMIT, "{earlier} puts of the busy session came before the other's");
    busy.finish(&mut |_, answer| assert!(answer.is_ok()));
}

#[test]
fn batches_over_several_cores_follow_earlier_requests() {
    let (_dir, db) = open();
    let other = db.table_or_create("other").unwrap();
    let cores = Cores::builder(&db).cores(2).table(db.default_table()).table(&other).build().unwrap();
    let mut session = cores.session().unwrap();
    for round in 0..50u8 {
        session.put(db.default_table(), b"a", b"early", Durability::Buffered).unwrap();
        session.put(&other, b"b", b"early", Durability::Buffered).unwrap();
        let mut batch = Batch::new();
        batch.put(db.default_table(), b"a", [round]).unwrap();
        batch.put(&other, b"b", [round]).unwrap();
        assert_eq!(session.write(&batch, Durability::Buffered).unwrap_err().kind(), Kind::Invalid);
        let before = db.snapshot().seq();
        let seq = session.write_across(&batch, Durability::Buffered).unwrap();
        assert!(seq > before);
        let asked = [session.get(db.default_table(), b"a").unwrap(), session.get(&other, b"b").unwrap()];
        session.finish(&mut |ticket, answer| match answer.unwrap() {
            Answer::Value(value) => {
                assert_eq!((asked.contains(&ticket), value), (true, Some(&[round][..])));
            }
            answer => assert!(matches!(answer, Answer::Written(_))),
        });
    }
}

#[test]
fn hot_partitions_are_read_by_every_core() {
    let (_dir, db) = open();
    let tables = [db.table_or_create("hot").unwrap(), db.table_or_create("cold").unwrap()];
    // The hot table belongs to core 1, so that a waiting session comes to the other core first.
    let cores = Cores::builder(&db).cores(2).slots(64).table(&tables[1]).table(&tables[0]).build().unwrap();
    assert_eq!(cores.core_of(&tables[0], b"").unwrap(), 1);
    let mut script = Script::new(&db, &cores, &tables[..1], 48);
    script.run(6000);
    assert!(cores.is_spread(&tables[0], b"").unwrap());
    script.run(6000);
    script.collect_answers();
    script.compare();
    let before = served(&cores, 12_000);
    let mut session = cores.session().unwrap();
    for number in 0..4000 {
        session.get(&tables[0], b"key07").unwrap();
        if number % 32 == 31 {
            session.finish(&mut |_, answer| assert!(answer.is_ok()));
        }
    }
    let served = served(&cores, before.iter().sum::<u64>() + 4000);
    let served: Vec<_> = served.iter().zip(before).map(|(after, before)| after - before).collect();
    assert_eq!(served.iter().sum::<u64>(), 4000);
    assert!(served[0] > 1000, "the core that owns nothing hot reads, too: {served:?}");
    for number in 0..20_000u64 {
        let table = &tables[number as usize % 2];
        session.get(table, b"k").unwrap();
        if number % 32 == 31 {
            session.finish(&mut |_, answer| assert!(answer.is_ok()));
        }
    }
    assert!(!cores.is_spread(&tables[0], b"").unwrap(), "even load is gathered again");
}

#[test]
fn without_spreading_a_hot_partition_stays_where_it_is() {
    let (_dir, db) = open();
    let table = db.default_table();
    let cores = Cores::builder(&db).cores(2).spreading(false).table(table).build().unwrap();
    let mut session = cores.session().unwrap();
    for _ in 0..100 {
        for _ in 0..100 {
            session.get(table, b"k").unwrap();
        }
        session.finish(&mut |_, answer| assert!(answer.is_ok()));
    }
    assert_eq!(served(&cores, 10_000), [10_000, 0]);
}

#[test]
fn accepted_requests_are_done_at_a_close() {
    for round in 0..50u64 {
        let (_dir, db) = open();
        let cores = Cores::builder(&db).cores(2).ranges(db.default_table(), &[&[128]]).build().unwrap();
        let mut session = cores.session().unwrap();
        for number in 0..=254u8 {
            session.put(db.default_table(), [number], [1], Durability::Buffered).unwrap();
        }
        if round % 3 == 0 {
            session.flush();
        }
        cores.close();
        let (mut done, mut refused) = (Vec::new(), 0);
        assert_eq!(session.outstanding(), 255);
        session.finish(&mut |ticket, answer| match answer {
            Ok(Answer::Written(_)) => done.push(ticket.number() as u8),
            Ok(_) => panic!("a put is written"),
            Err(error) => {
                assert_eq!(error.kind(), Kind::Cancelled);
                refused += 1;
            }
        });
        assert_eq!(done.len() + refused, 255, "everything is answered");
        assert!(done.len() >= 2 * 96, "handed over before the close: {}", done.len());
        assert!(round % 3 != 0 || refused == 0);
        for number in 0..=254u8 {
            assert_eq!(db.get([number]).unwrap().is_some(), done.contains(&number), "key {number}");
        }
        assert_eq!(session.get(db.default_table(), b"k").map(drop).is_err(), refused > 0);
        session.finish(&mut |_, answer| assert_eq!(answer.unwrap_err().kind(), Kind::Cancelled));
    }
}

#[test]
fn a_session_that_is_dropped_is_served_to_the_end() {
    let (_dir, db) = open();
    let cores = Cores::builder(&db).cores(1).table(db.default_table()).build().unwrap();
    let mut session = cores.session().unwrap();
    for number in 0..20u8 {
        session.put(db.default_table(), [number], b"v", Durability::Buffered).unwrap();
    }
    drop(session);
    cores.close();
    assert!((0..20u8).all(|number| db.get([number]).unwrap().is_some()));
}

#[test]
fn rows_and_large_values() {
    let (_dir, db) = open();
    let table = db.default_table();
    let cores = Cores::builder(&db).cores(2).ranges(table, &[b"m"]).build().unwrap();
    let mut session = cores.session().unwrap();
    let large = vec![7; 300_000];
    for key in [b"a", b"c", b"x"] {
        session.put(table, key, &large, Durability::Buffered).unwrap();
    }
    session.finish(&mut |_, answer| assert!(answer.is_ok()));
    let mut keys_of = |ask: &dyn Fn(&mut Session) -> terrane::Result<Ticket>| {
        ask(&mut session).unwrap();
        let mut keys = Vec::new();
        session.finish(&mut |_, answer| match answer.unwrap() {
            Answer::Rows(rows) => {
                assert_eq!(rows.len(), rows.iter().count());
                keys.extend(
                    rows.iter().inspect(|(_, value)| assert_eq!(*value, large)).map(|(key, _)| key[0]),
                );
            }
            answer => panic!("{answer:?}"),
        });
        String::from_utf8(keys).unwrap()
    };
    assert_eq!(keys_of(&|session| session.scan(table, b"b", 10)), "cx", "beyond the range, too");
    assert_eq!(keys_of(&|session| session.scan(table, b"", 2)), "ac");
    assert_eq!(keys_of(&|session| session.scan(table, b"", 0)), "");
    assert_eq!(keys_of(&|session| session.scan_back(table, b"d", 10)), "ca");
}

#[test]
fn errors_are_those_of_their_requests() {
    let (_dir, db) = open();
    let table = db.default_table();
    let (dropped, unnamed) = (db.table_or_create("dropped").unwrap(), db.table_or_create("unnamed").unwrap());
    let builder = Cores::builder(&db).cores(1).slots(4);
    let kind = |builder: terrane::cores::CoresBuilder| builder.build().unwrap_err().kind();
    assert_eq!(kind(builder.clone().cores(0)), Kind::Invalid);
    assert_eq!(kind(builder.clone().slots(3)), Kind::Invalid);
    assert_eq!(kind(builder.clone().table(table).table(table)), Kind::Invalid);
    assert_eq!(kind(builder.clone().ranges(table, &[b"b", b"a"])), Kind::Invalid);
    let (_other_dir, other) = open();
    assert_eq!(kind(builder.clone().table(other.default_table())), Kind::Invalid);

    let cores = builder.ranges(table, &[b"m"]).table(&dropped).build().unwrap();
    let mut session = cores.session().unwrap();
    assert_eq!(session.get(&unnamed, b"k").unwrap_err().kind(), Kind::Invalid);
    assert_eq!(session.get(other.default_table(), b"k").unwrap_err().kind(), Kind::Invalid);
    let mut foreign = Batch::new();
    foreign.put(other.default_table(), b"k", b"v").unwrap();
    assert_eq!(session.write(&foreign, Durability::Buffered).unwrap_err().kind(), Kind::Invalid);
    assert_eq!(session.get(table, [0; 70_000]).unwrap_err().kind(), Kind::Invalid);
    assert_eq!(session.put(table, [0; 70_000], b"", Durability::Buffered).unwrap_err().kind(), Kind::Invalid);
    assert_eq!(session.multi_get(table, &[b"a", b"z"]).unwrap_err().kind(), Kind::Invalid);
    assert_eq!(session.outstanding(), 0, "a request that is not submitted has no answer");

    db.drop_table("dropped").unwrap();
    let good = session.put(table, b"k", b"v", Durability::Buffered).unwrap();
    let bad = [
        session.put(&dropped, b"k", b"v", Durability::Buffered).unwrap(),
        session.get(&dropped, b"k").unwrap(),
    ];
    let read = session.get(table, b"k").unwrap();
    assert_eq!(session.get(table, b"k").unwrap_err().kind(), Kind::Busy);
    session.finish(&mut |ticket, answer| match answer {
        Ok(_) => assert!(ticket == good || ticket == read),
        Err(error) => assert_eq!((bad.contains(&ticket), error.kind()), (true, Kind::NotFound)),
    });
    assert_eq!(db.get(b"k").unwrap().as_deref(), Some(&b"v"[..]));

    let again = db.create_table("dropped", &TableOptions::new()).unwrap();
    assert_eq!(session.get(&again, b"k").unwrap_err().kind(), Kind::Invalid, "another table of that name");
}

#[test]
fn a_lock_holds_up_no_request_that_needs_it_not() {
    let (_dir, db) = open();
    let table = db.default_table();
    let cores = Cores::builder(&db).cores(1).table(table).build().unwrap();
    let mut session = cores.session().unwrap();
    let concurrency = terrane::Concurrency::Pessimistic;
    let options = terrane::TransactionOptions { concurrency, ..Default::default() };
    let transaction = db.transaction(&options).unwrap();
    transaction.get_for_update(table, b"locked", true).unwrap();
    let keys: [&[u8]; 4] = [b"a", b"locked", b"b", b"c"];
    let tickets = keys.map(|key| session.put(table, key, b"v", Durability::Buffered).unwrap());
    session.finish(&mut |ticket, answer| match answer {
        Ok(_) => assert_ne!(ticket, tickets[1]),
        Err(error) => assert_eq!((ticket, error.kind()), (tickets[1], Kind::TimedOut), "{error}"),
    });
    let is_there = keys.map(|key| db.get(key).unwrap().is_some());
    assert_eq!(is_there, [true, false, true, true]);
    drop(transaction);
    session.put(table, b"locked", b"v", Durability::Buffered).unwrap();
    session.finish(&mut |_, answer| assert!(answer.is_ok()));
    assert!(db.get(b"locked").unwrap().is_some());
}
