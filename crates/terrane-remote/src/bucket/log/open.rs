//! An opening: reads all files, cuts off what was never durable, and goes on behind it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use terrane_base::env::Env;
use terrane_base::sync::atomic::AtomicBool;
use terrane_base::sync::{Condvar, Mutex};
use terrane_base::{Error, Kind, Result};
use terrane_device::{Disk, File, OpenMode};

use super::group::{Current, Writer};
use super::index::Index;
use super::record::{self, FileHeader, Tag};
use super::scan::{End, Reading};
use super::{LogSettings, Shared};

/// The file that is begun before it has its name.
pub(super) const NEW: &str = "begun.new";
const LOCK: &str = "LOCK";
/// Bytes that are written again by one call.
const WRITE_AGAIN_BYTES: u64 = 1 << 20;

/// The log in a directory.
pub(super) fn open(disk: Arc<dyn Disk>, dir: &Path, settings: LogSettings, env: Env) -> Result<Shared> {
    disk.create_dir(dir)?;
    let lock = disk.lock(&dir.join(LOCK))?;
    let numbers = numbers(&*disk, dir)?;
    check_begun(&*disk, dir)?;
    let mut index = Index::default();
    let drawn = env.random.next_u64();
    let mut writer = Writer { log: drawn, next: 1, ..Writer::default() };
    let mut before: Option<(FileHeader, End)> = None;
    for number in &numbers {
        let is_last = Some(number) == numbers.last();
        before = Some(read_file(&*disk, dir, *number, is_last, before, (&mut index, &mut writer))?);
    }
    let mut is_full = false;
    if let Some((header, end)) = before {
        go_on(&*disk, dir, &header, &end, settings, &mut writer)?;
        // Near the end of a file it is unknown whether there is space for the next one. Without space,
        // objects that are no longer needed have to go before a writer creates anything.
        is_full = !writer.has_room(2 * settings.reserved_bytes(), 0);
    }
    let url = format!("log://{}", dir.display());
    Ok(Shared {
        disk,
        dir: dir.to_owned(),
        url,
        env,
        settings,
        folder_objects_max: super::FOLDER_OBJECTS_MAX,
        index: Mutex::new(index),
        queue: Mutex::default(),
        written: Condvar::new(),
        writer: Mutex::new(writer),
        cleaning: Mutex::default(),
        is_full: AtomicBool::new(is_full),
        has_failed: AtomicBool::new(false),
        trouble: Mutex::default(),
        _lock: lock,
    })
}

/// The numbers of the files, in order, none missing between.
fn numbers(disk: &dyn Disk, dir: &Path) -> Result<BTreeSet<u64>> {
    let (mut numbers, mut others) = (BTreeSet::new(), Vec::new());
    for name in disk.list(dir)? {
        match record::file_number(&name) {
            Some(number) => _ = numbers.insert(number),
            None if [NEW, LOCK].contains(&name.as_str()) => {}
            None => others.push(name),
        }
    }
    if let Some(other) = others.first() {
        let text = format!(
            "{} has {other:?}, which is not of a log: give the journal service a directory of its own",
            dir.display()
        );
        return Err(Error::invalid(text));
    }
    let (first, last) = (numbers.first().copied().unwrap_or(1), numbers.last().copied().unwrap_or(0));
    match (first..=last).find(|number| !numbers.contains(number)) {
        Some(missing) => {
            let text = "a file of the log is missing between others: restore the directory";
            Err(Error::corrupt(text).at(dir.join(record::file_name(missing)).display().to_string(), 0))
        }
        None => Ok(numbers),
    }
}

/// Refuses a file without its name that has records: they go into a file behind its rename, so the rename was
/// lost although a sync of the directory had confirmed it.
fn check_begun(disk: &dyn Disk, dir: &Path) -> Result<()> {
    let path = dir.join(NEW);
    if !disk.exists(&path)? {
        return Ok(());
    }
    let mut reading = Reading::new(disk.open(&path, OpenMode::Read, false)?)?;
    let header = match reading.file_header() {
        // It was never begun.
        Err(error) if [Kind::Corrupt, Kind::Invalid].contains(&error.kind()) => return Ok(()),
        header => header?,
    };
    let end = reading.records(&header, true, &mut |_, _, _| Ok(()))?;
    if end.next > header.first {
        let name = record::file_name(header.number);
        let text = format!("a file of the log with records has lost its name: give it the name {name}");
        return Err(Error::corrupt(text).at(path.display().to_string(), end.at));
    }
    Ok(())
}

