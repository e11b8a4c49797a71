//! Kills a journal service with SIGKILL at random moments while a writer goes on, starts it again on the same
//! directory, and verifies that nothing that was acknowledged is lost: at the end, and now and then by a
//! take-over with an empty directory. `TERRANE_KILLS` sets how many times (default 20).
#![allow(clippy::unwrap_used, reason = "runs processes on files of its own")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use terrane::{Db, Durability};
use terrane_base::Rng;
use terrane_base::env::Env;
use terrane_remote::Deployment;

use crate::common::Shell;

const THREADS: u64 = 4;
/// Kills between two take-overs.
const KILLS_A_WRITER: u64 = 5;

/// Tries to start the service: a client that tries to connect, or another test, may have taken the port of
/// the one before for a moment.
const STARTS_MAX: u32 = 200;

/// A service; it is killed where a test fails, too.
struct Running(Child);

impl Running {
    fn kill(&mut self) {
        // One that has ended is only waited for.
        let _ = self.0.kill();
        self.0.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The service at an address, where port 0 is a free one; its address.
fn serve(shell: &Shell, address: &str) -> (Running, String) {
    let line = format!("serve journal --directory journals --listen {address}");
    for _ in 0..STARTS_MAX {
        let mut command = shell.command(&line);
        let command = command.env_remove("TERRANE_TOKEN").env_remove("TERRANE_TOKEN_FILE");
        let mut child = Running(command.stdout(Stdio::piped()).spawn().unwrap());
        let mut said = String::new();
        BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut said).unwrap();
        if let Some((_, rest)) = said.split_once("grpc://") {
            return (child, rest.split_once(": ").unwrap().0.to_owned());
        }
        assert!(said.is_empty(), "{said:?} is not a line of a service");
        child.0.wait().unwrap();
        Env::real().clock.sleep(Duration::from_millis(50));
    }
    panic!("{line}: did not start");
}

fn deployment(shell: &Shell, address: &str, directory: u64) -> Deployment {
    let bucket = shell.path("bucket").display().to_string();
    let text = format!(
        "[journal]\ndirectory = \"journal{directory}\"\nurl = \"grpc://{address}\"\n\
         [storage]\nurl = \"file://{bucket}\"\nprefix = \"app\"\nprobe = false\n\
         [options]\nmemory_bytes = \"32MiB\"\nclose_flush = false\n"
    );
    let name = format!("app{directory}.toml");
    shell.file(&name, text);
    Deployment::read(&shell.path(&name)).expect("a deployment")
}

fn key(thread: u64, number: u64) -> String {
    format!("{thread}/{number:08}")
}

/// Puts durably until `stop` is set; counts the acknowledged puts.
fn write(db: &Db, thread: u64, acknowledged: &AtomicU64, stop: &AtomicBool) {
    while !stop.load(Ordering::Acquire) {
        let number = acknowledged.load(Ordering::Acquire);
        let value = [number.to_le_bytes(); 12].concat();
        db.default_table()
            .put_with(key(thread, number), value, Durability::Synced)
            .expect("it is tried again");
        acknowledged.store(number + 1, Ordering::Release);
    }
}

fn check(db: &Db, acknowledged: &[AtomicU64]) {
    for (thread, count) in acknowledged.iter().enumerate() {
        for number in 0..count.load(Ordering::Acquire) {
            let found = db.get(key(thread as u64, number)).expect("reads");
            let expected = [number.to_le_bytes(); 12].concat();
            assert!(
                found.as_deref() == Some(&expected[..]),
                "{} was acknowledged",
                key(thread as u64, number)
            );
        }
    }
}

#[test]
fn a_service_that_is_killed_loses_nothing_that_was_acknowledged() {
    let kills: u64 = std::env::var("TERRANE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let shell = Shell::new();
    let (mut service, address) = serve(&shell, "127.0.0.1:0");
    let clock = Env::real().clock;
    let mut rng = Rng::new(24);
    let acknowledged: Vec<AtomicU64> = (0..THREADS).map(|_| AtomicU64::new(0)).collect();
    for writer in 0..kills.div_ceil(KILLS_A_WRITER) {
        let db = deployment(&shell, &address, writer).open().expect("opens");
        check(&db, &acknowledged);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let spawn = |(thread, count)| {
                let (db, stop) = (&db, &stop);
                scope.spawn(move || write(db, thread as u64, count, stop))
            };
            let threads: Vec<_> = acknowledged.iter().enumerate().map(spawn).collect();
            for _ in 0..KILLS_A_WRITER.min(kills - writer * KILLS_A_WRITER) {
                let sum = || acknowledged.iter().map(|count| count.load(Ordering::Acquire)).sum::<u64>();
                let before = sum();
                // The writer has gone on behind the last kill.
                while sum() < before + 20 {
                    if threads.iter().any(|thread| thread.is_finished()) {
                        stop.store(true, Ordering::Release);
                        panic!("a writer failed");
                    }
                    clock.sleep(Duration::from_millis(1));
                }
                clock.sleep(Duration::from_micros(rng.next_u64() % 30_000));
                service.kill();
                (service, _) = serve(&shell, &address);
            }
            stop.store(true, Ordering::Release);
        });
        check(&db, &acknowledged);
    }
    let last = deployment(&shell, &address, 1000).open().expect("opens with an empty directory");
    check(&last, &acknowledged);
    assert!(last.check(&mut |_, _| ()).expect("reads").findings.is_empty());
    drop((last, service));
}
