//! Bodies of the fuzz targets: one for each format and parser, one for a whole database, one for the engine
//! on a device that fails.
//!
//! Layer 12: sees everything, and nothing sees it. Two runners share the bodies: libFuzzer (the workspace
//! `fuzz/`, `cargo xtask fuzz`) and the smoke of `cargo test`, which runs every body over its corpus and over
//! seeded changes of it ([`mutate`]).
//!
//! A body takes any bytes and panics only if the code under test breaks a promise: it panics itself, answers
//! wrongly, or refuses with an error of a kind that the caller cannot act on. Where a checksum would stop
//! everything, the body sets the checksums right first ([`repair`]): a right checksum does not prove that
//! Terrane wrote the bytes.
#![forbid(unsafe_code)]

pub mod backup;
pub mod corpus;
pub mod database;
pub mod directory;
pub mod elsewhere;
pub mod engine;
pub mod extent;
pub mod external;
pub mod import;
pub mod input;
pub mod jobs;
pub mod manifest;
pub mod metrics_page;
pub mod mutate;
pub mod options;
pub mod parts;
pub mod prepared;
pub mod repair;
pub mod replay;
pub mod segment;
pub mod store;

use terrane_remote::fuzzing as remote;

/// A named input of a corpus.
pub type Seed = (String, Vec<u8>);

/// One fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, also of its file in `fuzz/fuzz_targets` and of its directory in `fuzz/corpus`.
    pub name: &'static str,
    /// The function that runs an input.
    pub run: fn(&[u8]),
    /// Makes the inputs of its corpus.
    pub seeds: fn() -> Vec<Seed>,
    /// Changed inputs that the smoke tries: fewer for the slow ones.
    pub smoke: u64,
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target { name: "block", run: parts::block, seeds: parts::block_seeds, smoke: 6000 },
    Target { name: "index", run: parts::index, seeds: parts::index_seeds, smoke: 6000 },
    Target { name: "filter", run: parts::filter, seeds: parts::filter_seeds, smoke: 4000 },
    Target {
        name: "range_deletes",
        run: parts::range_deletes,
        seeds: parts::range_delete_seeds,
        smoke: 4000,
    },
    Target { name: "codec", run: parts::codec, seeds: parts::codec_seeds, smoke: 4000 },
    Target { name: "meta", run: parts::meta, seeds: parts::meta_seeds, smoke: 4000 },
    Target { name: "extent", run: extent::run, seeds: extent::seeds, smoke: 1500 },
    Target { name: "external", run: external::run, seeds: external::seeds, smoke: 3000 },
    Target { name: "segment", run: segment::run, seeds: segment::seeds, smoke: 4000 },
    Target { name: "replay", run: replay::run, seeds: replay::seeds, smoke: 1500 },
    Target { name: "edit", run: manifest::edit, seeds: manifest::edit_seeds, smoke: 4000 },
    Target { name: "manifest", run: manifest::file, seeds: manifest::file_seeds, smoke: 1500 },
    Target { name: "directory", run: directory::run, seeds: directory::seeds, smoke: 4000 },
    Target { name: "prepared", run: prepared::run, seeds: prepared::seeds, smoke: 4000 },
    Target { name: "backup", run: backup::run, seeds: backup::seeds, smoke: 600 },
    Target { name: "metrics_page", run: metrics_page::run, seeds: metrics_page::seeds, smoke: 6000 },
    Target { name: "store", run: store::run, seeds: store::seeds, smoke: 1500 },
    Target { name: "options", run: options::run, seeds: options::seeds, smoke: 4000 },
    Target { name: "text", run: options::text, seeds: options::text_seeds, smoke: 4000 },
    Target { name: "import_jsonl", run: import::jsonl, seeds: import::jsonl_seeds, smoke: 2000 },
    Target { name: "import_csv", run: import::csv, seeds: import::csv_seeds, smoke: 2000 },
    Target { name: "import_tsv", run: import::tsv, seeds: import::tsv_seeds, smoke: 2000 },
    Target { name: "import_deb", run: import::deb, seeds: import::deb_seeds, smoke: 2000 },
    Target { name: "objects", run: elsewhere::objects, seeds: elsewhere::object_seeds, smoke: 3000 },
    Target {
        name: "deployment",
        run: elsewhere::deployment,
        seeds: elsewhere::deployment_seeds,
        smoke: 3000,
    },
    Target { name: "jobs", run: jobs::run, seeds: jobs::seeds, smoke: 6000 },
    Target { name: "data_table", run: remote::data_table, seeds: remote::data_table_seeds, smoke: 6000 },
    Target { name: "object_log", run: remote::object_log, seeds: remote::object_log_seeds, smoke: 3000 },
    Target { name: "job_object", run: remote::job_object, seeds: remote::job_object_seeds, smoke: 6000 },
    Target {
        name: "clone_object",
        run: remote::clone_object,
        seeds: remote::clone_object_seeds,
        smoke: 6000,
    },
    Target { name: "service_request", run: remote::request, seeds: remote::request_seeds, smoke: 1500 },
    Target { name: "service_answer", run: remote::answer, seeds: remote::answer_seeds, smoke: 3000 },
    Target { name: "database", run: database::run, seeds: database::seeds, smoke: 150 },
    Target { name: "engine", run: engine::run, seeds: engine::seeds, smoke: 100 },
];

/// The target of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Runs the target of this name: for the binaries of libFuzzer.
///
/// # Panics
/// If no target has the name, or the code under test breaks a promise.
pub fn run(name: &str, bytes: &[u8]) {
    (find(name).expect("the name of a target").run)(bytes);
}

/// Passes a value on; an error must say that the bytes are damaged, or that this build lacks their codec.
///
/// # Panics
/// If the error is of another kind.
pub(crate) fn corrupt_or<T>(result: terrane_base::Result<T>) -> Option<T> {
    let check = |error: terrane_base::Error| {
        let lacks_codec =
            error.kind() == terrane_base::Kind::Invalid && error.to_string().contains("no zstd");
        assert!(error.kind() == terrane_base::Kind::Corrupt || lacks_codec, "{error}");
    };
    result.map_err(check).ok()
}
