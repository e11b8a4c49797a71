//! Options of backup engines and of backups.

use std::ffi::{c_char, c_void};

use crate::callbacks::backup_progress::{MayExclude, OnProgress, ProgressListener};
use crate::ffi::arguments::Text;
use crate::ffi::option_fields::Changed;
use crate::ffi::types::Out;
use crate::ffi::value_objects::{LentText, lent};
use crate::generated::backup_engine_options::BackupEngineOptionsFields;
use crate::generated::create_backup_options::CreateBackupOptionsFields;
use crate::options::objects::env::Environment;
use crate::options::objects::rate_limiter::RateLimiter;

/// Options of a backup engine: where it keeps backups, and how fast it goes.
#[derive(Clone, Debug, Default)]
pub(crate) struct BackupEngineOptions {
    pub(crate) fields: BackupEngineOptionsFields,
    pub(crate) directory: LentText,
    pub(crate) environment: Option<Environment>,
    backup_rate: Option<RateLimiter>,
    restore_rate: Option<RateLimiter>,
}

impl Changed for BackupEngineOptions {}

impl BackupEngineOptions {
    /// Those of backups in a directory.
    pub(crate) fn in_directory(directory: LentText) -> BackupEngineOptions {
        BackupEngineOptions { directory, ..BackupEngineOptions::default() }
    }

    /// Bytes per second of backups; 0 for any.
    pub(crate) fn backup_rate(&self) -> u64 {
        rate(self.backup_rate.as_ref(), self.fields.backup_rate_limit)
    }

    /// Bytes per second of restores; 0 for any.
    pub(crate) fn restore_rate(&self) -> u64 {
        rate(self.restore_rate.as_ref(), self.fields.restore_rate_limit)
    }
}

/// The rate of a limiter, which goes before a mere number.
fn rate(limiter: Option<&RateLimiter>, limit: u64) -> u64 {
    limiter.map_or(limit, |limiter| limiter.bytes_per_second.max(0).unsigned_abs())
}

/// Options of one backup.
#[derive(Clone, Debug, Default)]
pub(crate) struct CreateBackupOptions {
    pub(crate) fields: CreateBackupOptionsFields,
    pub(crate) progress: ProgressListener,
    /// True if there is a function that would leave files out.
    pub(crate) excludes_files: bool,
}

impl CreateBackupOptions {
    /// Returns true if the setter without a field, of which there is one, was called.
    pub(crate) fn is_noted(&self, function: &str) -> bool {
        debug_assert!(function.ends_with("exclude_files_callback"), "{function} has no note");
        self.excludes_files
    }
}

impl Changed for CreateBackupOptions {}

fn directory(directory: Text<'_>) -> LentText {
    directory.get().map(|directory| directory.to_bytes().into()).unwrap_or_default()
}

export! {
    fn rocksdb_backup_engine_options_create(path: Text<'_>) -> Option<Box<BackupEngineOptions>> {
        Some(Box::new(BackupEngineOptions::in_directory(directory(path))))
    }

    fn rocksdb_backup_engine_options_destroy(options: Option<Box<BackupEngineOptions>>) {
        drop(options);
    }

    fn rocksdb_backup_engine_options_set_backup_dir(
        options: Option<&mut BackupEngineOptions>,
        path: Text<'_>,
    ) {
        if let Some(options) = options {
            options.directory = directory(path);
        }
    }

    fn rocksdb_backup_engine_options_get_backup_dir(
        options: Option<&BackupEngineOptions>,
        len: Out<'_, usize>,
    ) -> *const c_char {
        lent(options.map(|options| &options.directory), len)
    }

    fn rocksdb_backup_engine_options_set_env(
        options: Option<&mut BackupEngineOptions>,
        environment: Option<&Environment>,
    ) {
        if let Some(options) = options {
            options.environment = environment.cloned();
        }
    }

    fn rocksdb_backup_engine_options_set_backup_rate_limiter(
        options: Option<&mut BackupEngineOptions>,
        limiter: Option<&RateLimiter>,
    ) {
        if let Some(options) = options {
            options.backup_rate = limiter.cloned();
        }
    }

    fn rocksdb_backup_engine_options_set_restore_rate_limiter(
        options: Option<&mut BackupEngineOptions>,
        limiter: Option<&RateLimiter>,
    ) {
        if let Some(options) = options {
            options.restore_rate = limiter.cloned();
        }
    }

    fn rocksdb_create_backup_options_create() -> Option<Box<CreateBackupOptions>> {
        Some(Box::default())
    }

    fn rocksdb_create_backup_options_destroy(options: Option<Box<CreateBackupOptions>>) {
        drop(options);
    }

    fn rocksdb_create_backup_options_set_progress_callback(
        options: Option<&mut CreateBackupOptions>,
        state: *mut c_void,
        callback: OnProgress,
    ) {
        if let Some(options) = options {
            options.progress = ProgressListener::new(state, callback);
        }
    }

    fn rocksdb_create_backup_options_set_exclude_files_callback(
        options: Option<&mut CreateBackupOptions>,
        _state: *mut c_void,
        asked: MayExclude,
    ) {
        if let Some(options) = options {
            options.excludes_files = asked.is_some();
        }
    }
}
