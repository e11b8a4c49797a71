//! Implements [`Journal`](crate::Journal) for wrappers of a `RingJournal`: every call is passed on unchanged.

/// Implements `Journal` for a wrapper of a `RingJournal`.
macro_rules! delegate_journal {
    ($wrapper:ty) => {
        impl Journal for $wrapper {
            fn commit(&self, batch: &Batch, sync: bool, index: &mut dyn FnMut(&Placed<'_>)) -> Result<SeqNo> {
                self.0.commit(batch, sync, index)
            }

            fn visible(&self) -> SeqNo {
                self.0.visible()
            }

            fn between_groups(&self, f: &mut dyn FnMut(SeqNo)) {
                self.0.between_groups(f);
            }

            fn sync(&self) -> Result<()> {
                self.0.sync()
            }

            fn sync_through(&self, seq: SeqNo) -> Result<()> {
                self.0.sync_through(seq)
            }

            fn refuse_commits(&self) {
                self.0.refuse_commits();
            }

            fn segments(&self) -> Vec<SegmentInfo> {
                self.0.segments()
            }

            fn excerpt(&self) -> Result<crate::Excerpt> {
                self.0.excerpt()
            }

            fn poison(&self, cause: terrane_base::Error) {
                self.0.poison(cause);
            }

            fn check(&self) -> Result<()> {
                self.0.check()
            }

            fn complete_segments(&self) -> Vec<SegmentInfo> {
                self.0.complete_segments()
            }

            fn unused_segments(&self) -> Vec<SegmentInfo> {
                self.0.unused_segments()
            }

            fn remove_unused(&self, ids: &[SegmentId]) -> Result<()> {
                self.0.remove_unused(ids)
            }

            fn memory_bytes(&self) -> u64 {
                self.0.memory_bytes()
            }

            fn held_bytes(&self) -> u64 {
                self.0.held_bytes()
            }

            fn seal_longer_than(&self, bytes: u64) -> Result<()> {
                self.0.seal_longer_than(bytes)
            }

            fn appended(&self) -> crate::Appended {
                self.0.appended()
            }

            fn trim_keeping(&self, upto: SegmentId, kept: &[SegmentId]) -> Result<Vec<SegmentId>> {
                self.0.trim_keeping(upto, kept)
            }

            fn take_back(&self, files: &[(u32, u64)]) -> Result<()> {
                self.0.take_back(files)
            }

            fn durable(&self) -> SeqNo {
                self.0.durable()
            }

            fn remove_spares(&self) -> Result<u64> {
                self.0.remove_spares()
            }

            fn use_kept_room(&self, flushed: Option<SeqNo>) {
                self.0.use_kept_room(flushed);
            }

            fn close(&self) -> Result<SeqNo> {
                self.0.close()
            }
        }
    };
}

/// The calls of `Medium` that a medium over segment files, its field `files`, passes on unchanged.
macro_rules! delegate_files {
    () => {
        fn durable(&self) -> SeqNo {
            self.files.durable()
        }

        fn edit_number(&self) -> u64 {
            self.files.edit_number()
        }

        fn segments(&self) -> Vec<SegmentInfo> {
            self.files.segments()
        }

        fn live_memory(&self) -> Vec<LiveMemory> {
            self.files.live_memory()
        }

        fn memory_bytes(&self) -> u64 {
            self.files.memory_bytes()
        }

        fn held_bytes(&self) -> u64 {
            self.files.held_bytes()
        }

        fn appended(&self) -> Appended {
            self.files.appended()
        }

        fn take_back(&self, files: &[(u32, u64)]) -> Result<()> {
            self.files.take_back(files)
        }

        fn unused_segments(&self) -> Vec<SegmentInfo> {
            self.files.unused_segments()
        }

        fn remove_unused(&self, ids: &[SegmentId]) -> Result<()> {
            self.files.remove_unused(ids)
        }

        fn remove_spares(&self) -> Result<u64> {
            self.files.remove_spares()
        }

        fn unseal(&self, id: SegmentId) -> Option<Arc<SegmentMemory>> {
            self.files.unseal(id)
        }

        fn give_up_long(&self) {
            self.files.give_up_long();
        }

        fn use_kept_room(&self, flushed: Option<SeqNo>) {
            self.files.use_kept_room(flushed);
        }

        fn begin_end(&self) {
            self.files.begin_end();
        }

        fn end(&self, sealed: &SealedEnd) {
            self.files.end(sealed);
        }
    };
}

pub(crate) use {delegate_files, delegate_journal};
