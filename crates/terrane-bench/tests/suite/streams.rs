//! Workloads: their streams follow their definitions.
#![allow(clippy::disallowed_methods, clippy::type_complexity, reason = "a test")]

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::common::data::data;
use crate::common::run::run;
use terrane_bench::generate::catalogue::{self, Kind, find};
use terrane_bench::generate::operation::{Operation, OperationKind};
use terrane_bench::generate::space::KeySpace;
use terrane_bench::generate::stream::Stream;
use terrane_bench::plan::{Data, Distribution, Run, Until, ValueSize};

const KEYS: u64 = 10_000;

fn stream(workload: &str, run: &Run, data: &Data, space: &Arc<KeySpace>, seed: u64) -> Stream {
    Stream::new(find(workload).expect("a sound case"), run, data, space.clone(), seed, 0, 1)
        .expect("a sound case")
}

/// The first operations of a workload over loaded keys; inserts are acknowledged.
fn operations(workload: &str, seed: u64, count: usize) -> Vec<Operation> {
    let space = Arc::new(KeySpace::new(KEYS));
    let mut stream = stream(workload, &run(workload), &data(KEYS), &space, seed);
    let mut operation = Operation::Read(0);
    let mut made = Vec::new();
    while made.len() < count && stream.next(&mut operation) {
        if let Operation::Insert(number, _) = operation {
            space.acknowledge(number);
        }
        made.push(operation.clone());
    }
    made
}

#[test]
fn every_mix_has_its_proportions() {
    const COUNT: usize = 200_000;
    for definition in catalogue::all().iter().filter(|definition| definition.needs_data) {
        let Kind::Stream(mix) = &definition.kind else { continue };
        let made = operations(definition.name, 1, COUNT);
        for kind in OperationKind::ALL {
            let share = made.iter().filter(|made| made.kind() == kind).count() as f64 / COUNT as f64;
            let expected = mix.share(kind);
            assert!((share - expected).abs() < 0.005, "{}: {share} of {kind:?}", definition.name);
        }
        let sum: f64 = mix.shares.iter().map(|(_, share)| share).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{}", definition.name);
    }
}

#[test]
fn ycsb_is_as_its_files_say() {
    use OperationKind::{Insert, Read, ReadModifyWrite, Scan, Update};
    let expected: [(&str, &[(OperationKind, f64)], Distribution); 6] = [
        ("ycsb_a", &[(Read, 0.5), (Update, 0.5)], Distribution::Zipfian(0.99)),
        ("ycsb_b", &[(Read, 0.95), (Update, 0.05)], Distribution::Zipfian(0.99)),
        ("ycsb_c", &[(Read, 1.0)], Distribution::Zipfian(0.99)),
        ("ycsb_d", &[(Read, 0.95), (Insert, 0.05)], Distribution::Latest),
        ("ycsb_e", &[(Scan, 0.95), (Insert, 0.05)], Distribution::Zipfian(0.99)),
        ("ycsb_f", &[(Read, 0.5), (ReadModifyWrite, 0.5)], Distribution::Zipfian(0.99)),
    ];
    for (name, shares, distribution) in expected {
        let definition = find(name).expect("a sound case");
        let Kind::Stream(mix) = &definition.kind else { panic!("{name}") };
        assert_eq!((mix.shares, definition.distribution), (shares, Some(distribution)), "{name}");
    }
}

#[test]
fn scans_of_ycsb_e_are_uniform_from_1_to_100() {
    let mut lengths = [0.0f64; 101];
    let mut scans = 0.0f64;
    for operation in operations("ycsb_e", 2, 400_000) {
        if let Operation::Scan(_, rows, _) = operation {
            lengths[rows as usize] += 1.0;
            scans += 1.0;
        }
    }
    assert_eq!(lengths[0], 0.0);
    let expected = scans / 100.0;
    let chi: f64 = lengths[1..].iter().map(|seen| (seen - expected).powi(2) / expected).sum();
    // 99 degrees of freedom: mean 99, standard deviation 14.
    assert!((chi - 99.0).abs() < 5.0 * 14.0, "{chi}");
}

