//! Leases: numbers of files under which a worker on another machine writes, and the adoption of what it
//! wrote.
//!
//! * The writer takes numbers off its own count, for one attempt at a job. It never writes under them, nor
//!   leases them again, so that names stay unique: the epoch is the writer's, the number is the worker's.
//! * The worker opens a store of its own over the same bucket, which reads the extents of the job and writes
//!   under the leased numbers only.
//! * The writer adopts what the worker reports, behind checks: the worker is another program, and what it
//!   says is hostile. Adopted extents are as those that the writer allocated.
//! * Objects under a lease are not garbage until it ends. What was not adopted is garbage then. An object
//!   under a file of the report that the report does not name is refused with all of it: a later opening
//!   would take the file with all of its objects.
//! * The last [`LEASE_RESERVE`] numbers are the writer's alone, so that leases never stop its flushes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use terrane_base::env::Env;
use terrane_base::{Error, ExtentId, Kind, Result};
use terrane_format::extent::FOOTER_BYTES_MAX;

use super::names::{DataName, Folders, PARTS_MAX};
use super::open::{all_listed, replaced};
use super::read::find_in;
use super::state::{Extent, Group, Location, Phase, State};
use super::table::{TABLE_BYTES_MAX, Table, nonce_of};
use super::{BucketStore, BucketStoreSettings, extents, object_names};
use crate::bucket::Bucket;
use crate::clones::Originals;

/// A data object that a worker wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WrittenObject {
    /// The number of its file.
    pub number: u32,
    /// Counts the objects of the number, from 0.
    pub part: u32,
    /// Its bytes.
    pub bytes: u64,
}

/// The outputs of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The random number of the worker's store: it stands in each object.
    pub nonce: u128,
    /// The objects, by number and part.
    pub objects: Vec<WrittenObject>,
}

/// Numbers that are never leased: with the least objects, of 1 MiB, they are enough for 16 TiB of flushes.
pub const LEASE_RESERVE: u32 = 1 << 24;

/// Says whether an extent is what was reported of it, by its last bytes: at most as many as a footer may
/// have.
pub type CheckEnd<'c> = &'c dyn Fn(ExtentId, &[u8]) -> Result<()>;

/// The objects of one file by part, each with its bytes.
type Parts = BTreeMap<u32, u64>;

impl State {
    /// The number that is `count` behind the next one.
    pub(super) fn number_behind(&self, count: u32) -> Result<u32> {
        let end = self.next_number.checked_add(count).filter(|end| *end <= self.numbers.end);
        end.ok_or_else(|| {
            let message = if self.numbers.end == u32::MAX {
                "all numbers of data objects are used: copy the database".to_owned()
            } else {
                let (count, start) = (self.numbers.end - self.numbers.start, self.numbers.start);
                format!("the {count} leased file numbers from {start} on are used: lease more of them")
            };
            Error::new(Kind::Full, message)
        })
    }

    fn lease(&mut self, count: u32) -> Result<Range<u32>> {
        let (start, end) = (self.next_number, self.number_behind(count)?);
        if end > self.numbers.end.saturating_sub(LEASE_RESERVE) {
            let message = format!(
                "{count} file numbers from {start} on are not leased: the last {LEASE_RESERVE} are the writer's own"
            );
            return Err(Error::new(Kind::Full, message));
        }
        self.phase = Phase::Open;
        self.next_number = end;
        self.leases.insert(start, end);
        Ok(start..end)
    }

    /// True if a worker may write under the number.
    pub(super) fn is_leased(&self, number: u32) -> bool {
        let before = self.leases.range(..=number).next_back();
        before.is_some_and(|(_, end)| number < *end)
    }

    fn check_lease(&self, lease: &Range<u32>) -> Result<()> {
        if self.leases.get(&lease.start) == Some(&lease.end) {
            return Ok(());
        }
        Err(Error::invalid(format!("the lease of file numbers {lease:?} has ended, or was never given")))
    }

