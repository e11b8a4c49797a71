//! Creates a manifest: with a new database, or as the copy of another one's.

use std::path::Path;
use std::sync::Arc;

use terrane_base::Result;
use terrane_base::env::Env;
use terrane_device::Disk;
use terrane_format::manifest::{DatabaseId, TableOptions};

use super::log::ManifestLog;
use super::write::Writer;
use super::{Manifest, ManifestSettings};
use crate::directory::{self, Others};
use crate::state::State;

impl Manifest {
    /// Creates a database in `dir`: all files, then one durable rename. `options` are those of the default
    /// table.
    ///
    /// `dir` may be missing, empty, or contain what an unfinished creation left.
    ///
    /// # Errors
    /// `Invalid` if the directory holds a database or files of another program, `Full`, `Io`.
    pub fn create(
        disk: Arc<dyn Disk>,
        dir: &Path,
        env: &Env,
        options: TableOptions,
    ) -> Result<(Manifest, State)> {
        Self::create_with(disk, dir, env, options, ManifestSettings::default())
    }

    /// [`Manifest::create`] in a directory where other files may stay.
    ///
    /// # Errors
    /// As [`Manifest::create`].
    pub fn create_beside(
        disk: Arc<dyn Disk>,
        dir: &Path,
        env: &Env,
        options: TableOptions,
        others: Others,
    ) -> Result<(Manifest, State)> {
        Self::make(disk, dir, (Self::draw_id(env), options), ManifestSettings::default(), others)
    }

    /// The id of a new database.
    #[must_use]
    pub fn draw_id(env: &Env) -> DatabaseId {
        let hidden = || if terrane_base::planted!(GoAroundDoor) { terrane_base::planted::turn() } else { 0 };
        let random = || u128::from(env.random.next_u64() ^ hidden());
        DatabaseId(random() << 64 | random())
    }

    /// [`Manifest::create`] with settings.
    ///
    /// # Errors
    /// As [`Manifest::create`].
    pub fn create_with(
        disk: Arc<dyn Disk>,
        dir: &Path,
        env: &Env,
        options: TableOptions,
        settings: ManifestSettings,
    ) -> Result<(Manifest, State)> {
        Self::make(disk, dir, (Self::draw_id(env), options), settings, Others::Refused)
    }

    fn make(
        disk: Arc<dyn Disk>,
        dir: &Path,
        (id, options): (DatabaseId, TableOptions),
        settings: ManifestSettings,
        others: Others,
    ) -> Result<(Manifest, State)> {
        let state = State::new(id, options)?;
        directory::make(&*disk, dir, others)?;
        let writer = Writer::create(disk.clone(), dir, &state)?;
        directory::finish(&*disk, dir, &writer.header())?;
        Ok((Self::on(Box::new(writer), &state, settings), state))
    }

    /// Makes the directory `dir`, which exists and contains the segments and extents that `state` names, a
    /// database of its own. Its manifest is `state` as one snapshot. The last step is the rename with which
    /// [`Manifest::create`] ends.
    ///
    /// # Errors
    /// `Invalid` if the directory holds a database; `Full`, `Io`.
    pub fn write_copy(disk: Arc<dyn Disk>, dir: &Path, state: &State) -> Result<()> {
        let mut writer = Writer::create(disk.clone(), dir, state)?;
        writer.close()?;
        directory::finish(&*disk, dir, &writer.header())
    }
}