#[test]
fn mixgraph_has_its_own_sizes_unless_the_data_says() {
    let made = operations("mixgraph", 3, 200_000);
    let sizes: Vec<usize> = made
        .iter()
        .filter_map(|o| if let Operation::Update(_, len) = o { Some(*len) } else { None })
        .collect();
    let mean = sizes.iter().sum::<usize>() as f64 / sizes.len() as f64;
    // The mean of the law is 25.45 / (1 - 0.2615) = 34.5, and half a byte for rounding up.
    assert!((mean - 35.0).abs() < 1.0, "{mean}");
    let definition = find("mixgraph").expect("a sound case");
    assert_eq!(definition.value_bytes_max(&data(1)).expect("a sound case"), 1024);
    let short = Data { value: ValueSize::Pareto { shape: 0.1, scale: 5.0, max: 64 }, ..data(1) };
    assert_eq!(definition.value_bytes_max(&short).expect("a sound case"), 64);
    let long = Data { value: ValueSize::Fixed(4000), ..data(1) };
    assert_eq!(definition.value_bytes_max(&long).expect("a sound case"), 4000);
}

#[test]
fn fills_cover_each_key_once_over_threads() {
    for workload in ["load", "fillseq", "fillrandom", "fillsync"] {
        let space = Arc::new(KeySpace::new(0));
        let mut streams: Vec<Stream> = (0..3)
            .map(|thread| {
                let definition = find(workload).expect("a sound case");
                Stream::new(definition, &run(workload), &data(KEYS), space.clone(), 5, thread, 3)
                    .expect("a sound case")
            })
            .collect();
        let mut numbers = Vec::new();
        let mut operation = Operation::Read(0);
        while streams.iter_mut().any(|stream| {
            let went = stream.next(&mut operation);
            if went {
                let Operation::Insert(number, 100) = operation else { panic!("{operation:?}") };
                space.acknowledge(number);
                numbers.push(number);
            }
            went
        }) {}
        assert_eq!(numbers.is_sorted(), workload == "load" || workload == "fillseq", "{workload}");
        assert_eq!(numbers.len() as u64, KEYS, "{workload}");
        let distinct: BTreeSet<u64> = numbers.into_iter().collect();
        assert_eq!(
            (distinct.len() as u64, *distinct.last().expect("a sound case")),
            (KEYS, KEYS - 1),
            "{workload}"
        );
        assert_eq!((space.count(), space.claimed()), (KEYS, KEYS), "{workload}: inserts go on above");
        assert_eq!(space.claim_insert(), KEYS);
    }
}

#[test]
fn inserts_are_unique_over_threads_and_reads_meet_only_what_exists() {
    const EACH: usize = 60_000;
    let space = Arc::new(KeySpace::new(KEYS));
    let workers: Vec<_> = (0..4)
        .map(|thread| {
            let space = space.clone();
            std::thread::spawn(move || {
                let definition = find("ycsb_d").expect("a sound case");
                let run = run("ycsb_d");
                let mut stream = Stream::new(definition, &run, &data(KEYS), space.clone(), 5, thread, 4)
                    .expect("a sound case");
                let mut operation = Operation::Read(0);
                let mut inserted = Vec::new();
                for _ in 0..EACH {
                    assert!(stream.next(&mut operation));
                    match operation {
                        Operation::Insert(number, _) => {
                            inserted.push(number);
                            space.acknowledge(number);
                        }
                        Operation::Read(number) => assert!(number < space.count()),
                        _ => panic!("{operation:?}"),
                    }
                }
                inserted
            })
        })
        .collect();
    let mut inserted: Vec<u64> =
        workers.into_iter().flat_map(|worker| worker.join().expect("a sound case")).collect();
    inserted.sort_unstable();
    let expected: Vec<u64> = (KEYS..KEYS + inserted.len() as u64).collect();
    assert_eq!(inserted, expected);
    assert_eq!(space.count(), KEYS + inserted.len() as u64, "no acknowledgement is stranded");
}

