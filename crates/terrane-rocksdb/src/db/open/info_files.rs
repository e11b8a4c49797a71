//! Info files of an open database, for users and their tools: OPTIONS files with its options, and the file
//! LOG with the options and events. No opening depends on them: the program's options count.

use std::ffi::{OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::callbacks::logger::Logger;
use crate::db::{Database, Family};
use crate::ffi::failure::{Failure, Result};
use crate::ffi::types::{Out, lasting_list, lasting_text, put};
use crate::files;
use crate::files::info_log::{Limits, Lines, LogLocation};
use crate::options::codec::codec as codec_of;
use crate::options::database::Options;
use crate::options::objects::cache::Cache;
use crate::options::objects::env::Environment;
use crate::options::options_file::read::stored;
use crate::options::options_file::{For, Row, file_text};
use crate::options::table::TableOptions;

/// Where the file LOG of a database with these options is.
pub(crate) fn log_place(path: &Path, options: &Options) -> LogLocation {
    let fields = &options.fields;
    let limits = Limits {
        bytes_max: fields.max_log_file_size as u64,
        age_max: Duration::from_secs(fields.log_file_time_to_roll as u64),
        kept: fields.keep_log_file_num,
    };
    let directory = options.log_directory.as_bytes();
    let directory = (!directory.is_empty()).then(|| Path::new(OsStr::from_bytes(directory)));
    LogLocation::new(path, directory, limits)
}

impl Database {
    /// Logs to the caller's logger, or else to the file LOG, that the database is open, and stores the
    /// options.
    pub(crate) fn begin_info(&self, options: &Options, path: &str) -> Result<()> {
        match &options.objects.logger {
            Some(logger) => {
                self.db.add_listener(logger.clone())?;
                logger.opened(path);
                self.log_families(logger);
                self.log_to(logger.clone());
            }
            None => self.begin_log(options)?,
        }
        self.store_options()
    }

    /// Logs the extents and bytes of each column family.
    fn log_families(&self, logger: &Logger) {
        for shape in self.db.shape().tables.iter().filter(|shape| !shape.name.starts_with("terrane:")) {
            let levels = shape.runs.iter().chain(&shape.levels);
            let (extents, bytes) =
                levels.fold((0, 0), |(extents, bytes), level| (extents + level.extents, bytes + level.bytes));
            logger.found(&shape.name, extents, bytes);
        }
    }

    /// Returns true if no info files are written: a reader does not write, and a database in memory has no
    /// directory.
    fn has_no_info_files(&self) -> bool {
        self.is_read_only || self.is_in_memory()
    }

    fn begin_log(&self, options: &Options) -> Result<()> {
        if self.has_no_info_files() {
            return Ok(());
        }
        // As in RocksDB: if the file cannot be made, the database runs without it.
        let Ok(lines) = Lines::begin(log_place(self.db.path(), options)) else { return Ok(()) };
        let version = env!("CARGO_PKG_VERSION");
        lines.add_to_head(&format!("Terrane version: {version}, with the interface of RocksDB 11.9"));
        lines.add_to_head(&format!("DB path: {}", self.db.path().display()));
        shown(options.database_rows(For::Log)).for_each(|line| lines.add_to_head(&line));
        capabilities().iter().for_each(|line| lines.add_to_head(line));
        for family in self.families() {
            family_lines(&family).iter().for_each(|line| lines.add_to_head(line));
        }
        let logger = Logger::to_file(options.fields.info_log_level, lines);
        let logger = Arc::new(logger);
        self.db.add_listener(logger.clone())?;
        self.log_to(logger);
        Ok(())
    }

    /// Writes the options as they are now into another file OPTIONS, where they are not those of the newest
    /// one.
    pub(crate) fn store_options(&self) -> Result<()> {
        if self.has_no_info_files() {
            return Ok(());
        }
        // Held until the file is there: of two changes at once the later one writes the newer file.
        let options = self.lock_options();
        let family = |family: Arc<Family>| (family.table.name().to_owned(), family.options());
        let families: Vec<(String, Options)> = self.families().into_iter().map(family).collect();
        files::options_files::write(self.db.path(), &file_text(&options, &families))
    }
}

impl Database {
    /// As [`Database::store_options`], where what the options are about is done already: that they could not
    /// be written is not a failure of it, and is said in the log.
    pub(crate) fn store_options_or_warn(&self) {
        if let Err(failure) = self.store_options() {
            self.warn(&format!("the options could not be written: {}", failure.text()));
        }
    }
}

fn shown(rows: Vec<Row>) -> impl Iterator<Item = String> {
    rows.into_iter().map(|(name, value)| format!("{:>42}: {value}", format!("Options.{name}")))
}

/// The features that were built in.
fn capabilities() -> [String; 8] {
    let codec = |name: &str, is_there: bool| format!("\t{name} supported: {}", u8::from(is_there));
    // They are taken for a wish: blocks are stored with the codec of their class.
    let wish = |name: &str, number| match codec_of(number) {
        Ok(stored) => format!("\t{name} supported: 0 (may be set: stored with {stored})"),
        Err(_) => codec(name, false),
    };
    let is_compiled = cfg!(any(target_feature = "sse4.2", target_feature = "crc"));
    let machine = if cfg!(target_arch = "aarch64") { "Arm64" } else { "x86" };
    [
        "Compression algorithms supported:".to_owned(),
        codec("kLZ4Compression", true),
        codec("kZSTD", cfg!(feature = "zstd")),
        wish("kSnappyCompression", 1),
        wish("kZlibCompression", 2),
        wish("kBZip2Compression", 3),
        // RocksDB's line is about what was compiled; here the machine is asked.
        format!(
            "Fast CRC32 supported: where the machine has it; taken for granted: {}upported on {machine}",
            if is_compiled { "S" } else { "Not s" }
        ),
        "Jemalloc supported: 0".to_owned(),
    ]
}

/// The options of a column family; those of its tables are one text of many lines.
fn family_lines(family: &Family) -> Vec<String> {
    let options = family.options();
    let mut lines = vec![format!("--------------- Options for column family [{}]:", family.table.name())];
    let collectors = [("table_properties_collectors", options.objects.collectors.join("; "))];
    lines.extend(shown(options.family_rows(For::Log)));
    lines.extend(shown(collectors.into_iter().filter(|(_, value)| !value.is_empty()).collect()));
    lines.push(format!("           table_factory options: \n{}", table_lines(&options.table).join("\n")));
    lines
}

/// The options of the tables, and the size of their cache where the program gave one.
fn table_lines(table: &TableOptions) -> Vec<String> {
    let rows = table.rows(For::Log).into_iter();
    let mut lines: Vec<String> = rows.map(|(name, value)| format!("  {name}: {value}")).collect();
    let cache = table.cache.as_ref().map(Cache::capacity_bytes);
    lines.extend(cache.map(|bytes| format!("  block_cache_options:\n    capacity : {bytes}")));
    lines
}

/// Output parameters: the number of families, their names, their options.
type Places<'a> = (Out<'a, usize>, Out<'a, *mut *mut c_char>, Out<'a, *mut *mut Options>);

