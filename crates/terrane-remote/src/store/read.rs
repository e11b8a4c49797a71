//! Reads: from the stage, from what was read ahead, or by ranges of objects.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use terrane_base::env::Clock;
use terrane_base::{Error, ExtentId, Kind, Result};
use terrane_device::{PendingRead, ReadBytes, buffer_at_least};
use terrane_storage::ReadRequest;

use super::BucketStore;
use super::fetch::Asked;
use super::names::DataName;
use super::state::{Location, State};
use super::table::{Row, TABLE_BYTES_MAX, Table, nonce_of};
use crate::bucket::Pending;
use crate::tier::ObjectKey;

/// Where the bytes of an extent can be read.
#[derive(Debug)]
pub(super) enum Found {
    Staged(Bytes),
    InObject { object: InObject, start: u64, row: Row },
}

/// An object that holds an extent.
#[derive(Clone, Copy, Debug)]
pub(super) struct InObject {
    name: DataName,
    /// `None` if the number that its writer drew is not known.
    key: Option<ObjectKey>,
    bytes: u64,
}

/// A range of an object that is wanted for a read.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) name: DataName,
    /// The object's identity, if it is known.
    pub(super) key: Option<ObjectKey>,
    pub(super) object_bytes: u64,
    pub(super) range: Range<u64>,
    /// True if the tier shall have it.
    pub(super) comes_in: bool,
    /// The checksum, if the range is the whole extent.
    crc: Option<u32>,
}

impl Wanted {
    /// Checks what was read.
    fn checked(&self, bytes: Bytes, place: impl FnOnce() -> String) -> Result<Bytes> {
        let len = self.range.end - self.range.start;
        if bytes.len() as u64 != len {
            let message = format!("{} bytes were read, expected {len}", bytes.len());
            return Err(Error::corrupt(message).at(place(), self.range.start));
        }
        match self.crc.map(|crc| (crc, crc32c::crc32c(&bytes))) {
            Some((expected, found)) if expected != found => {
                let message = format!("checksum of an extent: {found:08x}, expected {expected:08x}");
                Err(Error::corrupt(message).at(place(), self.range.start))
            }
            _ => Ok(bytes),
        }
    }
}

/// The plan of a read: bytes in memory, or a range to fetch.
enum Plan {
    Ready(Bytes),
    Fetch(Wanted),
}

impl State {
    /// Notes where the listed extents of a group are, from the tables of its parts, newest first.
    pub(super) fn locate(&mut self, number: u32, tables: &[(u32, Table)]) {
        debug_assert!(tables.is_sorted_by(|a, b| a.0 > b.0), "the newest bytes of an extent count");
        let Some(group) = self.groups.get_mut(&number) else { return };
        for (slot, extent) in &mut group.extents {
            if matches!(extent.place, Location::Listed)
                && let Some(place) = find_in(tables, *slot, extent.slots)
            {
                extent.place = place;
            }
        }
    }
}

/// Where an extent is, by the tables of its file's objects, the newest first.
pub(super) fn find_in(tables: &[(u32, Table)], slot: u32, slots: u32) -> Option<Location> {
    tables.iter().find_map(|(part, table)| {
        let found = table.0.iter().find(|(_, row)| (row.slot, row.slots) == (slot, slots))?;
        Some(Location::Stored { part: *part, offset: found.0, row: found.1 })
    })
}

impl BucketStore {
    /// Where the extent is; reads the tables of its objects if that is not known yet.
    pub(super) fn find(&self, id: ExtentId) -> Result<Found> {
        if let Some(found) = self.find_known(id)? {
            return Ok(found);
        }
        self.read_tables(id.file)?;
        self.find_known(id)?
            .ok_or_else(|| Error::corrupt(format!("no object holds extent {id}")).at(self.place_of(id), 0))
    }

    /// Where the extent is; `None` if the tables of its objects are not read yet.
    pub(super) fn find_known(&self, id: ExtentId) -> Result<Option<Found>> {
        let state = self.state.read();
        let unknown = |what: &str| Error::corrupt(format!("extent {id}: {what}")).at(self.folder(), 0);
        let extent = state.extent(id).ok_or_else(|| unknown("there is no such extent"))?;
        Ok(match &extent.place {
            Location::Reserved(_) => return Err(unknown("it was not written yet")),
            Location::Staged(bytes) | Location::Uploading { bytes, .. } => Some(Found::Staged(bytes.clone())),
            Location::Stored { part, offset, row } => {
                let group = &state.groups[&id.file];
                let name = DataName { epoch: group.epoch, number: id.file, part: *part };
                let bytes = group.parts.get(part).copied().unwrap_or(0);
                let object = InObject { name, key: group.key(id.file, *part), bytes };
                Some(Found::InObject { object, start: *offset, row: *row })
            }
            Location::Listed => None,
        })
    }

