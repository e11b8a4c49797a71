//! Bf-Tree of Microsoft Research: a B-tree whose hot records live in a circular buffer of small pages. A tree
//! per table.
//!
//! Its limits, which the report names: it keeps no log here, so nothing survives before its pages are
//! evicted, and a database cannot be opened again; it writes record by record, so a batch is not atomic; it
//! scans forward only; it takes no empty values. Its write-ahead log is left out: the crate cannot recover
//! from it yet, and a commit waits a whole flush interval.

use std::path::Path;

use bf_tree::{BfTree, Config, LeafInsertResult, LeafReadResult, ScanIter, ScanReturnField, StorageBackend};

use crate::engine::options::{Named, locked_version, setting};
use crate::engine::{Control, Direction, Engine, EngineOptions, Opened, Session, ShowRow, Visit, Write};
use crate::error::{Error, Result};

const KNOWN: [&str; 5] = ["key_bytes_max", "leaf_bytes", "buffer_bytes", "backend", "read_promotion"];
const PAGE: usize = 4096;
const LEAF_MAX: usize = 32 << 10;
/// Node head, record heads and rounding that a page needs beside two records and its fences.
const LEAF_OVERHEAD: usize = 256;

/// Open trees.
pub struct Bftree {
    trees: Vec<BfTree>,
    leaf_bytes: usize,
    opened: Opened,
}

impl Bftree {
    /// Creates them.
    ///
    /// # Errors
    /// `Unsupported` for a directory that holds them already, or values longer than a page takes; `Plan` for
    /// a wrong option; Bf-Tree's.
    pub fn open(options: &EngineOptions) -> Result<Self> {
        let named = Named::new("bftree", &options.options, &KNOWN)?;
        let sizes = Sizes::new(options, &named)?;
        let (backend, backend_name) = backend(options, &named)?;
        let promotion = usize::try_from(named.number("read_promotion", 30)?.min(100)).expect("at most 100");
        let tree = |table: u32| {
            let mut config = sizes.config(&options.directory.join(format!("table{table}.bftree")));
            config.storage_backend(backend.clone()).read_promotion_rate(promotion);
            create(config, &options.directory, table)
        };
        let trees = (0..options.tables.max(1)).map(tree).collect::<Result<_>>()?;
        let settings = vec![
            setting(
                "cb_size_byte",
                format!("{} bytes for each table, a power of two within memory_bytes", sizes.buffer),
            ),
            setting("leaf_page_size", sizes.leaf),
            setting("cb_max_record_size", sizes.record_max),
            setting("cb_min_record_size", sizes.record_min),
            setting("cb_max_key_len", sizes.key_max),
            setting("read_promotion_rate", promotion),
            setting("storage_backend", backend_name),
            setting("batches", "not atomic: record by record"),
            setting(
                "durability",
                "NO LOG: sync off survives nothing, sync on is unsupported, it cannot be opened again",
            ),
        ];
        Ok(Bftree {
            trees,
            leaf_bytes: sizes.leaf,
            opened: Opened { version: locked_version("bf-tree"), settings },
        })
    }
}

/// Sizes in bytes.
struct Sizes {
    buffer: usize,
    leaf: usize,
    key_max: usize,
    record_max: usize,
    record_min: usize,
}

impl Sizes {
    fn new(options: &EngineOptions, named: &Named<'_>) -> Result<Self> {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let key_max = size(named.number("key_bytes_max", 64)?);
        let record_max = key_max.saturating_add(size(options.value_bytes_max));
        let needed = record_max.saturating_mul(2).saturating_add(2 * key_max + LEAF_OVERHEAD);
        if needed > LEAF_MAX {
            let what = format!("records of {record_max} bytes: two of them must fit a page of {LEAF_MAX}");
            return Err(Error::unsupported("bftree", what));
        }
        let leaf = size(named.number("leaf_bytes", needed.next_multiple_of(PAGE) as u64)?);
        let share = options.memory_bytes / u64::from(options.tables.max(1));
        let buffer = size(named.number("buffer_bytes", share)?).max(4 * leaf);
        let buffer = 1 << buffer.ilog2();
        Ok(Sizes { buffer, leaf, key_max, record_max, record_min: (leaf / 4096).max(4) })
    }

