//! The corpora on disk: `fuzz/corpus/TARGET/NAME`. The seeds are made from real bytes by each target; what
//! fuzzing found worth keeping is added by hand and stays.
#![expect(clippy::disallowed_methods, reason = "the corpora are files of the repository, not of a database")]

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::Target;

/// Start of the names of inputs that [`write_seeds`] makes.
pub const SEED_PREFIX: &str = "seed-";

/// Where the corpus of a target lies.
#[must_use]
pub fn directory(root: &Path, target: &Target) -> PathBuf {
    root.join("fuzz/corpus").join(target.name)
}

/// The inputs of a target's corpus, by name.
///
/// # Errors
/// Of the operating system.
pub fn read(root: &Path, target: &Target) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let mut inputs = BTreeMap::new();
    for entry in std::fs::read_dir(directory(root, target))? {
        let entry = entry?;
        inputs.insert(entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path())?);
    }
    Ok(inputs)
}

/// Writes the seeds of a target, in place of those that an earlier version made.
///
/// # Errors
/// Of the operating system.
pub fn write_seeds(root: &Path, target: &Target) -> io::Result<usize> {
    let directory = directory(root, target);
    std::fs::create_dir_all(&directory)?;
    for entry in std::fs::read_dir(&directory)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(SEED_PREFIX) {
            std::fs::remove_file(entry.path())?;
        }
    }
    let seeds = (target.seeds)();
    for (name, bytes) in &seeds {
        std::fs::write(directory.join(format!("{SEED_PREFIX}{name}")), bytes)?;
    }
    Ok(seeds.len())
}
