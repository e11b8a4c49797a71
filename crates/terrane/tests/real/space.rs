//! A device that is really full, on a small tmpfs and on ext4 in a file: writes fail as `Full`, reads go on,
//! nothing acknowledged is lost, and freed space lets the same open database write again. And a mount that is
//! read-only.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use terrane::{Db, Error, Kind, Options};
use terrane_base::Rng;

use crate::Outcome;
use crate::workload::tiny_options;

/// Tries, 5 ms and more apart, within which space that came back is found.
const TRIES_MAX: u32 = 6000;

/// A mount that goes when it is dropped.
struct Mount {
    at: PathBuf,
    _dir: tempfile::TempDir,
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = run("umount", &["-l", self.at.to_str().unwrap()]);
    }
}

/// Runs a tool; `Err` says why it could not.
fn run(tool: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(tool).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|why| format!("{tool} is missing: {why}"))?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() { Ok(()) } else { Err(format!("{tool}: {said}")) }
}

fn mount(arguments: &[&str], prepare: impl FnOnce(&Path) -> Result<(), String>) -> Result<Mount, String> {
    let dir = tempfile::tempdir().map_err(|why| why.to_string())?;
    prepare(dir.path())?;
    let at = dir.path().join("mount");
    std::fs::create_dir(&at).map_err(|why| why.to_string())?;
    let image = dir.path().join("image");
    let mut all: Vec<&str> = arguments.to_vec();
    if all.contains(&"loop") {
        all.push(image.to_str().unwrap());
    }
    all.push(at.to_str().unwrap());
    run("mount", &all)?;
    Ok(Mount { at, _dir: dir })
}

fn tmpfs() -> Result<Mount, String> {
    mount(&["-t", "tmpfs", "-o", "size=64m", "tmpfs"], |_| Ok(()))
}

fn ext4() -> Result<Mount, String> {
    mount(&["-o", "loop"], |dir| {
        let image = dir.join("image");
        let file = std::fs::File::create(&image).map_err(|why| why.to_string())?;
        file.set_len(96 << 20).map_err(|why| why.to_string())?;
        run("mkfs.ext4", &["-q", "-F", "-m", "0", image.to_str().unwrap()])
    })
}

/// Kilobytes used and free on a mount.
fn room_of(at: &Path) -> (u64, u64) {
    let output = Command::new("df").args(["-k", "--output=used,avail"]).arg(at).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut numbers = text.split_whitespace().filter_map(|word| word.parse().ok());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

/// The room that is left beside the used bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    Tight,
    Wide,
}

pub(crate) fn on_tmpfs() -> Outcome {
    let mounted = match tmpfs() {
        Ok(mounted) => mounted,
        Err(why) => return Outcome::NotRun(format!("needs the right to mount a tmpfs: {why}")),
    };
    fill(&mounted.at, &|room| {
        let size = room_of(&mounted.at).0 + if room == Room::Tight { 5 << 10 } else { 40 << 10 };
        let at = mounted.at.to_str().unwrap();
        run("mount", &["-o", &format!("remount,size={size}k"), at]).unwrap();
    })
}

pub(crate) fn on_ext4() -> Outcome {
    let mounted = match ext4() {
        Ok(mounted) => mounted,
        Err(why) => return Outcome::NotRun(format!("needs the right to mount ext4 from a file: {why}")),
    };
    // A file beside the database takes the room, and gives it back.
    fill(&mounted.at, &|room| {
        let ballast = mounted.at.join("ballast");
        let _ = std::fs::remove_file(&ballast);
        if room == Room::Tight {
            let size = room_of(&mounted.at).1 - (5 << 10);
            run("fallocate", &["-l", &format!("{size}K"), ballast.to_str().unwrap()]).unwrap();
        }
    })
}

