//! `stats --sizes`: how long the keys and the values of a table are, in powers of two.
//!
//! A sample has some rows from each of up to [`PLACES_MAX`] places: where extents of the deepest level begin,
//! which lie evenly over its rows. `--all` reads every row.

use std::io::Write;
use std::ops::Bound;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use terrane::Table;

use super::functions;
use crate::exit::{Code, Failure};
use crate::progress::{Meter, Unit};
use crate::signals::stop_on_signals;
use crate::text;

/// Rows of a sample.
const SAMPLE_ROWS: u64 = 10_000;
/// Places that the rows of a sample come from.
const PLACES_MAX: usize = 64;
/// Rows between two looks at the progress and at signals.
const METER_ROWS: u64 = 1024;
/// Columns of the longest bar.
const BAR_COLUMNS: u64 = 40;

/// Sizes in bytes, counted by powers of two.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sizes {
    /// Sizes of 0, of 1, of 2 to 3, of 4 to 7 and so on.
    buckets: [u64; 65],
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
}

impl Sizes {
    const NONE: Sizes = Sizes { buckets: [0; 65], count: 0, sum: 0, min: u64::MAX, max: 0 };

    fn add(&mut self, size: usize) {
        let size = size as u64;
        self.buckets[64 - size.leading_zeros() as usize] += 1;
        self.count += 1;
        self.sum += size;
        self.min = self.min.min(size);
        self.max = self.max.max(size);
        debug_assert!(self.min <= self.max && self.sum >= self.max, "each size counts in all of them");
    }

    fn mean(&self) -> f64 {
        self.sum as f64 / self.count.max(1) as f64
    }

    /// The buckets from the first to the last that has a size: least and greatest size of each, and its
    /// count.
    fn filled(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        let first = self.buckets.iter().position(|count| *count > 0).unwrap_or(0);
        let behind = self.buckets.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        let bucket = |at: usize| match at {
            0 => (0, 0, self.buckets[0]),
            _ => (1 << (at - 1), u64::MAX >> (64 - at), self.buckets[at]),
        };
        (first..behind).map(bucket)
    }

    fn to_json(&self) -> Value {
        let bucket = |(from, to, rows): (u64, u64, u64)| json!({ "from": from, "to": to, "rows": rows });
        let min = if self.count > 0 { self.min } else { 0 };
        json!({
            "bytes": self.sum, "min": min, "mean": self.mean(), "max": self.max,
            "buckets": self.filled().map(bucket).collect::<Vec<_>>(),
        })
    }

    fn write(&self, what: &str, out: &mut dyn Write) -> Result<(), Failure> {
        let (min, max) = (if self.count > 0 { self.min } else { 0 }, self.max);
        writeln!(out, "{what} of {min} to {max} bytes, {:.1} on average", self.mean())?;
        let most = self.filled().map(|(_, _, rows)| rows).max().unwrap_or(0).max(1);
        debug_assert!(most <= self.count.max(1), "no bucket has more than there are");
        for (from, to, rows) in self.filled() {
            let range = if from == to { from.to_string() } else { format!("{from} to {to}") };
            let share = rows as f64 * 100.0 / self.count as f64;
            let bar = "#".repeat((rows * BAR_COLUMNS).div_ceil(most) as usize);
            writeln!(out, "{range:>24} {:>15} {share:>5.1} %  {bar}", text::count(rows))?;
        }
        Ok(())
    }
}

/// Sizes of the rows of a table.
struct Found {
    keys: Sizes,
    values: Sizes,
    /// True if these are all rows.
    is_exact: bool,
}

/// Prints the sizes of a table's rows: of all, or of a sample.
pub(super) fn show(table: &Table, all: bool, as_json: bool, out: &mut dyn Write) -> Result<(), Failure> {
    functions::check_order(table)?;
    let Found { keys, values, is_exact } = find(table, all)?;
    if as_json {
        let object = json!({
            "table": table.name(), "rows": keys.count, "exact": is_exact,
            "keys": keys.to_json(), "values": values.to_json(),
        });
        return Ok(writeln!(out, "{object}")?);
    }
    let of = if is_exact { "all of them" } else { "a sample; --all reads all" };
    writeln!(out, "table {}: {} rows, {of}", text::shown(table.name()), text::count(keys.count))?;
    keys.write("keys", out)?;
    values.write("values", out)
}

fn find(table: &Table, all: bool) -> Result<Found, Failure> {
    let starts = if all { Vec::new() } else { places(table)? };
    let rows_max = if all { u64::MAX } else { SAMPLE_ROWS.div_ceil(starts.len() as u64 + 1) };
    let mut found = Found { keys: Sizes::NONE, values: Sizes::NONE, is_exact: true };
    let mut meter = Meter::new("sizes", Unit::Rows);
    let stop = stop_on_signals()?;
    // Each place up to the next one; the first begins with the first row, the last ends with the last.
    for at in 0..=starts.len() {
        let from = at.checked_sub(1).map_or(Bound::Unbounded, |at| Bound::Included(starts[at].as_slice()));
        let to = starts.get(at).map_or(Bound::Unbounded, |key| Bound::Excluded(key.as_slice()));
        let mut left = rows_max;
        for row in table.range((from, to)) {
            // Acquire: pairs with the store of the thread that waits for signals.
            if found.keys.count.is_multiple_of(METER_ROWS) && stop.load(Ordering::Acquire) {
                return Err(Failure::new(Code::Stopped, "stopped by a signal before the last row"));
            }
            let (key, value) = row?;
            if left == 0 {
                found.is_exact = false;
                break;
            }
            left -= 1;
            found.keys.add(key.len());
            found.values.add(functions::operands(&value).unwrap_or(&value).len());
            if found.keys.count % METER_ROWS == 1 {
                meter.show(found.keys.count, None);
            }
        }
    }
    Ok(found)
}

/// The first keys of extents of the deepest level, without that of the first extent, in order.
fn places(table: &Table) -> Result<Vec<Vec<u8>>, Failure> {
    let extents = table.extents()?;
    let deepest = extents.iter().map(|extent| extent.summary.level).max().unwrap_or(0);
    if deepest == 0 {
        // Overflow runs overlap.
        return Ok(Vec::new());
    }
    let level: Vec<_> = extents.into_iter().filter(|extent| extent.summary.level == deepest).collect();
    let count = level.len().min(PLACES_MAX);
    Ok((1..count).map(|at| level[at * level.len() / count].smallest.clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_size_is_counted_in_its_power_of_two() {
        let mut sizes = Sizes::NONE;
        [0, 1, 2, 3, 4, 7, 8, 1 << 20].iter().for_each(|size| sizes.add(*size));
        let filled: Vec<_> = sizes.filled().filter(|(_, _, rows)| *rows > 0).collect();
        let expected = [(0, 0, 1), (1, 1, 1), (2, 3, 2), (4, 7, 2), (8, 15, 1), (1 << 20, (2 << 20) - 1, 1)];
        assert_eq!(filled, expected);
        assert_eq!((sizes.min, sizes.max, sizes.count), (0, 1 << 20, 8));
        let last = Sizes { buckets: [1; 65], ..Sizes::NONE }.filled().last();
        assert_eq!(last, Some((1 << 63, u64::MAX, 1)));
    }

    #[test]
    fn without_rows_there_is_no_bucket() {
        assert_eq!(Sizes::NONE.filled().count(), 0);
        let mut out = Vec::new();
        Sizes::NONE.write("keys", &mut out).expect("a vector takes all");
        assert_eq!(String::from_utf8(out).expect("text"), "keys of 0 to 0 bytes, 0.0 on average\n");
    }
}
