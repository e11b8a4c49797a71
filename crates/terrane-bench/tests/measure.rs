//! The probe sees what a process does, and the description of the machine is one. Nothing here depends on
//! time. A program of its own: the probe measures the whole process.
#![allow(clippy::disallowed_methods, clippy::type_complexity, reason = "a test, on files of its own")]

use std::hint::black_box;
use std::io::Write as _;
use std::sync::Mutex;

use terrane_base::Rng;
use terrane_bench::measure::machine::{describe, free_bytes};
use terrane_bench::measure::process::ProcessProbe;
use terrane_bench::report::model::ProcessUse;

/// The probe measures the whole process: tests that run side by side would see each other.
static ALONE: Mutex<()> = Mutex::new(());

fn probe(work: impl FnOnce()) -> ProcessUse {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let probe = ProcessProbe::start();
    work();
    probe.finish()
}

/// Of a loop that burns: a fraction of a second.
const ROUNDS: u64 = 100_000_000;

fn burn() {
    let mut rng = Rng::new(1);
    for _ in 0..ROUNDS {
        black_box(rng.next_u64());
    }
}

#[test]
fn user_time_includes_ended_threads() {
    let idle = probe(|| ());
    let here = probe(burn);
    let there = probe(|| std::thread::spawn(burn).join().expect("the thread burns"));
    assert!(here.user_seconds > idle.user_seconds + 0.01, "{here:?} against {idle:?}");
    assert!(there.user_seconds > idle.user_seconds + 0.01, "{there:?} against {idle:?}");
    // Where the machine has counters, the loop has at least as many instructions as rounds, on either thread.
    for used in [here, there] {
        assert!(used.instructions.is_none_or(|count| count > ROUNDS), "{used:?}");
    }
}

#[test]
fn peak_memory_is_measured_for_each_probe() {
    const BYTES: usize = 256 << 20;
    let before = probe(|| ());
    let big = probe(|| drop(black_box(vec![1_u8; BYTES])));
    let after = probe(|| ());
    assert!(before.peak_memory_bytes > 0);
    assert!(
        big.peak_memory_bytes >= before.peak_memory_bytes + (BYTES as u64) / 2,
        "{big:?} after {before:?}"
    );
    assert!(big.minor_faults > 0, "{big:?}");
    // Only where the kernel lets the mark be set back.
    let settable = std::fs::OpenOptions::new().write(true).open("/proc/self/clear_refs").is_ok();
    assert!(!settable || after.peak_memory_bytes < big.peak_memory_bytes, "{after:?} after {big:?}");
}

#[test]
fn files_are_bytes_and_waiting_is_a_switch() {
    const BYTES: u64 = 8 << 20;
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().join("file");
    let wrote = probe(|| {
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(&vec![7; BYTES as usize]).unwrap();
        file.sync_all().unwrap();
    });
    let read = probe(|| assert_eq!(std::fs::read(&path).unwrap().len() as u64, BYTES));
    // `None` only where the kernel keeps no account; this one must not say less than was written.
    assert!(wrote.device_bytes_written.is_none_or(|bytes| bytes >= BYTES), "{wrote:?}");
    assert!(read.call_bytes_read.is_none_or(|bytes| bytes >= BYTES), "{read:?}");
    assert!(read.device_bytes_written.is_none_or(|bytes| bytes < BYTES), "{read:?}");
    let waited = probe(|| {
        let (send, receive) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            for _ in 0..100 {
                receive.recv().expect("the sender lives");
            }
        });
        (0..100).for_each(|at| {
            send.send(at).expect("the receiver lives");
            std::thread::yield_now();
        });
        thread.join().expect("it ends");
    });
    assert!(waited.voluntary_switches + waited.involuntary_switches > 0, "{waited:?}");
}

#[test]
fn the_machine_is_described() {
    let directory = tempfile::tempdir().unwrap();
    let machine = describe(&directory.path().join("not").join("yet"));
    assert!(machine.processors >= 1);
    assert!(machine.memory_bytes > 0, "{machine:?}");
    assert!(machine.kernel.starts_with("Linux "), "{machine:?}");
    assert!(machine.file_system.contains('('), "{machine:?}");
    assert!(
        !machine.device.is_empty() && !machine.cpu.is_empty() && !machine.counters.is_empty(),
        "{machine:?}"
    );
    assert!(free_bytes(&directory.path().join("not")).unwrap() > 0);
    assert_eq!(describe(directory.path()).device, machine.device);
    println!("{machine:#?}");
}
