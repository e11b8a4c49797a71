//! Traces: recorded operations are read back, and all damage is found.
#![allow(clippy::disallowed_methods, clippy::type_complexity, reason = "a test, on files of its own")]

use std::path::Path;
use std::sync::Arc;

use crate::common::data::data;
use crate::common::run::run;
use proptest::prelude::*;
use terrane_bench::engine::Direction;
use terrane_bench::error::Result;
use terrane_bench::generate::catalogue::find;
use terrane_bench::generate::operation::Operation;
use terrane_bench::generate::space::KeySpace;
use terrane_bench::generate::stream::Stream;
use terrane_bench::trace::{Header, Reader, Writer};

fn header() -> Header {
    Header { data: data(1000), value_bytes_max: 5000 }
}

fn write(path: &Path, threads: &[(u32, Vec<(Operation, u64)>)]) -> u64 {
    let writer = Writer::create(path, &header()).expect("a sound case");
    for (thread, operations) in threads {
        let mut recorder = writer.recorder(*thread);
        operations.iter().for_each(|(operation, micros)| recorder.record(operation, *micros));
    }
    writer.finish().expect("a sound case")
}

/// All that a trace holds, or the first error.
fn read(path: &Path) -> Result<Vec<(u32, Vec<(Operation, u64)>)>> {
    let reader = Reader::open(path)?;
    let mut threads = Vec::new();
    for thread in reader.threads() {
        let mut operations = Vec::new();
        let mut stream = reader.thread(thread);
        let mut operation = Operation::Read(0);
        while let Some(micros) = stream.next(&mut operation)? {
            operations.push((operation.clone(), micros));
        }
        threads.push((thread, operations));
    }
    Ok(threads)
}

fn any_operation() -> impl Strategy<Value = Operation> {
    let key = || prop_oneof![0..100u64, any::<u64>()];
    let length = || prop_oneof![Just(100usize), 0..=5000usize];
    let direction = prop_oneof![Just(Direction::Forward), Just(Direction::Backward)];
    prop_oneof![
        key().prop_map(Operation::Read),
        key().prop_map(Operation::ReadMissing),
        key().prop_map(Operation::Delete),
        (key(), length()).prop_map(|(key, length)| Operation::Update(key, length)),
        (key(), length()).prop_map(|(key, length)| Operation::Insert(key, length)),
        (key(), length()).prop_map(|(key, length)| Operation::ReadModifyWrite(key, length)),
        (key(), prop_oneof![0..100u64, any::<u64>()], direction)
            .prop_map(|(key, rows, direction)| Operation::Scan(key, rows, direction)),
        prop::collection::vec(key(), 1..40).prop_map(Operation::MultiRead),
    ]
}

