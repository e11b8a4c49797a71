//! Makes a clone: a database of its own that reads the data objects of this one, and copies none of them.
//!
//! 1. refuse a target that has anything (`clone_target.rs`) 2. ask the original's bucket for the time, then
//!    choose the state (`clone_moment.rs`) 3. create the pins: from now on the objects are not garbage. They
//!    are there, none is being deleted, if the state named them within the age of garbage 4. create the
//!    references 5. create the first object of the clone's manifest: no other writer can have it 6. commits
//!    that only the journal has become extents of the clone (`clone_replay.rs`) 7. create the snapshot: the
//!    clone is there.
//!
//! An error before step 7 takes the pins back, and a caller that ends the work has all of it removed
//! (`clone_progress.rs`). After a crash `terrane clone --replace-unfinished` takes the pins back, with
//! all else that is there (`clone_target.rs`), and `--release` if that prefix is not used again, or the crash
//! came between a pin and its reference.
//! `docs/design/0040-elastic.md` says why no object is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use terrane_base::env::{Env, Random};
use terrane_base::options::Options;
use terrane_base::{Error, Functions, Kind, Result, SeqNo};
use terrane_format::manifest::DatabaseId;
use terrane_levels::State;

use super::Deployment;
use super::at::At;
use super::clone_moment::Moment;
use super::clone_progress::{CloneProgress, TellClone, Watch, journal_bytes};
use super::clone_replay::replay;
use super::read::JournalRead;
use crate::bucket::names;
use crate::clones::{CloneObject, CloneTag, OriginalFile, OriginalNames, PinNames, keep};
use crate::manifest::{NewManifest, without_journal};
use crate::store::{DataName, Folders, NOW, all_listed, least_age};
use crate::{Bucket, BucketStore, BucketStoreSettings, Create, ManifestFolder};

/// A clone that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cloned {
    /// The last commit that it has. Where the journal is not in it, as for [`Earlier`](super::Earlier).
    pub commit: SeqNo,
    /// When the object of the manifest was created that it shows, since the Unix epoch.
    pub time: Duration,
    /// The part of the journal that is in it.
    pub journal: JournalRead,
    /// Its extents that lie in objects of originals.
    pub extents: u64,
    /// These objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of extents that were written for it: of commits that only the journal had.
    pub written_bytes: u64,
}

/// Two databases, and what both share.
struct Cloning<'a> {
    original: &'a Deployment,
    target: &'a Deployment,
    bucket: Arc<dyn Bucket>,
    target_bucket: Arc<dyn Bucket>,
    database: DatabaseId,
    env: &'a Env,
}

/// A database that has objects of the state: address of its bucket, prefix, id.
type Home = (String, String, u128);
/// Its bucket, and these objects with their bytes.
type Homed = (Arc<dyn Bucket>, BTreeMap<DataName, u64>);

/// A pin and its reference, and where the pin lies.
struct Pair {
    bucket: Arc<dyn Bucket>,
    prefix: String,
    pin: CloneObject,
    reference: CloneObject,
}

impl Deployment {
    /// Makes a database where `target` says, which begins with the state of this one at a moment, or of now.
    /// It reads the data objects of this one, which are not copied; all that it writes is its own. From then
    /// on both go on without each other: a pin in the folder of this one keeps what the clone reads until the
    /// clone names none of it.
    ///
    /// Commits that only the journal has are in the clone as far as [`Cloned::journal`] says, as for
    /// [`Deployment::open_at`]; without a moment also what the directory of a journal has, if it is on this
    /// machine and no writer has it open.
    ///
    /// ```
    /// use terrane_remote::Deployment;
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// let url = format!("file://{}", dir.path().join("bucket").display());
    /// let deployment = Deployment::new(dir.path().join("journal"), url.clone());
    /// let db = deployment.open()?;
    /// db.put("k", "v")?;
    /// db.close()?;
    /// let copy = Deployment::new(dir.path().join("journal-of-copy"), url);
    /// let copy = Deployment { prefix: "copy".to_owned(), ..copy };
    /// deployment.clone_to(&copy, None)?;
    /// let clone = copy.open()?;
    /// assert_eq!(clone.get("k")?.expect("it is in the clone"), "v");
    /// clone.put("k", "other")?;
    /// # Ok::<(), terrane_base::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Deployment::clone_to_with`].
    pub fn clone_to(&self, target: &Deployment, at: Option<At>) -> Result<Cloned> {
        self.clone_to_with(target, at, &Options::default(), Functions::default())
    }

