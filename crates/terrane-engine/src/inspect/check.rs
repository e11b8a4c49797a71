//! `check`: verifies every checksum and every invariant of the stored data, and names each violation.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_base::record::Record;
use terrane_base::{Cursor, Error, Kind, Result, SegmentId, SeqNo};
use terrane_device::SegmentMemory;
use terrane_journal::{ReplaySettings, SegmentReader, SegmentSpec, SegmentState, aside_numbers, replay};
use terrane_levels::directory::JOURNAL;
use terrane_levels::{KeptSegment, Metasnapshot, State};
use terrane_table::{Extent, verify_extent_counting};

use crate::observe::findings::{CheckProgress, CheckReport, Finding};
use crate::segment_files::listed;
use crate::shared::Shared;
use crate::table::Table;
use crate::table::read_view::ReadView;

impl Shared {
    /// Verifies everything that is stored now; `progress` is called with the bytes done and the bytes in all.
    ///
    /// # Errors
    /// `Io` if the device refuses, `Cancelled` if the database closes. Damage is a finding, not an error; so
    /// is a comparator that panicked since the open, of kind `Poisoned`, once for each of its tables: nothing
    /// more is said of their order then, and while it still panics, nothing of the blocks of an extent whose
    /// index it confuses.
    pub fn check(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<CheckReport> {
        self.check_until(&mut |now| {
            progress(now.bytes_done, now.bytes);
            ControlFlow::Continue(())
        })
    }

    /// As [`Shared::check`], until `progress` breaks: the report then has what was found so far, and says so.
    ///
    /// # Errors
    /// As [`Shared::check`].
    pub fn check_until(
        &self,
        progress: &mut dyn FnMut(&CheckProgress) -> ControlFlow<()>,
    ) -> Result<CheckReport> {
        Check { engine: self, report: CheckReport::default() }.run(progress)
    }
}

/// A check, and what it has found so far.
struct Check<'e> {
    engine: &'e Shared,
    report: CheckReport,
}

