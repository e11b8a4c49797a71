//! Body of the fuzz target for the objects of jobs, their bytes and their names.

use terrane_base::Kind;

use super::names::JobNames;
use super::object::{JobObject, repaired, samples};

/// An object as it is, with its checksums set right, and as the end of a name.
///
/// # Panics
/// If what was decoded is not encoded to the same, or an error is of a kind that no caller can act on.
pub fn job_object(bytes: &[u8]) {
    judge(bytes);
    if let Some(repaired) = repaired(bytes) {
        judge(&repaired);
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let names = JobNames::new("db").expect("a prefix");
        for name in [text.to_owned(), format!("db/jobs/{text}"), format!("db/jobs/workers/{text}")] {
            if let Some(parsed) = names.parse(&name) {
                assert_eq!(names.of(&parsed), name, "one name for each object");
            }
        }
    }
}

fn judge(bytes: &[u8]) {
    match JobObject::decode(bytes) {
        Ok((header, payload)) => {
            let again = header.encode(payload);
            assert_eq!(JobObject::decode(&again).expect("what was encoded is decoded"), (header, payload));
        }
        Err(error) => assert!(matches!(error.kind(), Kind::Corrupt | Kind::Invalid), "{error}"),
    }
}

/// Corpus of [`job_object`].
#[must_use]
pub fn job_object_seeds() -> Vec<(String, Vec<u8>)> {
    let seed = |(header, payload): (JobObject, &[u8])| {
        (format!("{:?}", header.tag).to_lowercase(), header.encode(payload))
    };
    let names = [
        ("name-beat", &b"00000000000000000007-0000000012/002-beat-0000000005-00000000000000000033"[..]),
        ("name-worker", b"m-1.x-000000000000000a-0000000003"),
    ];
    let names = names.into_iter().map(|(name, bytes)| (name.to_owned(), bytes.to_vec()));
    samples().into_iter().map(seed).chain(names).collect()
}