    fn adopt(
        &mut self,
        (epoch, nonce): (u64, u128),
        file: u32,
        adopted: BTreeMap<u32, Extent>,
        parts: Parts,
    ) {
        self.live_slots += adopted.values().map(|extent| u64::from(extent.slots)).sum::<u64>();
        let next_part = parts.last_key_value().map_or(0, |(part, _)| part + 1);
        let next_slot = adopted.last_key_value().map_or(0, |(slot, extent)| slot + extent.slots);
        let mut group = Group::default();
        group.nonces = parts.keys().map(|part| (*part, nonce)).collect();
        (group.epoch, group.extents, group.parts) = (epoch, adopted, parts);
        (group.next_part, group.next_slot) = (next_part, next_slot);
        let before = self.groups.insert(file, group);
        assert!(before.is_none(), "the store takes no number that it leased");
    }
}

impl BucketStore {
    /// Reserves file numbers for one worker. They are never given again.
    ///
    /// # Errors
    /// `Invalid` if `count` is 0, or the store is not restored or only for reading; `Full` if there are not
    /// so many; `Poisoned`.
    pub fn lease(&self, count: u32) -> Result<Range<u32>> {
        self.check_writable("lease file numbers")?;
        if count == 0 || self.lease.is_some() {
            return Err(Error::invalid(format!(
                "cannot lease {count} file numbers of {}: a lease has one number or more, and a store that has a lease gives none",
                self.folder()
            )));
        }
        let mut state = self.state.write();
        self.check_restored(&state)?;
        state.lease(count)
    }

    /// Ends a lease: nothing of it can be adopted any more, and what was not is garbage.
    pub fn end_lease(&self, lease: &Range<u32>) {
        let mut state = self.state.write();
        if state.check_lease(lease).is_ok() {
            state.leases.remove(&lease.start);
        }
    }

    /// Opens the store of a worker, beside the writer of `epoch`: it reads what that wrote, and writes under
    /// the file numbers `lease` and the writer's epoch. [`Store::restore`](terrane_storage::Store::restore)
    /// follows with the extents that the job reads. One list.
    ///
    /// # Errors
    /// `Invalid` if a setting or the prefix is impossible, or the lease was used before; `Poisoned` if a
    /// newer writer is at work; `Io`.
    pub fn open_leased(
        bucket: Arc<dyn Bucket>,
        prefix: &str,
        (epoch, lease): (u64, Range<u32>),
        settings: BucketStoreSettings,
        env: Env,
    ) -> Result<Self> {
        settings.check()?;
        object_names::check(prefix)?;
        let folders = Folders::new(prefix);
        let mut listed = all_listed(&*bucket, &folders)?;
        let place = object_names::place(bucket.url(), &folders.data);
        if let Some((newest, _)) = listed.last_key_value().filter(|(newest, _)| newest.epoch > epoch) {
            return Err(replaced(&place, epoch, newest.epoch));
        }
        if lease.is_empty() || lease.start == 0 {
            return Err(Error::invalid(format!(
                "{place}: {lease:?} is not a lease of file numbers: it is empty or begins with 0"
            )));
        }
        if let Some(name) = listed.keys().find(|name| name.epoch == epoch && lease.contains(&name.number)) {
            let message = format!("{place}: {name} exists, so the lease {lease:?} was used before");
            return Err(Error::invalid(message));
        }
        // No manifest names the objects that a replaced writer creates under these numbers.
        listed.retain(|name, _| !lease.contains(&name.number));
        let originals = Originals::read(&bucket, prefix, &env)?;
        let mut store = BucketStore::with((bucket, prefix, originals), (epoch, listed), settings, env, None);
        let mut state = store.state.write();
        (state.next_number, state.numbers) = (lease.start, lease.clone());
        drop(state);
        store.lease = Some(lease);
        Ok(store)
    }

