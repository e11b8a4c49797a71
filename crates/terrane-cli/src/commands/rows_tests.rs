//! Rows of an earlier moment: one moment for all of a command, whatever the writer does meanwhile.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Parser;
use terrane::Db;
use terrane_base::env::Env;
use terrane_remote::{BucketJournal, Deployment, ObjectJournalSettings};

use super::super::store::{open, opened_once};
use super::*;
use crate::arguments::Arguments;

/// A deployment file in a directory, and its writer.
fn deployed(dir: &Path) -> (PathBuf, Db) {
    let bucket = dir.join("bucket").display().to_string();
    let text = format!(
        "[journal]\nin_bucket = true\n[storage]\nurl = \"file://{bucket}\"\nprobe = false\n\
         [options]\nmemory_bytes = \"32MiB\"\n"
    );
    let (mut written, file) = tempfile::Builder::new()
        .suffix(".toml")
        .tempfile_in(dir)
        .and_then(|file| Ok(file.keep()?))
        .expect("a new file");
    written.write_all(text.as_bytes()).expect("writes");
    let journal = BucketJournal { url: None, settings: ObjectJournalSettings::default() };
    let deployment = Deployment {
        bucket_journal: Some(journal),
        ..Deployment::new(dir.join("writer"), format!("file://{bucket}"))
    };
    (file, deployment.open().expect("opens"))
}

/// The engine of a command that asks for a moment to which no object store has come yet.
fn ahead() -> Engine {
    let line = ["terrane", "count", "app.toml", "--at", "2999-01-01T00:00:00Z"];
    Arguments::try_parse_from(line).expect("a line").engine
}

fn rows<'a>(engine: &'a Engine, place: &'a TableArgs) -> Rows<'a> {
    let range = Range { from: None, to: None, prefix: None };
    Rows::open(engine, place, &range, false).map_err(|failure| failure.message).expect("opens")
}

fn put_all(writer: &Db, value: &str) {
    for key in 0..2000 {
        writer.put(format!("key{key:05}"), value.repeat(30)).expect("puts");
    }
    writer.flush().expect("flushes");
}

#[test]
fn a_command_stays_at_the_moment_that_it_opened() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (file, writer) = deployed(dir.path());
    writer.put("ada", "Lovelace").expect("puts");
    writer.sync().expect("syncs");
    let engine = ahead();
    let db = open(&engine, &file, Access::Read).map_err(|failure| failure.message).expect("opens");
    let once = opened_once(&engine, &db);
    writer.put("charles", "Babbage").expect("puts");
    writer.sync().expect("syncs");
    let place = TableArgs { database: file, table: "default".to_owned() };
    let count = |engine: &Engine| {
        let mut rows = rows(engine, &place);
        std::iter::from_fn(|| rows.next().ok().flatten()).count()
    };
    assert_eq!((count(&engine), count(&once)), (2, 1), "each opening is of a later state");
}

#[test]
fn deleted_objects_of_an_earlier_moment_end_its_rows() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (file, writer) = deployed(dir.path());
    put_all(&writer, "Ada");
    let url = format!("file://{}", dir.path().join("bucket").display());
    let bucket = terrane_remote::bucket::open(&url, &Env::real()).expect("opens");
    let old = bucket.list("terrane/data", None).expect("lists").into_iter().map(|object| object.name);
    let old: Vec<String> = old.collect();
    let (engine, place) = (ahead(), TableArgs { database: file, table: "default".to_owned() });
    let mut rows = rows(&engine, &place);
    put_all(&writer, "Eva");
    writer.compact_range(writer.default_table(), ..).expect("compacts");
    bucket.delete(&old).expect("deletes");
    let failure = loop {
        match rows.next() {
            Ok(Some((key, value))) => assert!(value.starts_with(b"Ada"), "{key:?} is of a later state"),
            Ok(None) => panic!("nothing was deleted"),
            Err(failure) => break failure,
        }
    };
    assert!(failure.message.contains("no longer kept"), "{}", failure.message);
}