fn value(number: u64) -> Vec<u8> {
    let mut rng = Rng::new(number);
    let mut bytes: Vec<u8> = (0..250).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// Puts value after value until the device refuses; returns the next number and the refusal.
fn put_until_full(db: &Db, mut next: u64) -> (u64, Error) {
    loop {
        match db.put(next.to_be_bytes(), value(next)) {
            Ok(()) => next += 1,
            Err(error) => return (next, error),
        }
        assert!(next < 100_000, "writes never ended");
    }
}

fn read_all(db: &Db, count: u64, place: &str) {
    for number in 0..count {
        let found = db.get(number.to_be_bytes()).unwrap_or_else(|error| panic!("{place}: {error}"));
        assert!(found.is_some_and(|found| *found == *value(number)), "{place}: key {number} of {count}");
    }
    let rows = db.default_table().iter().filter(|row| row.is_ok()).count() as u64;
    // The write that was refused may be there or not.
    assert!(rows == count || rows == count + 1, "{place}: a scan finds {rows} of {count} rows");
}

fn within_a_while(mut attempt: impl FnMut() -> Result<(), Error>) {
    for _ in 0..TRIES_MAX {
        match attempt() {
            Ok(()) => return,
            Err(error) if error.kind() == Kind::Full => std::thread::sleep(Duration::from_millis(5)),
            Err(error) => panic!("{error:?}"),
        }
    }
    panic!("there is space, but a write still fails after {TRIES_MAX} tries");
}

/// Opens the database; a file system may give freed space back a little later.
fn reopen(dir: &Path) -> Db {
    let mut opened = None;
    within_a_while(|| Db::open_with(dir, &tiny_options()).map(|db| opened = Some(db)));
    opened.unwrap()
}

/// Fills the mount, once by letting the database run into the limit and once across a reopening; `resize`
/// sets the room.
fn fill(at: &Path, resize: &dyn Fn(Room)) -> Outcome {
    let dir = at.join("db");
    let mut next = 0;
    for round in 0..2 {
        resize(Room::Tight);
        let place = format!("round {round}");
        let db = Db::open_with(&dir, &tiny_options()).unwrap();
        let (reached, refusal) = put_until_full(&db, next);
        next = reached;
        assert_eq!(refusal.kind(), Kind::Full, "{place}: {refusal}");
        read_all(&db, next, &format!("{place}, full"));
        // A second refusal, so that it is not an accident; and reads again.
        let (again, refusal) = put_until_full(&db, next);
        next = again;
        assert_eq!(refusal.kind(), Kind::Full, "{place}: {refusal}");
        // On the full device a reader can open the database; a writer can, or is refused with `Full`.
        let _ = db.close();
        let readers = Db::open_with(&dir, &Options { read_only: true, ..tiny_options() }).unwrap();
        read_all(&readers, next, &format!("{place}, read only on the full device"));
        readers.close().unwrap();
        let reopened = Db::open_with(&dir, &tiny_options());
        match &reopened {
            Ok(db) => read_all(db, next, &format!("{place}, reopened full")),
            Err(error) => assert_eq!(error.kind(), Kind::Full, "{place}: reopened full: {error}"),
        }
        resize(Room::Wide);
        let db = reopened.unwrap_or_else(|_| reopen(&dir));
        within_a_while(|| db.put(next.to_be_bytes(), value(next)));
        next += 1;
        within_a_while(|| db.flush());
        within_a_while(|| db.wait_until_quiescent());
        read_all(&db, next, &format!("{place}, with room"));
        assert!(db.check(&mut |_, _| ()).unwrap().findings.is_empty(), "{place}");
        db.close().unwrap();
        next = go_on_without_reopening(&dir, next, resize, &place);
    }
    Outcome::Passed(format!("{next} values of 2000 bytes"))
}

/// The same open database fills up and goes on.
fn go_on_without_reopening(dir: &Path, mut next: u64, resize: &dyn Fn(Room), place: &str) -> u64 {
    resize(Room::Tight);
    let db =
        Db::open_with(dir, &tiny_options()).map_err(|error| assert_eq!(error.kind(), Kind::Full, "{place}"));
    let Ok(db) = db else {
        resize(Room::Wide);
        return next;
    };
    let (reached, refusal) = put_until_full(&db, next);
    assert_eq!(refusal.kind(), Kind::Full, "{place}: {refusal}");
    next = reached;
    resize(Room::Wide);
    for _ in 0..20 {
        within_a_while(|| db.put(next.to_be_bytes(), value(next)));
        next += 1;
    }
    within_a_while(|| db.sync());
    read_all(&db, next, &format!("{place}, gone on"));
    db.close().unwrap();
    next
}

/// A device that was remounted for reading only, as a kernel does after an error of the file system.
pub(crate) fn read_only_mount() -> Outcome {
    let mounted = match tmpfs() {
        Ok(mounted) => mounted,
        Err(why) => return Outcome::NotRun(format!("needs the right to mount a tmpfs: {why}")),
    };
    let dir = mounted.at.join("db");
    let db = Db::open_with(&dir, &tiny_options()).unwrap();
    for number in 0..300 {
        db.put(u64::to_be_bytes(number), value(number)).unwrap();
    }
    db.flush().unwrap();
    for number in 300..400 {
        db.put(u64::to_be_bytes(number), value(number)).unwrap();
    }
    db.close().unwrap();
    // A closed database has no file open and none mapped, or the mount would be busy.
    run("mount", &["-o", "remount,ro", mounted.at.to_str().unwrap()]).unwrap();
    let error = Db::open_with(&dir, &tiny_options()).map(drop).unwrap_err();
    assert_eq!(error.kind(), Kind::Io, "{error}");
    assert!(error.to_string().contains(dir.to_str().unwrap()), "{error}");
    let db = Db::open_with(&dir, &Options { read_only: true, ..tiny_options() }).unwrap();
    read_all(&db, 400, "read-only mount");
    assert!(db.check(&mut |_, _| ()).unwrap().findings.is_empty());
    db.close().unwrap();
    run("mount", &["-o", "remount,rw", mounted.at.to_str().unwrap()]).unwrap();
    let db = Db::open_with(&dir, &tiny_options()).unwrap();
    read_all(&db, 400, "writable again");
    db.close().unwrap();
    Outcome::Passed("400 values".into())
}