    /// [`Deployment::clone_to`] with options, over which those of the target's file count, and functions that
    /// tables name.
    ///
    /// # Errors
    /// `Invalid` if there is anything below the target's prefix (what an unfinished clone left there
    /// [`Deployment::remove_unfinished_clone`] removes), or its journal was used before; those of
    /// [`Deployment::open_at_with`]: `Gone` also for a moment that is older than `garbage_age_s`, of which
    /// objects may be being deleted. `Poisoned` if it is unknown whether the clone was made.
    pub fn clone_to_with(
        &self,
        target: &Deployment,
        at: Option<At>,
        options: &Options,
        functions: impl Into<Functions>,
    ) -> Result<Cloned> {
        self.clone_to_until(target, at, options, functions, &mut |_| ControlFlow::Continue(()))
    }

    /// [`Deployment::clone_to_with`] in buckets that are open.
    ///
    /// # Errors
    /// As there.
    pub fn clone_in(
        &self,
        buckets: (Arc<dyn Bucket>, Arc<dyn Bucket>),
        place: (&Deployment, Option<At>),
        options: &Options,
        functions: impl Into<Functions>,
        env: Env,
    ) -> Result<Cloned> {
        let mut go_on = |_: &CloneProgress| ControlFlow::Continue(());
        self.clone_in_until(buckets, place, (options, functions.into()), env, &mut go_on)
    }

    /// [`Deployment::clone_to_until`] in buckets that are open.
    ///
    /// # Errors
    /// As there.
    pub fn clone_in_until(
        &self,
        (bucket, target_bucket): (Arc<dyn Bucket>, Arc<dyn Bucket>),
        (target, at): (&Deployment, Option<At>),
        (options, functions): (&Options, Functions),
        env: Env,
        tell: &mut TellClone<'_>,
    ) -> Result<Cloned> {
        let options = target.options_over(options)?;
        let database = DatabaseId(drawn(&*env.random));
        let cloning = Cloning { original: self, target, bucket, target_bucket, database, env: &env };
        target.check_target(self, &cloning.target_bucket, &env)?;
        let began = bucket_time(&cloning.bucket, &self.prefix, &env)?;
        let moment = self.moment(&cloning.bucket, at, &env)?;
        let mut watch = Watch::new(tell);
        watch.begin(&moment)?;
        let pairs = cloning.pairs(&moment)?;
        let made = cloning.make(&moment, &pairs, began, (&options, functions), &mut watch);
        match made {
            Err(error) if error.kind() == Kind::Poisoned => Err(error.context(format!(
                "it is unknown whether the clone {} was made; if it was not, `terrane clone --replace-unfinished` makes \
                 it again",
                cloning.place()
            ))),
            Err(error) => {
                // Only space is at stake: `--release` and `--replace-unfinished` take back what stays.
                pairs.iter().for_each(|pair| cloning.take_back(pair));
                match error.kind() == Kind::Cancelled && watch.has_begun {
                    true => Err(target.remove_ended(&cloning.target_bucket, &env, error)),
                    false => Err(error),
                }
            }
            made => made,
        }
    }
}