impl Check<'_> {
    fn run(mut self, progress: &mut dyn FnMut(&CheckProgress) -> ControlFlow<()>) -> Result<CheckReport> {
        let tables = self.engine.catalog.all();
        // Pinned together: no extent that is looked at can go meanwhile.
        let trees: Vec<_> = tables
            .iter()
            .map(|table| {
                let view = table.pinned();
                (table, has_operands(&view), view.tree)
            })
            .collect();
        let bytes = trees.iter().map(|(_, _, tree)| tree.totals().bytes).sum();
        self.check_manifest();
        for (table, has_operands, tree) in &trees {
            let flow = self.check_table((table, *has_operands), tree, &mut |report| {
                let (bytes_done, entries_done) = (report.bytes, report.entries);
                progress(&CheckProgress { bytes_done, bytes, entries_done })
            })?;
            self.report.is_cancelled = flow.is_break();
            if flow.is_break() {
                return Ok(self.report);
            }
        }
        assert_eq!(self.report.tables, tables.len() as u64, "a check that goes on looks at every table");
        self.check_segments()?;
        self.check_history()?;
        let behind = self.engine.opening.behind_break().iter();
        self.report.findings.extend(behind.map(|error| Finding { table: None, error: error.clone() }));
        self.report.set_aside = self.set_aside()?;
        Ok(self.report)
    }

    /// Verifies the extents of a table; breaks where `progress` does, with the report of what came before.
    /// `has_operands`: memory has some of the table.
    fn check_table(
        &mut self,
        (table, mut has_operands): (&Table, bool),
        tree: &Metasnapshot,
        progress: &mut dyn FnMut(&CheckReport) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        self.report.tables += 1;
        if table.semantics.collation().is_missing() {
            self.report.unordered.push(table.name.clone());
        }
        let mut found = Vec::new();
        found.extend(tree.check().err());
        let is_checked = |extent: &&Arc<Extent>| {
            extent.meta.value_table.is_none() || !terrane_base::planted!(CheckForgetsValues)
        };
        let mut flow = ControlFlow::Continue(());
        for extent in tree.extents().map(|(_, extent)| extent).filter(is_checked) {
            let (errors, operands) = verify_extent_counting(&extent.meta, &*self.engine.store);
            has_operands |= operands > 0;
            for error in errors {
                if error.kind() == Kind::Io {
                    return Err(error);
                }
                found.push(error);
            }
            self.report.extents += 1;
            // Values count where they are pointed to.
            let is_keyed = extent.meta.value_table.is_none();
            self.report.entries += if is_keyed { extent.meta.entries } else { 0 };
            self.report.bytes += u64::from(extent.meta.bytes);
            flow = progress(&self.report);
            if flow.is_break() {
                break;
            }
        }
        self.report.with_operands.extend(has_operands.then(|| table.name.clone()));
        if let Err(failed) = table.semantics.collation().check() {
            // Keys that seem to lie wrongly follow from that; whatever else was found does not.
            found.retain(|error| !error.is_of_order());
            found.push(failed);
        }
        let finding = |error| Finding { table: Some(table.name.clone()), error };
        self.report.findings.extend(found.into_iter().map(finding));
        Ok(flow)
    }

    /// Verifies the state that the manifest records.
    fn check_manifest(&mut self) {
        let state = self.engine.manifest.state();
        let Err(error) = state.check() else { return };
        // Which table it is about: that a comparator failed is found with its own table.
        let broken =
            state.tables.values().find(|table| error.is_of_order() && table.extents.check().is_err());
        let mut metas = broken.into_iter().flat_map(|table| table.extents.extents()).map(|(_, meta)| meta);
        if metas.next().is_none_or(|meta| meta.collation.check().is_ok()) {
            self.report.findings.push(Finding { table: None, error });
        }
    }

    /// The first segment that a commit may write to now: the active one, or that behind the last one that has
    /// records. Opened for reading only, nothing is written to any segment.
    fn first_that_grows(&self) -> SegmentId {
        let segments = self.engine.journal.segments();
        debug_assert!(segments.is_sorted_by_key(|segment| segment.id), "ids ascend in the chain");
        if let Some(active) = segments.iter().find(|segment| segment.state == SegmentState::Active) {
            return active.id;
        }
        let full = segments.iter().rfind(|segment| segment.state != SegmentState::Unused);
        match full {
            _ if self.engine.options.read_only => SegmentId(u64::MAX),
            Some(full) => SegmentId(full.id.0 + 1),
            None => SegmentId(0),
        }
    }

    /// Verifies the segments that accept no further records.
    fn check_segments(&mut self) -> Result<()> {
        debug_assert!(!self.report.is_cancelled, "a check that was ended looks at nothing else");
        // A segment that is trimmed meanwhile would look lost.
        let _no_trim = self.engine.trims.hold_for_check();
        let state = self.engine.manifest.state();
        let end = self.first_that_grows();
        let listed: Vec<_> = state.segments.range(..end).map(|(_, segment)| listed(segment)).collect();
        let settings = ReplaySettings {
            threads: 1,
            durable_floor: SeqNo(0),
            flushed: SeqNo(0),
            make_durable: false,
            salt: state.database.segment_salt(),
        };
        let dir = self.engine.dir().join(JOURNAL);
        let sink = |_: &Arc<SegmentMemory>, _: usize, _: &Record<'_>, _: SeqNo| Ok(());
        match replay(&**self.engine.disk(), &dir, &listed, &settings, &*self.engine.env.spawn, &sink) {
            Ok(replayed) => {
                self.report.segments += replayed.segments.len() as u64;
                self.report.bytes += replayed.bytes;
                // Opened for reading only, the last segments are as their writer left them: a group that it
                // was writing when it died is cut by the next recovery, and is not damage. The opening has
                // checked all that must be whole.
                if let Some(cut) = replayed.cut.filter(|_| !self.engine.options.read_only) {
                    let error = Error::corrupt(format!("a complete segment ends early: {}", cut.reason));
                    self.report.findings.push(Finding { table: None, error: error.at(cut.file, cut.offset) });
                }
                Ok(())
            }
            Err(error) if error.kind() == Kind::Io => Err(error),
            Err(error) => {
                self.report.findings.push(Finding { table: None, error });
                Ok(())
            }
        }
    }

    /// The files with what openings set aside.
    fn set_aside(&self) -> Result<Vec<PathBuf>> {
        let dir = self.engine.dir().join(JOURNAL);
        let names = match self.engine.disk().list(&dir) {
            // A journal elsewhere has no directory.
            Err(error) if error.kind() == Kind::NotFound => return Ok(Vec::new()),
            names => names?,
        };
        let aside = names.iter().filter(|name| aside_numbers(name).is_some());
        Ok(aside.map(|name| dir.join(name)).collect())
    }

    /// Verifies the segments that are history.
    fn check_history(&mut self) -> Result<()> {
        debug_assert!(!self.report.is_cancelled, "a check that was ended looks at nothing else");
        let _no_trim = self.engine.trims.hold_for_check();
        let state = self.engine.manifest.state();
        let dir = self.engine.dir().join(JOURNAL);
        for segment in state.history.values() {
            match self.check_kept(&dir, &state, segment) {
                Ok(()) => {}
                Err(error) if error.kind() == Kind::Io => return Err(error),
                Err(error) => {
                    self.report.findings.push(Finding { table: None, error: error.context("history") })
                }
            }
            self.report.segments += 1;
            self.report.bytes += segment.kept.end_offset;
        }
        Ok(())
    }

    fn check_kept(&self, dir: &Path, state: &State, segment: &KeptSegment) -> Result<()> {
        let (spec, kept, salt) = (segment.spec, segment.kept, state.database.segment_salt());
        let spec = SegmentSpec { id: spec.id, file: spec.file, bytes: spec.bytes };
        let opened =
            SegmentReader::open(&**self.engine.disk(), dir, &spec, salt, Some(kept.end_offset), true)?;
        let mut reader = opened.filter(|reader| reader.first_seq() == kept.first_seq).ok_or_else(|| {
            let path = dir.join(spec.file_name()).display().to_string();
            Error::corrupt(format!("segment {} is missing or has another header", spec.id)).at(path, 0)
        })?;
        while reader.next_group()?.is_some() {}
        if reader.last_seq() == kept.last_seq { Ok(()) } else { Err(reader.damaged()) }
    }
}

/// Returns true if an index over records has an operand of a merge.
fn has_operands(view: &ReadView) -> bool {
    view.indexes().any(|index| {
        let mut cursor = index.cursor();
        let mut placed = cursor.seek_first();
        while let (Ok(()), Some(entry)) = (&placed, cursor.entry()) {
            if entry.seq_kind.is_merge() {
                return true;
            }
            placed = cursor.next();
        }
        // What cannot be read may be one.
        placed.is_err()
    })
}
