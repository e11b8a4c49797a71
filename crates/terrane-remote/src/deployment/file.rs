//! Reads the file of a deployment.

use std::path::{Path, PathBuf};

use terrane_base::options::Options;
use terrane_base::{Error, Kind, Result};
use terrane_device::{Disk, OpenMode, PosixDisk};
use toml::{Table, Value};

use super::{BucketJournal, Deployment};
use crate::bucket::names;
use crate::jobs::BucketCompactorSettings;
use crate::{BucketStoreSettings, ObjectJournalSettings, TierSettings};

/// Longest file.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// The keys of each part.
const PARTS: [(&str, &[&str]); 5] = [
    ("cache", &["bytes", "directory"]),
    ("compaction", &["attempts", "claim_ms", "job_bytes", "lost_ms", "poll_ms", "workers"]),
    ("journal", &["abandon", "batch_bytes", "batch_ms", "directory", "in_bucket", "url"]),
    (
        "storage",
        &[
            "garbage_age_s",
            "hedged_reads",
            "object_bytes",
            "prefix",
            "probe",
            "stage_bytes",
            "url",
            "writer_check_ms",
        ],
    ),
    ("options", &[]),
];

/// Where a database lies in a bucket of which the file does not say it.
pub(super) const PREFIX: &str = "terrane";
/// The directory of a journal in a bucket, where the file does not say it.
const JOURNAL_DIRECTORY: &str = "terrane-journal";
/// How often a writer looks whether it was replaced, where the file does not say it.
pub(super) const WRITER_CHECK_MS: u64 = 5000;

impl Deployment {
    /// Reads a deployment from the file `path`. A directory in it that is not a whole path is one beside the
    /// file.
    ///
    /// # Errors
    /// `NotFound`; `Invalid`, naming the file and the key, for what it cannot say; `Io`.
    pub fn read(path: &Path) -> Result<Deployment> {
        let shown = path.display();
        let text = text_of_file(path)?;
        let beside = path.parent().unwrap_or(Path::new("."));
        Deployment::parse(&text, beside).map_err(|error| error.context(shown))
    }

    /// Reads a deployment from the text of a file in the directory `beside`.
    ///
    /// # Errors
    /// `Invalid`, naming the key, for what it cannot say.
    pub fn parse(text: &str, beside: &Path) -> Result<Deployment> {
        let file: Table = text.parse().map_err(|error: toml::de::Error| Error::invalid(error.to_string()))?;
        check_names(&file, "", &PARTS.map(|(part, _)| part))?;
        let part = |name: &str| part(&file, name);
        let (journal, storage) = (part("journal")?, part("storage")?);
        for (name, keys) in PARTS.into_iter().filter(|(_, keys)| !keys.is_empty()) {
            check_names(&part(name)?, name, keys)?;
        }
        let bucket_journal = bucket_journal_of(&journal)?;
        let directory = match text_of(&journal, "journal", "directory")? {
            Some(directory) => directory,
            None if bucket_journal.is_some() => JOURNAL_DIRECTORY.to_owned(),
            None => return Err(missing("journal", "directory")),
        };
        let url = text_of(&storage, "storage", "url")?.ok_or_else(|| missing("storage", "url"))?;
        let default = BucketStoreSettings::default();
        let number = |key, default| number_of(&storage, "storage", key).map(|found| found.unwrap_or(default));
        let settings = BucketStoreSettings {
            object_bytes: number("object_bytes", default.object_bytes)?,
            stage_bytes: number("stage_bytes", default.stage_bytes)?,
            garbage_age: std::time::Duration::from_secs(number(
                "garbage_age_s",
                default.garbage_age.as_secs(),
            )?),
            probe: flag_of(&storage, "storage", "probe")?.unwrap_or(default.probe),
        };
        let cache = cache_of(&part("cache")?, beside)?;
        let writer_check_ms = number("writer_check_ms", WRITER_CHECK_MS)?;
        if writer_check_ms == 0 {
            return Err(Error::invalid(
                "key \"writer_check_ms\" of [storage]: expected a whole number from 1",
            ));
        }
        let abandon = text_of(&journal, "journal", "abandon")?.map(|id| journal_id(&id)).transpose()?;
        let options = options_of(&part("options")?)?;
        let compaction = compaction_of(&part("compaction")?)?;
        // An option that is unknown is said now, not at the first opening.
        options.iter().try_for_each(|(name, value)| Options::default().set(name, value))?;
        // Said now, with the file, and not at the first opening.
        settings.check()?;
        let prefix = text_of(&storage, "storage", "prefix")?.unwrap_or_else(|| PREFIX.to_owned());
        names::check(&prefix).map_err(|error| error.context("key \"prefix\" of [storage]"))?;
        Ok(Deployment {
            journal: beside.join(PathBuf::from(directory)),
            bucket_journal: bucket_journal.map(|journal| journal.replaced_after(settings.garbage_age)),
            abandon,
            url,
            prefix,
            settings,
            hedged_reads: flag_of(&storage, "storage", "hedged_reads")?.unwrap_or(true),
            cache,
            writer_check_ms,
            compaction,
            options,
        })
    }
}

