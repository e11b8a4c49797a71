//! The tests of the crate, a module for each subject: one program, because linking many takes longer than
//! running them. What counts for a whole process, or needs a feature, is a program of its own beside it.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod auto_compaction;
mod bulk;
mod callbacks;
mod ceiling;
mod changes;
mod cores;
mod counters;
mod cursors;
mod examples;
mod experiments;
mod extent_filter;
mod filters;
mod forms;
mod golden;
mod in_memory;
mod ingest;
mod inventory;
mod key_orders;
mod limits;
mod listeners;
mod log_data;
mod memory_budget;
mod merge_operators;
mod misuse;
mod notes;
mod permissions;
mod pool;
mod prefixes;
mod promises;
mod range_deletes;
mod readers;
mod reopened;
mod replay_filter;
mod separated;
mod separated_keys;
mod shapes;
mod statistics;
mod table_options;
mod time_to_live;
mod tiny_cache;
mod transactions;
mod typed;
mod unknown_functions;
mod value_options;
