//! The directory that a run makes for its databases: new, below the one that the user named, and all that is
//! removed.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::files;

/// A new directory; removed with everything in it when dropped, unless it is to be kept. What was there
/// before stays.
#[derive(Debug)]
pub(super) struct Scratch {
    directory: PathBuf,
    /// The directory that the user named, if this run made it.
    made: Option<PathBuf>,
    keep: bool,
}

impl Scratch {
    /// Makes it below `parent`, which is made as well if it does not exist.
    ///
    /// # Errors
    /// `Io`, naming the directory.
    pub(super) fn new(parent: &Path, keep: bool) -> Result<Self> {
        let made = (!parent.exists()).then(|| parent.to_owned());
        files::create_directory(parent)?;
        let mut number = 1;
        loop {
            let directory = parent.join(format!("run-{}-{number}", std::process::id()));
            if files::create_new_directory(&directory)? {
                return Ok(Scratch { directory, made, keep });
            }
            number += 1;
        }
    }

    /// The directory.
    pub(super) fn path(&self) -> &Path {
        &self.directory
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The result is there; a directory that stays behind can be seen and removed.
        let _ = match self.keep {
            true => files::remove_if_empty(&self.directory),
            false => files::remove_directory(&self.directory),
        };
        if let Some(made) = &self.made {
            let _ = files::remove_if_empty(made);
        }
    }
}
