//! The streams between the engine and its device, each counted apart where its bytes pass.

use std::sync::Arc;

use terrane_base::env::Clock;
use terrane_base::timing::Part;
use terrane_device::{Disk, Flow, MeteredDisk};
use terrane_journal::Appended;
use terrane_storage::{MeteredStore, Store};

use crate::observe::stats::Stats;

/// One count for each stream of a database.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    /// Segments: system calls of the journal. What it stores into mapped memory it counts itself.
    journal: Arc<Flow>,
    /// The manifest.
    manifest: Arc<Flow>,
    /// Memory into level 1 or an overflow run, with the extents of level 1 that are merged.
    flush: Arc<Flow>,
    /// Compaction of runs and levels.
    compaction: Arc<Flow>,
    /// Point reads and scans that miss the cache, and checks.
    user: Arc<Flow>,
}

impl Flows {
    /// Streams whose waits show in the times of operations, by this clock.
    pub(crate) fn new(clock: &Arc<dyn Clock>) -> Flows {
        Flows {
            journal: Arc::new(Flow::timed(Part::Persist, clock.clone())),
            user: Arc::new(Flow::timed(Part::DeviceReads, clock.clone())),
            ..Flows::default()
        }
    }

    /// The disk as the journal sees it.
    pub(crate) fn journal(&self, disk: &Arc<dyn Disk>) -> Arc<dyn Disk> {
        Arc::new(MeteredDisk::new(disk.clone(), self.journal.clone()))
    }

    /// The disk as the manifest sees it.
    pub(crate) fn manifest(&self, disk: &Arc<dyn Disk>) -> Arc<dyn Disk> {
        Arc::new(MeteredDisk::new(disk.clone(), self.manifest.clone()))
    }

    /// The store as flushes see it.
    pub(crate) fn flush(&self, store: &Arc<dyn Store>) -> Arc<dyn Store> {
        Arc::new(MeteredStore::new(store.clone(), self.flush.clone()))
    }

    /// The store as compactions see it.
    pub(crate) fn compaction(&self, store: &Arc<dyn Store>) -> Arc<dyn Store> {
        Arc::new(MeteredStore::new(store.clone(), self.compaction.clone()))
    }

    /// The store as reads see it.
    pub(crate) fn user(&self, store: &Arc<dyn Store>) -> Arc<dyn Store> {
        Arc::new(MeteredStore::new(store.clone(), self.user.clone()))
    }

    /// Writes what was counted into `stats`; `appended` is what the journal stored into mapped memory.
    pub(crate) fn show(&self, appended: Appended, stats: &mut Stats) {
        let journal = self.journal.counts();
        stats.device_journal_bytes_written = journal.bytes_written + appended.bytes;
        stats.device_journal_writes = journal.writes + appended.appends;
        stats.device_journal_syncs = journal.syncs;
        let manifest = self.manifest.counts();
        stats.device_manifest_bytes_written = manifest.bytes_written;
        stats.device_manifest_writes = manifest.writes;
        stats.device_manifest_syncs = manifest.syncs;
        let flush = self.flush.counts();
        stats.device_flush_bytes_read = flush.bytes_read;
        stats.device_flush_reads = flush.reads;
        stats.device_flush_bytes_written = flush.bytes_written;
        stats.device_flush_writes = flush.writes;
        stats.device_flush_syncs = flush.syncs;
        let compaction = self.compaction.counts();
        stats.device_compaction_bytes_read = compaction.bytes_read;
        stats.device_compaction_reads = compaction.reads;
        stats.device_compaction_bytes_written = compaction.bytes_written;
        stats.device_compaction_writes = compaction.writes;
        stats.device_compaction_syncs = compaction.syncs;
        let user = self.user.counts();
        stats.device_user_bytes_read = user.bytes_read;
        stats.device_user_reads = user.reads;
        stats.device_user_batches = user.batches;
    }
}
