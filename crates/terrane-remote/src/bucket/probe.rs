//! Whether an object store keeps what the trait promises.
//!
//! Conditional writes differ between object stores, and some let every one of several concurrent creations
//! win. A database on such a store loses what it acknowledged, so it is refused at opening, by the name of
//! the check that failed. The objects of the checks have names that are drawn for this run, and are removed.

use bytes::Bytes;
use terrane_base::env::Random;
use terrane_base::{Error, Kind, Result};

use super::{Bucket, Create, Pending};

/// Concurrent creations of one name.
const RIVALS: usize = 16;

/// A check of [`run`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Of 16 concurrent creations of one name exactly one wins.
    OneWinner,
    /// A later creation of the name is refused, and the object stays the winner's.
    NeverReplaced,
    /// An object is read as soon as it was created.
    ReadAfterCreate,
    /// Ranges and tails are the bytes that were asked for.
    Ranges,
    /// An object is listed as soon as it was created, with its size.
    ListAfterCreate,
    /// A list behind a name leaves out that name and those before it.
    ListBehindName,
    /// A deleted object is gone from reads and lists.
    Delete,
}

impl Check {
    /// All checks, in the order in which they are made.
    pub const ALL: [Check; 7] = [
        Check::OneWinner,
        Check::NeverReplaced,
        Check::ReadAfterCreate,
        Check::Ranges,
        Check::ListAfterCreate,
        Check::ListBehindName,
        Check::Delete,
    ];

    /// The name of the check, for messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Check::OneWinner => "one winner of 16 creations",
            Check::NeverReplaced => "never replaced",
            Check::ReadAfterCreate => "read after create",
            Check::Ranges => "ranges and tails",
            Check::ListAfterCreate => "list after create",
            Check::ListBehindName => "list behind a name",
            Check::Delete => "delete",
        }
    }
}

/// Makes every check below the folder `prefix`.
///
/// # Errors
/// `Invalid`, with the name of the check that failed: the object store cannot hold a database. The errors of
/// the bucket.
pub fn run(bucket: &dyn Bucket, prefix: &str, random: &dyn Random) -> Result<()> {
    match checked(bucket, prefix, random, true)?.into_iter().find(|(_, passed)| !passed) {
        None => Ok(()),
        Some((check, _)) => {
            let message = format!(
                "{} failed the check {:?}: a database on it would lose data; use an object store that keeps \
                 conditional writes (`docs/design/0040-elastic.md`)",
                bucket.url(),
                check.name()
            );
            Err(Error::invalid(message))
        }
    }
}

/// Makes every check and says which passed.
///
/// # Errors
/// Those of the bucket.
pub fn outcomes(bucket: &dyn Bucket, prefix: &str, random: &dyn Random) -> Result<Vec<(Check, bool)>> {
    let outcomes = checked(bucket, prefix, random, false)?;
    debug_assert_eq!(outcomes.len(), Check::ALL.len(), "every check has an outcome");
    Ok(outcomes)
}

/// Makes the checks, or no further one after a race without one winner: a store that fails the first check
/// may refuse what the others need.
fn checked(
    bucket: &dyn Bucket,
    prefix: &str,
    random: &dyn Random,
    ends_early: bool,
) -> Result<Vec<(Check, bool)>> {
    let folder = format!("{prefix}/probe/{:016x}", random.next_u64());
    let probe = Probe { bucket, contested: format!("{folder}/1"), second: format!("{folder}/2"), folder };
    // Before anything may be left: a store that cannot be reached fails here.
    bucket.list(&probe.folder, None)?;
    let outcomes = probe.run(random, ends_early);
    // After a failure too: no later run would find the remaining objects. The error of the checks matters
    // more.
    let removed = bucket.delete(&[probe.contested.clone(), probe.second.clone()]);
    let outcomes = outcomes?;
    removed?;
    Ok(outcomes)
}

struct Probe<'b> {
    bucket: &'b dyn Bucket,
    folder: String,
    contested: String,
    second: String,
}

