//! Compaction of files that are named: of the range that they span.

use std::ffi::{c_char, c_int};
use std::ops::Bound;
use std::time::Duration;

use terrane::{ExtentInfo, ExtentSummary, Table};

use crate::db::{Database, Family};
use crate::extents::levels::deepest_of;
use crate::extents::merged::Merged;
use crate::extents::{extent_name, extent_of};
use crate::ffi::arguments::Text;
use crate::ffi::failure::{Failure, Given, Result};
use crate::ffi::types::{Out, lasting_list, lasting_text, put};
use crate::generated::values::CompactionJobInfo;
use crate::options::CompactFilesOptions;
use crate::options::objects::statistics::moment;

/// The extents that files are named after; all must be there.
fn named(table: &Table, names: &[Text<'_>]) -> Result<Vec<ExtentInfo>> {
    let extents = table.extents()?;
    let find = |name: &str| {
        let id = extent_of(name);
        extents.iter().find(|extent| id == Some(extent.summary.id)).cloned().ok_or_else(|| {
            Failure::invalid(format_args!(
                "Specified compaction input file {name} does not exist in column family {}.",
                table.name()
            ))
        })
    };
    names.iter().map(|name| find(name.utf8()?)).collect()
}

/// Merges the extents between the first and the last key of the files; returns those that are there then.
fn compact(database: &Database, family: &Family, inputs: &[ExtentInfo]) -> Result<Vec<ExtentInfo>> {
    database.refuse_if_manual_disabled()?;
    let order = &family.order;
    let first = inputs.iter().map(|extent| extent.smallest.as_slice()).min_by(|a, b| order.cmp(a, b));
    let last = inputs.iter().map(|extent| extent.largest.as_slice()).max_by(|a, b| order.cmp(a, b));
    let (Some(first), Some(last)) = (first, last) else {
        return Err(Failure::invalid("no files are named"));
    };
    database.compact_range(&family.table, (Bound::Included(first), Bound::Included(last)))?;
    let extents = family.table.extents()?.into_iter();
    let is_within = |extent: &ExtentInfo| {
        order.cmp(&extent.largest, first).is_ge() && order.cmp(&extent.smallest, last).is_le()
    };
    Ok(extents.filter(is_within).collect())
}

/// Description of the finished compaction, as far as it can be seen from outside.
fn job_info(
    family: &Family,
    inputs: &[ExtentInfo],
    outputs: &[ExtentInfo],
    took: Duration,
) -> CompactionJobInfo {
    // Where an extent lies says little: a place that was freed on the way is taken again.
    let is_among = |extents: &[ExtentInfo], one: &ExtentSummary| {
        extents.iter().any(|extent| {
            let mut moved = extent.summary;
            moved.level = one.level;
            moved == *one
        })
    };
    let summaries = |extents: &'_ [ExtentInfo]| -> Vec<ExtentSummary> {
        extents.iter().map(|extent| extent.summary).collect()
    };
    let (before, after) = (summaries(inputs), summaries(outputs));
    let (moved, written) = after.iter().partition::<Vec<_>, _>(|extent| is_among(inputs, extent));
    let entries = |extents: &[&ExtentSummary]| extents.iter().map(|extent| extent.entries).sum::<u64>();
    let bytes = |extents: &[&ExtentSummary]| extents.iter().map(|extent| extent.bytes).sum();
    let level = |extent: &ExtentSummary| usize::from(extent.level);
    let inputs: Vec<&ExtentSummary> = before.iter().collect();
    let bytes = (bytes(&inputs), bytes(&written));
    let merged = Merged {
        owner: family.owner(),
        levels: family.levels(deepest_of(outputs)),
        between: (before.iter().map(level).min().unwrap_or(0), after.iter().map(level).max().unwrap_or(0)),
        entries: (entries(&inputs), entries(&written) + entries(&moved)),
        bytes,
        inputs,
        written,
        moved,
        took,
    };
    let mut info = CompactionJobInfo { job_id: 1, ..merged.job_info() };
    info.stats.is_manual_compaction = 1;
    info
}

/// Where names of files and their number go.
type Places<'a> = (Out<'a, *mut *mut c_char>, Out<'a, usize>);

fn compact_files(
    database: &Database,
    family: &Family,
    names: &[Text<'_>],
    (places, count): Places<'_>,
    info: Option<&mut CompactionJobInfo>,
) -> Result<()> {
    database.refuse_if_read_only()?;
    let inputs = named(&family.table, names)?;
    let begun = moment();
    let outputs = compact(database, family, &inputs)?;
    let list = || -> Vec<*mut c_char> {
        let directory = database.directory();
        let name = |extent: &ExtentInfo| format!("{directory}{}", extent_name(extent.summary.id));
        outputs.iter().map(|extent| lasting_text(&name(extent))).collect()
    };
    if let Some(place) = places {
        place.write(lasting_list(&list()));
    }
    put(count, outputs.len());
    if let Some(info) = info {
        *info = job_info(family, &inputs, &outputs, moment().saturating_sub(begun));
    }
    Ok(())
}

cf_variants! {
    fn rocksdb_compact_files | rocksdb_compact_files_cf(
        database: Option<&Database>;
        options: Option<&CompactFilesOptions>,
        names: List<'_, Text<'_>>[count],
        count: usize,
        _level: c_int,
        _path_id: c_int,
        outputs: Out<'_, *mut *mut c_char>,
        output_count: Out<'_, usize>,
        info: Option<&mut CompactionJobInfo>,
        error: ErrPtr<'_>,
    ) as target {
        database.given()?.note_options(options)?;
        compact_files(database.given()?, target.family(database)?, names, (outputs, output_count), info)
    }
}

export! {
    fn rocksdb_compact_files_output_file_names_destroy(names: ReturnedList<c_char>[count], count: usize) {
        names.free_strings();
    }
}
