//! The objects of a place: reading and writing whole ones, and which of them the backups need.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use terrane_base::{Error, Kind, Result};
use terrane_format::backup::{
    BackupManifest, HEADER_BYTES, ObjectKind, TRAILER_BYTES, extent_name, open, seal,
};
use terrane_format::extent::ExtentMeta;
use terrane_levels::State;

use crate::copies::backup::Backups;
use crate::copies::backup::place::{BACKUPS, EXTENTS, SEGMENTS};

/// Digits of a backup's number in the name of its manifest, at least.
const ID_DIGITS: usize = 6;

/// Longest manifest of a backup: one of some twenty million extents.
const MANIFEST_BYTES_MAX: u64 = 4 << 30;

/// Names of the objects of a folder, or of those that are needed there.
pub(super) type Names = BTreeSet<u128>;

/// The objects that the backups of a place need.
#[derive(Debug, Default)]
pub(super) struct Needed {
    pub(super) extents: Names,
    pub(super) segments: Names,
    /// Numbers of the whole backups.
    pub(super) whole: Vec<u64>,
    /// The first backup that cannot be read, and its error: its objects are not known.
    pub(super) damaged: Option<(u64, Error)>,
}

/// Returns true if the error means damaged bytes.
pub(super) fn is_damage(error: &Error) -> bool {
    matches!(error.kind(), Kind::Corrupt | Kind::Invalid)
}

/// The object of this kind and name, as the place calls it.
pub(super) fn object_name(kind: ObjectKind, name: u128) -> String {
    match kind {
        ObjectKind::Extent => format!("{EXTENTS}/{name:032x}"),
        ObjectKind::Segment => format!("{SEGMENTS}/{name:032x}"),
        ObjectKind::Manifest => format!("{BACKUPS}/{name:0ID_DIGITS$}"),
    }
}

fn parse_id(name: &str) -> Option<u64> {
    let id = name.parse().ok()?;
    (id > 0 && format!("{id:0ID_DIGITS$}") == name).then_some(id)
}

fn parse_name(name: &str) -> Option<u128> {
    let number = u128::from_str_radix(name, 16).ok()?;
    (format!("{number:032x}") == name).then_some(number)
}

impl Backups {
    /// The numbers of all backups, in order.
    pub(super) fn ids(&self) -> Result<Vec<u64>> {
        let mut ids: Vec<u64> = self.place.list(BACKUPS)?.iter().filter_map(|name| parse_id(name)).collect();
        ids.sort_unstable();
        debug_assert!(ids.is_sorted_by(|one, next| one < next), "a folder lists each name once: {ids:?}");
        Ok(ids)
    }

    /// The existing objects in the folder of this kind.
    pub(super) fn present(&self, kind: ObjectKind) -> Result<Names> {
        debug_assert!(kind != ObjectKind::Manifest, "backups have numbers");
        let folder = if kind == ObjectKind::Extent { EXTENTS } else { SEGMENTS };
        Ok(self.place.list(folder)?.iter().filter_map(|name| parse_name(name)).collect())
    }

    /// Reads the object of this kind and name, which has `bytes` of content and a frame around them.
    ///
    /// # Errors
    /// `Corrupt` if it is missing or not what was put, `Io`.
    pub(super) fn read(&self, kind: ObjectKind, name: u128, bytes: u64) -> Result<Vec<u8>> {
        debug_assert!(kind != ObjectKind::Manifest, "the length of a manifest is not known before");
        let object = object_name(kind, name);
        let at = |error: Error| error.at(format!("{}/{object}", self.place.shown()), 0);
        let bytes_max = bytes + (HEADER_BYTES + TRAILER_BYTES) as u64;
        let bytes = self.place.get(&object, bytes_max).map_err(|error| match error.kind() {
            Kind::NotFound => at(Error::corrupt("an object of the backup is missing")),
            _ => error,
        })?;
        open(kind, name, &bytes).map_err(at)?;
        Ok(bytes)
    }

    /// Puts an object.
    pub(super) fn write(&self, kind: ObjectKind, name: u128, body: &[u8]) -> Result<()> {
        debug_assert!(!body.is_empty(), "{}: an object without bytes", object_name(kind, name));
        let (header, trailer) = seal(kind, name, body);
        self.place.put(&object_name(kind, name), &[&header, body, &trailer])
    }

    /// The manifest of backup `id`.
    ///
    /// # Errors
    /// `NotFound` if there is no such backup, naming those that are there; `Corrupt`, `Invalid`, `Io`.
    pub(super) fn load(&self, id: u64) -> Result<BackupManifest> {
        let object = object_name(ObjectKind::Manifest, id.into());
        let at = |error: Error| error.at(format!("{}/{object}", self.place.shown()), 0);
        let bytes = match self.place.get(&object, MANIFEST_BYTES_MAX) {
            Err(error) if error.kind() == Kind::NotFound => return Err(self.no_backup(id)),
            bytes => bytes?,
        };
        let body = open(ObjectKind::Manifest, id.into(), &bytes).map_err(at)?;
        BackupManifest::decode(body).map_err(at)
    }

    /// The manifest of backup `id` and the state in it.
    ///
    /// # Errors
    /// As [`Backups::load`].
    pub(super) fn load_state(&self, id: u64) -> Result<(BackupManifest, State)> {
        let mut manifest = self.load(id)?;
        let at = |error: Error| {
            let object = object_name(ObjectKind::Manifest, id.into());
            error.at(format!("{}/{object}", self.place.shown()), 0)
        };
        let state = State::from_image(&std::mem::take(&mut manifest.state)).map_err(at)?;
        if state.database != manifest.database {
            return Err(at(Error::corrupt("manifest of a backup with the state of another database")));
        }
        Ok((manifest, state))
    }

    #[cold]
    fn no_backup(&self, id: u64) -> Error {
        let there = match self.ids().as_deref() {
            Ok([]) | Err(_) => "there are none".to_owned(),
            Ok(ids) => format!("there are {ids:?}"),
        };
        Error::new(Kind::NotFound, format!("no backup {id} in {}: {there}", self.place.shown()))
    }

    /// The objects that the backups need.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn needed(&self) -> Result<Needed> {
        let mut needed = Needed::default();
        for id in self.ids()? {
            let (manifest, state) = match self.load_state(id) {
                Ok(loaded) => loaded,
                Err(error) if is_damage(&error) => {
                    needed.damaged.get_or_insert((id, error));
                    continue;
                }
                Err(error) => return Err(error),
            };
            needed.extents.extend(state.metas().map(|meta| extent_name(manifest.database, meta)));
            needed.segments.extend(manifest.segments.iter().map(|segment| segment.name));
            debug_assert!(needed.whole.last().is_none_or(|last| *last < id), "a backup counts once");
            needed.whole.push(id);
        }
        Ok(needed)
    }
}

/// The extents of a state by name, each once.
pub(super) fn extents_of(state: &State) -> BTreeMap<u128, &ExtentMeta> {
    let is_copied =
        |meta: &&Arc<ExtentMeta>| meta.value_table.is_none() || !terrane_base::planted!(BackupForgetsValues);
    let metas = state.metas().filter(is_copied);
    metas.map(|meta| (extent_name(state.database, meta), &**meta)).collect()
}
