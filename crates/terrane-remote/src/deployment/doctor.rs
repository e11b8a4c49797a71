//! Tries every part of a deployment, and says in words what it found. Changes nothing but the objects of the
//! probe, which it removes; replaces no writer.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrane_base::env::Env;
use terrane_base::{Error, Kind, Result};
use terrane_device::{Disk, PosixDisk};
use terrane_format::manifest::JournalMark;
use terrane_levels::{directory, journal_place};

use super::follow::{self, Buckets};
use super::journal::journal_in_bucket;
use super::{BucketJournal, Deployment};
use crate::bucket::{self, BucketSettings, RetryLimits, names, probe};
use crate::jobs::JobTable;
use crate::journal::is_in_objects;
use crate::manifest::{Found, JournalFit};
use crate::{Bucket, JournalFolder, ManifestFolder, tier};

/// How long a part that does not answer is asked: the caller waits for the list.
const LIMITS: RetryLimits = RetryLimits {
    pause_min: Duration::from_millis(50),
    pause_max: Duration::from_secs(1),
    deadline: Duration::from_secs(3),
};
/// The storage, as what depends on it names it.
const STORAGE: &str = "the storage";
/// For the checks, which move little.
const REACHING: BucketSettings = BucketSettings {
    limits: LIMITS,
    attempts_min: 1,
    request_max: Duration::from_secs(5),
    hedged_reads: false,
};
/// For what may be long, as lists: the bucket has answered before.
const READING: BucketSettings = BucketSettings { request_max: Duration::MAX, ..REACHING };

/// The outcome of trying one part.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The part, or a property of it.
    pub part: String,
    /// The finding, or the error.
    pub outcome: Result<String>,
}

impl Tried {
    fn new(part: impl Into<String>, outcome: Result<String>) -> Tried {
        Tried { part: part.into(), outcome }
    }

    /// A part that cannot be looked at, because this other one has failed; it would take as long a time.
    fn not(part: &str, failed: &str) -> Tried {
        Tried::new(part, Err(Error::new(Kind::Io, format!("not tried: {failed} has failed"))))
    }

    /// Returns true if what was asked gave no answer.
    fn has_failed(&self) -> bool {
        matches!(&self.outcome, Err(error) if matches!(error.kind(), Kind::Io | Kind::Busy))
    }
}

impl Deployment {
    /// Tries every part, those behind one that fails as well; each within a few seconds, if it does not
    /// answer.
    #[must_use]
    pub fn doctor(&self) -> Vec<Tried> {
        let env = Env::real();
        let mut tried = vec![Tried::new("journal", try_journal(&self.journal))];
        if let Some(cache) = &self.cache {
            tried.push(Tried::new("cache", tier::try_directory(&PosixDisk::new(), cache)));
        }
        let storage = self.reach(&self.url, "storage", &env, &mut tried);
        self.try_objects(storage.as_ref(), &env, &mut tried);
        let journal = match &self.bucket_journal {
            None => None,
            Some(BucketJournal { url: Some(url), .. }) => {
                let reached = self.reach(url, "journal", &env, &mut tried);
                Some((reached, "the bucket of the journal"))
            }
            Some(BucketJournal { url: None, .. }) => Some((storage.clone(), STORAGE)),
        };
        let mut missing = storage.is_none().then_some(STORAGE);
        if let Some((bucket, name)) = &journal {
            let part = "journal in a bucket";
            tried.push(match bucket {
                Some(bucket) => Tried::new(part, self.describe_chain(bucket)),
                None => Tried::not(part, name),
            });
            missing = missing.or(bucket.is_none().then_some(*name));
        }
        let part = "a follower here";
        tried.push(match (storage, missing) {
            (Some(storage), None) => {
                let buckets = Buckets { storage, journal: journal.and_then(|(bucket, _)| bucket) };
                Tried::new(part, follow::describe(self, buckets, &env))
            }
            (_, missing) => Tried::not(part, missing.unwrap_or(STORAGE)),
        });
        tried
    }

    /// Tries a bucket; returns it if it answers.
    fn reach(&self, url: &str, part: &str, env: &Env, tried: &mut Vec<Tried>) -> Option<Arc<dyn Bucket>> {
        let bucket = match bucket::open_with(url, env, REACHING) {
            Ok(bucket) => bucket,
            Err(error) => {
                tried.push(Tried::new(part, Err(error)));
                return None;
            }
        };
        let probed = self.try_bucket(&*bucket, part, env);
        assert!(!probed.is_empty(), "each check has an outcome, or all of them have one");
        let is_out_of_reach = probed.iter().any(Tried::has_failed);
        tried.extend(probed);
        (!is_out_of_reach).then(|| bucket::open_with(url, env, READING).ok()).flatten()
    }