/// The whole text of a file.
fn text_of_file(path: &Path) -> Result<String> {
    let shown = path.display();
    let file = PosixDisk::new().open(path, OpenMode::Read, false).map_err(|error| match error.kind() {
        Kind::NotFound => error.context(format!("there is no deployment file {shown}")),
        _ => error,
    })?;
    let len = file.len()?;
    if len > FILE_BYTES_MAX {
        let message =
            format!("{shown}: the file has {len} bytes; a deployment file has at most {FILE_BYTES_MAX}");
        return Err(Error::invalid(message));
    }
    let mut bytes = vec![0; len as usize];
    file.read_at(0, &mut bytes)?;
    String::from_utf8(bytes).map_err(|_| Error::invalid(format!("{shown}: a deployment file is UTF-8 text")))
}

/// The part `name` of the file; empty if the file lacks it.
fn part(file: &Table, name: &str) -> Result<Table> {
    match file.get(name) {
        None => Ok(Table::new()),
        Some(Value::Table(part)) => Ok(part.clone()),
        Some(_) => Err(Error::invalid(format!("{name}: write it as a part, [{name}]"))),
    }
}

/// Refuses a name that `known` lacks.
fn check_names(table: &Table, part: &str, known: &[&str]) -> Result<()> {
    let Some(name) = table.keys().find(|name| !known.contains(&name.as_str())) else { return Ok(()) };
    let nearest = known.iter().min_by_key(|known| distance(name, known));
    let hint = nearest.map_or_else(String::new, |nearest| format!("; did you mean {nearest:?}?"));
    let (what, of) = match part {
        "" => ("part", String::new()),
        part => ("key", format!(" of [{part}]")),
    };
    Err(Error::invalid(format!("unknown {what} {name:?}{of}{hint} known: {}", known.join(", "))))
}

/// How many letters differ, at least.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in b.iter().enumerate() {
            let change = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

fn text_of(table: &Table, part: &str, key: &str) -> Result<Option<String>> {
    match table.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(Error::invalid(format!("key {key:?} of [{part}]: expected a text"))),
    }
}

/// A number of bytes or milliseconds.
fn number_of(table: &Table, part: &str, key: &str) -> Result<Option<u64>> {
    let wrong = || Error::invalid(format!("key {key:?} of [{part}]: expected a whole number from 0"));
    match table.get(key) {
        None => Ok(None),
        Some(Value::Integer(number)) => u64::try_from(*number).map(Some).map_err(|_| wrong()),
        Some(_) => Err(wrong()),
    }
}

fn flag_of(table: &Table, part: &str, key: &str) -> Result<Option<bool>> {
    match table.get(key) {
        None => Ok(None),
        Some(Value::Boolean(flag)) => Ok(Some(*flag)),
        Some(_) => Err(Error::invalid(format!("key {key:?} of [{part}]: expected true or false"))),
    }
}