impl Cloning<'_> {
    /// Where the clone is.
    fn place(&self) -> String {
        names::place(self.target_bucket.url(), &self.target.prefix)
    }

    /// Deletes the pin, then its reference: that says where the pin is, should it stay.
    fn take_back(&self, pair: &Pair) {
        debug_assert!(pair.pin.nonce == pair.reference.nonce, "both have one number");
        let pin = PinNames::new(&pair.prefix).of(pair.pin.nonce);
        if pair.bucket.delete(&[pin]).is_ok() {
            let files = OriginalNames::new(&self.target.prefix);
            let reference = files.of(self.database, pair.reference.nonce, OriginalFile::Reference);
            let _ = self.target_bucket.delete(&[reference]);
        }
    }

    /// The pins and references: one of each for every database that has objects of the state.
    fn pairs(&self, moment: &Moment) -> Result<Vec<Pair>> {
        let floor = moment.objects.keys().map(|name| name.number).max().unwrap_or(0);
        let mut places: BTreeMap<Home, Homed> = BTreeMap::new();
        let own = moment.state.database.0;
        for (name, bytes) in &moment.objects {
            let (key, bucket) = match moment.originals.of(name.number) {
                None => ((self.original.url.clone(), self.original.prefix.clone(), own), &self.bucket),
                Some(further) => {
                    let CloneObject { url, prefix, original, .. } = &further.reference;
                    let url = if url.is_empty() { &self.original.url } else { url };
                    ((url.clone(), prefix.clone(), *original), further.bucket()?)
                }
            };
            let (_, objects) = places.entry(key).or_insert_with(|| (bucket.clone(), BTreeMap::new()));
            objects.insert(*name, *bytes);
        }
        let pair = |((url, prefix, original), (bucket, objects)): (Home, Homed)| {
            if url.starts_with("memory:") && url != self.target.url {
                return Err(Error::invalid("a bucket in memory cannot be reached from another one"));
            }
            let seen_from = |url: &str, at: &str| if url == at { String::new() } else { url.to_owned() };
            let reference = CloneObject {
                tag: CloneTag::Reference,
                nonce: drawn(&*self.env.random),
                clone: self.database.0,
                original,
                commit: moment.commit.0,
                floor,
                url: seen_from(&url, &self.target.url),
                prefix,
                objects,
            };
            let address = (seen_from(&self.target.url, &url), self.target.prefix.clone());
            let pin =
                CloneObject { tag: CloneTag::Pin, url: address.0, prefix: address.1, ..reference.clone() };
            Ok(Pair { bucket, prefix: reference.prefix.clone(), pin, reference })
        };
        places.into_iter().map(pair).collect()
    }

    /// Steps 3 to 7 of the head.
    fn make(
        &self,
        moment: &Moment,
        pairs: &[Pair],
        began: Duration,
        (options, functions): (&Options, Functions),
        watch: &mut Watch<'_>,
    ) -> Result<Cloned> {
        let (bucket, prefix) = (&self.target_bucket, &self.target.prefix);
        for pair in pairs {
            let kept = keep(&*pair.bucket, &pair.prefix, &pair.pin)?;
            if pair.pin.original == moment.state.database.0 {
                self.check_age(moment, began, kept)?;
                self.check_objects(pair)?;
            }
            watch.add(pair.pin.bytes())?;
        }
        // The pins of the original keep what it reads of others; they are there behind the new ones.
        moment.originals.check(moment.objects.keys().map(|name| name.number))?;
        let files = OriginalNames::new(prefix);
        for Pair { reference, .. } in pairs {
            let name = files.of(self.database, reference.nonce, OriginalFile::Reference);
            if bucket.create(&name, &reference.encode()?)? == Create::AlreadyExists {
                let place = names::place(bucket.url(), &name);
                return Err(Error::invalid(format!(
                    "{place} exists: the random numbers of this machine repeat"
                )));
            }
        }
        let manifest = ManifestFolder::new(bucket.clone(), prefix)?.begin_clone(self.database, self.env);
        let manifest = manifest.map_err(not_made)?;
        watch.has_begun = true;
        watch.add(0)?;
        let state = self.state_of(moment, (options, functions)).map_err(not_made)?;
        let last_seq = state.last_seq();
        let state = state.detached(self.database, &[], last_seq);
        debug_assert!(!pairs.is_empty() || moment.objects.is_empty(), "each object is kept by a pin");
        watch.add(journal_bytes(moment))?;
        // A person may have released a pin by force meanwhile.
        for pair in pairs {
            pair.bucket.get_tail(&PinNames::new(&pair.prefix).of(pair.pin.nonce), 1).map_err(not_made)?;
        }
        manifest.publish(&state)?;
        Ok(cloned(moment, pairs, &state))
    }

    /// Refuses a state of which a collection may be deleting an object: one that began to ask
    /// before the pin was there. It deletes only objects that no manifest has named for the age of garbage.
    fn check_age(&self, moment: &Moment, began: Duration, kept: Duration) -> Result<()> {
        // Writers whose file says less delete earlier: their list of garbage says when.
        let own = self.original.settings.garbage_age;
        let age = least_age(&*self.bucket, &self.original.prefix)?.map_or(own, |least| least.min(own));
        let is_safe = |named: Duration| named.saturating_add(age) > kept;
        if !is_safe(began) {
            let place = names::place(self.bucket.url(), &self.original.prefix);
            let message = format!(
                "{place} was read too slowly to be cloned: its writers delete what was not needed for {} s \
                 (garbage_age_s): try again, or raise that",
                age.as_secs()
            );
            return Err(Error::new(Kind::Busy, message));
        }
        let Some(replaced) = moment.replaced.filter(|replaced| !is_safe(*replaced)) else { return Ok(()) };
        debug_assert!(replaced <= kept, "what was replaced was so before");
        let files: BTreeSet<u32> = moment.objects.keys().map(|name| name.number).collect();
        let is_kept = |file: &u32| moment.present.contains(file) || moment.originals.of(*file).is_some();
        if files.iter().all(is_kept) {
            return Ok(());
        }
        Err(Error::new(
            Kind::Gone,
            format!(
                "no longer kept: this moment of {} is older than garbage_age_s of its writers ({} s), and what it \
                 needs may be being deleted: choose a later one",
                names::place(self.bucket.url(), &self.original.prefix),
                age.as_secs()
            ),
        ))
    }

    /// Looks behind the pin whether the objects are there.
    fn check_objects(&self, pair: &Pair) -> Result<()> {
        let listed = all_listed(&*pair.bucket, &Folders::new(&pair.prefix))?;
        for (name, bytes) in &pair.pin.objects {
            if listed.get(name) != Some(bytes) {
                let place = names::place(pair.bucket.url(), &pair.prefix);
                let message = format!("no longer kept: object {name} of {place}, which this moment needs");
                return Err(Error::new(Kind::Gone, message));
            }
        }
        Ok(())
    }

    /// The state of the clone, but for its id.
    fn state_of(&self, moment: &Moment, (options, functions): (&Options, Functions)) -> Result<State> {
        if moment.state.segments.is_empty() {
            return moment.state.apply(&without_journal(&moment.state));
        }
        let settings = BucketStoreSettings { probe: false, ..self.target.settings };
        let (bucket, epoch) = (self.target_bucket.clone(), NewManifest::EPOCH);
        let store = BucketStore::open(bucket, &self.target.prefix, epoch, settings, self.env.clone())?;
        let place = self.place();
        let at = (place.as_str(), self.original.journal.as_path());
        replay(moment, at, Arc::new(store), (options, functions), self.env)
    }
}