    /// Tries what lies in the storage.
    fn try_objects(&self, storage: Option<&Arc<dyn Bucket>>, env: &Env, tried: &mut Vec<Tried>) {
        let workers = self.compaction.as_ref().map(|_| "workers");
        let Some(storage) = storage else {
            let parts = ["manifest", "data"].into_iter().chain(workers);
            return tried.extend(parts.map(|part| Tried::not(part, STORAGE)));
        };
        let folder = ManifestFolder::new(storage.clone(), &self.prefix);
        let manifest = folder.and_then(|folder| self.describe_manifest(&folder));
        tried.push(Tried::new("manifest", manifest));
        tried.push(Tried::new("data", self.describe_data(&**storage)));
        tried.extend(self.clone_lines(storage, env).into_iter().map(|(part, line)| Tried::new(part, line)));
        if let Some(part) = workers {
            let jobs = JobTable::new(storage.clone(), &self.prefix, env.random.clone());
            tried.push(Tried::new(part, jobs.and_then(|table| describe_workers(&table))));
        }
    }

    fn try_bucket(&self, bucket: &dyn Bucket, part: &str, env: &Env) -> Vec<Tried> {
        match probe::outcomes(bucket, &self.prefix, &*env.random) {
            Err(error) => vec![Tried::new(part, Err(error))],
            Ok(outcomes) => outcomes
                .into_iter()
                .map(|(check, passed)| {
                    let outcome = if passed {
                        Ok("kept".to_owned())
                    } else {
                        Err(Error::invalid(
                            "not kept: a database here would lose data; use another object store",
                        ))
                    };
                    Tried::new(format!("{part}: {}", check.name()), outcome)
                })
                .collect(),
        }
    }

    fn describe_manifest(&self, folder: &ManifestFolder) -> Result<String> {
        let found = folder.read()?;
        let mark = journal_place::read(&PosixDisk::new(), &self.journal)?;
        let unused = JournalMark { journal: 0, before: 0, address: String::new() };
        let fit = self.fit_of_journal(folder, found.as_ref(), mark.as_ref().unwrap_or(&unused))?;
        let Some((found, state)) = found.as_ref().and_then(|found| Some((found, found.state.as_ref()?)))
        else {
            return Ok("there is no database yet: the first opening makes one".to_owned());
        };
        let journal = match fit {
            JournalFit::NoDatabase | JournalFit::Last => "",
            JournalFit::NoneNeeded => "; it needs no journal",
            JournalFit::GivenUp => "; the next opening gives up the journal that abandon names",
        };
        let (tables, extents) = (state.tables.len(), state.extents().count());
        let (number, epoch) = (found.last.number, found.last.epoch);
        Ok(format!(
            "object {number} by the writer of epoch {epoch}: {tables} tables, {extents} extents{journal}"
        ))
    }

    /// How the next opening finds the journal.
    fn fit_of_journal(
        &self,
        folder: &ManifestFolder,
        found: Option<&Found>,
        mark: &JournalMark,
    ) -> Result<JournalFit> {
        let is_in_bucket = |found: &Found| found.state.is_some() && is_in_objects(found.last.journal);
        if self.bucket_journal.is_some() && found.is_some_and(is_in_bucket) {
            return Ok(JournalFit::Last);
        }
        let place = names::place(&self.url, &self.prefix);
        folder.journal_fit(found, mark, self.abandon).map_err(|error| match found {
            Some(found) if is_in_bucket(found) => journal_in_bucket(&place),
            _ => error,
        })
    }

    /// Which objects the journal in a bucket has.
    fn describe_chain(&self, bucket: &Arc<dyn Bucket>) -> Result<String> {
        let chain = JournalFolder::new(bucket.clone(), &self.prefix).and_then(|folder| folder.chain())?;
        Ok(match &chain.last {
            None => "no object yet".to_owned(),
            Some((last, _)) => format!(
                "{} objects are needed, {} bytes, the last one {} by the writer of epoch {}",
                chain.len(),
                chain.bytes(),
                last.number,
                last.epoch
            ),
        })
    }

    fn describe_data(&self, bucket: &dyn Bucket) -> Result<String> {
        let listed = bucket.list(&format!("{}/data", self.prefix), None)?;
        let bytes = listed.iter().fold(0u64, |all, object| all.saturating_add(object.bytes));
        Ok(format!("{} objects, {bytes} bytes", listed.len()))
    }
}

/// Which workers gave a sign of life lately. None is not an error: the writer does the jobs itself.
fn describe_workers(table: &JobTable) -> Result<String> {
    let workers = table.workers()?;
    let Some(latest) = workers.first() else {
        return Ok("none was seen within an hour: compactions run in the writer; start `terrane serve \
                   compactor` with this file"
            .to_owned());
    };
    let (count, name, seconds) = (workers.len(), &latest.name, latest.age.as_secs());
    Ok(format!("{count} seen within an hour, the latest one {name} {seconds} s ago"))
}

/// Tries the directory of the journal.
fn try_journal(dir: &Path) -> Result<String> {
    let disk = PosixDisk::new();
    if !disk.exists(dir)? {
        return Ok(format!("{} does not exist yet: the first opening makes it", dir.display()));
    }
    journal_place::check(&disk, dir)?;
    let free = disk.free_bytes(dir)? >> 20;
    match disk.lock_shared(&dir.join(directory::LOCK)) {
        Err(error) if error.kind() == Kind::Busy => Ok(format!("{free} MiB free; a process has it open")),
        Err(error) => Err(error),
        Ok(_) => Ok(format!("{free} MiB free; no process has it open")),
    }
}
