//! Which objects are the journal, and their reading: each must follow the one before.
//!
//! The size of an object shows that it is a fence. The object of the greatest number that is not void says
//! from which number on objects are needed, and up to which all were there: one that is missing below that
//! was lost. One that is missing above ends the journal. What has a greater number was under way beside it
//! when its writer died, and was not acknowledged.

use std::collections::BTreeMap;

use bytes::Bytes;
use terrane_base::{Error, Kind, Result};
use terrane_format::journal_object::{
    FENCE_SPAN, JOURNAL_HEADER_BYTES, JOURNAL_PAYLOAD_BYTES_MAX, JournalObject, JournalRange, decode_payload,
};
use terrane_format::object::object_hash;

use super::JournalFolder;

/// Objects that are read at once, and their bytes, of which one object may have more.
const READ_AT_ONCE: usize = 64;
const BYTES_AT_ONCE: u64 = 32 << 20;
/// Readings until a missing object counts as lost: a writer may delete objects that are no longer needed.
const READINGS: u32 = 4;

/// The objects of a journal that are needed.
#[derive(Clone, Debug, Default)]
pub struct JournalChain {
    /// Numbers and bytes, ascending.
    pub(super) objects: Vec<(u64, u64)>,
    /// The number behind the last one.
    pub(super) next: u64,
    /// Objects below this number are no longer needed.
    pub(super) first: u64,
    /// The last object and the hash of its bytes; `None` for an empty journal.
    pub last: Option<(JournalObject, u128)>,
}

impl JournalChain {
    /// How many objects are needed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Returns true if there is no object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Their bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.objects.iter().map(|(_, bytes)| bytes).sum()
    }
}

/// Takes the bytes of a range, from the object with this header.
pub(super) type TakeRange<'a> = &'a mut dyn FnMut(&JournalObject, JournalRange, &[u8]) -> Result<()>;

/// A fence, by its size.
pub(super) fn is_fence(bytes: u64) -> bool {
    bytes <= JOURNAL_HEADER_BYTES as u64
}

/// The objects from the number `first` on up to the first one that is absent, and the number of that.
pub(super) fn walk(sizes: &BTreeMap<u64, u64>, first: u64) -> (Vec<(u64, u64)>, u64) {
    let (mut objects, mut number) = (Vec::new(), first);
    while let Some(&bytes) = sizes.get(&number) {
        objects.push((number, bytes));
        let span = if is_fence(bytes) && !terrane_base::planted!(CountVoidObjects) { FENCE_SPAN } else { 1 };
        number = number.saturating_add(span);
    }
    debug_assert!(objects.is_sorted(), "numbers only rise");
    (objects, number)
}

/// The number of the object that says which ones are needed and were there: the greatest one that is not
/// void. `None` if there is no fence at or below it.
pub(super) fn front_number(sizes: &BTreeMap<u64, u64>) -> Option<u64> {
    let greatest = *sizes.keys().next_back()?;
    let fence = sizes.iter().rev().find(|(_, bytes)| is_fence(**bytes)).map(|(number, _)| *number);
    let is_void = |fence: u64| (fence + 1..fence.saturating_add(FENCE_SPAN)).contains(&greatest);
    fence.map(|fence| if is_void(fence) { fence } else { greatest })
}

/// The objects in parts that are read at once.
pub(super) fn at_once(objects: &[(u64, u64)]) -> impl Iterator<Item = &[(u64, u64)]> {
    let mut rest = objects;
    std::iter::from_fn(move || {
        let mut bytes = 0u64;
        let fitting = rest.iter().take(READ_AT_ONCE).take_while(|(_, own)| {
            bytes = bytes.saturating_add(*own);
            bytes <= BYTES_AT_ONCE
        });
        let count = fitting.count().max(1).min(rest.len());
        let part;
        (part, rest) = rest.split_at(count);
        Some(part).filter(|part| !part.is_empty())
    })
}

impl JournalFolder {
    /// Finds the objects that are needed, and reads the last one.
    ///
    /// # Errors
    /// `Corrupt`, naming the object, if one is missing or damaged; `Invalid` if a later version wrote one;
    /// `Io`, `Busy`.
    pub fn chain(&self) -> Result<JournalChain> {
        let mut reading = 0;
        loop {
            reading += 1;
            match self.chain_once() {
                Err(error) if error.kind() == Kind::NotFound && reading < READINGS => {}
                Err(error) if error.kind() == Kind::NotFound => {
                    let message = "an object of the journal was there, and is not: restore the bucket";
                    return Err(error.context(message).with_kind(Kind::Corrupt));
                }
                found => return found,
            }
        }
    }