impl Probe<'_> {
    fn run(&self, random: &dyn Random, ends_early: bool) -> Result<Vec<(Check, bool)>> {
        // Long enough for ranges; each rival's begins with a number of its own.
        let contents: Vec<Bytes> = (0..=RIVALS).map(|rival| content(rival, random)).collect();
        let (late, rivals) = contents.split_last().expect("there is one more than rivals");
        let winners = self.race(rivals)?;
        if ends_early && winners.len() != 1 {
            return Ok(vec![(Check::OneWinner, false)]);
        }
        let again = self.bucket.create(&self.contested, late)?;
        let found = self.found(&self.contested, late.len() as u64)?;
        let is_winners = found.as_ref().is_some_and(|found| winners.contains(&found));
        let created = self.bucket.create(&self.second, late)? == Create::Created;
        let read = self.found(&self.second, late.len() as u64)?;
        let mut outcomes = vec![
            (Check::OneWinner, winners.len() == 1),
            (Check::NeverReplaced, again == Create::AlreadyExists && is_winners),
            (Check::ReadAfterCreate, created && read.as_ref() == Some(late)),
            (Check::Ranges, self.ranges_are_right(late)?),
        ];
        outcomes.extend(self.lists(late.len() as u64)?);
        outcomes.push((Check::Delete, self.deletes()?));
        Ok(outcomes)
    }

    /// Creates one name many times at once; returns the contents of the creations that claim to have won.
    fn race<'c>(&self, rivals: &'c [Bytes]) -> Result<Vec<&'c Bytes>> {
        let begin = |content: &Bytes| self.bucket.begin_create(&self.contested, vec![content.clone()]);
        let pending: Vec<Pending<Create>> = rivals.iter().map(begin).collect();
        let mut winners = Vec::new();
        for (pending, content) in pending.into_iter().zip(rivals) {
            if pending.wait()? == Create::Created {
                winners.push(content);
            }
        }
        Ok(winners)
    }

    fn found(&self, name: &str, bytes: u64) -> Result<Option<Bytes>> {
        unless_missing(self.bucket.get_tail(name, bytes + 1))
    }

    fn ranges_are_right(&self, content: &Bytes) -> Result<bool> {
        let (len, middle) = (content.len() as u64, content.len() / 2);
        let ranges = vec![middle as u64..len, 0..10, 20..21];
        // A store that answers with too few bytes fails the check, not the call.
        let read = match self.bucket.begin_get_ranges(&self.second, ranges).wait() {
            Err(error) if error.kind() == Kind::Corrupt => return Ok(false),
            read => unless_missing(read)?.unwrap_or_default(),
        };
        let wanted = [content.slice(middle..), content.slice(..10), content.slice(20..21)];
        let tail = unless_missing(self.bucket.get_tail(&self.second, 33))?.unwrap_or_default();
        Ok(read == wanted && tail == content.slice(content.len() - 33..))
    }

    fn lists(&self, bytes: u64) -> Result<[(Check, bool); 2]> {
        let list = |after: Option<&str>| {
            let listed = self.bucket.list(&self.folder, after)?;
            Ok::<_, Error>(listed.into_iter().map(|object| (object.name, object.bytes)).collect::<Vec<_>>())
        };
        let both = [(self.contested.clone(), bytes), (self.second.clone(), bytes)];
        let (all, behind) = (list(None)?, list(Some(&self.contested))?);
        // A name that is late in both lists is one failure, not two.
        let behind = !behind.iter().any(|(name, _)| *name <= self.contested);
        Ok([(Check::ListAfterCreate, all == both), (Check::ListBehindName, behind)])
    }

    fn deletes(&self) -> Result<bool> {
        self.bucket.delete(std::slice::from_ref(&self.second))?;
        let listed = self.bucket.list(&self.folder, None)?;
        let is_gone = self.found(&self.second, 1)?.is_none();
        Ok(is_gone && !listed.iter().any(|object| object.name == self.second))
    }
}

/// 4 KiB that no other content has.
fn content(rival: usize, random: &dyn Random) -> Bytes {
    let mut rng = terrane_base::Rng::new(random.next_u64() ^ rival as u64);
    (0..512).flat_map(|_| rng.next_u64().to_le_bytes()).collect::<Vec<u8>>().into()
}

fn unless_missing<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.kind() == Kind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