/// Reads a file behind the one before.
fn read_file(
    disk: &dyn Disk,
    dir: &Path,
    number: u64,
    is_last: bool,
    before: Option<(FileHeader, End)>,
    (index, writer): (&mut Index, &mut Writer),
) -> Result<(FileHeader, End)> {
    let path = dir.join(record::file_name(number));
    let place = path.display().to_string();
    let mut reading = Reading::new(disk.open(&path, OpenMode::Read, false)?)?;
    let header = reading.file_header()?;
    let follows = before.is_none_or(|(other, end)| {
        other.log == header.log && end.next == header.first && end.parent == header.parent
    });
    if header.number != number {
        let text = format!("file {} of a log under the name of file {number}", header.number);
        return Err(Error::corrupt(text).at(place, 0));
    }
    if !follows {
        // The missing records are at the end of the file before, whose later records say that they were
        // there.
        let (other, end) = before.expect("a first file follows nothing");
        let text = format!(
            "record {} of the log is damaged or missing, or file {number} is of another log: restore the directory",
            end.next
        );
        let damaged = dir.join(record::file_name(other.number));
        return Err(Error::corrupt(text).at(damaged.display().to_string(), end.at));
    }
    index.grow(number, 0);
    let end = reading.records(&header, is_last, &mut |found, names, at| {
        // A copy has the time of its object's creation.
        if matches!(found.header.tag, Tag::Create | Tag::Delete) {
            writer.modified = found.header.modified;
        }
        if found.header.tag == Tag::Delete && names.is_empty() {
            writer.marked = found.header.number;
        }
        index.replay(found, names, number, at)
    })?;
    if is_last {
        reading.judge(&header, &end)?;
    }
    debug_assert!(end.at <= reading.len() + record::ALIGN, "records lie in the file");
    Ok((header, end))
}

/// Cuts the last file behind its last record, makes it durable, and writes there from now on.
fn go_on(
    disk: &dyn Disk,
    dir: &Path,
    header: &FileHeader,
    end: &End,
    settings: LogSettings,
    writer: &mut Writer,
) -> Result<()> {
    let path = dir.join(record::file_name(header.number));
    let file = disk.open(&path, OpenMode::Write, false)?;
    file.set_len(end.at)?;
    if !terrane_base::planted!(TrustUnsyncedLog) {
        // The process before may have died before its sync, and this one answers with what it wrote. Or its
        // sync failed: the system counts what it could not write as written, so it is written again.
        write_again(&*file, end)?;
        file.sync()?;
        disk.sync_dir(dir)?;
    }
    let bytes = settings.file_bytes.max(end.at);
    let bytes = reserve(&*file, end.at, bytes, settings.reserved_bytes())?;
    writer.log = header.log;
    (writer.next, writer.parent, writer.durable) = (end.next, end.parent, end.next - 1);
    writer.current = Some(Current { number: header.number, file, at: end.at, bytes });
    Ok(())
}

/// Writes the records again of which no mark says that they were durable: one group, as a rule.
fn write_again(file: &dyn File, end: &End) -> Result<()> {
    let mut at = end.unsure_from;
    debug_assert!(at <= end.at, "records end where the file does");
    while at < end.at {
        let mut bytes = vec![0; (end.at - at).min(WRITE_AGAIN_BYTES) as usize];
        file.read_at(at, &mut bytes)?;
        file.write_at(at, &bytes)?;
        at += bytes.len() as u64;
    }
    Ok(())
}

/// Reserves space from `at` up to `bytes`; where the device is full, only for deletions and copies, or none:
/// reads go on, and so do creations once there is room. Returns up to where there is space.
pub(super) fn reserve(file: &dyn File, at: u64, bytes: u64, few: u64) -> Result<u64> {
    for wanted in [bytes, (at + few).min(bytes)] {
        if wanted <= at {
            break;
        }
        match file.allocate(at, wanted - at) {
            Ok(()) => return Ok(wanted),
            Err(error) if error.kind() == Kind::Full => {}
            Err(error) => return Err(error),
        }
    }
    Ok(at)
}