/// Operations with times that never go back.
fn any_operations() -> impl Strategy<Value = Vec<(Operation, u64)>> {
    let step = prop_oneof![Just(0u64), 0..300u64, 0..1u64 << 40];
    prop::collection::vec((any_operation(), step), 0..200).prop_map(|steps| {
        let mut micros = 0;
        let timed = steps.into_iter().map(|(operation, step)| {
            micros += step;
            (operation, micros)
        });
        timed.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn recorded_operations_are_read_back(first in any_operations(), second in any_operations()) {
        let directory = tempfile::tempdir().expect("a sound case");
        let path = directory.path().join("trace");
        let threads = [(0, first), (7, second)];
        let total = write(&path, &threads);
        let expected: Vec<_> =
            threads.into_iter().filter(|(_, operations)| !operations.is_empty()).collect();
        prop_assert_eq!(total as usize, expected.iter().map(|(_, operations)| operations.len()).sum::<usize>());
        prop_assert_eq!(Reader::open(&path).expect("a sound case").operations(), total);
        prop_assert_eq!(read(&path).expect("a sound case"), expected);
    }

    #[test]
    fn foreign_bytes_are_not_a_trace(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let directory = tempfile::tempdir().expect("a sound case");
        let path = directory.path().join("trace");
        // After a sound header, too: the blocks' heads are read before any checksum.
        write(&path, &[]);
        let sound = std::fs::read(&path).expect("a sound case");
        std::fs::write(&path, &bytes).expect("a sound case");
        prop_assert!(read(&path).is_err());
        let head = [&sound[..sound.len() - 24], &bytes].concat();
        std::fs::write(&path, head).expect("a sound case");
        prop_assert!(read(&path).is_err());
    }
}

/// Some operations of every kind.
fn some() -> Vec<(u32, Vec<(Operation, u64)>)> {
    let first = vec![
        (Operation::Read(5), 10),
        (Operation::Update(3, 100), 12),
        (Operation::MultiRead(vec![1, 900, 3]), 12),
        (Operation::Scan(77, 8, Direction::Backward), 400),
        (Operation::Delete(12), 401),
    ];
    let second = vec![(Operation::Insert(1000, 4000), 3), (Operation::ReadModifyWrite(1, 50), 90_000)];
    vec![(0, first), (1, second)]
}

#[test]
fn every_flipped_bit_is_seen() {
    let directory = tempfile::tempdir().expect("a sound case");
    let path = directory.path().join("trace");
    write(&path, &some());
    assert_eq!(read(&path).expect("a sound case"), some());
    let sound = std::fs::read(&path).expect("a sound case");
    for at in 0..sound.len() {
        for bit in 0..8 {
            let mut damaged = sound.clone();
            damaged[at] ^= 1 << bit;
            std::fs::write(&path, &damaged).expect("a sound case");
            let error = read(&path).expect_err(&format!("byte {at} bit {bit} passes")).to_string();
            assert!(error.contains("trace"), "{error}");
        }
    }
}

#[test]
fn a_cut_trace_and_extra_bytes_are_refused() {
    let directory = tempfile::tempdir().expect("a sound case");
    let path = directory.path().join("trace");
    write(&path, &some());
    let sound = std::fs::read(&path).expect("a sound case");
    for length in 0..sound.len() {
        std::fs::write(&path, &sound[..length]).expect("a sound case");
        assert!(read(&path).is_err(), "cut to {length}");
    }
    std::fs::write(&path, [&sound[..], &[0]].concat()).expect("a sound case");
    assert!(read(&path).unwrap_err().to_string().contains("follow"));
}

/// A sound file with these bytes as the one block's operations.
fn with_block(operations: u32, bytes: &[u8]) -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a sound case");
    let path = directory.path().join("trace");
    write(&path, &[]);
    let mut file = std::fs::read(&path).expect("a sound case");
    file.truncate(file.len() - 24);
    let mut block = [0u32.to_le_bytes(), operations.to_le_bytes()].concat();
    block.extend_from_slice(&1000u64.to_le_bytes());
    block.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    block.extend_from_slice(bytes);
    let mut end = [u32::MAX.to_le_bytes(), [0; 4]].concat();
    end.extend_from_slice(&u64::from(operations).to_le_bytes());
    end.extend_from_slice(&1u32.to_le_bytes());
    for (seed, part) in [(b"TRCB", block), (b"TRCE", end)] {
        file.extend_from_slice(&part);
        let checksum = crc32c::crc32c_append(u32::from_le_bytes(*seed), &part);
        file.extend_from_slice(&checksum.to_le_bytes());
    }
    file
}

#[test]
fn hostile_operations_are_refused() {
    let directory = tempfile::tempdir().expect("a sound case");
    let path = directory.path().join("trace");
    let cases: [(&str, u32, &[u8]); 10] = [
        ("an unknown tag bit", 1, &[0x48, 0]),
        ("no key", 1, &[0x00, 1]),
        ("a key of more than 64 bits", 1, &[8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2]),
        ("a key without end", 1, &[8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0]),
        ("a time past the last", 1, &[0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0]),
        ("a value longer than the longest", 1, &[0x0b, 0, 0x89, 0x27]),
        ("more keys than bytes", 1, &[0x0a, 200, 1, 0, 0]),
        ("no keys", 1, &[0x0a, 0]),
        ("operations that are missing", 2, &[8, 2, 8]),
        ("bytes left over", 1, &[8, 2, 8, 2]),
    ];
    for (what, operations, bytes) in cases {
        std::fs::write(&path, with_block(operations, bytes)).expect("a sound case");
        let error = read(&path).expect_err(what).to_string();
        assert!(error.contains("damaged at offset"), "{what}: {error}");
    }
}

#[test]
fn the_example_of_the_format_page_is_written() {
    let bytes = [0x08, 0x0a, 0x03, 0x02, 0x03, 0x64, 0x1b, 0x02];
    let operations = vec![
        (Operation::Read(5), 1000),
        (Operation::Update(3, 100), 1002),
        (Operation::Update(4, 100), 1002),
    ];
    let directory = tempfile::tempdir().expect("a sound case");
    let path = directory.path().join("trace");
    let threads = vec![(0, operations)];
    write(&path, &threads);
    assert_eq!(std::fs::read(&path).expect("a sound case"), with_block(3, &bytes));
    assert_eq!(read(&path).expect("a sound case"), threads);
}

#[test]
fn an_unfinished_trace_and_another_version_say_so() {
    let directory = tempfile::tempdir().expect("a sound case");
    let path = directory.path().join("trace");
    let writer = Writer::create(&path, &header()).expect("a sound case");
    drop(writer.recorder(0));
    drop(writer);
    assert!(Reader::open(&path).unwrap_err().to_string().contains("interrupted"));
    write(&path, &some());
    let mut bytes = std::fs::read(&path).expect("a sound case");
    bytes[8] = 2;
    std::fs::write(&path, &bytes).expect("a sound case");
    assert!(Reader::open(&path).unwrap_err().to_string().contains("version 2"));
    assert!(Reader::open(&directory.path().join("none")).unwrap_err().to_string().contains("none"));
    assert!(Writer::create(&directory.path().join("no/such"), &header()).is_err());
}

#[test]
fn threads_record_at_once_and_a_stream_comes_back_in_few_bytes() {
    const EACH: u64 = 60_000;
    let data = data(10_000_000);
    let directory = tempfile::tempdir().expect("a sound case");
    let path = directory.path().join("trace");
    let header = Header { data: data.clone(), value_bytes_max: 100 };
    let writer = Arc::new(Writer::create(&path, &header).expect("a sound case"));
    let space = Arc::new(KeySpace::new(data.keys));
    let stream = |thread| {
        let definition = find("ycsb_a").expect("a sound case");
        Stream::new(definition, &run("ycsb_a"), &data, space.clone(), 3, thread, 3).expect("a sound case")
    };
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (writer, mut stream) = (writer.clone(), stream(thread));
            scope.spawn(move || {
                let mut recorder = writer.recorder(thread);
                let mut operation = Operation::Read(0);
                for number in 0..EACH {
                    stream.next(&mut operation);
                    recorder.record(&operation, number * 2);
                }
            });
        }
    });
    let writer = Arc::into_inner(writer).expect("a sound case");
    assert_eq!(writer.finish().expect("a sound case"), 3 * EACH);
    let bytes = std::fs::metadata(&path).expect("a sound case").len() as f64 / (3 * EACH) as f64;
    println!("{bytes:.2} bytes an operation");
    assert!(bytes < 6.5, "{bytes}");
    let reader = Reader::open(&path).expect("a sound case");
    assert_eq!((reader.header(), reader.threads()), (&header, vec![0, 1, 2]));
    for thread in 0..3 {
        let (mut stream, mut recorded) = (stream(thread), reader.thread(thread));
        let (mut made, mut read) = (Operation::Read(0), Operation::Read(0));
        for number in 0..EACH {
            stream.next(&mut made);
            assert_eq!(recorded.next(&mut read).expect("a sound case"), Some(number * 2));
            assert_eq!(made, read);
        }
        assert_eq!(recorded.next(&mut read).expect("a sound case"), None);
    }
    assert_eq!(reader.thread(9).next(&mut Operation::Read(0)).expect("a sound case"), None);
}
