//! A real object store. `TERRANE_TEST_S3=s3://BUCKET` names an empty bucket; endpoint and keys come from the
//! variables that [`bucket::open`] reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use terrane_base::Kind;
use terrane_base::env::Env;
use terrane_remote::bucket::{self, Bucket, probe};
use terrane_remote::{BucketStore, BucketStoreSettings, Create};
use terrane_storage::{Store, conformance};

use crate::support::{names, refused};

fn bucket() -> Option<Arc<dyn Bucket>> {
    let Ok(url) = std::env::var("TERRANE_TEST_S3") else {
        println!("not run: TERRANE_TEST_S3 names no bucket");
        return None;
    };
    Some(bucket::open(&url, &Env::real()).expect("opens"))
}

/// A folder that no other run has.
fn folder() -> String {
    format!("test-{:016x}", Env::real().random.next_u64())
}

#[test]
fn objects_of_s3_are_created_once_and_read() {
    let Some(bucket) = bucket() else { return };
    let folder = folder();
    probe::run(&*bucket, &folder, &*Env::real().random).expect("passes");
    assert_eq!(names(&*bucket, &folder), Vec::<String>::new(), "nothing is left of the probe");
    let name = |end: &str| format!("{folder}/{end}");
    assert_eq!(bucket.create(&name("a"), b"12345").expect("created"), Create::Created);
    assert_eq!(bucket.create(&name("a"), b"other").expect("answered"), Create::AlreadyExists);
    assert_eq!(bucket.get(&name("a"), 5).expect("read"), "12345");
    refused(bucket.get(&name("a"), 4), Kind::Corrupt);
    refused(bucket.get(&name("none"), 4), Kind::NotFound);
    for range in [0..6, 5..6, 9..12] {
        refused(bucket.get_range(&name("a"), range), Kind::Corrupt);
    }
    let ranges = bucket.begin_get_ranges(&name("a"), vec![3..5, 0..2, 1..1]).wait().expect("read");
    assert_eq!(ranges, ["45", "12", ""]);
    bucket.delete(&[name("a"), name("none")]).expect("deleted");
    refused(bucket.get(&name("a"), 5), Kind::NotFound);
}

#[test]
fn a_store_on_s3_keeps_the_contract() {
    let Some(bucket) = bucket() else { return };
    conformance::keeps_the_contract(|| {
        let (bucket, folder, epoch) = (bucket.clone(), folder(), AtomicU64::new(1));
        let settings = BucketStoreSettings { stage_bytes: 4 << 30, ..BucketStoreSettings::default() };
        move || -> Arc<dyn Store> {
            let epoch = epoch.fetch_add(1, Ordering::Relaxed);
            let opened = BucketStore::open(bucket.clone(), &folder, epoch, settings, Env::real());
            Arc::new(opened.expect("opens"))
        }
    });
}
