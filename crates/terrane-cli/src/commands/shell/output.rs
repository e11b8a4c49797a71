//! A file that commands of the shell print to, in the place of standard output.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::exit::{Code, Failure};
use crate::files::{self, File};
use crate::text;

/// The file of `.output`. Its errors name it.
pub(super) struct Output {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Output {
    /// Makes the file.
    ///
    /// # Errors
    /// Of the operating system; `Usage` for a file that is there, and for a place within the database.
    pub(super) fn create(path: PathBuf, database: &Path) -> Result<Output, Failure> {
        files::refuse_within(database, &path)?;
        files::refuse_within_any(&path)?;
        match files::create_new(&path) {
            Ok(file) => Ok(Output { path, file: BufWriter::new(file) }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let why = format!("{} exists already, and .output makes a new file", text::path(&path));
                Err(Failure::new(Code::Usage, why))
            }
            Err(error) => Err(Failure::file(&text::path(&path), &error)),
        }
    }

    /// Writes the lines that are kept back.
    ///
    /// # Errors
    /// Of the operating system.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        self.file.flush().map_err(|error| self.failure(&error))
    }

    /// An error of the file. A file is not a pipe whose reader has gone, so none of them is silent.
    fn failure(&self, error: &io::Error) -> Failure {
        Failure {
            code: Failure::file("", error).code,
            message: format!("{}: {error}", text::path(&self.path)),
        }
    }

    /// Runs a command that prints into the file.
    ///
    /// # Errors
    /// Of the command, and of the file.
    pub(super) fn take<T>(
        &mut self,
        command: impl FnOnce(&mut dyn Write) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut watched = Watched { file: &mut self.file, failed: None };
        let done = command(&mut watched);
        debug_assert!(
            done.is_err() || watched.failed.is_none(),
            "a command reports what its output did not take"
        );
        match watched.failed {
            Some(error) => Err(self.failure(&error)),
            None => {
                self.finish()?;
                done
            }
        }
    }
}

/// Keeps the first error of the file, which a command reports as one of standard output.
struct Watched<'f> {
    file: &'f mut BufWriter<File>,
    failed: Option<io::Error>,
}

impl Watched<'_> {
    fn watch<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        done.map_err(|error| {
            let kind = error.kind();
            // A write that a signal interrupts is made again.
            if kind != io::ErrorKind::Interrupted {
                self.failed.get_or_insert(error);
            }
            io::Error::from(kind)
        })
    }
}

impl Write for Watched<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.file.write(bytes);
        self.watch(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.file.flush();
        self.watch(done)
    }
}