    /// The outputs of this store of a worker. Requires: a sync, and no write behind it.
    ///
    /// # Errors
    /// `Invalid` if it is not the store of a worker, or something waits for a sync; `Poisoned`.
    pub fn written(&self) -> Result<Written> {
        self.check_writable("report")?;
        let state = self.state.read();
        let lease = self.lease.clone().filter(|_| state.staged_bytes + state.uploading_bytes == 0);
        let lease = lease.ok_or_else(|| {
            Error::invalid(format!(
                "{}: only the store of a worker reports written objects, and only after a sync",
                self.folder()
            ))
        })?;
        let of_file = |(number, group): (&u32, &Group)| {
            let object =
                |(part, bytes): (&u32, &u64)| WrittenObject { number: *number, part: *part, bytes: *bytes };
            group.parts.iter().map(object).collect::<Vec<_>>()
        };
        let objects = state.groups.range(lease).flat_map(of_file).collect();
        Ok(Written { nonce: self.nonce, objects })
    }

    /// Makes extents that a worker wrote extents of this store, as if it had allocated and written them. The
    /// objects are looked at first: each is under the lease, in the bucket, of the reported size, of that
    /// worker by its table, no object is there that was not reported, the tables have the extents, and
    /// `check` accepts the end of each. One list, and two reads for each object.
    ///
    /// # Errors
    /// `Invalid` if the lease has ended; `Corrupt` if anything that was reported is not so; `Poisoned` if a
    /// newer writer is at work; `Io`. Nothing was adopted then.
    pub fn adopt_leased(
        &self,
        lease: &Range<u32>,
        written: &Written,
        extents: &[(ExtentId, u32)],
        check: CheckEnd<'_>,
    ) -> Result<()> {
        self.check_writable("adopt extents")?;
        self.state.read().check_lease(lease)?;
        let at = |error: Error| match error.kind() {
            Kind::Corrupt => error.at(self.folder(), 0),
            _ => error,
        };
        let mut objects = self.reported(lease, written).map_err(at)?;
        let by_file = extents::by_file(extents, |file| objects.contains_key(&file)).map_err(at)?;
        objects.retain(|number, _| by_file.contains_key(number));
        self.check_listed(lease, &objects).map_err(at)?;
        let tables = self.tables_of(&objects, written.nonce).map_err(at)?;
        let mut adopted = Vec::new();
        for (file, extents) in &by_file {
            adopted.push((*file, located(*file, extents, &tables[file]).map_err(at)?));
        }
        self.check_ends(&adopted, check).map_err(at)?;
        let mut state = self.state.write();
        // Again: it may have ended meanwhile.
        state.check_lease(lease)?;
        if let Some((file, _)) = adopted.iter().find(|(file, _)| state.groups.contains_key(file)) {
            return Err(at(Error::corrupt(format!("file {file} was adopted before"))));
        }
        for (file, extents) in adopted {
            let parts = objects.remove(&file).unwrap_or_default();
            state.adopt((self.epoch, written.nonce), file, extents, parts);
        }
        Ok(())
    }

    /// The reported objects by number and part, which are under the lease.
    fn reported(&self, lease: &Range<u32>, written: &Written) -> Result<BTreeMap<u32, Parts>> {
        let mut objects: BTreeMap<u32, Parts> = BTreeMap::new();
        for object in &written.objects {
            let WrittenObject { number, part, bytes } = *object;
            let is_leased = lease.contains(&number);
            if !is_leased || part > PARTS_MAX {
                let message =
                    format!("a worker reports {object:?}, and has a lease of the numbers {lease:?}");
                return Err(Error::corrupt(message));
            }
            if objects.entry(number).or_default().insert(part, bytes).is_some() {
                return Err(Error::corrupt(format!("a worker reports {object:?} twice")));
            }
        }
        Ok(objects)
    }

