//! Inputs and outputs of a compaction in RocksDB's terms, for listeners and for callers of
//! `rocksdb_compact_files`.

use std::ffi::c_int;
use std::time::Duration;

use terrane::ExtentSummary;

use crate::extents::levels::Levels;
use crate::extents::{Owner, codec_number, extent_name, extent_number};
use crate::ffi::value_objects::LentText;
use crate::generated::values::{CompactionFileInfo, CompactionJobInfo, CompactionJobStats, TableProperties};

/// Inputs and outputs of a compaction.
pub(crate) struct Merged<'a> {
    pub(crate) owner: Owner<'a>,
    /// How its levels are numbered for callers.
    pub(crate) levels: Levels,
    /// The uppermost level that was merged, and the one that the result is in.
    pub(crate) between: (usize, usize),
    pub(crate) inputs: Vec<&'a ExtentSummary>,
    pub(crate) written: Vec<&'a ExtentSummary>,
    /// Extents that moved to the level unchanged.
    pub(crate) moved: Vec<&'a ExtentSummary>,
    pub(crate) took: Duration,
    /// Entries that went in, and that came out.
    pub(crate) entries: (u64, u64),
    /// Bytes that were read, and written.
    pub(crate) bytes: (u64, u64),
}

impl Merged<'_> {
    /// All fields but status and job number.
    pub(crate) fn job_info(&self) -> CompactionJobInfo {
        let outputs: Vec<&ExtentSummary> = self.written.iter().chain(&self.moved).copied().collect();
        let all = || self.inputs.iter().chain(&self.written);
        let (from, to) = self.between;
        let properties = |extent: &&ExtentSummary| TableProperties::of(extent, self.owner);
        let stats = self.stats();
        CompactionJobInfo {
            cf_id: self.owner.id,
            cf_name: self.owner.name.into(),
            base_input_level: self.levels.number_of(from) as c_int,
            output_level: self.levels.number_of(to) as c_int,
            compression: outputs.first().map_or(0, |extent| codec_number(extent.compression)),
            input_files: self.inputs.iter().map(|extent| name_of(extent)).collect(),
            output_files: outputs.iter().map(|extent| name_of(extent)).collect(),
            input_file_infos: self.inputs.iter().map(|extent| self.file(extent)).collect(),
            output_file_infos: outputs.iter().map(|extent| self.file(extent)).collect(),
            table_properties_keys: all().map(|extent| name_of(extent)).collect(),
            table_properties_values: all().map(properties).collect(),
            elapsed_micros: stats.elapsed_micros,
            input_records: stats.num_input_records,
            output_records: stats.num_output_records,
            total_input_bytes: stats.total_input_bytes,
            total_output_bytes: stats.total_output_bytes,
            num_input_files: stats.num_input_files,
            num_input_files_at_output_level: stats.num_input_files_at_output_level,
            stats,
            ..CompactionJobInfo::default()
        }
    }

    fn stats(&self) -> CompactionJobStats {
        let ((entries_in, entries_out), (bytes_in, bytes_out)) = (self.entries, self.bytes);
        let is_below = |extent: &&&ExtentSummary| usize::from(extent.level) == self.between.1;
        CompactionJobStats {
            elapsed_micros: self.took.as_micros() as u64,
            has_accurate_num_input_records: 1,
            num_input_records: entries_in,
            num_output_records: entries_out,
            num_records_replaced: entries_in.saturating_sub(entries_out),
            num_input_deletion_records: self.inputs.iter().map(|extent| extent.deletes).sum(),
            num_input_files: self.inputs.len(),
            num_input_files_at_output_level: self.inputs.iter().filter(is_below).count(),
            num_input_files_trivially_moved: self.moved.len(),
            num_output_files: self.written.len(),
            total_input_bytes: bytes_in,
            total_output_bytes: bytes_out,
            ..CompactionJobStats::default()
        }
    }

    /// An extent as a file of the compaction.
    fn file(&self, extent: &ExtentSummary) -> CompactionFileInfo {
        CompactionFileInfo {
            level: self.levels.number_of(extent.level.into()) as c_int,
            file_number: extent_number(extent.id),
            ..CompactionFileInfo::default()
        }
    }
}

fn name_of(extent: &ExtentSummary) -> LentText {
    extent_name(extent.id).into()
}
