//! Metadata of a column family: its levels, and the files of each. Levels and files are handles of their own,
//! which outlive the one that they came from.

use std::ffi::c_char;
use std::sync::Arc;

use crate::db::metadata::live_files::LiveFile;
use crate::db::metadata::options::MetadataOptions;
use crate::db::{Database, Family, FamilyHandle};
use crate::extents::LEVELS;
use crate::extents::levels::deepest_of;
use crate::ffi::failure::Result;
use crate::ffi::types::{Out, lasting, lasting_text, put};

/// The files of a column family, by level.
pub(crate) struct FamilyMetadata {
    name: String,
    levels: Vec<Arc<Level>>,
}

/// The files of a level.
pub(crate) struct Level {
    number: i32,
    files: Vec<Arc<LiveFile>>,
}

/// A handle of a level.
pub(crate) struct LevelMetadata(Arc<Level>);

/// A handle of a file.
pub(crate) struct FileMetadata(Arc<LiveFile>);

impl Level {
    fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes as u64).sum()
    }
}

impl FamilyMetadata {
    fn of(database: &Database, family: &Family, options: &MetadataOptions) -> Result<FamilyMetadata> {
        let table = family.seen();
        let directory = database.directory();
        let mut files: Vec<Vec<Arc<LiveFile>>> = vec![Vec::new(); LEVELS];
        let extents = table.extents()?;
        let levels = family.levels(deepest_of(&extents));
        for extent in extents {
            let level = levels.number_of(extent.summary.level.into());
            let is_wanted = options.level < 0 || options.level == level as i32;
            let is_within = options.is_within(&family.order, (&extent.smallest, &extent.largest));
            if level >= files.len() {
                files.resize(level + 1, Vec::new());
            }
            if is_wanted && is_within {
                files[level].push(Arc::new(LiveFile::of(&extent, levels, table.name(), &directory)));
            }
        }
        let levels = files.into_iter().zip(0..).map(|(files, number)| Arc::new(Level { number, files }));
        Ok(FamilyMetadata { name: table.name().to_owned(), levels: levels.collect() })
    }
}

fn metadata(
    database: Option<&Database>,
    handle: Option<&FamilyHandle>,
    options: Option<&MetadataOptions>,
) -> Option<Box<FamilyMetadata>> {
    let database = database?;
    let family = handle.map_or(&**database.default_family(), |handle| &handle.family);
    let default = MetadataOptions::default();
    FamilyMetadata::of(database, family, options.unwrap_or(&default)).ok().map(Box::new)
}

cf_variants! {
    fn rocksdb_get_column_family_metadata | rocksdb_get_column_family_metadata_cf(
        database: Option<&Database>;
    ) -> Option<Box<FamilyMetadata>> as target {
        metadata(database, target.handle(), None)
    }

    fn rocksdb_get_column_family_metadata_with_options | rocksdb_get_column_family_metadata_cf_with_options(
        database: Option<&Database>;
        options: Option<&MetadataOptions>,
    ) -> Option<Box<FamilyMetadata>> as target {
        metadata(database, target.handle(), options)
    }
}

export! {
    fn rocksdb_column_family_metadata_destroy(metadata: Option<Box<FamilyMetadata>>) {
        drop(metadata);
    }

    fn rocksdb_column_family_metadata_get_size(metadata: Option<&FamilyMetadata>) -> u64 {
        metadata.map_or(0, |metadata| metadata.levels.iter().map(|level| level.bytes()).sum())
    }

    fn rocksdb_column_family_metadata_get_file_count(metadata: Option<&FamilyMetadata>) -> usize {
        metadata.map_or(0, |metadata| metadata.levels.iter().map(|level| level.files.len()).sum())
    }

    fn rocksdb_column_family_metadata_get_name(metadata: Option<&FamilyMetadata>) -> *mut c_char {
        metadata.map_or(std::ptr::null_mut(), |metadata| lasting_text(&metadata.name))
    }

    fn rocksdb_column_family_metadata_get_level_count(metadata: Option<&FamilyMetadata>) -> usize {
        metadata.map_or(0, |metadata| metadata.levels.len())
    }

    fn rocksdb_column_family_metadata_get_level_metadata(
        metadata: Option<&FamilyMetadata>,
        at: usize,
    ) -> Option<Box<LevelMetadata>> {
        Some(Box::new(LevelMetadata(metadata?.levels.get(at)?.clone())))
    }

    fn rocksdb_level_metadata_destroy(level: Option<Box<LevelMetadata>>) {
        drop(level);
    }

    fn rocksdb_level_metadata_get_level(level: Option<&LevelMetadata>) -> i32 {
        level.map_or(0, |level| level.0.number)
    }

    fn rocksdb_level_metadata_get_size(level: Option<&LevelMetadata>) -> u64 {
        level.map_or(0, |level| level.0.bytes())
    }

    fn rocksdb_level_metadata_get_file_count(level: Option<&LevelMetadata>) -> usize {
        level.map_or(0, |level| level.0.files.len())
    }

    fn rocksdb_level_metadata_get_sst_file_metadata(
        level: Option<&LevelMetadata>,
        at: usize,
    ) -> Option<Box<FileMetadata>> {
        Some(Box::new(FileMetadata(level?.0.files.get(at)?.clone())))
    }

    fn rocksdb_sst_file_metadata_destroy(file: Option<Box<FileMetadata>>) {
        drop(file);
    }

    fn rocksdb_sst_file_metadata_get_relative_filename(file: Option<&FileMetadata>) -> *mut c_char {
        let name = file.map(|file| file.0.name.bytes());
        name.map_or(std::ptr::null_mut(), |name| lasting(name.strip_prefix(b"/").unwrap_or(name)))
    }

    fn rocksdb_sst_file_metadata_get_directory(file: Option<&FileMetadata>) -> *mut c_char {
        file.map_or(std::ptr::null_mut(), |file| lasting(file.0.directory.bytes()))
    }

    fn rocksdb_sst_file_metadata_get_size(file: Option<&FileMetadata>) -> u64 {
        file.map_or(0, |file| file.0.bytes as u64)
    }

    fn rocksdb_sst_file_metadata_get_smallestkey(
        file: Option<&FileMetadata>,
        len: Out<'_, usize>,
    ) -> *mut c_char {
        key(file.map(|file| file.0.smallest.bytes()), len)
    }

    fn rocksdb_sst_file_metadata_get_largestkey(
        file: Option<&FileMetadata>,
        len: Out<'_, usize>,
    ) -> *mut c_char {
        key(file.map(|file| file.0.largest.bytes()), len)
    }
}

/// A copy of a key for the caller.
fn key(key: Option<&[u8]>, len: Out<'_, usize>) -> *mut c_char {
    put(len, key.map_or(0, <[u8]>::len));
    key.map_or(std::ptr::null_mut(), lasting)
}
