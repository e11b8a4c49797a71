//! Reads a whole database that another program wrote with RocksDB: opens it for reading, and scans each
//! column family once.
//!
//! 1. [`Source::open`] finds a library, lists the column families and looks at what the database wrote down
//!    of its options.
//! 2. Each family gets the comparator and the merge operator that are recorded, by name, where the library
//!    has them; the merge operator of the given options where it does not.
//! 3. [`Source::rows`] reads a family in its order, merged, past the block cache.
//!
//! A family whose operator the library does not have gets one that refuses every merge (`operators`), and so
//! does one without an operator: if it is opened without any, RocksDB silently skips operands in its log.
//!
//! Unsafe code: calls of the C interface. Pointers given to it are of objects that [`Source`] or [`Rows`]
//! own, or of buffers alive for the call. Field order is drop order.
#![expect(unsafe_code, reason = "calls of a C interface")]

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Arc;

use crate::engine::rocksdb::api::{Api, ColumnFamily, Db, Iter, Options, Owned, ReadOptions, checked, text};
use crate::engine::rocksdb::recorded::{self, Recorded};
use crate::engine::rocksdb::{library, operators, setup};
use crate::error::{Error, Result};

/// The comparator that RocksDB has where none is given.
const BYTEWISE: &str = "leveldb.BytewiseComparator";
/// The other one that it brings along.
const REVERSE: &str = "rocksdb.ReverseBytewiseComparator";
/// Bytes that a scan reads at once.
const READAHEAD_BYTES: usize = 2 << 20;

/// How the keys of a column family are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By their bytes.
    Bytewise,
    /// By their bytes, the greatest first.
    Reverse,
}

/// A column family to be read.
pub struct Family {
    /// Its name.
    pub name: String,
    /// How its keys are ordered.
    pub order: Order,
    /// Keys that it has, as RocksDB estimates them.
    pub keys_estimated: u64,
    /// By which operator its merges are worked out, as an option string names it; none where they are
    /// refused.
    pub merge_operator: Option<String>,
    /// The merge operator that is recorded and that the library does not have.
    operator_missing: Option<String>,
    handle: Owned<ColumnFamily>,
}

/// A database opened for reading.
pub struct Source {
    families: Vec<Family>,
    db: Owned<Db>,
    read: Owned<ReadOptions>,
    _options: Vec<Owned<Options>>,
    api: Arc<Api>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("library", &self.api.path()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Family").field("name", &self.name).field("order", &self.order).finish_non_exhaustive()
    }
}

impl Source {
    /// Opens the database in `directory` with the library `library`, or else the one that `TERRANE_ROCKSDB`
    /// names or the system's loader finds. `options` is an option string of RocksDB for every column family,
    /// and may be empty; a merge operator in it is that of families for which none is recorded that the
    /// library has. Nothing is written, and no lock is taken: no process may write to the database meanwhile.
    ///
    /// # Errors
    /// `Plan` if the library cannot be loaded or lacks a symbol, if the directory holds no database, or if a
    /// column family is ordered by a comparator of its program's own; `Unsupported` if no library was named
    /// or found; RocksDB's.
    pub fn open(directory: &Path, library: Option<&Path>, options: &str) -> Result<Source> {
        let api = library::find(library, "--library")?;
        if !directory.join("CURRENT").is_file() {
            return Err(Error::plan(format!(
                "{} holds no database of RocksDB: it has no file CURRENT",
                directory.display()
            )));
        }
        let path = super::database::path_text(directory)?;
        let names = super::database::listed_families(&api, &path)?;
        let recorded = recorded::read(directory)?;
        let base = parsed(&api, options).map_err(|why| Error::plan(format!("--source-options: {why}")))?;
        let given = operators::apart(options);
        if given.0.is_some() && !operators::has_one(&api, &base)? {
            return Err(Error::plan(format!(
                "--source-options {options}: the library has no such merge operator"
            )));
        }
        let made = names.iter().map(|name| family_options(&api, name, &recorded, &given));
        let made = made.collect::<Result<Vec<_>>>()?;
        let opened = open_for_reading(&api, &base, &path, &names, &made);
        let (db, handles) = opened.map_err(|error| comparator_named(error, &names))?;
        let (mut all, operators): (Vec<_>, Vec<_>) = made.into_iter().unzip();
        all.push(base);
        let families = names.iter().zip(operators).zip(handles).map(|((name, operator), handle)| {
            let order = order(recorded.get(name)).unwrap_or(Order::Bytewise);
            let keys_estimated = keys_estimated(&api, &db, &handle);
            let (merge_operator, operator_missing) = (operator.used, operator.missing);
            Family { name: name.clone(), order, keys_estimated, merge_operator, operator_missing, handle }
        });
        let families = families.collect();
        let read = scan_options(&api);
        Ok(Source { families, db, read, _options: all, api })
    }