/// Reads the newest file of options in a directory.
fn load(
    path: &str,
    (environment, ignores_unknown, cache): (Option<&Environment>, bool, Option<&Cache>),
    database: Out<'_, *mut Options>,
    (count, names, families): Places<'_>,
) -> Result<()> {
    if environment.is_some_and(|environment| environment.memory.is_some()) {
        return Err(Failure::new("NotFound", "a database in memory has no files of options"));
    }
    let (file, text) = files::options_files::latest(Path::new(path))?;
    let mut read = stored(&text, ignores_unknown)
        .map_err(|why| Failure::invalid(format_args!("{}: {}", file.display(), why.reason())))?;
    for (_, options) in &mut read.families {
        options.table.cache = cache.cloned();
        options.environment = environment.cloned();
    }
    read.database.environment = environment.cloned();
    put(count, read.families.len());
    put(database, Box::into_raw(Box::new(read.database)));
    let listed: Vec<*mut c_char> = read.families.iter().map(|(name, _)| lasting_text(name)).collect();
    put(names, lasting_list(&listed));
    let listed: Vec<*mut Options> =
        read.families.into_iter().map(|(_, options)| Box::into_raw(Box::new(options))).collect();
    put(families, lasting_list(&listed));
    Ok(())
}

export! {
    fn rocksdb_load_latest_options(
        path: Text<'_>,
        environment: Option<&Environment>,
        ignores_unknown: u8,
        cache: Option<&Cache>,
        database: Out<'_, *mut Options>,
        count: Out<'_, usize>,
        names: Out<'_, *mut *mut c_char>,
        families: Out<'_, *mut *mut Options>,
        error: ErrPtr<'_>,
    ) {
        load(path.utf8()?, (environment, ignores_unknown != 0, cache), database, (count, names, families))
    }

    fn rocksdb_load_latest_options_destroy(
        database: Option<Box<Options>>,
        names: ReturnedList<c_char>[count],
        families: ReturnedList<Options>[count],
        count: usize,
    ) {
        drop(database);
        names.free_strings();
        families.free_handles();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_has_the_size_of_a_cache_that_the_program_gave() {
        let mut table = TableOptions::default();
        assert!(!table_lines(&table).iter().any(|line| line.contains("block_cache_options")));
        table.cache = Some(Cache::new(12_345));
        let line = "  block_cache_options:\n    capacity : 12345".to_owned();
        assert!(table_lines(&table).contains(&line), "the size is in no line");
    }
}
