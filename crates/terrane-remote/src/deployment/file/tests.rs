//! Content of a file of a deployment, and the errors of wrong files.

use super::*;

const WHOLE: &str = "[journal]\ndirectory = \"wal\"\n[storage]\nurl = \"memory:\"\n";

fn refused(text: &str) -> String {
    let error = Deployment::parse(text, Path::new("/etc")).expect_err(text);
    assert_eq!(error.kind(), Kind::Invalid);
    error.to_string()
}

#[test]
fn a_key_that_is_left_out_has_a_default() {
    let found = Deployment::parse(WHOLE, Path::new("/etc")).expect("whole");
    assert_eq!(found.journal, Path::new("/etc/wal"));
    assert_eq!((found.url.as_str(), found.prefix.as_str()), ("memory:", PREFIX));
    assert_eq!(found.settings, BucketStoreSettings::default());
    assert_eq!((found.abandon, found.options.len()), (None, 0));
    assert!(found.hedged_reads);
}

#[test]
fn reads_are_hedged_unless_the_file_says_no() {
    let parse =
        |value: &str| Deployment::parse(&format!("{WHOLE}hedged_reads = {value}\n"), Path::new("/etc"));
    assert!(parse("true").expect("a flag").hedged_reads);
    let deployment = parse("false").expect("a flag");
    assert!(!deployment.bucket_settings().hedged_reads);
    refused(&format!("{WHOLE}hedged_reads = 5\n"));
}

#[test]
fn a_journal_in_a_bucket_needs_no_directory() {
    let parse = |journal: &str| {
        let text = format!("[journal]\n{journal}\n[storage]\nurl = \"memory:\"\ngarbage_age_s = 3\n");
        Deployment::parse(&text, Path::new("/etc"))
    };
    let found = parse("in_bucket = true\nbatch_bytes = 8192\nbatch_ms = 7").expect("whole");
    assert_eq!(found.journal, Path::new("/etc/terrane-journal"));
    let journal = found.bucket_journal.expect("in a bucket");
    assert_eq!((journal.url, journal.settings.batch_bytes), (None, 8192));
    let settings = journal.settings;
    assert_eq!((settings.batch.as_millis(), settings.replaced_age.as_secs()), (7, 3));
    let found = parse("url = \"file:///b\"\ndirectory = \"/j\"").expect("whole");
    assert_eq!(found.journal, Path::new("/j"));
    assert_eq!(found.bucket_journal.expect("in a bucket").url.as_deref(), Some("file:///b"));
    assert!(parse("in_bucket = false\ndirectory = \"/j\"").expect("whole").bucket_journal.is_none());
    for wrong in [
        "in_bucket = false",
        "in_bucket = false\nurl = \"memory:\"",
        "in_bucket = 1",
        "in_bucket = true\nbatch_bytes = 4095",
        "in_bucket = true\nbatch_ms = 0",
        "directory = \"j\"\nbatch_ms = 5",
    ] {
        assert_eq!(parse(wrong).expect_err(wrong).kind(), Kind::Invalid);
    }
}

#[test]
fn a_cache_has_a_directory_and_bytes() {
    let parse = |cache: &str| Deployment::parse(&format!("{WHOLE}[cache]\n{cache}\n"), Path::new("/etc"));
    let found = parse("directory = \"c\"\nbytes = 8388608").expect("whole").cache.expect("one");
    assert_eq!((found.directory.as_path(), found.bytes), (Path::new("/etc/c"), 8 << 20));
    for none in ["", "bytes = 0", "directory = \"c\"\nbytes = 0"] {
        assert_eq!(parse(none).expect(none).cache, None);
    }
    for (wrong, expected) in [
        ("bytes = 8388608", "\"directory\" of [cache] is missing"),
        ("directory = \"c\"", "\"bytes\" of [cache] is missing"),
        ("directory = \"c\"\nbytes = 8388607", "8 MiB"),
        ("directory = \"c\"\nbytes = \"1GiB\"", "\"bytes\" of [cache]"),
        ("directory = \"c\"\nbyte = 8388608", "did you mean \"bytes\"?"),
    ] {
        let found = parse(wrong).expect_err(wrong).to_string();
        assert!(found.contains(expected), "{wrong:?}: {found}");
    }
    assert!(refused(&format!("{WHOLE}[cash]\n")).contains("did you mean \"cache\"?"));
}