    /// Its column families.
    #[must_use]
    pub fn families(&self) -> &[Family] {
        &self.families
    }

    /// Where the library was loaded from.
    #[must_use]
    pub fn library(&self) -> &Path {
        self.api.path()
    }

    /// The number of its last change: another one tells that it was written to.
    #[must_use]
    pub fn last_change(&self) -> u64 {
        // SAFETY: the database is open.
        unsafe { (self.api.get_latest_sequence_number)(self.db.as_ptr()) }
    }

    /// The rows of a family, by its index, in its order: from the first one or from the key `from` on.
    ///
    /// # Panics
    /// If there is no such family.
    #[must_use]
    pub fn rows(&self, family: usize, from: Option<&[u8]>) -> Rows<'_> {
        let (api, family) = (&self.api, &self.families[family]);
        // SAFETY: database, options and family are alive for as long as the iterator; the key for the call.
        let iter = unsafe {
            let made = (api.create_iterator_cf)(self.db.as_ptr(), self.read.as_ptr(), family.handle.as_ptr());
            let iter = Owned::new(api, made, api.iter_destroy);
            match from {
                None => (api.iter_seek_to_first)(iter.as_ptr()),
                Some(key) => (api.iter_seek)(iter.as_ptr(), key.as_ptr().cast(), key.len()),
            }
            iter
        };
        Rows { iter, api, family, is_fresh: true }
    }
}

impl Family {
    /// Adds the missing setting to the error of a merge that failed.
    fn explained(&self, error: Error) -> Error {
        if !error.to_string().to_ascii_lowercase().contains("merge operator") {
            return error;
        }
        let operator = self.operator_missing.as_deref().map_or(String::new(), |name| format!(" of {name}"));
        Error::plan(format!(
            "column family {:?} holds merges{operator} that the library cannot work out ({error}): name an operator that it has \
             with --source-options merge_operator=NAME, or let the program that wrote them compact the whole family first, so that no \
             operand is left",
            self.name
        ))
    }
}

/// A scan of a column family.
pub struct Rows<'s> {
    iter: Owned<Iter>,
    api: &'s Arc<Api>,
    family: &'s Family,
    /// True if it stands at a row that was not shown yet.
    is_fresh: bool,
}

impl fmt::Debug for Rows<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").finish_non_exhaustive()
    }
}

/// Key and value, lent until the next row is asked for.
pub type Row<'r> = (&'r [u8], &'r [u8]);

impl Rows<'_> {
    /// The next row, or none at the end.
    ///
    /// # Errors
    /// RocksDB's, where it cannot read or merge what it has.
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>> {
        let (api, iter) = (self.api, self.iter.as_ptr());
        // SAFETY: the iterator is alive; it is asked to move on only from where it is valid, and what it
        // lends is used until it moves on, which needs this object alone.
        unsafe {
            if !std::mem::replace(&mut self.is_fresh, false) && (api.iter_valid)(iter) != 0 {
                (api.iter_next)(iter);
            }
            if (api.iter_valid)(iter) == 0 {
                let ended = checked(api, "read its rows", |error| (api.iter_get_error)(iter, error));
                return ended.map(|()| None).map_err(|error| self.family.explained(error));
            }
            let (mut key_len, mut value_len) = (0, 0);
            let key = (api.iter_key)(iter, &raw mut key_len);
            let value = (api.iter_value)(iter, &raw mut value_len);
            Ok(Some((lent(key, key_len), lent(value, value_len))))
        }
    }
}

/// # Safety
/// `len` readable bytes at `data`, for `'l`; no bytes may be anywhere.
unsafe fn lent<'l>(data: *const c_char, len: usize) -> &'l [u8] {
    match len {
        0 => &[],
        // SAFETY: the caller's promise.
        _ => unsafe { std::slice::from_raw_parts(data.cast(), len) },
    }
}

/// The order of a family by its recorded options.
fn order(recorded: Option<&Recorded>) -> std::result::Result<Order, &str> {
    match recorded.and_then(|recorded| recorded.comparator.as_deref()) {
        None | Some(BYTEWISE) => Ok(Order::Bytewise),
        Some(REVERSE) => Ok(Order::Reverse),
        Some(other) => Err(other),
    }
}

fn not_by_bytes(family: &str, comparator: &str) -> Error {
    Error::plan(format!(
        "column family {family:?} is ordered by the comparator {comparator}, which only the program that made it knows: let that \
         program write its rows out, or change to {BYTEWISE} or {REVERSE} first"
    ))
}

