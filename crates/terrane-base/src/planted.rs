//! Planted bugs: places where the engine can be made wrong on purpose, to check that a test fails.
//!
//! [`planted!`](macro@crate::planted) is placed where a real bug would be. In every normal build it is the
//! constant `false` and disappears from the program. Only a build with the feature `planted` reads the
//! variable `TERRANE_PLANTED`, once, and switches on the bug with that name: one build serves the whole
//! suite.
//!
//! `cargo xtask planted` runs, for each row of the list, the test that must fail; `docs/planted-bugs.md`
//! shows the result. A row is `Name: "invariant or step it breaks", "what it does", "package test-target
//! test";` on one line.

/// True if the bug of this name is planted: `false` in every normal build.
#[macro_export]
macro_rules! planted {
    ($bug:ident) => {
        $crate::planted::is_planted($crate::planted::Bug::$bug)
    };
}

macro_rules! bugs {
    ($($name:ident: $breaks:literal, $what:literal, $test:literal;)*) => {
        /// Every planted bug. Invariants are those of `ARCHITECTURE.md`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Bug {
            $(#[doc = $what] $name,)*
        }

        /// Every bug with its name, what it breaks, what it does, and the test that catches it.
        pub const ALL: &[(Bug, [&str; 4])] =
            &[$((Bug::$name, [stringify!($name), $breaks, $what, $test]),)*];
    };
}

