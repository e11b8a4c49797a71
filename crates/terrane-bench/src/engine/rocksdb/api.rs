//! RocksDB's C interface as a table of functions, read from a shared library while the program runs.
//!
//! * [`Api`]: the table. What both RocksDB 7.8 (Debian 12) and 11.8 export is required; what came later is an
//!   `Option`.
//! * [`Owned`]: an object that the library made, with the function that destroys it. [`checked`]: a call that
//!   reports by `char **errptr`. [`text`]: a string that the caller must free.
//!
//! The signatures are those of `include/rocksdb/c.h`. Unsafe code is here because a symbol's type is a
//! promise to the compiler that only the header backs: each one below was compared with the headers of both
//! versions. The library is never unloaded: RocksDB keeps threads and thread-local destructors that point
//! into it.
#![expect(unsafe_code, reason = "symbols of a shared library have the types of a C header")]

use std::ffi::{CStr, c_char, c_int, c_uchar, c_void};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;

use libloading::Library;

use crate::error::{Error, Result};

macro_rules! opaque {
    ($($name:ident),*) => { $(
        /// An object of the library that is only ever pointed at.
        #[derive(Debug)]
        pub(super) enum $name {}
    )* };
}

opaque!(
    Batch,
    Cache,
    ColumnFamily,
    CompactFilesOptions,
    CompactRangeOptions,
    Db,
    Environment,
    FilterPolicy,
    FlushOptions,
    HyperClockOptions,
    Iter,
    LiveFiles,
    MergeOperator,
    OptimisticDb,
    OptimisticOptions,
    Options,
    PerfContext,
    Pinned,
    PinnedMultiGet,
    ReadOptions,
    TableOptions,
    Transaction,
    TransactionDb,
    TransactionDbOptions,
    TransactionOptions,
    WaitOptions,
    WriteBufferManager,
    WriteOptions
);

/// `rocksdb_slice_t`: bytes lent by the library, passed by value.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Slice {
    pub(super) data: *const c_char,
    pub(super) size: usize,
}

/// `char **errptr`.
pub(super) type ErrPtr = *mut *mut c_char;

/// Frees the state of a user's object.
pub(super) type Destroy = unsafe extern "C" fn(*mut c_void);
/// The name of a user's object.
pub(super) type Name = unsafe extern "C" fn(*mut c_void) -> *const c_char;
/// Frees the result of a merge; `free` if the operator sets none.
pub(super) type DeleteValue = unsafe extern "C" fn(*mut c_void, *const c_char, usize);
/// Key, value, operands, whether it could, the length of what it made.
pub(super) type FullMerge = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    c_int,
    *mut c_uchar,
    *mut usize,
) -> *mut c_char;
/// Key, operands, whether it could, the length of what it made.
pub(super) type PartialMerge = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    c_int,
    *mut c_uchar,
    *mut usize,
) -> *mut c_char;

macro_rules! api {
    (
        required { $( $name:ident ( $($arg:ty),* ) $(-> $ret:ty)?; )* }
        optional { $( $late:ident ( $($late_arg:ty),* ) $(-> $late_ret:ty)?; )* }
    ) => {
        /// The functions of one loaded library.
        pub(super) struct Api {
            path: PathBuf,
            $( pub(super) $name: unsafe extern "C" fn($($arg),*) $(-> $ret)?, )*
            $( pub(super) $late: Option<unsafe extern "C" fn($($late_arg),*) $(-> $late_ret)?>, )*
            _library: ManuallyDrop<Library>,
        }

        impl Api {
            fn read(library: Library, path: &Path) -> Result<Self> {
                // SAFETY: each type is the one that RocksDB's C header gives the symbol; the functions are
                // called only while `Api` is there, and the library is never unloaded.
                unsafe {
                    Ok(Api {
                        path: path.to_owned(),
                        $( $name: *library
                            .get(concat!("rocksdb_", stringify!($name)))
                            .map_err(|_| missing(path, concat!("rocksdb_", stringify!($name))))?, )*
                        $( $late: library.get(concat!("rocksdb_", stringify!($late))).ok().map(|symbol| *symbol), )*
                        _library: ManuallyDrop::new(library),
                    })
                }
            }
        }
    };
}

