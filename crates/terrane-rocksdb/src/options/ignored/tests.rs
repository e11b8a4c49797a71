use super::*;
use crate::ffi::option_fields::Changed;
use crate::generated::objects::{IngestOptions, TransactionDbOptions, WaitForCompactOptions};
use crate::options::{
    BackupEngineOptions, CompactFilesOptions, CompactRangeOptions, CreateBackupOptions, ReadOptions,
};

#[test]
fn new_options_set_nothing_that_is_ignored() {
    let options = Options::default();
    assert_eq!(warnings(&[&options]), Vec::<String>::new());
    refuse(&[&options]).expect("nothing to refuse");
}

#[test]
fn an_ignored_option_is_named_once_and_refused() {
    let (mut one, mut other) = (Options::default(), Options::default());
    one.fields.compaction_style = 2;
    other.fields.compaction_style = 2;
    note(Some(&mut other), "rocksdb_options_set_db_paths", true);
    let lines = warnings(&[&one, &other]);
    assert_eq!(lines.len(), 2, "{lines:?}");
    let refused = refuse(&[&one, &other]).expect_err("two options");
    for name in ["rocksdb_options_set_compaction_style", "rocksdb_options_set_db_paths"] {
        assert!(refused.text().contains(name), "{}", refused.text());
    }
    note(Some(&mut other), "rocksdb_options_set_db_paths", false);
    one.fields.compaction_style = 1;
    other.fields.compaction_style = 0;
    assert_eq!(warnings(&[&one, &other]), Vec::<String>::new());
}

#[test]
fn strict_mode_is_off_without_the_variable_and_with_zero() {
    for (value, is_on) in [(None, false), (Some(""), false), (Some("0"), false), (Some("1"), true)] {
        assert_eq!(is_strict_by(value.map(OsStr::new)), is_on, "{value:?}");
    }
}

#[test]
fn new_options_of_calls_set_nothing_that_is_ignored() {
    assert!(IN_CALLS.len() <= 64, "a set is one word");
    let mut names: Vec<&str> = IN_CALLS.iter().map(|option| option.function).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), IN_CALLS.len(), "each has one row");
    let fresh = [
        ReadOptions::default().ignored(),
        BackupEngineOptions::default().ignored(),
        CompactRangeOptions::default().ignored(),
        CompactFilesOptions::default().ignored(),
        CreateBackupOptions::default().ignored(),
        IngestOptions::default().ignored(),
        TransactionDbOptions::default().ignored(),
        WaitForCompactOptions::default().ignored(),
    ];
    assert_eq!(fresh, [0; 8]);
}

/// The text of a set of options: a line for each.
fn named(ignored: u64) -> Vec<String> {
    lines_of(ignored).collect()
}

#[test]
fn an_option_of_a_call_is_found_by_its_own_place() {
    let mut compact = CompactRangeOptions::default();
    compact.fields.change_level = 1;
    compact.fields.bottommost_level_compaction = 0;
    let lines = named(compact.ignored());
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("rocksdb_compactoptions_set_change_level has no effect: "), "{lines:?}");
    compact.fields.bottommost_level_compaction = 3;
    assert_eq!(named(compact.ignored()).len(), 2);

    let mut ingest = IngestOptions::default();
    ingest.fields.failed_move_fall_back_to_copy = 0;
    assert_eq!(ingest.ignored(), 0, "nothing is moved");
    ingest.fields.move_files = 1;
    let refused = refuse_calls(ingest.ignored()).expect_err("one option");
    assert!(refused.text().contains("set_failed_move_fall_back_to_copy ("), "{}", refused.text());
    assert!(refused.text().ends_with("or unset TERRANE_ROCKSDB_STRICT"), "{}", refused.text());

    let excluding = CreateBackupOptions { excludes_files: true, ..CreateBackupOptions::default() };
    assert_eq!(named(excluding.ignored()).len(), 1);
    let cancelling = CompactFilesOptions { has_flag: true, ..CompactFilesOptions::default() };
    assert_eq!(named(cancelling.ignored()).len(), 1);
}

#[test]
fn read_options_keep_their_ignored_fields() {
    let mut options = ReadOptions::default();
    assert_eq!(options.kept_ignored(), 0);
    assert!(!options.is_special());
    options.fields.read_tier = 1;
    options.changed();
    assert!(options.is_special(), "something is to be said of it");
    assert_eq!(options.kept_ignored(), options.ignored());
    assert_eq!(named(options.kept_ignored()).len(), 1);
    options.fields.read_tier = 0;
    options.changed();
    assert_eq!(options.kept_ignored(), 0);
    assert!(!options.is_special());
    options.timestamp = Some(vec![1]);
    options.changed();
    assert!(options.is_special(), "the past is asked for");
}
