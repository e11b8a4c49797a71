//! Tries every part of a deployment, and says in words what it found. Changes nothing but the objects of the
//! probe, which it removes; replaces no writer.

use std::path::Path;

use terrane_base::env::Env;
use terrane_base::{Error, Kind, Result};
use terrane_device::{Disk, PosixDisk};
use terrane_format::manifest::JournalMark;
use terrane_levels::{directory, journal_place};

use super::Deployment;
use crate::bucket::{self, probe};
use crate::manifest::JournalFit;
use crate::{Bucket, ManifestFolder};

/// The outcome of trying one part.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The part, or a property of it.
    pub part: String,
    /// What was found, or what is wrong.
    pub outcome: Result<String>,
}

impl Tried {
    fn new(part: impl Into<String>, outcome: Result<String>) -> Tried {
        Tried { part: part.into(), outcome }
    }
}

impl Deployment {
    /// Tries every part.
    #[must_use]
    pub fn doctor(&self) -> Vec<Tried> {
        let env = Env::real();
        let mut tried = vec![Tried::new("journal", try_journal(&self.journal))];
        let bucket = match bucket::open(&self.url, &env) {
            Ok(bucket) => bucket,
            Err(error) => {
                tried.push(Tried::new("storage", Err(error)));
                return tried;
            }
        };
        tried.extend(self.try_bucket(&*bucket, &env));
        let folder = ManifestFolder::new(bucket.clone(), &self.prefix);
        let told = folder.and_then(|folder| self.tell_manifest(&folder));
        tried.push(Tried::new("manifest", told));
        tried.push(Tried::new("data", self.tell_data(&*bucket)));
        tried
    }

    fn try_bucket(&self, bucket: &dyn Bucket, env: &Env) -> Vec<Tried> {
        match probe::outcomes(bucket, &self.prefix, &*env.random) {
            Err(error) => vec![Tried::new("storage", Err(error))],
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
                    Tried::new(format!("storage: {}", check.name()), outcome)
                })
                .collect(),
        }
    }

    fn tell_manifest(&self, folder: &ManifestFolder) -> Result<String> {
        let found = folder.read()?;
        let mark = journal_place::read(&PosixDisk::new(), &self.journal)?;
        let unused = JournalMark { journal: 0, before: 0, address: String::new() };
        let fit = folder.journal_fit(found.as_ref(), mark.as_ref().unwrap_or(&unused), self.abandon)?;
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

    fn tell_data(&self, bucket: &dyn Bucket) -> Result<String> {
        let listed = bucket.list(&format!("{}/data", self.prefix), None)?;
        let bytes = listed.iter().fold(0u64, |all, object| all.saturating_add(object.bytes));
        Ok(format!("{} objects, {bytes} bytes", listed.len()))
    }
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
