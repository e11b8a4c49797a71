//! Takes a journal over: creates the fence under the next number. And creations in general: whose an object
//! is where the answer was lost or the name was taken.

use bytes::Bytes;
use terrane_base::env::Random;
use terrane_base::{Error, Kind, Result};
use terrane_format::journal_object::{JOURNAL_HEADER_BYTES, JournalObject, JournalTag};
use terrane_format::manifest::DatabaseId;
use terrane_format::object::object_hash;

use super::{JournalChain, JournalFolder};
use crate::bucket::Create;

/// How often a fence is tried again because the writer before, or another new one, was faster.
const ATTEMPTS: u32 = 64;
/// How often a creation is tried whose outcome is unknown. A bucket tries for its own time, too.
const CREATIONS: u32 = 3;

/// A journal that was taken over: no writer before it appends.
#[derive(Debug)]
pub struct Fence {
    /// The objects in front of the fence that are needed.
    pub before: JournalChain,
    /// The fence, and the hash of its bytes.
    pub(super) fence: (JournalObject, u128),
}

impl Fence {
    /// The epoch of its writer.
    pub(crate) fn epoch(&self) -> u64 {
        self.fence.0.epoch
    }
}

/// The facts that a writer has when it takes a journal over.
#[derive(Clone, Copy, Debug)]
pub struct TakeJournal {
    /// The database.
    pub database: DatabaseId,
    /// The epoch that the manifest gave the writer, and no other.
    pub epoch: u64,
    /// True if the manifest lists a segment.
    pub has_segments: bool,
    /// True if the journal of the writer before lay in objects. If not, it is being moved from a directory.
    pub was_in_objects: bool,
}

/// The outcome of a creation.
pub(super) enum Outcome {
    /// The object is this writer's.
    Ours,
    /// Another one has the name; its header, if that can be read.
    Others(Option<JournalObject>),
}

impl JournalFolder {
    /// Takes the journal over.
    ///
    /// # Errors
    /// `Poisoned` if a writer of a greater epoch has taken over, or the outcome is unknown; `Corrupt` if an
    /// object is missing or damaged or of another database; `Busy` if others are always faster; `Io`.
    pub fn take_over(&self, asked: &TakeJournal, random: &dyn Random) -> Result<Fence> {
        let TakeJournal { database, epoch, .. } = *asked;
        assert!(epoch > 0, "the first writer has epoch 1");
        for _ in 0..ATTEMPTS {
            let mut before = self.chain()?;
            let last = before.last;
            if let Some((last, hash)) = last {
                self.check_database(&last, database)?;
                if last.epoch == epoch && last.tag == JournalTag::Fence {
                    // Its own, of an attempt whose answer was lost.
                    before.objects.pop();
                    return Ok(Fence { before, fence: (last, hash) });
                }
                if last.epoch >= epoch {
                    return Err(self.fenced(epoch, Some(last)));
                }
            }
            let (header, bytes) = fence_behind(&before, asked, random);
            if terrane_base::planted!(SkipJournalFence)
                || matches!(self.create(&header, &bytes, None)?, Outcome::Ours)
            {
                return Ok(Fence { before, fence: (header, object_hash(&bytes)) });
            }
        }
        let message = format!("other writers append to {} without end: stop them", self.objects.place());
        Err(Error::new(Kind::Busy, message))
    }

    /// Checks that an object is of this database.
    pub(crate) fn check_database(&self, last: &JournalObject, database: DatabaseId) -> Result<()> {
        if last.database == database {
            return Ok(());
        }
        let message = format!(
            "the journal is of database {:032x}, and the manifest of {:032x}: correct the address",
            last.database.0, database.0
        );
        Err(self.objects.at(last.number, Error::corrupt(message)))
    }

    /// Ends the creation of an object, of which `first` is the outcome of the first attempt if there was one.
    ///
    /// # Errors
    /// `Poisoned` if the outcome stays unknown; any other error: nothing was created.
    pub(super) fn create(
        &self,
        header: &JournalObject,
        bytes: &Bytes,
        first: Option<Result<Create>>,
    ) -> Result<Outcome> {
        let name = self.objects.name(header.number);
        let attempt = || self.objects.bucket.begin_create(&name, vec![bytes.clone()]).wait();
        let mut created = first.unwrap_or_else(attempt);
        let mut unknown = None;
        for left in (0..CREATIONS).rev() {
            let outcome = match created {
                Ok(Create::Created) => return Ok(Outcome::Ours),
                Ok(Create::AlreadyExists) => self.whose(header.number, bytes),
                Err(error) => Err(error),
            };
            match outcome {
                Err(error) if matches!(error.kind(), Kind::Io | Kind::Busy) => unknown = Some(error),
                // An attempt before may still come to its effect.
                Err(error) if unknown.is_some() => unknown = Some(error),
                outcome => return outcome,
            }
            if left == 0 {
                break;
            }
            created = attempt();
        }
        let error = unknown.unwrap_or_else(|| Error::new(Kind::Io, "no answer"));
        let message = format!(
            "whether journal object {} was written is unknown: open the database again",
            header.number
        );
        Err(error.context(message).with_kind(Kind::Poisoned))
    }

    /// Whose the object is that has this number already.
    fn whose(&self, number: u64, bytes: &[u8]) -> Result<Outcome> {
        let front = match self.front_bytes(number) {
            Err(error) if error.kind() == Kind::NotFound || error.kind() == Kind::Corrupt => {
                return Ok(Outcome::Others(None));
            }
            front => front?,
        };
        if front[..] == bytes[..JOURNAL_HEADER_BYTES] && !terrane_base::planted!(ForgetLostJournalAnswer) {
            return Ok(Outcome::Ours);
        }
        Ok(Outcome::Others(JournalObject::decode_front(&front).ok()))
    }
}

/// The fence behind a chain.
fn fence_behind(before: &JournalChain, asked: &TakeJournal, random: &dyn Random) -> (JournalObject, Bytes) {
    let header = JournalObject {
        tag: JournalTag::Fence,
        number: before.next,
        parent: before.last.map_or(0, |(_, hash)| hash),
        first: before.first,
        confirmed: before.last.map_or(0, |(last, _)| last.number),
        epoch: asked.epoch,
        nonce: drawn(random),
        database: asked.database,
        is_whole: !asked.has_segments
            || asked.was_in_objects && before.last.is_some_and(|(last, _)| last.is_whole),
        len: 0,
    };
    debug_assert!(
        before.last.is_none_or(|(last, hash)| header.check_follows(&last, hash).is_ok()),
        "readers check the same"
    );
    (header, Bytes::from(header.encode(&[])))
}

/// A number that no other writer draws.
pub(super) fn drawn(random: &dyn Random) -> u128 {
    u128::from(random.next_u64()) << 64 | u128::from(random.next_u64())
}