    fn config(&self, file: &Path) -> Config {
        let mut config = Config::new(file, self.buffer);
        config
            .leaf_page_size(self.leaf)
            .cb_max_key_len(self.key_max)
            .cb_max_record_size(self.record_max)
            .cb_min_record_size(self.record_min);
        config
    }
}

fn backend(options: &EngineOptions, named: &Named<'_>) -> Result<(StorageBackend, &'static str)> {
    let default = if options.direct_io { "direct" } else { "file" };
    let name = match named.text("backend") {
        None => default,
        Some(_) => named.one_of("backend", &["file", "direct", "io_uring"])?,
    };
    Ok(match name {
        "direct" => (StorageBackend::StdDirect, "StdDirect"),
        "io_uring" => (StorageBackend::IoUringBlocking, "IoUringBlocking"),
        _ => (StorageBackend::Std, "Std, through the page cache"),
    })
}

fn create(config: Config, directory: &Path, table: u32) -> Result<BfTree> {
    if directory.join(format!("table{table}.bftree")).exists() {
        return Err(Error::unsupported("bftree", "way to open a database again: it keeps no log"));
    }
    BfTree::with_config(config, None).map_err(|error| Error::engine("bftree", "open", format!("{error:?}")))
}

impl Engine for Bftree {
    fn opened(&self) -> Opened {
        self.opened.clone()
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(BftreeSession { bftree: self, buffer: vec![0; 2 * self.leaf_bytes] }))
    }

    fn control(&self, control: Control) -> Result<()> {
        match control {
            Control::WaitUntilQuiescent => Ok(()),
            other => Err(Error::unsupported(
                "bftree",
                format!("{other:?}: it is a B-tree without background work"),
            )),
        }
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

struct BftreeSession<'b> {
    bftree: &'b Bftree,
    /// Takes a record; Bf-Tree panics if it is shorter than one.
    buffer: Vec<u8>,
}

impl BftreeSession<'_> {}

fn forward_only(direction: Direction) -> Result<()> {
    match direction {
        Direction::Forward => Ok(()),
        Direction::Backward => Err(Error::unsupported("bftree", "backward scan")),
    }
}

impl Session for BftreeSession<'_> {
    fn get(&mut self, table: u32, key: &[u8], visit: &mut Visit<'_>) -> Result<bool> {
        match self.bftree.trees[table as usize].read(key, &mut self.buffer) {
            LeafReadResult::Found(size) => {
                visit(key, &self.buffer[..size as usize]);
                Ok(true)
            }
            LeafReadResult::NotFound | LeafReadResult::Deleted => Ok(false),
            LeafReadResult::InvalidKey => Err(Error::engine(
                "bftree",
                "get",
                "the key is empty or too long: raise its option key_bytes_max",
            )),
        }
    }

    fn write(&mut self, table: u32, writes: &[Write<'_>], sync: bool) -> Result<()> {
        if sync {
            return Err(Error::unsupported("bftree", "sync: it keeps no log"));
        }
        let tree = &self.bftree.trees[table as usize];
        for write in writes {
            match write {
                Write::Put(key, value) => match tree.insert(key, value) {
                    LeafInsertResult::Success => {}
                    LeafInsertResult::InvalidKV(why) => return Err(Error::engine("bftree", "put", why)),
                },
                Write::Delete(key) => tree.delete(key),
            }
        }
        Ok(())
    }

    fn iterate(
        &mut self,
        table: u32,
        start: Option<&[u8]>,
        rows: u64,
        direction: Direction,
        row: &mut ShowRow<'_>,
    ) -> Result<u64> {
        forward_only(direction)?;
        let tree = &self.bftree.trees[table as usize];
        let count = usize::try_from(rows).unwrap_or(usize::MAX);
        let mut scan: ScanIter<'_, '_> = tree
            .scan_with_count(start.unwrap_or(&[0]), count, ScanReturnField::KeyAndValue)
            .map_err(|error| Error::engine("bftree", "scan", format!("{error:?}")))?;
        let mut seen = 0;
        while let Some((key, value)) = scan.next(&mut self.buffer) {
            seen += 1;
            if !row(&self.buffer[..key], &self.buffer[key..key + value]) {
                break;
            }
        }
        Ok(seen)
    }
}
