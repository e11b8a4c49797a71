//! How far the collection of dead values is behind.
//!
//! Collection begins below the ceiling and may move as much as there is room below it, or [`MOVED_BYTES_MIN`]
//! if there is less. So value tables that exceed the ceiling by less than that say only that a job runs.
//! Their bytes beyond it grow until writers bring less than jobs give back.

use super::collect::{COLLECTED_BYTES_MIN, MOVED_BYTES_MIN, part};
use crate::limits::Limits;
use crate::shape::TableShape;

const PERMILLE: u64 = 1000;
/// Of the excess that the ceiling allows, the part that may lie above it at most.
const EXCESS_SHARE: u64 = 2;
/// Jobs of the least length whose values may lie above the ceiling at most.
const JOBS: u64 = 2;
/// The most that is said: a ceiling that was lowered is far below what there is, and writers must go on.
const DEBT_PERMILLE_MAX: u64 = 4 * PERMILLE;

/// Stored bytes of value tables above what [`Limits::value_space_permille`] allows, in thousandths of the
/// most that may be there while writers go on; 0 where no job would collect them.
///
/// That most is half of the allowed excess, or 48 MiB in a table that has little: at a ceiling of 1.25 of
/// the live bytes, one eighth of these.
#[must_use]
pub fn value_debt_permille(shape: &TableShape<'_>, limits: &Limits) -> u64 {
    let (totals, live) = shape.values.sums();
    let ceiling = limits.value_space_permille;
    let is_forgotten = terrane_base::planted!(ForgetValueDebt);
    let is_collected = limits.automatic && limits.value_collect_jobs && ceiling > 0 && !is_forgotten;
    if !is_collected || totals.bytes < COLLECTED_BYTES_MIN {
        return 0;
    }
    let live_bytes = part(totals.bytes, live.min(totals.entries), totals.entries.max(1));
    debug_assert!(live_bytes <= totals.bytes, "{live_bytes} live bytes of {}", totals.bytes);
    let allowed = part(live_bytes, ceiling, PERMILLE);
    let most = (allowed.saturating_sub(live_bytes) / EXCESS_SHARE).max(JOBS * MOVED_BYTES_MIN);
    part(totals.bytes.saturating_sub(allowed), PERMILLE, most).min(DEBT_PERMILLE_MAX)
}
