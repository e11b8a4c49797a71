//! What a database consists of, as C callers see it: live files, levels, journal files, files to copy.

pub(crate) mod family;
pub(crate) mod journal;
pub(crate) mod live_files;
pub(crate) mod options;
pub(crate) mod storage;