api! {
    required {
        free(*mut c_void);
        options_create() -> *mut Options;
        options_destroy(*mut Options);
        get_options_from_string(*const Options, *const c_char, *mut Options, ErrPtr);
        options_enable_statistics(*mut Options);
        options_statistics_get_string(*mut Options) -> *mut c_char;
        create_mem_env() -> *mut Environment;
        env_destroy(*mut Environment);
        options_set_env(*mut Options, *mut Environment);
        open(*const Options, *const c_char, ErrPtr) -> *mut Db;
        merge(*mut Db, *const WriteOptions, *const c_char, usize, *const c_char, usize, ErrPtr);
        options_set_merge_operator(*mut Options, *mut MergeOperator);
        mergeoperator_create(*mut c_void, Destroy, FullMerge, PartialMerge, Option<DeleteValue>, Name)
            -> *mut MergeOperator;
        options_set_block_based_table_factory(*mut Options, *mut TableOptions);
        block_based_options_create() -> *mut TableOptions;
        block_based_options_destroy(*mut TableOptions);
        block_based_options_set_block_cache(*mut TableOptions, *mut Cache);
        block_based_options_set_block_size(*mut TableOptions, usize);
        block_based_options_set_filter_policy(*mut TableOptions, *mut FilterPolicy);
        block_based_options_set_whole_key_filtering(*mut TableOptions, c_uchar);
        block_based_options_set_cache_index_and_filter_blocks(*mut TableOptions, c_uchar);
        block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(*mut TableOptions, c_uchar);
        block_based_options_set_data_block_index_type(*mut TableOptions, c_int);
        filterpolicy_create_bloom_full(f64) -> *mut FilterPolicy;
        filterpolicy_create_ribbon_hybrid(f64, c_int) -> *mut FilterPolicy;
        cache_create_lru(usize) -> *mut Cache;
        cache_destroy(*mut Cache);
        list_column_families(*const Options, *const c_char, *mut usize, ErrPtr) -> *mut *mut c_char;
        list_column_families_destroy(*mut *mut c_char, usize);
        open_column_families(*const Options, *const c_char, c_int, *const *const c_char, *const *const Options,
            *mut *mut ColumnFamily, ErrPtr) -> *mut Db;
        column_family_handle_destroy(*mut ColumnFamily);
        open_for_read_only_column_families(*const Options, *const c_char, c_int, *const *const c_char,
            *const *const Options, *mut *mut ColumnFamily, c_uchar, ErrPtr) -> *mut Db;
        get_latest_sequence_number(*mut Db) -> u64;
        close(*mut Db);
        get_pinned_cf(*mut Db, *const ReadOptions, *mut ColumnFamily, *const c_char, usize, ErrPtr) -> *mut Pinned;
        pinnableslice_value(*const Pinned, *mut usize) -> *const c_char;
        pinnableslice_destroy(*mut Pinned);
        batched_multi_get_cf(*mut Db, *const ReadOptions, *mut ColumnFamily, usize, *const *const c_char,
            *const usize, *mut *mut Pinned, *mut *mut c_char, bool);
        readoptions_create() -> *mut ReadOptions;
        readoptions_destroy(*mut ReadOptions);
        readoptions_set_readahead_size(*mut ReadOptions, usize);
        readoptions_set_fill_cache(*mut ReadOptions, c_uchar);
        readoptions_set_total_order_seek(*mut ReadOptions, c_uchar);
        writeoptions_create() -> *mut WriteOptions;
        writeoptions_destroy(*mut WriteOptions);
        writeoptions_set_sync(*mut WriteOptions, c_uchar);
        write(*mut Db, *const WriteOptions, *mut Batch, ErrPtr);
        writebatch_create() -> *mut Batch;
        writebatch_destroy(*mut Batch);
        writebatch_clear(*mut Batch);
        writebatch_put_cf(*mut Batch, *mut ColumnFamily, *const c_char, usize, *const c_char, usize);
        writebatch_delete_cf(*mut Batch, *mut ColumnFamily, *const c_char, usize);
        create_iterator_cf(*mut Db, *const ReadOptions, *mut ColumnFamily) -> *mut Iter;
        iter_destroy(*mut Iter);
        iter_valid(*const Iter) -> c_uchar;
        iter_seek(*mut Iter, *const c_char, usize);
        iter_seek_for_prev(*mut Iter, *const c_char, usize);
        iter_seek_to_first(*mut Iter);
        iter_seek_to_last(*mut Iter);
        iter_next(*mut Iter);
        iter_prev(*mut Iter);
        iter_key(*const Iter, *mut usize) -> *const c_char;
        iter_value(*const Iter, *mut usize) -> *const c_char;
        iter_get_error(*const Iter, ErrPtr);
        flushoptions_create() -> *mut FlushOptions;
        flushoptions_destroy(*mut FlushOptions);
        flush_cf(*mut Db, *const FlushOptions, *mut ColumnFamily, ErrPtr);
        flush_wal(*mut Db, c_uchar, ErrPtr);
        compactoptions_create() -> *mut CompactRangeOptions;
        compactoptions_destroy(*mut CompactRangeOptions);
        compactoptions_set_bottommost_level_compaction(*mut CompactRangeOptions, c_uchar);
        compact_range_cf_opt(*mut Db, *mut ColumnFamily, *mut CompactRangeOptions, *const c_char, usize,
            *const c_char, usize);
        set_options_cf(*mut Db, *mut ColumnFamily, c_int, *const *const c_char, *const *const c_char, ErrPtr);
        property_value_cf(*mut Db, *mut ColumnFamily, *const c_char) -> *mut c_char;
        livefiles(*mut Db) -> *mut LiveFiles;
        livefiles_count(*const LiveFiles) -> c_int;
        livefiles_column_family_name(*const LiveFiles, c_int) -> *const c_char;
        livefiles_name(*const LiveFiles, c_int) -> *const c_char;
        livefiles_level(*const LiveFiles, c_int) -> c_int;
        livefiles_size(*const LiveFiles, c_int) -> usize;
        livefiles_entries(*const LiveFiles, c_int) -> u64;
        livefiles_destroy(*mut LiveFiles);
        set_perf_level(c_int);
        perfcontext_create() -> *mut PerfContext;
        perfcontext_destroy(*mut PerfContext);
        perfcontext_reset(*mut PerfContext);
        perfcontext_report(*mut PerfContext, c_uchar) -> *mut c_char;
    }
    optional {
        get_into_buffer_cf(*mut Db, *const ReadOptions, *mut ColumnFamily, *const c_char, usize, *mut c_char, usize,
            *mut usize, *mut c_uchar, ErrPtr) -> c_uchar;
        batched_multi_get_pinned_cf(*mut Db, *const ReadOptions, *mut ColumnFamily, usize, *const Slice, c_uchar)
            -> *mut PinnedMultiGet;
        pinnable_multi_get_result(*const PinnedMultiGet, usize, *mut *const c_char, *mut usize, *mut *const c_char,
            *mut usize) -> c_int;
        pinnable_multi_get_destroy(*mut PinnedMultiGet);
        put_cf(*mut Db, *const WriteOptions, *mut ColumnFamily, *const c_char, usize, *const c_char, usize, ErrPtr);
        block_based_options_set_unpartitioned_pinning_tier(*mut TableOptions, c_int);
        delete_range_cf(*mut Db, *const WriteOptions, *mut ColumnFamily, *const c_char, usize, *const c_char, usize,
            ErrPtr);
        options_set_statistics_level(*mut Options, c_int);
        options_set_write_buffer_manager(*mut Options, *mut WriteBufferManager);
        write_buffer_manager_create_with_cache(usize, *const Cache, bool) -> *mut WriteBufferManager;
        write_buffer_manager_destroy(*mut WriteBufferManager);
        hyper_clock_cache_options_create(usize, usize) -> *mut HyperClockOptions;
        hyper_clock_cache_options_destroy(*mut HyperClockOptions);
        cache_create_hyper_clock_opts(*const HyperClockOptions) -> *mut Cache;
        iter_refresh(*mut Iter, ErrPtr);
        iter_key_slice(*const Iter) -> Slice;
        iter_value_slice(*const Iter) -> Slice;
        compaction_options_create() -> *mut CompactFilesOptions;
        compaction_options_destroy(*mut CompactFilesOptions);
        compaction_options_set_output_file_size_limit(*mut CompactFilesOptions, u64);
        compact_files_cf(*mut Db, *mut ColumnFamily, *const CompactFilesOptions, *const *const c_char, usize, c_int,
            c_int, *mut *mut *mut c_char, *mut usize, *mut c_void, ErrPtr);
        optimistictransactiondb_open_column_families(*const Options, *const c_char, c_int, *const *const c_char,
            *const *const Options, *mut *mut ColumnFamily, ErrPtr) -> *mut OptimisticDb;
        optimistictransactiondb_get_base_db(*mut OptimisticDb) -> *mut Db;
        optimistictransactiondb_close_base_db(*mut Db);
        optimistictransactiondb_close(*mut OptimisticDb);
        optimistictransaction_options_create() -> *mut OptimisticOptions;
        optimistictransaction_options_destroy(*mut OptimisticOptions);
        optimistictransaction_options_set_set_snapshot(*mut OptimisticOptions, c_uchar);
        optimistictransaction_begin(*mut OptimisticDb, *const WriteOptions, *const OptimisticOptions,
            *mut Transaction) -> *mut Transaction;
        transactiondb_options_create() -> *mut TransactionDbOptions;
        transactiondb_options_destroy(*mut TransactionDbOptions);
        transactiondb_open_column_families(*const Options, *const TransactionDbOptions, *const c_char, c_int,
            *const *const c_char, *const *const Options, *mut *mut ColumnFamily, ErrPtr) -> *mut TransactionDb;
        transactiondb_get_base_db(*mut TransactionDb) -> *mut Db;
        transactiondb_close_base_db(*mut Db);
        transactiondb_close(*mut TransactionDb);
        transaction_options_create() -> *mut TransactionOptions;
        transaction_options_destroy(*mut TransactionOptions);
        transaction_options_set_set_snapshot(*mut TransactionOptions, c_uchar);
        transaction_options_set_deadlock_detect(*mut TransactionOptions, c_uchar);
        transaction_begin(*mut TransactionDb, *const WriteOptions, *const TransactionOptions, *mut Transaction)
            -> *mut Transaction;
        transaction_destroy(*mut Transaction);
        transaction_commit(*mut Transaction, ErrPtr);
        transaction_get_pinned_for_update_cf(*mut Transaction, *const ReadOptions, *mut ColumnFamily, *const c_char,
            usize, c_uchar, ErrPtr) -> *mut Pinned;
        transaction_put_cf(*mut Transaction, *mut ColumnFamily, *const c_char, usize, *const c_char, usize, ErrPtr);
        wait_for_compact_options_create() -> *mut WaitOptions;
        wait_for_compact_options_destroy(*mut WaitOptions);
        wait_for_compact(*mut Db, *mut WaitOptions, ErrPtr);
    }
}