/// The error of RocksDB for a comparator other than the recorded one, in our words.
fn comparator_named(error: Error, names: &[String]) -> Error {
    match error.to_string().split_once("does not match existing comparator ") {
        Some((_, name)) => not_by_bytes(&names.join(", "), name.trim()),
        None => error,
    }
}

/// The merge operator of a family.
struct Operator {
    /// As an option string names it; none where merges are refused.
    used: Option<String>,
    /// The one that is recorded, where another or none is used.
    missing: Option<String>,
}

/// The options of a family. `given` holds all other options, and the merge operator for a family whose
/// recorded operator is not registered.
fn family_options(
    api: &Arc<Api>,
    name: &str,
    recorded: &BTreeMap<String, Recorded>,
    given: &(Option<String>, String),
) -> Result<(Owned<Options>, Operator)> {
    let recorded = recorded.get(name);
    let order = order(recorded).map_err(|comparator| not_by_bytes(name, comparator))?;
    let comparator = (order == Order::Reverse).then(|| format!("comparator={REVERSE}"));
    let others = [comparator.unwrap_or_default(), given.1.clone()];
    let with = |operator: Option<&String>| {
        let operator = operator.map(|operator| format!("{}={operator}", operators::OPTION));
        let texts = others.iter().chain(&operator).filter(|text| !text.is_empty());
        parsed(api, &texts.map(String::as_str).collect::<Vec<_>>().join(";"))
    };
    let recorded = recorded.and_then(|recorded| recorded.merge_operator.clone());
    for operator in [&recorded, &given.0].into_iter().flatten() {
        // One that the library refuses to understand it does not have.
        let Ok(options) = with(Some(operator)) else { continue };
        if operators::has_one(api, &options)? {
            let missing = recorded.clone().filter(|recorded| recorded != operator);
            return Ok((options, Operator { used: Some(operator.clone()), missing }));
        }
    }
    let options = with(None)?;
    // SAFETY: the options are alive, and take the operator over.
    unsafe {
        (api.options_set_merge_operator)(options.as_ptr(), operators::refusing(api, recorded.as_deref()));
    };
    Ok((options, Operator { used: None, missing: recorded }))
}

/// Options that an option string makes of the defaults.
fn parsed(api: &Arc<Api>, text: &str) -> Result<Owned<Options>> {
    setup::parse(api, &setup::options(api), text)
}

fn scan_options(api: &Arc<Api>) -> Owned<ReadOptions> {
    // SAFETY: the constructor and its destructor; set before anybody else sees it.
    unsafe {
        let options = Owned::new(api, (api.readoptions_create)(), api.readoptions_destroy);
        (api.readoptions_set_readahead_size)(options.as_ptr(), READAHEAD_BYTES);
        (api.readoptions_set_fill_cache)(options.as_ptr(), 0);
        (api.readoptions_set_total_order_seek)(options.as_ptr(), 1);
        options
    }
}

fn keys_estimated(api: &Arc<Api>, db: &Owned<Db>, family: &Owned<ColumnFamily>) -> u64 {
    // SAFETY: handles and name are alive; the answer is null or ours to free.
    let answer = unsafe {
        text(
            api,
            (api.property_value_cf)(db.as_ptr(), family.as_ptr(), c"rocksdb.estimate-num-keys".as_ptr()),
        )
    };
    answer.and_then(|answer| answer.trim().parse().ok()).unwrap_or(0)
}

fn open_for_reading(
    api: &Arc<Api>,
    base: &Owned<Options>,
    path: &CStr,
    names: &[String],
    options: &[(Owned<Options>, Operator)],
) -> Result<(Owned<Db>, Vec<Owned<ColumnFamily>>)> {
    let texts = names.iter().map(|name| super::database::c_text(name)).collect::<Result<Vec<CString>>>()?;
    let texts: Vec<*const c_char> = texts.iter().map(|name| name.as_ptr()).collect();
    let each: Vec<*const Options> =
        options.iter().map(|(options, _)| options.as_ptr().cast_const()).collect();
    let mut handles: Vec<*mut ColumnFamily> = vec![null_mut(); names.len()];
    let count = c_int::try_from(names.len()).map_err(|_| Error::plan("too many column families"))?;
    let db = checked(api, "open for reading", |error| {
        // SAFETY: names, options and handles are arrays of `count`, alive for the call.
        unsafe {
            (api.open_for_read_only_column_families)(
                base.as_ptr(),
                path.as_ptr(),
                count,
                texts.as_ptr(),
                each.as_ptr(),
                handles.as_mut_ptr(),
                0,
                error,
            )
        }
    })?;
    // SAFETY: without an error the database and every handle were made, and are ours to destroy.
    unsafe {
        let own = |handle| Owned::new(api, handle, api.column_family_handle_destroy);
        Ok((Owned::new(api, db, api.close), handles.into_iter().map(own).collect()))
    }
}