#[test]
fn the_count_stops_before_unacknowledged_inserts() {
    let space = KeySpace::new(100);
    for _ in 0..3_000_000 {
        space.claim_insert();
    }
    // Over several chunks of bits, backwards.
    for number in (101..2_500_000).rev() {
        space.acknowledge(number);
    }
    assert_eq!(space.count(), 100);
    space.acknowledge(50);
    assert_eq!(space.count(), 100);
    space.acknowledge(100);
    assert_eq!(space.count(), 2_500_000);
    space.acknowledge(100);
    assert_eq!(space.count(), 2_500_000);
}

#[test]
fn the_same_seed_gives_the_same_stream_and_another_another() {
    for definition in catalogue::all().iter().filter(|definition| definition.needs_data) {
        let Kind::Stream(_) = definition.kind else { continue };
        let made = operations(definition.name, 7, 3000);
        assert_eq!(made, operations(definition.name, 7, 3000), "{}", definition.name);
        assert_ne!(made, operations(definition.name, 8, 3000), "{}", definition.name);
    }
    let space = Arc::new(KeySpace::new(KEYS));
    let first = |seed, thread| {
        let definition = find("readrandom").expect("a sound case");
        let run = run("readrandom");
        let mut stream =
            Stream::new(definition, &run, &data(KEYS), space.clone(), seed, thread, 2).expect("a sound case");
        let mut operation = Operation::Read(0);
        (0..100)
            .map(|_| {
                stream.next(&mut operation);
                operation.clone()
            })
            .collect::<Vec<_>>()
    };
    assert_ne!(first(7, 0), first(7, 1));
    assert_ne!(first(7, 1), first(8, 0));
}

#[test]
fn multireads_have_their_keys_and_reuse_the_vector() {
    let space = Arc::new(KeySpace::new(KEYS));
    let mut stream = stream("multireadrandom", &run("multireadrandom"), &data(KEYS), &space, 1);
    let mut operation = Operation::Read(0);
    stream.next(&mut operation);
    let Operation::MultiRead(numbers) = &operation else { panic!("{operation:?}") };
    let place = numbers.as_ptr();
    for _ in 0..100 {
        stream.next(&mut operation);
        let Operation::MultiRead(numbers) = &operation else { panic!("{operation:?}") };
        assert_eq!((numbers.len(), numbers.as_ptr()), (32, place));
        assert!(numbers.iter().all(|number| *number < KEYS));
    }
}

#[test]
fn the_keys_of_a_transaction_differ_also_in_a_smaller_hot_set() {
    let space = Arc::new(KeySpace::new(100));
    let hot = Distribution::HotRange(0.02, 1.0);
    for (distribution, keys) in [(hot, 7), (Distribution::Default, 50)] {
        let run = Run { distribution, transaction_keys: keys, ..run("transactions") };
        let mut stream = stream("transactions", &run, &data(100), &space, 1);
        let mut operation = Operation::Read(0);
        for _ in 0..200 {
            assert!(stream.next(&mut operation));
            let Operation::Transaction(numbers, _) = &operation else { panic!("{operation:?}") };
            let different: std::collections::BTreeSet<_> =
                numbers.iter().filter(|number| **number < 100).collect();
            assert_eq!(different.len(), keys as usize, "{numbers:?}");
        }
    }
}

#[test]
fn a_run_chooses_its_distribution() {
    let space = Arc::new(KeySpace::new(KEYS));
    for workload in ["ycsb_a", "ycsb_d", "readrandom", "mixgraph"] {
        let sequential = Run { distribution: Distribution::Sequential, ..run(workload) };
        let mut stream = stream(workload, &sequential, &data(KEYS), &space, 1);
        let mut operation = Operation::Read(0);
        let mut before = None;
        for _ in 0..1000 {
            stream.next(&mut operation);
            let number = match operation {
                Operation::Read(number) | Operation::Update(number, _) | Operation::Scan(number, ..) => {
                    number
                }
                _ => continue,
            };
            assert_eq!(number, before.map_or(0, |before: u64| before + 1), "{workload}");
            before = Some(number);
        }
    }
}