    fn chain_once(&self) -> Result<JournalChain> {
        let sizes: BTreeMap<u64, u64> =
            self.objects.list()?.into_iter().map(|(number, object)| (number, object.bytes)).collect();
        let Some(&greatest) = sizes.keys().next_back() else {
            return Ok(JournalChain { next: 1, first: 1, ..JournalChain::default() });
        };
        let front_number = front_number(&sizes).ok_or_else(|| {
            self.objects
                .at(greatest, Error::corrupt("the journal has no fence, with which each writer begins"))
        })?;
        let front = self.front(front_number)?;
        let (objects, next) = walk(&sizes, front.first);
        if next <= front.confirmed {
            let place = self.objects.place_of(next);
            return Err(Error::new(Kind::NotFound, format!("{place} is missing in the journal")));
        }
        let Some(&(last, bytes)) = objects.last() else {
            let message = format!("the journal begins with object {}, which is missing", front.first);
            return Err(Error::new(Kind::NotFound, message));
        };
        let whole = self.fetch(&[(last, bytes)])?.remove(0);
        let (header, _) =
            JournalObject::decode(last, &whole).map_err(|error| self.objects.at(last, error))?;
        let first = front.first;
        Ok(JournalChain { objects, next, first, last: Some((header, object_hash(&whole))) })
    }

    /// The header of an object.
    pub(super) fn front(&self, number: u64) -> Result<JournalObject> {
        let front = self.front_bytes(number)?;
        let header = JournalObject::decode_front(&front).map_err(|error| self.objects.at(number, error))?;
        if header.number != number {
            let message = format!("journal object {} under the name of {number}", header.number);
            return Err(self.objects.at(number, Error::corrupt(message)));
        }
        Ok(header)
    }

    /// The bytes of an object's header.
    pub(super) fn front_bytes(&self, number: u64) -> Result<Bytes> {
        self.objects.bucket.get_range(&self.objects.name(number), 0..JOURNAL_HEADER_BYTES as u64)
    }

    /// Reads whole objects, all at once.
    pub(super) fn fetch(&self, wanted: &[(u64, u64)]) -> Result<Vec<Bytes>> {
        self.objects.fetch(wanted, JOURNAL_PAYLOAD_BYTES_MAX + JOURNAL_HEADER_BYTES as u64)
    }

    /// Reads the objects of a chain in order, and gives each range of bytes to `take`, with the number of its
    /// object.
    /// # Errors
    /// `Corrupt`, naming the object, if one is damaged, missing or follows another; `Invalid` if a later
    /// version wrote one; any error of `take`; `Io`; `Busy`, too, if a writer trimmed objects of the chain
    /// meanwhile.
    pub(super) fn read(&self, chain: &JournalChain, take: TakeRange<'_>) -> Result<()> {
        let mut before: Option<(JournalObject, u128)> = None;
        for wanted in at_once(&chain.objects) {
            let read = self.fetch(wanted).map_err(|error| match error.kind() {
                Kind::NotFound => self.judge_missing(error, wanted),
                _ => error,
            })?;
            for ((number, _), bytes) in wanted.iter().zip(&read) {
                let read = Self::take_object(*number, bytes, before.as_ref(), take);
                before = Some(read.map_err(|error| self.objects.at(*number, error))?);
            }
        }
        Ok(())
    }

    /// The error of a reading in which one of these objects was missing: `Busy` if a writer has trimmed it
    /// since the list. What a fence covers no writer trims.
    #[cold]
    fn judge_missing(&self, error: Error, wanted: &[(u64, u64)]) -> Error {
        let first = wanted.first().map_or(0, |(number, _)| *number);
        match self.chain() {
            Ok(now) if now.first > first => error
                .context("the writer trimmed the journal faster than it was read: try again")
                .with_kind(Kind::Busy),
            Ok(_) => error
                .context("an object of the journal was there, and is not: restore the bucket")
                .with_kind(Kind::Corrupt),
            // What became of the object is unknown.
            Err(unknown) => unknown,
        }
    }

