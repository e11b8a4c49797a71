//! A bucket in memory: for tests, and for databases that end with their process.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Bound, Range};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use terrane_base::env::Clock;
use terrane_base::sync::RwLock;
use terrane_base::{Error, Kind, Result};

use super::{Bucket, Create, Listed, Pending, names};

/// Objects in the memory of this process. Clones are handles of the same bucket.
#[derive(Clone)]
pub struct MemoryBucket {
    clock: Arc<dyn Clock>,
    objects: Arc<RwLock<BTreeMap<String, Object>>>,
}

#[derive(Clone, Debug)]
struct Object {
    bytes: Bytes,
    modified: Duration,
}

impl MemoryBucket {
    /// An empty bucket; `clock` says when its objects are created.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        MemoryBucket { clock, objects: Arc::default() }
    }

    fn object(&self, name: &str) -> Result<Bytes> {
        names::check(name)?;
        let found = self.objects.read().get(name).map(|object| object.bytes.clone());
        found.ok_or_else(|| super::missing(self.url(), name))
    }

    fn create_now(&self, name: &str, parts: &[Bytes]) -> Result<Create> {
        names::check(name)?;
        super::check_parts(name, parts)?;
        let mut objects = self.objects.write();
        if objects.contains_key(name) {
            return Ok(Create::AlreadyExists);
        }
        let object = Object { bytes: parts.concat().into(), modified: self.clock.wall() };
        objects.insert(name.to_owned(), object);
        Ok(Create::Created)
    }
}

impl fmt::Debug for MemoryBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBucket").field("objects", &self.objects.read().len()).finish_non_exhaustive()
    }
}

impl Bucket for MemoryBucket {
    fn url(&self) -> &str {
        "memory:"
    }

    fn begin_create(&self, name: &str, parts: Vec<Bytes>) -> Pending<Create> {
        Pending::ready(self.create_now(name, &parts))
    }

    fn begin_get_ranges(&self, name: &str, ranges: Vec<Range<u64>>) -> Pending<Vec<Bytes>> {
        let parts = self.object(name).and_then(|bytes| {
            let part = |range: &Range<u64>| {
                super::check_range(self.url(), name, range, bytes.len() as u64)?;
                Ok(bytes.slice(range.start as usize..range.end as usize))
            };
            ranges.iter().map(part).collect()
        });
        Pending::ready(parts)
    }

    fn get_tail(&self, name: &str, bytes_max: u64) -> Result<Bytes> {
        let bytes = self.object(name)?;
        let start = (bytes.len() as u64).saturating_sub(bytes_max) as usize;
        Ok(bytes.slice(start..))
    }

    fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<Listed>> {
        names::check(folder)?;
        let start = format!("{folder}/");
        let from = after.filter(|after| *after > start.as_str());
        let from = from.map_or(Bound::Included(start.as_str()), Bound::Excluded);
        let objects = self.objects.read();
        let inside = objects.range::<str, _>((from, Bound::Unbounded));
        let inside = inside.take_while(|(name, _)| name.starts_with(&start));
        Ok(inside
            .map(|(name, object)| Listed {
                name: name.clone(),
                bytes: object.bytes.len() as u64,
                modified: object.modified,
            })
            .collect())
    }

    fn delete(&self, names: &[String]) -> Result<()> {
        names.iter().try_for_each(|name| names::check(name))?;
        let mut objects = self.objects.write();
        for name in names {
            objects.remove(name);
        }
        Ok(())
    }
}

/// Damage, for tests.
impl MemoryBucket {
    /// Replaces the bytes of an object, as a store that is broken might.
    ///
    /// # Errors
    /// `NotFound` if there is no such object.
    pub fn damage(&self, name: &str, bytes: Bytes) -> Result<()> {
        let mut objects = self.objects.write();
        let object = objects.get_mut(name).ok_or_else(|| {
            Error::new(Kind::NotFound, format!("{}: there is no such object", names::place("memory:", name)))
        })?;
        object.bytes = bytes;
        Ok(())
    }
}
