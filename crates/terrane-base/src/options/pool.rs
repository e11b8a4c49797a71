//! The path of a pool of persistent memory as a setting.

use super::Setting;

/// Path of a file, or none.
///
/// ```
/// # use terrane_base::options::{Options, PoolPath};
/// let options = Options { pmem_path: PoolPath::at("/mnt/pmem/app.pool"), ..Options::default() };
/// assert_eq!(options.pmem_path.get(), Some("/mnt/pmem/app.pool"));
/// assert_eq!(Options::default().pmem_path, PoolPath::none()); // the journal is in files
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PoolPath(Option<String>);

impl PoolPath {
    /// No pool: the journal is in files.
    #[must_use]
    pub const fn none() -> Self {
        PoolPath(None)
    }

    /// The pool at this path, absolute or from the directory in which the process works.
    #[must_use]
    pub fn at(path: impl Into<String>) -> Self {
        PoolPath(Some(path.into()))
    }

    /// The path, if there is a pool.
    #[must_use]
    pub fn get(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl Setting for PoolPath {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        match text {
            "none" => Ok(PoolPath(None)),
            "" => Err("expected none or the path of a file".into()),
            path => Ok(PoolPath(Some(path.to_owned()))),
        }
    }

    fn show(&self) -> String {
        self.get().unwrap_or("none").to_owned()
    }
}