    /// Checks an object behind the one before, and gives its ranges to `take`.
    pub(super) fn take_object(
        number: u64,
        bytes: &Bytes,
        before: Option<&(JournalObject, u128)>,
        take: TakeRange<'_>,
    ) -> Result<(JournalObject, u128)> {
        let (header, payload) = JournalObject::decode(number, bytes)?;
        if let Some((before, hash)) = before {
            header.check_follows(before, *hash)?;
        }
        if !payload.is_empty() {
            for (range, bytes) in decode_payload(payload)? {
                take(&header, range, bytes)?;
            }
        }
        Ok((header, object_hash(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use terrane_base::SegmentId;
    use terrane_base::env::Env;
    use terrane_format::manifest::DatabaseId;
    use terrane_journal::CommitLog;

    use super::*;
    use crate::bucket::faulty::{Fault, FaultyBucket};
    use crate::bucket::{Bucket, MemoryBucket};
    use crate::journal::{ObjectCommitLog, ObjectJournalSettings, Restored, TakeJournal};

    #[test]
    fn parts_are_the_whole_and_bounded() {
        let long = BYTES_AT_ONCE + 1;
        for (sizes, counts) in [
            (vec![], vec![]),
            (vec![1; 130], vec![64, 64, 2]),
            (vec![long, long], vec![1, 1]),
            (vec![1, BYTES_AT_ONCE - 1, 1], vec![2, 1]),
            (vec![1, long, 1, u64::MAX], vec![1, 1, 1, 1]),
        ] {
            let objects: Vec<(u64, u64)> = (1..).zip(sizes).collect();
            let parts: Vec<&[(u64, u64)]> = at_once(&objects).collect();
            assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), counts);
            assert_eq!(parts.concat(), objects);
        }
    }

    /// A log of a writer, and its folder in a bucket.
    fn log_in(bucket: Arc<dyn Bucket>) -> (ObjectCommitLog, JournalFolder) {
        let env = Env::real();
        let folder = JournalFolder::new(bucket, "db").expect("a prefix");
        let asked =
            TakeJournal { database: DatabaseId(7), epoch: 1, has_segments: false, was_in_objects: true };
        let fence = folder.take_over(&asked, &*env.random).expect("the first writer");
        let settings = ObjectJournalSettings::default();
        let log = ObjectCommitLog::open(folder.clone(), &fence, Restored::default(), settings, &env);
        (log.expect("opens"), folder)
    }

    fn write(log: &ObjectCommitLog, segment: u64, offset: u64) {
        log.append(SegmentId(segment), offset, b"bytes").expect("appends");
        log.persist().expect("it is the writer");
    }

    /// The names of the objects behind the fence.
    fn behind_fence(folder: &JournalFolder, chain: &JournalChain) -> Vec<String> {
        chain.objects[1..].iter().map(|(number, _)| folder.objects.name(*number)).collect()
    }

    /// A missing object was trimmed if the journal's last object no longer needs it, and is lost otherwise.
    #[test]
    fn a_reading_that_a_trim_overtook_is_not_a_lost_object() {
        for is_trimmed in [true, false] {
            let bucket: Arc<dyn Bucket> = Arc::new(MemoryBucket::new(Env::real().clock));
            let (log, folder) = log_in(bucket.clone());
            (0..3).for_each(|at| write(&log, 1, at * 5));
            let listed = folder.chain().expect("whole");
            if is_trimmed {
                log.trim(SegmentId(1));
            }
            write(&log, 2, 0);
            bucket.delete(&behind_fence(&folder, &listed)).expect("deletes");
            let error = folder.read(&listed, &mut |_, _, _| Ok(())).expect_err("objects are missing");
            let expected = if is_trimmed { Kind::Busy } else { Kind::Corrupt };
            assert_eq!(error.kind(), expected, "{error}");
        }
    }

    /// A bucket that does not answer when it is asked what became of an object has lost nothing: that is to
    /// be asked again.
    #[test]
    fn a_look_that_fails_says_nothing_of_a_missing_object() {
        for (fault, kind) in [(Fault::Before, Kind::Io), (Fault::Busy, Kind::Busy)] {
            let faulty = Arc::new(FaultyBucket::new(Arc::new(MemoryBucket::new(Env::real().clock))));
            let (log, folder) = log_in(faulty.clone());
            (0..3).for_each(|at| write(&log, 1, at * 5));
            let listed = folder.chain().expect("whole");
            faulty.delete(&behind_fence(&folder, &listed)).expect("deletes");
            let first = faulty.calls();
            let read = || folder.read(&listed, &mut |_, _, _| Ok(())).expect_err("objects are missing");
            assert_eq!(read().kind(), Kind::Corrupt, "they are lost");
            // The calls of one reading: those for the objects, then those of the look, each of which fails.
            let (all, count) = (faulty.calls() - first, listed.len() as u64);
            assert!(all > count, "{all} calls for {count} objects");
            for call in count..all {
                faulty.fail(faulty.calls() + call, fault);
                let error = read();
                assert_eq!(error.kind(), kind, "call {call} of {all}: {error}");
            }
            drop(log);
        }
    }
}