/// The journal in a bucket, if the file says so.
fn bucket_journal_of(journal: &Table) -> Result<Option<BucketJournal>> {
    let url = text_of(journal, "journal", "url")?;
    let is_in_bucket = flag_of(journal, "journal", "in_bucket")?;
    if url.is_some() && is_in_bucket == Some(false) {
        return Err(Error::invalid(
            "keys \"url\" and \"in_bucket\" of [journal]: a journal with a url is in a bucket: remove in_bucket = false, or the url",
        ));
    }
    let default = ObjectJournalSettings::default();
    let batch_bytes = number_of(journal, "journal", "batch_bytes")?;
    let batch_ms = number_of(journal, "journal", "batch_ms")?;
    if url.is_none() && is_in_bucket != Some(true) {
        if batch_bytes.or(batch_ms).is_some() {
            let message = "keys \"batch_bytes\" and \"batch_ms\" of [journal] are for a journal with in_bucket \
                           = true or a url";
            return Err(Error::invalid(message));
        }
        return Ok(None);
    }
    let settings = ObjectJournalSettings {
        batch_bytes: batch_bytes.unwrap_or(default.batch_bytes),
        batch: batch_ms.map_or(default.batch, std::time::Duration::from_millis),
        ..default
    };
    settings.check()?;
    Ok(Some(BucketJournal { url, settings }))
}

/// The cache on local disk, if the file says so.
fn cache_of(cache: &Table, beside: &Path) -> Result<Option<TierSettings>> {
    let directory = text_of(cache, "cache", "directory")?;
    let bytes = number_of(cache, "cache", "bytes")?;
    match (directory, bytes) {
        (None, None) | (_, Some(0)) => Ok(None),
        (None, Some(_)) => Err(missing("cache", "directory")),
        (Some(_), None) => Err(missing("cache", "bytes")),
        (Some(directory), Some(bytes)) => {
            let settings = TierSettings { directory: beside.join(directory), bytes };
            settings.check().map_err(|error| error.context("key \"bytes\" of [cache]"))?;
            Ok(Some(settings))
        }
    }
}

/// How jobs go to workers, if the file says so.
fn compaction_of(table: &Table) -> Result<Option<BucketCompactorSettings>> {
    let has_workers = flag_of(table, "compaction", "workers")? == Some(true);
    let ms = |key| number_of(table, "compaction", key).map(|ms| ms.map(std::time::Duration::from_millis));
    let (claim, lost, poll) = (ms("claim_ms")?, ms("lost_ms")?, ms("poll_ms")?);
    let (attempts, job_bytes) =
        (number_of(table, "compaction", "attempts")?, number_of(table, "compaction", "job_bytes")?);
    if !has_workers {
        if let Some(key) = table.keys().find(|key| *key != "workers") {
            return Err(Error::invalid(format!("key {key:?} of [compaction] is for workers = true")));
        }
        return Ok(None);
    }
    let default = BucketCompactorSettings::default();
    let settings = BucketCompactorSettings {
        claim: claim.unwrap_or(default.claim),
        lost: lost.unwrap_or(default.lost),
        poll: poll.unwrap_or(default.poll),
        attempts: attempts.map_or(default.attempts, |count| u32::try_from(count).unwrap_or(u32::MAX)),
        job_bytes: job_bytes.unwrap_or(default.job_bytes),
        ..default
    };
    settings.check().map_err(|error| error.context("[compaction]"))?;
    Ok(Some(settings))
}

/// The options of the engine, as texts. TOML reads an option with a dot in its name, such as
/// `diagnostics.metrics_page_ms`, as a table within the table.
fn options_of(table: &Table) -> Result<Vec<(String, String)>> {
    let mut options = Vec::new();
    for (name, value) in table {
        match value {
            Value::Table(inner) => {
                let inner = options_of(inner)?.into_iter();
                options.extend(inner.map(|(last, value)| (format!("{name}.{last}"), value)));
            }
            Value::String(text) => options.push((name.clone(), text.clone())),
            Value::Integer(number) => options.push((name.clone(), number.to_string())),
            Value::Boolean(flag) => options.push((name.clone(), flag.to_string())),
            _ => {
                let message = format!("option {name:?}: expected a text, a whole number, true or false");
                return Err(Error::invalid(message));
            }
        }
    }
    Ok(options)
}

fn journal_id(text: &str) -> Result<u128> {
    let is_whole = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u128::from_str_radix(text, 16).ok().filter(|_| is_whole).ok_or_else(|| {
        let message = "key \"abandon\" of [journal]: expected the 32 digits that the refused opening named";
        Error::new(Kind::Invalid, message)
    })
}

#[cold]
fn missing(part: &str, key: &str) -> Error {
    Error::invalid(format!("key {key:?} of [{part}] is missing"))
}

#[cfg(test)]
mod tests;
