//! The text files of the repository: relative path to content.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// The text files of the repository.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    files: BTreeMap<String, String>,
}

/// Names that hold no source: build output, history, sample data.
const SKIPPED: &[&str] = &[".git", "data", "golden", "corpus", "node_modules"];
const TEXT: &[&str] = &["rs", "md", "svg", "toml", "txt", "sh", "test", "c", "h", "html"];

impl Tree {
    /// Reads every text file under `root`.
    ///
    /// # Errors
    /// Whatever the operating system says about a directory or file.
    pub fn read(root: &Path) -> io::Result<Tree> {
        let mut tree = Tree::default();
        tree.add_directory(root, "")?;
        Ok(tree)
    }

    /// A made-up tree.
    #[must_use]
    pub fn of<const N: usize>(files: [(&str, &str); N]) -> Tree {
        Tree { files: files.map(|(path, text)| (path.to_owned(), text.to_owned())).into() }
    }

    /// Adds or replaces one file.
    pub fn insert(&mut self, path: &str, text: &str) {
        self.files.insert(path.to_owned(), text.to_owned());
    }

    /// The text of one file.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Every file, sorted by path.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Every Rust file, sorted by path.
    pub fn rust_files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter(|(path, _)| path.ends_with(".rs"))
    }

    /// Returns true if a file, or a directory that holds a text file, has this path.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let inside = format!("{path}/");
        self.files.contains_key(path)
            || self.files.range(inside.clone()..).next().is_some_and(|(p, _)| p.starts_with(&inside))
    }

    fn add_directory(&mut self, root: &Path, relative: &str) -> io::Result<()> {
        for entry in std::fs::read_dir(root.join(relative))? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = if relative.is_empty() { name.clone() } else { format!("{relative}/{name}") };
            let kind = entry.file_type()?;
            if kind.is_dir() {
                if !SKIPPED.contains(&name.as_str()) && !name.starts_with("target") {
                    self.add_directory(root, &path)?;
                }
            } else if kind.is_file() && (is_text(&name) || path == ".ci/run") {
                self.files.insert(path.clone(), std::fs::read_to_string(root.join(&path))?);
            }
        }
        Ok(())
    }
}

fn is_text(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(stem, extension)| !stem.is_empty() && TEXT.contains(&extension))
}

/// The line (from 1) on which byte `offset` of `text` lies.
#[must_use]
pub fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes()[..offset].iter().filter(|&&byte| byte == b'\n').count()
}
