//! Databases and files beside an open database: checkpoints, backups, exported column families, files of
//! sorted rows.

pub(crate) mod backup;
pub(crate) mod checkpoint;
pub(crate) mod export_import;
pub(crate) mod sst_files;
