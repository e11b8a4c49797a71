//! Configurations of the one engine that stand for the classic design and for that of persistent memory, to
//! be compared with each other (`bench/pmem-ycsb.toml`).
//!
//! | preset | commits | what a full memtable becomes |
//! |---|---|---|
//! | `xs` | journal in segment files | an overflow run: level 0, not ordered; runs are merged into level 1 |
//! | `xp` | journal in segment files | a part of the global index, which is merged into level 1 by ranges |
//! | `xs-pm` | journal in a pool of persistent memory | as `xs` |
//! | `xp-pm` | journal in a pool of persistent memory | as `xp` |
//!
//! The classic one is not made worse: it has the same ring, memtable, filters, caches, write memory and
//! limits as the other, and its memtables are as large as the defaults make them, as one that is not merged
//! in memory wants them large. A database with the global index has smaller memtables, which become one
//! generation of the same size. What a plan sets itself wins over the preset.
//!
//! The pool is the file `pool` in the directory of the database, fenced by instructions, unless the plan
//! names another (`pmem_path`), such as one on DAX. In an ordinary file that costs what persistent memory
//! costs that is as fast as DRAM, and survives the death of the process only: the report says so.

use crate::engine::EngineOptions;

/// Share of the memory that is for writes, as the database derives it.
const WRITE_SHARE: u64 = 2;
/// Share of the write memory that a generation of the global index takes, as the database derives that of a
/// memtable.
const GENERATION_SHARE: (u64, u64) = (3, 8);
/// Memtables in a generation.
const MEMTABLES: u64 = 6;

/// See the head of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preset {
    /// The defaults.
    None,
    /// With or without global index and pool.
    Named { global_index: bool, pool: bool },
}

impl Preset {
    pub(super) const NAMES: [&str; 5] = ["none", "xs", "xp", "xs-pm", "xp-pm"];

    /// The preset of one of [`Preset::NAMES`].
    pub(super) fn named(name: &str) -> Preset {
        assert!(Preset::NAMES.contains(&name), "{name} was read as one of the presets");
        match name {
            "none" => Preset::None,
            _ => Preset::Named { global_index: name.starts_with("xp"), pool: name.ends_with("-pm") },
        }
    }

    /// True if its journal is in persistent memory.
    pub(super) fn has_pool(self) -> bool {
        matches!(self, Preset::Named { pool: true, .. })
    }

    /// The options of the database, with names and texts.
    pub(super) fn options(self, engine: &EngineOptions) -> Vec<(&'static str, String)> {
        let Preset::Named { global_index, pool } = self else { return Vec::new() };
        let generation = engine.memory_bytes / WRITE_SHARE * GENERATION_SHARE.0 / GENERATION_SHARE.1;
        let mut options = match global_index {
            true => vec![
                ("memtable_bytes", (generation / MEMTABLES).to_string()),
                ("global_index_bytes", generation.to_string()),
            ],
            false => vec![
                ("memtable_bytes", generation.to_string()),
                ("global_index_bytes", generation.to_string()),
                ("experiments.always_overflow", true.to_string()),
            ],
        };
        if pool && !engine.options.contains_key("pmem_path") {
            options.push(("pmem_path", engine.directory.join("pool").display().to_string()));
            options.push(("experiments.pmem_buffered", true.to_string()));
        }
        options
    }

    /// The losses that a commit survives, for the report.
    pub(super) fn durability(self) -> &'static str {
        match self.has_pool() {
            true => {
                "each commit is fenced in the pool: on DAX it survives the loss of power, in an ordinary file the death \
                 of the process"
            }
            false => "sync off survives the death of the process, sync on the loss of power",
        }
    }
}
