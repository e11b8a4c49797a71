//! Followers of a database in a bucket: they go on with its writers, and show one moment; and readers of
//! earlier moments (`past.rs`, `past_model.rs`, `past_times.rs`).

mod calls;
mod damage;
mod directories;
mod model;
mod moments;
mod past;
mod past_model;
mod past_times;
mod takeovers;
mod trimmed;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use terrane::{Db, Durability, Follower, Options};
use terrane_base::Functions;
use terrane_base::env::{Env, SleepClock};
use terrane_base::sync::Mutex;
use terrane_format::journal_object::{JournalObject, JournalTag};
use terrane_format::manifest::object::OBJECT_HEADER_BYTES;
use terrane_format::object::parse_object_name;
use terrane_remote::bucket::MemoryBucket;
use terrane_remote::manifest::Found;
use terrane_remote::{
    Bucket, BucketJournal, BucketStoreSettings, Deployment, ManifestFolder, ObjectJournalSettings,
};

use crate::support::{env, memory, names};

/// Objects that the writer replaced are deleted after so many seconds.
const AGE: Duration = Duration::from_secs(60);

/// A bucket whose clock moves on by sleeps only, and the directories of machines.
struct Place {
    root: TempDir,
    bucket: Arc<MemoryBucket>,
    clock: Arc<SleepClock>,
    env: Env,
    /// Files that a manifest was seen to name.
    named: Mutex<BTreeSet<u32>>,
}

impl Place {
    fn new() -> Place {
        let (env, clock) = env();
        let root = tempfile::tempdir().expect("a temporary directory");
        Place { root, bucket: memory(&clock), clock, env, named: Mutex::default() }
    }

    /// Journal in the bucket; the working copy is in the directory `machine`.
    fn deployment(&self, machine: &str) -> Deployment {
        let options = [
            ("memory_bytes", "16777216"),
            ("write_memory_bytes", "4194304"),
            ("segment_bytes", "65536"),
            ("close_flush", "false"),
        ];
        let settings = ObjectJournalSettings {
            batch_bytes: 4096,
            // Nothing is uploaded for its age.
            batch: Duration::from_secs(36_000_000),
            replaced_age: AGE,
            ..ObjectJournalSettings::default()
        };
        Deployment {
            journal: self.root.path().join(machine),
            bucket_journal: Some(BucketJournal { url: None, settings }),
            abandon: None,
            url: "memory:".to_owned(),
            prefix: "db".to_owned(),
            settings: BucketStoreSettings {
                object_bytes: 1 << 20,
                stage_bytes: 64 << 20,
                garbage_age: AGE,
                probe: false,
            },
            cache: None,
            hedged_reads: true,
            writer_check_ms: 3_600_000,
            compaction: None,
            options: options.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        }
    }

    /// Its journal is in the directory `machine` only.
    fn in_directory(&self, machine: &str) -> Deployment {
        Deployment { bucket_journal: None, ..self.deployment(machine) }
    }

    fn open_as(&self, deployment: &Deployment) -> terrane::Result<Db> {
        deployment.open_in(self.bucket.clone(), &Options::default(), Functions::default(), Env::real())
    }

    fn open(&self, machine: &str) -> Db {
        self.open_as(&self.deployment(machine)).expect("opens")
    }

    fn follow_through(&self, bucket: Arc<dyn Bucket>, deployment: &Deployment) -> terrane::Result<Follower> {
        deployment.follow_in(bucket, &Options::default(), Functions::default(), self.env.clone())
    }

    /// A follower on a machine of its own.
    fn follow(&self) -> Follower {
        self.note_named();
        self.follow_through(self.bucket.clone(), &self.deployment("elsewhere")).expect("follows")
    }

    /// The present manifest; what it names may be collected once it does not.
    fn note_named(&self) -> Found {
        let folder = ManifestFolder::new(self.bucket.clone(), "db").expect("a prefix");
        let found = folder.read().expect("reads").expect("there is a manifest");
        let state = found.state.as_ref().expect("there is a database");
        self.named.lock().extend(state.extents().map(|(id, _)| id.file));
        found
    }
}

/// The names in a folder by their numbers.
fn numbered(bucket: &dyn Bucket, folder: &str) -> BTreeMap<u64, String> {
    let number = |name: &String| name.rsplit('/').next().and_then(parse_object_name).expect("a number");
    names(bucket, folder).into_iter().map(|name| (number(&name), name)).collect()
}

fn journal_header(bucket: &dyn Bucket, name: &str) -> JournalObject {
    JournalObject::decode_front(&bucket.get(name, u64::MAX - 1).expect("reads")).expect("a header")
}

/// Deletes what the writer's collection of garbage would once it is old enough.
fn collect(place: &Place) {
    let bucket = &*place.bucket;
    let mut gone = Vec::new();
    let found = place.note_named();
    for (number, name) in numbered(bucket, "db/manifest") {
        let is_take_over = bucket.get(&name, u64::MAX - 1).expect("reads").len() == OBJECT_HEADER_BYTES;
        if number < found.last.base && !is_take_over {
            gone.push(name);
        }
    }
    let journal = numbered(bucket, "db/journal");
    let first = journal.last_key_value().map_or(0, |(_, name)| journal_header(bucket, name).first);
    let is_bytes = |name: &String| journal_header(bucket, name).tag == JournalTag::Bytes;
    gone.extend(journal.range(..first).map(|(_, name)| name.clone()).filter(is_bytes));
    let state = found.state.expect("there is a database");
    let files: BTreeSet<u32> = state.extents().map(|(id, _)| id.file).collect();
    for name in names(bucket, "db/data") {
        let file: u32 = name.rsplit('-').nth(1).expect("a file").parse().expect("a number");
        // One that no manifest named yet is being uploaded.
        if !files.contains(&file) && place.named.lock().contains(&file) {
            gone.push(name);
        }
    }
    bucket.delete(&gone).expect("deletes");
}

fn key(number: u32) -> String {
    format!("key{number:06}")
}

fn value(salt: u32) -> Vec<u8> {
    [salt.to_le_bytes(); 30].concat()
}

fn put_as(db: &Db, number: u32, salt: u32, durability: Durability) -> terrane::Result<()> {
    db.default_table().put_with(key(number), value(salt), durability)
}

/// Writes keys durably.
fn put_all(db: &Db, range: std::ops::Range<u32>, salt: u32) {
    range.for_each(|number| put_as(db, number, salt, Durability::Synced).expect("put"));
}

#[track_caller]
fn check(db: &Db, range: std::ops::Range<u32>, salt: u32) {
    for number in range {
        let found = db.get(key(number)).expect("reads");
        assert!(found.as_deref() == Some(&value(salt)[..]), "{}, {salt}", key(number));
    }
}

#[track_caller]
fn check_absent(db: &Db, range: std::ops::Range<u32>) {
    for number in range {
        assert_eq!(db.get(key(number)).expect("reads"), None, "{}", key(number));
    }
}
