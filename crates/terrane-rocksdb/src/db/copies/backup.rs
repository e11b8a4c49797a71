//! Backup engines: the backups of a directory.

use std::ffi::c_char;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use terrane::{
    BackupInfo, BackupOptions, BackupProgress, Backups, DirectoryPlace, Env, Kind,
    RestoreOptions as HowRestored,
};

use crate::callbacks::backup_progress::ProgressListener;
use crate::callbacks::operator_registry::any_functions;
use crate::db::Database;
use crate::ffi::failure::{Failure, Given, Result};
use crate::ffi::types::{Out, put};
use crate::ffi::value_objects::{LentText, lent};
use crate::files;
use crate::generated::objects::RestoreOptions;
use crate::options::backup::{BackupEngineOptions, CreateBackupOptions};
use crate::options::database::Options;
use crate::options::ignored::{IgnoredInCalls, refuse_options_if_strict};
use crate::options::objects::env::Environment;

/// The prefix of metadata that is not text; its bytes follow as hexadecimal digits.
const HEX: &str = "hex:";

/// The backups of a directory.
pub(crate) struct BackupEngine {
    backups: Backups,
    options: BackupEngineOptions,
    is_in_memory: bool,
    is_stopped: AtomicBool,
}

/// The list of backups, as of one moment.
pub(crate) struct BackupInfos(Vec<(BackupInfo, LentText)>);

impl BackupEngine {
    fn open(mut options: BackupEngineOptions, environment: Option<&Environment>) -> Result<BackupEngine> {
        refuse_options_if_strict(&options)?;
        let path = String::from_utf8(options.directory.bytes().to_vec());
        let path = path.map_err(|_| Failure::invalid("a name is not UTF-8"))?;
        options.environment = options.environment.take().or_else(|| environment.cloned());
        let memory = options.environment.as_ref().and_then(|environment| environment.memory.as_ref());
        let backups = match memory {
            Some(memory) => {
                let place = DirectoryPlace::new(memory.disk(), path.as_ref()).beside_others();
                Backups::open_on(Arc::new(place), memory.disk(), Env::real())
            }
            None => {
                let place = files::backup_place(path.as_ref())?;
                files::create_dir(&place)?;
                // Programs keep backups below a database, too, as RocksDB allows.
                Backups::open_beside_others(&place)
            }
        };
        let is_in_memory = memory.is_some();
        let engine = BackupEngine { backups, options, is_in_memory, is_stopped: AtomicBool::new(false) };
        let found = engine.list()?;
        if engine.options.fields.destroy_old_data != 0 && !found.is_empty() {
            engine.backups.purge(0)?;
        }
        Ok(engine)
    }

    /// The backups that there are; none where there is no directory yet.
    fn list(&self) -> Result<Vec<BackupInfo>> {
        match self.backups.list() {
            Err(error) if error.kind() == Kind::NotFound => Ok(Vec::new()),
            list => Ok(list?.backups),
        }
    }

    fn is_stopped(&self) -> bool {
        // Relaxed: nothing else is read by it.
        self.is_stopped.load(Ordering::Relaxed)
    }

