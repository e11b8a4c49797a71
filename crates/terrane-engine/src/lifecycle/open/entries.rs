//! The ways to open a database.

use std::path::Path;
use std::sync::Arc;

use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::{Functions, Result, SeqNo};
use terrane_device::{Disk, PosixDisk};
use terrane_levels::Manifest;

use crate::engine::Engine;
use crate::lifecycle::follower::Following;
use crate::lifecycle::open::parts::{Parts, ReadParts, refuse_options, refuse_reading_options};
use crate::lifecycle::replay_filter::{ReplayFilter, refuse_to_read_only};

/// The inputs of every opening.
pub struct OpenRequest<'a> {
    /// The device.
    pub disk: Arc<dyn Disk>,
    /// The directory of the database, or of its journal if the rest lies elsewhere.
    pub dir: &'a Path,
    /// How the database is kept.
    pub options: &'a Options,
    /// The doors.
    pub env: Env,
    /// Functions that tables name.
    pub functions: Functions,
}

/// The variants of an opening.
#[derive(Clone, Copy)]
pub(crate) enum Way<'w> {
    /// Nothing.
    Plain,
    /// A filter says what of the journal is replayed.
    Filtered(&'w dyn ReplayFilter),
    /// It is a view of what another process may have open, as this manifest says.
    Following(&'w Arc<Manifest>, &'w Following<'w>),
    /// Manifest and extents lie elsewhere.
    Elsewhere(&'w dyn Parts),
    /// So they do, and are only read.
    Reading(&'w ReadParts),
    /// So they do, and it is a view of what a writer elsewhere has open.
    FollowingParts(&'w ReadParts, &'w Following<'w>),
}

impl<'w> Way<'w> {
    pub(crate) fn following(self) -> Option<&'w Following<'w>> {
        match self {
            Way::Following(_, following) | Way::FollowingParts(_, following) => Some(following),
            Way::Plain | Way::Filtered(_) | Way::Elsewhere(_) | Way::Reading(_) => None,
        }
    }

    /// The last commit that is shown, for an earlier moment.
    pub(crate) fn until(self) -> Option<SeqNo> {
        match self {
            Way::Reading(parts) => parts.until,
            Way::Elsewhere(parts) => parts.until(),
            _ => None,
        }
    }

    /// Where manifest and extents lie, if not in the directory.
    pub(crate) fn address(self) -> Option<&'w str> {
        match self {
            Way::Elsewhere(parts) => Some(parts.address()),
            Way::Reading(parts) | Way::FollowingParts(parts, _) => Some(&parts.address),
            Way::Plain | Way::Filtered(_) | Way::Following(..) => None,
        }
    }

    /// Returns true if manifest and extents lie elsewhere and are only read: the journal may be missing.
    pub(crate) fn reads_parts(self) -> bool {
        matches!(self, Way::Reading(_) | Way::FollowingParts(..))
    }
}

impl Engine {
    /// Opens the database in `dir` on the files of the operating system.
    ///
    /// # Errors
    /// `Busy` if another process has it open, `NotFound` or `Invalid` if there is no database and none may be
    /// made, `Corrupt`, `Io`.
    pub fn open(dir: &Path, options: &Options, env: Env) -> Result<Arc<Engine>> {
        Engine::open_on(Arc::new(PosixDisk::new()), dir, options, env)
    }

    /// Opens the database in `dir` on the files of the operating system, with functions that are not built
    /// in.
    ///
    /// # Errors
    /// As [`Engine::open`], and `Invalid` for a table that names a function that is not registered.
    pub fn open_with(
        dir: &Path,
        options: &Options,
        env: Env,
        functions: impl Into<Functions>,
    ) -> Result<Arc<Engine>> {
        Engine::open_with_on(Arc::new(PosixDisk::new()), dir, options, env, functions)
    }

    /// Opens the database in `dir` on any device.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open_on(disk: Arc<dyn Disk>, dir: &Path, options: &Options, env: Env) -> Result<Arc<Engine>> {
        Engine::open_with_on(disk, dir, options, env, Functions::default())
    }

    /// [`Engine::open_with`] on any device.
    ///
    /// # Errors
    /// As [`Engine::open_with`].
    pub fn open_with_on(
        disk: Arc<dyn Disk>,
        dir: &Path,
        options: &Options,
        env: Env,
        functions: impl Into<Functions>,
    ) -> Result<Arc<Engine>> {
        Engine::open_as(OpenRequest { disk, dir, options, env, functions: functions.into() }, Way::Plain)
    }

    /// Opens the database whose manifest and extents `parts` opens. The journal is in the directory of the
    /// request, which is locked as that of any database.
    ///
    /// # Errors
    /// As [`Engine::open_with_on`]; `Invalid` for options that such a database does not take yet, for a
    /// directory that has something else, and for one with another journal than that of the last writer.
    pub fn open_elsewhere_on(request: OpenRequest<'_>, parts: &dyn Parts) -> Result<Arc<Engine>> {
        refuse_options(request.options)?;
        Engine::open_as(request, Way::Elsewhere(parts))
    }

    /// Opens the database for reading while a writer may have it open: manifest and extents as `parts` has
    /// them, and the journal in the directory of the request if `parts` has its lock. Nothing is written.
    ///
    /// # Errors
    /// `Invalid` for options that such a database does not take; `Corrupt`, `Io`.
    pub fn read_elsewhere_on(request: OpenRequest<'_>, parts: &ReadParts) -> Result<Arc<Engine>> {
        let options = Options { read_only: true, create_if_missing: false, ..request.options.clone() };
        refuse_reading_options(&options)?;
        Engine::open_as(OpenRequest { options: &options, ..request }, Way::Reading(parts))
    }

    /// [`Engine::open_with_on`], with a filter that says what of the journal is replayed.
    ///
    /// # Errors
    /// As [`Engine::open_with_on`]; `Corrupt` where the filter says so; `Invalid` for what it puts in the
    /// place of a batch, and for a database that is opened read-only; `Poisoned` if the filter panics.
    pub fn open_filtered_on(request: OpenRequest<'_>, filter: &dyn ReplayFilter) -> Result<Arc<Engine>> {
        if request.options.read_only {
            return Err(refuse_to_read_only(filter));
        }
        Engine::open_as(request, Way::Filtered(filter))
    }
}
