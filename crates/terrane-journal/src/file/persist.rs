//! Persist steps: the sealed segments, oldest first, then the active one.
//!
//! One thread at a time syncs, under `syncing`: the system tells a failed write to one of two
//! concurrent syncs, and the other must not look successful. So a thread may wait for a sync of another one.
//! It is never one that the waiting thread could do without:
//! * A leader with a synced group needs all that came before, and no thread syncs anything else meanwhile.
//! * A flush syncs only what lies in segments up to its number, and nothing where a leader was there before.
//! * What was synced while a thread waited is not synced again.
//!
//! Invariant: the segment that is active is found in the same look at the list that finds no sealed one. With
//! two looks a rotation may come in between, and what it seals would be taken for durable.

use std::sync::Arc;

use terrane_base::sync::atomic::Ordering;
use terrane_base::{Result, SeqNo};
use terrane_device::File;

use super::Shared;
use super::syncer::{Sealed, next_sealed};
/// The positions that syncs of active segments reached.
#[derive(Debug, Default)]
pub(super) struct Synced {
    /// So many of the appended bytes were durable once, with all before.
    bytes: u64,
}

/// A segment that is not known to be durable.
enum Unsynced {
    Sealed(Sealed),
    /// The active one, with the number of bytes that were appended up to now.
    Active(Arc<dyn File>, u64),
}

impl Shared {
    /// Makes everything up to `seq` durable that was appended before the call; a sync is asked for.
    pub(super) fn persist_through(&self, seq: SeqNo) -> Result<()> {
        self.was_persisted.store(true, Ordering::Relaxed);
        let mut synced = self.syncing.lock();
        self.poison.check()?;
        while let Some(unsynced) = self.next_unsynced(seq) {
            match unsynced {
                Unsynced::Sealed(sealed) => self.sync_segment(&sealed)?,
                Unsynced::Active(_, bytes) if bytes == synced.bytes => break,
                Unsynced::Active(file, bytes) => {
                    // Poisoned while `syncing` is held, as in `sync_segment`.
                    file.sync().inspect_err(|error| self.poison.set(error.clone()))?;
                    debug_assert!(bytes > synced.bytes, "{bytes} of {} bytes", synced.bytes);
                    synced.bytes = bytes;
                    break;
                }
            }
        }
        Ok(())
    }

    /// The segment to sync next, so that everything up to `seq` is durable.
    fn next_unsynced(&self, seq: SeqNo) -> Option<Unsynced> {
        let mut state = self.state.lock();
        state.is_sync_asked = true;
        if SeqNo(self.durable.load(Ordering::Relaxed)) >= seq {
            return None;
        }
        if let Some(sealed) = next_sealed(&state) {
            return Some(Unsynced::Sealed(sealed));
        }
        let active = state.active().filter(|_| !terrane_base::planted!(SkipJournalSync))?;
        // Acquire: pairs with the Release in `write`. None of these bytes is in a later segment: a rotation
        // takes `state`.
        let bytes = self.bytes_appended.load(Ordering::Acquire);
        active.file.clone().map(|file| Unsynced::Active(file, bytes))
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use std::path::Path;

    use terrane_base::env::Env;
    use terrane_base::{Batch, Kind, TableId};
    use terrane_device::{Call, Disk, Failure, Fault, FaultyDisk, MemDisk};

    use crate::medium::Medium;
    use crate::{FileJournal, Journal, JournalSettings, JournalStart, SegmentRegistrar, SegmentSpec};

    use super::*;

    struct Unlisted;

    impl SegmentRegistrar for Unlisted {
        fn register(&self, _segment: &SegmentSpec) -> Result<()> {
            Ok(())
        }
    }

    /// A leader that waited for the sync of a flush may find its bytes synced.
    #[test]
    fn a_synced_segment_is_not_synced_again() {
        let disk = FaultyDisk::new(Arc::new(MemDisk::new()));
        disk.create_dir(Path::new("dir")).expect("a directory");
        let (shared, settings, start) =
            (Arc::new(disk.clone()), JournalSettings::default(), JournalStart::default());
        let opened =
            FileJournal::open(shared, Path::new("dir"), &settings, &Env::real(), Arc::new(Unlisted), &start);
        let journal = opened.expect("a journal");
        let commit = || {
            let mut batch = Batch::new();
            batch.put(TableId::DEFAULT, b"key", b"value").expect("within the limits");
            journal.commit(&batch, false, &mut |_| {}).expect("there is room")
        };
        journal.sync_through(commit()).expect("the device works");
        disk.fail(Fault::new(Call::Sync, Failure::Broken).on("000001.seg").lasting());
        journal.0.medium().persist().expect("nothing came since");
        commit();
        assert_eq!(journal.0.medium().persist().expect_err("something came").kind(), Kind::Io);
    }
}