    /// Checks that the objects are in the bucket and have the reported sizes, and that there are no others of
    /// their files.
    fn check_listed(&self, lease: &Range<u32>, objects: &BTreeMap<u32, Parts>) -> Result<()> {
        let before = DataName { epoch: self.epoch, number: lease.start - 1, part: PARTS_MAX };
        let after = self.folders.data_name(before);
        let listed = self.bucket.list(&self.folders.data, Some(&after))?;
        let named =
            listed.iter().filter_map(|object| Some((self.folders.parse(&object.name)?, object.bytes)));
        let listed: BTreeMap<DataName, u64> = named.collect();
        if let Some((newest, _)) = listed.last_key_value().filter(|(newest, _)| newest.epoch > self.epoch) {
            return Err(replaced(&self.folder(), self.epoch, newest.epoch));
        }
        let is_of_file = |name: &DataName| name.epoch == self.epoch && objects.contains_key(&name.number);
        let is_reported = |name: &DataName| objects[&name.number].contains_key(&name.part);
        if let Some(name) = listed.keys().find(|name| is_of_file(name) && !is_reported(name)) {
            return Err(Error::corrupt(format!("object {name} is there, and the worker does not report it")));
        }
        for (number, parts) in objects {
            for (part, bytes) in parts {
                let name = DataName { epoch: self.epoch, number: *number, part: *part };
                if listed.get(&name) != Some(bytes) {
                    let found = listed.get(&name).map_or("none".to_owned(), u64::to_string);
                    let message =
                        format!("object {name}: reported with {bytes} bytes, the bucket has {found}");
                    return Err(Error::corrupt(message));
                }
            }
        }
        Ok(())
    }

    /// The tables of the objects by file, the newest part first. All reads begin before the first is waited
    /// for.
    fn tables_of(
        &self,
        objects: &BTreeMap<u32, Parts>,
        nonce: u128,
    ) -> Result<BTreeMap<u32, Vec<(u32, Table)>>> {
        let mut begun = Vec::new();
        for (number, parts) in objects {
            for (part, bytes) in parts.iter().rev() {
                let name = DataName { epoch: self.epoch, number: *number, part: *part };
                let tail = bytes.saturating_sub(TABLE_BYTES_MAX as u64)..*bytes;
                let pending = self.bucket.begin_get_ranges(&self.folders.data_name(name), vec![tail]);
                begun.push((name, *bytes, pending));
            }
        }
        let mut tables: BTreeMap<u32, Vec<(u32, Table)>> = BTreeMap::new();
        for (name, bytes, pending) in begun {
            let tail = pending.wait()?.pop().unwrap_or_default();
            let table = Table::decode(&tail, bytes, name)?;
            if nonce_of(&tail) != nonce {
                return Err(Error::corrupt(format!("object {name} is of another worker than the report")));
            }
            tables.entry(name.number).or_default().push((name.part, table));
        }
        Ok(tables)
    }

    /// Has the ends of all extents checked. All reads begin before the first is waited for.
    fn check_ends(&self, adopted: &[(u32, BTreeMap<u32, Extent>)], check: CheckEnd<'_>) -> Result<()> {
        let mut begun = Vec::new();
        for (file, extents) in adopted {
            let mut by_part: BTreeMap<u32, (Vec<ExtentId>, Vec<Range<u64>>)> = BTreeMap::new();
            for (slot, extent) in extents {
                let Location::Stored { part, offset, row } = &extent.place else { continue };
                let end = offset + u64::from(row.len);
                let (ids, ranges) = by_part.entry(*part).or_default();
                ids.push(ExtentId { file: *file, slot: *slot });
                ranges.push((end - u64::from(row.len).min(FOOTER_BYTES_MAX as u64))..end);
            }
            for (part, (ids, ranges)) in by_part {
                let name = DataName { epoch: self.epoch, number: *file, part };
                begun.push((ids, self.bucket.begin_get_ranges(&self.folders.data_name(name), ranges)));
            }
        }
        for (ids, pending) in begun {
            let ends = pending.wait()?;
            debug_assert_eq!(ends.len(), ids.len(), "an end for each extent");
            ids.iter().zip(&ends).try_for_each(|(id, end)| check(*id, end))?;
        }
        Ok(())
    }
}

/// The extents of a file where its tables, the newest part first, have them.
fn located(
    file: u32,
    extents: &BTreeMap<u32, u32>,
    tables: &[(u32, Table)],
) -> Result<BTreeMap<u32, Extent>> {
    let locate = |(slot, slots): (&u32, &u32)| {
        let place = find_in(tables, *slot, *slots).ok_or_else(|| {
            Error::corrupt(format!("extent {file}:{slot} of {slots} slots: no object of the file holds it"))
        })?;
        Ok((*slot, Extent { slots: *slots, place, is_in_object: true }))
    };
    extents.iter().map(locate).collect()
}
