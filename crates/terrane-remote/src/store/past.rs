//! Which data objects an earlier state of the manifest may have its extents in.
//!
//! Two objects may have one number: one of a writer, and one of a writer before it that did not know yet that
//! it was replaced. As long as the first one is there, its greater epoch tells. Once it was deleted, two
//! things do. A writer begins behind every number that is listed or named, so an object does not count that
//! has a greater number than one of a later writer. Nor does one that was created behind the take-over of a
//! later writer: no manifest named it, since its writer was fenced off.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use terrane_base::Result;
use terrane_levels::State;

use super::names::{DataName, Folders};
use crate::bucket::Bucket;
use crate::clones::Originals;

/// The data objects for states up to one epoch.
#[derive(Debug)]
pub(crate) struct PastObjects {
    pub(super) listed: BTreeMap<DataName, u64>,
    numbers: BTreeSet<u32>,
}

impl PastObjects {
    /// Lists those for states of this epoch. `take_overs` are the times at which the writers took over, from
    /// epoch 1 on.
    ///
    /// # Errors
    /// `Io`, `Busy`.
    pub(crate) fn list(
        bucket: &dyn Bucket,
        (prefix, originals): (&str, &Originals),
        epoch: u64,
        take_overs: &[Duration],
    ) -> Result<PastObjects> {
        let folders = Folders::new(prefix);
        let objects = bucket.list(&folders.data, None)?;
        let named = objects.iter().filter_map(|object| {
            let name = folders.parse(&object.name).filter(|name| name.epoch <= epoch)?;
            let next = take_overs.get(name.epoch as usize).filter(|_| name.epoch < epoch);
            let is_late = next.is_some_and(|next| object.modified > *next);
            let counts = !is_late || terrane_base::planted!(TrustListedNumber);
            counts.then_some((name, object.bytes))
        });
        let mut listed: BTreeMap<DataName, u64> = named.collect();
        // From the greatest epoch down: the least number of a later writer.
        let (mut epoch_now, mut least, mut least_later) = (u64::MAX, u32::MAX, u32::MAX);
        let mut late = BTreeSet::new();
        for name in listed.keys().rev() {
            if name.epoch != epoch_now {
                (epoch_now, least_later) = (name.epoch, least.min(least_later));
            }
            least = least.min(name.number);
            if name.number > least_later && !terrane_base::planted!(TrustListedNumber) {
                late.insert(*name);
            }
        }
        listed.retain(|name, _| !late.contains(name));
        debug_assert!(listed.keys().all(|name| name.epoch <= epoch), "later writers are left out");
        let listed = originals.with(listed);
        let numbers = listed.keys().map(|name| name.number).collect();
        Ok(PastObjects { listed, numbers })
    }

    /// The objects of the files that a state names.
    pub(crate) fn named(&self, state: &State) -> BTreeMap<DataName, u64> {
        let files: BTreeSet<u32> = state.extents().map(|(id, _)| id.file).collect();
        let mut newest: BTreeMap<u32, u64> = BTreeMap::new();
        for name in self.listed.keys().filter(|name| files.contains(&name.number)) {
            // In the order of epochs: the newest one counts.
            newest.insert(name.number, name.epoch);
        }
        let counts = |name: &DataName| newest.get(&name.number) == Some(&name.epoch);
        let named: BTreeMap<DataName, u64> = self
            .listed
            .iter()
            .filter(|(name, _)| counts(name))
            .map(|(name, bytes)| (*name, *bytes))
            .collect();
        assert!(newest.len() <= files.len(), "no object of another file is taken");
        named
    }

    /// The files that a state names and that have no object.
    pub(crate) fn missing(&self, state: &State) -> BTreeSet<u32> {
        state.extents().map(|(id, _)| id.file).filter(|file| !self.numbers.contains(file)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use terrane_base::env::{Clock, SleepClock};

    use super::*;
    use crate::bucket::MemoryBucket;

    #[test]
    fn objects_that_a_later_writer_began_before_do_not_count() {
        let clock = Arc::new(SleepClock::default());
        let bucket = MemoryBucket::new(clock.clone());
        let take_overs = [0, 20, 40].map(Duration::from_secs);
        for (epoch, number) in [(1, 2), (1, 5), (2, 3), (2, 6), (3, 7)] {
            let name = Folders::new("db").data_name(DataName { epoch, number, part: 0 });
            bucket.create(&name, b"object").expect("creates");
        }
        let numbers = |epoch| {
            let objects =
                PastObjects::list(&bucket, ("db", &Originals::default()), epoch, &take_overs).expect("lists");
            objects.numbers.into_iter().collect::<Vec<_>>()
        };
        // All were created before any take-over, if their times are believed.
        assert_eq!(numbers(1), [2, 5], "for states of the first writer all of its objects count");
        assert_eq!(numbers(2), [2, 3, 6], "the second writer began with 3 at the latest");
        assert_eq!(numbers(3), [2, 3, 6, 7]);
        clock.sleep(Duration::from_secs(21));
        let late = Folders::new("db").data_name(DataName { epoch: 1, number: 1, part: 0 });
        bucket.create(&late, b"object").expect("creates");
        assert_eq!(numbers(1), [1, 2, 5]);
        assert_eq!(numbers(2), [2, 3, 6], "it was created behind the take-over");
    }
}