bugs! {
    SkipJournalSync: "invariant 1", "a synced commit is not synced", "terrane-journal suite crash::random_crashes_lose_no";
    GoOnAfterFailedSync: "invariant 1", "commits go on after a failed sync of the journal", "terrane-journal suite faults::a_failed_sync_poisons";
    SkipSegmentDirectorySync: "invariant 1", "the directory entry of a new segment is not made durable", "terrane-engine suite power::a_cut_at_any_call";
    SkipReplaySync: "recovery: make replayed segments durable", "what replay found in the page cache is not synced", "terrane-journal suite crash::recovery_can_be_repeated";
    IgnoreBatchChecksum: "recovery: check groups", "a wrong checksum of a batch is accepted", "terrane-format suite segment::every_bit_flip";
    IgnoreGroupChecksum: "recovery: check groups", "a wrong checksum of a group header is accepted", "terrane-format suite segment::bytes_of_another_segment";
    ReplayPastGap: "invariant 2", "replay goes on behind a gap in the numbers", "terrane-format suite segment::a_gap_or_repetition";
    ApplyHalfBatch: "invariant 2", "replay indexes the first half of a batch only", "terrane-journal suite crash::random_crashes_lose_no";
    AcceptBrokenChain: "recovery: link segments", "a segment that does not follow its predecessor is accepted", "terrane-journal suite hostile::an_exchanged_segment";
    ForgetBehindBreak: "recovery: set records behind a break aside", "sound groups behind a break are not looked for", "terrane-engine suite behind::records_behind_a_damaged_byte";
    AsideNotSynced: "recovery: set records behind a break aside", "a file of records that are set aside is not synced", "terrane-engine suite set_aside::files_survive_a_loss_of_power";
    RepairNeedsIndex: "repair", "an extent whose index block has a wrong byte is given up", "terrane-engine suite repair_parts::a_flipped_byte";
    RepairForgetsAside: "repair", "records that an opening set aside are not read", "terrane-engine suite behind::repair_reads_what_was_set_aside";
    CutDurableDamage: "recovery: judge the end", "damage in front of the durable end is cut like a torn tail", "terrane-journal suite hostile::the_mark_tells";
    NoDurableMark: "recovery: judge the end", "groups carry no durable-end mark", "terrane-journal suite hostile::the_mark_tells";
    ReuseSequenceNumbers: "recovery: go on", "the first commit after a reopening takes a used number", "terrane-journal suite hostile::whole_journal";
    UseUnregisteredSegment: "invariant 11", "a segment is used that the manifest does not list", "terrane-journal suite faults::a_refused_registration";
    ReuseReplayedSegment: "invariant 3", "the file of a replayed segment is reused while a handle of the opening before reads it", "terrane suite reopened::in_a_directory";
    ReuseReadSegment: "invariant 3", "the file of a segment is reused while a reader reads it", "terrane-journal suite conformance::file_journal_in_memory";
    IgnoreEditChecksum: "recovery: read the manifest", "a wrong checksum of a manifest edit is accepted", "terrane-levels suite damage::every_flipped_bit";
    IgnoreEditChain: "recovery: read the manifest", "an edit that does not follow the one before is accepted", "terrane-levels suite damage::a_lost_doubled";
    SkipManifestSync: "invariant 6", "a manifest edit is not synced", "terrane-levels suite faults::a_power_cut_anywhere_in_appends";
    GoOnAfterManifestFailure: "invariant 6", "edits go on after a failed sync of the manifest", "terrane-levels suite faults::a_failed_sync_poisons";
    SkipCurrentDirectorySync: "atomic creation", "the rename of CURRENT is not made durable", "terrane-levels suite faults::a_power_cut_anywhere";
    NameUnsyncedCurrent: "atomic creation", "CURRENT is renamed before its bytes are durable", "terrane-levels suite faults::a_power_cut_anywhere_in_a_creation";
    AcceptOverlap: "invariant 5", "extents of a level may overlap", "terrane-levels suite manifest::edits_that_contradict";
    OwnTwice: "invariant 5", "an extent may take slots that another one owns", "terrane-levels suite manifest::edits_that_contradict";
    SkipExtentSync: "invariant 6", "extents are named without being synced", "terrane-storage suite local::synced_extents_survive";
    SkipUploadWait: "invariant 6", "a sync of extents in a bucket does not wait for their upload", "terrane-remote suite faults::a_failed_call_loses_nothing";
    TrustExistingObject: "conditional creation", "an object that exists after a lost answer is taken for the own one", "terrane-remote suite retries::a_lost_answer";
    IgnoreTableChecksum: "invariant 6", "a wrong checksum of a data object's table is accepted", "terrane-remote suite hostile::every_damaged_byte";
    SkipBucketRootSync: "invariant 6", "the directory entry of a new bucket is not made durable", "terrane-remote terrane_remote bucket::directory::tests::the_directory_of";
    AcknowledgeUncreated: "conditional creation", "the storage service acknowledges a creation before its bucket holds the object", "terrane-remote suite grpc::a_creation_is_acknowledged_behind";
    AcceptShortObject: "conditional creation", "the storage service creates an object whose stream ended early", "terrane-remote terrane_remote grpc::hostile::a_creation_of";
    AcceptCutAnswer: "invariant 3", "a client of the storage service takes an answer that ended early for the whole", "terrane-remote terrane_remote grpc::bucket::answers::tests::an_answer_that_ends";
    IgnoreToken: "service: the token", "the storage service lets pass a call without its token", "terrane-remote suite grpc::a_call_without_the_token";
    IgnoreBucketIdentity: "service: the bucket is the one that is meant", "the storage service answers a call that is for another bucket", "terrane-remote suite grpc::another_bucket_behind";
    CallGarbageDamage: "readers: deleted objects", "a reader reports what a writer deleted as damage", "terrane-remote suite readers::an_object_that_is_gone";
    CollectNamedObjects: "invariant 6", "garbage is collected without asking what the manifest names", "terrane-remote suite garbage::an_object_that_a_manifest_names";
    CollectPinnedObjects: "invariant 6", "garbage is collected without asking what clones have pinned", "terrane-remote suite clones::a_clone_reads_all";
    ReleasePinAtOnce: "invariant 6", "a clone releases its pin as soon as its manifest names none of the objects", "terrane-remote suite clones::a_pin_goes";
    ReuseNumbersOfOriginal: "invariant 6", "a clone begins with the numbers that it reads from the original", "terrane-remote suite clones::both_go_on";
    TrustAnyFrame: "tier: the right frame", "the identity of a frame of the tier is not compared", "terrane-remote suite tier::an_exchanged_frame";
    AcceptUnleasedExtent: "compaction elsewhere: what a report may name", "a report may name an extent of a file that its worker was not given", "terrane-compaction suite requests::a_report_is_refused";
    AcceptKeysOutsideJob: "compaction elsewhere: what a report may name", "a report may have keys outside of the job's range", "terrane-compaction suite requests::a_report_is_refused";
    DecideByWorkersClock: "compaction elsewhere: the time of a job", "a worker decides by its own clock what has expired", "terrane-compaction suite requests::the_time_of_a_job_travels";
    ReuseDataNumbers: "fencing", "a writer of data objects begins with number 1 again", "terrane-remote suite writers::a_replaced_writer";
    InstallWithoutEdit: "invariant 6", "a job's result is installed without a manifest edit", "terrane-engine suite power::a_cut_at_any_call";
    FreeNamedSlots: "invariant 6", "slots go back while a metasnapshot names the extent", "terrane-table cache limits::an_obsolete_extent";
    TrimTooEarly: "invariant 1", "a segment goes before its records are in the levels", "terrane-engine suite power::a_cut_at_any_call";
    TrimUnflushed: "memory: records that leave it", "a trim looks at visible numbers only, not at what memory points into; the ledgers refuse it", "terrane-engine terrane_engine a_trim_of_segments_with_unflushed_records";
    MergeIntoFlushedGeneration: "memory: records that leave it", "settle takes its read view, a flush of its newest generation ends, settle merges the oldest frozen memtable into that generation, which is in no read view any more, and takes the memtable out of the read view, unasked", "terrane-engine terrane_engine a_memtable_is_not_merged_into";
    PopUnmergedMemtable: "memory: records that leave it", "settle takes a memtable out of the read view though its merge was cancelled on the way; the ledger refuses it", "terrane-engine terrane_engine a_cancelled_merge";
    ForgetGenerationBeforeEdit: "memory: records that leave it", "a flush takes its generation out of the read view before the edit of its last step is appended; the ledger refuses it", "terrane-engine terrane_engine a_flush_hands_on";
    LoseFlushTail: "memory: records that leave it", "a flush is at its end one entry before the end of its generation; the count of entries refuses it", "terrane-engine terrane_engine a_flush_hands_on";
    MissChangedTable: "looks for work: changed tables are found", "a table whose levels, options or requests changed is not put in the set of those that a look for work visits", "terrane-engine terrane_engine a_look_for_work";
    MissFirstRecord: "trims: tables with records are known", "a writer does not note a table whose memtable takes its first record of a segment", "terrane-engine terrane_engine the_first_record_behind";
    EndRequestAtJob: "requests for compactions: when done", "a request counts as fulfilled once its first job is chosen", "terrane-engine terrane_engine a_request_is_served";
    FlushWaitsForNothing: "flush: which callers wait", "a caller that requests a flush waits for a memtable that begins at or below the number, though all up to it is flushed, and no flush is due for that", "terrane-engine terrane_engine a_flush_of_nothing";
    ClaimFromOldCopy: "claims: no two jobs hold the same keys", "claims that were chosen from a copy of the schedule are taken though the schedule has changed since", "terrane-engine terrane_engine a_choice_is_void";
    WaitUnderSchedule: "pause: no lock while work stands", "a flush that waits for a busy level 1 stands under the scheduler's lock while it is paused", "terrane-engine terrane_engine ending_a_pause";
    DropTombstone: "merge: deletes", "a delete is dropped above older data", "terrane-compaction suite merge::deletes_stay_above";
    ForgetSnapshots: "merge: snapshots", "a merge keeps nothing for snapshots", "terrane-compaction suite merge::a_snapshot_keeps";
    ForgetNewestVersion: "merge: versions", "a merge forgets the newest version of a key", "terrane-compaction suite merge::a_flush_goes";
    PartWithinExtent: "merge: parts", "a part of a job ends within an extent of its target", "terrane-compaction suite model::parts_of_jobs";
    PartBetweenVersions: "merge: parts", "a part ends between two versions of a key", "terrane-compaction suite ended_parts::every_reader";
    PartOfRangeDeletes: "merge: parts", "a job with range deletes has parts", "terrane-compaction suite ended_parts::every_reader";
    PartUnhidesOlder: "merge: parts", "an extent goes with a part though an older input has versions left that it hides", "terrane-compaction suite ended_parts::every_reader";
    PartUnderFilter: "merge: parts", "a job with a filter has parts though versions of its rows stay above its target", "terrane-compaction suite room::a_job_with_a_filter";
    PartOfRisingJob: "merge: parts", "a job that moves a level up has parts", "terrane-compaction suite scripts::scripts_print";
    RangeDeleteForgetsSnapshots: "merge: snapshots", "what a range delete hides is dropped though a snapshot sees it", "terrane suite range_deletes::point_reads_and_scans";
    DropUnderSnapshot: "dropped extents: snapshots", "extents are dropped that a snapshot sees", "terrane suite bulk::a_snapshot_keeps";
    DropNewerExtent: "dropped extents: order", "an extent is dropped from above older ones that stay", "terrane suite bulk::dropping_extents_reveals_no_older_version";
    ForgetNumber: "external files: numbers", "blocks of an extent that is numbered as a whole keep the number that they were written with", "terrane suite ingest::newest_wins";
    CopyNumberedBlock: "external files: numbers", "a block of an extent that is numbered as a whole is copied undecoded", "terrane suite ingest::edges::merged_blocks_keep";
    IngestOverMemory: "external files: order", "extents come in though memory has older versions of their keys", "terrane suite ingest::newest_wins";
    IngestTooDeep: "external files: order", "extents come in beneath older versions of their keys", "terrane suite ingest::newest_wins";
    IngestedDeletesAbove: "external files: range deletes", "range deletes of a file come in above its entries", "terrane suite ingest::ranges::range_deletes_of_a_file_hide_older_rows_and_none_of_its_own";
    UnnumberedRangeDelete: "external files: range deletes", "range deletes that came in keep the number that stands in their extent", "terrane suite ingest::ranges::range_deletes_of_a_file_hide_older_rows_and_none_of_its_own";
    KeepIngestedRow: "row cache: forgetting", "a row stays in the row cache when extents with a newer version come in", "terrane suite ingest::rows_that_are_cached";
    FilterUnderSnapshot: "compaction filters: snapshots", "a compaction filter takes out what a snapshot sees", "terrane suite filters::a_snapshot_keeps";
    SwapVersions: "merge: order", "an older version goes in front of a newer one", "terrane-compaction suite model::jobs_side_by_side";
    SnapshotSeesNewer: "snapshot reads", "a snapshot sees what was written later", "terrane-sim suite model::tiny_limits_few_keys";
    SkipLevelInRead: "point reads", "a read leaves the deepest level out", "terrane-sim suite model::tiny_limits_many_keys";
    ForgetRangeDelete: "range deletes: point reads", "a read takes a version that a range delete of the same source hides", "terrane suite range_deletes::point_reads_and_scans";
    VeilHidesNewer: "range deletes: scans", "a scan passes over what was written after a range delete", "terrane suite range_deletes::point_reads_and_scans";
    WrongUpperBound: "ranges", "an excluded upper bound is included", "terrane-sim suite model::tiny_limits_many_keys";
    FilterDenies: "filters", "a filter says no of a key that is there", "terrane-format suite filter::no_key_is_denied";
    AskForeignFilter: "filters: whose prefixes", "a filter with prefixes of another extractor is asked", "terrane suite prefixes::filters_of_another_extractor_are_not_used";
    FillStaleRow: "row cache: stamps", "a read fills the row cache though records came down from memory meanwhile", "terrane-table suite row_cache::a_fill_that_comes_late";
    FillUnseenRow: "row cache: numbers", "a read that does not see an ingest fills the row cache with an older version", "terrane-table suite row_cache::a_read_that_does_not_see_an_ingest_fills_no_row";
    AcceptWhileClosing: "close: with the journal off", "a close flushes while commits are still admitted, and they are acknowledged", "terrane suite limits::a_close_without_a_journal";
    KeepForgottenRow: "row cache: forgetting", "a row stays in the row cache when a newer version comes down from memory", "terrane-engine suite row_cache::no_read_gets_an_old_value";
    MemtableFilterForgets: "filters", "the filter of a memtable forgets its keys", "terrane-memtable suite filter::no_key_is_denied_and_few_absent_keys_pass";
    IgnoreWordCheck: "bytes are not trusted", "the check bits of an owner word in persistent memory are ignored", "terrane-pmem suite hostile::every_flipped_bit";
    SkipOwnerFlush: "persistent memory: grants", "an owner word is not flushed before the allocation returns", "terrane-pmem suite crash::each_operation_survives";
    SkipOwnerFence: "persistent memory: grants", "an allocation returns without a fence behind its owner word", "terrane-pmem suite crash::each_operation_survives";
    ClaimBeforeWords: "persistent memory: chunks of objects", "a chunk becomes one of objects before its words are durably free", "terrane-pmem suite crash::old_bytes_of_a_chunk";
    KeepUnknownOwner: "persistent memory: no leak", "an opening keeps zones whose owner is not known", "terrane-pmem suite crash::random_operations_survive";
    AcceptOverlappingZones: "bytes are not trusted", "zones that go over each other in persistent memory are accepted", "terrane-pmem suite hostile::zones_that_overlap";
    SkipGroupFlush: "persistent memory: acknowledged groups", "the lines of a commit group are not flushed", "terrane-journal suite pm::crash::every_commit_survives";
    SkipGroupFence: "persistent memory: acknowledged groups", "a commit group is acknowledged without a fence", "terrane-journal suite pm::crash::every_commit_survives";
    ForgetFallbackSync: "persistent memory: acknowledged groups", "a synced group in persistent memory is acknowledged though the ordinary file before it is not synced", "terrane-journal suite pm::room::a_synced_group_behind_a_file";
    GrantToNoFile: "persistent memory: grants", "the zone of a segment is granted to an owner that is not its file", "terrane-journal suite pm::crash::every_commit_survives";
    ReuseMappedZone: "invariant 3", "the zone of a trimmed segment goes back while a reader maps it", "terrane-journal suite pm::room::a_mapped_zone";
    AcceptOldManifest: "persistent memory: whose pool", "a pool that was used after the last epoch of the manifest is accepted", "terrane-journal suite pm::pool::a_file_that_cannot_be";
    AcceptForeignPool: "persistent memory: whose pool", "the pool of another database is accepted", "terrane-journal suite pm::pool::a_file_that_cannot_be";
    PassOverUnclearZones: "repair: segments in persistent memory", "a repair does not look for segments where owner words are damaged", "terrane-journal suite pm::pool::damaged_words";
    IgnoreBlockChecksum: "bytes are not trusted", "a wrong checksum of a data block is accepted", "terrane-table suite hostile::damage_at_every_byte";
    IgnorePartChecksum: "bytes are not trusted", "a wrong checksum of an index, a filter or a footer is accepted", "terrane-table suite hostile::damage_at_every_byte";
    UnlimitedTableNumbers: "bytes are not trusted", "any table number of a manifest is accepted", "terrane-engine suite limits::a_table_number";
    FollowLinks: "bytes are not trusted", "a link in the place of a file is followed", "terrane-device suite posix::links_and_pipes";
    OpenToAll: "files are the owner's", "new files can be read by every user", "terrane-device suite posix::only_the_owner";
    ForgetLostSegment: "recovery: link segments", "a lost first segment is passed over", "terrane-journal suite hostile::no_segment_is_ever_skipped";
    IgnoreRecordedEnd: "recovery: judge the end", "damage in front of a recorded end is accepted", "terrane-journal suite hostile::a_recorded_end_holds";
    RetryDamagedWork: "degradation: damage", "a compaction that met damage is tried again and again", "terrane-engine suite degradation::a_compaction_that_meets";
    OldVersionWins: "repair: the newest version counts", "of the versions of a key that lie in extents without known levels, a repair copies the oldest one", "terrane-engine suite repair::without_a_manifest_the_newest";
    SilentRepair: "repair: losses are reported", "what a repair cannot read of journal and manifest is not reported", "terrane-engine suite repair::a_flipped_bit";
    FoldTwice: "merges: operands in two places", "an operand that lies in two places counts twice", "terrane-base suite merging::an_operand_in_two_places_counts_once";
    DropOperands: "merges: older versions count", "the index drops operands that newer ones lie over", "terrane suite merge_operators::every_way_of_reading";
    FoldAcrossSnapshot: "merges: snapshots", "a compaction folds operands across a snapshot", "terrane-compaction suite folding::readers_see_the_same";
    FoldAcrossRangeDelete: "merges: range deletes", "a compaction folds an operand with what a range delete hides", "terrane suite merge_operators::a_range_delete_ends";
    ForgetKeyOrder: "key orders: a table keeps its order", "the order that the database gives a new table is not stored with it", "terrane suite key_orders::border::an_order_is_stored";
    NarrowByBytes: "key orders: comparators are asked", "where a comparator orders the keys, what range deletes leave clear is narrowed by bytes", "terrane-sim suite simulate::every_answer";
    ReadExpired: "time to live: reads", "what has expired is shown until a compaction drops it", "terrane suite time_to_live::expired_values_are_gone_for_every_read";
    DropExpired: "time to live: older versions", "what has expired is dropped where older versions lie below", "terrane suite time_to_live::an_expired_value_reveals_no_older_one";
    KeepOldVeil: "renewed scans: range deletes", "a refreshed cursor does not see range deletes that came meanwhile", "terrane suite range_deletes::a_refreshed_cursor";
    LoseRangePiece: "merges: range deletes in pieces", "the rest of a range delete behind the border of a piece is lost", "terrane-compaction suite divide::a_range_delete_without_gaps";
    ForgetExpiry: "time to live: space", "an extent does not record values that expire in blocks that it took over", "terrane-table suite writer::expiries_in_copied_blocks_are_counted";
    SingleDeleteTooDeep: "single delete", "a single delete vanishes with a put that may lie deeper as well", "terrane-compaction suite folding::a_single_delete_stays";
    DropHiddenSingle: "single deletes: what they hide stays hidden", "a merge drops a single delete behind a newer put", "terrane suite merge_operators::puts_and_single_deletes_in_turns";
    ForgetCopiedReference: "separated values: references", "an extent does not list the value tables that blocks which it took over point into", "terrane-compaction suite model::jobs_side_by_side";
    CountReferenceTwice: "separated values: references", "references that come count twice, and dead value tables stay", "terrane-levels suite values::a_value_table_leaves";
    KeepHiddenReferences: "separated values: references", "extents that go and nothing takes their place, as under a range delete, leave their references", "terrane-levels suite values::a_value_table_leaves";
    DeleteTakeOvers: "objects: fencing", "the first object of a writer is deleted with what a snapshot replaced", "terrane-remote suite manifests::a_writer_that_wakes";
    ForgetLostAnswer: "objects: lost answers", "an object that a writer created without hearing of it counts as another writer's", "terrane-remote suite manifests::a_lost_answer";
    AcknowledgeBeforeLogSync: "object log: durability", "the log of a journal service acknowledges a creation before its sync", "terrane-remote suite object_logs::power::a_cut_at_any_call";
    ReplaceLoggedObject: "object log: conditional creation", "a log takes a creation of a name that is taken, so a writer that was fenced off goes on", "terrane-remote suite object_logs::journals::a_writer_that_was_fenced_off";
    CutLoggedDamage: "object log: judge the end", "damage in front of the durable mark of a log is cut like a torn tail", "terrane-remote suite object_logs::damage::the_mark_tells";
    TrustUnsyncedLog: "object log: opening", "an opening serves what the process before had written and not synced", "terrane-remote suite object_logs::power::objects_found_at_opening";
    DropLiveObjects: "object log: cleaning", "a file of a log is removed without a copy of the objects that live in it", "terrane-remote suite object_logs::cleaning::files_go";
    MarkUnsyncedRecords: "object log: judge the end", "the mark of a record says that records of its own group are durable", "terrane-remote suite object_logs::power::a_cut_at_any_call";
    CreateByBrokenCall: "stream of creations: lost answers", "a creation whose call broke before its answer is reported as created", "terrane-remote suite grpc::cuts::a_connection_that_is_cut_on_the_way_to_the_server";
    TrimByCountOnly: "journal objects: trimming", "objects go by their count although they are needed", "terrane-remote suite journals::objects_go_by_their_count";
    AcknowledgeBeforeObject: "journal objects: durability", "a commit is acknowledged while its object is under way", "terrane-remote suite journals::acknowledged_commits_are_there";
    ForgetLostJournalAnswer: "journal objects: lost answers", "an object of the journal that a writer created without hearing of it counts as another writer's", "terrane-remote suite journals::lost_answers";
    SkipJournalFence: "journal objects: fencing", "a take-over goes on behind the journal's last object without a fence", "terrane-remote suite journals::a_writer_that_wakes";
    DeleteJournalFences: "journal objects: fencing", "fences of the journal are deleted with the objects that are no longer needed", "terrane-remote suite journals::objects_go";
    TrimJournalEarly: "journal objects: trim", "an object says that none before it is needed", "terrane-remote suite journals::objects_go";
    KeepOldSegments: "journal objects: the working copy", "an opening goes on with the segments of a directory that is not the last writer's", "terrane-remote suite journals::an_old_directory";
    IgnoreJournalId: "objects: the journal is the last writer's", "a database of objects is opened with another journal than that of its last writer", "terrane-remote suite manifests::another_journal";
    DropValueTableEarly: "separated values: references", "a value table leaves although one entry still points into it", "terrane-levels suite values::a_value_table_leaves";
    PointNowhere: "separated values: references", "an edit may point into a value table that is not there", "terrane-levels suite values::a_pointer_to_nothing";
    ReuseValueTableNumber: "separated values: numbers", "an opening does not go on behind the numbers of value tables", "terrane suite separated::numbers_of_value_tables";
    KeepOldPointer: "separated values: pointers", "a merge moves a value and keeps the pointer to where it was", "terrane-compaction suite model::jobs_side_by_side";
    SkipValueTableSync: "invariant 6", "the last value table of a job is written behind the sync, so an edit may name extents that are lost with the power", "terrane-engine suite power::a_cut_at_any_call";
    ReadOtherValue: "separated values: reads", "a pointer is followed to the newest version of its key in the value table", "terrane suite separated::an_older_version";
    TrustPosition: "separated values: reads", "the entry at the position that a pointer says is taken without a look at its key", "terrane-format suite pointers::a_position_is_a_hint";
    CollectTooYoung: "separated values: which are collected", "the age of a value table does not count where values are collected", "terrane-compaction suite values::twenty_times";
    ForgetValueDebt: "separated values: which are collected", "values above the ceiling of space do not slow the writers of the table", "terrane-compaction suite values_above_the_ceiling";
    RunsHideNothing: "separated values: which are collected", "overflow runs wait until they are many, however many values they hide", "terrane-compaction suite values::values_that_runs_hide";
    MendNothing: "separated values: scan-triggered merge", "a job leaves the values of a marked range where they are", "terrane-compaction suite values::only_the_ranges_that_scans_marked";
    SeparateForgetsExpiry: "separated values: time to live", "a value that is separated no longer expires", "terrane suite time_to_live::separated::separated_values";
    FoldOntoPointer: "separated values: merges", "an operand is folded onto a pointer instead of its value", "terrane suite separated::a_database_with";
    FilterSeesPointer: "separated values: compaction filters", "a compaction filter is shown a pointer instead of its value", "terrane suite filters::a_filter_is_shown_separated";
    CheckForgetsValues: "separated values: what lists extents", "a check passes over value tables", "terrane suite separated::a_damaged_value";
    RepairForgetsValues: "separated values: what lists extents", "a repair passes over value tables", "terrane suite separated::a_damaged_value";
    BackupForgetsValues: "separated values: what lists extents", "a backup does not copy value tables", "terrane suite separated::backups_and_checkpoints";
    UnlimitedCache: "invariant 8", "the cache takes memory beyond its limit", "terrane-table cache limits::the_limit_holds";
    UnlimitedWriteMemory: "invariant 8", "batches are admitted beyond the write memory", "terrane suite ceiling::large_batches_at_once";
    TakeShortReads: "reads in batches", "a read of a batch that came back short is taken as whole", "terrane-device suite batch::a_batch_reads";
    KeepOldView: "renewed scans", "a refreshed cursor keeps the sorted runs that it had", "terrane suite cursors::a_refreshed_cursor";
    LendTooMuch: "invariant 8", "the cache is lent memory that is not free", "terrane suite ceiling::memory_moves";
    ImpurePicker: "invariant 9", "a picker answers differently when asked again", "terrane-compaction suite scripts::scripts_print";
    StayReadHeavy: "invariant 9", "a tree that was mostly read is never kept for writes again", "terrane-compaction suite scripts::scripts_print";
    MoveTheHottest: "hot and cold: what moves", "the hottest extents of a level move down first", "terrane-compaction suite scripts::scripts_print";
    ForgetHeat: "hot and cold: inherited heat", "what a job writes has no share in the heat of what it replaces", "terrane-engine suite adapt::hot_extents_stay_hot_when_they_are_rewritten";
    AdaptAgainstWriters: "adaptive shape: writers stop it", "a merge that only reads gain by goes on when writers come", "terrane-engine suite adapt::writers_stop";
    PublishOutOfOrder: "invariant 4", "a commit is visible before the earlier ones are indexed", "terrane-journal suite conformance::null_journal";
    ForgetPausedTickets: "commit ring: no ticket is left behind", "a thread that paused the ring looks for no group when it resumes", "terrane-journal terrane_journal a_ticket_that_comes";
    LeaveUnsealed: "invariant 1", "a full segment is not sealed", "terrane-journal suite crash::random_crashes_lose_no";
    ForgetFlushedFloor: "recovery: read the manifest", "a snapshot of the manifest leaves out up to which number all tables are in the levels", "terrane-levels suite flushed_all::a_floor_outlives_snapshots";
    ForgetSeals: "recovery: record where segments end", "the end that replay found is not recorded", "terrane-engine suite lost::groups_that_a_recovery_cut_do_not_come_back";
    IgnoreLostEdits: "recovery: compare journal and manifest", "a manifest that lost edits is accepted", "terrane-engine suite lost::a_manifest_cut";
    BelieveTornEnd: "recovery: cut a torn end", "a manifest is cut where it looked torn once", "terrane-levels suite misread::a_bit_that_is_read_wrong_once";
    FreeWhileSeen: "invariant 7", "what leaves a swip is freed although a reader's epoch can see it", "terrane-table suite swip::an_object_that_a_reader_sees";
    GiveOutTwice: "invariant 7", "the arena gives out memory that is in use", "terrane-table cache arena::memory_is_chunks";
    KeepEmptyChunks: "invariant 8", "an empty chunk of the arena is not given back", "terrane-table cache arena::memory_is_chunks";
    KeepNotes: "invariant 7", "an object that left the cache can still be found by the threads that move objects", "terrane-table cache arena::a_lower_limit";
    ReadWaitsForInstall: "no lock across I/O: blocking reads", "a read takes a lock that is held while an edit is synced", "terrane-engine suite standstill::reads_and_writes_go_on";
    WriteWaitsForTrim: "no lock across I/O: blocking writes", "a write takes a lock that is held while an edit is synced", "terrane-engine suite standstill::reads_and_writes_go_on";
    GoAroundDoor: "everything enters by the doors", "the database's id does not come from the world's randomness", "terrane-sim suite simulate::a_seed_decides_everything";
    CurrentInPlace: "atomic creation", "CURRENT is written in place instead of by rename", "terrane-levels suite faults::a_power_cut_anywhere";
    SkipNamesOfOpening: "invariant 11", "an opening does not make the names durable that it finds", "terrane-levels suite faults::a_name_that_an_opening_found";
    ReadWithoutLock: "invariant 12", "a reader does not keep writers out", "terrane suite ceiling::readers_share";
    SplitImportPosition: "invariant 10", "an import commits its position in a batch of its own", "terrane-cli suite import::records_and_position";
    PredictableGroups: "bytes are not trusted", "checksums of groups do not depend on the database", "terrane-engine suite forged::a_value_in_a_torn_group";
    UnlimitedLosses: "bytes are not trusted", "a repair lists losses without bound", "terrane-engine suite forged::losses_without_end";
    ReclaimOnce: "work at rest: space", "spare space is given back at the first rest only", "terrane-engine terrane_engine background::state::idle_watch::tests::space_is_given_back_again";
    CutUsedEnd: "work at rest: space", "the space that is given back behind an extent begins before its end", "terrane-storage suite local::slots_give_back";
    ReclaimTaken: "work at rest: space", "the space given back reaches into a slot that is in use", "terrane-engine suite rest::at_rest_spare_space";
    ForgetAccepted: "cores: nothing is lost", "requests that were accepted before a close are not done", "terrane suite cores::accepted_requests_are_done_at_a_close";
    OvertakeWrite: "cores: order of a session", "a read overtakes an earlier write of its key", "terrane suite cores::a_session_reads_its_own_writes";
    SpreadTooEarly: "cores: order of a session", "a read of a hot partition does not wait for earlier writes", "terrane suite cores::hot_partitions";
    AcrossTooEarly: "cores: order of a session", "a batch over several cores does not wait for earlier requests", "terrane suite cores::batches_over_several_cores_follow_earlier_requests";
    SkipGracePeriod: "transactions: every write is seen", "a transaction begins while writes are under way that do not know of it", "terrane-base suite watch::a_new_watcher_waits";
    SkipPointValidation: "transactions: reads are validated", "a serializable transaction commits though keys that it read have changed", "terrane suite transactions::random::histories_are_serializable";
    SkipRangeValidation: "transactions: scans are validated", "a serializable transaction commits though a range that it scanned has changed", "terrane suite transactions::hermitage::g2_phantoms";
    SkipWriteValidation: "transactions: the first committer wins", "a transaction overwrites what was committed after its snapshot", "terrane suite transactions::hermitage::p4_lost_update";
    GrantToAll: "transactions: locks exclude", "a lock is granted though another owner holds it", "terrane suite transactions::locks_exclude";
    IgnoreRangeLock: "transactions: a range is deleted under a range lock", "a transaction locks keys of a range that is being deleted", "terrane-engine terrane_engine a_range_lock_excludes";
    ForgetDeletedRanges: "transactions: range deletes are validated against", "validation does not look at the ranges that commits deleted", "terrane suite transactions::range_deletes_conflict";
    ReadBesideSnapshot: "transactions: one moment", "a transaction with a snapshot reads the latest state", "terrane suite transactions::random::histories_of_snapshots";
    ForgetClaims: "transactions: rows read for update stay", "a commit does not look whether what was read for update has changed", "terrane suite transactions::random::histories_that_read";
    SkipDeleteValidation: "transactions: a range delete is a write", "a transaction deletes a range though keys of it were changed after its snapshot", "terrane suite transactions::data::a_range_delete_is_a_write";
    ForgetBelow: "transactions: own operands are folded over visible rows", "a read within a transaction folds its own operands alone", "terrane suite transactions::data::a_transaction_folds_its_own";
    ScanOwnDeletes: "transactions: own range deletes are seen", "a scan within a transaction shows what its own range delete removes", "terrane suite transactions::data::a_transaction_sees_its_own_range";
    CommitExpired: "transactions: what has expired does not commit", "a transaction commits though others may have taken its locks", "terrane suite transactions::bare::an_expired_transaction";
    ForgetPreparedLocks: "transactions: a prepared transaction can be committed", "an opening does not take the locks of prepared transactions again", "terrane suite transactions::prepared::prepared_transactions_keep_their_locks";
    KeepPrepared: "transactions: prepared once, committed once", "the commit of a prepared transaction leaves its record", "terrane suite transactions::prepared::a_crash_leaves_it_prepared";
    RefuseOldFormat: "golden stores open", "the oldest format version of segments is refused", "terrane suite golden::every_golden_store";
    WriteLinkedFile: "checkpoint: shared files", "a data file that a checkpoint shares is written", "terrane-storage suite copy::neither_side_writes";
    CheckpointKeepsId: "checkpoint: a database of its own", "a checkpoint has the id of its source", "terrane-engine suite checkpoint::a_checkpoint_is_a_database_of_its_own";
    NameHalfCheckpoint: "checkpoint: one rename", "a checkpoint has its name before it is whole", "terrane-engine suite checkpoint::a_cut_at_any_call";
    WaitForItself: "writes on threads of the engine", "a worker may wait for itself", "terrane-engine terrane_engine reentrancy";
    KeepRefusedCharge: "writes that do not wait", "a write that is refused for memory is charged all the same", "terrane-engine terrane_engine a_write_refused_for_memory";
    BelieveForgotten: "ingest: readers of changes", "a mark in a segment that was given up counts as extents that came in", "terrane-engine suite announced::void_marks_of";
    KeepRoomForLocks: "writes that do not wait", "a large batch keeps its turn while it waits for a lock", "terrane-engine terrane_engine a_large_batch_has_no_turn_while_it_waits_for_a_lock";
    KeepTurn: "writes that do not wait", "a large batch that is refused keeps its turn", "terrane-engine terrane_engine a_large_batch_that_is_refused";
    LeaveLargeBatch: "invariant 8", "nothing is flushed behind a large batch", "terrane-engine suite large_batches::a_batch_larger_than_the_write_memory";
    KeepLongSegment: "invariant 8", "a long segment that was prepared stays where room is made for a batch", "terrane-engine suite large_batches::a_batch_near_the_limit";
    FlushByMergeOnly: "a full device", "a flush whose merge with level 1 has no room does not go on as a run", "terrane-engine suite small_device::a_flush_without_room_for_a_merge";
    LeaveNoRoom: "a full device", "the journal takes the space that the flush of it needs", "terrane-engine suite small_device::a_full_device_has_rows";
    LeaveNoMergeRoom: "a full device", "segments leave no room for the merges behind the flush", "terrane-journal suite full_device::the_kept_room_has_a_segment";
    DeletesTakeMergeRoom: "a full device", "segments of deletes take the room of a merge", "terrane-journal suite full_device::the_kept_room_has_a_segment";
    TakeKeptRoomAgain: "a full device", "a second segment takes of the kept room though nothing was flushed since", "terrane-journal suite sizes::a_journal_leaves_room";
    AttemptForEachWriter: "a full device", "each refused writer has all flushed again, though nothing has changed", "terrane-engine suite small_device::a_batch_that_is_refused_again";
    TrimWaitsForCheck: "a full device", "a job waits for a check of the journal, and refused writers for the job", "terrane-engine terrane_engine a_refused_writer_waits_for_no_check";
    ForgetTables: "a full device", "the room that the journal leaves does not count what each table takes", "terrane-engine suite small_device::many_small_tables";
    KeepRoomFromDeadlines: "a full device", "deletes of writers with a deadline have no room of their own", "terrane-engine suite small_device::deletes_with_a_deadline";
    SealWithoutNext: "a full device", "a segment with room is left where no other one can be made", "terrane-journal suite full_device::a_segment_with_room";
    CloseWithoutMark: "recovery: judge the end", "a close writes no mark where no segment can be made for it", "terrane-journal suite full_device::a_close_without_space";
    WriteThoughHeldBack: "writes that do not wait", "a write whose deadline has passed is admitted", "terrane-engine suite deadlines::a_write_that_would_wait_for_memory_is_refused_and_not_written";
    DoneBeforeSync: "invariant 1", "the ticket of an asynchronous write is done before the sync", "terrane-engine suite async_writes::a_loss_of_power_leaves";
    HideFailedSync: "asynchronous writes: a failed sync reaches each ticket", "tickets get no error of the sync that failed for them", "terrane-journal suite tickets::a_failed_persist_step";
    LeaveTicketsAtClose: "asynchronous writes: close completes tickets", "a close does not wait for the tickets in flight", "terrane-journal suite tickets::a_close_completes_every_ticket";
    KeepFirstWaker: "asynchronous writes: no lost wake-up", "a ticket that is polled again wakes the waker of its first poll", "terrane-journal suite tickets::a_polled_ticket_wakes";
    LeaveDurableReaders: "asynchronous writes: no lost wake-up", "readers of durable changes are not woken when a ticket is done", "terrane-engine terrane_engine a_ticket_that_is_done_wakes";
    ReadThroughExpired: "live readers: an expired one is refused", "reads through a snapshot go on though what it pinned was given up", "terrane suite readers::a_reader_that_is_too_old";
    SlowAllTables: "pacing: the throttle is per table", "writers of a table are slowed for the debt of another table", "terrane-engine suite pacing::the_throttle_is_per_table";
    InstallBeforeJournal: "invariant 2", "a flush is installed before the journal is durable, although older records are in memory", "terrane-engine suite flush_durability::";
    KeepPaceOfFlush: "pacing: a flush that has ended", "writers keep to the pace of a flush that has ended", "terrane-engine terrane_engine background::flush::flush_job::tests::a_flush_that_has_ended";
    FreeWhileHeld: "checkpoint: shared files", "slots are reused while a checkpoint is made of them", "terrane-storage suite copy::slots_freed_during_a_copy_are_not_reused";
    NameUnsyncedBackup: "backup: the manifest comes last", "a backup has its manifest before its objects are durable", "terrane-engine suite backup::a_cut_at_any_call";
    CollectSharedObjects: "backup: shared objects", "removing a backup removes what others need", "terrane-engine suite backup::shared_objects_are_copied_once_and_kept_while_a_backup_needs_them";
    BelieveBackupObject: "backup: every object is checked", "a restore believes objects whose checksum is wrong", "terrane-engine suite backup::refused::no_flipped_byte";
    BackUpFreedSlots: "backup of a view: no wrong bytes", "a backup of a view takes in what lies in the slots of an extent that the writer has freed", "terrane-engine suite backup::views::a_view_makes_a_backup";
    FollowInPlace: "follower: views do not change", "a view reads journal segments in place, where the primary writes them", "terrane-engine suite follow::a_view_stays";
    BelieveGoneExtent: "follower: removed extents are reported as removed", "an extent that the primary gave up is reported as damage", "terrane-engine suite follow::extents_that_the_primary_removed_are_refused_and_never_read_wrongly";
    RestoreKeepsId: "backup: a database of its own", "a restored database has the id of its source", "terrane-engine suite backup::a_backup_is_restored";
    CopyUncheckedExtent: "checkpoint: check what a reader copies", "an extent is copied as it is found", "terrane-engine suite checkpoint::of_readers::damage_is_not_a_copy";
    ReuseHistory: "history: files are kept", "the file of a segment that is history is reused", "terrane suite changes::history::files_of_history_are_not_reused";
    KeepBrokenHistory: "history: no gap", "history stays though what was committed behind it is not in the journal", "terrane suite changes::history::a_journal_that_was_off";
    TellPrepared: "changes: when committed", "readers of changes get the row of a prepared transaction", "terrane suite changes::a_prepared_transaction_shows_at_its_commit";
    BelieveMark: "changes: extents that came in", "readers of changes get an ingest that was announced and is void", "terrane-engine suite announced::readers_of_changes_get_an_announced_ingest_if_it_succeeded";
    CountVoidObjects: "follower: fenced writers", "objects that a fenced writer had under way count as objects of the journal", "terrane-remote suite followers::takeovers::late_objects_of_a_fenced_writer_are_not_a_part_of_the_journal";
    TakeTrimmedForNothing: "follower: nothing is missed", "a follower that missed deleted objects of the manifest believes that nothing is new", "terrane-remote suite followers::trimmed::a_follower_that_was_away_begins_again";
    FollowManifestAlone: "follower: one moment", "a follower takes new edits of the manifest without new segments of the journal", "terrane-remote suite followers::moments::a_view_is_of_one_moment";
    CallRemovedDamage: "follower: removed extents are reported as removed", "an object that the writer of a bucket replaced and deleted is reported as damage", "terrane-remote suite followers::trimmed::extents_that_the_writer_deleted_are_gone";
    ShowLaterCommits: "earlier states: one moment", "the database of an earlier commit replays the journal to its end", "terrane-remote suite followers::past_model::every_commit_is_opened";
    TrustListedNumber: "earlier states: nothing of another one", "an object that a replaced writer created late counts for one of an earlier state that was deleted", "terrane-remote suite followers::past::an_object_of_a_replaced_writer";
    OpenCutJournal: "earlier states: one moment", "an earlier state is opened though the front of its journal was deleted", "terrane-remote suite followers::past::a_deleted_moment_is_refused";
    TrustIdleLook: "follower: nothing is left out", "a view does not notice a writer that comes while it is made", "terrane-engine suite follow::a_writer_that_comes_while";
    TakeUnseenLockForFree: "follower: nothing is left out", "a view that cannot see the lock takes the database for one without a writer", "terrane-engine suite announced::a_view_that_cannot_see_the_lock";
    FollowPastMark: "follower: nothing is left out", "a view goes on behind extents that are announced and not decided", "terrane-engine suite announced::readers_of_changes_get_an_announced_ingest_if_it_succeeded";
}

/// Returns true if `bug` is the one that the environment names.
#[cfg(feature = "planted")]
#[must_use]
pub fn is_planted(bug: Bug) -> bool {
    static CHOSEN: std::sync::OnceLock<Option<Bug>> = std::sync::OnceLock::new();
    let chosen = CHOSEN.get_or_init(|| {
        let name = std::env::var("TERRANE_PLANTED").ok()?;
        let found = ALL.iter().find(|(_, [known, ..])| *known == name);
        Some(found.unwrap_or_else(|| panic!("there is no planted bug {name}")).0)
    });
    *chosen == Some(bug)
}

/// Returns true if `bug` is planted: never in this build.
#[cfg(not(feature = "planted"))]
#[inline(always)]
#[must_use]
pub const fn is_planted(_bug: Bug) -> bool {
    false
}

/// A number that no seed decides, different at each call: for a bug that depends on hidden state.
#[must_use]
pub fn turn() -> u64 {
    static TURN: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    // Relaxed: any interleaving will do.
    TURN.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

/// True at every other call, as [`turn`].
#[must_use]
pub fn alternates() -> bool {
    turn() % 2 == 1
}
