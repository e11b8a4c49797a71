//! Journals in a log.

use terrane_base::{Kind, SegmentId};
use terrane_journal::CommitLog;

use super::*;
use crate::journals::log as commit_log;
use crate::support::{env, refused};

#[test]
fn a_writer_that_was_fenced_off_appends_nothing() {
    let (env, _) = env();
    let disk = on(MemDisk::new());
    let bucket: Arc<dyn Bucket> = Arc::new(open(&disk).expect("opens"));
    let first = commit_log(&bucket, 1, &env).expect("opens");
    first.append(SegmentId(1), 0, &pattern(100, 1)).expect("appends");
    first.persist().expect("it is the writer");
    let second = commit_log(&bucket, 2, &env).expect("opens");
    for _ in 0..2 {
        let outcome = first.append(SegmentId(1), 100, b"late").and_then(|()| first.persist());
        let message = refused(outcome, Kind::Poisoned);
        assert!(message.contains("the writer of epoch 2 has taken over"), "{message}");
    }
    second.append(SegmentId(2), 0, b"of the second").expect("appends");
    second.persist().expect("it is the writer");
    drop((first, second, bucket));
    // The fence is there behind the end of the service.
    let bucket: Arc<dyn Bucket> = Arc::new(open(&disk).expect("opens"));
    refused(commit_log(&bucket, 1, &env), Kind::Poisoned);
    commit_log(&bucket, 3, &env).expect("opens");
}

/// The deployment of a journal in the service at an address.
#[cfg(feature = "grpc")]
fn deployment(root: &Path, directory: &str, journal: &str) -> terrane_remote::Deployment {
    let text = format!(
        "[journal]\ndirectory = \"{directory}\"\n{journal}\n[storage]\nurl = \"file://{}/bucket\"\nprobe = false\n\
         [options]\nclose_flush = false\nmemory_bytes = \"32MiB\"\n",
        root.display()
    );
    terrane_remote::Deployment::parse(&text, root).expect("a deployment")
}

#[cfg(feature = "grpc")]
#[test]
fn a_journal_moves_into_a_service_and_goes_on_elsewhere() {
    use crate::journals::{check as check_db, put, put_all};
    use crate::support::serve;
    use terrane::Options;
    use terrane_base::Functions;
    let root = tempfile::tempdir().expect("a temporary directory");
    let root = root.path();
    let server = serve(Arc::new(open(&on(MemDisk::new())).expect("opens")));
    let url = format!("url = \"grpc://{}\"", server.address());
    let db = deployment(root, "a", "").open().expect("opens");
    put_all(&db, 0..20, 1);
    drop(db);
    let first = deployment(root, "a", &url).open().expect("it moves");
    put_all(&first, 20..60, 2);
    let shown =
        deployment(root, "r", &url).open_to_read(&Options::default(), Functions::default()).expect("reads");
    assert_eq!(shown.journal, terrane_remote::JournalRead::Bucket);
    check_db(&shown.db, 0..20, 1);
    check_db(&shown.db, 20..60, 2);
    let follower = deployment(root, "f", &url).open_follower().expect("follows");
    put_all(&first, 60..80, 3);
    follower.catch_up().expect("catches up");
    let view = follower.view();
    assert!(view.get("key000079").expect("reads").is_some(), "a follower has what was synced");
    for tried in deployment(root, "a", &url).doctor() {
        let outcome = tried.outcome.unwrap_or_else(|error| panic!("{}: {error}", tried.part));
        assert!(!outcome.is_empty(), "{}", tried.part);
    }
    // Another machine, with an empty directory.
    let second = deployment(root, "b", &url).open().expect("takes over");
    check_db(&second, 0..20, 1);
    check_db(&second, 20..60, 2);
    check_db(&second, 60..80, 3);
    let error = put(&first, 0, 9).expect_err("it was replaced");
    assert!(error.kind() == Kind::Poisoned && error.to_string().contains("epoch"), "{error}");
    put_all(&second, 80..90, 4);
    drop((first, second, follower));
    // Without the journal, and with another service: refused by name.
    let message = refused(deployment(root, "b", "").open(), Kind::Invalid);
    assert!(message.contains("url"), "{message}");
    let empty = serve(Arc::new(open(&on(MemDisk::new())).expect("opens")));
    let other = format!("url = \"grpc://{}\"", empty.address());
    let message = refused(deployment(root, "c", &other).open(), Kind::Corrupt);
    assert!(message.contains(&empty.address().to_string()), "{message}");
    check_db(&deployment(root, "d", &url).open().expect("opens"), 80..90, 4);
}
