//! Reads a manifest as it was: the objects that were not deleted yet, from each snapshot on.
//!
//! A group is a snapshot and the objects behind it, up to the next snapshot. Whole groups are there from some
//! number on; before it at least one object was deleted. The chosen state is always the state behind one
//! object of the chain, so a wrong time of the object store leads to another moment, and never to a state
//! that did not exist.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use terrane_base::{Error, Kind, Result, SeqNo};
use terrane_format::manifest::ManifestObject;
use terrane_format::manifest::object::OBJECT_HEADER_BYTES;

use super::chain::step;
use super::{Found, ManifestFolder};
use crate::bucket::Listed;

/// The objects of a manifest that are there.
#[derive(Debug)]
pub(crate) struct PastManifest {
    folder: ManifestFolder,
    listed: BTreeMap<u64, Listed>,
    /// Whole ones, oldest first, without a gap between; the last one ends with the newest object.
    groups: Vec<RangeInclusive<u64>>,
    last: ManifestObject,
}

impl ManifestFolder {
    /// Lists the objects of the manifest; `None` if there is no database.
    ///
    /// # Errors
    /// `NotFound` if an object was deleted between the list and its reading; `Corrupt`, `Io`, `Busy`.
    pub(crate) fn past(&self) -> Result<Option<PastManifest>> {
        let listed = self.objects.list()?;
        let Some((&newest, _)) = listed.last_key_value() else { return Ok(None) };
        let last = self.header(newest)?;
        let (mut groups, mut end, mut base) = (Vec::new(), newest, last.base);
        loop {
            let is_whole = base > 0 && (base..=end).all(|number| listed.contains_key(&number));
            if !is_whole && end == newest && base > 0 {
                let message = format!("a manifest object from {base} to {end} is missing");
                return Err(Error::new(Kind::NotFound, message));
            }
            if !is_whole {
                break;
            }
            groups.push(base..=end);
            end = base - 1;
            if !listed.contains_key(&end) {
                break;
            }
            base = self.header(end)?.base;
        }
        groups.reverse();
        debug_assert!(
            groups.windows(2).all(|pair| *pair[0].end() + 1 == *pair[1].start()),
            "no object is missing between"
        );
        let past = PastManifest { folder: self.clone(), listed, groups, last };
        Ok(if past.groups.is_empty() { None } else { Some(past) })
    }

    fn header(&self, number: u64) -> Result<ManifestObject> {
        let front =
            self.objects.bucket.get_range(&self.objects.name(number), 0..OBJECT_HEADER_BYTES as u64)?;
        let header = ManifestObject::decode_front(&front).map_err(|error| self.objects.at(number, error))?;
        if header.number != number || header.base > number {
            let message = format!("object {} of snapshot {}, under this name", header.number, header.base);
            return Err(self.objects.at(number, Error::corrupt(message)));
        }
        Ok(header)
    }
}

/// Takes the state behind each object and its time; returns false to end.
pub(crate) type See<'a> = &'a mut dyn FnMut(&Found, Duration) -> Result<bool>;

impl PastManifest {
    /// The number of the newest object.
    pub(crate) fn newest(&self) -> u64 {
        self.groups.last().map_or(0, |group| *group.end())
    }

    /// The header of the newest object.
    pub(crate) fn last(&self) -> &ManifestObject {
        &self.last
    }

    /// When an object was created, by the clock of the object store.
    pub(crate) fn time(&self, number: u64) -> Duration {
        self.listed.get(&number).map_or(Duration::ZERO, |object| object.modified)
    }

    /// When each writer took over, from epoch 1 on: take-overs stay, and their size tells them.
    pub(crate) fn take_overs(&self) -> Vec<Duration> {
        let is_take_over = |object: &&Listed| object.bytes <= OBJECT_HEADER_BYTES as u64;
        self.listed.values().filter(is_take_over).map(|object| object.modified).collect()
    }

    /// The last object before the first one that was created behind `time`; `None` if none is there.
    pub(crate) fn at_time(&self, time: Duration) -> Option<u64> {
        let first = *self.groups.first()?.start();
        debug_assert!(self.listed.contains_key(&first), "a group begins with an object that is there");
        let there = self.listed.range(first..);
        there.take_while(|(_, object)| object.modified <= time).last().map(|(number, _)| *number)
    }

    /// The last object before the first one whose extents have a commit behind `commit`; `None` if none is
    /// there.
    pub(crate) fn at_commit(&self, commit: SeqNo) -> Result<Option<u64>> {
        let mut last = None;
        self.walk(&mut |found, _| {
            let is_before = found.state.as_ref().is_some_and(|state| state.last_seq() <= commit);
            last = if is_before { Some(found.last.number) } else { last };
            Ok(is_before)
        })?;
        debug_assert!(last.is_none_or(|last| last <= self.newest()), "it is one of the objects");
        Ok(last)
    }

    /// The state behind the object `number`, which is there.
    pub(crate) fn read_to(&self, number: u64) -> Result<Found> {
        let group = self.groups.iter().find(|group| group.contains(&number));
        let group = group.ok_or_else(|| Error::new(Kind::NotFound, "the manifest object is not there"))?;
        let mut read = None;
        self.walk_group(*group.start()..=number, &mut |found, _| {
            read = Some(found.clone());
            Ok(true)
        })?;
        let read = read.ok_or_else(|| Error::corrupt("a manifest without an object"))?;
        assert!(read.last.number == number, "a reading ends with the requested object");
        Ok(read)
    }

    /// Shows the states from the oldest one on, until `see` ends it.
    pub(crate) fn walk(&self, see: See<'_>) -> Result<()> {
        for group in &self.groups {
            if !self.walk_group(group.clone(), see)? {
                break;
            }
        }
        Ok(())
    }

    fn walk_group(&self, numbers: RangeInclusive<u64>, see: See<'_>) -> Result<bool> {
        let wanted: Vec<(u64, u64)> =
            self.listed.range(numbers).map(|(number, object)| (*number, object.bytes)).collect();
        debug_assert!(!wanted.is_empty(), "a group has its snapshot");
        self.folder.check_bytes(wanted.iter().map(|(_, bytes)| *bytes))?;
        let objects = self.folder.fetch(&wanted)?;
        let mut found: Option<Found> = None;
        for ((number, _), bytes) in wanted.iter().zip(&objects) {
            let read = ManifestObject::decode(*number, bytes);
            let next = read.and_then(|(header, payload)| step(found.take(), header, payload, bytes));
            let next = next.map_err(|error| self.folder.objects.at(*number, error))?;
            if !see(&next, self.time(*number))? {
                return Ok(false);
            }
            found = Some(next);
        }
        Ok(true)
    }
}