    fn create(
        &self,
        database: &Database,
        options: &CreateBackupOptions,
        metadata: Option<&[u8]>,
    ) -> Result<u32> {
        let stopped = || Failure::new("Result incomplete", "Backup stopped");
        if self.is_stopped() {
            return Err(stopped());
        }
        database.note_ignored(self.options.ignored() | options.ignored())?;
        let mut how = BackupOptions::default()
            .flush(options.fields.flush_before_backup != 0)
            .bytes_per_second(self.options.backup_rate());
        if let Some(metadata) = metadata {
            how = how.note(note(metadata));
        }
        let mut pace = Pace::new(options.progress, self.options.fields.callback_trigger_interval_size);
        let made = self.backups.create_with(&database.db, &how, &mut |progress| {
            pace.report(progress);
            if self.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        match made {
            Err(_) if self.is_stopped() => Err(stopped()),
            made => {
                options.progress.call();
                Ok(u32::try_from(made?.id).unwrap_or(u32::MAX))
            }
        }
    }

    fn verify(&self, id: u32) -> Result<()> {
        match self.backups.verify(id.into())?.findings.first() {
            Some(finding) => Err(Failure::corrupt(&finding.error)),
            None => Ok(()),
        }
    }

    /// Makes the database of a backup in `path`, in the place of one that is there.
    fn restore(&self, id: u64, path: &str, options: Option<&RestoreOptions>) -> Result<()> {
        if options.is_some_and(|options| options.fields.keep_log_files != 0) {
            return Err(Failure::not_implemented(
                "keep_log_files: the commits in a log are part of the database",
            ));
        }
        let how = HowRestored::default().beside_others(true).bytes_per_second(self.options.restore_rate());
        let go_on = &mut |_: &BackupProgress| ControlFlow::Continue(());
        if self.is_in_memory || !files::is_there(path.as_ref()) {
            self.backups.restore_with(id, path, &how, go_on)?;
            return Ok(());
        }
        // Where it is restored to before it takes the place of the other.
        let beside = files::beside(path.as_ref(), ".restored");
        if files::is_there(&beside) {
            return Err(Failure::invalid(format_args!(
                "{}: in the way of a restore, perhaps the rest of one: move it away or remove it",
                beside.display()
            )));
        }
        files::refuse_if_open(path.as_ref(), any_functions())?;
        if let Err(error) = self.backups.restore_with(id, &beside, &how, go_on) {
            // The files there are a part of this restore; the caller gets the restore's failure.
            let _ = files::remove_all(&beside);
            return Err(error.into());
        }
        files::replace(&beside, path.as_ref(), any_functions())
    }
}

/// Metadata as a text: itself, or in hexadecimal digits.
fn note(metadata: &[u8]) -> String {
    match std::str::from_utf8(metadata) {
        Ok(text) if !text.starts_with(HEX) => text.to_owned(),
        _ => metadata.iter().fold(HEX.to_owned(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        }),
    }
}

/// The metadata that a text stands for.
fn metadata(note: &str) -> LentText {
    let digits = note.strip_prefix(HEX).filter(|digits| digits.is_ascii() && digits.len() % 2 == 0);
    let bytes = digits.and_then(|digits| {
        let pairs = (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok());
        pairs.collect::<Option<Vec<u8>>>()
    });
    bytes.map_or_else(|| note.into(), |bytes| bytes.as_slice().into())
}

/// Calls the listener each time so many bytes are copied.
struct Pace {
    listener: ProgressListener,
    interval: u64,
    reported_at: u64,
}

impl Pace {
    fn new(listener: ProgressListener, interval: u64) -> Pace {
        Pace { listener, interval: interval.max(1), reported_at: 0 }
    }

    fn report(&mut self, progress: &BackupProgress) {
        if progress.bytes_done >= self.reported_at.saturating_add(self.interval) {
            self.reported_at = progress.bytes_done;
            self.listener.call();
        }
    }
}

impl BackupInfos {
    fn at(infos: Option<&BackupInfos>, at: i32) -> Option<&(BackupInfo, LentText)> {
        infos?.0.get(usize::try_from(at).ok()?)
    }
}

fn create(
    engine: Option<&BackupEngine>,
    database: Option<&Database>,
    options: Option<&CreateBackupOptions>,
    metadata: Option<&[u8]>,
    id: Out<'_, u32>,
) -> Result<()> {
    let default = CreateBackupOptions::default();
    let made = engine.given()?.create(database.given()?, options.unwrap_or(&default), metadata)?;
    put(id, made);
    Ok(())
}

export! {
    fn rocksdb_backup_engine_open(
        options: Option<&Options>,
        path: Text<'_>,
        error: ErrPtr<'_>,
    ) -> Option<Box<BackupEngine>> {
        let options = options.given()?;
        let own = BackupEngineOptions::in_directory(path.utf8()?.into());
        Ok(Some(Box::new(BackupEngine::open(own, options.environment.as_ref())?)))
    }

    fn rocksdb_backup_engine_open_opts(
        options: Option<&BackupEngineOptions>,
        environment: Option<&Environment>,
        error: ErrPtr<'_>,
    ) -> Option<Box<BackupEngine>> {
        Ok(Some(Box::new(BackupEngine::open(options.given()?.clone(), environment)?)))
    }

    fn rocksdb_backup_engine_create_new_backup(
        engine: Option<&BackupEngine>,
        database: Option<&Database>,
        error: ErrPtr<'_>,
    ) {
        create(engine, database, None, None, None)
    }

    fn rocksdb_backup_engine_create_new_backup_flush(
        engine: Option<&BackupEngine>,
        database: Option<&Database>,
        flush: u8,
        error: ErrPtr<'_>,
    ) {
        let mut options = CreateBackupOptions::default();
        options.fields.flush_before_backup = flush;
        create(engine, database, Some(&options), None, None)
    }

    fn rocksdb_backup_engine_create_new_backup_with_options(
        engine: Option<&BackupEngine>,
        database: Option<&Database>,
        options: Option<&CreateBackupOptions>,
        id: Out<'_, u32>,
        error: ErrPtr<'_>,
    ) {
        create(engine, database, options, None, id)
    }

    fn rocksdb_backup_engine_create_new_backup_with_metadata(
        engine: Option<&BackupEngine>,
        database: Option<&Database>,
        options: Option<&CreateBackupOptions>,
        metadata: Bytes<'_>,
        metadata_len: usize,
        id: Out<'_, u32>,
        error: ErrPtr<'_>,
    ) {
        create(engine, database, options, Some(metadata), id)
    }

    fn rocksdb_backup_engine_purge_old_backups(engine: Option<&BackupEngine>, keep: u32, error: ErrPtr<'_>) {
        let engine = engine.given()?;
        if !engine.list()?.is_empty() {
            engine.backups.purge(keep as usize)?;
        }
        Ok(())
    }

    fn rocksdb_backup_engine_verify_backup(engine: Option<&BackupEngine>, id: u32, error: ErrPtr<'_>) {
        engine.given()?.verify(id)
    }

    fn rocksdb_backup_engine_restore_db_from_latest_backup(
        engine: Option<&BackupEngine>,
        path: Text<'_>,
        _log_path: Text<'_>,
        options: Option<&RestoreOptions>,
        error: ErrPtr<'_>,
    ) {
        let engine = engine.given()?;
        engine.restore(engine.backups.newest()?, path.utf8()?, options)
    }

    fn rocksdb_backup_engine_restore_db_from_backup(
        engine: Option<&BackupEngine>,
        path: Text<'_>,
        _log_path: Text<'_>,
        options: Option<&RestoreOptions>,
        id: u32,
        error: ErrPtr<'_>,
    ) {
        engine.given()?.restore(id.into(), path.utf8()?, options)
    }

    fn rocksdb_backup_engine_get_backup_info(engine: Option<&BackupEngine>) -> Option<Box<BackupInfos>> {
        let infos = engine?.list().unwrap_or_default().into_iter();
        let infos = infos.map(|info| {
            let metadata = info.note.as_deref().map(metadata).unwrap_or_default();
            (info, metadata)
        });
        Some(Box::new(BackupInfos(infos.collect())))
    }

    fn rocksdb_backup_engine_info_count(infos: Option<&BackupInfos>) -> i32 {
        infos.map_or(0, |infos| i32::try_from(infos.0.len()).unwrap_or(i32::MAX))
    }

    fn rocksdb_backup_engine_info_timestamp(infos: Option<&BackupInfos>, at: i32) -> i64 {
        BackupInfos::at(infos, at).map_or(0, |(info, _)| (info.created_millis / 1000) as i64)
    }

    fn rocksdb_backup_engine_info_backup_id(infos: Option<&BackupInfos>, at: i32) -> u32 {
        BackupInfos::at(infos, at).map_or(0, |(info, _)| u32::try_from(info.id).unwrap_or(u32::MAX))
    }

    fn rocksdb_backup_engine_info_size(infos: Option<&BackupInfos>, at: i32) -> u64 {
        BackupInfos::at(infos, at).map_or(0, |(info, _)| info.extent_bytes + info.journal_bytes)
    }

    fn rocksdb_backup_engine_info_number_files(infos: Option<&BackupInfos>, at: i32) -> u32 {
        // Its manifest is one of them, and the journal, if there is one.
        let files = |info: &BackupInfo| info.extents + u64::from(info.journal_bytes > 0) + 1;
        BackupInfos::at(infos, at).map_or(0, |(info, _)| u32::try_from(files(info)).unwrap_or(u32::MAX))
    }

    fn rocksdb_backup_engine_info_app_metadata(
        infos: Option<&BackupInfos>,
        at: i32,
        len: Out<'_, usize>,
    ) -> *const c_char {
        lent(BackupInfos::at(infos, at).map(|(_, metadata)| metadata), len)
    }

    fn rocksdb_backup_engine_info_destroy(infos: Option<Box<BackupInfos>>) {
        drop(infos);
    }

    fn rocksdb_backup_engine_stop_backup(engine: Option<&BackupEngine>) {
        if let Some(engine) = engine {
            engine.is_stopped.store(true, Ordering::Relaxed);
        }
    }

    fn rocksdb_backup_engine_close(engine: Option<Box<BackupEngine>>) {
        drop(engine);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_come_back_as_they_were() {
        for bytes in [&b"text"[..], b"", b"hex:00", b"hex:", &[0xff, 0, 1], "\u{e4}".as_bytes()] {
            assert_eq!(metadata(&note(bytes)).bytes(), bytes);
        }
        assert_eq!(metadata("hex:zz").bytes(), b"hex:zz");
    }
}
