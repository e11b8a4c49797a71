//! The report of a repair: lost data, doubtful data, and the number of rows that were copied.

use terrane_base::Error;
use terrane_levels::Misfit;

/// Bytes of losses, doubts and mends that a report names; the rest is counted.
const NAMED_BYTES_MAX: usize = 16 << 20;

/// Something that could not be brought over.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Loss {
    /// Name of the table it belonged to, if that is known.
    pub table: Option<String>,
    /// First and last lost key, if they are known.
    pub keys: Option<(Vec<u8>, Vec<u8>)>,
    /// Versions lost, if it is known how many.
    pub entries: Option<u64>,
    /// The damage, and its place.
    pub error: Error,
}

/// Counts of the rows that a repair saved, and its losses.
///
/// ```
/// # use terrane_engine::RepairReport;
/// fn show(report: &RepairReport) {
///     println!("{} tables, {} versions, {} records", report.tables, report.entries, report.records);
///     for loss in &report.losses {
///         println!("lost of {:?}: {}", loss.table, loss.error);
///     }
///     if report.is_whole() && report.doubts.is_empty() {
///         println!("nothing is missing");
///     }
/// }
/// assert!(RepairReport::default().is_whole());
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RepairReport {
    /// The losses, up to some 16 MiB of them: a made-up file may hold losses without end.
    pub losses: Vec<Loss>,
    /// Losses that are not in the list.
    pub losses_left_out: u64,
    /// Places where a loss cannot be seen: the journal's end after a crash, a manifest without its end mark.
    pub doubts: Vec<Error>,
    /// Doubts that are not in the list.
    pub doubts_left_out: u64,
    /// Damaged parts of extents that were set right, or found to be sound in part: no losses.
    pub mends: Vec<Error>,
    /// Such parts that are not in the list.
    pub mends_left_out: u64,
    /// Versions in blocks that were found by damaged index blocks. Damage of the blocks themselves is a loss
    /// beside it.
    pub salvaged: u64,
    /// Tables of the new database.
    pub tables: u64,
    /// Extents that something was read from.
    pub extents: u64,
    /// Versions from extents.
    pub entries: u64,
    /// Of those, versions in a range where newer ones are lost: they may be out of date.
    pub uncertain: u64,
    /// Of the extents, those that no readable part of the manifest names: found by their footers. Rows that
    /// were deleted or dropped may be back with them; each of them counts as uncertain.
    pub unlisted_extents: u64,
    /// Extents that another database wrote: they are left out.
    pub foreign_extents: u64,
    /// Versions of unlisted or other extents that are left out because an extent that took their place does
    /// not have them any more: they were deleted, or written over.
    pub replaced: u64,
    /// Records from the journal.
    pub records: u64,
    /// Of those, records behind a break of the journal that an opening had set aside: rows that were deleted
    /// since may be back with them.
    pub set_aside: u64,
    /// Bytes of the lists above.
    named_bytes: usize,
}

impl RepairReport {
    pub(super) fn lose(&mut self, table: Option<&str>, error: Error) {
        if terrane_base::planted!(SilentRepair) {
            return;
        }
        self.lose_keys(Loss { table: table.map(str::to_owned), keys: None, entries: None, error });
    }

    pub(super) fn lose_misfit(&mut self, Misfit { table, entries, error }: Misfit) {
        if terrane_base::planted!(SilentRepair) {
            return;
        }
        let error = error.context("its extents are left out: is this the comparator that it was made with?");
        self.lose_keys(Loss { table: Some(table), keys: None, entries: Some(entries), error });
    }

    pub(super) fn lose_keys(&mut self, loss: Loss) {
        let keys = loss.keys.as_ref().map_or(0, |(first, last)| first.len() + last.len());
        if self.may_name(&loss.error, keys + loss.table.as_ref().map_or(0, String::len)) {
            self.losses.push(loss);
        } else {
            self.losses_left_out += 1;
        }
    }

    pub(super) fn doubt(&mut self, error: Error) {
        if self.may_name(&error, 0) {
            self.doubts.push(error);
        } else {
            self.doubts_left_out += 1;
        }
    }

    pub(super) fn mended(&mut self, part: Error) {
        if self.may_name(&part, 0) {
            self.mends.push(part);
        } else {
            self.mends_left_out += 1;
        }
    }

    /// Returns true if one more fits into the lists.
    fn may_name(&mut self, error: &Error, bytes: usize) -> bool {
        let file = error.place().map_or(0, |place| place.file.len());
        let named = self.named_bytes + size_of::<Loss>() + error.message().len() + file + bytes;
        let fits = named <= NAMED_BYTES_MAX || terrane_base::planted!(UnlimitedLosses);
        if fits {
            self.named_bytes = named;
        }
        debug_assert!(
            self.named_bytes <= NAMED_BYTES_MAX || terrane_base::planted!(UnlimitedLosses),
            "a made-up database would fill the memory"
        );
        fits
    }

    /// Returns true if everything was brought over, as far as a repair can know.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.losses.is_empty() && self.losses_left_out == 0
    }
}
