//! The files of a database, as C callers see them: live files, levels, journal files, files to copy.

pub(crate) mod family;
pub(crate) mod journal;
pub(crate) mod live_files;
pub(crate) mod options;
pub(crate) mod storage;
