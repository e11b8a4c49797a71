//! The table of jobs: creations, reads and times of its objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use terrane_base::env::Random;
use terrane_base::sync::Mutex;
use terrane_base::{Error, Kind, Result};

use super::names::{JobName, JobNames};
use super::object::{JOB_HEADER_BYTES, JobObject, JobTag};
use crate::bucket::{Bucket, Create, Listed, names as object_names};

/// How often a creation is tried whose outcome is unknown. A bucket tries for its own time, too.
const CREATIONS: u32 = 3;
/// Names that one call deletes.
const NAMES_AT_ONCE: usize = 1000;

/// The table of jobs of one database. Clones are handles of the same table.
#[derive(Clone, Debug)]
pub struct JobTable {
    pub(super) bucket: Arc<dyn Bucket>,
    pub(super) names: JobNames,
    pub(super) random: Arc<dyn Random>,
    /// Epochs of which an object with the name of a coordinator was read: true if it is one. Objects never
    /// change.
    judged: Arc<Mutex<BTreeMap<u64, bool>>>,
}

/// Objects of a list, each with what its name says.
pub(super) type Found = BTreeMap<String, (JobName, Listed)>;

impl JobTable {
    /// The table of the database `prefix`.
    ///
    /// # Errors
    /// `Invalid` if the prefix is not a valid name.
    pub fn new(bucket: Arc<dyn Bucket>, prefix: &str, random: Arc<dyn Random>) -> Result<JobTable> {
        Ok(JobTable { bucket, names: JobNames::new(prefix)?, random, judged: Arc::default() })
    }

    /// A number that no other process draws.
    pub(super) fn draw(&self) -> u128 {
        u128::from(self.random.next_u64()) << 64 | u128::from(self.random.next_u64())
    }

    /// Creates an object that has a number which its maker drew. Returns false if another one has the name.
    ///
    /// # Errors
    /// `Io`, `Busy` if it is not known whether the object was created; others: it was not.
    pub(super) fn create(&self, name: &JobName, bytes: &[u8]) -> Result<bool> {
        let text = self.names.of(name);
        let mut unknown = None;
        for _ in 0..CREATIONS {
            let outcome = match self.bucket.create(&text, bytes) {
                Ok(Create::Created) => return Ok(true),
                // Also where the answer of an attempt before was lost: the bytes say whose it is.
                Ok(Create::AlreadyExists) => self.is_own(&text, bytes),
                Err(error) => Err(error),
            };
            match outcome {
                Err(error) if matches!(error.kind(), Kind::Io | Kind::Busy) => unknown = Some(error),
                Err(error) if unknown.is_some() => unknown = Some(error.with_kind(Kind::Io)),
                outcome => return outcome,
            }
        }
        Err(unknown.unwrap_or_else(|| Error::new(Kind::Io, format!("{text}: no answer"))))
    }