#[test]
fn new_keys_of_a_counted_run_are_chosen_too() {
    let space = Arc::new(KeySpace::new(1000));
    let counted = Run { until: Until::Operations(20_000), ..run("ycsb_e") };
    let mut stream = stream("ycsb_e", &counted, &data(1000), &space, 1);
    let mut operation = Operation::Read(0);
    let mut new = 0;
    for _ in 0..20_000 {
        stream.next(&mut operation);
        match operation {
            Operation::Insert(number, _) => space.acknowledge(number),
            Operation::Scan(number, ..) => {
                assert!(number < space.count());
                new += u64::from(number >= 1000);
            }
            _ => panic!("{operation:?}"),
        }
    }
    assert!(new > 1000, "{new}");
}

#[test]
fn streams_that_cannot_follow_their_data_are_refused() {
    let space = Arc::new(KeySpace::new(KEYS));
    let refused = |workload: &str, run: &Run, data: &Data, space: &Arc<KeySpace>| {
        Stream::new(find(workload).expect("a sound case"), run, data, space.clone(), 1, 0, 1)
            .unwrap_err()
            .to_string()
    };
    let zipfian = Run { distribution: Distribution::Zipfian(0.99), ..run("load") };
    assert!(refused("load", &zipfian, &data(KEYS), &space).contains("order"));
    let no_rows = Run { scan_rows: 0, ..run("ycsb_e") };
    assert!(refused("ycsb_e", &no_rows, &data(KEYS), &space).contains("scan_rows"));
    let no_keys = Run { multi_get: 0, ..run("multireadrandom") };
    assert!(refused("multireadrandom", &no_keys, &data(KEYS), &space).contains("multi_get"));
    let too_many = Run { transaction_keys: KEYS as u32, ..run("transactions") };
    assert!(refused("transactions", &too_many, &data(KEYS), &space).contains("transaction_keys"));
    assert!(refused("readseq", &run("readseq"), &data(KEYS), &space).contains("readseq"));
    let empty = Arc::new(KeySpace::new(0));
    assert!(refused("ycsb_a", &run("ycsb_a"), &data(KEYS), &empty).contains("load"));
}

#[test]
fn background_writers_overwrite_uniformly() {
    let space = Arc::new(KeySpace::new(KEYS));
    let definition = find("readwhilewriting").expect("a sound case");
    let zipfian = Run { distribution: Distribution::Zipfian(0.99), ..run("readwhilewriting") };
    let mut stream =
        Stream::background(definition, &zipfian, &data(KEYS), space.clone(), 1).expect("a sound case");
    let mut operation = Operation::Read(0);
    let mut counts = vec![0; KEYS as usize];
    for _ in 0..100 * KEYS {
        stream.next(&mut operation);
        let Operation::Update(number, 100) = operation else { panic!("{operation:?}") };
        counts[number as usize] += 1;
    }
    assert!(counts.iter().all(|times| (40..180).contains(times)));
    let none = Stream::background(find("readrandom").expect("a sound case"), &zipfian, &data(KEYS), space, 1);
    assert!(none.unwrap_err().to_string().contains("background"));
}

#[test]
fn an_unknown_workload_names_the_nearest_and_all() {
    for (wrong, right) in [("readrandm", "readrandom"), ("YCSB_A", "ycsb_a"), ("fill_seq", "fillseq")] {
        let message = find(wrong).unwrap_err().to_string();
        assert!(message.contains(&format!("did you mean {right}?")), "{message}");
        assert!(catalogue::all().iter().all(|definition| message.contains(definition.name)), "{message}");
    }
    assert!(!find("qqq").unwrap_err().to_string().contains("did you mean"));
    let names: BTreeSet<&str> = catalogue::all().iter().map(|definition| definition.name).collect();
    assert_eq!(names.len(), catalogue::all().len());
}