    /// Reads the tables of a file's objects.
    fn read_tables(&self, number: u32) -> Result<()> {
        let (epoch, parts) = match self.state.read().groups.get(&number) {
            Some(group) => (group.epoch, group.parts.clone()),
            None => return Ok(()),
        };
        let table = |(part, bytes): (&u32, &u64)| {
            let name = DataName { epoch, number, part: *part };
            let (bucket, text) = self.places.of(name)?;
            let tail = bucket.get_tail(&text, TABLE_BYTES_MAX as u64);
            let tail = tail.map_err(|error| self.gone(&self.places.text(name), error))?;
            let table = Table::decode(&tail, *bytes, name);
            let place = || self.places.text(name);
            let table = table.map_err(|error| error.at(place(), bytes - (tail.len() as u64).min(*bytes)))?;
            Ok(((*part, table), (*part, nonce_of(&tail))))
        };
        let tables = parts.iter().rev().map(table).collect::<Result<Vec<_>>>()?;
        let (tables, nonces): (Vec<_>, Vec<_>) = tables.into_iter().unzip();
        let mut state = self.state.write();
        state.locate(number, &tables);
        if let Some(group) = state.groups.get_mut(&number).filter(|group| group.epoch == epoch) {
            group.nonces.extend(nonces);
        }
        Ok(())
    }

    fn place_of(&self, id: ExtentId) -> String {
        terrane_storage::Store::place(self, id, 0).0
    }

    fn plan(&self, id: ExtentId, offset: u32, len: usize) -> Result<Plan> {
        let (found, start) = (self.find(id)?, u64::from(offset));
        let extent_bytes = match &found {
            Found::Staged(bytes) => bytes.len() as u64,
            Found::InObject { row, .. } => row.len.into(),
        };
        let end = start + len as u64;
        if end > extent_bytes {
            let message = format!("bytes {start} to {end} of extent {id}, which has {extent_bytes}");
            let (place, at) = terrane_storage::Store::place(self, id, offset);
            return Err(Error::corrupt(message).at(place, at));
        }
        Ok(match found {
            Found::Staged(bytes) => Plan::Ready(bytes.slice(start as usize..end as usize)),
            Found::InObject { object, start: base, row } => match self.ahead.get(id, start..end) {
                Some(bytes) => Plan::Ready(bytes),
                None => {
                    let crc = Some(row.crc).filter(|_| len as u64 == extent_bytes);
                    let InObject { name, key, bytes: object_bytes } = object;
                    let range = base + start..base + end;
                    Plan::Fetch(Wanted { name, key, object_bytes, range, comes_in: true, crc })
                }
            },
        })
    }

    pub(super) fn read_one(&self, id: ExtentId, offset: u32, buf: &mut [u8]) -> Result<()> {
        let bytes = match self.plan(id, offset, buf.len())? {
            Plan::Ready(bytes) => bytes,
            Plan::Fetch(wanted) => self.begin_fetch(wanted).wait()?,
        };
        buf.copy_from_slice(&bytes);
        Ok(())
    }

    /// Starts to read a range of an object.
    pub(super) fn begin_fetch(&self, wanted: Wanted) -> Pending<Bytes> {
        let place = self.places.text(wanted.name);
        let asked = self.source.find(&wanted);
        let asked = asked.or_else(|| self.source.call(&[&wanted]).pop()).expect("one for each range");
        let (source, clock, until) = (self.source.clone(), self.env.clock.clone(), self.kept_until());
        Pending::new(move || {
            let read = source.wait(asked, &wanted);
            wanted.checked(read.map_err(|error| gone(&place, until, &*clock, error))?, || place)
        })
    }