fn missing(path: &Path, symbol: &str) -> Error {
    Error::plan(format!(
        "{} lacks the symbol {symbol}: the adapter needs RocksDB's C interface of version 7.8 or later (a librocksdb.so \
         of C++ symbols alone does not do)",
        path.display()
    ))
}

/// Returns true if the library at `path` is the one that Terrane offers under RocksDB's name. It is used only
/// if it is named explicitly.
pub(super) fn is_terranes_own(path: &Path) -> bool {
    // SAFETY: as in `Api::load`; the symbol is looked for and not called.
    unsafe {
        Library::new(path).is_ok_and(|library| {
            library.get::<unsafe extern "C" fn() -> c_int>(b"terrane_librocksdb\0").is_ok()
        })
    }
}

impl Api {
    /// Loads the library at `path`, a file or a name that the system's loader finds.
    ///
    /// # Errors
    /// The loader's text, if it cannot be loaded; `Ok(Err(..))` if it was loaded but lacks a symbol.
    pub(super) fn load(path: &Path) -> std::result::Result<Result<Self>, String> {
        // SAFETY: loading runs the library's initializers: the user named the file as a RocksDB library, and
        // that is the trust that linking with it would take.
        let library = unsafe { Library::new(path) };
        library.map(|library| Api::read(library, path)).map_err(|error| error.to_string())
    }

