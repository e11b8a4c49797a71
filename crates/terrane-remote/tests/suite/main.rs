//! The tests of the parts that are elsewhere.

mod buckets;
mod chains;
mod clones;
mod compaction;
mod databases;
mod faults;
mod followers;
mod garbage;
#[cfg(feature = "grpc")]
mod grpc;
mod hostile;
mod jobs;
mod journals;
mod last_handles;
mod leases;
mod manifests;
mod model;
mod object_logs;
mod probes;
#[cfg(feature = "grpc")]
mod proxy;
mod readers;
mod retries;
#[cfg(feature = "s3")]
mod s3;
mod stores;
mod support;
mod tier;
mod writers;