    fn is_own(&self, name: &str, bytes: &[u8]) -> Result<bool> {
        match self.bucket.get(name, bytes.len() as u64) {
            Ok(found) => Ok(found == bytes),
            // It is longer, or it was deleted again.
            Err(error) if matches!(error.kind(), Kind::Corrupt | Kind::NotFound) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads an object, and checks that it has the kind that its name says: `tags` are those that it may
    /// have.
    ///
    /// # Errors
    /// `NotFound` if it does not exist; `Corrupt`, naming the object; `Invalid` if a later version wrote it;
    /// `Io`, `Busy`.
    pub(super) fn read(&self, name: &JobName, tags: &[JobTag]) -> Result<(JobObject, Bytes)> {
        let text = self.names.of(name);
        let longest = tags.iter().map(|tag| tag.payload_bytes().end).max().unwrap_or(0);
        let bytes = self.bucket.get(&text, JOB_HEADER_BYTES as u64 + longest)?;
        let place = || object_names::place(self.bucket.url(), &text);
        let (header, payload) = JobObject::decode(&bytes).map_err(|error| error.at(place(), 0))?;
        let (id, attempt) = match name {
            JobName::Open(id, attempt) | JobName::Claim(id, attempt) | JobName::Report(id, attempt) => {
                (Some(*id), *attempt)
            }
            _ => (name.id(), 0),
        };
        let is_named = id.is_none_or(|id| (id.epoch, id.number) == (header.epoch, header.number));
        if !tags.contains(&header.tag) || !is_named || attempt != header.attempt {
            let message = format!("the header of the object does not match its name: {header:?}");
            return Err(Error::corrupt(message).at(place(), 0));
        }
        let payload = bytes.slice_ref(payload);
        Ok((header, payload))
    }

    /// The objects below a folder of the table. Names that do not belong to a table of jobs are left alone.
    pub(super) fn list(&self, folder: &str) -> Result<Found> {
        let listed = self.bucket.list(folder, None)?;
        let named = |object: Listed| Some((object.name.clone(), (self.names.parse(&object.name)?, object)));
        Ok(listed.into_iter().filter_map(named).collect())
    }

    /// The newest coordinator in a list of the whole table: the greatest epoch whose object is one of a
    /// coordinator. Another object under such a name is passed by: else it would end the jobs of all writers.
    /// One request for each object that is new.
    ///
    /// # Errors
    /// `Io`, `Busy`.
    pub(super) fn newest(&self, found: &Found) -> Result<Option<u64>> {
        let epochs: BTreeSet<u64> = found
            .values()
            .filter_map(|(name, _)| match name {
                JobName::Coordinator(epoch) => Some(*epoch),
                _ => None,
            })
            .collect();
        self.judged.lock().retain(|epoch, _| epochs.contains(epoch));
        for epoch in epochs.into_iter().rev() {
            let known = self.judged.lock().get(&epoch).copied();
            if known.map_or_else(|| self.judge(epoch), Ok)? {
                return Ok(Some(epoch));
            }
        }
        Ok(None)
    }

    /// Reads what has the name of a coordinator; true if it is one.
    fn judge(&self, epoch: u64) -> Result<bool> {
        let is_one = match self.read(&JobName::Coordinator(epoch), &[JobTag::Coordinator]) {
            Ok((header, _)) => header.epoch == epoch,
            // A later version wrote it: its checksums are right.
            Err(error) if error.kind() == Kind::Invalid => true,
            Err(error) if error.kind() == Kind::NotFound => return Ok(false),
            Err(error) if error.kind() == Kind::Corrupt => {
                tracing::warn!(target: "terrane::job", %error, "an object that is not a coordinator has its name");
                false
            }
            Err(error) => return Err(error),
        };
        self.judged.lock().insert(epoch, is_one);
        Ok(is_one)
    }

    /// Ends the jobs of all coordinators before the writer of `epoch`: their objects are deleted, and workers
    /// leave them. Returns the number of objects. A list, and deletions.
    ///
    /// # Errors
    /// `Io`, `Busy`: the remaining objects cost workers some work, and nothing else.
    pub fn end_older(&self, epoch: u64) -> Result<usize> {
        let found = self.list(&self.names.folder)?;
        let older = found.into_iter().filter(|(_, (name, _))| name.epoch().is_some_and(|of| of < epoch));
        let (first, rest): (Vec<_>, Vec<_>) =
            older.partition(|(_, (name, _))| matches!(name, JobName::Coordinator(_)));
        // Workers go by the coordinator.
        let names: Vec<String> = first.into_iter().chain(rest).map(|(name, _)| name).collect();
        if !names.is_empty() {
            self.delete(&names)?;
        }
        Ok(names.len())
    }

    /// The objects below the folder of `now`, and what time it is in the object store: `now` is an object of
    /// that folder, which is created and deleted.
    pub(super) fn list_at(&self, folder: &str, now: &JobName) -> Result<(Found, Duration)> {
        let text = self.names.of(now);
        self.bucket.create(&text, b"now")?;
        let listed = self.list(folder);
        // One that stays goes with the others of its folder.
        let _ = self.bucket.delete(std::slice::from_ref(&text));
        let mut listed = listed?;
        let (_, now) = listed.remove(&text).ok_or_else(|| {
            let message =
                "an object that was created is not listed: check the object store by `terrane doctor`";
            Error::corrupt(message).at(object_names::place(self.bucket.url(), &text), 0)
        })?;
        Ok((listed, now.modified))
    }

    pub(super) fn delete(&self, names: &[String]) -> Result<()> {
        names.chunks(NAMES_AT_ONCE).try_for_each(|some| self.bucket.delete(some))
    }
}

/// The age of an object, when the object store's clock shows `now`.
pub(super) fn age(object: &Listed, now: Duration) -> Duration {
    now.saturating_sub(object.modified)
}