#[test]
fn a_key_that_is_given_counts() {
    let text = "[journal]\ndirectory = \"/j\"\nabandon = \"0123456789abcdef0123456789abcdef\"\n\
                [storage]\nurl = \"file:///b\"\nprefix = \"p\"\nprobe = false\nstage_bytes = 5000000\n\
                object_bytes = 2000000\ngarbage_age_s = 3\nwriter_check_ms = 2\n\
                [options]\nmemory_bytes = \"64MiB\"\nclose_flush = false\ndiagnostics.metrics_page_ms = 200\n";
    let found = Deployment::parse(text, Path::new("/etc")).expect("whole");
    assert_eq!(found.journal, Path::new("/j"));
    assert_eq!(found.abandon, Some(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef));
    let settings = found.settings;
    assert_eq!((settings.object_bytes, settings.stage_bytes, settings.probe), (2_000_000, 5_000_000, false));
    assert_eq!((settings.garbage_age.as_secs(), found.writer_check_ms), (3, 2));
    assert_eq!(found.options.len(), 3);
    assert!(found.options.contains(&("diagnostics.metrics_page_ms".to_owned(), "200".to_owned())));
}

#[test]
fn workers_have_times_of_their_own() {
    let parse = |keys: &str| Deployment::parse(&format!("{WHOLE}[compaction]\n{keys}\n"), Path::new("/etc"));
    assert_eq!(Deployment::parse(WHOLE, Path::new("/etc")).expect("whole").compaction, None);
    assert_eq!(parse("workers = false").expect("whole").compaction, None);
    let default = BucketCompactorSettings::default();
    assert_eq!(parse("workers = true").expect("whole").compaction, Some(default));
    let found = parse("workers = true\nclaim_ms = 700\nlost_ms = 900\npoll_ms = 50").expect("whole");
    let found = found.compaction.expect("workers");
    assert_eq!((found.claim.as_millis(), found.lost.as_millis(), found.poll.as_millis()), (700, 900, 50));
    for (keys, expected) in [
        ("worker = true", "did you mean \"workers\"?"),
        ("workers = 1", "\"workers\""),
        ("claim_ms = 5", "workers = true"),
        ("workers = true\nclaim_ms = -1", "\"claim_ms\""),
        ("workers = true\npoll_ms = 1", "poll_ms"),
        ("workers = true\nclaim_ms = 10", "claim_ms"),
        ("workers = true\nlost_ms = 300", "lost_ms"),
        ("workers = true\nattempts = 0", "attempts"),
        ("workers = true\njob_bytes = 0", "job_bytes"),
        ("job_bytes = 7", "job_bytes"),
    ] {
        let found = parse(keys).expect_err(keys).to_string();
        assert!(found.contains(expected), "{keys:?}: {found}");
    }
}

#[test]
fn an_unknown_wrong_or_missing_key_is_named() {
    let names = [
        ("[jurnal]\ndirectory = \"a\"\n", "did you mean \"journal\"?"),
        ("[journal]\ndirectoy = \"a\"\n", "did you mean \"directory\"?"),
        ("[journal]\ndirectory = 3\n", "\"directory\""),
        ("[journal]\ndirectory = \"a\"\n", "\"url\" of [storage] is missing"),
        ("[storage]\nurl = \"memory:\"\n", "\"directory\" of [journal] is missing"),
        ("journal = 3\n", "[journal]"),
        ("[journal\n", "TOML"),
        (
            "[journal]\ndirectory = \"a\"\nabandon = \"+123456789abcdef0123456789abcdef\"\n[storage]\nurl = \"b\"\n",
            "\"abandon\"",
        ),
    ];
    for (text, expected) in names {
        let found = refused(text);
        assert!(found.contains(expected), "{text:?}: {found}");
    }
    for (key, expected) in [
        ("probe = 1", "\"probe\""),
        ("writer_check_ms = 0", "\"writer_check_ms\""),
        ("stage_bytes = -1", "\"stage_bytes\""),
        ("stage_bytes = 5", "stage_bytes=5"),
        ("object_bytes = 4", "object_bytes=4"),
        ("prefix = \"a//b\"", "\"prefix\" of [storage]"),
        ("stage_bytes = \"1\"", "\"stage_bytes\""),
        ("[options]\nmemory_byte = 3", "memory_bytes"),
        ("[options]\nmemory_bytes = [3]", "memory_bytes"),
        ("[options]\ndiagnostics.metrics_page = 3", "diagnostics.metrics_page_ms"),
    ] {
        let found = refused(&format!("{WHOLE}{key}\n"));
        assert!(found.contains(expected), "{key:?}: {found}");
    }
    let found = refused("[journal]\ndirectory = \"a\"\nabandon = \"12\"\n[storage]\nurl = \"memory:\"\n");
    assert!(found.contains("abandon"), "{found}");
}