    /// All reads of one object go by one call, and all calls begin before the first is waited for.
    pub(super) fn read_many(&self, reads: &mut [ReadRequest<'_>]) {
        let mut by_object: BTreeMap<DataName, Vec<(usize, Wanted)>> = BTreeMap::new();
        let mut begun: Vec<(usize, Wanted, Asked)> = Vec::new();
        for (index, ReadRequest { id, offset, buf, result }) in reads.iter_mut().enumerate() {
            match self.plan(*id, *offset, buf.len()) {
                Ok(Plan::Ready(bytes)) => {
                    buf.copy_from_slice(&bytes);
                    *result = Ok(());
                }
                Ok(Plan::Fetch(wanted)) => match self.source.find(&wanted) {
                    Some(asked) => begun.push((index, wanted, asked)),
                    None => by_object.entry(wanted.name).or_default().push((index, wanted)),
                },
                Err(error) => *result = Err(error),
            }
        }
        for wanted in by_object.into_values() {
            let ranges: Vec<&Wanted> = wanted.iter().map(|(_, wanted)| wanted).collect();
            let asked = self.source.call(&ranges);
            begun
                .extend(wanted.into_iter().zip(asked).map(|((index, wanted), asked)| (index, wanted, asked)));
        }
        for (index, wanted, asked) in begun {
            let place = self.places.text(wanted.name);
            let read = self.source.wait(asked, &wanted).map_err(|error| self.gone(&place, error));
            let ReadRequest { buf, result, .. } = &mut reads[index];
            *result = read
                .and_then(|bytes| wanted.checked(bytes, || place))
                .map(|bytes| buf.copy_from_slice(&bytes));
        }
    }

    pub(super) fn begin_one(
        &self,
        id: ExtentId,
        offset: u32,
        len: usize,
        memory: Vec<u8>,
    ) -> Result<Box<dyn PendingRead>> {
        let pending = match self.plan(id, offset, len)? {
            Plan::Ready(bytes) => Pending::ready(Ok(bytes)),
            Plan::Fetch(wanted) => self.begin_fetch(wanted),
        };
        Ok(Box::new(Begun { pending, memory }))
    }

    /// Until when no writer deletes what this reader's manifest names; `None` for the writer itself.
    fn kept_until(&self) -> Option<Duration> {
        self.reads_since.map(|since| since + self.settings.garbage_age)
    }

    fn gone(&self, place: &str, error: Error) -> Error {
        gone(place, self.kept_until(), &*self.env.clock, error)
    }

    pub(super) fn read_ahead(&self, id: ExtentId, offset: u32, len: u32) {
        // Only a hint: it waits for no table.
        let Ok(Some(Found::InObject { object, start, row })) = self.find_known(id) else { return };
        let end = offset.saturating_add(len).min(row.len);
        let range = u64::from(offset)..u64::from(end);
        if offset < end && !self.ahead.covers(id, &range) {
            let InObject { name, key, bytes: object_bytes } = object;
            let wanted = start + range.start..start + range.end;
            let wanted = Wanted { name, key, object_bytes, range: wanted, comes_in: false, crc: None };
            self.ahead.add(id, range, self.begin_fetch(wanted));
        }
    }
}

/// The error of a read of an object that the manifest needs: one that is not there is damage, or a writer
/// deleted it when `until` had passed.
#[cold]
fn gone(place: &str, until: Option<Duration>, clock: &dyn Clock, error: Error) -> Error {
    if error.kind() == Kind::Corrupt && error.place().is_none() {
        return error.at(place, 0);
    }
    if error.kind() != Kind::NotFound {
        return error;
    }
    if until.is_some_and(|until| clock.now() >= until) && !terrane_base::planted!(CallGarbageDamage) {
        let message = format!("{place}, which its writer deleted since this reader opened: open it again");
        return Error::new(Kind::Gone, format!("no longer kept: {message}"));
    }
    Error::corrupt("the object is missing: restore it, or the database from a backup").at(place, 0)
}

/// A read that was started.
struct Begun {
    pending: Pending<Bytes>,
    memory: Vec<u8>,
}

impl fmt::Debug for Begun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Begun").field("memory_bytes", &self.memory.capacity()).finish_non_exhaustive()
    }
}

impl PendingRead for Begun {
    fn finish(self: Box<Self>) -> Result<ReadBytes> {
        let Begun { pending, memory } = *self;
        let bytes = pending.wait()?;
        let mut memory = buffer_at_least(memory, bytes.len());
        memory[..bytes.len()].copy_from_slice(&bytes);
        Ok(ReadBytes::new(memory, 0, bytes.len()))
    }
}