    /// Where it was loaded from.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// An object of the library; destroyed with this.
pub(super) struct Owned<T> {
    raw: NonNull<T>,
    destroy: unsafe extern "C" fn(*mut T),
    // Keeps the functions; the code itself stays loaded for good.
    _api: Arc<Api>,
}

impl<T> Owned<T> {
    /// Takes what a `create` function made.
    ///
    /// # Safety
    /// `raw` is null or came from the constructor that `destroy` belongs to, and no other code destroys it.
    ///
    /// # Panics
    /// If it is null: the library's constructors have no way to fail but running out of memory.
    pub(super) unsafe fn new(api: &Arc<Api>, raw: *mut T, destroy: unsafe extern "C" fn(*mut T)) -> Self {
        let raw = NonNull::new(raw).expect("RocksDB's constructors return an object");
        Owned { raw, destroy, _api: Arc::clone(api) }
    }

    /// The object.
    pub(super) fn as_ptr(&self) -> *mut T {
        self.raw.as_ptr()
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: made by the constructor that `destroy` belongs to, and destroyed once, here.
        unsafe { (self.destroy)(self.raw.as_ptr()) }
    }
}

/// Takes a string that the library allocated; `None` for null.
///
/// # Safety
/// `raw` is null or a terminated string that the caller of the library has to free.
pub(super) unsafe fn text(api: &Api, raw: *mut c_char) -> Option<String> {
    let raw = NonNull::new(raw)?;
    // SAFETY: a terminated string by the caller's promise; copied before it is freed, freed once.
    unsafe {
        let copy = CStr::from_ptr(raw.as_ptr()).to_string_lossy().into_owned();
        (api.free)(raw.as_ptr().cast());
        Some(copy)
    }
}

/// Makes a call that reports failure through `errptr`.
///
/// # Errors
/// The library's text, as an error of asking it to `what`.
#[inline]
pub(super) fn checked<R>(api: &Api, what: &str, call: impl FnOnce(ErrPtr) -> R) -> Result<R> {
    let mut message = std::ptr::null_mut();
    let answer = call(&raw mut message);
    if message.is_null() {
        return Ok(answer);
    }
    // SAFETY: the library left an error text for us to free.
    let message = unsafe { text(api, message) };
    Err(Error::engine("rocksdb", what, message.unwrap_or_default()))
}