fn cloned(moment: &Moment, pairs: &[Pair], state: &State) -> Cloned {
    let floor = pairs.iter().map(|pair| pair.reference.floor).max().unwrap_or(0);
    let (referenced, own): (Vec<_>, Vec<_>) = state.metas().partition(|meta| meta.id.file <= floor);
    assert!(state.segments.is_empty(), "a clone begins without a journal");
    let is_all = moment.until.is_none() && !moment.state.segments.is_empty();
    Cloned {
        commit: if is_all { state.last_seq() } else { moment.commit },
        time: moment.time,
        journal: moment.journal,
        extents: referenced.len() as u64,
        objects: pairs.iter().map(|pair| pair.reference.objects.len() as u64).sum(),
        bytes: pairs.iter().map(|pair| pair.reference.bytes()).sum(),
        written_bytes: own.iter().map(|meta| u64::from(meta.bytes)).sum(),
    }
}

/// The error of a step before the snapshot: there is no clone, whatever that step has done.
fn not_made(error: Error) -> Error {
    if error.kind() == Kind::Poisoned { error.with_kind(Kind::Io) } else { error }
}

/// A number that no other caller draws.
fn drawn(random: &dyn Random) -> u128 {
    u128::from(random.next_u64()) << 64 | u128::from(random.next_u64())
}

/// The time by the clock of the bucket of the database below `prefix`. The object that shows it has the name
/// of one of the collection of garbage, of no writer: where it stays, the next collection deletes it.
pub(super) fn bucket_time(bucket: &Arc<dyn Bucket>, prefix: &str, env: &Env) -> Result<Duration> {
    let folder = Folders::new(prefix).garbage;
    let random = &*env.random;
    let name = format!("{folder}/{:020}-{:016x}{NOW}{:016x}", 0, random.next_u64(), random.next_u64());
    bucket.create(&name, b"now")?;
    let listed = bucket.list(&folder, None)?;
    bucket.delete(std::slice::from_ref(&name))?;
    let created = listed.iter().find(|object| object.name == name).map(|object| object.modified);
    created.ok_or_else(|| {
        let place = names::place(bucket.url(), &name);
        Error::new(Kind::Busy, format!("{place} was deleted by the writer of the original: try again"))
    })
}
