//! Tries every part of a deployment, and says in words what it found. Changes nothing but the objects of the
//! probe, which it removes; replaces no writer.

use std::path::Path;

use terrane_base::env::Env;
use terrane_base::{Error, Kind, Result};
use terrane_device::{Disk, PosixDisk};
use terrane_levels::{directory, journal_place};

use super::Deployment;
use crate::bucket::{self, names, probe};
use crate::manifest::{Found, other_database};
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
        let read = folder.and_then(|folder| folder.read());
        tried.push(Tried::new("manifest", read.and_then(|found| self.tell_manifest(found.as_ref()))));
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

    fn tell_manifest(&self, found: Option<&Found>) -> Result<String> {
        let mark = journal_place::read(&PosixDisk::new(), &self.journal)?;
        let Some((found, state)) = found.and_then(|found| Some((found, found.state.as_ref()?))) else {
            return match mark {
                Some(mark) if mark.before != 0 => Err(other_database(&names::place(&self.url, &self.prefix))),
                _ => Ok("there is no database yet: the first opening makes one".to_owned()),
            };
        };
        let is_ours = mark.is_some_and(|mark| [mark.journal, mark.before].contains(&found.last.journal));
        let needs = !(state.segments.is_empty() && state.history.is_empty());
        if needs && !is_ours && self.abandon != Some(found.last.journal) {
            return Err(Error::invalid(format!(
                "the last writer went on with journal {:032x}, which is not the one in {}: open the database \
                 with that directory, or with a copy of it",
                found.last.journal,
                self.journal.display()
            )));
        }
        let (tables, extents) = (state.tables.len(), state.extents().count());
        let (number, epoch) = (found.last.number, found.last.epoch);
        Ok(format!("object {number} by the writer of epoch {epoch}: {tables} tables, {extents} extents"))
    }

    fn tell_data(&self, bucket: &dyn Bucket) -> Result<String> {
        let listed = bucket.list(&format!("{}/data", self.prefix), None)?;
        let bytes: u64 = listed.iter().map(|object| object.bytes).sum();
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
